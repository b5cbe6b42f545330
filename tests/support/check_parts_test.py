# SPDX-License-Identifier: Apache-2.0
"""ci/check_parts.sh: a build that lacks a part that this machine can have is not green."""

import os
import pathlib
import subprocess
import unittest

import outcome
from temporary_folder import temporary_folder

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = sorted(path.parent.name for path in (ROOT / "suites").glob("*/CMakeLists.txt"))
PARTS = {"suites": SUITES, "devices": ["host", "cuda"], "transports": ["mpi", "ucx", "nccl", "cuda"]}


class CheckParts(unittest.TestCase):
    def check(self, *, without=(), uring=True, installed=True):
        """(exit code, what it said) of a program that lists all parts but (kind, name), with io_uring or not, where liburing is installed or not."""
        folder = temporary_folder(self.addCleanup)
        for kind, names in PARTS.items():
            (folder / kind).write_text("".join(f"  {name:12} {'not built' if (kind, name) == without else 'built: 1.0'}\n" for name in names
                                               if kind != "suites" or (kind, name) != without))
        program = folder / "assay"
        program.write_text(f'#!/bin/sh\nexec cat "{folder}/$2"\n' + "# io_uring_queue_init\n" * uring)
        config = folder / "pkg-config"
        config.write_text(f'#!/bin/sh\n[ "$*" = "--exists liburing" ] && exit {int(not installed)}\nexit 2\n')
        for file in (program, config):
            file.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run([ROOT / "ci" / "check_parts.sh", program], capture_output=True, text=True, env=environment)
        return done.returncode, done.stdout + done.stderr

    def test_a_whole_build_passes(self):
        code, said = self.check()
        self.assertEqual(code, 0, said)
        self.assertIn("transports mpi ucx", said)

    def test_a_part_that_is_missing_is_named(self):
        self.assertGreater(len(SUITES), 5)
        for kind, name in (("suites", "burn"), ("devices", "host"), ("transports", "mpi"), ("transports", "ucx")):
            with self.subTest(kind=kind, name=name):
                code, said = self.check(without=(kind, name))
                self.assertEqual(code, 1, said)
                self.assertIn(f"check_parts: {kind}: '{name}'", said)

    def test_io_uring_is_missing_only_where_its_library_is_installed(self):
        code, said = self.check(uring=False)
        self.assertEqual(code, 1, said)
        self.assertIn("check_parts: storage: io_uring is not built", said)
        code, said = self.check(uring=False, installed=False)
        self.assertEqual(code, 0, said)


if __name__ == "__main__":
    outcome.main()
