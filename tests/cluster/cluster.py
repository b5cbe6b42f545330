# SPDX-License-Identifier: Apache-2.0
"""A virtual cluster for a test: hosts in network namespaces, `assay` started on all of them by mpirun over TCP.

Where the machine does not allow such hosts, tests are skipped with the script's own reason. A cluster is named after
the process that made it, so that tests of two builds do not meet and what a killed test left is found and removed by
the next.
"""

import os
import pathlib
import shlex
import subprocess
import tempfile
import time
import unittest

import outcome
from temporary_folder import temporary_folder

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "ci" / "virtual-cluster.sh"
ASSAY = os.environ["ASSAY"]
STATE = pathlib.Path("/run/assay-virtual-cluster")
PREFIX = "tp"


def letters(number):
    """A number in the letters a-z, which is all that a cluster's name may hold."""
    text = ""
    while number:
        number, digit = divmod(number, 26)
        text = chr(ord("a") + digit) + text
    return text


def number_of(text):
    number = 0
    for letter in text:
        number = number * 26 + ord(letter) - ord("a")
    return number


def script(name, *args, timeout=60):
    return subprocess.run([str(SCRIPT), "--name", name, *map(str, args)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, stdin=subprocess.DEVNULL)


def remove_leftovers():
    """Takes down clusters whose test is dead (a test that runs out of time is killed without notice)."""
    if not STATE.is_dir():
        return
    for path in STATE.iterdir():
        if path.name.startswith(PREFIX) and not pathlib.Path(f"/proc/{number_of(path.name[len(PREFIX):])}").exists():
            script(path.name, "down")


class Launch:
    """A running launcher. What it says goes to files: the daemon on a host that was cut off outlives the launcher and
    would hold a pipe open."""

    def __init__(self, command, cwd):
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err)

    @staticmethod
    def _text(file):
        with file:
            file.seek(0)
            return file.read().decode(errors="replace")

    def finish(self, timeout):
        """Waits; a launcher that does not end in time is killed and the test fails with what it said."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"not over after {timeout:.0f} s\nstdout:\n{self._text(self._out)}\n"
                                 f"stderr:\n{self._text(self._err)}") from None
        return subprocess.CompletedProcess(self.process.args, code, self._text(self._out), self._text(self._err))


class Cluster:
    """`count` hosts, up until `down`; skips the test where the machine does not allow them."""

    def __init__(self, count, *options):
        remove_leftovers()
        self.name = PREFIX + letters(os.getpid())
        self.hosts = [f"{self.name}{i:02d}" for i in range(1, count + 1)]
        result = script(self.name, "up", count, *options)
        if result.returncode == 77:
            raise unittest.SkipTest(result.stderr.strip().removeprefix("virtual-cluster: "))
        if result.returncode != 0:
            raise RuntimeError(f"up {count}: {result.stderr}")

    def down(self):
        return script(self.name, "down")

    def do(self, command, *args):
        """slow-nic, slow-cpu, slow-disk, heal, cut, mend, status; skips the test where the machine does not allow it."""
        result = script(self.name, command, *args)
        if result.returncode == 77:
            raise unittest.SkipTest(result.stderr.strip().removeprefix("virtual-cluster: "))
        if result.returncode != 0:
            raise RuntimeError(f"{command} {args}: {result.stderr}")
        return result.stdout

    def on(self, host, *command):
        return script(self.name, "exec", host, *command)

    def start(self, mpirun, *args, cwd, hosts=None, slots=1):
        """Starts `assay ARGS` under mpirun with its own options; returns the running launcher."""
        where = ["--slots", slots] + (["--hosts", ",".join(hosts)] if hosts else [])
        command = [SCRIPT, "--name", self.name, "mpirun", *where, *mpirun, ASSAY, *args]
        return Launch([str(part) for part in command], cwd)

    def run(self, *args, cwd, ranks=None, timeout=120, **where):
        """One rank on each host (or `ranks` in all): the finished launcher."""
        count = ranks or len(where.get("hosts") or self.hosts)
        return self.start(["-n", count], *args, cwd=cwd, **where).finish(timeout)

    def launcher(self):
        """For `assay run --launcher`: a rank on each host, but for those that are lost."""
        return f"{shlex.quote(str(SCRIPT))} --name {self.name} mpirun --without={{exclude}}"

    def nic_bytes(self, host):
        """Bytes sent and received by the host's NIC since it was made."""
        folder = "/sys/class/net/eth0/statistics"
        result = self.on(host, "cat", f"{folder}/tx_bytes", f"{folder}/rx_bytes")
        return [int(line) for line in result.stdout.split()]


def wait_until(condition, timeout, what):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {timeout} s: {what}")


class ClusterTest(unittest.TestCase):
    """Tests that share one cluster of `HOSTS` hosts; each has a directory of its own and healthy hosts."""

    HOSTS = 4
    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cls.HOSTS, *cls.OPTIONS)
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.dir = temporary_folder(self.addCleanup)

    def fault(self, command, host, *args):
        """A fault until the end of the test."""
        self.addCleanup(self.cluster.do, "mend" if command == "cut" else "heal", host)
        self.cluster.do(command, host, *args)

    def need_ucx(self):
        if "ucx          built" not in self.cluster.on(self.cluster.hosts[0], ASSAY, "list").stdout:
            self.skipTest("assay was built without UCX")

    def assert_code(self, result, *codes):
        self.assertIn(result.returncode, codes, f"stdout:\n{result.stdout}\nstderr:\n{result.stderr}")


main = outcome.main
