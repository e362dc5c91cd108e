#!/usr/bin/env python3
"""`bench` and `probe`: one JSON document with every repeat, medians that are
the medians of the repeats, shares of what was measured beside; and that a plan
can be made from what `probe` prints. Times are never compared with numbers."""
import json
import math
import os
import re
import resource
import signal
import statistics
import subprocess
import time

import cluster

# Of one case, from the repeats; None where a machine has no such loop.
KERNEL_MEDIANS = ("seconds", "bytes_per_s", "operations_per_s", "memory_share",
                  "peak_share")
MODEL_MEDIANS = ("tokens_per_s", "operations_per_s", "weight_bytes_per_s",
                 "memory_share", "peak_share")


class BenchTest(cluster.ModelTest):
    def check_medians(self, result, keys, repeats):
        self.assertEqual(len(result["repeats"]), repeats)
        for key in keys:
            values = [repeat[key] for repeat in result["repeats"]]
            if result[key] is None:
                self.assertIn(None, values)
                continue
            self.assertTrue(math.isclose(result[key],
                                         statistics.median(values)), key)
            self.assertGreater(min(values), 0, key)

    def check_warning(self, document):
        """Null, or that memory was too little to measure its bandwidth."""
        if document["warning"] is not None:
            self.assertIn("memory bandwidth", document["warning"])

    def check_machine(self, machine):
        self.assertEqual(set(machine), {"memory_bandwidth", "fma",
                                        "paired_dot", "byte_dot"})
        self.assertGreater(machine["memory_bandwidth"], 0)
        # Both are there with every instruction set but the scalar one.
        self.assertGreater(machine["fma"], 0)
        self.assertGreater(machine["byte_dot"], 0)

    def test_kernels(self):
        """Each asked-for product once, its numbers made of one another."""
        document = self.json_of("bench", "kernels", "--format", "q8_0,bf16",
                                "--tokens", "1,16", "--repeat", "3")
        self.assertEqual(document["bench"], "kernels")
        self.check_machine(document["machine"])
        self.check_warning(document)
        results = document["results"]
        self.assertEqual(
            [(r["format"], r["compute"], r["tokens"]) for r in results],
            [(f, c, t) for f in ("q8_0", "bf16") for c in ("fast", "exact")
             for t in (1, 16)])
        self.assertEqual([r["bound_by"] for r in results[::2]],
                         ["byte_dot", "fma", "paired_dot", "fma"])
        for result in results:
            with self.subTest(case=(result["format"], result["compute"])):
                self.check_medians(result, KERNEL_MEDIANS, 3)
                self.assertTrue(result["version"])
                for repeat in result["repeats"]:
                    self.assertTrue(math.isclose(
                        repeat["bytes_per_s"],
                        result["weight_bytes"] / repeat["seconds"]))
                    self.assertTrue(math.isclose(
                        repeat["operations_per_s"],
                        2 * result["rows"] * result["cols"] *
                        result["tokens"] / repeat["seconds"]))
                    self.assertTrue(math.isclose(
                        repeat["memory_share"],
                        repeat["bytes_per_s"] / repeat["memory_bandwidth"]))
                    self.assertTrue(math.isclose(
                        repeat["peak_share"],
                        repeat["operations_per_s"] / repeat["peak"]))

    def test_kernels_that_are_pinned(self):
        """The definition runs and is named, and has no peak to be set
        against."""
        document = self.json_of("bench", "kernels", "--format", "q4_0",
                                "--kernels", "scalar", "--compute", "exact",
                                "--tokens", "1", "--repeat", "1")
        self.assertIsNone(document["machine"]["fma"])
        result, = document["results"]
        self.assertEqual(result["version"], "scalar")
        self.assertIsNone(result["peak_share"])
        self.assertGreater(result["memory_share"], 0)

    def check_model(self, document, name):
        self.assertEqual(document["bench"], name)
        self.check_machine(document["machine"])
        self.check_warning(document)
        self.assertGreater(document["load_s"], 0)
        self.assertGreater(document["model"]["parameters"], 0)
        for result in document["results"]:
            self.check_medians(result, MODEL_MEDIANS, 2)
            for repeat in result["repeats"]:
                self.check_machine(repeat["machine"])

    def test_decode(self):
        document = self.json_of("bench", "decode", self.model, "--repeat", "2",
                                "--prompt-len", "10", "--output-len", "12",
                                "--threads", "1")
        self.check_model(document, "decode")
        self.assertEqual(document["threads"], 1)
        result, = document["results"]
        self.check_medians(result, ("tpot_s", "tokens"), 2)
        self.assertEqual(result["tokens"], 11)
        self.assertEqual(result["weight_bytes_per_token"],
                         document["model"]["read_bytes_per_token"])
        for repeat in result["repeats"]:
            self.assertTrue(math.isclose(repeat["tpot_s"] *
                                         repeat["tokens_per_s"], 1))

    def test_prefill(self):
        document = self.json_of("bench", "prefill", self.model, "--repeat",
                                "2", "--prompt-len", "8,40", "--chunk", "16")
        self.check_model(document, "prefill")
        short, long = document["results"]
        for result, length in ((short, 8), (long, 40)):
            self.check_medians(result, ("ttft_s",), 2)
            self.assertEqual(result["tokens"], length)
            for repeat in result["repeats"]:
                self.assertTrue(math.isclose(
                    repeat["tokens_per_s"], length / repeat["ttft_s"]))
        # Three chunks for forty tokens, one for eight: fewer bytes a token,
        # and the head is read once.
        self.assertLess(long["weight_bytes_per_token"] * 40,
                        short["weight_bytes_per_token"] * 8 * 3)
        self.assertGreater(long["weight_bytes_per_token"] * 40,
                           short["weight_bytes_per_token"] * 8)

    def test_batch(self):
        """All sequences are counted, and only while all of them decode."""
        document = self.json_of("bench", "batch", self.model, "--repeat", "2",
                                "--batch", "1,3", "--prompt-len", "6",
                                "--output-len", "10")
        self.check_model(document, "batch")
        one, three = document["results"]
        self.assertEqual((one["batch"], three["batch"]), (1, 3))
        for repeat in one["repeats"]:
            self.assertEqual(repeat["tokens"], 9)
        for repeat in three["repeats"]:
            # Nine of each; where the time begins and ends, the tokens of one
            # step may fall on either side.
            self.assertGreaterEqual(repeat["tokens"], 3 * 7)
            self.assertLessEqual(repeat["tokens"], 3 * 10)
        self.assertTrue(math.isclose(three["weight_bytes_per_token"] * 3,
                                     one["weight_bytes_per_token"]))

    def test_stages_and_modes(self):
        """The options of every command that computes."""
        document = self.json_of("bench", "batch", self.model, "--repeat", "1",
                                "--batch", "2", "--stages", "2", "--compute",
                                "exact", "--kv", "bf16")
        self.assertEqual(
            (document["stages"], document["compute"], document["kv"]),
            (2, "exact", "bf16"))
        self.assertGreater(document["results"][0]["tokens_per_s"], 0)

    def test_tables(self):
        for arguments in (["decode", self.model], ["prefill", self.model],
                          ["batch", self.model, "--batch", "1,2"],
                          ["kernels", "--format", "q8_0"]):
            out = self.millrace("bench", *arguments, "--repeat", "1")
            self.assertIn("GB/s", out)
            rows = [line for line in out.splitlines() if "%" in line]
            self.assertTrue(rows, out)

    def test_refusals(self):
        """Usage errors name what is wrong."""
        for word, arguments in (
                ("--format", ["kernels", "--format", "q8_0,nothing"]),
                ("nothing", ["kernels", "--format", "q8_0,nothing"]),
                ("--tokens", ["kernels", "--tokens", "0"]),
                ("--repeat", ["kernels", "--repeat", "0"]),
                ("--batch", ["kernels", "--batch", "1"]),
                ("--batch", ["batch", self.model, "--batch", "1,,2"]),
                ("--batch", ["batch", self.model, "--batch", "0"]),
                ("--batch", ["decode", self.model, "--batch", "1"]),
                ("--output-len", ["decode", self.model, "--output-len", "1"]),
                ("--prompt-len", ["prefill", self.model, "--prompt-len",
                                  "99999"]),
                ("--context", ["decode", self.model, "--context", "99999"]),
                ("--concurrency", ["batch", self.model, "--batch", "4",
                                   "--concurrency", "2"]),
                ("--threads", ["kernels", "--threads", "1024"]),
                ("--limit", ["kernels", "--limit", "soon"]),
                ("--limit", ["kernels", "--limit", "0"]),
                ("this process may use",
                 ["decode", self.model, "--threads", "1024"]),
                ("MODEL", ["decode"]),
                ("not in this version", ["experts"]),
                ("not in this version", ["serve"]),
                ("no command", ["nothing"]),
                ("missing", [])):
            with self.subTest(arguments=arguments):
                out = self.millrace("bench", *arguments, "--json", code=2)
                self.assertIn(word, json.dumps(json.loads(out)))

    def test_options_of_parts_from_a_file(self):
        config = os.path.join(self.folder.name, "bench.ini")
        with open(config, "w", encoding="utf-8") as file:
            file.write("[bench.decode]\noutput-len=7\nrepeat=1\n"
                       "[bench.batch]\nbatch=99\n[run]\nmax-tokens=1\n")
        document = self.json_of("bench", "decode", self.model, "--config",
                                config)
        self.assertEqual(document["results"][0]["output_len"], 7)
        self.assertEqual(len(document["results"][0]["repeats"]), 1)

    def check_spread(self, spread):
        self.assertGreaterEqual(spread["rounds"], 1)
        self.assertLessEqual(spread["low"], spread["median"])
        self.assertLessEqual(spread["median"], spread["high"])
        self.assertGreater(spread["low"], 0)

    def test_what_is_left_out_of_a_limit(self):
        """After the limit no product begins but the first, and the number
        says so."""
        document = self.json_of("bench", "kernels", "--format", "q8_0,q4_0",
                                "--tokens", "1", "--limit", "1us")
        self.assertEqual(len(document["results"]), 1)
        self.assertEqual(document["left_out"], 3)

    def test_probe_of_a_disk(self):
        """Where the file system takes direct reads the entry has the disk; the
        folder is left as it was. Elsewhere the refusal names the option."""
        folder = os.path.join(self.folder.name, "disk")
        os.mkdir(folder)
        done = self.run_millrace("probe", "--quick", "--format", "q8_0",
                                 "--nvme", folder, "--record", "1MiB",
                                 "--json")
        document = json.loads(done.stdout)
        self.assertEqual(os.listdir(folder), [])
        if done.returncode == 0:
            self.assertEqual(list(document["node"]["compute"]),
                             ["default", "q8_0"])
            self.assertGreater(document["node"]["nvme"]["bandwidth"], 0)
            self.assertGreater(document["node"]["nvme"]["space"], 0)
            self.check_spread(document["spread"]["nvme"]["bandwidth"])
        else:
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(document["error"]["object"], "--nvme")

    def test_records_that_memory_does_not_hold(self):
        """They are refused by name before anything is written."""
        def limit_memory():
            limit = 700_000 * 1024
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        done = self.run_millrace(
            "probe", "--nvme", self.folder.name, "--quick", "--record",
            "256MiB", "--json", preexec_fn=limit_memory)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["error"]["object"],
                         "--record")

    def test_probe_by_a_model(self):
        """Whole passes of a model give the same kind of entry."""
        document = self.json_of("probe", "--model", self.model, "--quick",
                                "--threads", "1", "--name", "n")
        node = document["node"]
        self.assertEqual(node["name"], "n")
        self.assertEqual(list(node["compute"]), ["default"])
        self.check_spread(document["spread"]["memory_bandwidth"])
        self.check_spread(document["spread"]["compute"]["default"])
        path = os.path.join(self.folder.name, "by_model.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "nodes": [node]}, file)
        plan = self.json_of("plan", self.model, "--cluster", path)
        # One node holds all: a pass of one row takes what one took.
        self.assertGreater(plan["tokens_per_s"], 0)
        text = self.millrace("probe", "--model", self.model, "--quick")
        self.assertEqual(text.count("default:"), 1)

    def test_probe_refusals(self):
        for word, arguments in (
                ("--threads", ["--threads", "1024"]),
                ("--threads", ["--threads", "0"]),
                ("--format", ["--format", "nothing"]),
                ("--nvme", ["--record", "1MB"]),
                ("--insecure", ["--insecure"]),
                ("--insecure", ["--model", "x", "--insecure"]),
                *((f"{other[0]}: goes without --model",
                   ["--model", "x", *other])
                  for other in (["--format", "q8_0"], ["--nvme", "/"],
                                ["--record", "1MB"])),
                ("--record", ["--nvme", "/", "--record", "much"]),
                ("--record", ["--nvme", "/", "--record", "1TB"])):
            with self.subTest(arguments=arguments):
                out = self.millrace("probe", *arguments, "--json", code=2)
                self.assertIn(word, json.dumps(json.loads(out)))

    def test_interrupts(self):
        """What would go on for long ends by SIGINT with 130 and no result,
        wherever it is: in a fraction of the time that it would have taken."""
        for arguments in (["probe"], ["bench", "kernels"],
                          ["bench", "kernels", "--kernels", "scalar",
                           "--tokens", "4096"]):
            for wait in (0.05, 0.4, 1.5):
                with self.subTest(arguments=arguments, wait=wait):
                    process = subprocess.Popen(
                        [cluster.programs()[0], *arguments, "--json"],
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                        text=True)
                    self.addCleanup(process.kill)
                    time.sleep(wait)
                    self.assertIsNone(process.poll())
                    process.send_signal(signal.SIGINT)
                    out = process.communicate(timeout=cluster.PATIENCE)[0]
                    # In 0.05 s it may not have come to catch it.
                    if wait > 0.05 or process.returncode == 130:
                        self.assertEqual(process.returncode, 130)
                    self.assertNotIn("results", out)
                    self.assertNotIn("memory_bandwidth", out)

    def test_interrupts_leave_no_rates(self):
        """A table shows what was measured whole, or nothing: one interrupted
        before, while or after the machine is measured shows no zero."""
        for wait in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1):
            with self.subTest(wait=wait):
                process = subprocess.Popen(
                    [cluster.programs()[0], "bench", "decode", self.model,
                     "--repeat", "1000"],
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                    text=True)
                self.addCleanup(process.kill)
                time.sleep(wait)
                process.send_signal(signal.SIGINT)
                out = process.communicate(timeout=cluster.PATIENCE)[0]
                # Very early it may not have come to catch it.
                self.assertIn(process.returncode, (130, -signal.SIGINT))
                for rate in re.findall(r"([\d.]+) (?:GB/s|GOPS)", out):
                    self.assertGreater(float(rate), 0, out)

    def test_probe(self):
        """A node of a cluster file, in both forms, from which a plan with
        times is made."""
        document = self.json_of("probe", "--quick")
        node = document["node"]
        self.assertEqual(set(node),
                         {"name", "memory", "memory_bandwidth", "compute"})
        self.check_machine(document["machine"])
        self.check_warning(document)
        for format_name in ("default", "q8_0", "q4_0", "bf16"):
            self.assertGreater(node["compute"][format_name], 0)
        for key in ("compute", "prompt_compute"):
            self.check_spread(document["spread"][key]["q8_0"])
        self.check_spread(document["spread"]["memory_bandwidth"])
        self.assertEqual(document["spread"]["compute"]["q8_0"]["median"],
                         node["compute"]["q8_0"])
        kernels = {(k["kernel"], k["format"], k["compute"]): k["version"]
                   for k in document["kernels"]}
        self.assertTrue(kernels[("matmul", "q8_0", "fast")])
        text = self.millrace("probe", "--quick")
        path = os.path.join(self.folder.name, "probed.yaml")
        for nodes in (text, json.dumps([node]) + "\n"):
            with open(path, "w", encoding="utf-8") as file:
                file.write("version: 1\nnodes:\n" + nodes
                           if nodes == text
                           else "version: 1\nnodes: " + nodes)
            plan = self.json_of("plan", self.model, "--cluster", path)
            self.assertTrue(plan["fits"])
            self.assertEqual(plan["route"][0]["node"], node["name"])
            self.assertGreater(plan["tokens_per_s"], 0)


if __name__ == "__main__":
    cluster.main()
