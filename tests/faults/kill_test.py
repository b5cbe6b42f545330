# SPDX-License-Identifier: Apache-2.0
"""What strikes from outside: processes killed or stopped at any instant, and warnings of a batch system. ASSAY_KILLS sets
how many random instants are tried, ASSAY_HEALTHY how many undisturbed runs must end without a finding."""

import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import common
import harness

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "cluster"))
import processes

LITTLE_MEMORY = ("--memory.fraction", "0.05")  # a virtual machine hands it out slowly
SMOKE_BUDGET_S = 15
PASS, WARN, INCONCLUSIVE = 0, 1, 3


class Run:
    """A smoke run in the background; its output goes to files, so that nothing waits for a pipe that a stray holds."""

    def __init__(self, test, ranks, name="r.h5", options=LITTLE_MEMORY):
        self.file = test.dir / name
        self.partial = test.dir / (name + ".partial")
        self.log = tempfile.TemporaryFile("w+")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [harness.MPIEXEC, "--quiet", "-n", str(ranks), harness.ASSAY, "run", "--level", "smoke", *options,
             "--out", str(self.file)],
            cwd=test.dir, env={**os.environ, **harness.LAUNCH}, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, start_new_session=True)
        test.addCleanup(self.end)

    def ranks(self, count):
        return processes.wait_for(harness.ASSAY, count, self.file)

    def wait_for_cases(self, count, timeout_s=30):
        end = time.monotonic() + timeout_s
        while self.stored() < count:
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError(f"no {count} cases: {self.text()}")
            time.sleep(0.01)

    def stored(self):
        try:
            return sum(re.fullmatch(r"\d+\.h5", name) is not None for name in os.listdir(self.partial / "cases"))
        except OSError:
            return 0

    def wait(self, timeout_s=60):
        code = self.process.wait(timeout_s)
        self.seconds = time.monotonic() - self.began
        return code

    def wait_or_end_launcher(self, timeout_s=90, alone_s=15):
        """Waits for the launcher, and kills it where no rank has been left for `alone_s`: PMIx 4.2 can deadlock in its
        shutdown when a rank is killed while it connects. True where that was so."""
        end, seen = time.monotonic() + timeout_s, time.monotonic()
        while self.process.poll() is None:
            now = time.monotonic()
            if self.strays():
                seen = now
            if now - seen > alone_s:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
                return True
            if now > end:
                raise AssertionError(f"ranks {sorted(self.strays())} are left after {timeout_s} s: {self.text()}")
            time.sleep(0.1)
        return False

    def strays(self):
        return processes.find(harness.ASSAY, self.file)

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for rank in self.strays().values():
            for pid in filter(None, (rank.worker, rank.supervisor)):
                processes.kill(pid)
        self.log.close()


class Kill(harness.CliTest):
    def results(self, run):
        return common.Results(run.file)

    def no_strays(self, run):
        end = time.monotonic() + 5
        while run.strays() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(run.strays(), {})

    def named(self, run, rank, kind, words):
        results = self.results(run)
        found = [f for f in results.findings(kind) if f"rank {rank} " in f["text"]]
        self.assertEqual(len(found), 1, results.findings())
        self.assertIn(words, found[0]["text"])
        self.assertEqual(found[0]["action"], "TRIAGE")
        self.assertIn(words, run.text())
        self.assertEqual(results.file.attrs["state"], "aborted")
        return results

    def strike(self, rank, who, act, ranks=2):
        run = Run(self, ranks)
        found = run.ranks(ranks)
        run.wait_for_cases(3)
        act(getattr(found[rank], who))
        began = time.monotonic()
        code = run.wait()
        self.no_strays(run)
        return run, code, time.monotonic() - began

    def test_a_killed_worker_is_named_whoever_it_is(self):
        for rank in (0, 1):
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
        run, _, _ = self.strike(0, "supervisor", processes.kill)
        self.assertIn("rank 0's supervisor is gone", run.text())
        self.assertFalse(run.file.exists())
        stored = run.stored()
        self.assertGreaterEqual(stored, 3)
        copy = self.dir / "copy.h5"
        shutil.copytree(run.partial, self.dir / "twin.h5.partial")
        self.assert_code(self.assay("recover", self.dir / "twin.h5.partial", "-o", copy), 0)
        self.assertGreaterEqual(count_cases(copy), stored)
        # Wrong number of ranks: another plan. Then the right one.
        wrong = self.mpirun(3, "run", "--level", "smoke", *LITTLE_MEMORY, "--quiet", "--resume", run.partial)
        self.assert_code(wrong, 4)
        right = self.mpirun(2, "run", "--level", "smoke", *LITTLE_MEMORY, "--quiet", "--resume", run.partial)
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
                self.no_strays(run)

    def test_a_term_loses_nothing_that_had_ended(self):
        run = Run(self, 2)
        run.ranks(2)
        run.wait_for_cases(4)
        stored = run.stored()
        os.kill(run.process.pid, signal.SIGTERM)
        run.wait()
        self.no_strays(run)
        file = run.file
        if not file.exists():  # the launcher was faster than the merge
            file = self.dir / "recovered.h5"
            self.assert_code(self.assay("recover", run.partial, "-o", file), 0)
        self.assertGreaterEqual(count_cases(file), stored)

    def test_kills_at_random_instants_keep_what_had_ended(self):
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        instants = []
        for number in range(int(os.environ.get("ASSAY_KILLS", "3"))):
            target = rng.choice(["worker", "supervisor", "all"])
            with self.subTest(number=number, seed=seed, target=target):
                instants.append(self.kill_once(number, target, rng))
        print(f"\n{len(instants)} kills, seed {seed}: " +
              ", ".join(f"{sum(s == outcome for s in instants)} {outcome}" for outcome in sorted(set(instants))))

    def kill_once(self, number, target, rng):
        run = Run(self, 2, f"run{number}.h5")
        delay = rng.uniform(0, 5)
        time.sleep(delay)
        stored = run.stored()
        ranks = processes.find(harness.ASSAY, run.file)
        if target == "all":
            os.killpg(run.process.pid, signal.SIGKILL)
            for rank in ranks.values():
                for pid in filter(None, (rank.supervisor, rank.worker)):
                    try:
                        processes.kill(pid)
                    except ProcessLookupError:
                        pass
        elif ranks:
            rank = rng.choice(sorted(ranks.values(), key=lambda r: r.rank))
            try:
                processes.kill(getattr(rank, target) or rank.worker)
            except ProcessLookupError:
                pass
        launcher_hung = run.wait_or_end_launcher()
        self.no_strays(run)
        if run.file.exists():
            file, outcome = run.file, "finished"
        elif (run.partial / "plan.json").exists():
            file, outcome = self.dir / f"recovered{number}.h5", "recovered"
            self.assert_code(self.assay("recover", run.partial, "-o", file), 0)
        else:
            self.assertEqual(stored, 0, run.text())
            return "before the first case" + (", launcher hung" if launcher_hung else "")
        self.assert_code(self.assay("schema", "--check", file), 0)
        self.assertGreaterEqual(count_cases(file), stored, run.text())
        return outcome

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


def count_cases(path):
    with common.h5py.File(path) as file:
        return sum(1 for suite in file["cases"].values() for case in suite.values() if case.attrs["state"] in ("pass", "fail"))


if __name__ == "__main__":
    common.main()
