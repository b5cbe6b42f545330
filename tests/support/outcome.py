# SPDX-License-Identifier: Apache-2.0
"""How a test file in Python ends: 0 passed, 1 failed, 77 skipped, which is how ctest learns of it.

A file in which nothing failed and some test was skipped counts as skipped, and every reason is printed on a line of its own:
`SKIPPED REASON`. What a reason starts with says what it is (ci/junit_count.py):

  no GPU here       the machine has none
  no privilege: X   X is not allowed here (root, mounts, namespaces)
  noise: X          the machine was too busy to tell; tried again alone by scripts/test.sh
  nightly: X        left for the night on purpose: by day this alone is no skip
  anything else     something that a machine for tests should have is missing

With ASSAY_AGAIN=DIR the tests that did not pass are listed in DIR, one list for each file. Where there is a list, only its tests run.
"""

import os
import sys
import unittest
from pathlib import Path

SKIPPED = 77
NIGHTLY = os.environ.get("ASSAY_NIGHTLY") == "1"

nightly = unittest.skipUnless(NIGHTLY, "nightly: runs with scripts/test.sh --nightly")


def left_for_the_night(reason):
    """At night nothing is: what is missing then is a skip."""
    return not NIGHTLY and reason.startswith("nightly: ")


def skip_file(reason):
    """Leaves the whole file out, before any test has run."""
    print(f"SKIPPED {reason}")
    sys.exit(SKIPPED)


def tests_of(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        else:
            yield test


class Loader(unittest.TestLoader):
    """Only the tests of a list, if there is one and it names any of this file."""

    def __init__(self, wanted):
        super().__init__()
        self.wanted = wanted

    def loadTestsFromModule(self, module, *args, **kwargs):
        every = super().loadTestsFromModule(module, *args, **kwargs)
        listed = [test for test in tests_of(every) if test.id() in self.wanted]
        return self.suiteClass(listed) if listed else every


def left_by(result):
    """Names of the tests that did not pass; none where a class as a whole did not, which means all."""
    left = [test for test, _ in result.failures + result.errors]
    left += [test for test, reason in result.skipped if not left_for_the_night(reason)]
    left = [getattr(test, "test_case", test) for test in left]  # of a subtest
    return sorted({test.id() for test in left}) if all(isinstance(test, unittest.TestCase) for test in left) else []


def main():
    """Like unittest.main, but a skip is never taken for a pass."""
    again = os.environ.get("ASSAY_AGAIN")
    record = Path(again, Path(sys.argv[0]).stem) if again else None
    wanted = record.read_text().splitlines() if record and record.exists() else []
    result = unittest.main(verbosity=2, exit=False, testLoader=Loader(wanted)).result
    if record:
        record.write_text("".join(f"{name}\n" for name in left_by(result)))
    if not result.wasSuccessful() or not (result.testsRun or result.skipped):
        sys.exit(1)
    reasons = [" ".join(reason.split()) for _, reason in result.skipped if not left_for_the_night(reason)]
    for reason in reasons:
        print(f"SKIPPED {reason}")
    sys.exit(SKIPPED if reasons else 0)
