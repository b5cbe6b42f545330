# SPDX-License-Identifier: Apache-2.0
"""Processes of a run that are killed or stopped, and warnings of a batch system. ASSAY_HEALTHY sets how many undisturbed
runs must end without a finding."""

import os
import shutil
import signal
import statistics
import time

import common
import harness
from running import LITTLE_MEMORY, Run, count_cases, processes

SMOKE_BUDGET_S = 15
PASS, WARN, INCONCLUSIVE = 0, 1, 3
# What is resumed has to end in its time on a busy machine, too.
SHORT = ("--suites", "inventory,gemm,p2p")


class Kill(harness.CliTest):
    def results(self, run):
        return common.Results(run.file)

    def named(self, run, rank, kind, words):
        results = self.results(run)
        found = [f for f in results.findings(kind) if f"rank {rank} " in f["text"]]
        self.assertEqual(len(found), 1, results.findings())
        self.assertIn(words, found[0]["text"])
        self.assertEqual(found[0]["action"], "TRIAGE")
        self.assertIn(words, run.text())
        self.assertEqual(results.file.attrs["state"], "aborted")
        return results

    def strike(self, rank, who, act, ranks=2, options=LITTLE_MEMORY):
        run = Run(self, ranks, options=options)
        found = run.ranks(ranks)
        run.wait_for_cases(3)
        act(getattr(found[rank], who))
        began = time.monotonic()
        code = run.wait()
        run.assert_no_strays(self)
        return run, code, time.monotonic() - began

    def test_a_killed_worker_is_named_whoever_it_is(self):
        for rank in common.share((0, 1)):  # by day the one whose supervisor collects
            with self.subTest(rank=rank):
                shutil.rmtree(self.dir / "r.h5", ignore_errors=True)
                (self.dir / "r.h5").unlink(missing_ok=True)
                run, code, seconds = self.strike(rank, "worker", processes.kill)
                self.assertEqual(code, INCONCLUSIVE, run.text())
                results = self.named(run, rank, "lost", "was killed by signal 9 (Killed)")
                self.assertGreaterEqual(len(results.file["cases/inventory"]), 1)
                self.assertLess(seconds, 10)

    def test_a_stopped_worker_is_named_with_its_stack_within_the_budget(self):
        run, code, _ = self.strike(1, "worker", processes.stop)
        self.assertEqual(code, INCONCLUSIVE, run.text())
        self.named(run, 1, "hang", "its process is stopped")
        self.assertIn("rank 1's stack:", run.text())
        self.assertLess(run.seconds, SMOKE_BUDGET_S + 10)

    def test_a_killed_supervisor_is_named(self):
        run, _, _ = self.strike(1, "supervisor", processes.kill)
        self.named(run, 1, "lost", "its supervisor with it")

    def test_a_stopped_supervisor_is_named(self):
        run, code, _ = self.strike(1, "supervisor", processes.stop)
        self.assertEqual(code, INCONCLUSIVE, run.text())
        self.named(run, 1, "lost", "is unreachable")
        self.assertLess(run.seconds, SMOKE_BUDGET_S + 10)

    def test_without_the_collector_everything_that_had_ended_is_recovered_or_resumed(self):
        run, _, _ = self.strike(0, "supervisor", processes.kill, options=SHORT)
        self.assertIn("rank 0's supervisor is gone", run.text())
        self.assertFalse(run.file.exists())
        self.assertGreaterEqual(run.stored(), 3)
        ended = run.ended()
        copy = self.dir / "copy.h5"
        shutil.copytree(run.partial, self.dir / "twin.h5.partial")
        self.assert_code(self.assay("recover", self.dir / "twin.h5.partial", "-o", copy), 0)
        self.assertGreaterEqual(count_cases(copy), ended)
        # Wrong number of ranks: another plan. Then the right one.
        wrong = self.mpirun(3, "run", "--level", "smoke", *SHORT, "--quiet", "--resume", run.partial)
        self.assert_code(wrong, 4)
        right = self.mpirun(2, "run", "--level", "smoke", *SHORT, "--quiet", "--resume", run.partial)
        self.assertIn(right.returncode, (PASS, INCONCLUSIVE), right.stdout + right.stderr)
        self.assert_code(self.assay("schema", "--check", run.file), 0)
        state = self.results(run).file.attrs["state"]
        if right.returncode == INCONCLUSIVE and state == "aborted":
            self.skipTest("noise: a rank of the resumed run was too late on this busy machine")
        self.assertEqual(state, "complete")

    def test_a_batch_systems_warning_ends_in_order_within_five_seconds(self):
        for signal_number in common.share((signal.SIGUSR1, signal.SIGUSR2)):
            with self.subTest(signal_number):
                (self.dir / "r.h5").unlink(missing_ok=True)
                run = Run(self, 2)
                run.ranks(2)
                run.wait_for_cases(2)
                began = time.monotonic()
                os.kill(run.process.pid, signal_number)
                self.assertEqual(run.wait(), INCONCLUSIVE, run.text())
                self.assertLess(time.monotonic() - began, 5)
                self.assertEqual(self.results(run).file.attrs["state"], "aborted")
                run.assert_no_strays(self)

    def test_a_term_loses_nothing_that_had_ended(self):
        run = Run(self, 2)
        run.ranks(2)
        run.wait_for_cases(4)
        ended = run.ended()
        os.kill(run.process.pid, signal.SIGTERM)
        run.wait()
        run.assert_no_strays(self)
        file = run.file
        if not file.exists():  # the launcher was faster than the merge
            file = self.dir / "recovered.h5"
            self.assert_code(self.assay("recover", run.partial, "-o", file), 0)
        self.assertGreaterEqual(count_cases(file), ended)

    def healthy(self, ranks, count, severities):
        seconds = []
        for number in range(count):
            with self.subTest(number=number):
                run = Run(self, ranks, f"healthy{number}.h5", options=())
                code = run.wait()
                seconds.append(run.seconds)
                bad = [f["text"] for f in self.results(run).findings() if f["severity"] in severities]
                self.assertEqual(bad, [])
                self.assertEqual(code, PASS, run.text())
        print(f"\n{count} healthy runs of {ranks} ranks, median {statistics.median(seconds):.1f} s")

    @common.nightly  # by day the quickstart's main job is one
    def test_healthy_runs_have_no_finding(self):
        self.healthy(2, int(os.environ.get("ASSAY_HEALTHY", "50")), ("WARN", "FAIL"))

    @common.nightly
    def test_healthy_runs_of_ranks_that_share_cores_fail_nobody(self):
        self.healthy(4, 20, ("FAIL",))


if __name__ == "__main__":
    common.main()
