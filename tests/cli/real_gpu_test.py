# SPDX-License-Identifier: Apache-2.0
"""The program on the GPUs of this machine: every suite passes, faults made on purpose are found. Skips where there is no GPU."""

import os
import re
import unittest

import harness

EMULATED = "ASSAY_FAKE_GPUS" in os.environ  # for trying these tests themselves
SMALL = ["--gemm.sizes", "64", "--memory.fraction", "0.1", "--burn.size", "64", "--burn.memory", "2MiB", "--burn.message", "64KiB"] if EMULATED else []


def small(*suites):
    """Options of these suites that keep an emulation busy for seconds instead of hours."""
    return [word for i in range(0, len(SMALL), 2) if SMALL[i][2:].split(".")[0] in suites for word in SMALL[i:i + 2]]


class Gpu(harness.CliTest):
    def setUp(self):
        super().setUp()
        found = re.search(r"cuda +built: [\s\S]*?(\d+) GPU", self.assay("list", "devices").stdout)
        if not found:
            raise unittest.SkipTest("no GPU here")
        self.gpus = int(found[1])

    def run_suites(self, suites, *args):
        return self.mpirun(self.gpus, "run", "--device", "cuda", "--level", "smoke", "--suites", suites, "--quiet", "--force", "--out", "r.h5",
                           *small(*suites.split(",")), *args)

    def open(self):
        import h5py
        return h5py.File(self.dir / "r.h5")

    def wrong_devices(self):
        with self.open() as file:
            names = [n.decode().split("/")[-1] for n in file["entities/name"][:]]
            return {names[entity] for entity in file["errors/entity"][:]}

    def test_every_suite_passes(self):
        for suites in ("gemm", "memory", "p2p,allreduce", "burn"):
            with self.subTest(suites=suites):
                result = self.run_suites(suites)
                self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
                self.assertEqual(self.wrong_devices(), set())
                with self.open() as file:
                    states = [case.attrs["state"] for suite in suites.split(",") for case in file[f"cases/{suite}"].values()]
                    self.assertEqual(set(states), {"pass"})
                    tests = file["selftest"]
                    self.assertEqual(tests["located"][:].tolist(), tests["injected"][:].tolist())

    def test_a_flipped_bit_of_any_kind_is_found_on_its_gpu(self):
        for suite, target in (("gemm", "gemm"), ("memory", "memory"), ("burn", "gemm"), ("burn", "memory")):
            with self.subTest(suite=suite, target=target):
                result = self.run_suites(suite, "--inject", f"bitflip:target={target},rank=0")
                self.assert_code(result, 2)
                self.assertEqual(self.wrong_devices(), {"gpu0"})

    def test_pulses_swing_the_power(self):
        result = self.run_suites("burn", "--cases", "pulse*", "--burn.pulse", "2" if EMULATED else "1", "--burn.duration", "11s")
        self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
        with self.open() as file:
            case, = file["cases/burn"].values()
            self.assertEqual(case["errors"][:].max(), 0)
            self.assertLess(float(case["parameters"].attrs["edge_skew_s"]), 0.05 if EMULATED else 1e-3)
            if not EMULATED:
                self.assertGreater(case["power_swing"][:].min(), 50)


if __name__ == "__main__":
    harness.main()
