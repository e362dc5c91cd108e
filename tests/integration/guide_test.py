#!/usr/bin/env python3
"""Every command in the guide's sh blocks runs, and prints the lines of the text
block behind it."""
import pathlib
import re
import shlex
import subprocess
import unittest

import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = re.compile(r"^```sh\n(.*?)^```\n```text\n(.*?)^```",
                    re.MULTILINE | re.DOTALL)


class GuideTest(unittest.TestCase):
    def test_commands(self):
        text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
        blocks = BLOCKS.findall(text)
        self.assertEqual(len(blocks), len(re.findall("^```sh$", text, re.M)))
        self.assertGreaterEqual(len(blocks), 5)
        for command, expected in blocks:
            words = shlex.split(command)
            self.assertEqual(words[0], "millrace")
            with self.subTest(command=command):
                done = subprocess.run(
                    [cluster.programs()[0], *words[1:]], cwd=ROOT, timeout=300,
                    capture_output=True, text=True, check=True)
                for line in expected.splitlines():
                    self.assertIn(line, done.stdout)


if __name__ == "__main__":
    cluster.main()
