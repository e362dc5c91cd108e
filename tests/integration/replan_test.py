"""`plan --from`: plans changed for lost nodes and for another load. Bytes are
counted again here from the two routes."""
import json
import os
import subprocess
import tempfile
import unittest

import cluster
import plan_numbers

COSTS = {"version": 1, "hidden_bytes": 1000,
         "layers": [{"repeat": 6, "weights": "1GB", "kv_per_token": 1000,
                     "flops_per_token": 1e9}],
         "first": {"weights": "100MB"}, "last": {"weights": "200MB"}}
NODE = {"memory": "4.5GB", "memory_bandwidth": "10GB/s",
        "compute": {"default": 1e12}, "nvme": {"bandwidth": "2GB/s"}}
NODES = {"version": 1, "nodes": [{**NODE, "name": name} for name in "abcd"],
         "link_default": {"bandwidth": "1GB/s", "latency": "1ms"},
         "constraints": [{"spare": 1}]}


class ReplanTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name, content):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str)
                       else json.dumps(content))
        return path

    def run_plan(self, *options):
        return subprocess.run(
            [cluster.programs()[0], "plan", *options], capture_output=True,
            text=True, timeout=60, check=False)

    def make(self, nodes, *options, costs=COSTS):
        path = os.path.join(self.folder.name, "plan.json")
        done = self.run_plan("--costs", self.path("c.json", costs), "--cluster",
                             self.path("n.json", nodes), "--out", path,
                             "--context", "1000", *options)
        self.assertIn(done.returncode, (0, 3), done.stderr)
        return path

    def document(self, *options, code=0):
        done = self.run_plan(*options, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def refused(self, code, words, *options):
        document = self.document(*options, code=code)
        self.assertTrue(document["error"]["hint"])
        for word in words:
            self.assertIn(word, document["error"]["object"] + ": "
                          + document["error"]["message"])

    @staticmethod
    def holders(route):
        return {layer: entry["node"] for entry in route for layer in
                range(entry["first_layer"], entry["last_layer"] + 1)}

    def check_moved(self, old, route, moved):
        before, after = self.holders(old["route"]), self.holders(route)
        new = [layer for layer in after if after[layer] != before[layer]]
        self.assertEqual([{"layer": layer, "to": after[layer]}
                          for layer in new], moved["layers"])
        by_node = {}
        for layer in new:
            by_node[after[layer]] = (
                by_node.get(after[layer], 0) + 10**9
                + (10**8 if layer == 0 else 0)
                + (2 * 10**8 if layer == 5 else 0))
        self.assertEqual(sum(by_node.values()), moved["bytes"])
        self.assertTrue(plan_numbers.close(
            moved["load_s"], max(by_node.values(), default=0) / 2e9))

    def test_lost_node(self):
        path = self.make(NODES)
        old = plan_numbers.load(path)
        self.assertEqual(old["nodes_used"], 3)
        for lost in {entry["node"] for entry in old["route"]}:
            with self.subTest(lost):
                plan = self.document("--from", path, "--lost", lost)
                self.assertTrue(plan["fits"])
                moved = plan["moved"]
                self.check_moved(old, plan["route"], moved)
                self.check_moved(old, moved["best"]["route"], moved["best"])
                self.assertEqual(moved["bytes"], moved["bound_bytes"])
                self.assertTrue(moved["exact"])
                # Layers of the lost node and no others; the spare is used,
                # which is quicker.
                self.assertEqual({layer["layer"] for layer in moved["layers"]},
                                 {layer for layer, node in
                                  self.holders(old["route"]).items()
                                  if node == lost})
                self.assertEqual(plan["nodes_used"], 3)
                self.assertLessEqual(plan["tokens_per_s"],
                                     moved["best"]["tokens_per_s"] * 1.000001)
                problem = plan_numbers.Problem(plan["inputs"]["cluster"], COSTS,
                                               [1000], None)
                self.assertEqual(plan_numbers.differences(plan, problem), [])

    def test_objective_keeps_spares_out(self):
        """Fewest nodes: the others take the layers, as many bytes."""
        path = self.make(NODES, "--objective", "nodes")
        old = plan_numbers.load(path)
        self.assertEqual(old["nodes_used"], 2)
        lost = old["route"][0]["node"]
        plan = self.document("--from", path, "--lost", lost)
        self.assertEqual(plan["nodes_used"], 2)
        self.check_moved(old, plan["route"], plan["moved"])

    def test_plan_goes_on(self):
        """The plan written is one to start from; a second node is lost."""
        path = self.make(NODES)
        first = plan_numbers.load(path)["route"][0]["node"]
        again = os.path.join(self.folder.name, "again.json")
        plan = self.document("--from", path, "--lost", first, "--out", again)
        self.assertEqual(plan_numbers.load(again), plan)
        second = plan["route"][-1]["node"]
        third = self.document("--from", again, "--lost", second)
        self.check_moved(plan, third["route"], third["moved"])
        # Two at once, and one named twice, is the same loss.
        both = self.document("--from", path, "--lost",
                             f"{first},{second}, {first}")
        self.assertEqual(both["nodes_used"], 2)

    def test_nothing_moves(self):
        path = self.make(NODES)
        old = plan_numbers.load(path)
        spare = (set("abcd") - set(self.holders(old["route"]).values())).pop()
        plan = self.document("--from", path, "--lost", spare)
        self.assertEqual(plan["route"], old["route"])
        self.assertEqual((plan["moved"]["bytes"], plan["moved"]["layers"],
                          plan["moved"]["load_s"]), (0, [], 0))
        done = self.run_plan("--from", path, "--lost", spare)
        self.assertIn("nothing moves", done.stdout)

    def test_back_sooner_is_unknown(self):
        """Without a disk's rate a link's; without either unknown."""
        bare = {key: value for key, value in NODE.items() if key != "nvme"}
        nodes = {**NODES, "nodes": [{**bare, "name": name} for name in "abcd"]}
        path = self.make(nodes, "--objective", "nodes")
        lost = plan_numbers.load(path)["route"][0]["node"]
        moved = self.document("--from", path, "--lost", lost)["moved"]
        self.assertTrue(plan_numbers.close(moved["load_s"],
                                           moved["bytes"] / 1e9))
        path = self.make({**nodes, "link_default": {}}, "--objective", "nodes")
        moved = self.document("--from", path, "--lost", lost)["moved"]
        self.assertIsNone(moved["load_s"])
        self.assertIsNone(moved["sooner"])
        done = self.run_plan("--from", path, "--lost", lost)
        self.assertIn("sooner is unknown", done.stdout)

    def test_fits_no_more(self):
        path = self.make(NODES)
        plan = self.document("--from", path, "--lost", "a,b,c", code=3)
        self.assertFalse(plan["fits"])
        self.assertEqual(plan["route"], [])
        self.assertIsNone(plan["moved"])
        self.assertIn("missing", plan["verdict"])
        self.assertTrue(plan["advice"])
        self.refused(3, ("no node",), "--from", path, "--lost", "a,b,c,d")

    def test_refused(self):
        path = self.make(NODES)
        self.refused(2, ("--lost", "'x'"), "--from", path, "--lost", "x")
        self.refused(2, ("--lost", "''"), "--from", path, "--lost", "a,")
        self.refused(2, ("--lost", "needs"), "--lost", "a")
        self.refused(2, ("--from",), "--from", path)
        self.refused(2, ("not several",), "--from", path, "--lost", "a",
                     "--concurrency", "4")
        self.refused(2, ("out of range",), "--from", path, "--concurrency", "0")
        self.refused(2, ("--objective",), "--from", path, "--lost", "a",
                     "--objective", "nodes")
        self.refused(2, ("--workers",), "--from", path, "--lost", "a",
                     "--workers", "127.0.0.1:1")
        self.refused(2, ("--html",), "--from", path, "--lost", "a",
                     "--html", "page.html")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for damage in (text[:len(text) // 2],
                       text.replace('"first_layer":0', '"first_layer":1')):
            self.refused(4, ("bad.json",), "--from",
                         self.path("bad.json", damage), "--lost", "a")
        small = {**NODES, "nodes": [{**NODE, "name": "a"}]}
        self.refused(4, ("did not fit",), "--from", self.make(small), "--lost",
                     "a")

    def test_other_load(self):
        """Long contexts bind on memory: a route of more nodes holds more."""
        # Fewest nodes for one sequence; sixteen long ones need more of them.
        path = self.make(NODES, "--objective", "nodes")
        old = plan_numbers.load(path)
        plan = self.document("--from", path, "--prompt-len", "30000",
                             "--output-len", "2000", "--concurrency", "16")
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["concurrency"][0]["context"], 32000)
        self.assertEqual(plan["inputs"]["options"]["concurrency"], 16)
        self.assertFalse(plan["gain"]["keep"]["fits"])
        self.assertIsNone(plan["gain"]["tokens_per_s"])
        self.assertGreater(plan["gain"]["sequences"], 0)
        self.check_moved(old, plan["route"], plan["moved"])
        # The same load: the present route stays.
        plan = self.document("--from", path, "--concurrency", "1")
        self.assertEqual(plan["route"], old["route"])
        self.assertEqual((plan["moved"]["bytes"], plan["gain"]["sequences"],
                          plan["gain"]["tokens_per_s"]), (0, 0, 0))
        plan = self.document("--from", path, "--prompt-len", "1000000",
                             "--output-len", "1", "--concurrency", "1000",
                             code=3)
        self.assertIsNone(plan["moved"])

    def test_gain(self):
        """One node is quickest for one sequence, two for eight."""
        nodes = {**NODES, "nodes": [{**NODE, "name": name, "memory": "9GB"}
                                    for name in "ab"], "constraints": []}
        path = self.make(nodes, "--objective", "latency")
        document = plan_numbers.load(path)
        document["inputs"]["options"]["objective"] = "throughput"
        path = self.path("throughput.json", document)
        plan = self.document("--from", path, "--concurrency", "8")
        gain = plan["gain"]
        self.assertEqual(gain["keep"]["nodes_used"], 1)
        self.assertEqual(plan["nodes_used"], 2)
        self.assertGreater(gain["tokens_per_s"], 0)
        self.assertTrue(plan_numbers.close(
            gain["tokens_per_s"],
            plan["tokens_per_s"] / gain["keep"]["tokens_per_s"] - 1))
        self.check_moved(document, plan["route"], plan["moved"])


if __name__ == "__main__":
    cluster.main()
