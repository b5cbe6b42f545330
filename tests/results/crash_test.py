# SPDX-License-Identifier: Apache-2.0
"""A writer killed at any instant loses at most the case in flight. ASSAY_KILLS sets how often it is killed."""

import collections
import os
import pathlib
import random
import shutil
import subprocess
import time
import unittest

import outcome
from common import HELPER, FileTest, helper


def cases(path):
    lines = helper("show", path).stdout.splitlines()
    return [line.split()[1] for line in lines if line.startswith("case ")], [l for l in lines if l.startswith("event damaged")]


KILLS = int(os.environ.get("ASSAY_KILLS", "20"))


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

    def kill_once(self, number, seconds, *count):
        file = self.dir / f"run{number}.h5"
        return file, self.kill_after(seconds, "write-until-killed", file, *count)

    def test_a_resumed_run_loses_nothing_however_often_it_is_killed(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        kills = max(5, KILLS // 4)
        count = str(max(200, 20 * kills))  # of cases: several times as many as are written before the last kill
        file, stored = self.kill_once(0, rng.uniform(0, 0.1), count)
        partial = f"{file}.partial"
        for number in range(kills):
            if not os.path.exists(partial):
                break  # it came to its end
            # from before its first word on: while it takes over
            with subprocess.Popen([HELPER, "resume-until-killed", partial, count], stdout=subprocess.DEVNULL) as early:
                time.sleep(rng.uniform(0, 0.03))
                early.kill()
            with self.subTest(seed=seed, number=number):
                stored += self.kill_after(rng.uniform(0, 0.1), "resume-until-killed", partial, count)
                there, damaged = cases(partial)
                self.assertEqual(damaged, [])
                self.assertEqual(set(stored) - set(there), set())
                self.assertEqual(len(there), len(set(there)))
        if os.path.exists(partial):
            helper("resume-until-killed", partial, count)
        self.assertFalse(os.path.exists(partial))
        there, damaged = cases(file)
        self.assertEqual((len(there), damaged), (int(count), []))
        done = helper("check", file, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_all_ended_cases_survive(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        for number in range(KILLS):
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

    def kill_merge(self, partial, file, seconds):
        """How far a merge has come that is killed then; what it leaves beside the file goes."""
        merge = subprocess.Popen([HELPER, "recover", partial, file])
        time.sleep(seconds)
        merge.kill()
        merge.wait()
        places = list(self.dir.glob(f"{file.name}.??????"))  # in which it writes
        for place in places:
            shutil.rmtree(place)
        if not partial.exists():
            return "ended"
        return "removing what is merged" if file.exists() else "writing" if places else "reading"

    def test_killed_merge_can_be_recovered(self):
        """At any instant: the time that a merge takes is cut into equal parts, and in each of them one is killed."""
        file, stored = self.kill_once(0, 0.3)
        partial, kept = pathlib.Path(f"{file}.partial"), self.dir / "kept"
        partial.rename(kept)
        took = []
        for _ in range(2):
            file.unlink(missing_ok=True)
            shutil.copytree(kept, partial)
            begin = time.monotonic()
            helper("recover", partial, file)
            took.append(time.monotonic() - begin)
        whole, _ = cases(file)
        self.assertEqual(whole[: len(stored)], stored)
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        kills, stages = max(5, KILLS // 4), collections.Counter()
        for number in range(kills):
            file.unlink(missing_ok=True)
            shutil.copytree(kept, partial)
            with self.subTest(seed=seed, number=number):
                stages[self.kill_merge(partial, file, min(took) * (number + rng.random()) / kills)] += 1
                if not file.exists():  # once more what a killed one left
                    stages[self.kill_merge(partial, file, min(took) * rng.random())] += 1
                if not file.exists():
                    helper("recover", partial, file)
                self.assertEqual(cases(file), (whole, []))
                done = helper("check", file, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, ""))
            shutil.rmtree(partial, ignore_errors=True)
        print(f"\nmerges of {min(took):.2f} s were killed at: " + ", ".join(f"{stage} {count}" for stage, count in stages.most_common()))
        if not stages["writing"]:
            self.skipTest(f"noise: no merge was killed while it wrote, but at {dict(stages)}")

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
