# SPDX-License-Identifier: Apache-2.0
"""The size of the results file that `plan` tells is within 30 % of what the run then writes."""

import re
import unittest

import harness
import outcome

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def foreseen(path):
    """What a file holds without the cases that measured suspects again, as far as it can be told: nobody plans those."""
    import h5py
    size = path.stat().st_size
    with h5py.File(path) as file:
        for case in (case for suite in file["cases"].values() for name, case in suite.items() if re.search(r"\.c\d+$", name)):
            sets = [entry for entry in case.values() if isinstance(entry, h5py.Dataset)]
            size -= sum(3000 + entry.id.get_storage_size() for entry in sets)
        fewest = min(case["t"].shape[1] for case in file["cases/p2p"].values() if case.name.endswith("-isolated"))
    return size, fewest


class FileSize(harness.CliTest):
    def check(self, ranks, level, *args, samples, timeout=90):
        options = ["--level", level, "--seed", "5", *args]
        plan = self.mpirun(ranks, "plan", *options)
        self.assert_code(plan, 0)
        number, unit = re.search(r"results file about ([\d.]+) (\w+)", plan.stdout).groups()
        run = harness.execute([harness.MPIEXEC, "-n", str(ranks), harness.ASSAY, "run", *options, "--out", "r.h5"], self.dir, timeout=timeout)
        self.assertIn(run.returncode, (0, 2, 3), run.stderr)
        if " skipped=0 " not in run.stdout:
            self.skipTest("noise: no time for all planned cases: " + re.search(r"planned=.*", run.stdout).group())
        size, fewest = foreseen(self.dir / "r.h5")
        if fewest < 0.7 * samples:
            self.skipTest(f"noise: {fewest} of {samples} samples in the time there was")
        ratio = float(number) * UNITS[unit] / size
        self.assertTrue(0.7 < ratio < 1.3, f"{ratio:.2f}: {number} {unit} planned, {size} bytes written")

    def test_a_file_of_few_ranks(self):
        self.check(2, "quick", "--suites", "p2p,allreduce", samples=0)

    @unittest.skipUnless(outcome.NIGHTLY, "nightly: several minutes")
    def test_a_file_of_level_standard(self):
        self.check(2, "standard", "--suites", "p2p", "--p2p.transport", "mpi", samples=500, timeout=1000)


if __name__ == "__main__":
    harness.main()
