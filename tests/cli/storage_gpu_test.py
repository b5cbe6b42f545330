#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files between storage and the memory of GPUs through cuFile, both emulated (tests/emulation/cufile.cpp)."""

import json
import os

import fake_gpus
import harness
from storage_runs import FAIL, INCONCLUSIVE, PASS, StorageTest

CASES = {"write": "gds-write-0", "read": "gds-read-0"}


class Gpus(StorageTest):
    def setUp(self):
        super().setUp()
        self.stats = self.write("stats", "IO stats: Enabled\nReads : readMiB=0\nWrites : writeMiB=0\nbytes 0 0\n")
        self.env = {"ASSAY_FAKE_GPUS": str(self.write("gpus.json", json.dumps(fake_gpus.small()))), "ASSAY_NVML_LIBRARY": "/nonexistent",
                    "ASSAY_NVIDIA_FS_STATS": str(self.stats)}

    def gpus(self, *args, cases="storage/gds-*", **env):
        return self.mpirun(2, *self.arguments("--device", "cuda", "--cases", cases, *args, level="quick"), env={**self.env, **env})

    def rates(self, direction):
        """The name under which this direction has rates, and what else its row says."""
        parameters, values = self.case(CASES[direction])
        names = [name for name in values if name.startswith("bandwidth") and any(v > 0 for v in values[name])]
        self.assertEqual(len(names), 1, values)
        return names[0], parameters, values

    def test_what_goes_to_gpus_is_measured_and_checked_there(self):
        result = self.gpus()
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertEqual(self.assay("schema", "--check", "r.h5").returncode, 0)
        for direction in CASES:
            name, parameters, values = self.rates(direction)
            self.assertIn(name, ("bandwidth", "bandwidth_cached"), "cached where the directory has no disk")
            self.assertEqual(parameters["engine"], "cufile")
            self.assertGreaterEqual(values["direct_share"][0], 0.95)
            self.assertEqual(values["errors"][0], 0)
            self.assertGreater(values["verified"][0], 0)
        self.assertEqual(list(self.data.iterdir()), [])
        result = self.gpus("--inject", "bitflip:target=disk,rank=1,step=1", cases="storage/gds-read-0")
        self.assert_code(result, FAIL)
        self.assertEqual(self.case("gds-read-0")[1]["flipped"][0], 1)

    def test_a_read_without_effect_is_found(self):
        result = self.gpus(cases="storage/gds-read-0", EMULATED_CUFILE="idle")
        self.assert_code(result, FAIL)
        self.assertGreater(self.case("gds-read-0")[1]["foreign"][0], 131072)

    def test_only_a_way_that_is_proven_is_direct(self):
        uncounted = {"ASSAY_NVIDIA_FS_STATS": str(self.dir / "none" / "stats")}
        on_disk = os.major(os.stat(self.data).st_dev) != 0
        for settings, name, said in (({"EMULATED_CUFILE": "compat"}, "bandwidth_compat", "compatibility mode only"),
                                     ({"EMULATED_CUFILE": "late"}, "bandwidth_compat", "compatibility mode only"),
                                     ({"EMULATED_CUFILE": "forced"}, "bandwidth_compat", "compatibility mode only"),
                                     ({"EMULATED_CUFILE": "pretends"}, "bandwidth_unproven", "nvidia-fs moved 0.0 % of the bytes"),
                                     (uncounted, "bandwidth" if on_disk else "bandwidth_unproven", "" if on_disk else "nothing shows")):
            result = self.gpus(**settings)
            self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
            for direction in CASES:
                self.assertIn(self.rates(direction)[0], (name, "bandwidth_cached"), settings)
            if said:
                self.assertIn(said, self.events("storage-not-direct")[0])
            else:
                self.assertEqual(self.events("storage-not-direct"), [])
        result = self.gpus("--storage.page-cache", "through", cases="storage/gds-write-0", **uncounted)
        self.assertIn(result.returncode, (PASS, INCONCLUSIVE), result.stdout + result.stderr)
        self.assertIn(self.rates("write")[0], ("bandwidth_unproven", "bandwidth_cached"))

    def test_an_error_of_cufile_is_none_of_the_storage(self):
        result = self.gpus(cases="storage/gds-read-0", EMULATED_CUFILE="broken")
        self.assert_code(result, INCONCLUSIVE)
        self.assertIn("cuFile: error 5030 of a read", " ".join(result.stdout.split()))

    def test_a_gpu_that_fails_amid_training_steps_ends_that_case_alone(self):
        """At the first steps, and while a thread of its rank reads or writes; the other rank waits for the sum of gradients."""
        long_writes = ("--inject", "stall:rank=1,seconds=3s,suite=storage")
        for case, waits, args in (("feed-0", 12, ()), ("feed-0", 40, ()), ("checkpoint-0", 48, long_writes)):
            with self.subTest(case=case, waits=waits):
                gpus = fake_gpus.small()
                gpus["nodes"]["*"][1]["fault"] = f"wait{waits}"
                result = self.gpus(*args, cases=f"storage/{case}", ASSAY_FAKE_GPUS=str(self.write("failing.json", json.dumps(gpus))))
                self.assert_code(result, INCONCLUSIVE)
                said = " ".join(result.stdout.split())
                self.assertRegex(said, rf"storage/{case} ended in error(?: on \S+)?: \S+/gpu1: [^:]+: uncorrectable ECC error")
                self.assertNotIn("hang", said)
                self.assertEqual(list(self.data.iterdir()), [])

    def test_the_case_is_not_applicable_where_one_rank_has_no_library(self):
        plan = ["plan", "--level", "quick", "--device", "cuda", "--suites", "storage", "--storage.paths", self.data]
        result = self.mpirun_with("ASSAY_CUFILE_LIBRARY=/nowhere.so", *plan, env=self.env)
        self.assert_code(result, PASS)
        self.assertRegex(result.stdout, r"storage/gds-read-0 +not applicable: .+: no cuFile: /nowhere.so")
        result = self.mpirun(2, *plan, env={**self.env, "ASSAY_CUFILE_LIBRARY": "/nowhere.so"})
        self.assertRegex(result.stdout, r"storage/gds-read-0 +not applicable: no cuFile: /nowhere.so")
        self.assertRegex(self.mpirun(2, *[{"cuda": "host"}.get(word, word) for word in plan]).stdout, "not applicable: no GPU is measured")


if __name__ == "__main__":
    harness.main()
