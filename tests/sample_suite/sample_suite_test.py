#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A suite from a folder of its own: run, judged, reported, simulated and exported, with no other file touched."""

import csv
import json
import os
import shutil

import outcome

try:
    import h5py
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")

import harness

PASS, FAIL, INCONCLUSIVE, USAGE = 0, 2, 3, 4


class SampleSuite(harness.CliTest):
    def measure(self, out, *args, ranks=2):
        return self.mpirun(ranks, "run", "--level", "smoke", "--suites", "inventory,sample", "--seed", "7", "--quiet",
                           "--out", out, "--json", "v.json", "--force", *args)

    def test_all_ranks_must_run_the_same_program(self):
        run = ["run", "--level", "smoke", "--suites", "inventory", "--quiet", "--out", "r.h5"]
        both = [harness.MPIEXEC, "-n", "1", harness.ASSAY, *run, ":", "-n", "1", os.environ["ASSAY_PLAIN"], *run]
        result = harness.execute(both, self.dir, None)
        self.assert_code(result, USAGE)
        self.assertIn("rank 1 differs from rank 0 in executable: all ranks must run the same executable", result.stderr)
        self.assertFalse((self.dir / "r.h5").exists())

    def findings(self):
        return json.loads((self.dir / "v.json").read_text())["findings"]

    def test_it_is_listed(self):
        self.assertIn("sample/sum:bandwidth", self.assay("list", "metrics").stdout)
        self.assertIn("--sample.unproven", self.assay("run", "--help").stdout)

    def test_run_describes_itself_in_the_file(self):
        result = self.measure("r.h5")
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
        with h5py.File(self.dir / "r.h5") as file:
            case = file["cases/sample/sum-together"]
            self.assertEqual(case.attrs["operation"], "sum")
            bandwidth = case["bandwidth"].attrs
            self.assertEqual((bandwidth["class"], bandwidth["floor"], bandwidth["shared_by"]), ("memory", "memory_channels", "none"))
            self.assertEqual((bandwidth["fault_threshold"], bandwidth["weight"]), (0.04, 2))
            self.assertEqual(bandwidth["title"], "bytes summed in a second")
            plan = {name: i for i, name in enumerate(file["plan/suite"].asstr()[:])}
            self.assertEqual(file["plan/checkers"].asstr()[plan["sample"]], "sums")
            self.assertEqual(file["plan/targets"].asstr()[plan["sample"]], "sum")
            self.assertEqual(file["plan/checkers"].asstr()[plan["inventory"]], "-")
            self.assertIn("sums", file["selftest/checker"].asstr()[:])

    def test_without_its_self_test_nothing_is_believed(self):
        result = self.measure("r.h5", "--sample.unproven")
        self.assert_code(result, INCONCLUSIVE)
        self.assertRegex(result.stdout, r"self-test\b.*\bsums\b")

    def test_an_injected_fault_is_found(self):
        result = self.measure("r.h5", "--inject", "bitflip:target=sum,rank=1,step=0")
        self.assert_code(result, FAIL)
        corrupt = [f for f in self.findings() if f["kind"] == "corrupt"]
        self.assertTrue(corrupt and corrupt[0]["suite"] == "sample", self.findings())
        result = self.measure("x.h5", "--inject", "bitflip:target=summ")
        self.assert_code(result, USAGE)
        self.assertIn("one of", result.stderr)
        self.assertIn(", sum", result.stderr)

    def test_a_limit_judges_it(self):
        self.write("limits.toml", '[[limit]]\nmetric = "sample/*:bandwidth"\nmin = "1000 TB/s"\n')
        self.measure("r.h5")
        result = self.assay("verdict", "r.h5", "--limits", "limits.toml", "--json", "v.json")
        self.assert_code(result, FAIL)
        self.assertTrue(any(f["suite"] == "sample" and f["reference_kind"] == "limit" for f in self.findings()))
        self.write("limits.toml", '[[limit]]\nmetric = "sample/*:bandwidt"\nmin = "1 B/s"\n')
        self.assert_code(self.measure("x.h5", "--limits", "limits.toml"), USAGE)

    def test_a_physical_floor_judges_it(self):
        self.measure("r.h5")
        for bytes_per_s, below in ((1e15, True), (1e6, False)):
            shutil.copy(self.dir / "r.h5", self.dir / "f.h5")
            with h5py.File(self.dir / "f.h5", "r+") as file:
                file["inventory/node/memory_bandwidth_bytes_per_s"][:] = bytes_per_s
                stored = set(file["events/finding"].asstr()[:])
            if "uncovered" in stored:
                self.skipTest("cores without a rank: no floor is judged here")
            self.assay("verdict", "f.h5", "--json", "v.json")
            physical = [f for f in self.findings() if f["suite"] == "sample" and f["reference_kind"] == "physical"]
            self.assertEqual(bool(physical), below, self.findings())

    def test_it_is_exported_and_inspected(self):
        self.measure("r.h5")
        self.assertIn("sum-together", self.assay("inspect", "r.h5").stdout)
        result = self.assay("export", "r.h5", "--csv")
        rows = [r for r in csv.reader(result.stdout.splitlines()) if "sample" in r and "bandwidth" in r]
        self.assertGreaterEqual(len(rows), 2, "a sample of each rank")

    def test_it_is_simulated(self):
        options = ["--nodes", "16", "--devices-per-node", "2", "--metrics", "sample", "--force"]
        self.assert_code(self.assay("simulate", "-o", "s.h5", *options), PASS)
        result = self.assay("simulate", "-o", "s.h5", *options, "--fault", "slow:node=5,device=1,percent=20")
        self.assert_code(result, FAIL)
        self.assertIn("sim05/gpu1: sample/sum:bandwidth", result.stdout)
        self.assertIn("4.0 %", result.stdout, "the threshold that the suite declares")


if __name__ == "__main__":
    outcome.main()
