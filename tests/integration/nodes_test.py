#!/usr/bin/env python3
"""Nodes that are asked before anything is assigned to them: `probe --peer`
against `probe --listen` and `stage-worker --control`, and `check`. Failures are
provoked by peers that are absent, silent, or speak something else, and by
workers that lack memory, the model, or a name of their own."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading

import cluster


class HostilePeer:
    """Takes connections and says `bytes_out`, or nothing."""

    def __init__(self, test, bytes_out=b""):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.bytes_out = bytes_out
        self.taken = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        test.addCleanup(self.socket.close)

    def serve(self):
        try:
            while True:
                connection, _ = self.socket.accept()
                self.taken.append(connection)  # held open
                if self.bytes_out:
                    connection.sendall(self.bytes_out)
        except OSError:
            pass


class NodesTest(cluster.ModelTest):
    def listener(self, name="b"):
        """A `probe --listen`; its address."""
        process = cluster.Process(self, "probe", "--listen", "127.0.0.1:0",
                                  "--name", name, "--json")
        return process, process.event("listening")["control"]

    def worker(self, name, *options):
        """A worker without a coordinator; its address."""
        process = cluster.Process(
            self, "stage-worker", "--coordinator", "127.0.0.1:1", "--name",
            name, "--control", "127.0.0.1:0", "--json", *options)
        return process, process.event("listening")["control"]

    def check_link(self, document, names):
        link = document["link"]
        self.assertEqual(link["between"], names)
        spread = document["spread"]
        self.assertEqual(link["bandwidth"],
                         min(spread["bandwidth_out"]["median"],
                             spread["bandwidth_in"]["median"]))
        self.assertEqual(link["latency"], spread["latency"]["median"])
        for value in spread.values():
            self.assertGreater(value["low"], 0)
            self.assertGreaterEqual(value["rounds"], 1)

    def test_a_link_both_ways(self):
        """From either kind of peer an entry of a cluster file, several times
        in a row; the planner takes it as it is."""
        listening, address = self.listener()
        for _ in range(3):
            document = json.loads(self.millrace(
                "probe", "--peer", address, "--name", "a", "--quick",
                "--json"))
            self.check_link(document, ["a", "b"])
        _, worker_address = self.worker("w-1")
        document = json.loads(self.millrace(
            "probe", "--peer", worker_address, "--name", "a", "--quick",
            "--json"))
        self.check_link(document, ["a", "w-1"])
        text = self.millrace("probe", "--peer", address, "--name", "a",
                             "--quick")
        path = os.path.join(self.folder.name, "link.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("version: 1\nnodes:\n"
                       "  - {name: a, memory: 1GB}\n"
                       "  - {name: b, memory: 1GB}\nlinks:\n" + text)
        self.millrace("plan", self.model, "--cluster", path)
        self.assertEqual(listening.stop(), 0)

    def test_two_at_once_take_turns_or_are_told(self):
        """A peer answers one meter at a time; the other one is told so, and
        nobody hangs."""
        _, address = self.listener()
        runs = [subprocess.Popen(
            [cluster.programs()[0], "probe", "--peer", address, "--name", "a",
             "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True) for _ in range(3)]
        outs = [run.communicate(timeout=cluster.PATIENCE)[0] for run in runs]
        codes = [run.returncode for run in runs]
        self.assertIn(0, codes)
        for code, out in zip(codes, outs):
            if code != 0:
                self.assertIn("another link", out)

    def test_peers_that_are_no_nodes(self):
        """Absent, silent and garbage: an error that names the address, in
        bounded time; an interrupt ends the wait."""
        absent = HostilePeer(self)
        absent.socket.close()
        for peer in (absent, HostilePeer(self),
                     HostilePeer(self, b"\x00\xff" * 4000),
                     HostilePeer(self, b"HTTP/1.1 200 OK\r\n\r\nhello")):
            out = self.millrace("probe", "--peer", peer.address, "--json",
                                code=1)
            error = json.loads(out)["error"]
            self.assertEqual(error["object"], peer.address)
            self.assertIn("millrace", error["hint"])
        silent = HostilePeer(self)
        process = subprocess.Popen(
            [cluster.programs()[0], "probe", "--peer", silent.address],
            stderr=subprocess.DEVNULL)
        cluster.wait_for(lambda: silent.taken, "the connection")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=cluster.PATIENCE), 130)

    def test_garbage_at_a_node(self):
        """A node that is sent garbage answers others as before."""
        process, address = self.listener()
        host, port = address.rsplit(":", 1)
        sockets = []
        for sent in (b"\x00" * 10000, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HT",
                     b""):
            connection = socket.create_connection((host, int(port)))
            sockets.append(connection)
            try:
                connection.sendall(sent)
            except OSError:
                pass
        self.check_link(json.loads(self.millrace(
            "probe", "--peer", address, "--name", "a", "--quick", "--json")),
            ["a", "b"])
        for connection in sockets:
            connection.close()
        self.assertEqual(process.stop(), 0)

    def test_refusals(self):
        _, address = self.listener("same")
        for word, arguments in (
                ("--name", ["--peer", address, "--name", "same"]),
                ("--peer: 10.0.0.1:7: is off", ["--peer", "10.0.0.1:7"]),
                ("--listen: 0.0.0.0:0: is off", ["--listen", "0.0.0.0:0"]),
                *((f"{other[0]}: goes without --peer",
                   ["--peer", address, "--name", "a", *other])
                  for other in (["--listen", "127.0.0.1:0"], ["--nvme", "/"],
                                ["--model", "x"], ["--format", "q8_0"],
                                ["--record", "1MB"], ["--threads", "1"],
                                ["--kernels", "auto"])),
                *((f"{other[0]}: goes without --listen",
                   ["--listen", "127.0.0.1:0", *other])
                  for other in (["--quick"], ["--format", "q8_0"],
                                ["--model", "x"], ["--nvme", "/"],
                                ["--record", "1MB"])),
                ("--peer: nowhere", ["--peer", "nowhere"]),
                ("--listen: nowhere", ["--listen", "nowhere"])):
            with self.subTest(arguments=arguments):
                out = self.millrace("probe", *arguments, "--json", code=2)
                self.assertIn(word, out)


    # check

    def plan(self, names, **link):
        """A plan over these nodes; its path."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        file = os.path.join(folder, "cluster.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"version": 1, "nodes": [
                {"name": name, "memory": "1GB", "memory_bandwidth": 1e7 + i,
                 "compute": {"default": 1e9}}
                for i, name in enumerate(names)],
                "link_default": {"bandwidth": 1e6, "latency": 1, **link}}, out)
        path = os.path.join(folder, "plan.json")
        done = json.loads(self.millrace(
            "plan", self.model, "--cluster", file, "--out", path, "--context",
            "64", "--json"))
        self.assertEqual(sorted(stage["node"] for stage in done["stages"]),
                         sorted(names))
        return path

    def check(self, path, addresses, *options, code=0):
        document = json.loads(self.millrace(
            "check", path, "--workers", ",".join(addresses), "--json",
            *options, code=code))
        self.assertEqual(document["ok"], code == 0)
        self.assertEqual(document["ok"],
                         all(each["ok"] for each in document["checks"]))
        for each in document["checks"]:
            self.assertEqual(set(each), {"name", "node", "ok", "value", "why",
                                         "hint"})
            self.assertEqual(bool(each["hint"]), not each["ok"], each)
            self.assertTrue(each["why"])
        return document

    def failed(self, document):
        return {(each["name"], each["node"])
                for each in document["checks"] if not each["ok"]}

    def test_nodes_that_can_run_the_plan(self):
        path = self.plan(["a", "b"])
        addresses = [self.worker(name)[1] for name in ("a", "b", "spare")]
        document = self.check(path, addresses)
        seen = {(each["name"], each["node"]) for each in document["checks"]}
        with open(path, encoding="utf-8") as file:
            route = [entry["node"] for entry in json.load(file)["route"]]
        self.assertEqual(seen, {(name, node) for node in ("a", "b")
                                for name in ("reachable", "version", "clock",
                                             "memory", "rdma", "model")} |
                         {("link", " - ".join(route))})
        text = self.millrace("check", path, "--workers", ",".join(addresses))
        self.assertTrue(text.endswith("checks are good\n"))

    def test_nodes_that_cannot(self):
        """Each fault is named with the node and what to do; the others are
        checked all the same."""
        path = self.plan(["a", "b"], bandwidth="10000Gbit/s")
        empty = tempfile.mkdtemp(dir=self.folder.name)
        small, small_address = self.worker("a", "--memory", "1MB", "--models",
                                           empty)
        _, good = self.worker("b")
        document = self.check(path, [small_address, good], code=3)
        self.assertEqual(
            {name for name, _ in self.failed(document)},
            {"memory", "model", "link"})
        self.assertIn(("memory", "a"), self.failed(document))
        self.assertIn(("model", "a"), self.failed(document))
        # Another model under the same name.
        other = cluster.make_model(empty, "--seed", "9")
        self.assertEqual(os.path.basename(other),
                         os.path.basename(self.model))
        self.assertIn(("model", "a"), self.failed(
            self.check(path, [small_address, good], code=3)))
        # Gone, silent, and twice the same name.
        small.end_now()
        silent = HostilePeer(self)
        _, twin = self.worker("b")
        document = self.check(path, [small_address, silent.address, good, twin],
                              code=3)
        self.assertEqual(self.failed(document),
                         {("reachable", "a"), ("reachable", "b"),
                          ("reachable", small_address),
                          ("reachable", silent.address)})
        text = self.millrace("check", path, "--workers", silent.address,
                             code=3)
        self.assertIn("FAIL  reachable", text)

    def test_check_by_an_interrupt(self):
        path = self.plan(["a"])
        silent = HostilePeer(self)
        process = subprocess.Popen(
            [cluster.programs()[0], "check", path, "--workers", silent.address],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cluster.wait_for(lambda: silent.taken, "the connection")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=cluster.PATIENCE), 130)

    def test_check_refusals(self):
        path = self.plan(["a"])
        for code, word, arguments in (
                (2, "--workers", [path]),
                (2, "insecure", [path, "--workers", "10.0.0.1:1"]),
                (2, "--workers", [path, "--workers", "a,b"]),
                (4, "missing.json", ["missing.json", "--workers", "[::1]:1"]),
                (4, "tiny.gguf", [self.model, "--workers", "[::1]:1"])):
            with self.subTest(arguments=arguments):
                out = self.millrace("check", *arguments, "--json", code=code)
                self.assertIn(word, out)


if __name__ == "__main__":
    cluster.main()
