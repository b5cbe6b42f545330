#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often each kind of damage to a disk is found, and told from the others: 100 times by night, ASSAY_DAMAGES times where that
is set. Case, rank, sample and seed are others each time."""

import collections
import os

import outcome
from storage_runs import FAIL, INCONCLUSIVE, StorageTest

TIMES = int(os.environ.get("ASSAY_DAMAGES", "100" if outcome.NIGHTLY else "1"))
KINDS = ("flipped", "stale", "torn", "misdirected", "short", "foreign")
# Words of a block of each case that reads back what was written.
BLOCKS = {"local-read-0": 131072, "local-write-0": 131072, "shared-easy-read-0": 131072, "shared-hard-read-0": 5876}
DAMAGES = {"disk": ("flipped", lambda block: 1), "disk-stale": ("stale", lambda block: block), "disk-torn": ("torn", lambda block: block // 2),
           "disk-misdirect": ("misdirected", lambda block: block), "disk-short": ("short", lambda block: block // 2)}
REFUSALS = {"disk-eio": (("local-read-0", "local-write-0", "shared-easy-write-0"), "Input/output error", FAIL, "FAIL"),
            "disk-enospc": (("local-write-0", "shared-easy-write-0", "shared-hard-write-0"), "No space left on device", INCONCLUSIVE, "WARN"),
            "disk-edquot": (("shared-easy-write-0", "local-write-0", "shared-hard-write-0"), "Disk quota exceeded", INCONCLUSIVE, "WARN")}


class EachDamage(StorageTest):
    def strike(self, target, case, number):
        """One run with this fault at one rank; returns the rank."""
        rank, step = number % 2, number // 2 % 2 if case.endswith("read-0") else 0
        run = self.shared if case.startswith("shared") else self.measure
        for _ in range(10):
            self.result = run("--cases", f"storage/{case}", "--inject", f"bitflip:target={target},rank={rank},step={step}", seed=1000 + number)
            if "injected fault without effect" not in self.result.stdout:
                return rank
        self.skipTest(f"noise: {case} has no sample {step} in the time there was")

    def file_of(self, case, rank):
        """That rank reads: on a shared path that of its neighbour, or the only one."""
        return f"data-{0 if 'hard' in case else 1 - rank if case == 'shared-easy-read-0' else rank:06}"

    def assert_damage(self, target, number):
        kind, words = DAMAGES[target]
        # By day each kind strikes once: not all of them at the same case.
        place = list(DAMAGES).index(target)
        case = list(BLOCKS)[(number + place + place // len(BLOCKS)) % len(BLOCKS)]
        rank = self.strike(target, case, number // len(BLOCKS))
        self.assert_code(self.result, FAIL)
        _, values = self.case(case)
        self.assertEqual({k: values[k][0] for k in KINDS if values[k][0]}, {kind: words(BLOCKS[case])})
        told = self.events("storage-damage")
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], rf"{self.file_of(case, rank)}: {words(BLOCKS[case])} words {kind}\b.* offset \d+")
        self.assertEqual([(f["suite"], f["level"]) for f in self.findings() if f["kind"] == "corrupt"], [("storage", "node")])

    def assert_refusal(self, target, number):
        cases, reason, code, severity = REFUSALS[target]
        case = cases[number % len(cases)]
        rank = self.strike(target, case, number // len(cases))
        self.assert_code(self.result, code)
        said = [f["text"] for f in self.findings() if f["severity"] in ("WARN", "FAIL")]
        self.assertEqual([f["severity"] for f in self.findings() if f["severity"] in ("WARN", "FAIL")], [severity], said)
        self.assertEqual(self.findings()[0]["action"], "TRIAGE" if severity == "FAIL" else "CONFIG")
        self.assertRegex(said[0], rf"{self.file_of(case, rank)}: (read|write) at offset \d+: {reason}")

    def assert_slow(self, _, number):
        """One of 16 nodes, by other random numbers each time."""
        node = number * 5 % 16
        result = self.assay("simulate", "-o", "s.h5", "--nodes", 16, "--devices-per-node", 1, "--metrics", "storage", "--force", "--seed", 1 + number,
                            "--fault", f"slow:node={node},percent=30")
        self.assert_code(result, FAIL)
        self.assertIn(f"1 FAIL (sim{node:02}) 15 PASS", result.stdout)

    def test_each_kind_is_found_and_named_every_time(self):
        found, kinds = collections.Counter(), [*((target, self.assert_damage) for target in DAMAGES),
                                               *((target, self.assert_refusal) for target in REFUSALS), ("slow", self.assert_slow)]
        for number in range(TIMES):
            for target, check in kinds:
                with self.subTest(target=target, number=number):
                    check(target, number)
                    self.assertEqual(list(self.data.iterdir()), [])
                    found[target] += 1
        print("\nfound and named of", TIMES, dict(found), flush=True)


if __name__ == "__main__":
    outcome.main()
