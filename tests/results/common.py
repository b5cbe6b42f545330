# SPDX-License-Identifier: Apache-2.0
"""What the tests of the results file share: the helper program and a directory for each test."""

import subprocess
import sys
import unittest

import outcome
from temporary_folder import temporary_folder

HELPER = sys.argv.pop(1) if len(sys.argv) > 1 else None


def helper(*args, check=True):
    """Runs the helper; returns the finished process with its output as text."""
    return subprocess.run([HELPER, *map(str, args)], check=check, capture_output=True, text=True)


class FileTest(unittest.TestCase):
    def setUp(self):
        self.dir = temporary_folder(self.addCleanup)
        self.file = self.dir / "run.h5"
        self.partial = self.dir / "run.h5.partial"


def need(*modules):
    """Leaves with the code that ctest counts as skipped when a Python package is absent."""
    for module in modules:
        try:
            __import__(module)
        except ImportError as error:
            outcome.skip_file(f"{error} (scripts/packages.sh, group test)")
