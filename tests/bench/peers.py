#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares assay with its peers on this machine; scripts/bench_peers.sh calls it.

Every comparison alternates ours and theirs, A-B-A-B, at least seven times, so that a drift of the machine hits both.
The ratios of the pairs give a median and a 95 % interval that assumes no distribution. A target is "missed" only if
the interval excludes it.
"""
import argparse
import os
import platform
import signal
import sys
import time

import pairs
import programs
from programs import Assay, Unavailable

LIB = f"/usr/lib/{platform.machine()}-linux-gnu"
OPENBLAS_CORES = {"x86_64": ["SkylakeX", "Cooperlake", "Haswell", "Zen"], "aarch64": ["NEOVERSEN1", "NEOVERSEV1", "ARMV8"]}


class Row:
    """One line of the table: ours and a peer, pair by pair."""

    def __init__(self, what, peer, unit, scale, target, higher=True):
        self.what, self.peer, self.unit, self.scale = what, peer, unit, scale
        self.target, self.higher = target, higher
        self.ours, self.theirs, self.why = [], [], ""

    def add(self, ours, theirs):
        self.ours.append(ours)
        self.theirs.append(theirs)

    def cells(self):
        if not self.ours:
            return [self.what, self.peer, "-", "-", self.unit, "-", "-", "-", f"not run: {self.why}"]
        ratios = [a / b for a, b in zip(self.ours, self.theirs)]
        bounds = pairs.interval(ratios)
        target = "-" if self.target is None else f"{'>=' if self.higher else '<='} {self.target:g}"
        return [self.what, self.peer, f"{pairs.median(self.ours) / self.scale:.4g}",
                f"{pairs.median(self.theirs) / self.scale:.4g}", self.unit, f"{pairs.median(ratios):.3f}",
                f"{bounds[0]:.3f}-{bounds[1]:.3f}" if bounds else f"(n={len(ratios)})", target,
                pairs.judge(ratios, self.target, self.higher)]


def tell(row):
    """A row as soon as it is known, on one line: what is cut at a time limit keeps what it measured."""
    print("  " + " | ".join(row.cells()), flush=True)


def absent(what, peer, why):
    """The row of a peer that is not here."""
    row = Row(what, peer, "", 1, None)
    row.why = why
    tell(row)
    return row


def interleave(count, rows, ours, theirs):
    """`ours()` gives {row: value}; `theirs` maps a row to a function. One peer that fails does not end the others. Tells every row when
    its last pair is measured, and after each pair on standard error where it stands."""
    try:
        measure(count, rows, ours, theirs)
    finally:
        for row in rows:
            tell(row)


def measure(count, rows, ours, theirs):
    alive = dict(theirs)
    for number in range(count):
        so_far = "; ".join(f"{row.what}, {row.peer}: {row.cells()[5]}" for row in rows if row.ours)
        print(f"  pair {number + 1}/{count}{': ratios so far: ' + so_far if so_far else ''}", file=sys.stderr, flush=True)
        try:
            mine = ours()
        except Unavailable as error:
            for row in rows:
                row.why = str(error)
            return
        for row, peer in list(alive.items()):
            try:
                if row not in mine:
                    raise Unavailable("assay did not measure it")
                row.add(mine[row], peer())
            except Unavailable as error:
                row.why = str(error)
                del alive[row]


def gemm(assay, options, notes):
    peers, missing = {}, {}
    threads = str(options.threads)
    for name, api, patterns, env in (
        ("OpenBLAS", "cblas", [f"{LIB}/openblas-pthread/libopenblas.so.0"], {"OPENBLAS_NUM_THREADS": threads}),
        ("BLIS", "cblas", [f"{LIB}/blis-pthread/libblis.so.4"], {"BLIS_NUM_THREADS": threads}),
        ("oneDNN", "dnnl", [f"{LIB}/libdnnl.so.2", f"{LIB}/libdnnl.so.3"], {"OMP_NUM_THREADS": threads}),
    ):
        try:
            peers[name] = programs.PeerGemm(options.peer_gemm, programs.library(*patterns), api, env, options.seconds)
        except Unavailable as error:
            missing[name] = str(error)
    core = ""
    if "OpenBLAS" in peers:
        core = peers["OpenBLAS"].with_best_core(OPENBLAS_CORES.get(platform.machine(), [""]))
        notes.append(f"OpenBLAS ran with its fastest kernel set here, {core}.")
    rows, theirs = {}, {}
    for dtype in ("fp32", "fp64"):
        for n in (2048, 4096):
            for name, peer in peers.items():
                if name == "oneDNN" and dtype == "fp64":
                    continue  # oneDNN has no matrix multiplication in fp64
                row = Row(f"gemm {dtype} n={n}", name, "GFLOP/s", 1e9, 0.95)
                rows[row] = (dtype, n)
                theirs[row] = lambda p=peer, d=dtype, k=n: p.run(d, k)

    def ours():
        cases = assay.run(1, ["--suites", "gemm", "--level", options.level, "--gemm.sizes", "2048,4096",
                              "--gemm.dtypes", "fp32,fp64", "--cases", "gemm/fp*-together"])
        return {row: Assay.value(cases, f"gemm/{d}-n{n}-together", "throughput") for row, (d, n) in rows.items()}

    interleave(options.pairs, rows, ours, theirs)
    return list(rows) + [absent(f"gemm, {name}", name, why) for name, why in missing.items()], core


def memory(assay, options, notes, core):
    threads, size = options.threads, options.stream_bytes
    triad = Row("triad", "STREAM loop, median", "GB/s", 1e9, 0.98)
    best = Row("triad", "STREAM loop, best", "GB/s", 1e9, None)
    stress = Row("triad", "stress-ng stream", "GB/s", 1e9, None)
    cache = {}

    def ours_triad():
        cases = assay.run(1, ["--suites", "memory", "--level", options.level, "--memory.ops", "triad",
                              "--memory.modes", "together", "--memory.patterns", "none"])
        value = Assay.value(cases, "memory/triad-together", "bandwidth", sum)
        return {triad: value, best: value, stress: value}

    def plain():
        cache["stream"] = programs.stream(options.peer_stream, size, threads, options.seconds)
        return cache["stream"][1]

    theirs = {triad: plain, best: lambda: cache["stream"][0], stress: lambda: programs.stress_ng(threads, 6)}
    interleave(options.pairs, [triad, best, stress], ours_triad, theirs)
    rows = [triad, best, stress]
    if not options.quick:
        row = Row("triad", "hpcc StarSTREAM (once)", "GB/s", 1e9, None)
        try:
            row.add(ours_triad()[triad], programs.hpcc_triad(3 * size, threads, core))
        except Unavailable as error:
            row.why = str(error)
        tell(row)
        rows.append(row)
    return rows + patterns(assay, options, notes)


def patterns(assay, options, notes):
    # In all, like the arrays of triad: what fits into the caches is no test of memory.
    threads, megabytes = options.threads, 3 * programs.stream_array_bytes() // 2**20
    own = Row("checkerboard pattern", "own read + write", "GB/s", 1e9, 0.85)
    sat = Row("block move pattern", "stressapptest", "GB/s", 1e9, 1.0)
    warm = Row("block move pattern", "stressapptest -W", "GB/s", 1e9, None)
    tester = Row("checkerboard pattern", "memtester", "GB/s", 1e9, 5.0)
    last = {}

    def ours():
        cases = assay.run(1, ["--suites", "memory", "--level", options.level, "--memory.ops", "read,write",
                              "--memory.modes", "together", "--memory.patterns", "checkerboard,block-move"])
        read = Assay.value(cases, "memory/read-together", "bandwidth", sum)
        write = Assay.value(cases, "memory/write-together", "bandwidth", sum)
        last["own"] = 2 / (1 / read + 1 / write)  # half of the bytes read, half written
        board = Assay.value(cases, "memory/pattern-checkerboard-together", "bandwidth", sum)
        move = Assay.value(cases, "memory/pattern-block-move-together", "bandwidth", sum)
        return {own: board, tester: board, sat: move, warm: move}

    theirs = {own: lambda: last["own"],
              sat: lambda: programs.stressapptest(megabytes, threads, options.sat_seconds),
              warm: lambda: programs.stressapptest(megabytes, threads, options.sat_seconds, ["-W"]),
              tester: lambda: programs.memtester(megabytes, threads)}
    interleave(options.pairs, list(theirs), ours, theirs)
    return list(theirs)


def table(rows):
    head = ["what", "peer", "ours", "peer's", "unit", "ratio", "95 %", "target", "result"]
    lines = [head, *[row.cells() for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(text)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs, {memory_gib:.0f} GiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--only", default="gemm,memory,comm,train")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--imb", default="")
    parser.add_argument("--osu", default="")
    parser.add_argument("--llmc", default="")
    parser.add_argument("--ior", default="")
    parser.add_argument("--directory", default="/var/tmp")
    options = parser.parse_args()
    options.threads = len(os.sched_getaffinity(0))
    options.seconds = 0.5 if options.quick else 1.5
    options.sat_seconds = 3 if options.quick else 6
    options.level = "quick"
    options.stream_bytes = 2**28 if options.quick else programs.stream_array_bytes()
    options.peer_gemm = os.path.join(options.build, "tests/bench/assay_peer_gemm")
    options.peer_stream = os.path.join(options.build, "tests/bench/assay_peer_stream")
    assay, notes, rows, core = Assay(os.path.join(options.build, "assay")), [], [], ""
    start = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # a time limit: the table of what there is comes still
    try:
        rows_of(options, assay, notes, rows, core)
    finally:
        print(f"\n{machine()}; {options.pairs} interleaved pairs; {time.monotonic() - start:.0f} s\n")
        print(table(rows))
        for note in notes:
            print(f"\n{note}")


def rows_of(options, assay, notes, rows, core):
    """Adds to `rows`, one comparison after the other."""
    for name in options.only.split(","):
        print(f"{name}:", file=sys.stderr)
        if name == "gemm":
            more, core = gemm(assay, options, notes)
        elif name == "memory":
            more = memory(assay, options, notes, core)
        elif name == "comm":
            import comm  # needs MPI programs of its own
            more = comm.compare(assay, options, Row, interleave, tell, absent)
        elif name == "train":
            import training
            more = training.compare(assay, options, Row, interleave, absent)
        elif name == "storage":
            import storage
            more = storage.compare(assay, options, Row, interleave) + storage.compare_parallel(assay, options, Row, interleave, absent)
        else:
            raise SystemExit(f"unknown comparison {name}: gemm, memory, comm, train, storage")
        rows += more


if __name__ == "__main__":
    main()
