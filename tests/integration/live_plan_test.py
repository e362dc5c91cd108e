#!/usr/bin/env python3
"""`plan --workers`: what a cluster file lacks comes from live workers, what it
has stays; and `plan --verify`: prediction beside measurement. Failures are
provoked by workers and servers that are absent or silent."""
import json
import os
import socket
import subprocess
import tempfile

import cluster


class LivePlanTest(cluster.ModelTest):
    def plan(self, *arguments, code=0):
        return json.loads(self.millrace(
            "plan", self.model, "--context", "64", "--json", *arguments,
            code=code))

    def worker(self, name, *options):
        process = cluster.Process(
            self, "stage-worker", "--coordinator", "127.0.0.1:1", "--name",
            name, "--control", "127.0.0.1:0", "--threads", "1", "--json",
            *options)
        return process.event("listening")["control"]

    def write(self, document):
        path = os.path.join(tempfile.mkdtemp(dir=self.folder.name),
                            "cluster.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path

    def measured(self, plan):
        return {key.removeprefix("inputs.cluster.")
                for key, word in plan["provenance"].items()
                if word == "measured"}

    def test_workers_alone(self):
        """Two workers are the cluster: memory, speeds and the link of both."""
        addresses = [self.worker("a", "--memory", "1GB"), self.worker("b")]
        plan = self.plan("--workers", ",".join(addresses))
        inputs = plan["inputs"]["cluster"]
        self.assertEqual([node["name"] for node in inputs["nodes"]],
                         ["a", "b"])
        self.assertEqual(inputs["nodes"][0]["memory"], 10**9)
        self.assertEqual(inputs["links"][0]["between"], ["a", "b"])
        self.assertGreater(inputs["links"][0]["bandwidth"], 0)
        for node in inputs["nodes"]:
            self.assertGreater(node["memory_bandwidth"], 0)
            self.assertGreater(node["compute"]["default"], 0)
        self.assertEqual(self.measured(plan), {
            f"nodes.{name}.{field}" for name in "ab"
            for field in ("memory", "memory_bandwidth", "compute")} |
            {"links.a.b"})
        self.assertGreater(plan["tokens_per_s"], 0)

    def test_what_the_file_has_stays(self):
        file = self.write({"version": 1, "nodes": [
            {"name": "a", "memory": "2GB", "memory_bandwidth": 123e6},
            {"name": "b", "memory": "2GB", "memory_bandwidth": 1e9,
             "compute": {"default": 5e9}}],
            "link_default": {"bandwidth": 7e8, "latency": 1e-3}})
        addresses = [self.worker("a"), self.worker("elsewhere")]
        plan = self.plan("--cluster", file, "--workers", ",".join(addresses))
        a, b = plan["inputs"]["cluster"]["nodes"]
        self.assertEqual(a["memory_bandwidth"], 123e6)
        self.assertGreater(a["compute"]["default"], 0)
        self.assertEqual(b["compute"]["default"], 5e9)
        self.assertEqual(a["memory"], 2 * 10**9)
        self.assertEqual(self.measured(plan), {"nodes.a.compute"})

    def test_workers_that_do_not_answer(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        error = self.plan("--workers", address, code=1)["error"]
        self.assertEqual(error["object"], address)
        twins = [self.worker("a"), self.worker("a")]
        self.assertIn("--name", self.plan("--workers", ",".join(twins),
                                          code=2)["error"]["hint"])
        self.assertIn("insecure", json.dumps(
            self.plan("--workers", "10.0.0.1:1", code=2)))

    def test_prediction_beside_measurement(self):
        file = self.write({"version": 1, "nodes": [
            {"name": name, "memory": "1GB", "memory_bandwidth": 1e9 + i,
             "compute": {"default": 5e9}} for i, name in enumerate("ab")],
            "link_default": {"bandwidth": 7e8, "latency": 1e-5}})
        path = os.path.join(self.folder.name, "plan.json")
        plan = self.plan("--cluster", file, "--out", path)
        port = socket.create_server(("127.0.0.1", 0))
        control = "127.0.0.1:%d" % port.getsockname()[1]
        port.close()
        coordinator = cluster.Process(
            self, "coordinator", self.model, "--control", control, "--http",
            "127.0.0.1:0", "--plan", path, "--context", "128", "--json")
        for entry in plan["route"]:
            cluster.Process(self, "stage-worker", "--coordinator", control,
                            "--name", entry["node"], "--threads", "1",
                            "--json")
        url = coordinator.event("ready")["url"]
        verified = self.plan("--cluster", file, "--verify", url)
        verify = verified["verify"]
        self.assertEqual(verify["sequences"], plan["microbatches"])
        for key in ("tokens_per_s", "tpot_s"):
            value = verify[key]
            self.assertEqual(value["predicted"], plan[key])
            self.assertGreater(value["measured"], 0)
            self.assertAlmostEqual(value["error"], value["predicted"] /
                                   value["measured"] - 1)
        coordinator.stop()
        self.assertIn("error", self.plan("--cluster", file, "--verify", url,
                                         code=1))
        self.assertIn("--verify", json.dumps(
            self.plan("--cluster", file, "--verify", "ftp://x", code=2)))

    def test_plan_for_the_load_that_is_there(self):
        """Lengths and concurrency of `--load` are those that were served."""
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        file = self.write({"version": 1, "nodes": [
            {"name": name, "memory": "1GB", "memory_bandwidth": "10GB/s",
             "compute": {"default": 1e12}} for name in ("stage-0", "stage-1")],
            "link_default": {"bandwidth": "1GB/s", "latency": "10us"}})
        path = os.path.join(self.folder.name, "now.json")
        self.plan("--cluster", file, "--out", path)
        up = cluster.Cluster(self, self.model, 2, "--context", "64")

        def anew(url, *options, code=0):
            done = subprocess.run(
                [cluster.programs()[0], "plan", "--from", path, "--load", url,
                 "--load-seconds", "0", "--json", *options],
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return json.loads(done.stdout)
        url = up.ready["url"]
        self.assertIn("finished no sequence",
                      anew(url, code=1)["error"]["message"])
        for _ in range(3):
            up.client.post("/v1/completions", {
                "prompt": list(range(10, 21)), "max_tokens": 7,
                "ignore_eos": True})
        plan = anew(url)
        self.assertEqual(plan["load"], {
            "url": url, "prompt_len": 11, "output_len": 7, "concurrency": 1,
            "sequences": 3, "seconds": plan["load"]["seconds"],
            "lengths_since_start": True})
        self.assertEqual(plan["inputs"]["options"]["concurrency"], 1)
        self.assertEqual(plan["inputs"]["options"]["contexts"], [18])
        self.assertIn("gain", plan)
        anew(nobody, code=1)
        anew("ftp://x", code=2)
        anew(url, "--lost", "stage-0", code=2)


if __name__ == "__main__":
    cluster.main()
