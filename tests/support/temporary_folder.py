# SPDX-License-Identifier: Apache-2.0
"""A new directory for a test or for all tests of a class."""

import pathlib
import tempfile


def temporary_folder(add_cleanup, prefix="assay-test-", **where):
    """It goes when `add_cleanup` says: `self.addCleanup`, or `cls.addClassCleanup`."""
    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True, **where)
    add_cleanup(folder.cleanup)
    return pathlib.Path(folder.name)
