# SPDX-License-Identifier: Apache-2.0
"""Faults that end a case or a run, faults that never come about, and faults that are spelt wrongly."""

import json

import common
import numpy as np


class Usage(common.FaultTest):
    def run_pass(self, *args):
        return ["run", "--suites", "selftest", "--out", "r.h5", *args]

    def test_one_line_and_exit_4(self):
        for fault, line in {
            "slwo": "--inject: 'slwo' faults: slow",
            "slow:rank=1": "--inject: slow factor= 'slow:rank=1'",
            "slow:factor=2": "--inject: factor=2: 0 1",
            "slow:factor=0.5,rnak=1": "--inject: slow 'rnak' keys: factor",
            "bitflip:rank=1": "--inject: bitflip target= 'bitflip:rank=1'",
            "hang:rank=5-2": "--inject: rank=5-2: 1+4 2-5",
            "slow:factor=0.5,rank=1": "--inject: slow:factor=0.5,rank=1: none 1",
            "drop": "--inject: drop: case",
            "bitflip:target=gemm": "--inject: bitflip:target=gemm: case",
            "hang:case=fail": "--inject: hang:case=fail: case",
            "hang:node=elsewhere*": "--inject: hang:node=elsewhere*: none 1",
        }.items():
            with self.subTest(fault):
                self.assert_error(self.run_pass("--inject", fault), line)
        self.assert_error(self.run_pass("--inject", "hang:after=1h", "--inject", "drop"), "--inject: drop:")
        self.assert_error(["plan", "--suites", "selftest", "--inject", "drop"], "--inject: drop: case")

    def test_several_ranks_say_it_once(self):
        result = self.mpirun(2, *self.run_pass("--inject", "hang:rank=2"))
        self.assert_code(result, 4)
        lines = [line for line in result.stderr.splitlines() if line.startswith("assay: ")]
        self.assertEqual(len(lines), 1, lines)
        self.assertRegex(lines[0], r"^assay: --inject: hang:rank=2: .*\b2\b")
        self.assertEqual(self.left_behind(), [])

    def test_from_a_file(self):
        self.write("a.toml", 'suites = ["selftest"]\ninject = ["slow:factor=0.5", "stall:seconds=1ms"]\n')
        self.assert_code(self.assay("run", "--config", "a.toml", "--out", "r.h5"), common.INCONCLUSIVE)
        results = self.file()
        self.assert_injected(results, "slow:factor=0.5", "stall:seconds=1ms")
        self.assertIn('"stall:seconds=1ms"', results.text("config"))
        self.write("b.toml", 'suites = ["selftest"]\ninject = ["slow"]\n')
        self.assert_error(["run", "--config", "b.toml"], "--inject: slow factor=")


class Verdict(common.FaultTest):
    def test_a_run_without_faults_is_not_marked(self):
        self.assert_code(self.inject(1, [], "--suites", "selftest"), 0)
        self.assertEqual(int(self.file().file.attrs["injected"]), 0)

    def test_a_run_that_would_pass_does_not(self):
        result = self.inject(1, "slow:factor=0.9", "--suites", "selftest")
        self.assert_code(result, common.INCONCLUSIVE)
        self.assertIn("injected", result.stdout)
        self.assert_spec_unseen(self.file(), "slow:factor")
        self.assert_code(self.assay("verdict", "r.h5"), common.INCONCLUSIVE)

    def test_fail_stays_fail(self):
        self.assert_code(self.inject(1, "slow:factor=0.9", "--suites", "selftest", "--selftest.cases", "fail"), common.FAIL)

    def test_a_fault_that_never_came_about_is_said(self):
        result = self.inject(2, ["slow:rank=1,factor=0.9,step=1000", "slow:rank=0,factor=0.9"], "--suites", "selftest")
        self.assert_code(result, common.INCONCLUSIVE)
        results = self.file()
        events = results.events("inject-unfired")
        self.assertEqual([e["entity"] for e in events], [results.device[1]])
        self.assertRegex(events[0]["text"], r"\brank 1\b.* slow:rank=1,factor=0.9,step=1000$")
        self.assertIn("slow:rank=1,factor=0.9,step=1000", result.stdout)


class Ends(common.FaultTest):
    def error(self, fault, case, rank, *args, level="smoke"):
        result, results = self.inject_into(case, 2, fault, *args, level=level)
        self.assert_code(result, common.INCONCLUSIVE)
        self.assert_injected(results, fault)
        self.assertEqual(results.file.attrs["state"], "complete")
        attributes = results.case(case).attrs
        if results.state(case) == "error":
            reason = attributes["reason"]
            self.assertRegex(reason, rf"^rank {rank}: injected .*\b{case}$")
        else:  # inside a node the other rank may have samples of its own
            self.assertEqual(results.state(case), "pass")
            self.assertEqual(attributes["stage"], "node-local")
            parameters = results.case(case)["parameters"].attrs
            reason = parameters["unfinished"]
            self.assertRegex(reason, rf"^ended in error on .*: rank {rank}: injected .*\b{case}$")
            self.assertEqual(len(json.loads(parameters["unfinished_on.json"])), 1)
            self.assertNotIn(results.device[rank], results.case(case)["entity"][:])
        self.assertIn(reason, " ".join(result.stdout.split()))
        return results

    def test_throw_and_no_memory_at_the_start_of_a_case_of_every_suite(self):
        for case in common.share(("p2p/latency-8-node-mpi", "inventory/node", "gemm/fp32-exact-n512", "memory/triad-together",
                                  "allreduce/allreduce-world-8-mpi")):
            with self.subTest(case):
                args = ["--suites", case.split("/")[0], "--cases", case]
                self.error("throw:rank=1", case, 1, *args)
                self.error("nomem:rank=0", case, 0, *args)

    def test_the_other_cases_run(self):
        results = self.error("throw:rank=1,case=pass", "selftest/pass", 1, "--suites", "inventory,selftest")
        self.assertEqual(results.state("inventory/node"), "pass")

    def test_throw_amid_the_timed_repetitions(self):
        for suite, case in {"gemm": "gemm/fp32-n256-together", "memory": "memory/pattern-moving-inversions-together"}.items():
            with self.subTest(suite):
                args = ["--suites", suite, "--cases", case, *(["--gemm.sizes", "256"] if suite == "gemm" else [])]
                self.error("throw:rank=1,step=1", case, 1, *args, level="quick")

    def test_full_disk(self):
        result = self.inject(1, "diskfull:after_bytes=40kB", "--suites", "inventory,selftest,gemm", "--cases", "*")
        self.assert_code(result, common.INCONCLUSIVE)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(self.left_behind(), ["r.h5.partial"])
        self.assert_code(self.assay("recover", "r.h5.partial", "-o", "kept.h5"), 0)
        kept = self.file("kept.h5")
        self.assertEqual(kept.state("inventory/node"), "pass")
        self.assertEqual(int(kept.file.attrs["injected"]), 1)

    def test_a_disk_that_did_not_fill_up(self):
        result = self.inject(1, "diskfull:after_bytes=1GiB", "--suites", "selftest")
        self.assert_code(result, common.INCONCLUSIVE)
        self.assertEqual(len(self.file().events("inject-unfired")), 1)


class Clock(common.FaultTest):
    CASE = "allreduce/allreduce-world-1048576-mpi-isolated"

    def series(self, fault, least):
        """(times, skews) of each rank."""
        for level in ("quick", "extended", "extended"):  # which gives a busy machine five times as long
            result = self.inject(3, fault, "--suites", "allreduce", "--cases", self.CASE, level=level)
            self.assert_code(result, common.INCONCLUSIVE)
            results = self.file()
            self.assert_injected(results, fault)
            times, skews = (results.samples(self.CASE, name) for name in ("t", "arrival_skew"))
            if min(map(len, skews.values())) >= least:
                return {rank: (times[rank], skews[rank]) for rank in skews}
        self.skipTest(f"noise: {[len(s) for s in skews.values()]} operations in the time of the case")

    def test_a_constant_offset_is_taken_out(self):
        series = self.series("clock:rank=1,offset_s=100", 1)
        # Not taken out, it would be 100 s: a busy machine may hold a rank up for some tenths of a second.
        self.assertLess(max(max(s) for _, s in series.values()), 1)

    def test_a_drift_shows_in_the_arrivals(self):
        """The clock of rank 1 gains 0.3 s a second: absurd, so that it shows within a second on a busy machine, which holds ranks up."""
        seen = []
        for _ in range(4):
            series = self.series("clock:rank=1,ppm=300000", 8)
            slopes = {rank: slope(t, s) for rank, (t, s) in series.items()}
            t, s = series[1]
            grown = 0.3 * (t[-1] - t[0])
            scatter = np.median(abs(s - np.median(s) - slopes[1] * (t - np.median(t))))
            held_up = max(np.quantile(series[rank][1], 0.75) for rank in (0, 2))
            seen.append(f"{slopes}, scatter {scatter:.3f} s, others {held_up:.3f} s late, {grown:.3f} s gained")
            if 0.15 < slopes[1] < 0.45 and max(abs(slopes[0]), abs(slopes[2])) < slopes[1] / 2:
                return
            self.assertGreater(max(held_up, scatter), grown / 8, f"nothing hides the drift: {seen}")
        self.skipTest(f"noise: {seen}")


def slope(x, y):
    """The median of the slopes between all pairs of points."""
    first, second = np.triu_indices(len(x), 1)
    return float(np.median((y[second] - y[first]) / (x[second] - x[first])))


if __name__ == "__main__":
    common.main()
