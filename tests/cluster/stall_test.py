# SPDX-License-Identifier: Apache-2.0
"""A file server that stops answering all of its clients: an ext4 that three virtual hosts share, and that is frozen.

Who writes to a frozen file system waits in the kernel and cannot be killed, as with a server that is gone.
"""

import os
import subprocess
import threading
import time

import cluster
from results import Results

MIB = 1 << 20


def freeze(how, path):
    subprocess.run(["fsfreeze", how, path], capture_output=True, check=False)


class Stalls(cluster.ClusterTest):
    HOSTS = 3

    def setUp(self):
        super().setUp()
        image, self.path = self.dir / "image", self.dir / "shared"
        self.path.mkdir()
        image.touch()
        os.truncate(image, 9 << 30)
        for command in (["mkfs.ext4", "-q", "-O", "^has_journal", "-E", "nodiscard", image], ["mount", "-o", "loop", image, self.path]):
            made = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            if made.returncode != 0:
                self.skipTest(f"no privilege: loop devices with ext4 ({made.stderr.strip()})")
        self.addCleanup(subprocess.run, ["umount", "-l", self.path], capture_output=True, check=False)
        self.addCleanup(freeze, "--unfreeze", self.path)

    def start(self, *args, level="quick"):
        return self.cluster.start(["-n", self.HOSTS], "run", "--level", level, "--storage.paths", f"shared:{self.path}",
                                  "--storage.space", "192MiB", "--seed", 7, "--out", "r.h5", "--force", *args, cwd=self.dir)

    def used(self):
        info = os.statvfs(self.path)
        return (info.f_blocks - info.f_bfree) * info.f_frsize

    def freeze_amid(self, launch, when=2 * MIB):
        """When the ranks have written so much."""
        base = self.used()
        cluster.wait_until(lambda: self.used() - base > when or launch.process.poll() is not None, 60, "files of the run")
        self.assertIsNone(launch.process.poll())
        freeze("--freeze", self.path)

    def told(self, run):
        return {(f["level"], f["severity"], f["kind"]) for f in run.findings if f["severity"] in ("FAIL", "WARN") and str(self.path) in f["text"]}

    def accused(self, run):
        """Whatever rates of memory the hosts have, which share their cores."""
        accusing = [f for f in run.findings if f["severity"] in ("FAIL", "WARN") and f["suite"] != "memory"]
        return {f["name"] for f in accusing if f["level"] not in ("cluster", "run")}

    def stalled_for_a_while(self, launch):
        """The results of a launch whose server does not answer for 25 s, and what it said."""
        self.freeze_amid(launch)
        timer = threading.Timer(25, freeze, ("--unfreeze", self.path))
        timer.start()
        result = launch.finish(120)
        timer.join()
        return Results(self.dir / "r.h5"), result.stdout + result.stderr

    def test_a_stall_that_ends_is_in_the_data(self):
        run, said = self.stalled_for_a_while(self.start("--suites", "storage", "--cases", "storage/shared-easy-*"))
        self.assertRegex(" ".join(said.split()), rf"{self.path} did not answer for 2\d s on [123] nodes? in storage/shared-easy-(write|read)-0, and then did")
        self.assertEqual(self.accused(run), set(), said)
        self.assertEqual({c.split("/")[-1] for c, state in run.states().items() if state == "pass"}, {"shared-easy-write-0", "shared-easy-read-0"}, said)
        self.assertEqual(self.told(run), {("cluster", "WARN", "hang")}, said)

    def test_a_stall_amid_checkpoints_of_training_accuses_no_node(self):
        launch = self.cluster.start(["-n", self.HOSTS], "run", "--level", "quick", "--suites", "train", "--cases", "train/tiny-checkpoint",
                                    "--train.scratch", self.path, "--train.checkpoint-every", 20, "--seed", 7, "--out", "r.h5", cwd=self.dir)
        run, said = self.stalled_for_a_while(launch)
        self.assertRegex(" ".join(said.split()), rf"{self.path} did not answer for 2\d s on [123] nodes? in train/tiny-checkpoint, and then did")
        self.assertEqual(self.accused(run), set(), said)
        self.assertEqual(run.states()["train/tiny-checkpoint"], "pass", said)

    def test_a_server_that_is_gone_is_named_and_no_node(self):
        launch = self.start("--suites", "storage", "--cases", "storage/shared-easy-write-0")
        self.freeze_amid(launch)
        begin = time.monotonic()
        result = launch.finish(130)
        said = result.stdout + result.stderr
        self.assertLess(time.monotonic() - begin, 100)
        self.assert_code(result, 3)
        run = Results(self.dir / "r.h5")
        self.assertRegex(" ".join(said.split()), rf"{self.path} has not answered on {', '.join(self.cluster.hosts)} for \d+ s in storage/shared-easy-write-0")
        self.assertEqual(self.accused(run), set(), said)
        self.assertNotIn("--exclude", said)

    def test_a_mount_that_does_not_answer_at_the_start_is_named_and_the_rest_is_measured(self):
        freeze("--freeze", self.path)
        result = self.start("--suites", "memory,storage", level="smoke").finish(60)
        run = Results(self.dir / "r.h5")
        said = " ".join((result.stdout + result.stderr).split())
        self.assert_code(result, 3)
        self.assertIn(f"{self.path} does not answer on {', '.join(self.cluster.hosts)} (3 of 3 nodes)", said)
        self.assertNotIn("preparation of memory", said)
        self.assertTrue(any(state == "pass" for c, state in run.states().items() if c.startswith("memory/")), said)
        self.assertEqual(self.accused(run), set(), said)


if __name__ == "__main__":
    cluster.main()
