# SPDX-License-Identifier: Apache-2.0
"""Runs assay and its peers once each and returns one number. SI units: FLOP/s, B/s, s."""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import tempfile
import time

import h5py
import numpy


class Unavailable(Exception):
    """The peer is not on this machine or does not run here; the text says why."""


def call(command, env=None, timeout=600, check=True):
    full = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **(env or {}))
    try:
        done = subprocess.run([str(c) for c in command], env=full, timeout=timeout, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
    except FileNotFoundError as error:
        raise Unavailable(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{command[0]} took longer than {timeout} s") from error
    if check and done.returncode != 0:
        text = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Unavailable(f"{os.path.basename(str(command[0]))} left with {done.returncode}: {text[-1] if text else ''}")
    return done


class Assay:
    """`assay run` with some options, read back from its results file with h5py."""

    def __init__(self, program):
        self.program = program

    def run(self, ranks, options):
        """{"suite/case": {metric: array}} of the cases that ran. The verdict does not matter here."""
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "run.h5")
            launch = ["mpirun", "--mca", "orte_execute_quiet", "1", "-n", ranks]
            if ranks == 1:
                launch += ["--bind-to", "none"]  # one rank, all cores
            done = call(launch + [self.program, "run", "--out", out, "--quiet"] + options, check=False)
            if done.returncode not in (0, 1, 2, 3) or not os.path.exists(out):
                text = (done.stderr + done.stdout).strip().splitlines()
                raise Unavailable(f"assay left with {done.returncode}: {text[-1] if text else ''}")
            return self.read(out)

    @staticmethod
    def read(path):
        cases = {}
        with h5py.File(path) as file:
            for suite, group in file["cases"].items():
                for name, case in group.items():
                    cases[f"{suite}/{name}"] = {
                        metric: case[metric][...] for metric in case
                        if isinstance(case[metric], h5py.Dataset) and "unit" in case[metric].attrs
                    }
        return cases

    @staticmethod
    def value(cases, pattern, metric, over_entities=numpy.median):
        """Median over the samples of each entity, then `over_entities`."""
        for name in sorted(cases):
            if fnmatch.fnmatch(name, pattern) and metric in cases[name]:
                data = numpy.asarray(cases[name][metric], dtype=float)
                per_entity = numpy.nanmedian(data, axis=1) if data.ndim == 2 else data
                return float(over_entities(per_entity[numpy.isfinite(per_entity)]))
        raise Unavailable(f"assay measured no {metric} in {pattern}")


def library(*patterns):
    for pattern in patterns:
        found = sorted(glob.glob(pattern))
        if found:
            return found[-1]
    raise Unavailable(f"{patterns[0]} is not installed")


class PeerGemm:
    """One BLAS or oneDNN through peer_gemm; `env` chooses its kernels and threads."""

    def __init__(self, program, path, api, env, seconds):
        self.program, self.path, self.api, self.env, self.seconds = program, path, api, env, seconds

    def run(self, dtype, n, seconds=None):
        done = call([self.program, self.path, self.api, dtype, n, seconds or self.seconds], env=self.env)
        return float(done.stdout)

    def with_best_core(self, cores):
        """OpenBLAS may not know this CPU: times its kernel sets and keeps the fastest. Returns its name."""
        rates = {}
        for core in cores:
            self.env = dict(self.env, OPENBLAS_CORETYPE=core)
            rates[core] = max(self.run("fp32", 1536, 0.5) for _ in range(2))
        best = max(rates, key=rates.get)
        self.env = dict(self.env, OPENBLAS_CORETYPE=best)
        return best


def stream(program, bytes_per_array, threads, seconds):
    best, middle = (float(x) for x in call([program, bytes_per_array, threads, seconds]).stdout.split())
    return best, middle


def stressapptest(megabytes, threads, seconds, extra=()):
    """Bytes read plus bytes written per second, as its statistics count them."""
    done = call(["stressapptest", "-M", megabytes, "-m", threads, "-i", 0, "-c", 0, "-s", seconds, *extra])
    match = re.search(r"Stats: Memory Copy: [\d.]+M at ([\d.]+)MB/s", done.stdout)
    if not match:
        raise Unavailable("stressapptest printed no rate")
    return float(match.group(1)) * 2**20


def memtester(megabytes, processes):
    """Bytes read plus written per second of its checkerboard, `processes` at a time.

    Each pass tries stuck addresses 16 times and the checkerboard 64 times; both write all of memory and read it again.
    """
    if not shutil.which("memtester"):
        raise Unavailable("memtester is not installed")
    env = dict(os.environ, MEMTESTER_TEST_MASK="0x400")
    each = max(16, megabytes // processes)
    start = time.monotonic()
    running = [subprocess.Popen(["memtester", f"{each}M", "1"], env=env, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(processes)]
    texts = [process.communicate()[0] for process in running]
    elapsed = time.monotonic() - start
    if any(process.returncode != 0 for process in running):
        raise Unavailable(f"memtester: {texts[0].strip().splitlines()[-1]}")
    if not all("Checkerboard" in text for text in texts):
        raise Unavailable("memtester ran another test than its checkerboard")
    return (16 + 64) * 2 * each * 2**20 * processes / elapsed


def stress_ng(threads, seconds):
    """Read plus write rate of its stream stressor, summed over instances."""
    done = call(["stress-ng", "--stream", threads, "-t", f"{seconds}s", "--metrics"])
    text = done.stdout + done.stderr
    rates = [float(r) + float(w) for r, w in re.findall(r"memory rate: ([\d.]+) MB read/sec, ([\d.]+) MB write/sec", text)]
    if not rates:
        raise Unavailable("stress-ng printed no memory rate")
    return sum(rates) / len(rates) * threads * 1e6


def ucx_perftest(test, size, iterations):
    """Seconds (tag_lat, one way) or B/s (tag_bw) between two processes of this machine over shared memory."""
    if not shutil.which("ucx_perftest"):
        raise Unavailable("ucx_perftest is not installed")
    env = dict(os.environ, UCX_TLS="posix,sysv,cma,self", UCX_WARN_UNUSED_ENV_VARS="n")
    arguments = ["-t", test, "-s", str(size), "-n", str(iterations), "-w", str(max(10, iterations // 10)), "-f", "-p", "13999"]
    server = subprocess.Popen(["ucx_perftest", "-c", "0", *arguments], env=env, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.3)
        last = str(os.cpu_count() - 1)
        done = subprocess.run(["ucx_perftest", "127.0.0.1", "-c", last, *arguments], env=env, timeout=120,
                              capture_output=True, text=True)
    finally:
        server.terminate()
        server.wait()
    # iterations, latency in us (median, average, overall), bandwidth in MiB/s (average, overall), messages/s
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"^\s*\d+(\s+[\d.]+){6,}\s*$", line)]
    numbers = rows[-1] if rows else []
    if len(numbers) < 6:
        raise Unavailable("ucx_perftest printed no result")
    return float(numbers[3]) * 1e-6 if test.endswith("lat") else float(numbers[5]) * 2**20


HPCC_INPUT = """HPLinpack benchmark input file
assay
HPL.out file
8 device out
1 # of problems sizes (N)
{n} Ns
1 # of NBs
192 NBs
0 PMAP process mapping (0=Row-,1=Column-major)
1 # of process grids (P x Q)
1 Ps
{ranks} Qs
16.0 threshold
1 # of panel fact
2 PFACTs
1 # of recursive stopping criterium
4 NBMINs
1 # of panels in recursion
2 NDIVs
1 # of recursive panel fact.
1 RFACTs
1 # of broadcast
1 BCASTs
1 # of lookahead depth
1 DEPTHs
2 SWAP
64 swapping threshold
0 L1 in transposed form
0 U in transposed form
1 Equilibration
8 memory alignment in double
"""


def hpcc_triad(total_bytes, ranks, core):
    """STREAM triad of the HPC Challenge on all ranks at once, summed. It runs its whole suite: minutes."""
    n = int((total_bytes / 8) ** 0.5)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hpccinf.txt"), "w", encoding="ascii") as file:
            file.write(HPCC_INPUT.format(n=n, ranks=ranks))
        call(["mpirun", "--mca", "orte_execute_quiet", "1", "-n", ranks, "-wdir", folder, "hpcc"], timeout=900,
             env={"OPENBLAS_NUM_THREADS": "1", "OPENBLAS_CORETYPE": core})
        with open(os.path.join(folder, "hpccoutf.txt"), encoding="ascii") as file:
            match = re.search(r"^StarSTREAM_Triad=([\d.]+)", file.read(), re.MULTILINE)
    if not match:
        raise Unavailable("hpcc printed no StarSTREAM_Triad")
    return float(match.group(1)) * 1e9 * ranks


def stream_array_bytes():
    """Per array, so that three of them are four times the last-level cache of the whole machine, at least 256 MiB."""
    caches = {}
    for index in glob.glob("/sys/devices/system/cpu/cpu*/cache/index*"):
        try:
            with open(f"{index}/level", encoding="ascii") as level, open(f"{index}/size", encoding="ascii") as size, \
                    open(f"{index}/shared_cpu_list", encoding="ascii") as shared:
                caches[(int(level.read()), shared.read().strip())] = int(size.read().strip().rstrip("K")) * 1024
        except (OSError, ValueError):
            continue
    top = max((level for level, _ in caches), default=0)
    total = sum(size for (level, _), size in caches.items() if level == top)
    return max(2**28, -(-4 * total // 3))
