# SPDX-License-Identifier: Apache-2.0
"""GPUs in inventory, counters, telemetry and verdict, without one: the library of the driver is a fake that reads a file."""

import json
import math
import os
import statistics
import threading
import time

import fake_gpus
import harness

FAKE = os.environ["ASSAY_FAKE_NVML"]
# A case of three seconds, in which something can happen. A stall is a fault made on purpose: without another finding such a run is open.
RUN = ["run", "--suites", "inventory,selftest", "--inject", "stall:seconds=0.6,duty=1,suite=selftest", "--quiet", "--telemetry-hz", "5",
       "--out", "r.h5"]


class GpuTest(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.gpus = fake_gpus.h100()
        self.env = {"ASSAY_NVML_LIBRARY": FAKE, "ASSAY_FAKE_GPUS": str(self.dir / "gpus.json")}
        self.save()

    def gpu(self, index):
        return self.gpus["nodes"]["*"][index]

    def save(self):
        self.write("new.json", json.dumps(self.gpus)).rename(self.dir / "gpus.json")

    def during_the_case(self, change):
        """Calls `change` a second after the first case, the inventory, has ended."""
        def wait():
            while not (self.dir / "r.h5.partial" / "cases" / "000000.h5").exists():
                time.sleep(0.05)
            time.sleep(1)
            change()
            self.save()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)

    def table(self, path, *columns):
        """Rows of a table; an entity by its name below its node."""
        import h5py
        with h5py.File(self.dir / "r.h5") as file:
            names = [name.decode() for name in file["entities/name"]]
            data = []
            for column in columns:
                values = [value.decode() if isinstance(value, bytes) else value for value in file[path][column][:]]
                data.append([names[int(v)].split("/", 1)[-1] for v in values] if column == "entity" else values)
        return list(zip(*data))

    def counters(self, case):
        return {(entity, counter): (before, after) for name, entity, counter, before, after
                in self.table("counters", "case", "entity", "counter", "before", "after") if name == case}


class Inventory(GpuTest):
    def test_gpus_are_in_the_inventory_and_belong_to_nobody(self):
        self.assert_code(self.mpirun(2, "run", "--suites", "inventory", "--quiet", "--out", "r.h5", env=self.env), 0)
        rows = {row[0]: row[1:] for row in self.table("inventory/device", "entity", "device_kind", "model", "uuid_info", "pci_info", "nvlinks_up")}
        self.assertEqual(rows["gpu1"], ("gpu", "NVIDIA H100 80GB HBM3", self.gpu(1)["uuid"], "0000:3d:00.0", 18))
        self.assertEqual({row[0] for row in rows.values()}, {"host", "gpu"})
        entities = {row[0].split("/")[-1]: row[1:] for row in self.table("entities", "name", "id", "id_source", "rank")}
        self.assertEqual(entities["gpu0"], (self.gpu(0)["uuid"], "uuid", -1))
        states = dict(self.table("verdict/entities", "entity", "state"))
        self.assertEqual(states["gpu0"], "NOT_TESTED")
        # No rank can use them here: not covered, and no PASS where all must be.
        import h5py
        with h5py.File(self.dir / "r.h5") as file:
            self.assertIn(b"uncovered", list(file["verdict/findings/kind"][:]))
        inventory = ["run", "--suites", "inventory", "--require", "coverage", "--quiet", "--out", "all.h5"]
        self.assert_code(self.assay(*inventory, env=self.env), 3)
        self.assert_code(self.assay(*inventory, "--force", "--device", "host", env=self.env), 0)
        environment = {key: value for key, value in self.table("environment", "key", "value")}
        self.assertEqual(environment["nvidia.driver"], "580.65.06")
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)

    def test_without_a_library_nothing_changes(self):
        env = {"ASSAY_NVML_LIBRARY": "", "ASSAY_FAKE_GPUS": ""}
        self.assert_code(self.assay("run", "--suites", "inventory", "--quiet", "--out", "r.h5", env=env), 0)
        self.assertNotIn("gpu0", {row[0] for row in self.table("entities", "name")})
        import h5py
        with h5py.File(self.dir / "r.h5") as file:
            self.assertNotIn("device_kind", file["inventory/device"])
            self.assertNotIn("gpus", file["inventory/node"])

    def test_a_gpu_that_does_not_answer_is_a_finding(self):
        self.gpu(1)["no_handle"] = True
        self.save()
        result = self.assay("run", "--suites", "inventory", "--quiet", "--out", "r.h5", env=self.env)
        self.assert_code(result, 2)
        self.assertIn("GPU 1 of the driver", result.stdout)

    def test_a_library_that_cannot_be_loaded_is_told(self):
        result = self.assay("run", "--suites", "inventory", "--quiet", "--out", "r.h5", env={**self.env, "ASSAY_NVML_LIBRARY": "/nowhere/nvml.so"})
        self.assert_code(result, 0)
        self.assertIn("cannot load /nowhere/nvml.so", " ".join(result.stdout.split()))


class WhileARunLasts(GpuTest):
    def test_counters_telemetry_and_an_xid(self):
        def change():
            self.gpu(1)["ecc"]["corrected"] = 3
            self.gpu(1)["throttle_reasons"] = 4
            self.gpu(1)["events"] = [{"xid": 79}]

        self.gpu(0).pop("nvlink")
        self.save()
        self.during_the_case(change)
        result = self.mpirun(2, *RUN, env=self.env)
        self.assert_code(result, 2)
        self.assertRegex(" ".join(result.stdout.split()), r"FAIL \S+/gpu1: Xid 79\b")

        first, second = self.counters("inventory/node"), self.counters("selftest/pass")
        self.assertEqual(first["gpu1", "nvml_ecc_uncorrected"], (0, 0))
        self.assertTrue(all(math.isnan(value) for value in first["gpu0", "nvml_nvlink_replay"]), "unsupported is not 0")
        self.assertEqual(second["gpu1", "nvml_ecc_corrected"], (0, 3))
        self.assertEqual(second["gpu1", "xid_79"], (0, 1))
        before, after = second["gpu0", "nvml_energy_j"]
        self.assertGreater(after - before, 2.5 * 350)
        self.assertNotIn(("gpu0", "nvml_ecc_corrected"), second)
        events = [text for kind, text in self.table("events", "kind", "text") if kind == "xid"]
        self.assertEqual(len(events), 1)
        self.assertIn("/gpu1: Xid 79", events[0])

        rows = [row[1:] for row in self.table("telemetry/samples", "entity", "t", "power", "sm_clock", "temperature", "memory_temperature")
                if row[0] == "gpu1"]
        self.assertGreaterEqual(len(rows), 8)
        self.assertLessEqual(len(rows), 40)
        self.assertEqual([row[0] for row in rows], sorted(row[0] for row in rows))
        self.assertAlmostEqual(statistics.median(row[1] for row in rows[1:]), 320, delta=40)
        for row in rows[1:]:
            self.assertEqual(row[2], 1.98e9)
            self.assertAlmostEqual(row[3], 273.15 + 39)
            self.assertAlmostEqual(row[4], 273.15 + 46)
        flags = [row[1:] for row in self.table("telemetry/flags", "t", "entity", "flag", "value") if row[1] == "gpu1"]
        self.assertEqual(flags, [("gpu1", "idle", 1), ("gpu1", "idle", 0), ("gpu1", "sw_power_cap", 1)])
        self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        self.assertIn("telemetry", self.assay("inspect", "r.h5").stdout)
        self.assert_code(self.assay("verdict", "r.h5"), 2)

    def test_uncorrectable_errors_fail_and_heat_warns(self):
        def change():
            self.gpu(0)["ecc"]["uncorrected"] = 1
            self.gpu(1)["violations_ns"]["hw_thermal"] = 400000000

        self.during_the_case(change)
        result = self.assay(*RUN, env=self.env)
        self.assert_code(result, 2)
        text = " ".join(result.stdout.split())
        self.assertRegex(text, r"FAIL \S+/gpu0: 1 memory errors that ECC could not correct")
        self.assertRegex(text, r"WARN \S+/gpu1: heat .* 0.4 s in 1 case")

    def test_a_driver_that_hangs_does_not_hang_the_run(self):
        def change():
            self.gpu(1)["temperature_c"] = {"hang_s": 60}

        self.during_the_case(change)
        begin = time.monotonic()
        result = self.assay(*RUN, env=self.env)
        self.assertLess(time.monotonic() - begin, 30)
        self.assert_code(result, 3)
        self.assertIn("could not be read after", " ".join(result.stdout.split()))

    def test_required_counters_must_be_there(self):
        self.gpu(1)["ecc"].pop("uncorrected")
        self.save()
        result = self.assay("run", "--suites", "inventory", "--require", "nvml_ecc_uncorrected", "--quiet", "--out", "r.h5", env=self.env)
        self.assert_code(result, 3)
        self.assertIn("gpu1 is unsupported", " ".join(result.stdout.split()))

    def test_no_telemetry_where_none_is_wanted(self):
        self.assert_code(self.assay("run", "--suites", "inventory", "--telemetry-hz", "0", "--quiet", "--out", "r.h5", env=self.env), 0)
        import h5py
        with h5py.File(self.dir / "r.h5") as file:
            self.assertNotIn("telemetry", file)


class Options(harness.CliTest):
    def test_wrong_values(self):
        self.assert_error(["run", "--telemetry-hz", "20"], "--telemetry-hz: 20 0 0.1 10")
        self.assert_error(["run", "--telemetry-hz", "-1"], "--telemetry-hz:")
        self.assert_error(["run", "--share-gpus", "--device", "host"], "--share-gpus: --device host")


if __name__ == "__main__":
    harness.main()
