#!/usr/bin/env python3
"""What `plan` predicts beside what a cluster does: one command makes clusters of
unequal stages on this machine, probes all of them at once, plans, runs and
measures, and prints the table of docs/numbers.md.

    prediction.py --millrace build/release/cli/millrace [--model FILE.gguf]
                  [--stages 2,3,5] [--repeat 3] [--json]

A stage gets one thread on one core and a share of it: a control group (v1, cpu)
with a quota in periods of 1 to 5 ms, which takes root. Memory differs as well.
MODEL is by default $MILLRACE_SMOLLM2; its passes are short beside the quotas, so
that a stage often waits for its next one before it can hand on a result: a model
of a gigabyte shows what a plan is worth without that."""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
# Core and share of it, by number of stages; what is left is the coordinator's
# and the client's.
CLUSTERS = {
    2: [(0, 0.8), (1, 0.4)],
    3: [(0, 0.7), (1, 0.4), (1, 0.3)],
    5: [(0, 0.4), (0, 0.3), (1, 0.3), (1, 0.25), (1, 0.2)],
}
QUOTA_US = 1000  # the least that a group may have: a period is 1 to 5 ms
# What each stage may hold of the model, beside KV and the program: so that none
# can be left out.
MEMORY_PARTS = {
    2: [0.8, 0.6],
    3: [0.55, 0.42, 0.35],
    5: [0.3, 0.26, 0.22, 0.2, 0.2],
}
MEMORY_BESIDE = 90_000_000
CHUNK = 32
CONTEXT = 512
PROMPT = [100 + i for i in range(8)]
OUTPUT = 48
PATIENCE = 120


class Group:
    """A control group of one stage: what runs in it has a share of a core."""

    def __init__(self, name, core, share):
        self.path = CPU_GROUPS / name
        self.core = core
        self.path.mkdir()
        (self.path / "cpu.cfs_period_us").write_text(
            str(round(QUOTA_US / share)))
        (self.path / "cpu.cfs_quota_us").write_text(str(QUOTA_US))

    def enter(self):
        """Between fork and exec."""
        with open(self.path / "cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        os.sched_setaffinity(0, {self.core})

    def remove(self):
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


class Processes:
    """Child processes, ended together."""

    def __init__(self, millrace):
        self.millrace = millrace
        self.running = []

    def start(self, *arguments, group=None):
        process = subprocess.Popen(
            [self.millrace, *arguments, "--json"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            preexec_fn=group.enter if group else None)
        self.running.append(process)
        return process

    def end(self):
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self.running.clear()


def event(process, name):
    for line in process.stdout:
        found = json.loads(line)
        if found.get("event") == name:
            return found
        if "error" in found:
            raise SystemExit(f"error instead of {name}: {found}")
    raise SystemExit(f"ended before {name}")


def document(process):
    out, _ = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise SystemExit(f"failed: {out}")
    return json.loads(out)


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


class Cluster:
    """Stages of unequal speed and memory on this machine."""

    def __init__(self, arguments, count, folder):
        self.arguments = arguments
        self.folder = folder
        self.count = count
        self.groups = []
        self.processes = Processes(arguments.millrace)

    def __enter__(self):
        for i, (core, share) in enumerate(CLUSTERS[self.count]):
            self.groups.append(
                Group(f"millrace-{os.getpid()}-{i}", core, share))
        return self

    def __exit__(self, *_):
        self.processes.end()
        for group in self.groups:
            group.remove()

    def name(self, i):
        return f"s{i}"

    def memory(self, i):
        model = os.path.getsize(self.arguments.model)
        return round(MEMORY_PARTS[self.count][i] * model) + MEMORY_BESIDE

    def probe_nodes(self):
        """All stages at once, as they will run, each again and again until the
        slowest has come to its end: they share cores and memory."""
        what = (["--format", self.arguments.formats] if self.arguments.formats
                else ["--model", self.arguments.model])
        found = [[] for _ in self.groups]

        def keep_probing(i, group):
            while not all(found):
                probe = self.processes.start(
                    "probe", "--threads", "1", *what, "--quick", "--name",
                    self.name(i), group=group)
                while probe.poll() is None and not (found[i] and all(found)):
                    time.sleep(0.05)
                if probe.poll() is None:
                    probe.terminate()
                    probe.wait()
                else:
                    found[i].append(document(probe)["node"])
        threads = [threading.Thread(target=keep_probing, args=each)
                   for each in enumerate(self.groups)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.processes.end()
        nodes = []
        for i, entries in enumerate(found):
            node = entries[0]
            node["memory"] = self.memory(i)
            node["memory_bandwidth"] = statistics.median(
                each["memory_bandwidth"] for each in entries)
            node["compute"] = {
                name: statistics.median(
                    each["compute"][name] for each in entries)
                for name in node["compute"]}
            nodes.append(node)
        return nodes

    def probe(self):
        """The cluster file as an object: the links, each between its two
        stages, then the stages."""
        links = []
        for i in range(self.count):
            listener = self.processes.start(
                "probe", "--listen", "127.0.0.1:0", "--name", self.name(i),
                group=self.groups[i])
            address = event(listener, "listening")["control"]
            for j in range(i):
                meter = self.processes.start(
                    "probe", "--peer", address, "--name", self.name(j),
                    "--quick", group=self.groups[j])
                links.append(document(meter)["link"])
            listener.send_signal(signal.SIGTERM)
        self.processes.end()
        return {"version": 1, "nodes": self.probe_nodes(), "links": links}

    def plan(self, cluster, *options):
        file = self.folder / "cluster.json"
        file.write_text(json.dumps(cluster))
        return document(self.processes.start(
            "plan", self.arguments.model, "--cluster", str(file), "--context",
            str(CONTEXT), "--chunk", str(CHUNK), "--out", str(self.folder / "plan.json"), *options))

    def run(self, plan, sequences):
        """Starts the planned cluster; (url, pids by node)."""
        coordinator = self.processes.start(
            "coordinator", self.arguments.model, "--control", "127.0.0.1:7391",
            "--http", "127.0.0.1:0", "--plan", str(self.folder / "plan.json"),
            "--context", str(CONTEXT), "--chunk", str(CHUNK),
            "--concurrency", str(sequences))
        pids = {}
        for i, group in enumerate(self.groups):
            if any(entry["node"] == self.name(i) for entry in plan["route"]):
                pids[self.name(i)] = self.processes.start(
                    "stage-worker", "--coordinator", "127.0.0.1:7391",
                    "--name", self.name(i), "--threads", "1", "--memory",
                    f"{self.memory(i)}B", group=group).pid
        return event(coordinator, "ready")["url"], pids


def token_times(url, times):
    """Streams one completion; when each piece came."""
    request = urllib.request.Request(
        url + "/v1/completions", json.dumps({
            "prompt": PROMPT, "max_tokens": OUTPUT, "temperature": 0,
            "ignore_eos": True, "stream": True}).encode(),
        {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        for line in reply:
            if line.startswith(b"data: {"):
                times.append(time.monotonic())


def measure(url, sequences):
    """(tokens/s of all, TPOT) while all of them decode."""
    times = [[] for _ in range(sequences)]
    threads = [threading.Thread(target=token_times, args=(url, each))
               for each in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begin = max(each[0] for each in times)
    end = min(each[-2] for each in times)  # the last piece may hold no token
    rate = 0
    gaps = []
    for each in times:
        inside = [at for at in each if begin <= at <= end]
        gap = (inside[-1] - inside[0]) / (len(inside) - 1)
        rate += 1 / gap
        gaps.append(gap)
    return rate, statistics.mean(gaps)


def one_run(arguments, count):
    with tempfile.TemporaryDirectory() as folder, Cluster(
            arguments, count, pathlib.Path(folder)) as cluster:
        probed = cluster.probe()
        plan = cluster.plan(probed)
        sequences = 0
        # What a plan predicts is what it does when it is full.
        while sequences != plan["rows"] * plan["microbatches"]:
            if sequences > 64:
                raise SystemExit(f"no plan is full with {sequences} sequences")
            sequences = max(sequences + 1,
                            arguments.rows * plan["microbatches"])
            plan = cluster.plan(probed, "--concurrency", str(sequences))
        url, pids = cluster.run(plan, sequences)
        measure(url, sequences)  # warm
        rates = [measure(url, sequences) for _ in range(3)]
        rows = {stage["node"]: stage for stage in plan["stages"]}
        memory = [(rows[name]["resident_bytes"], resident_bytes(pid))
                  for name, pid in pids.items()]
        return {
            "stages": len(plan["stages"]),
            "route": [(entry["node"], entry["first_layer"],
                       entry["last_layer"]) for entry in plan["route"]],
            "sequences": sequences,
            "probed": probed,
            "memory_error": max((seen - planned) / planned
                                for planned, seen in memory),
            "memory_error_least": min((seen - planned) / planned
                                      for planned, seen in memory),
            "predicted_tokens_per_s": plan["tokens_per_s"],
            "tokens_per_s": statistics.median(r for r, _ in rates),
            "predicted_tpot_s": plan["tpot_s"],
            "tpot_s": statistics.median(t for _, t in rates),
            "segments_s": [stage["segment_s"] for stage in plan["stages"]],
        }


def table(results):
    print("| stages | sequences | memory, worst stage | tokens/s predicted | "
          "measured | error | TPOT predicted | measured | error |")
    print("|---|---|---|---|---|---|---|---|---|")
    for runs in results:
        def middle(key):
            return statistics.median(run[key] for run in runs)

        def error(predicted, seen):
            return statistics.median(
                run[predicted] / run[seen] - 1 for run in runs)
        worst = max((max(run["memory_error"], -run["memory_error_least"])
                     for run in runs))
        print(f"| {runs[0]['stages']} | {middle('sequences'):.0f} | "
              f"{100 * worst:.1f} % | {middle('predicted_tokens_per_s'):.1f} | "
              f"{middle('tokens_per_s'):.1f} | "
              f"{100 * error('predicted_tokens_per_s', 'tokens_per_s'):+.0f} "
              f"% | {1e3 * middle('predicted_tpot_s'):.1f} ms | "
              f"{1e3 * middle('tpot_s'):.1f} ms | "
              f"{100 * error('predicted_tpot_s', 'tpot_s'):+.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--millrace", default="build/release/cli/millrace")
    parser.add_argument("--model", default=os.environ.get("MILLRACE_SMOLLM2"))
    parser.add_argument("--formats",
                        help="probe by the kernels of these weight formats "
                        "instead of whole passes of the model")
    parser.add_argument("--stages", default="2,3,5")
    parser.add_argument("--rows", type=int, default=1,
                        help="sequences in each micro-batch of the plan")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true",
                        help="also every run, one line each")
    arguments = parser.parse_args()
    if not arguments.model:
        parser.error("--model or MILLRACE_SMOLLM2 names a real model")
    if not shutil.which(arguments.millrace):
        parser.error(f"{arguments.millrace} is no program")
    if not os.access(CPU_GROUPS / "cgroup.procs", os.W_OK):
        parser.error(f"{CPU_GROUPS} cannot be written: needs root and control "
                     "groups v1")
    counts = [int(text) for text in arguments.stages.split(",")]
    results = {count: [] for count in counts}
    for _ in range(arguments.repeat):  # in turn
        for count in counts:
            results[count].append(one_run(arguments, count))
            if arguments.json:
                print(json.dumps(results[count][-1]), file=sys.stderr)
    table(results.values())


if __name__ == "__main__":
    main()
