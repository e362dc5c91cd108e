#!/usr/bin/env python3
"""Plans and costs from a configuration alone, and of one machine that reads
experts from NVMe: exact figures of published models, refusals by key."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import cluster

CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                       "data", "configs")
KIMI = os.path.join(CONFIGS, "kimi-k3.json")
STREAMED = ["--single-node", "--experts", "vq3", "--trunk", "q4_0"]


class PlanConfigTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = cluster.make_model(cls.folder.name)
        cls.nodes = os.path.join(cls.folder.name, "nodes.json")
        with open(cls.nodes, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "nodes": [
                {"name": "n", "count": 8, "memory": "640GB",
                 "memory_bandwidth": "2TB/s", "compute": {"default": 1e15}}],
                "link_default": {"bandwidth": "100Gbit/s", "latency": "9us"}},
                file)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def millrace(self, *arguments):
        done = subprocess.run([cluster.programs()[0], *arguments, "--json"],
                              capture_output=True, text=True, timeout=120,
                              check=False)
        return done.returncode, json.loads(done.stdout.splitlines()[0])

    def test_every_config_has_a_plan(self):
        for name in sorted(os.listdir(CONFIGS)):
            with self.subTest(name=name):
                code, plan = self.millrace(
                    "plan", os.path.join(CONFIGS, name), "--cluster",
                    self.nodes, "--context", "8192")
                self.assertEqual(code, 0)
                self.assertTrue(plan["fits"])
                self.assertEqual(plan["route"][0]["first_layer"], 0)

    def test_inspect_and_plan_agree(self):
        """Weights, KV and state of all stages are those of the model."""
        for name in ("kimi-k3", "deepseek-v3", "qwen3-next-80b-a3b"):
            config = os.path.join(CONFIGS, f"{name}.json")
            code, report = self.millrace("inspect", config)
            self.assertEqual(code, 0)
            _, plan = self.millrace("plan", config, "--cluster", self.nodes)
            stages = plan["stages"]
            for key, part in (("weights_bytes", "weights_bytes"),
                              ("kv_bytes_per_token", "kv_bytes_per_token"),
                              ("state_bytes_per_sequence",
                               "state_bytes_per_sequence")):
                self.assertEqual(sum(stage[part] for stage in stages),
                                 report[key], name)
        self.assertFalse(report["runs"])

    def test_kimi(self):
        _, report = self.millrace("inspect", KIMI)
        self.assertEqual(report["kv_bytes_per_token"], 27648)
        self.assertEqual(report["recurrent_bytes_per_sequence"], 69 * 6 << 20)
        self.assertEqual(report["parameters"], 2779484476000)
        layers = report["layer_details"]
        self.assertEqual([layer["layer"] for layer in layers
                          if layer["kv_bytes_per_token"]],
                         [*range(3, 92, 4), 92])
        self.assertEqual(layers[12]["vectors"], 2)
        self.assertEqual(layers[13]["vectors"], 3)

    def test_folder_with_a_config_alone(self):
        folder = os.path.join(self.folder.name, "gpt-oss")
        os.makedirs(folder)
        shutil.copy(os.path.join(CONFIGS, "gpt-oss-20b.json"),
                    os.path.join(folder, "config.json"))
        code, plan = self.millrace("plan", folder, "--cluster", self.nodes)
        self.assertEqual(code, 0)
        self.assertEqual(plan["model"]["name"], "gpt-oss")
        self.assertEqual(self.millrace("inspect", folder)[1]["family"],
                         "gpt_oss")
        # With an index of weights it is a checkpoint, and a damaged one.
        with open(os.path.join(folder, "model.safetensors.index.json"), "w",
                  encoding="utf-8") as file:
            file.write("{}")
        self.assertEqual(
            self.millrace("plan", folder, "--cluster", self.nodes)[0], 4)

    def test_refused_by_key(self):
        with open(KIMI, encoding="utf-8") as file:
            config = json.load(file)
        path = os.path.join(self.folder.name, "odd.json")
        for key, value in (("num_hidden_layers", 1 << 62),
                           ("hidden_size", 1e300), ("num_experts", -1),
                           ("kv_lora_rank", "512"), ("vocab_size", None)):
            odd = json.loads(json.dumps(config))
            odd["text_config"][key] = value
            with open(path, "w", encoding="utf-8") as file:
                json.dump(odd, file)
            for arguments in (["plan", path, "--cluster", self.nodes],
                              ["plan", path, *STREAMED, "--memory", "64GB"],
                              ["inspect", path]):
                code, out = self.millrace(*arguments)
                self.assertEqual(code, 4)
                error = out["error"]
                self.assertEqual(error["object"], path)
                self.assertIn(f"text_config.{key}: ", error["message"])
                self.assertTrue(error["hint"])
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"model_type": "bert"}, file)
        code, out = self.millrace("plan", path, "--cluster", self.nodes)
        self.assertEqual(code, 4)
        self.assertIn("'bert' is not known", out["error"]["message"])
        for family in ("llama", "gemma3", "deepseek_v3", "kimi_k3", "lfm2"):
            self.assertIn(family, out["error"]["hint"])

    def test_streamed_cluster(self):
        """A model that no cluster here holds whole: read, simulated, drawn,
        and refused where it would have to run."""
        nodes = os.path.join(self.folder.name, "disks.json")
        def write(bandwidth, memory="128GB"):
            node = {"name": "n", "count": 4, "memory": memory,
                    "memory_bandwidth": "400GB/s", "compute": {"default": 1e14}}
            if bandwidth:
                node["nvme"] = {"bandwidth": bandwidth}
            with open(nodes, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "nodes": [node], "link_default": {
                    "bandwidth": "100Gbit/s", "latency": "9us"}}, file)
        write("12GB/s")
        plan = os.path.join(self.folder.name, "streamed-plan.json")
        code, out = self.millrace("plan", KIMI, "--cluster", nodes)
        self.assertEqual(code, 3)
        self.assertEqual([entry["effect"] for entry in out["advice"]
                          if entry["change"] == "--placement streamed"],
                         ["fits"])
        page = os.path.join(self.folder.name, "streamed.html")
        streamed = ("--cluster", nodes, "--placement", "streamed")
        code, out = self.millrace("plan", KIMI, *streamed, "--out", plan,
                                  "--html", page)
        self.assertEqual(code, 0)
        self.assertEqual(out["placement"], "streamed")
        self.assertIn("experts are in memory", out["verdict"])
        self.assertTrue(os.path.getsize(page))
        for stage in out["stages"]:
            self.assertAlmostEqual(stage["hit_rate"],
                                   stage["experts_held"] / stage["experts"])
            self.assertLess(stage["read_s"], stage["segment_s"])
            self.assertAlmostEqual(stage["read_s"],
                                   stage["read_bytes"] / 12e9)
            self.assertGreaterEqual(stage["free_bytes"], stage["kv_bytes"])
            self.assertLessEqual(stage["resident_bytes"], 128 * 10**9)
        self.assertEqual(sum(stage["experts"] for stage in out["stages"]),
                         92 * 896)
        self.assertEqual(out["provenance"]["stages.hit_rate"], "estimated")
        # A disk of half the speed: twice the reading.
        write("6GB/s")
        slow = self.millrace("plan", KIMI, *streamed)[1]
        self.assertLess(slow["tokens_per_s"], out["tokens_per_s"])
        code, report = self.millrace("simulate", plan, "--concurrency", "1",
                                     "--requests", "1", "--input-len", "1",
                                     "--output-len", "20")
        self.assertEqual(code, 0)
        self.assertAlmostEqual(report["mean_tpot_ms"] / 1000 / out["loop_s"],
                               1, places=3)
        for word, arguments in (
                ("--from", ["plan", "--from", plan, "--lost", "n-0"]),
                ("streamed", ["check", plan, "--workers", "127.0.0.1:1"])):
            code, error = self.millrace(*arguments)
            self.assertEqual(code, 4)
            self.assertIn(word, error["error"]["message"])
        # Below the floor; without a disk; without experts; the objective.
        write("12GB/s", "8GB")
        self.assertEqual(self.millrace("plan", KIMI, *streamed)[0], 3)
        write(None)
        code, error = self.millrace("plan", KIMI, *streamed)
        self.assertEqual(code, 4)
        self.assertIn("nvme.bandwidth", error["error"]["message"])
        write("12GB/s")
        code, error = self.millrace(
            "plan", os.path.join(CONFIGS, "llama-3.1-405b.json"), *streamed)
        self.assertEqual(code, 2)
        self.assertIn("routed experts", error["error"]["message"])
        self.assertEqual(self.millrace("plan", KIMI, *streamed, "--objective",
                                       "concurrency")[0], 2)

    def test_single_node(self):
        code, plan = self.millrace("plan", KIMI, *STREAMED, "--memory", "64GB",
                                   "--nvme-bandwidth", "12.8GB/s")
        self.assertEqual(code, 0)
        self.assertEqual(plan["floor"]["trunk_bytes"], 32824422784)
        self.assertEqual(plan["floor"]["state_bytes"], 464633856)
        self.assertEqual(plan["floor"]["kv_bytes"], 113246208)
        self.assertEqual(plan["record_bytes"], 12406784)
        self.assertEqual(plan["records_per_token"], 1472)
        self.assertEqual(plan["bytes_per_cold_token"], 1472 * 12406784)
        self.assertEqual(round(plan["floor_bytes"] / 1e9), 34)
        self.assertEqual(plan["floor_bytes"], sum(plan["floor"].values()))
        self.assertEqual(
            plan["cache_records"],
            (64 * 10**9 - plan["floor_bytes"]
             + plan["floor"]["working_set_bytes"]) // 12406784)
        hits, read = plan["hit_rate"], plan["bytes_per_token"]
        self.assertLess(0, hits["low"])
        self.assertLess(hits["low"], hits["high"])
        self.assertAlmostEqual(
            plan["tokens_per_s"]["high"] * read["low"] / 12.8e9, 1)
        # The document goes to stdout also without --json.
        done = subprocess.run(
            [cluster.programs()[0], "plan", KIMI, *STREAMED, "--memory", "64GB",
             "--out", "-"], capture_output=True, text=True, timeout=60,
            check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["floor_bytes"],
                         plan["floor_bytes"])
        # One byte below the floor.
        floor = plan["floor_bytes"]
        code, plan = self.millrace("plan", KIMI, *STREAMED, "--memory",
                                   str(floor - 1))
        self.assertEqual(code, 3)
        self.assertFalse(plan["fits"])
        self.assertIn(f"({floor} bytes)", plan["verdict"])
        self.assertEqual(plan["advice"][-1]["change"], f"--memory {floor}")
        self.assertEqual(
            self.millrace("plan", KIMI, *STREAMED, "--memory", str(floor))[0],
            0)

    def test_single_node_of_a_checkpoint(self):
        out = os.path.join(self.folder.name, "plan.json")
        code, plan = self.millrace("plan", self.model, "--single-node",
                                   "--memory", "1GB", "--memory-bandwidth",
                                   "60GB/s", "--out", out)
        self.assertEqual(code, 0)
        self.assertEqual(plan["records"], 0)
        self.assertGreater(plan["tokens_per_s"]["low"], 0)
        with open(out, encoding="utf-8") as file:
            self.assertEqual(json.load(file), plan)

    def test_single_node_options(self):
        plan = ["plan", KIMI, "--single-node"]
        for word, arguments in (
                ("--memory", plan),
                ("--memory", [*plan, "--memory", "lots"]),
                ("--experts", [*plan, "--memory", "1GB", "--experts", "q2"]),
                ("--trunk", [*plan, "--memory", "1GB", "--trunk", "vq3"]),
                ("--nvme-bandwidth", [*plan, "--memory", "1GB",
                                      "--nvme-bandwidth", "0"]),
                ("--cluster", [*plan, "--memory", "1GB", "--cluster",
                               self.nodes]),
                ("--experts", ["plan", KIMI, "--cluster", self.nodes,
                               "--experts", "vq3"])):
            with self.subTest(arguments=arguments[2:]):
                code, out = self.millrace(*arguments)
                self.assertEqual(code, 2)
                error = out["error"]
                self.assertIn(word, f"{error['object']} {error['message']}")


if __name__ == "__main__":
    cluster.main()
