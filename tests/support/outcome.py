# SPDX-License-Identifier: Apache-2.0
"""How a test file in Python ends: 0 passed, 1 failed, 77 skipped, which is how ctest learns of it.

A file in which nothing failed and some test was skipped counts as skipped, and every reason is printed on a line of its own:
`SKIPPED REASON`. What a reason starts with says what it is (ci/junit_count.py):

  no GPU here       the machine has none
  no privilege: X   X is not allowed here (root, mounts, namespaces)
  noise: X          the machine was too busy to tell; tried again alone by scripts/test.sh
  nightly: X        left for the night on purpose: this alone is no skip
  anything else     something that a machine for tests should have is missing
"""

import os
import sys
import unittest

SKIPPED = 77
NIGHTLY = os.environ.get("ASSAY_NIGHTLY") == "1"

nightly = unittest.skipUnless(NIGHTLY, "nightly: runs with scripts/test.sh --nightly")


def skip_file(reason):
    """Leaves the whole file out, before any test has run."""
    print(f"SKIPPED {reason}")
    sys.exit(SKIPPED)


def main():
    """Like unittest.main, but a skip is never taken for a pass."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    reasons = [" ".join(reason.split()) for _, reason in result.skipped if not reason.startswith("nightly: ")]
    for reason in reasons:
        print(f"SKIPPED {reason}")
    sys.exit(SKIPPED if reasons else 0)
