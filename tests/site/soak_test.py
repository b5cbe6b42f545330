# SPDX-License-Identifier: Apache-2.0
"""scripts/soak.sh outside of Slurm: segments follow each other until their number, a signal or the last node."""

import place

SIGNALLED = """
import shutil, signal, time
got = []
signal.signal(signal.{name}, lambda *_: got.append(1))
os.kill(os.getppid(), signal.{name})
while not got:
    time.sleep(0.01)
shutil.copy(here / "made.h5", out)
"""


class Soak(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.fake = self.fake_assay()
        self.settings(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="3")
        self.made(nodes=4)
        self.count("")

    def count(self, text):
        """What a run does: `text`, after it has told that it ran."""
        self.runs('(here / "ran").open("a").write("x")\n' + (text or place.COPY))

    def soak(self, code):
        """Runs a soak to its end; its directory and the number of segments."""
        result = self.script("soak.sh")
        self.assert_code(result, code)
        directory = next(self.results.glob("*/soak-*"))
        summary = (directory / "summary.txt").read_text()
        self.assertEqual(result.stdout, summary)
        self.assertRegex((self.results / "log").read_text().splitlines()[-1], " soak job=- exit=%d assay soak " % code)
        ran = len((self.dir / "ran").read_text())
        self.assertEqual(len(list((directory / "segments").iterdir())), ran)
        return directory, ran

    def test_all_segments_are_summed_up(self):
        self.assertEqual(self.soak(0)[1], 3)

    def test_a_signal_ahead_of_the_time_limit_ends_the_soak(self):
        # The run ends in order; the soak's own process is the parent of `assay run`.
        self.count(SIGNALLED.format(name="SIGUSR1"))
        self.assertEqual(self.soak(0)[1], 1)

    def test_a_signal_while_a_segment_is_judged_ends_the_soak(self):
        real = self.fake.rename(self.dir / "bin" / "real")
        self.program("assay-under-test", f'#!/bin/bash\ncase "$*" in verdict*run.h5*) kill -USR1 $PPID ;; esac\nexec {real} "$@"\n')
        self.assertEqual(self.soak(0)[1], 1)

    def test_a_job_submits_the_next_segment_unless_it_is_cancelled(self):
        for name, submitted in (("SIGUSR1", True), ("SIGTERM", False)):
            self.program("squeue", "#!/bin/sh\n")
            self.program("sbatch", f"#!/bin/sh\necho \"$@\" >{self.dir}/submitted\n")
            self.count(SIGNALLED.format(name=name))
            job = {"SLURM_JOB_ID": name, "SLURM_JOB_NUM_NODES": "4"}
            self.assert_code(self.script("soak.sh", env=job), 0)
            self.assertEqual((self.dir / "submitted").exists(), submitted, name)
            (self.dir / "submitted").unlink(missing_ok=True)
            self.assertNotEqual(bool(list(self.results.glob(f"*/soak-{name}/summary.txt"))), submitted, name)

    def test_nodes_that_failed_sleep_while_others_are_left(self):
        self.made(nodes=4, slow="node1", factor=0.5)
        directory, ran = self.soak(2)
        self.assertEqual((ran, (directory / "failed.txt").read_text()), (3, "node1\n"))
        self.assertIn(f"--exclude\n{directory}/failed.txt\n", (self.dir / "arguments").read_text())

    def test_without_a_node_left_the_soak_ends_with_its_summary(self):
        # Every segment has one node, and the next would have none.
        done = place.subprocess.run([place.ASSAY, "simulate", "--nodes", "1", "--metrics", "gemm", "--fault", "bitflip:node=0,target=gemm", "--force", "-o", "made.h5"],
                                    cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.count("if '--exclude' in sys.argv: sys.exit(4)\n" + place.COPY)
        directory, ran = self.soak(2)
        self.assertEqual(ran, 1)
        self.assertRegex((directory / "summary.txt").read_text(), r"^assay soak \S+: FAIL \(exit 2\), 1 FAIL: ")


if __name__ == "__main__":
    place.main()
