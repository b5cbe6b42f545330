# SPDX-License-Identifier: Apache-2.0
"""Batteries of degraded virtual hosts (ci/virtual-battery.sh) side by side: each has hosts of its own, and leaves nothing."""

import os
import shutil
import subprocess
import unittest

import cluster
from temporary_folder import temporary_folder

# Of a row only the launch matters here: what it measures is the inventory.
SHORT = """#!/usr/bin/python3
import os, sys
words = sys.argv[1:]
words[words.index("--suites") + 1] = "inventory"
os.execv({program!r}, [{program!r}, *words])
"""


def name_of(pid):
    return "vb" + cluster.letters(pid)


class Batteries(unittest.TestCase):
    def setUp(self):
        # A space is what a path has that breaks scripts.
        self.dir = temporary_folder(self.addCleanup) / "with a space"
        shutil.copytree(cluster.SCRIPT.parent, self.dir / "ci")
        program = self.dir / "assay"
        shutil.copy(cluster.ASSAY, program)
        self.short = self.dir / "short"
        self.short.write_text(SHORT.format(program=str(program)))
        self.short.chmod(0o755)

    def begin(self, row, *options):
        out = open(self.dir / f"{len(list(self.dir.iterdir()))}.txt", "w+", encoding="utf-8")
        self.addCleanup(out.close)
        battery = subprocess.Popen([self.dir / "ci" / "virtual-battery.sh", "--only", f"^{row}$", "--slack", "4", *options],
                                   env={**os.environ, "ASSAY": str(self.short)}, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.addCleanup(battery.kill)
        return battery, out

    def end(self, battery, out):
        code = battery.wait(150)
        out.seek(0)
        return code, out.read()

    def up(self, battery, out):
        """The name of its cluster, once the hosts are up."""
        name = name_of(battery.pid)
        cluster.wait_until(lambda: (cluster.STATE / name / "nodes").exists() or battery.poll() is not None, 60, f"{name} is up")
        self.assertIsNone(battery.poll(), self.end(battery, out) if battery.poll() is not None else "")
        return name

    def test_two_at_once(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        left = name_of(ended.pid)
        self.addCleanup(cluster.script, left, "down")
        made = cluster.script(left, "up", 1)  # what a battery leaves that was killed
        if made.returncode == 77:
            self.skipTest(made.stderr.strip().removeprefix("virtual-cluster: "))
        first = self.begin("healthy")
        name = self.up(*first)
        self.assertFalse((cluster.STATE / left).exists(), "hosts of a battery that has ended")
        # Another one, which only makes hosts and removes them, and one more by the name of the first one's cluster.
        code, said = self.end(*self.begin("no row"))
        self.assertEqual(code, 0, said)
        code, said = self.end(*self.begin("no row", "--name", name))
        self.assertEqual(code, 4, said)
        self.assertIn(f"cluster '{name}' exists already", said)
        code, said = self.end(*first)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"\| healthy +\|.*\| ok \|\n$")
        self.assertFalse(list(cluster.STATE.glob(f"{name}*")))


if __name__ == "__main__":
    cluster.main()
