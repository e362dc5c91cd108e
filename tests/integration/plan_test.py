#!/usr/bin/env python3
"""Plans from cost files: cases with answers known by hand, every number of a
plan worked out again from its route, and inputs that are refused by name."""
import html.parser
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import cluster
import plan_numbers

CASES = pathlib.Path(__file__).parent.parent / "data" / "plans"
CRITERIA = {"tokens_per_s", "nodes_used", "loop_s", "cycle_s", "microbatches"}
COSTS = {"version": 1, "hidden_bytes": 1000,
         "layers": [{"repeat": 4, "weights": "1GB", "kv_per_token": 1000,
                     "flops_per_token": 1e9}]}
NODES = {"version": 1,
         "nodes": [{"name": "n", "count": 3, "memory": "3GB",
                    "memory_bandwidth": "10GB/s",
                    "compute": {"default": 1e12}}],
         "link_default": {"bandwidth": "1GB/s", "latency": "1ms"}}


class PageReader(html.parser.HTMLParser):
    """The text of a page and the numbers in it."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()
        self.values, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "data":
            self.values.append(dict(attrs)["value"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_data(self, data):
        self.text += data


class PlanTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str)
                       else json.dumps(content))
        return path

    def plan(self, costs, nodes, *options):
        return subprocess.run(
            [cluster.programs()[0], "plan", "--costs", costs, "--cluster",
             nodes, *options], capture_output=True, text=True, timeout=60,
            check=False)

    def document(self, costs, nodes, *options, code=0):
        done = self.plan(self.path("costs.json", costs),
                         self.path("nodes.json", nodes), *options, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def test_page(self):
        """--html writes one page that loads nothing, whose tags match and
        whose numbers are those of the plan; a name is never markup."""
        name = "<script>alert(1)</script>"
        nodes = dict(NODES, nodes=[dict(NODES["nodes"][0], name=name)])
        page = os.path.join(self.folder.name, "plan.html")
        for memory, code in (("3GB", 0), ("1kB", 3)):
            nodes["nodes"][0]["memory"] = memory
            plan = self.document(COSTS, nodes, "--html", page, code=code)
            with open(page, encoding="utf-8") as file:
                reader = PageReader()
                reader.feed(file.read())
                reader.close()
            self.assertEqual(reader.open, [])
            self.assertNotIn("script", reader.seen)
            self.assertIn(plan["verdict"][1:], reader.text)
            self.assertIn(name, reader.text)
            for stage in plan["stages"]:
                self.assertIn(str(stage["weights_bytes"]), reader.values)
                self.assertIn(stage["segment_s"],
                              [float(value) for value in reader.values])

    def check_case(self, folder):
        case = plan_numbers.load(folder / "case.json")
        contexts = ",".join(map(str, case["contexts"]))
        options = ["--objective", case["objective"], "--placement",
                   case["placement"], "--context", contexts]
        if case["concurrency"]:
            options += ["--concurrency", str(case["concurrency"])]
        expected = case["expected"]
        done = self.plan(folder / "costs.json", folder / "cluster.json",
                         *options, "--json")
        self.assertEqual(done.returncode, expected["exit"], done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["fits"], expected["fits"])
        self.assertEqual(plan["objective"], case["objective"])
        if not plan["fits"]:
            self.assertEqual(plan["route"], [])
            self.assertEqual(plan["stages"], [])
            return
        self.assertEqual(plan["placement"], case["placement"])
        problem = plan_numbers.Problem(
            plan_numbers.load(folder / "cluster.json"),
            plan_numbers.load(folder / "costs.json"), case["contexts"],
            case["concurrency"])
        self.assertEqual(plan_numbers.differences(plan, problem), [])
        for key, value in expected.items():
            if key in CRITERIA:
                self.assertTrue(plan_numbers.close(plan[key], value),
                                f"{key}: {plan[key]}, not {value}")
        if "sequences" in expected:
            self.assertEqual(plan["concurrency"][0]["sequences"],
                             expected["sequences"])
        if "rows" in expected:
            self.assertEqual(plan["rows"], expected["rows"])

    def test_known_answers(self):
        folders = sorted(path.parent for path in CASES.glob("*/case.json"))
        self.assertGreaterEqual(len(folders), 14)
        for folder in folders:
            with self.subTest(folder.name):
                self.check_case(folder)

    def test_ttft(self):
        problem = plan_numbers.Problem(NODES, COSTS, [1000], None)
        for options, prompt, chunk in (
                (["--prompt-len", "1300"], 1300, 512),
                (["--prompt-len", "1300", "--chunk", "100"], 1300, 100),
                (["--prompt-len", "7"], 7, 512)):
            plan = self.document(COSTS, NODES, "--context", "1000", *options)
            self.assertIsNotNone(plan["ttft_s"])
            self.assertEqual(
                plan_numbers.differences(plan, problem, prompt, chunk), [])

    def test_context_defaults(self):
        plan = self.document(COSTS, NODES)
        self.assertEqual(plan["concurrency"][0]["context"], 4096)
        plan = self.document(COSTS, NODES, "--prompt-len", "10",
                             "--output-len", "20")
        self.assertEqual(plan["concurrency"][0]["context"], 30)
        self.assertEqual(plan["inputs"]["options"]["output_len"], 20)

    def test_out(self):
        """A plan file is the document; - is stdout, no file of that name."""
        costs, nodes = self.path("c.json", COSTS), self.path("n.json", NODES)
        out = os.path.join(self.folder.name, "plan.json")
        done = self.plan(costs, nodes, "--out", out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(plan_numbers.load(out), json.loads(done.stdout))
        done = subprocess.run(
            [cluster.programs()[0], "plan", "--costs", costs, "--cluster",
             nodes, "--out", "-"], capture_output=True, text=True, timeout=60,
            check=True, cwd=self.folder.name)
        self.assertEqual(json.loads(done.stdout), plan_numbers.load(out))
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "-")))
        for option in ("--out", "--html"):
            for file in (costs, nodes):
                before = plan_numbers.load(file)
                done = self.plan(costs, nodes, option, file)
                self.assertEqual(done.returncode, 2)
                self.assertIn(option, done.stderr)
                self.assertEqual(plan_numbers.load(file), before)

    def test_an_interrupt_ends_it(self):
        layers = {**COSTS, "layers": [{**COSTS["layers"][0],
                                       "repeat": 100000}]}
        process = subprocess.Popen(
            [cluster.programs()[0], "plan", "--costs",
             self.path("c.json", layers), "--cluster",
             self.path("n.json", {**NODES, "nodes": [
                 {**NODES["nodes"][0], "count": 2, "memory": "90TB"}]}), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, _ = process.communicate(timeout=60)
        if process.returncode != 0:  # so fast a machine has planned already
            self.assertEqual(process.returncode, 130)
            self.assertEqual(out, b"")
            self.assertLess(time.monotonic() - started, 30)

    def test_names_cannot_steer_a_terminal(self):
        nodes = {**NODES, "nodes": [
            {**NODES["nodes"][0], "name": "\x1b[31m\x9b\u202e"}]}
        done = self.plan(self.path("c.json", COSTS), self.path("n.json", nodes))
        for sign in "\x1b\x9b\u202e":
            self.assertNotIn(sign, done.stdout + done.stderr)
        self.assertIn("[31m", done.stdout + done.stderr)

    def test_numbers_are_finite_or_null(self):
        nodes = {**NODES, "nodes": [{**node, "power_w": 5e-324}
                                    for node in NODES["nodes"]]}
        plan = self.document(COSTS, nodes, "--objective", "energy")
        self.assertIsNone(plan["tokens_per_joule"])

    def refused(self, code, words, costs, nodes, *options):
        done = self.plan(self.path("costs.json", costs),
                         self.path("nodes.json", nodes), *options, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        error = json.loads(done.stdout)["error"]
        self.assertTrue(error["hint"])
        for word in words:
            self.assertIn(word, error["message"])

    def test_missing_fields(self):
        """The first criterion must be known; the others are left out."""
        def without(*path):
            nodes = json.loads(json.dumps(NODES))
            part = nodes
            for key in path[:-1]:
                part = part[key]
            del part[path[-1]]
            return nodes
        for objective in ("throughput", "latency"):
            for path, words in (
                    (("nodes", 0, "memory_bandwidth"),
                     ("n-0", "memory_bandwidth")),
                    (("nodes", 0, "compute"), ("n-0", "compute")),
                    (("link_default", "bandwidth"),
                     ("link_default", "bandwidth")),
                    (("link_default", "latency"),
                     ("link_default", "latency"))):
                self.refused(4, words, COSTS, without(*path), "--objective",
                             objective)
        self.refused(4, ("n-0", "power_w"), COSTS, NODES, "--objective",
                     "energy")
        nodes = without("nodes", 0, "memory_bandwidth")
        problem = plan_numbers.Problem(nodes, COSTS, [4096], None)
        for objective in ("concurrency", "nodes"):
            plan = self.document(COSTS, nodes, "--objective", objective)
            self.assertIsNone(plan["cycle_s"])
            self.assertEqual(plan["binding"]["kind"], "memory")
            self.assertEqual(plan_numbers.differences(plan, problem), [])

    def test_bad_files(self):
        """One field wrong; the error names file and field, with a remedy."""
        layer = COSTS["layers"][0]
        for words, costs in (
                (("costs.json", "version"), {**COSTS, "version": 2}),
                (("layers",), {**COSTS, "layers": []}),
                (("layers[0].weights",), {**COSTS, "layers": [{}]}),
                (("layers[0].weights",),
                 {**COSTS, "layers": [{**layer, "weights": -1}]}),
                (("layers[0].weights",),
                 {**COSTS, "layers": [{**layer, "weights": 1e300}]}),
                (("layers[0].flops_per_token",),
                 {**COSTS, "layers": [{**layer, "flops_per_token": 1e300}]}),
                (("layers[0].colour",),
                 {**COSTS, "layers": [{**layer, "colour": "red"}]}),
                (("layers[0].repeat",),
                 {**COSTS, "layers": [{**layer, "repeat": 100001}]}),
                (("layers[0].repeat",),
                 {**COSTS, "layers": [{"repeat": 2, "layers":
                                       [{**layer, "repeat": 99999}]}]}),
                (("weights", "2^63"),
                 {**COSTS, "layers": [{**layer, "weights": "5PB",
                                       "repeat": 2000}]}),
                (("given twice", "weights"),
                 '{"version": 1, "hidden_bytes": 1, "layers": [{"weights": 1,'
                 ' "weights": 2}]}')):
            self.refused(4, words, costs, NODES)
        for words, nodes in (
                (("nodes.json", "nodes[0].speed"),
                 {**NODES, "nodes": [{**NODES["nodes"][0], "speed": 1}]}),
                (("nodes[0].memory_bandwidth",),
                 {**NODES, "nodes": [{**NODES["nodes"][0],
                                      "memory_bandwidth": 0}]}),
                (("constraints[0]", "labels"),
                 {**NODES, "constraints": [{"layers": [0, 1]}]})):
            self.refused(4, words, COSTS, nodes)
        for words, text in ((("nested too deep",), "[" * 40 + "]" * 40),
                            (("no text",), "[1, 2]: 3")):
            self.refused(4, words, text, NODES)
        done = self.plan(self.folder.name, self.path("nodes.json", NODES))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("regular file", done.stderr)
        self.assertIn("hint: ", done.stderr)

    def test_options(self):
        costs, nodes = self.path("c.json", COSTS), self.path("n.json", NODES)
        for word, options in (
                ("streamed", ["--placement", "streamed"]),
                ("sideways", ["--placement", "sideways"]),
                ("beauty", ["--objective", "beauty"]),
                ("--kv", ["--kv", "f16"]),
                ("0 is out of range", ["--context", "0"]),
                ("0 is out of range", ["--concurrency", "0"]),
                ("not both", ["model.gguf"])):
            done = self.plan(costs, nodes, *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(word, done.stderr)

    def test_advice(self):
        """What would help is what planning with that change gives."""
        plan = self.document(COSTS, NODES, "--objective", "concurrency")
        sequences = plan["concurrency"][0]["sequences"]
        advice = {entry["change"]: entry["effect"]
                  for entry in plan["advice"]}
        larger = {**NODES, "nodes": [{**NODES["nodes"][0], "memory": "6GB"}]}
        more = {**NODES, "nodes": [{**NODES["nodes"][0], "count": 4}]}
        for change, costs, nodes in (
                ("twice the memory on every node", COSTS, larger),
                ("one more node like", COSTS, more)):
            other = self.document(costs, nodes, "--objective", "concurrency")
            gained = other["concurrency"][0]["sequences"] - sequences
            self.assertGreater(gained, 0)
            self.assertEqual([effect for key, effect in advice.items()
                              if key.startswith(change)],
                             [f"+{gained} sequences"])
        # One node needs no link; what a second would bring is unknown.
        alone = {"version": 1, "nodes": [{**NODES["nodes"][0], "count": 1,
                                          "memory": "1TB"}]}
        plan = self.document(COSTS, alone, "--objective", "throughput")
        self.assertIsNotNone(plan["tokens_per_s"])
        self.assertNotIn("one more node", json.dumps(plan["advice"]))
        gains = [int(effect.split()[0]) for effect in advice.values()]
        self.assertEqual(gains, sorted(gains, reverse=True))
        # A model that does not fit: what would make it fit.
        small = {**NODES, "nodes": [{**NODES["nodes"][0], "count": 1}]}
        plan = self.document(COSTS, small, code=3)
        self.assertIn("missing", plan["verdict"])
        self.assertIn("fits", [entry["effect"] for entry in plan["advice"]])

    def test_verdict_compares_placements(self):
        """An interleaved plan says what a contiguous one would take."""
        case = CASES / "11-k3-interleaved"
        done = self.plan(case / "costs.json", case / "cluster.json",
                         "--objective", "nodes", "--context", "262144",
                         "--concurrency", "92")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdict = done.stdout.splitlines()[0]
        self.assertIn("fits on 59 of 80 nodes", verdict)
        self.assertIn("70 nodes", verdict)

    def test_provenance(self):
        """Every number says where it comes from."""
        plan = self.document(COSTS, NODES, "--prompt-len", "100")
        words = plan["provenance"]
        self.assertEqual(set(words.values()), {"given", "estimated"})
        for key, value in plan.items():
            if isinstance(value, (int, float)) and key not in ("version",
                                                               "fits"):
                self.assertIn(key, words)
        for part in ("route", "stages", "concurrency"):
            for key, value in plan[part][0].items():
                if isinstance(value, (int, float)):
                    self.assertIn(f"{part}.{key}", words)

    def test_constraints(self):
        """Labels hold layers to nodes, spare nodes stay unused."""
        nodes = {"version": 1, "link_default": NODES["link_default"],
                 "nodes": [{**NODES["nodes"][0], "name": name, "count": 2,
                            "labels": {"rack": name}} for name in "ab"],
                 "constraints": [{"layers": [0, 0], "labels": {"rack": "b"}},
                                 {"layers": [2 ** 31, 2 ** 63 - 1],
                                  "labels": {"rack": "c"}},
                                 {"spare": 1}, {"spare": 1}]}
        problem = plan_numbers.Problem(nodes, COSTS, [4096], None)
        plan = self.document(COSTS, nodes)
        self.assertEqual(plan_numbers.differences(plan, problem), [])
        self.assertEqual(plan["nodes_used"], 2)
        self.assertTrue(plan["route"][0]["node"].startswith("b-"))
        nodes["constraints"] = [{"layers": [0, 2 ** 63 - 1],
                                 "labels": {"rack": "b"}}]
        plan = self.document(COSTS, nodes)
        self.assertTrue(all(entry["node"].startswith("b-")
                            for entry in plan["route"]))


if __name__ == "__main__":
    cluster.main()
