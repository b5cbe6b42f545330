# SPDX-License-Identifier: Apache-2.0
"""assay's storage cases against fio (one rank and one job, the same engine, block, depth and file size), IOR and mdtest (two ranks)."""
import json
import os
import re
import tempfile

import numpy

from programs import Assay, Unavailable, call

FILE_BYTES = 256 << 20
CASES = {  # case of the suite, its metric, and what fio is told
    "local-read-0": ("bandwidth", ["--rw=read", "--bs=1m", "--iodepth=8"]),
    "local-write-0": ("bandwidth", ["--rw=write", "--bs=1m", "--iodepth=8", "--fdatasync=128"]),
    "local-random-read-q1-0": ("rate", ["--rw=randread", "--bs=4k", "--iodepth=1"]),
    "local-random-read-q16-0": ("rate", ["--rw=randread", "--bs=4k", "--iodepth=16"]),
    "local-random-write-q16-0": ("rate", ["--rw=randwrite", "--bs=4k", "--iodepth=16"]),
}


WINDOW_MS = 20  # what 1024 blocks, a sample of assay, take on a disk of a virtual machine


def over_time(rates):
    """All that was moved / all of the time, as fio counts: samples are of equal size."""
    return float(len(rates) / numpy.sum(1 / rates))


def finite(rates):
    rates = numpy.asarray(rates, dtype=float).ravel()
    rates = rates[numpy.isfinite(rates)]
    if len(rates) == 0:
        raise Unavailable("assay measured a cache")
    return rates


def fio(folder, arguments, seconds, key):
    """Over all of the time; for random blocks also the median over windows."""
    log = [f"--write_iops_log={folder}/log", f"--log_avg_msec={WINDOW_MS}", f"--iopsavgtime={WINDOW_MS}"] if key == "rate" else []
    done = call(["fio", "--name=peer", f"--filename={folder}/peer", f"--size={FILE_BYTES}", "--direct=1", "--ioengine=io_uring",
                 f"--runtime={seconds}", "--time_based", "--output-format=json", *log, *arguments])
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    side = job["read" if "read" in arguments[0] else "write"]
    if not log:
        return float(side["bw_bytes"]), None
    with open(os.path.join(folder, "log_iops.1.log"), encoding="utf-8") as file:
        return float(side["iops"]), float(numpy.median([int(line.split(",")[1]) for line in file]))


# Of IOR and mdtest: case of the suite, its metric, what the program calls it, and the target.
PARALLEL = {
    "IOR": (("shared-easy-write-0", "bandwidth", "write", 0.98), ("shared-easy-read-0", "bandwidth", "read", 0.98)),
    "mdtest": tuple(("metadata-own-0", metric, f"File {name}", 0.95)
                    for metric, name in (("create", "creation"), ("stat", "stat"), ("read", "read"), ("delete", "removal"))),
}


def program(folder, name):
    path = next((os.path.join(top, name) for top, _, files in os.walk(folder) if name in files), None)
    if not path:
        raise Unavailable(f"no {name} under {folder}")
    return path


def ior(where, folder):
    """{what IOR calls it: B/s}, means of its repetitions: a file per rank in one directory, as `shared-easy-*` does it; each reads the
    other's."""
    text = call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", 2, program(where, "ior"), "-a", "POSIX", "-F", "-C", "-e", "-w", "-r", "-i", 3, "-t", "1m",
                 "-b", FILE_BYTES // 4, "--posix.odirect", "-o", f"{folder}/ior"]).stdout
    rows = re.findall(r"^(write|read)\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s", text.partition("Summary of all tests:")[2], re.M)  # maximum, minimum, mean
    return {kind: float(rate) * 2**20 for kind, rate in rows}


def mdtest(where, folder):
    """{what mdtest calls it: files a second}, means of its iterations: files of 3901 bytes in a directory per rank."""
    text = call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", 2, program(where, "mdtest"), "-F", "-u", "-i", 3, "-n", 500, "-w", 3901, "-e", 3901,
                 "-d", f"{folder}/mdtest"]).stdout
    rows = re.findall(r"^\s*(File \w+)\s*:?\s+[\d.]+\s+[\d.]+\s+([\d.]+)\s", text, re.M)  # maximum, minimum, mean
    return {name: float(rate) for name, rate in rows}


def compare_parallel(assay, options, Row, interleave, absent):
    if not options.ior:
        return [absent("files of two ranks", peer, "it is not packaged; --ior DIR compares with it") for peer in PARALLEL]
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        rows, theirs, told = {}, {}, {}

        def ours():
            told.clear()
            cases = {}
            for cases_of in ("shared-easy-*", "metadata-own-*"):
                cases |= assay.run(2, ["--suites", "storage", "--level", options.level, "--storage.paths", f"shared:{folder}",
                                       "--storage.space", FILE_BYTES, "--cases", f"storage/{cases_of}"])
            return {row: over_time(finite(cases[f"storage/{case}"][metric]))
                    for row, (case, metric) in rows.items() if metric in cases.get(f"storage/{case}", {})}

        def their(peer, name):
            if peer not in told:
                told[peer] = (ior if peer == "IOR" else mdtest)(options.ior, folder)
            if name not in told[peer]:
                raise Unavailable(f"{peer} printed no '{name}'")
            return told[peer][name]

        for peer, kinds in PARALLEL.items():
            for case, metric, name, target in kinds:
                what = case[:-2] if peer == "IOR" else f"{case[:-2]}, {metric}"
                row = Row(what, peer, *(("MB/s", 1e6) if peer == "IOR" else ("kop/s", 1e3)), target)
                rows[row], theirs[row] = (case, metric), lambda p=peer, n=name: their(p, n)
        interleave(options.pairs, rows, ours, theirs)
    return list(rows)


def compare(assay, options, Row, interleave):
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        def ours():
            cases = assay.run(1, ["--suites", "storage", "--level", options.level, "--storage.paths", folder,
                                  "--storage.space", FILE_BYTES, "--cases", "storage/local-*", "--storage.engine", "io_uring"])
            return {row: (numpy.median if row in medians else over_time)(finite(cases[f"storage/{name}"][CASES[name][0]]))
                    for row, name in rows.items() if CASES[name][0] in cases.get(f"storage/{name}", {})}

        rows, medians, theirs, told = {}, set(), {}, {}
        for name, (metric, arguments) in CASES.items():
            def measured(n=name, a=arguments, m=metric):
                told[n] = fio(folder, a, 1 if options.quick else 2, m)
                return told[n][0]

            row = Row(name[:-2], "fio, io_uring", *(("MB/s", 1e6) if metric == "bandwidth" else ("kop/s", 1e3)), 0.98)
            rows[row], theirs[row] = name, measured
            if metric == "rate":  # of the same runs
                middle = Row(name[:-2] + ", median", f"fio, {WINDOW_MS} ms", "kop/s", 1e3, 0.98)
                rows[middle], theirs[middle] = name, lambda n=name: told[n][1]
                medians.add(middle)
        call(["fio", "--name=peer", f"--filename={os.path.join(folder, 'peer')}", f"--size={FILE_BYTES}", "--rw=write", "--bs=1m",
              "--direct=1", "--end_fsync=1"])  # so that it overwrites, too
        interleave(options.pairs, rows, ours, theirs)
    return list(rows)
