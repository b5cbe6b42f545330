#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and records beside training steps, on two ranks."""

import outcome
from storage_runs import FAIL, INCONCLUSIVE, PASS, StorageTest


class Training(StorageTest):
    def test_checkpoints_are_written_and_restored(self):
        for run in (self.measure, self.shared):
            result = run("--cases", "storage/checkpoint-0", level="quick")
            self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
            self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
            parameters, values = self.case("checkpoint-0")
            self.assertEqual(parameters["model"], "llama3-8b")
            share = int(parameters["share_bytes"])
            self.assertLessEqual(4 * share, 64 << 20, "old and new of two ranks lie side by side")
            self.assertAlmostEqual(float(parameters["scale"]), share / (105e9 / 8), 9)
            self.assertEqual(values["errors"][0], 0)
            self.assertEqual(values["verified"][0], 1)
            for name in ("write", "restore"):
                rates = [v for suffix in ("", "_cached") for v in values[name + suffix] if v == v]
                self.assertGreaterEqual(len(rates), 3)
                self.assertGreater(min(rates), 0)
            cost, low, high = (values["step_cost" + end][0] for end in ("", "_low", "_high"))
            self.assertGreater(cost, -1)
            if low == low:  # more than one round
                self.assertTrue(low <= cost <= high, (low, cost, high))
            self.assertEqual(list(self.data.iterdir()), [])

    def test_a_stale_checkpoint_is_found_by_the_rank_that_restores_it(self):
        result = self.shared("--cases", "storage/checkpoint-0", "--inject", "bitflip:target=disk-stale,rank=1,step=1", level="quick")
        self.assert_code(result, FAIL)
        self.assertEqual(self.case("checkpoint-0")[1]["stale"][0], 131072)
        self.assertRegex(self.events("storage-damage")[0], "data-000000: 131072 words stale")
        self.assertEqual(list(self.data.iterdir()), [])

    def test_steps_that_wait_for_records_are_stalled(self):
        stalled = []
        for limit in ("1MiB", "1GiB"):
            result = self.measure("--cases", "storage/feed-0", "--storage.limit", limit, level="quick", space="8MiB")
            self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
            values = self.case("feed-0")[1]
            self.assertEqual(values["errors"][0], 0)
            self.assertEqual(values["verified"][0], 1)
            stalled.append(max(values["stalled"]))
        self.assertGreater(stalled[0], 0.2, stalled)
        self.assertGreater(stalled[0], 3 * stalled[1], stalled)
        self.assertEqual(list(self.data.iterdir()), [])

    def test_a_wrong_record_is_found(self):
        result = self.measure("--cases", "storage/feed-0", "--inject", "bitflip:target=disk-misdirect,rank=1,step=0", level="quick")
        self.assert_code(result, FAIL)
        self.assertGreaterEqual(self.case("feed-0")[1]["misdirected"][0], 512)


if __name__ == "__main__":
    outcome.main()
