#!/usr/bin/env python3
"""Runs node/openai_client.mjs against a server started here.

    run_node_client.py --folder BUILD/node -- SERVER [ARGUMENTS...]

SERVER prints its URL in its first line and ends on SIGTERM; `{keys}` in its arguments becomes a file with one API
key. The npm package is installed into the folder. Exit code 77 (skipped) where node, npm or the package are out of
reach.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
KEY = "sk-client-test"
HERE = os.path.dirname(os.path.abspath(__file__))


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def install(folder):
    """The folder with the script and its package, installed once a version."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    os.makedirs(folder, exist_ok=True)
    for name in ("package.json", "openai_client.mjs"):
        shutil.copyfile(os.path.join(HERE, "node", name), os.path.join(folder, name))
    with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
        wanted = json.load(file)["dependencies"]["openai"]
    try:
        with open(os.path.join(folder, "node_modules/openai/package.json"), encoding="utf-8") as file:
            if json.load(file)["version"] == wanted:
                return
    except OSError:
        pass
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(command, cwd=folder, timeout=180, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        skip("npm does not answer")
    if done.returncode != 0:
        skip(f"npm cannot install the package openai: {done.stderr.strip().splitlines()[-1:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True, help="where the package is installed")
    parser.add_argument("server", nargs="+", help="program and arguments")
    options = parser.parse_args()
    install(options.folder)
    with tempfile.TemporaryDirectory() as temporary:
        keys = os.path.join(temporary, "keys")
        with open(keys, "w", encoding="utf-8") as file:
            file.write(KEY + "\n")
        command = [argument.replace("{keys}", keys) for argument in options.server]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                found = re.search(r"https?://[^\s\"]+", server.stdout.readline())
                if not found:
                    sys.exit("the server printed no URL")
                url = found.group()
                script = os.path.join(options.folder, "openai_client.mjs")
                done = subprocess.run(["node", script, url, KEY], timeout=240, check=False)
            finally:
                server.terminate()
        sys.exit(done.returncode or server.returncode)


if __name__ == "__main__":
    main()
