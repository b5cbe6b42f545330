# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault in every suite, on three real ranks, by night.

Suites come from `assay list suites`, the results that can be corrupted from /plan of a run without a fault: a new suite is
tried without a change here unless it needs an option. Whatever the fault, the run ends within its time with a code of the contract, rank 1 is named
where the fault is one that names a rank, and nobody else is accused of anything.
"""

import functools
import os
import re
import time

import common

RANKS, FAULTY = 3, 1
SECONDS = {"smoke": 60, "quick": 240}  # the level, a busy machine, and the deadline of a hang
# A fault, the codes that it may end with, and the kind of the finding that names the rank.
KINDS = {
    "hang": ((3,), "hang"),
    "crash": ((3,), "lost"),
    "exit:code=7": ((3,), "lost"),
    "throw": ((3,), None),
    "nomem": ((3,), None),
    "slow:factor=0.5": ((2, 3), None),
    "stall:seconds=50ms,duty=0.2": ((2, 3), None),
}
DIRECTORIES = {"storage": ["--storage.paths"]}  # a suite that measures only where it is told to
# Beside the suites as they are: one-sided messages, which no level below standard sends by itself.
VARIANTS = {"p2p one-sided": ["--p2p.modes", "put,get", "--p2p.transport", "ucx"]}
TIMED = ("slow", "stall")  # change what is timed: a suite without it refuses them
VALUES = ("bitflip", "nan")


def suites():
    text = common.harness.execute([common.harness.ASSAY, "list", "suites"], "/").stdout
    return re.findall(r"^  (\w+) ", text, re.M) + list(VARIANTS)


def name_of(label):
    """The suite of a label of `suites`."""
    return label.split()[0]


class EverySuite(common.FaultTest):
    def run_suite(self, suite, faults):
        """At smoke, or at quick where the fault does not come about in so short a time."""
        for level in ("smoke", "quick"):
            result, results = self.run_level(suite, faults, level)
            if not results or not results.events("inject-unfired"):
                break
        return result, results

    def run_level(self, suite, faults, level):
        name = name_of(suite)
        options = ["--suites", ",".join(dict.fromkeys(("inventory", name))), *VARIANTS.get(suite, ())]
        for option in DIRECTORIES.get(name, ()):
            (self.dir / "files").mkdir(exist_ok=True)
            options += [option, self.dir / "files"]
        began = time.monotonic()
        result = self.inject(RANKS, faults, *options, level=level)
        self.assertLess(time.monotonic() - began, SECONDS[level])
        return result, None if "matches no planned case" in result.stderr else self.file()

    def innocent(self, results, result):
        """Nobody but the faulty part FAILs or is to be excluded. A link has two ends: its finding names both."""
        mine = results.names[results.device[FAULTY]]
        for finding in results.findings():
            if finding["severity"] == "FAIL" or finding["action"] in ("EXCLUDE", "TRIAGE"):
                self.assertTrue(mine in finding["name"] or f"rank {FAULTY} " in finding["text"] or finding["level"] == "node",
                                f"{finding}\n{result.stdout}")

    def strike(self, suite, kind):
        fault = f"{kind}{',' if ':' in kind else ':'}rank={FAULTY},suite={name_of(suite)}"
        codes, named = KINDS[kind]
        result, results = self.run_suite(suite, fault)
        if results is None:
            self.assertIn(kind.split(":")[0], TIMED)
            return "nothing is timed"
        self.assertIn(result.returncode, codes, result.stdout + result.stderr)
        self.innocent(results, result)
        if results.events("inject-unfired"):
            return "not reached"
        if named:
            self.assertTrue(any(f"rank {FAULTY} " in f["text"] for f in results.findings(named)), result.stdout)
        elif kind in ("throw", "nomem"):
            cases = results.file[f"cases/{name_of(suite)}"].values()
            reasons = [case.attrs["reason"] for case in cases if case.attrs["state"] == "error"]
            reasons += [case["parameters"].attrs.get("unfinished", "") for case in cases]
            self.assertTrue(any(f"rank {FAULTY}: injected" in reason for reason in reasons), reasons)
        self.assertEqual(self.assay("verdict", "r.h5").returncode, result.returncode)
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        return f"exit {result.returncode}"

    def corrupt(self, suite, kind, target):
        result, results = self.run_suite(suite, f"{kind}:target={target},rank={FAULTY},suite={name_of(suite)}")
        if results.events("inject-unfired"):
            return "not reached"
        # What a sender corrupts shows at its receivers: the faulty part is among those named. A disk is its node's.
        name = results.names[results.device[FAULTY]]
        texts = [f"{f['name']} {f['text']}" for f in results.findings()] + [e["text"] for e in results.table("events")
                                                                            if not e["kind"].startswith("inject")]
        node = {f["name"] for f in results.findings("corrupt") + results.findings("mismatch") if f["level"] == "node"}
        self.assertTrue(node or any(name in text or f"rank {FAULTY}" in text for text in texts), texts)
        self.assertIn(result.returncode, (2, 3), result.stdout)
        if result.returncode == 3:
            self.assertIn("error", [case.attrs["state"] for case in results.file[f"cases/{name_of(suite)}"].values()])
        return f"exit {result.returncode}"

    @common.nightly
    def test_every_kind_in_every_suite(self):
        self.addCleanup(lambda: print("\n" + "\n".join(table)))
        table = []
        for suite in os.environ.get("ASSAY_SUITES", "").split(",") if "ASSAY_SUITES" in os.environ else suites():
            _, healthy = self.run_suite(suite, [])
            rows = [row for row in healthy.table("plan") if row["suite"] == name_of(suite)]
            targets = sorted({t for row in rows for t in row["targets"].split(",") if t})
            self.assertTrue(rows, suite)
            strikes = [(kind, functools.partial(self.strike, suite, kind)) for kind in KINDS]
            strikes += [(f"{kind}:target={target}", functools.partial(self.corrupt, suite, kind, target))
                        for kind in VALUES for target in targets]
            for fault, strike in strikes:
                with self.subTest(suite=suite, fault=fault):
                    outcome = "FAILED"
                    try:
                        outcome = strike()
                    finally:
                        table.append(f"{suite:13} {fault:28} {outcome}")
        # Nothing is timed in the inventory, and congestion needs several nodes.
        beside = {line.split()[0] for line in table if "exit" not in line}
        self.assertLessEqual(beside, {"inventory", "congestion"}, "\n".join(table))


if __name__ == "__main__":
    common.main()
