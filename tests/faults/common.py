# SPDX-License-Identifier: Apache-2.0
"""Runs assay with faults made on purpose and reads the file that it leaves."""

import re

import outcome

try:
    import h5py
    import numpy as np
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")

import harness

INCONCLUSIVE, FAIL = 3, 2
NIGHTLY = outcome.NIGHTLY


def share(items, count=1):
    """All of them at night; by day the first ones, since every hang takes its deadline."""
    return items if NIGHTLY else items[:count]


nightly = outcome.nightly


class FaultTest(harness.CliTest):
    def inject(self, ranks, faults, *args, out="r.h5", level="smoke"):
        """`faults`: one text or several. The seed is 7."""
        options = [word for fault in ([faults] if isinstance(faults, str) else faults) for word in ("--inject", fault)]
        if any(str(word).startswith(("memory/latency", "memory/triad")) for word in args):
            options += harness.memory_beside_caches(ranks)
        elif "--suites" not in args or "memory" in args[args.index("--suites") + 1].split(","):
            options += harness.LITTLE_MEMORY
        return self.mpirun(ranks, "run", "--level", level, "--seed", "7", "--quiet", "--force", "--out", out,
                           *options, *args)

    def inject_into(self, case, ranks, fault, *args, **settings):
        """A run in which `fault` comes about in that case. On a busy machine the time of a case may end before the repetition that
        is hit, or only its retest comes to it: there are six tries."""
        for _ in range(6):
            result = self.inject(ranks, fault, *args, **settings)
            self.assertTrue((self.dir / "r.h5").exists(), f"exit code {result.returncode}\n{result.stdout}{result.stderr}")
            results = self.file()
            if any(re.match(rf"{re.escape(fault)}: rank \d+, {re.escape(case)}: ", e["text"]) for e in results.events("inject")):
                return result, results
        self.skipTest(f"noise: {case} never comes to the repetition of {fault}")

    def file(self, name="r.h5"):
        return Results(self.dir / name)

    def assert_injected(self, results, *texts):
        """The file is marked, and says what was done, once per fault and case at most."""
        self.assertEqual(int(results.file.attrs["injected"]), 1)
        events = results.events("inject")
        for text in texts:
            self.assertTrue(any(e["text"].startswith(text + ": ") for e in events), f"{text} not in {events}")

    def assert_spec_unseen(self, results, text):
        """The analysis is blind: neither what it read nor what it found knows the fault as it was typed."""
        for part in ("verdict/inputs", "verdict/json"):
            self.assertNotIn(text, results.text(part))


class Results:
    def __init__(self, path):
        self.file = h5py.File(path)
        self.names = list(self.file["entities/name"].asstr()[:])
        kinds = list(self.file["entities/kind"].asstr()[:])
        ranks = list(self.file["entities/rank"][:])
        self.device = {int(r): i for i, (k, r) in enumerate(zip(kinds, ranks)) if k == "device"}

    def text(self, path):
        value = self.file[path][()]
        return value.decode() if isinstance(value, bytes) else str(value)

    def table(self, path):
        group = self.file[path]
        columns = {}
        for name, column in group.items():
            if name == "row":
                continue
            columns[name] = list(column.asstr()[:] if h5py.check_string_dtype(column.dtype) else column[:])
        length = len(next(iter(columns.values()), []))
        return [{name: column[i] for name, column in columns.items()} for i in range(length)]

    def events(self, kind):
        return [e for e in self.table("events") if e["kind"] == kind]

    def errors(self):
        return self.table("errors")

    def findings(self, kind=None):
        return [f for f in self.table("verdict/findings") if kind is None or f["kind"] == kind]

    def case(self, path):
        return self.file["cases/" + path]

    def state(self, path):
        return self.case(path).attrs["state"]

    def best(self, path, metric):
        """Best sample per rank (device) or per (rank, rank) link: what else runs on the machine disturbs it least."""
        case = self.case(path)
        ranks = {entity: rank for rank, entity in self.device.items()}
        highest = case[metric].attrs["better"] == "higher"
        values = (np.nanmax if highest else np.nanmin)(np.atleast_2d(case[metric][:]), axis=1)
        if "source" in case:
            keys = [(ranks[s], ranks[d]) for s, d in zip(case["source"][:], case["destination"][:])]
        else:
            keys = [ranks.get(entity, -1) for entity in case["entity"][:]]
        return dict(zip(keys, values))

    def samples(self, path, metric):
        case = self.case(path)
        ranks = {entity: rank for rank, entity in self.device.items()}
        return {ranks[e]: row[~np.isnan(row)] for e, row in zip(case["entity"][:], case[metric][:])}


main = harness.main
