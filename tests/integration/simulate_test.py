#!/usr/bin/env python3
"""`millrace simulate`: its report, exit codes and errors, from a plan file on."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import cluster

# Plans that were worked out by hand, one row a micro-batch.
CASES = pathlib.Path(__file__).parent.parent / "data" / "plans"


def plan():
    """Two nodes of 10 ms a pass each, one hop of 1 ms; 30 ms a token."""
    layer = {"kind": "full", "weights": 1000000000, "kv_per_token": 4096,
             "bytes_per_token": 1000000000}
    node = {"memory": 64000000000, "memory_bandwidth": 100e9,
            "compute": {"default": 1e12}}
    return {
        "version": 1, "fits": True, "verdict": "fits",
        "placement": "contiguous",
        "route": [{"node": "a", "first_layer": 0, "last_layer": 0},
                  {"node": "b", "first_layer": 1, "last_layer": 1}],
        "stages": [{"node": "a", "scratch_bytes": 0},
                   {"node": "b", "scratch_bytes": 0}],
        "inputs": {
            "cluster": {"version": 1,
                        "nodes": [{"name": "a", **node},
                                  {"name": "b", **node}],
                        "link_default": {"bandwidth": 1e12,
                                         "latency": 0.001}},
            "costs": {"version": 1, "name": "two-layers", "hidden_bytes": 4096,
                      "layers": [layer, layer]},
            "options": {"objective": "throughput", "placement": "auto",
                        "contexts": [4096], "concurrency": 8}}}


class SimulateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.plan = cls.write("plan.json", json.dumps(plan()))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write(cls, name, text):
        path = os.path.join(cls.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def simulate(self, *arguments):
        return subprocess.run(
            [cluster.programs()[0], "simulate", *arguments],
            capture_output=True, text=True, timeout=120, check=False)

    def report(self, *arguments, code=0):
        done = self.simulate(self.plan, *arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        return json.loads(done.stdout)

    def refused(self, code, words, *arguments):
        done = self.simulate(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        error = json.loads(done.stdout.splitlines()[-1])["error"]
        for word in words:
            self.assertIn(word, f"{error['message']} {error['hint']}")

    def test_one_request_at_a_time(self):
        """10 ms, 1 ms, 10 ms and 1 ms back: 22 ms a token, exactly."""
        report = self.report("--concurrency", "1", "--requests", "5",
                             "--input-len", "1", "--output-len", "11")
        self.assertEqual(report["backend"], "millrace-simulate")
        self.assertEqual(report["completed"], 5)
        self.assertAlmostEqual(report["mean_ttft_ms"], 22, places=3)
        self.assertAlmostEqual(report["p99_tpot_ms"], 22, places=3)
        self.assertAlmostEqual(report["mean_e2el_ms"], 11 * 22, places=3)
        self.assertAlmostEqual(report["duration"], 5 * 11 * 0.022, places=6)

    def test_a_closed_load_gives_the_plans_numbers(self):
        for name in ("01-single-node", "02-two-equal-nodes", "06-uneven-memory",
                     "07-one-slow-link", "08-heavy-head"):
            path = os.path.join(self.folder.name, "made.json")
            made = subprocess.run(
                [cluster.programs()[0], "plan", "--costs",
                 CASES / name / "costs.json", "--cluster",
                 CASES / name / "cluster.json", "--out", path, "--json"],
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            planned = json.loads(made.stdout)
            clients = str(planned["microbatches"])
            done = self.simulate(path, "--concurrency", clients, "--requests",
                                 clients, "--input-len", "1", "--output-len",
                                 "2000", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(report["failed"], 0, name)
            self.assertAlmostEqual(
                report["output_throughput"] / planned["tokens_per_s"], 1,
                places=2, msg=name)
            self.assertAlmostEqual(
                report["median_itl_ms"] / planned["tpot_s"] / 1000, 1,
                places=3, msg=name)

    def test_beyond_the_plan(self):
        """Keys and values of 4 KiB a layer and position at 100 GB/s."""
        load = ("--concurrency", "1", "--requests", "1", "--input-len", "1",
                "--output-len", "2000")
        plain = self.report(*load)
        self.assertFalse(plain["sequence_reads"])
        report = self.report(*load, "--sequence-reads", "--coordinator-time",
                             "1ms")
        self.assertTrue(report["sequence_reads"])
        positions = sum(range(2, 2001)) / 1999
        self.assertAlmostEqual(
            report["mean_tpot_ms"] - plain["mean_tpot_ms"],
            1 + 2 * positions * 4096 / 100e9 * 1000, places=4)

    def test_an_interrupt_ends_the_reading(self):
        """A trace that takes long to read: noticed at once."""
        line = json.dumps({"timestamp": 1, "input_length": 8,
                           "output_length": 4}) + "\n"
        path = os.path.join(self.folder.name, "large.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for _ in range(100):
                file.write(line * 40000)
            file.write("damaged\n")
        process = subprocess.Popen(
            [cluster.programs()[0], "simulate", self.plan, "--trace", path],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        # Else the damage at its end would have been the error.
        self.assertEqual(process.returncode, 130, error)
        self.assertEqual(out, b"")

    def test_one_seed_one_report(self):
        arguments = ("--rate", "3", "--requests", "200", "--burstiness", "0.5",
                     "--range-ratio", "0.5", "--input-len", "64",
                     "--output-len", "16")
        first = self.report(*arguments, "--seed", "5")
        second = self.report(*arguments, "--seed", "5")
        other = self.report(*arguments, "--seed", "6")
        for report in (first, second, other):
            del report["date"], report["seed"]
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_limits(self):
        load = ("--input-len", "16", "--output-len", "8", "--requests", "300")
        met = self.report(*load, "--rate", "1", "--slo", "ttft=10s")
        self.assertTrue(met["slo"]["met"])
        self.assertAlmostEqual(met["request_goodput"],
                               met["request_throughput"])
        missed = self.report(*load, "--rate", "1", "--slo", "tpot=1ms", code=3)
        self.assertFalse(missed["slo"]["met"])
        best = self.report(*load, "--find-rate", "--slo", "ttft=200ms")
        self.assertTrue(best["slo"]["met"])
        above = str(best["request_rate"] * 1.02)
        self.report(*load, "--rate", above, "--slo", "ttft=200ms", code=3)
        self.refused(3, ["no rate"], self.plan, *load, "--find-rate", "--slo",
                     "ttft=1ms")

    def test_trace_and_faults(self):
        trace = self.write("trace.jsonl", "".join(
            json.dumps({"timestamp": 100 * i, "input_length": 8,
                        "output_length": 4, "hash_ids": [i]}) + "\n"
            for i in range(50)))
        calm = self.report("--trace", trace)
        self.assertEqual(calm["completed"], 50)
        faults = self.write("faults.jsonl",
                            '{"at": 1.01, "kind": "lost", "node": "b"}\n'
                            '{"at": "2s", "kind": "back", "node": "b"}\n')
        report = self.report("--trace", trace, "--faults", faults)
        self.assertEqual(report["completed"] + report["failed"], 50)
        self.assertGreaterEqual(report["lost"], 1)
        self.assertEqual(report["refused"], 9)  # at 1.1 to 1.9 s
        self.assertIn("node 'b' was lost", report["first_error"])

    def test_damaged_files_are_named(self):
        rate = ("--rate", "1")
        bad = self.write("bad.jsonl", '{"timestamp": 0, "input_length": 1, '
                         '"output_length": 1}\n{"timestamp": 1}\n')
        self.refused(4, ["bad.jsonl", "line 2", "input_length"], self.plan,
                     "--trace", bad)
        bad = self.write("bad2.jsonl", '{"at": 1, "kind": "lost", "node": "z"}')
        self.refused(4, ["bad2.jsonl", "line 1", "node"], self.plan, *rate,
                     "--faults", bad)
        self.refused(4, ["nowhere.json"], "nowhere.json", *rate)
        text = json.dumps(plan())
        for damaged in (text[:len(text) // 2], "[]", "",
                        text.replace('"route"', '"rout"'),
                        text.replace('"last_layer": 1', '"last_layer": 7'),
                        text.replace('"memory": 64000000000', '"memory": 5')):
            self.refused(4, ["damaged.json"],
                         self.write("damaged.json", damaged), *rate)
        slow = text.replace('"memory_bandwidth": 100000000000.0, ', "")
        self.assertNotEqual(slow, text)
        self.refused(4, ["memory_bandwidth"], self.write("slow.json", slow),
                     *rate)

    def test_usage(self):
        for words, arguments in (
                (["--rate"], []),
                (["--rate"], ["--rate", "0"]),
                (["--concurrency"], ["--rate", "1", "--concurrency", "2"]),
                (["4096"], ["--rate", "1", "--input-len", "5000"]),
                (["--slo"], ["--rate", "1", "--slo", "fast"]),
                (["--slo"], ["--rate", "1", "--slo", "ttft=1e300"]),
                (["--slo"], ["--find-rate"])):
            self.refused(2, words, self.plan, *arguments)

    def test_an_interrupt_ends_it(self):
        process = subprocess.Popen(
            [cluster.programs()[0], "simulate", self.plan, "--concurrency",
             "8", "--requests", "10000000"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(out, b"")


if __name__ == "__main__":
    cluster.main()
