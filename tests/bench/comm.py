# SPDX-License-Identifier: Apache-2.0
"""Pairs and all-reduce: plain MPI loops, ucx_perftest, and IMB or OSU where their directory is given."""
import os
import re

import programs
from programs import Assay, Unavailable

LINE = re.compile(r"^case (\S+) unit (\S+) ours (\S+) plain (\S+) ratio ")
LATENCY_BYTES, CACHED_BYTES, BANDWIDTH_BYTES, REDUCE_BYTES = 8, 65536, 4194304, 1048576


def plain_loops(options, row_type):
    """assay_bench_comm alternates assay's own loop and a plain one inside one process; each start of it is a pair here."""
    rows, why = {}, ""
    program = os.path.join(options.build, "tests/mpi/assay_bench_comm")
    for _ in range(options.pairs):
        try:
            text = programs.call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", 2, program, 3 if options.quick else 7]).stdout
        except Unavailable as error:
            why = str(error)
            break
        for match in filter(None, map(LINE.match, text.splitlines())):
            name, unit, ours, plain = match[1], match[2], float(match[3]), float(match[4])
            if name not in rows:
                rate = unit == "B/s"
                target = 0.98 if rate else 1.03
                rows[name] = row_type(name, "plain MPI loop", "GB/s" if rate else "us", 1e9 if rate else 1e-6, target, rate)
            rows[name].add(ours, plain)
    if not rows:
        row = row_type("pairs and all-reduce", "plain MPI loop", "", 1, None)
        row.why = why or "assay_bench_comm printed no case"
        rows["none"] = row
    return list(rows.values())


def last_number(text, size, column):
    """The number in `column` of the row that starts with `size`: how OSU and IMB print."""
    for line in text.splitlines():
        cells = line.split()
        if cells and cells[0] == str(size) and len(cells) > column:
            return float(cells[column])
    raise Unavailable(f"no row for {size} bytes")


def osu(folder, program, size):
    def run():
        path = next((os.path.join(top, program) for top, _, files in os.walk(folder) if program in files), None)
        if not path:
            raise Unavailable(f"no {program} under {folder}")
        text = programs.call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", 2, path, "-m", f"{size}:{size}"]).stdout
        return last_number(text, size, 1)
    return run


def imb(folder, benchmark, size, column):
    def run():
        path = os.path.join(folder, "IMB-MPI1")
        text = programs.call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", 2, path, benchmark, "-npmin", 2, "-msglog",
                              f"{size.bit_length() - 1}:{size.bit_length()}"]).stdout
        return last_number(text, size, column)
    return run


def scaled(function, factor):
    return lambda: function() * factor


def compare(assay, options, row_type, interleave, tell, absent):
    rows = plain_loops(options, row_type)
    for row in rows:
        tell(row)
    latency, bandwidth, reduce = {}, {}, {}

    def lower(kind, what, peer, function):
        row = row_type(what, peer, "us", 1e-6, 1.03, False)
        kind[row] = function

    def higher(what, peer, function):
        row = row_type(what, peer, "GB/s", 1e9, 0.98)
        bandwidth[row] = function

    pair, uni = f"latency {LATENCY_BYTES} B", f"bandwidth {BANDWIDTH_BYTES} B"
    total = f"allreduce {REDUCE_BYTES} B"
    # ucx_perftest sends one buffer over and over, assay rotates 20: at 64 KiB both stay in a core's own cache. At 4 MiB only
    # its one does, which is shown without a target.
    ucx_latency = row_type(f"{pair}, ucx", "ucx_perftest tag", "us", 1e-6, 1.03, False)
    ucx_bandwidth = {size: row_type(f"bandwidth {size} B, ucx", "ucx_perftest tag", "GB/s", 1e9, target)
                     for size, target in ((CACHED_BYTES, 0.98), (BANDWIDTH_BYTES, None))}
    ucx = {ucx_latency: lambda: programs.ucx_perftest("tag_lat", LATENCY_BYTES, 200000)}
    for size, row in ucx_bandwidth.items():
        ucx[row] = lambda size=size: programs.ucx_perftest("tag_bw", size, 2**31 // size)
    if options.osu:
        lower(latency, pair, "OSU", scaled(osu(options.osu, "osu_latency", LATENCY_BYTES), 1e-6))
        higher(uni, "OSU", scaled(osu(options.osu, "osu_bw", BANDWIDTH_BYTES), 1e6))
        lower(reduce, total, "OSU", scaled(osu(options.osu, "osu_allreduce", REDUCE_BYTES), 1e-6))
    if options.imb:
        lower(latency, pair, "IMB PingPong", scaled(imb(options.imb, "PingPong", LATENCY_BYTES, 2), 1e-6))
        higher(uni, "IMB PingPong", scaled(imb(options.imb, "PingPong", BANDWIDTH_BYTES, 3), 1e6))
        lower(reduce, total, "IMB Allreduce", scaled(imb(options.imb, "Allreduce", REDUCE_BYTES, 4), 1e-6))

    def ours():
        cases = assay.run(2, ["--suites", "p2p,allreduce", "--level", options.level,
                              "--p2p.sizes", f"{LATENCY_BYTES},{CACHED_BYTES},{BANDWIDTH_BYTES}",
                              "--p2p.transport", "mpi,ucx",
                              "--allreduce.sizes", str(REDUCE_BYTES)])
        values = {row: Assay.value(cases, f"p2p/latency-{LATENCY_BYTES}-node-mpi", "latency") for row in latency}
        values |= {row: Assay.value(cases, f"p2p/bandwidth-uni-{BANDWIDTH_BYTES}-node-mpi", "bandwidth")
                   for row in bandwidth}
        values[ucx_latency] = Assay.value(cases, f"p2p/latency-{LATENCY_BYTES}-node-ucx", "latency")
        values |= {row: Assay.value(cases, f"p2p/bandwidth-uni-{size}-node-ucx", "bandwidth") for size, row in ucx_bandwidth.items()}
        return values | {row: Assay.value(cases, f"allreduce/allreduce-world-{REDUCE_BYTES}-mpi", "duration")
                         for row in reduce}

    theirs = latency | bandwidth | reduce | ucx
    interleave(options.pairs, list(theirs), ours, theirs)
    missing = [("IMB", "--imb")] if not options.imb else []
    missing += [("OSU", "--osu")] if not options.osu else []
    return rows + list(theirs) + [absent("pairs and all-reduce", peer, f"it is not packaged; {option} DIR compares with it") for peer, option in missing]
