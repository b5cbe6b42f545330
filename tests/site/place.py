# SPDX-License-Identifier: Apache-2.0
"""A site for a test: settings, results directory, and in front of PATH the programs that a test replaces."""

import os
import pathlib
import subprocess
import sys
import unittest

import outcome
from temporary_folder import temporary_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
ASSAY = os.environ["ASSAY"]
MAKE_RUN = os.environ["ASSAY_MAKE_RUN"]

# `assay run ... --out FILE` as the night would see it; all other commands are the real ones. What RUN says is done.
FAKE = """#!/usr/bin/python3
import os, subprocess, sys, pathlib
here = pathlib.Path({here!r})
if sys.argv[1] != "run":
    os.execv({assay!r}, [{assay!r}, *sys.argv[1:]])
(here / "arguments").write_text("\\n".join(sys.argv[1:]))
out = sys.argv[sys.argv.index("--out") + 1]
exec((here / "RUN").read_text())
"""
COPY = """
import shutil
shutil.copy(here / "made.h5", out)
"""


class SiteTest(unittest.TestCase):
    """Every test has a directory of its own: `self.dir`, with `results/`, `bin/` (first in PATH) and `site.conf`."""

    def setUp(self):
        self.dir = temporary_folder(self.addCleanup)
        self.results = self.dir / "results"
        (self.dir / "bin").mkdir()
        self.env = {**os.environ, "ASSAY_SITE": str(self.dir / "site.conf"), "PATH": f"{self.dir}/bin:{os.environ['PATH']}"}
        self.env.pop("SLURM_JOB_ID", None)
        self.settings()

    def settings(self, **changes):
        values = {"ASSAY": ASSAY, "ASSAY_RESULTS": self.results, "ASSAY_LAUNCH": "", "ASSAY_DRAIN": "no", **changes}
        (self.dir / "site.conf").write_text("".join(f'{key}="{value}"\n' for key, value in values.items()))

    def program(self, name, text):
        """An executable in front of all others of its name; `text` has its first line."""
        path = self.dir / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def fake_assay(self):
        """A program that does what `runs` says for `assay run`, and is the real one for all else. Returns its path."""
        return self.program("assay-under-test", FAKE.format(here=str(self.dir), assay=ASSAY))

    def runs(self, text):
        (self.dir / "RUN").write_text(text)

    def made(self, **keys):
        """What COPY gives as the results file of the run."""
        self.make_run("made.h5", **keys)

    def script(self, name, *args, env=None, timeout=120):
        return subprocess.run([SCRIPTS / name, *map(str, args)], cwd=self.dir, env={**self.env, **(env or {})}, timeout=timeout,
                              capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)

    def make_run(self, name, **keys):
        """A results file of a made-up fleet; not marked as simulated."""
        (self.dir / name).unlink(missing_ok=True)
        done = subprocess.run([MAKE_RUN, name, *(f"{key}={value}" for key, value in keys.items())], cwd=self.dir,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return self.dir / name

    def assert_code(self, result, code):
        self.assertEqual(result.returncode, code, f"stdout:\n{result.stdout}\nstderr:\n{result.stderr}")


main = outcome.main
