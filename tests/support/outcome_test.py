# SPDX-License-Identifier: Apache-2.0
"""outcome.py: a second run repeats what did not pass, and nothing that did not pass is lost in it."""

import os
import pathlib
import subprocess
import sys
import unittest

import outcome
from temporary_folder import temporary_folder

FILE = """
import os
import unittest

import outcome

SECOND = os.path.exists("second")


class A(unittest.TestCase):
    def test_fails_once(self):
        with self.subTest(part=1):
            self.assertTrue(SECOND)

    def test_is_noisy_once(self):
        if not SECOND:
            self.skipTest("noise: busy")

    def test_needs_a_gpu(self):
        self.skipTest("no GPU here")

    def test_passes(self):
        pass


outcome.main()
"""
CLASS = """
import os
import unittest

import outcome


class A(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not os.path.exists("second"):
            raise unittest.SkipTest("noise: busy")

    def test_one(self):
        pass

    def test_two(self):
        pass


outcome.main()
"""

NIGHT = """
import unittest

import outcome


class A(unittest.TestCase):
    @outcome.nightly
    def test_is_long(self):
        pass

    def test_needs_a_package(self):
        self.skipTest("nightly: no such package")


outcome.main()
"""


class Outcome(unittest.TestCase):
    def setUp(self):
        self.folder = temporary_folder(self.addCleanup)

    def both(self, text, nightly="0"):
        """(exit code, output) of a run and of the next one, which finds the file `second`."""
        (self.folder / "some_test.py").write_text(text)
        (self.folder / "lists").mkdir()
        environment = dict(os.environ, ASSAY_NIGHTLY=nightly, ASSAY_AGAIN=str(self.folder / "lists"), PYTHONPATH=str(pathlib.Path(outcome.__file__).parent))
        for _ in range(2):
            done = subprocess.run([sys.executable, "-B", "some_test.py"], cwd=self.folder, env=environment, capture_output=True, text=True)
            yield done.returncode, done.stdout + done.stderr
            (self.folder / "second").touch()

    def test_only_what_did_not_pass_runs_again(self):
        (code, said), (again, said_again) = self.both(FILE)
        self.assertEqual(code, 1, said)
        self.assertIn("test_passes", said)
        self.assertEqual(again, outcome.SKIPPED, said_again)
        self.assertIn("Ran 3 tests", said_again)
        self.assertNotIn("test_passes", said_again)
        self.assertIn("SKIPPED no GPU here", said_again)

    def test_a_class_that_did_not_begin_runs_as_a_whole(self):
        (code, said), (again, said_again) = self.both(CLASS)
        self.assertEqual(code, outcome.SKIPPED, said)
        self.assertEqual(again, 0, said_again)
        self.assertIn("Ran 2 tests", said_again)

    def test_what_is_left_for_the_night_is_no_skip_by_day(self):
        (code, said), _ = self.both(NIGHT)
        self.assertEqual(code, 0, said)
        self.assertNotIn("SKIPPED", said)

    def test_what_is_missing_at_night_is_a_skip(self):
        (code, said), (_, said_again) = self.both(NIGHT, nightly="1")
        self.assertEqual(code, outcome.SKIPPED, said)
        self.assertIn("SKIPPED nightly: no such package", said)
        self.assertIn("Ran 1 test", said_again)


if __name__ == "__main__":
    outcome.main()
