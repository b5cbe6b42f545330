# SPDX-License-Identifier: Apache-2.0
"""A run in the background whose processes are killed or stopped."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import common
import harness

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import processes

LITTLE_MEMORY = ("--memory.fraction", "0.05")  # a virtual machine hands it out slowly


class Run:
    """A smoke run in the background; its output goes to files, so that nothing waits for a pipe that a stray holds.
    `own_launcher`: assay starts mpirun, outside of MPI."""

    def __init__(self, test, ranks, name="r.h5", options=LITTLE_MEMORY, own_launcher=False):
        self.file = test.dir / name
        self.partial = test.dir / (name + ".partial")
        self.log = tempfile.TemporaryFile("w+")
        self.began = time.monotonic()
        launcher = [harness.MPIEXEC, "--mca", "orte_execute_quiet", "1", "-n", str(ranks)]
        command = [harness.ASSAY, "run", "--level", "smoke", *options, "--out", str(self.file)]
        command = command + ["--launcher", " ".join(launcher)] if own_launcher else launcher + command
        self.process = subprocess.Popen(
            command,
            cwd=test.dir, env={**os.environ, **harness.LAUNCH}, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True)
        test.addCleanup(self.end)

    def ranks(self, count):
        return processes.wait_for(harness.ASSAY, count, self.file)

    def wait_for_cases(self, count, timeout_s=30):
        end = time.monotonic() + timeout_s
        while self.stored() < count:
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"no {count} cases: {self.text()}")
            time.sleep(0.01)

    def stored(self):
        try:
            return sum(re.fullmatch(r"\d+\.h5", name) is not None for name in os.listdir(self.partial / "cases"))
        except OSError:
            return 0

    def ended(self):
        """Cases that passed or failed, of those stored; what was skipped or cut off may be measured by a later launch."""
        count = 0
        for path in self.partial.glob("cases*/*.h5"):
            try:
                with common.h5py.File(path) as file:
                    count += count_in(file)
            except OSError:
                continue  # moved in the meantime
        return count

    def wait(self, timeout_s=60):
        code = self.process.wait(timeout_s)
        self.seconds = time.monotonic() - self.began
        return code

    def wait_or_end_launcher(self, may_hang, alone_s, timeout_s=90):
        """Waits for the launcher, and kills it where no rank has been left for `alone_s`: a failure unless it may hang. True
        where that was so."""
        end, seen = time.monotonic() + timeout_s, time.monotonic()
        while self.process.poll() is None:
            now = time.monotonic()
            if self.strays():
                seen = now
            if now - seen > alone_s:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                if not may_hang:
                    raise AssertionError(f"the launcher was left for {alone_s} s after its ranks: {self.text()}")
                return True
            if now > end and self.strays():
                raise AssertionError(f"ranks {sorted(self.strays())} are left after {timeout_s} s: {self.text()}")
            time.sleep(0.1)
        return False

    def strays(self):
        return processes.find(harness.ASSAY, self.file)

    def assert_no_strays(self, test, seconds=5):
        end = time.monotonic() + seconds
        while self.strays() and time.monotonic() < end:
            time.sleep(0.05)
        test.assertEqual(self.strays(), {})

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for rank in self.strays().values():
            for pid in filter(None, (rank.worker, rank.supervisor)):
                processes.kill(pid)
        self.log.close()


def count_in(group):
    """Groups at any depth whose state says that the case ended."""
    ended = int(group.attrs.get("state") in ("pass", "fail"))
    return ended or sum(count_in(item) for item in group.values() if isinstance(item, common.h5py.Group))


def count_cases(path):
    with common.h5py.File(path) as file:
        return count_in(file["cases"])
