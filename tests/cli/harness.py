# SPDX-License-Identifier: Apache-2.0
"""Runs the real executable in an empty directory and looks at what it says, returns and leaves behind."""

import os
import pathlib
import re
import resource
import subprocess
import time
import unittest

import outcome
from temporary_folder import temporary_folder

ASSAY = os.environ["ASSAY"]
MPIEXEC = os.environ.get("MPIEXEC", "mpirun")

# Open MPI refuses root and too few slots unless told otherwise; both are normal in a container.
LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


# A virtual machine hands out memory for the first time at 1 GB/s or less: half of it takes most of a smoke run. Enough for bandwidth beside a large cache.
LITTLE_MEMORY = ["--memory.fraction", "0.15"]


def memory_beside_caches(ranks):
    """At least as much as `ranks` need that each measure memory by themselves: more than 4 times the last cache."""
    # Some virtual machines have no /sys/devices/system/cpu/cpu0/cache; the C library asks the processor.
    table = subprocess.run(["getconf", "-a"], capture_output=True, text=True).stdout
    cache = max(map(int, re.findall(r"^LEVEL[234]_CACHE_SIZE +(\d+)$", table, re.M)), default=0)
    available = next(int(line.split()[1]) * 1024 for line in pathlib.Path("/proc/meminfo").read_text().splitlines()
                     if line.startswith("MemAvailable"))
    # Tests beside this one take memory between this moment and the start of the run.
    return ["--memory.fraction", f"{min(0.6, max(float(LITTLE_MEMORY[1]), 6 * cache * ranks / available)):.4f}"]


class OtherWork:
    """What else keeps the machine busy, from now on."""

    def __init__(self):
        self.begin = self.used()

    @staticmethod
    def used():
        """Seconds of processors: in all, used, and used by this test and those of its processes that have ended."""
        ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        in_all, idle = (count / os.sysconf("SC_CLK_TCK") for count in (sum(ticks), ticks[3] + ticks[4]))
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return in_all, in_all - idle, sum(one.ru_utime + one.ru_stime for one in own)

    def share(self):
        """Of all processors, what others have used."""
        in_all, used, own = (now - then for now, then in zip(self.used(), self.begin))
        return max(0, used - own) / in_all


def execute(command, cwd, env=None, timeout=90):
    environment = {**os.environ, **LAUNCH, **(env or {})}
    try:
        return subprocess.run(command, cwd=cwd, env=environment, timeout=timeout, capture_output=True, text=True,
                              errors="replace", stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as late:  # it holds what was said until then, as bytes
        out, err = ((said or b"").decode(errors="replace") for said in (late.stdout, late.stderr))
        raise AssertionError(f"not over after {timeout} s: {command}\nstdout:\n{out}\nstderr:\n{err}") from None


class CliTest(unittest.TestCase):
    """Every test has a directory of its own, `self.dir`."""

    def setUp(self):
        self.dir = temporary_folder(self.addCleanup)

    def assay(self, *args, env=None):
        return execute([ASSAY, *map(str, args)], self.dir, env)

    def mpirun(self, ranks, *args, env=None):
        return execute([MPIEXEC, "-n", str(ranks), ASSAY, *map(str, args)], self.dir, env)

    def mpirun_with(self, setting, *args, env=None):
        """On two ranks, the second with this setting of its environment."""
        program = [ASSAY, *map(str, args)]
        return execute([MPIEXEC, "-n", "1", *program, ":", "-n", "1", "-x", setting, *program], self.dir, env)

    def on_small_disk(self, size, *args):
        """In a directory `small` that holds no more than that, which is gone after it."""
        (self.dir / "small").mkdir(exist_ok=True)
        script = f'mount -t tmpfs -o size={size} none small || exit 77; "$0" "$@"; code=$?; ls -A small >&2; exit $code'
        result = execute(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, ASSAY, *map(str, args)], self.dir)
        if result.returncode in (1, 77):
            self.skipTest("no privilege: a small file system needs the right to mount")
        return result

    def write(self, name, content):
        path = self.dir / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content)
        return path

    def left_behind(self):
        return sorted(p.name for p in self.dir.iterdir())

    def leave_partial(self, partial, cases="pass"):
        """What a run leaves that cannot merge: its output has appeared in the meantime."""
        run = ["run", "--suites", "selftest", "--selftest.cases", cases, "--quiet", "--out", "late.h5"]
        out, left = self.dir / "late.h5", self.dir / "late.h5.partial"
        for _ in range(20):  # on a busy machine the run may be faster
            with subprocess.Popen([ASSAY, *run], cwd=self.dir, env={**os.environ, **LAUNCH}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None and not left.exists():
                    time.sleep(0.001)
                out.write_text("somebody was faster")
            out.unlink()
            if left.exists():
                break
        self.assertTrue((left / "end.json").exists())
        left.rename(partial)

    def assert_code(self, result, code):
        self.assertEqual(result.returncode, code, f"stdout:\n{result.stdout}\nstderr:\n{result.stderr}")

    def assert_error(self, args, names, code=4, env=None):
        """One line on standard error that begins with `assay: ` and has these names and numbers in this order; nothing else said or written."""
        before = self.left_behind()
        result = self.assay(*args, env=env)
        self.assert_code(result, code)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertRegex(result.stderr, "^assay: " + "".join(".*?" + whole(name) for name in names.split()))
        self.assertEqual(self.left_behind(), before)
        return result


def whole(name):
    """A pattern for the name or number that is no part of a longer one."""
    before = r"(?<![-.\w])" if name[0].isalnum() else ""
    after = r"(?!\w)" if name[-1].isalnum() else ""
    return before + re.escape(name) + after


def taken(test, case, metric):
    """The samples of a metric in some seconds of a burn; on a machine so busy that there is none, the test cannot tell."""
    values = case[metric][:].ravel()
    values = values[values == values]
    if len(values) == 0:
        test.skipTest(f"noise: no sample of {metric} in the time of the burn")
    return values


def share(items, count):
    """All of them at night; by day the first ones."""
    return items if outcome.NIGHTLY else items[:count]


main = outcome.main
