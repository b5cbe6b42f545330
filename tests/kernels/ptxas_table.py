#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Registers, shared memory and spills of every kernel on every architecture, as ptxas said when this build was made
(kernels/cuda/keep_report.sh), against the table beside this script. A kernel that is bound by memory or by tensor cores may keep
nothing in local memory, whatever compiled it; registers are compared where the table is of the same compiler.

    ptxas_table.py OBJECT-DIRECTORY COMPILER-VERSION "80 90a 100" [--write]
"""

import pathlib
import re
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("ptxas_table.txt")
BOUND = {"stream", "fill", "payload", "pattern", "onchip", "cache", "attention", "attention_forward", "attention_backward", "attention_hopper"}
ENTRY = re.compile(r"Compiling entry function '(\S+)' for 'sm_(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                   r"[^\n]*Used (\d+) registers([^\n]*)", re.S)


def short_names(mangled):
    """Without namespaces, parameters and the type of a result."""
    said = subprocess.run(["c++filt"], input="\n".join(mangled), text=True, capture_output=True, check=True).stdout.split("\n")
    names = {}
    for symbol, text in zip(mangled, said):
        text = re.sub(r"\(anonymous namespace\)::|assay::kernels::(?:cuda::)?|^void ", "", text)
        ends = (i for i, c in enumerate(text) if c == "(" and text.count("<", 0, i) == text.count(">", 0, i))
        names[symbol] = text[: next(ends, None)].replace(" ", "")
    return names


def rows_of(directory):
    """{(file, kernel): {architecture: "registers shared stack+spills"}}"""
    found = []
    for report in sorted(pathlib.Path(directory).glob("*.cu.o.ptxas")):
        for symbol, architecture, frame, stores, loads, registers, rest in ENTRY.findall(report.read_text()):
            shared = re.search(r"(\d+) bytes smem", rest)
            found.append((report.name.split(".")[0], symbol, architecture, int(registers), int(shared[1]) if shared else 0, int(frame) + int(stores) + int(loads)))
    names = short_names(sorted({row[1] for row in found}))
    rows = {}
    for file, symbol, architecture, *numbers in found:
        rows.setdefault((file, names[symbol]), {})[architecture] = numbers
    return rows


def text_of(rows, version, architectures):
    lines = [f"# nvcc {version}; of each kernel: registers, bytes of static shared memory, bytes of stack and spills", "file kernel " + " ".join(f"sm_{a}" for a in architectures)]
    for (file, kernel), by in sorted(rows.items()):
        lines.append(f"{file} {kernel} " + " ".join("/".join(map(str, by[a])) if a in by else "-" for a in architectures))
    return "\n".join(lines) + "\n"


def main():
    directory, version, architectures = sys.argv[1], sys.argv[2], sys.argv[3].split()
    rows = rows_of(directory)
    problems = [f"{file}.cu: {kernel}, sm_{a}: {by[a][2] if a in by else 'not compiled, or'} bytes of stack and spills"
                for (file, kernel), by in sorted(rows.items()) for a in architectures if a not in by or (file in BOUND and by[a][2] > 0)]
    problems += [f"no report of {file}.cu" for file in sorted(BOUND - {file for file, _ in rows})]
    text = text_of(rows, version, architectures)
    if "--write" in sys.argv:
        TABLE.write_text(text)
    want = TABLE.read_text().split("\n")
    if want[:2] == text.split("\n")[:2]:
        have = text.split("\n")
        problems += [f"- {line}" for line in want if line not in have] + [f"+ {line}" for line in have if line not in want]
    else:
        print(f"the table is of another compiler or other architectures ({want[0]}): registers are not compared")
    print("\n".join(problems))
    print(f"{len(rows)} kernels, {len(problems)} differences" + (f"; after a look, {sys.argv[0]} ... --write" if problems else ""))
    return 1 if problems or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
