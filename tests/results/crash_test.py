# SPDX-License-Identifier: Apache-2.0
"""A writer killed at any instant loses at most the case in flight. ASSAY_KILLS sets how often it is killed."""

import os
import random
import subprocess
import time
import unittest

import outcome
from common import HELPER, FileTest, helper


def cases(path):
    lines = helper("show", path).stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith("case ")], [l for l in lines if l.startswith("event damaged")]


class Crash(FileTest):
    def kill_after(self, seconds, *command):
        """Kills the helper some time after its first line; returns the cases it said it had stored."""
        with subprocess.Popen([HELPER, *command], stdout=subprocess.PIPE, text=True) as writer:
            first = writer.stdout.readline()
            time.sleep(seconds)
            writer.kill()
            rest = writer.communicate()[0]
        lines = [line for line in (first + rest).split("\n")[:-1]]
        return [line.removeprefix("stored ") for line in lines if line.startswith("stored ")]

    def kill_once(self, number, seconds):
        file = self.dir / f"run{number}.h5"
        return file, self.kill_after(seconds, "write-until-killed", file)

    def test_a_resumed_run_loses_nothing_however_often_it_is_killed(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        file, stored = self.kill_once(0, rng.uniform(0, 0.1))
        partial = f"{file}.partial"
        for number in range(max(5, int(os.environ.get("ASSAY_KILLS", "20")) // 4)):
            if not os.path.exists(partial):
                break  # it came to its end
            # from before its first word on: while it takes over
            with subprocess.Popen([HELPER, "resume-until-killed", partial], stdout=subprocess.DEVNULL) as early:
                time.sleep(rng.uniform(0, 0.03))
                early.kill()
            with self.subTest(seed=seed, number=number):
                stored += self.kill_after(rng.uniform(0, 0.1), "resume-until-killed", partial)
                there, damaged = cases(partial)
                self.assertEqual(damaged, [])
                self.assertEqual(set(stored) - set(there), set())
                self.assertEqual(len(there), len(set(there)))
        if os.path.exists(partial):
            helper("resume-until-killed", partial)
        self.assertFalse(os.path.exists(partial))
        there, damaged = cases(file)
        self.assertEqual((len(there), damaged), (1000, []))
        done = helper("check", file, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_all_ended_cases_survive(self):
        kills = int(os.environ.get("ASSAY_KILLS", "20"))
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for number in range(kills):
            file, stored = self.kill_once(number, rng.uniform(0, 0.2))
            partial = f"{file}.partial"
            with self.subTest(seed=seed, number=number):
                self.assertGreater(len(stored), 0)
                from_directory, damaged = cases(partial)
                helper("recover", partial, file)
                recovered, _ = cases(file)
                self.assertEqual(recovered, from_directory)
                self.assertEqual(damaged, [])
                self.assertEqual(recovered[: len(stored)], stored)
                self.assertLessEqual(len(recovered), len(stored) + 1)  # stored, and killed before it could say so
                self.assertFalse(os.path.exists(partial))
                done = helper("check", file, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_killed_merge_can_be_recovered(self):
        file, stored = self.kill_once(0, 0.3)
        partial = f"{file}.partial"
        for _ in range(5):
            merge = subprocess.Popen([HELPER, "recover", partial, file])
            time.sleep(random.uniform(0, 0.05))
            merge.kill()
            merge.wait()
            if os.path.exists(file):
                break
        if not os.path.exists(file):
            helper("recover", partial, file)
        self.assertEqual(cases(file)[0][: len(stored)], stored)

    @unittest.skipUnless(os.geteuid() == 0, "no privilege: mounting needs root")
    def test_full_disk(self):
        small = self.dir / "small"
        small.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "assay-test", str(small)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("no privilege: mounting is not allowed here")
        try:
            done = helper("write-until-killed", small / "run.h5", check=False)
            self.assertEqual(done.returncode, 3)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertIn("No space left on device", done.stderr)
            stored = [line.removeprefix("stored ") for line in done.stdout.splitlines()]
            self.assertGreater(len(stored), 0)
            again = helper("recover", small / "run.h5.partial", small / "run.h5", check=False)
            self.assertEqual(again.returncode, 3, again.stderr)
            self.assertIn("No space left on device", again.stderr)
            self.assertEqual(len(again.stderr.splitlines()), 1)
            self.assertEqual(sorted(os.listdir(small)), ["run.h5.partial"])
            helper("recover", small / "run.h5.partial", self.file)
            self.assertEqual(cases(self.file)[0][: len(stored)], stored)
        finally:
            subprocess.run(["umount", str(small)], check=False)


if __name__ == "__main__":
    outcome.main()
