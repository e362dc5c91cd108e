#!/usr/bin/env python3
"""Real processes on loopback: start, serve, lose a worker, come back, stop."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import cluster
from cluster import Client, Cluster, Process


class ClusterTest(cluster.ModelTest):
    def up(self, *options):
        return Cluster(self, self.model, 3, "--context", "1024", *options)

    def check_calm(self, process):
        """What was asked for is no cause for a warning."""
        for word in (" warning ", " error "):
            self.assertNotIn(word, process.read_log())

    def test_stop_ends_every_process(self):
        """SIGTERM: exit code 0 and no worker left."""
        up = self.up()
        pids = [worker["pid"] for worker in up.workers]
        self.assertEqual(len(pids), 3)
        self.assertTrue(all(map(cluster.alive, pids)))
        self.assertEqual(up.stop(), 0)
        self.assertFalse(any(map(cluster.alive, pids)))
        self.check_calm(up)

    def test_metrics_name_the_kernels(self):
        """Workers tell which kernel versions they run; /metrics shows them for
        every stage, of `serve` too."""
        line = re.compile(r'millrace_stage_kernel_info\{stage="(\d)",name="'
                          r'stage-\1",kernel="matmul",compute="fast",'
                          r'version="scalar"\} 1')
        up = Cluster(self, self.model, 3, "--kernels", "scalar")
        self.assertEqual(line.findall(up.client.get("/metrics")[1]),
                         ["0", "1", "2"])
        self.assertEqual(up.stop(), 0)
        serve = cluster.Process(self, "serve", self.model, "--port", "0",
                                "--json", "--kernels", "scalar")
        client = cluster.Client(serve.event("ready")["url"])
        self.assertEqual(line.findall(client.get("/metrics")[1]), ["0"])
        self.assertEqual(serve.stop(), 0)

    def test_second_stop_cuts_answers(self):
        """A long answer holds the first SIGINT up, the second ends it with an
        error, long before the deadline of eight seconds."""
        up = Cluster(self, self.model, 3)
        results = []

        def stop_twice():
            up.process.send_signal(signal.SIGINT)
            cluster.wait_for(
                lambda: up.client.get("/ready")[0] == 503, "the drain")
            up.process.send_signal(signal.SIGINT)
            results.append(time.monotonic())

        events = up.client.events("long", 3900, on_first=stop_twice)
        self.assertEqual(up.process.wait(timeout=20), 0)
        self.assertLess(time.monotonic() - results[0], 6)
        self.assertIn("error", events[-1])

    def test_same_bits_as_one_process(self):
        """Three processes over TCP give the tokens and the checksum of one."""
        millrace = cluster.programs()[0]
        runs = []
        for options in ([], ["--stages", "3", "--transport", "tcp"]):
            done = subprocess.run(
                [millrace, "run", self.model, "--prompt", "Hello there",
                 "--max-tokens", "24", "--ignore-eos", "--json", *options],
                capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout))
        self.assertEqual(runs[0]["tokens"], runs[1]["tokens"])
        self.assertEqual(runs[0]["logits_crc32c"], runs[1]["logits_crc32c"])
        answer = self.up().client.chat("Hello there", 24)
        self.assertEqual(answer, runs[0]["text"])

    def test_sixteen_clients(self):
        """Each of sixteen at once gets the answer it gets alone, and several
        micro-batches were in flight."""
        client = self.up().client
        prompts = [f"Part {n}: " + "word " * (5 + 7 * (n % 5))
                   for n in range(16)]
        alone = [client.chat(prompt, 24) for prompt in prompts]
        seen = []

        def watch():
            for _ in range(200):
                seen.append(client.metric(
                    "millrace_coordinator_microbatches_in_flight"))

        results = cluster.together(
            [lambda p=p: client.chat(p, 24) for p in prompts] + [watch])
        self.assertEqual(results[:16], alone)
        self.assertGreaterEqual(max(seen), 2)
        self.assertGreater(
            client.metric("millrace_coordinator_pipeline_fill_ratio"), 0)

    def lose_worker(self, up, number):
        """Signals worker 1 in mid-stream; the events of the stream."""
        victim = up.workers[1]["pid"]
        return up.client.events("Count", 900,
                                lambda: os.kill(victim, number))

    def check_loss(self, events):
        self.assertIn("error", events[-1])
        error = events[-1]["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertIn("stage-1", error["message"])
        self.assertNotIn("[DONE]", events)

    def test_killed_worker(self):
        """SIGKILL of a worker: its streams end with an error that names it, the
        cluster is ready again, and answers are the same as before."""
        up = self.up()
        before = up.client.chat("The same again", 32)
        self.check_loss(self.lose_worker(up, signal.SIGKILL))
        cluster.wait_for(lambda: up.client.get("/ready")[0] == 200, "ready")
        self.assertEqual(up.client.chat("The same again", 32), before)
        self.assertEqual(up.client.get("/health")[0], 200)
        self.assertEqual(up.stop(), 0)

    def test_workers_hold_nothing_of_the_server(self):
        """The sockets of the server and its clients stay its own, also when a
        worker is started anew among them: else a connection that the server
        ends stays open, and the port of one that died stays taken."""
        def sockets(pid):
            folder = f"/proc/{pid}/fd"
            links = [os.readlink(f"{folder}/{name}")
                     for name in os.listdir(folder)]
            return {link for link in links if link.startswith("socket:")}

        def children():
            listed = []
            for task in os.listdir(f"/proc/{up.pid}/task"):
                # A thread may end meanwhile.
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    with open(f"/proc/{up.pid}/task/{task}/children",
                              encoding="ascii") as file:
                        listed += map(int, file.read().split())
            return listed

        up = self.up()
        host, port = up.ready["url"].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET /health HTTP/1.1\r\n")  # and more to come
            os.kill(up.workers[1]["pid"], signal.SIGKILL)
            cluster.wait_for(lambda: len(children()) == 3 and
                             up.workers[1]["pid"] not in children() and
                             up.client.get("/ready")[0] == 200, "ready")
            for pid in children():
                self.assertEqual(sockets(pid) & sockets(up.pid), set())

    def test_stopped_worker(self):
        """SIGSTOP: a worker that hangs is found by its missing heartbeats; once
        it goes on the cluster is ready again."""
        up = self.up()
        victim = up.workers[1]["pid"]
        start = time.monotonic()
        self.check_loss(self.lose_worker(up, signal.SIGSTOP))
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual(up.client.get("/ready")[0], 503)
        os.kill(victim, signal.SIGCONT)
        cluster.wait_for(lambda: up.client.get("/ready")[0] == 200, "ready")
        up.client.chat("Hello", 4)

    def test_idle_costs_nothing(self):
        """A cluster with nothing to do uses under 1 % of a core."""
        up = self.up()
        up.client.chat("Warm", 8)
        pids = [up.pid] + [worker["pid"] for worker in up.workers]
        before = sum(map(cluster.cpu_seconds, pids))
        start = time.monotonic()
        time.sleep(6)  # the thing measured is time itself
        used = sum(map(cluster.cpu_seconds, pids)) - before
        self.assertLess(used / (time.monotonic() - start), 0.01)

    def start_by_hand(self, *coordinator):
        head = Process(self, "coordinator", self.model, "--control",
                       "127.0.0.1:0", "--http", "127.0.0.1:0", "--context",
                       "512", "--json", *coordinator)
        control = cluster.wait_for(
            lambda: [line.split()[-1] for line in head.read_log().splitlines()
                     if "workers register at" in line], "control address")[0]
        workers = [Process(self, "stage-worker", "--coordinator", control,
                           "--name", name, "--json", "--memory", "1GB")
                   for name in ("a", "b", "c")]
        return head, workers

    def test_started_by_hand(self):
        """Coordinator and workers as on real machines, then by a plan file."""
        head, workers = self.start_by_hand("--workers", "3")
        ready = head.event("ready")
        first = Client(ready["url"]).chat("Hello", 12)
        for worker in workers:
            worker.event("registered")
            worker.event("loaded")
            worker.event("active")
        self.assertEqual(head.stop(), 0)
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
        for process in (head, *workers):
            self.check_calm(process)

        plan = os.path.join(self.folder.name, "plan.json")
        nodes = os.path.join(self.folder.name, "nodes.json")
        with open(nodes, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "nodes": [
                {"name": name, "memory": "1GB", "memory_bandwidth": "10GB/s",
                 "compute": {"default": 1e11}} for name in ("c", "b", "a")],
                "link_default": {"bandwidth": "1GB/s", "latency": "1us"}},
                file)
        subprocess.run([cluster.programs()[0], "plan", self.model, "--cluster",
                        nodes, "--context", "512", "--out", plan], check=True,
                       stdout=subprocess.DEVNULL)
        with open(plan, encoding="utf-8") as file:
            planned = json.load(file)
        used = planned["nodes_used"]
        head, workers = self.start_by_hand("--plan", plan)
        if used <= len(workers):
            client = Client(head.event("ready")["url"])
            self.assertEqual(client.chat("Hello", 12), first)
            # Not one more than there are stages, which is for want of a plan.
            self.assertLess(planned["microbatches"], used + 1)
            self.assertEqual(
                client.metric("millrace_coordinator_microbatch_slots"),
                planned["microbatches"])

    def test_memory_is_what_plan_said(self):
        """A worker's resident set is the plan's to 1 % and 15 MB where stages
        are small beside the program and its frames."""
        options = ["--context", "4096", "--concurrency", "32"]
        nodes = os.path.join(self.folder.name, "three.json")
        with open(nodes, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "nodes": [
                {"name": "n", "count": 3, "memory": "8GB",
                 "memory_bandwidth": "20GB/s", "compute": {"default": 2e11}}],
                "link_default": {"bandwidth": "10Gbit/s", "latency": "50us"}},
                file)
        done = subprocess.run(
            [cluster.programs()[0], "plan", self.model, "--cluster", nodes,
             "--json", *options], check=True, capture_output=True, text=True)
        plan = json.loads(done.stdout)
        up = Cluster(self, self.model, plan["nodes_used"], *options)
        up.client.chat("Hello " * 300, 8)
        for worker, entry, stage in zip(up.workers, plan["route"],
                                        plan["stages"]):
            self.assertEqual(worker["layers"],
                             [entry["first_layer"], entry["last_layer"]])
            planned = stage["resident_bytes"]
            self.assertLessEqual(
                abs(cluster.resident_bytes(worker["pid"]) - planned),
                0.01 * planned + 15e6)

    def test_memory_within_one_percent(self):
        """With stages of the size that matters, hundreds of megabytes of
        weights and of KV, a worker's resident set is the plan's to 1 %."""
        with tempfile.TemporaryDirectory() as folder:
            model = cluster.make_model(folder, "--layers", "24", "--width",
                                       "768", "--context", "131072")
            options = ["--context", "131072", "--concurrency", "6"]
            nodes = os.path.join(folder, "two.json")
            with open(nodes, "w", encoding="utf-8") as file:
                json.dump({"version": 1, "nodes": [
                    {"name": "n", "count": 2, "memory": "8GB",
                     "memory_bandwidth": "20GB/s",
                     "compute": {"default": 2e11}}],
                    "link_default": {"bandwidth": "10Gbit/s",
                                     "latency": "50us"}}, file)
            done = subprocess.run(
                [cluster.programs()[0], "plan", model, "--cluster", nodes,
                 "--json", *options], check=True, capture_output=True,
                text=True)
            plan = json.loads(done.stdout)
            up = Cluster(self, model, plan["nodes_used"], *options)
            # Frames of whole chunks, so that link buffers have been used.
            up.client.chat("Hello " * 300, 4)
            for worker, entry, stage in zip(up.workers, plan["route"],
                                            plan["stages"]):
                self.assertEqual(worker["layers"],
                                 [entry["first_layer"], entry["last_layer"]])
                planned = stage["resident_bytes"]
                self.assertGreater(stage["weights_bytes"], 150e6)
                self.assertGreater(stage["kv_bytes"], 250e6)
                self.assertLessEqual(
                    abs(cluster.resident_bytes(worker["pid"]) - planned),
                    0.01 * planned)

    def test_busy_port(self):
        """A port in use is an error that names it, before anything is loaded."""
        up = self.up()
        port = up.ready["url"].rsplit(":", 1)[1]
        done = subprocess.run(
            [cluster.programs()[0], "up", self.model, "--stages", "2", "--port",
             port, "--json"], capture_output=True, text=True, timeout=60,
            check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(port, json.loads(done.stdout)["error"]["message"])


if __name__ == "__main__":
    cluster.main()
