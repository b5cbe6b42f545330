# SPDX-License-Identifier: Apache-2.0
"""assay's local storage cases against fio: one rank and one job, the same engine, block, depth and file size."""
import json
import os
import tempfile

import numpy

from programs import Assay, Unavailable, call

FILE_BYTES = 256 << 20
CASES = {  # case of the suite, its metric, and what fio is told
    "local-read-0": ("bandwidth", ["--rw=read", "--bs=1m", "--iodepth=8"]),
    "local-write-0": ("bandwidth", ["--rw=write", "--bs=1m", "--iodepth=8", "--fdatasync=128"]),
    "local-random-read-q16-0": ("rate", ["--rw=randread", "--bs=4k", "--iodepth=16"]),
    "local-random-write-q16-0": ("rate", ["--rw=randwrite", "--bs=4k", "--iodepth=16"]),
}


def over_time(rates):
    """All that was moved / all of the time, as fio counts: samples are of equal size."""
    rates = numpy.asarray(rates, dtype=float).ravel()
    rates = rates[numpy.isfinite(rates)]
    if len(rates) == 0:
        raise Unavailable("assay measured a cache")
    return float(len(rates) / numpy.sum(1 / rates))


def fio(folder, arguments, seconds, key):
    done = call(["fio", "--name=peer", f"--filename={folder}/peer", f"--size={FILE_BYTES}", "--direct=1", "--ioengine=io_uring",
                 f"--runtime={seconds}", "--time_based", "--output-format=json", *arguments])
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    side = job["read" if "read" in arguments[0] else "write"]
    return float(side["bw_bytes" if key == "bandwidth" else "iops"])


def compare(assay, options, Row, interleave):
    with tempfile.TemporaryDirectory(dir=options.directory) as folder:
        def ours():
            cases = assay.run(1, ["--suites", "storage", "--level", options.level, "--storage.paths", folder,
                                  "--storage.space", FILE_BYTES, "--cases", "storage/local-*", "--storage.engine", "io_uring"])
            return {row: over_time(cases[f"storage/{name}"][CASES[name][0]]) for row, name in rows.items()
                    if CASES[name][0] in cases.get(f"storage/{name}", {})}

        rows, theirs = {}, {}
        for name, (metric, arguments) in CASES.items():
            row = Row(name[:-2], "fio, io_uring", *(("MB/s", 1e6) if metric == "bandwidth" else ("kop/s", 1e3)), 0.98)
            rows[row] = name
            theirs[row] = lambda a=arguments, m=metric: fio(folder, a, 1 if options.quick else 2, m)
        call(["fio", "--name=peer", f"--filename={os.path.join(folder, 'peer')}", f"--size={FILE_BYTES}", "--rw=write", "--bs=1m",
              "--direct=1", "--end_fsync=1"])  # so that it overwrites, too
        interleave(options.pairs, rows, ours, theirs)
    return list(rows)
