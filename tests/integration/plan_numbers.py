"""Works every number of a plan out again from its route, the cluster file and
the cost file, by the definitions in planner/README.md; independent of the
planner, plain and slow. Files are JSON."""
import json
import math
import re

UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
SECONDS = {"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def quantity(value, units):
    if not isinstance(value, str):
        return value
    number, unit = re.fullmatch(r"([0-9.e+-]+)\s*(\S*)", value).groups()
    return float(number) * units[unit]


def size(value):
    return math.floor(quantity(value, UNITS))


def rate(value):
    if isinstance(value, str) and value.endswith("bit/s"):
        return quantity(value[:-5] + "B", UNITS) / 8
    return quantity(value.removesuffix("/s") if isinstance(value, str)
                    else value, UNITS)


def layers_of(entries):
    out = []
    for entry in entries:
        group = layers_of(entry["layers"]) if "layers" in entry else [entry]
        out += group * entry.get("repeat", 1)
    return out


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Problem:
    def __init__(self, cluster, costs, contexts, concurrency):
        self.contexts = contexts
        self.concurrency = concurrency
        self.nodes = {}
        for node in cluster["nodes"]:
            names = ([f"{node['name']}-{i}" for i in range(node["count"])]
                     if "count" in node else [node["name"]])
            self.nodes.update((name, node) for name in names)
        self.links = {frozenset(link["between"]): link
                      for link in cluster.get("links", [])}
        self.link_default = cluster.get("link_default", {})
        self.reserve = size(cluster.get("reserve", 0))
        self.constraints = cluster.get("constraints", [])
        self.hidden = size(costs["hidden_bytes"])
        self.layers = [{
            "weights": size(layer["weights"]),
            "kv": size(layer.get("kv_per_token", 0)),
            "state": size(layer.get("state_per_sequence", 0)),
            "bytes": size(layer.get("bytes_per_token", layer["weights"])),
            "flops": layer.get("flops_per_token", 0),
            "vectors": layer.get("vectors", 1),
        } for layer in layers_of(costs["layers"])]
        for key, layer in (("first", self.layers[0]),
                           ("last", self.layers[-1])):
            if key in costs:
                end = costs[key]
                read = end["weights"] if key == "last" else 0
                layer["weights"] += size(end["weights"])
                layer["bytes"] += size(end.get("bytes_per_token", read))
                layer["flops"] += end.get("flops_per_token", 0)

    def link(self, a, b):
        link = self.links.get(frozenset((a, b)), self.link_default)
        return (rate(link["bandwidth"]) if "bandwidth" in link else None,
                quantity(link["latency"], SECONDS) if "latency" in link
                else None)


def over(amount, speed):
    if amount == 0:
        return 0.0
    return None if speed is None else amount / speed


def plus(a, b):
    return None if a is None or b is None else a + b


class Numbers:
    """All numbers of a route [(node, first, last)]."""

    def __init__(self, problem, route):
        self.problem = problem
        self.held = {}
        for node, first, last in route:
            self.held.setdefault(node, []).extend(range(first, last + 1))
        self.fixed, self.row, self.use = {}, {}, {}
        for node, layers in self.held.items():
            spec = problem.nodes[node]
            bandwidth = (rate(spec["memory_bandwidth"])
                         if "memory_bandwidth" in spec else None)
            self.fixed[node] = over(self.total(layers, "bytes"), bandwidth)
            self.row[node] = over(self.total(layers, "flops"),
                                  spec.get("compute", {}).get("default"))
        self.latency = 0.0
        for (a, _, _), (b, first, _) in zip(route, route[1:]):
            bandwidth, latency = problem.link(a, b)
            moved = problem.hidden * problem.layers[first]["vectors"]
            self.use[a, b] = plus(self.use.get((a, b), 0.0),
                                  over(moved, bandwidth))
            self.latency = plus(self.latency, latency)
        if route[0][0] != route[-1][0]:
            back = problem.link(route[-1][0], route[0][0])[1]
            self.latency = plus(self.latency, back)
        self.known = None not in (self.latency, *self.fixed.values(),
                                  *self.row.values(), *self.use.values())
        self.rows = None if problem.concurrency else 1
        if self.known:
            self.rows = 1
            while (problem.concurrency and self.rows * self.microbatches(
                    self.rows) < problem.concurrency):
                self.rows += 1

    def total(self, layers, key):
        return sum(self.problem.layers[layer][key] for layer in layers)

    def segment(self, node):
        if self.fixed[node] is None or self.row[node] is None:
            return None
        if self.row[node] == 0:
            return self.fixed[node]
        return (None if self.rows is None
                else self.fixed[node] + self.rows * self.row[node])

    def cycle(self, rows):
        return max(*(self.fixed[n] + rows * self.row[n] for n in self.held),
                   *(rows * use for use in self.use.values()), 0.0)

    def loop(self, rows):
        return (sum(self.fixed[n] + rows * self.row[n] for n in self.held)
                + self.latency + rows * sum(self.use.values()))

    def microbatches(self, rows):
        cycle = self.cycle(rows)
        return (math.ceil(self.loop(rows) / cycle * (1 - 1e-12)) if cycle
                else 1)

    def need(self, node, context):
        return (self.total(self.held[node], "kv") * context
                + self.total(self.held[node], "state"))

    def free(self, node):
        return (size(self.problem.nodes[node]["memory"]) - self.problem.reserve
                - self.total(self.held[node], "weights"))

    def sequences(self, context):
        """Their number, and the nodes that have room for no more."""
        room = {n: self.free(n) // self.need(n, context) for n in self.held
                if self.need(n, context)}
        least = min(room.values(), default=None)
        return least, [n for n in room if room[n] == least]

    def times(self):
        if not self.known:
            return dict.fromkeys(("cycle_s", "loop_s", "microbatches",
                                  "tokens_per_s", "tpot_s"))
        cycle, loop = self.cycle(self.rows), self.loop(self.rows)
        n = self.microbatches(self.rows)
        return {"cycle_s": cycle, "loop_s": loop, "microbatches": n,
                "tokens_per_s": (self.rows * min(n / loop, 1 / cycle)
                                 if cycle else None),
                "tpot_s": max(loop, n * cycle)}

    def ttft(self, prompt, chunk):
        rows = min(prompt, chunk)
        return (self.loop(rows)
                + (math.ceil(prompt / rows) - 1) * self.cycle(rows))


def close(a, b, tolerance=1e-9):
    if a is None or b is None:
        return a is b
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def rules(problem, numbers, route, placement):
    """Sentences about broken rules."""
    out = []
    following = [0] + [last + 1 for _, _, last in route]
    if [first for _, first, _ in route] + [len(problem.layers)] != following:
        out.append("the route does not cover all layers in order")
    if any(a[0] == b[0] for a, b in zip(route, route[1:])):
        out.append("neighboring entries are on one node")
    if placement == "contiguous" and len(route) > len(numbers.held):
        out.append("a contiguous plan meets a node twice")
    for node in numbers.held:
        wanted = problem.concurrency or 1
        if numbers.free(node) < wanted * numbers.need(node,
                                                      problem.contexts[0]):
            out.append(f"{node} is beyond its memory")
    spare = sum(c.get("spare", 0) for c in problem.constraints)
    if len(numbers.held) > len(problem.nodes) - spare:
        out.append("spare nodes are used")
    for constraint in problem.constraints:
        if "layers" not in constraint:
            continue
        low, high = constraint["layers"]
        for node, layers in numbers.held.items():
            labels = problem.nodes[node].get("labels", {})
            if (any(low <= layer <= high for layer in layers)
                    and not constraint["labels"].items() <= labels.items()):
                out.append(f"{node} breaks a label constraint")
    return out


def differences(plan, problem, prompt=None, chunk=512):
    """Sentences about what in a plan does not follow from its route."""
    route = [(entry["node"], entry["first_layer"], entry["last_layer"])
             for entry in plan["route"]]
    numbers = Numbers(problem, route)
    out = rules(problem, numbers, route, plan["placement"])
    wanted = {**numbers.times(), "nodes_used": len(numbers.held),
              "ttft_s": (numbers.ttft(prompt, chunk)
                         if prompt and numbers.known else None)}
    out += [f"{key} is {plan[key]}, should be {value}"
            for key, value in wanted.items() if not close(plan[key], value)]
    if [stage["node"] for stage in plan["stages"]] != list(numbers.held):
        return out + ["stages are not the nodes of the route"]
    for stage in plan["stages"]:
        node = stage["node"]
        layers = numbers.held[node]
        for key, value in (
                ("weights_bytes", numbers.total(layers, "weights")),
                ("scratch_bytes", 0), ("free_bytes", numbers.free(node)),
                ("kv_bytes_per_token", numbers.total(layers, "kv")),
                ("state_bytes_per_sequence", numbers.total(layers, "state")),
                ("segment_s", numbers.segment(node))):
            if not close(stage[key], value):
                out.append(f"{node}: {key} is {stage[key]}, "
                           f"should be {value}")
    if [c["context"] for c in plan["concurrency"]] != problem.contexts:
        return out + ["concurrency has other contexts"]
    for entry in plan["concurrency"]:
        least, where = numbers.sequences(entry["context"])
        if entry["sequences"] != least or entry["binding_node"] not in (
                where or [None]):
            out.append(f"concurrency at {entry['context']} should be {least} "
                       f"on one of {where}")
    return out
