#!/usr/bin/env python3
"""What the objects of the NEON kernels hold.

* Only *_neondot_* use the byte dot instruction, and each of them does.
* None uses instructions that round differently: bfdot and its kin.
* The innermost loops of products keep their sums in registers: nothing of a
  vector goes to the stack. Numbers that stay the same may come from there.

usage: kernel_objects.py OBJDUMP OBJECT...
"""
import os
import re
import subprocess
import sys

PRODUCTS = {"sdot", "fmla", "smull", "smlal", "smull2", "smlal2"}
REFUSED = {"bfdot", "bfmmla", "bfmlalb", "bfmlalt", "fmlal", "fmlal2"}
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
TARGET = re.compile(r"\b([0-9a-f]+) <")
BRANCHES = {"b", "cbz", "cbnz", "tbz", "tbnz"}
VECTOR_TO_STACK = re.compile(r"^[qdsv]\d+.*\[(sp|x29)\b")


def functions(objdump, path):
    """Yields (name, [(address, operation, operands)])."""
    listing = subprocess.run(
        [objdump, "-d", "-C", "--no-show-raw-insn", path],
        capture_output=True, text=True, check=True).stdout
    name, body = None, []
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            if body:
                yield name, body
            name, body = match.group(1), []
        elif match := INSTRUCTION.match(line):
            body.append((int(match.group(1), 16), match.group(2),
                         match.group(3)))
    if body:
        yield name, body


def innermost_loops(body):
    """Index ranges between a backward branch and its target that hold no
    other such range."""
    index = {address: i for i, (address, _, _) in enumerate(body)}
    loops = []
    for i, (_, operation, operands) in enumerate(body):
        if operation in BRANCHES or operation.startswith("b."):
            match = TARGET.search(operands)
            begin = index.get(int(match.group(1), 16)) if match else None
            if begin is not None and begin <= i:
                loops.append((begin, i))
    return [loop for loop in loops
            if not any(other != loop and loop[0] <= other[0] and
                       other[1] <= loop[1] for other in loops)]


def spills(body):
    """Stores of vectors to the stack in innermost loops of products."""
    found, product_loops = [], 0
    for begin, end in innermost_loops(body):
        loop = body[begin:end + 1]
        if sum(operation in PRODUCTS for _, operation, _ in loop) < 4:
            continue
        product_loops += 1
        found += [f"{address:x}: {operation} {operands}"
                  for address, operation, operands in loop
                  if operation.startswith("st") and
                  VECTOR_TO_STACK.match(operands)]
    return found, product_loops


def main():
    objdump, paths = sys.argv[1], sys.argv[2:]
    wrong, num_objects, num_loops = [], 0, 0
    for path in paths:
        name = os.path.basename(path)
        if "neon" not in name:
            continue
        num_objects += 1
        operations = set()
        for function, body in functions(objdump, path):
            operations |= {operation for _, operation, _ in body}
            if not name.startswith("matmul_neon"):
                continue
            found, loops = spills(body)
            num_loops += loops
            wrong += [f"{name}: {function}: {store}" for store in found]
        if ("sdot" in operations) != ("neondot" in name):
            wrong.append(f"{name}: sdot is {'' if 'sdot' in operations else 'not '}used")
        for operation in sorted(operations & REFUSED):
            wrong.append(f"{name}: uses {operation}")
    print("\n".join(wrong))
    print(f"{num_objects} objects, {num_loops} loops of products looked at")
    if num_objects == 0 or num_loops == 0:
        wrong.append("nothing to look at")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
