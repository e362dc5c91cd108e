#!/usr/bin/env python3
"""Checks that every include between components is an edge of layers.txt.

Also that the edges form no cycle, that no file is named after a drawer, and
that sources and functions stay within the size that the style asks for.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
DRAWERS = {"util", "utils", "common", "misc", "helpers", "manager"}
FREE = {"cli", "tests"}


def read_layers():
    layers = {}
    for line in (ROOT / "cmake/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, allowed = line.partition(":")
            layers[name.strip()] = set(allowed.split())
    return layers


def component_of(path, layers):
    """The longest layer name that the path starts with."""
    best = ""
    for name in layers | FREE:
        if path.startswith(name + "/") and len(name) > len(best):
            best = name
    return best


def cycle_in(layers):
    """A component that reaches itself, or None. kernels and kernels/quant are
    one component seen at two depths."""
    for start in layers:
        seen, todo = set(), list(layers[start])
        while todo:
            name = todo.pop()
            if name == start:
                return start
            if name not in seen:
                seen.add(name)
                todo.extend(layers.get(name, ()))
    return None


def problems_of(path, text, layers):
    names = set(layers)
    home = component_of(path, names)
    allowed = layers.get(home, set()) | {home}
    for number, line in enumerate(text.splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        target = component_of(found.group(1), names)
        if not target or home in FREE or target in allowed:
            continue
        if home == "kernels" and target == "kernels/quant":
            continue
        yield f"{path}:{number}: {home} must not include {target}"
    lines = text.count("\n")
    limit = 800 if home == "tests" else 500
    if lines > limit:
        yield f"{path}: {lines} lines, more than {limit}"
    if pathlib.PurePath(path).stem in DRAWERS:
        yield f"{path}: a file named after a drawer"


def main():
    layers = read_layers()
    problems = []
    start = cycle_in(layers)
    if start:
        problems.append(f"cmake/layers.txt: {start} reaches itself")
    listed = subprocess.run(["git", "ls-files", "*.h", "*.cc"], cwd=ROOT,
                            capture_output=True, text=True, check=True)
    for path in listed.stdout.split():
        text = (ROOT / path).read_text(encoding="utf-8")
        problems.extend(problems_of(path, text, layers))
    for problem in problems:
        print(problem)
    print(f"{len(problems)} layer problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
