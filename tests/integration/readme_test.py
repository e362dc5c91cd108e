#!/usr/bin/env python3
"""Every command in the README's sh blocks runs and succeeds, in their order.

Addresses 10.0.0.N become 127.0.0.N, `model.gguf` a tiny model; plans are written to a
folder of the test. Lines that end
with & start servers; `kill %N` must end them with exit code 0.
"""
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import unittest

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


class ReadmeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.model = cluster.make_model(folder.name)
        self.jobs = []
        self.addCleanup(self.end_jobs)

    def end_jobs(self):
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
            job.wait()

    def words_of(self, line):
        line = line.replace("10.0.0.", "127.0.0.")
        words = shlex.split(line.removesuffix("&"))
        words = [self.model if w == "model.gguf" else w for w in words]
        words = [str(pathlib.Path(self.folder, w)) if w == "k3.json" else w
                 for w in words]
        if words[0] == "millrace":
            words[0] = cluster.programs()[0]
        return words

    def start(self, line):
        # Nothing waits here for what the README itself does not wait for.
        self.jobs.append(subprocess.Popen(self.words_of(line), cwd=ROOT,
                                          stdout=subprocess.DEVNULL))

    def run_line(self, line):
        if line.endswith("&"):
            self.start(line)
        elif line.startswith("kill "):
            jobs = [self.jobs[int(w[1:]) - 1] for w in line.split()[1:]]
            for job in jobs:
                job.send_signal(signal.SIGTERM)
            self.assertEqual([job.wait(timeout=30) for job in jobs],
                             [0] * len(jobs))
            self.jobs.clear()
        else:
            done = subprocess.run(self.words_of(line), cwd=ROOT, check=False,
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, f"{line}\n{done.stderr}")
            self.assertTrue(done.stdout, line)

    def test_every_command(self):
        lines = [line for block in blocks() for line in block.splitlines()
                 if line.strip()]
        self.assertGreater(len(lines), 10)
        for line in lines:
            with self.subTest(line=line):
                self.run_line(line.strip())


if __name__ == "__main__":
    cluster.main()
