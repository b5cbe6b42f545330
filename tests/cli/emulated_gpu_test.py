# SPDX-License-Identifier: Apache-2.0
"""assay on GPUs, without one: devices, products, memory, burns."""

import json
import os
import pathlib
import re
import statistics
import subprocess

import emulated
import fake_gpus
import harness

# Small matrices: the emulation multiplies one element after the other.
GEMM = ["run", "--device", "cuda", "--suites", "gemm", "--gemm.sizes", "64", "--quiet", "--out", "r.h5"]


class Emulated(emulated.EmulatedTest):
    def test_list_names_the_gpus(self):
        self.assertRegex(self.assay("list", "devices", env=self.env).stdout, r"cuda +built: .*2 GPUs[\s\S]*0000:17:00.0")
        none = self.write("none.json", json.dumps({"driver": "580.0", "nodes": {"*": []}}))
        without = self.assay("list", "devices", env={"ASSAY_FAKE_GPUS": str(none)})
        self.assertRegex(without.stdout, r"cuda +built: [\s\S]*no\s+GPU\s+is\s+used\s+here")

    def test_gpus_that_are_not_there_are_asked_for(self):
        empty = self.write("none.json", json.dumps({"driver": "580.0", "nodes": {"*": []}}))
        result = self.run_on(1, *GEMM, env={"ASSAY_FAKE_GPUS": str(empty)})
        self.assert_code(result, 4)
        self.assertIn("--device", result.stderr)
        self.assertFalse((self.dir / "r.h5").exists())

    def test_a_run_starts_a_rank_for_each_gpu_itself(self):
        result = self.assay(*GEMM, "--gemm.dtypes", "fp64", "--level", "smoke", env=self.env)
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            self.assertEqual(sorted(rank for rank, kind in zip(file["entities/rank"][:], file["entities/kind"][:]) if kind == b"device"), [0, 1])

    def test_every_type_is_right_and_the_algorithm_is_one(self):
        types = harness.share(["fp64", "bf16", "fp8_e5m2", "fp8", "fp32", "tf32", "fp16", "int8"], 3)  # each is tested alone in tests/kernels
        result = self.run_on(2, *GEMM, "--gemm.dtypes", ",".join(types), "--level", "quick")
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            self.assertEqual([n.split("/")[-1] for n in self.device_names(file)], ["gpu0", "gpu1"])
            cases = file["cases/gemm"]
            for dtype in types:
                case = cases[f"{dtype}-n64-together"]
                self.assertEqual(case.attrs["state"], b"pass" if isinstance(case.attrs["state"], bytes) else "pass", dtype)
                self.assertRegex(str(case["parameters"].attrs["algorithm"]), r"id=\d+ .*splitk=1 reduction=0")
                self.assertGreaterEqual(int(case["parameters"].attrs["algorithms_tried"]), 32)
                digests = case["digest"][:]
                self.assertEqual(digests[0], digests[1], dtype)
                self.assertGreater(case["clock"][0, 0], 1e8)
                self.assertEqual(cases[f"{dtype}-exact-n512"]["errors"][:].max(), 0, dtype)
            self.assertEqual(len(self.miscompares(file)), 0)
            tests = file["selftest"]
            self.assertEqual(tests["caught"][:].tolist(), tests["injected"][:].tolist())
            self.assertEqual(tests["located"][:].tolist(), tests["injected"][:].tolist())

    def test_types_that_a_gpu_lacks_are_left_out_without_nvml(self):
        gpus = fake_gpus.small()
        for gpu in gpus["nodes"]["*"]:
            gpu["compute"] = "8.0"
        path = self.write("older.json", json.dumps(gpus))
        result = self.run_on(1, *GEMM, "--gemm.dtypes", "fp8,int8", "--level", "smoke", env={"ASSAY_FAKE_GPUS": str(path)})
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            states = {name.split("-")[0]: str(case.attrs["state"]).strip("b'") for name, case in file["cases/gemm"].items()}
            self.assertEqual(states, {"int8": "pass"})
            self.assertIn("8.0", [str(text).strip("b'") for text in file["inventory/device/compute_capability"][:]])

    def test_memory_is_tested_without_the_library_of_products(self):
        without = {"ASSAY_CUBLASLT_LIBRARY": "/nonexistent/libcublasLt.so"}
        memory = ["--memory.fraction", "0.1", "--memory.patterns", "own-address", "--quiet", "--out", "r.h5", "--force"]
        result = self.run_on(1, "run", "--device", "cuda", "--level", "smoke", "--suites", "memory,gemm,train", *memory, env=without)
        self.assert_code(result, 3)
        self.assertRegex(" ".join(result.stdout.split()), r"/nonexistent/libcublasLt.so.* [1-9]\d* cases")
        with self.open() as file:
            states = {suite: {str(case.attrs["state"]).strip("b'") for case in file["cases"][suite].values()} for suite in file["cases"]}
        self.assertEqual(set(states), {"memory"})
        self.assertIn("pass", states["memory"])
        self.assertLessEqual(states["memory"], {"pass", "skip"}, "a busy machine may lack the time for all")
        # All of its cases.
        alone = self.run_on(1, "run", "--device", "cuda", "--level", "smoke", "--suites", "memory", *memory, env=without)
        self.assert_code(alone, 0)
        # Where others have it, the GPU without it is named and left out.
        command = [harness.ASSAY, "run", "--device", "cuda", "--level", "smoke", "--suites", "memory", "--cases", "memory/pattern-*", *memory]
        one = ["-n", "1", "env", "ASSAY_CUBLASLT_LIBRARY=/nonexistent/libcublasLt.so", *command]
        self.assert_code(harness.execute([harness.MPIEXEC, *one, ":", "-n", "1", *command], self.dir, self.env), 2)
        with self.open() as file:
            self.assertEqual(len(file["cases/memory/pattern-own-address-together/bandwidth"]), 1)
            self.assertIn("cannot be used", " ".join(str(text) for text in file["events/text"][:]))

    def test_an_algorithm_that_does_not_run_is_passed_over(self):
        for bad in ("0", "6"):  # the library's first choice, and another one
            result = self.run_on(1, *GEMM, "--force", "--gemm.dtypes", "bf16", "--level", "quick", env={"ASSAY_EMULATED_BAD_ALGORITHM": bad})
            self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
            with self.open() as file:
                case = file["cases/gemm/bf16-n64-together"]["parameters"]
                self.assertNotRegex(str(case.attrs["algorithm"]), rf"id={bad} ")
                self.assertGreaterEqual(int(case.attrs["algorithms_tried"]), 31)

    def test_a_flipped_bit_of_a_product_is_found_where_it_is(self):
        result = self.run_on(2, *GEMM, "--gemm.dtypes", "bf16", "--level", "smoke", "--inject",
                             "bitflip:target=gemm,rank=1,case=*exact*,word=777,bit=3")
        self.assert_code(result, 2)
        with self.open() as file:
            self.assertEqual(self.miscompares(file), [("gemm/bf16-exact-n512", "gpu1", 777, 8)])
        self.assertIn("gpu1", result.stdout)

    def test_memory_patterns_pass_and_a_flipped_bit_is_located(self):
        args = ["run", "--device", "cuda", "--suites", "memory", "--level", "smoke", "--quiet", "--out", "r.h5", "--memory.fraction", "0.1"]
        result = self.run_on(1, *args, "--inject", "bitflip:target=memory,rank=0,case=*pattern*,word=4242,bit=17")
        self.assert_code(result, 2)
        with self.open() as file:
            found = self.miscompares(file)
            places = [file["errors"][column][:].tolist() for column in ("sm", "warp", "lane")]
            pattern = next(case for name, case in file["cases/memory"].items() if name.startswith("pattern-"))
            own, rate = float(pattern["own_bandwidth"][0]), statistics.median(pattern["bandwidth"][0].tolist())
            self.assertAlmostEqual(float(pattern["efficiency"][0]), rate / own, places=6)
            self.assertIn("copy of the region", str(pattern["parameters"].attrs["own_bandwidth_from"]), "smoke has no copy-together")
        for column in places:
            self.assertTrue(column and min(column) >= 0 and max(column) < 32, f"multiprocessors, warps and lanes: {places}")
        self.assertEqual({(gpu, xor) for _, gpu, _, xor in found}, {("gpu0", 1 << 17)})

    def test_an_emulation_is_planned_at_its_own_speed(self):
        result = self.run_on(1, "plan", "--device", "cuda", "--suites", "memory", "--level", "quick", "--memory.patterns", "walking-32")
        self.assert_code(result, 0)
        agreed, used = (float(re.search(line + r" ([0-9.]+) MiB", result.stdout)[1])
                        for line in ("memory per rank:", "pattern-walking-32-together .*"))
        self.assertLess(used, agreed, "20 s move 128 times all of it on a GPU, not here")

    def test_what_a_killed_run_left_in_shared_memory_goes_with_the_next(self):
        shared = pathlib.Path("/dev/shm")
        dead = subprocess.Popen(["true"])
        dead.wait()
        gone = [shared / f"assay-emulated-{dead.pid}-0", shared / f"assay-nccl-{dead.pid}-0123abcd"]
        kept = [shared / f"assay-emulated-{os.getpid()}-0", shared / f"assay-emulated-{dead.pid}"]
        for path in gone + kept:
            path.write_bytes(b"x")
            self.addCleanup(path.unlink, missing_ok=True)
        result = self.run_on(1, *GEMM, "--gemm.dtypes", "bf16", "--level", "smoke")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        self.assertEqual([p.name for p in gone if p.exists()], [])
        self.assertEqual([p.name for p in kept if not p.exists()], [], "of a process that lives, and of something else")

    def test_a_sick_gpu_is_left_out_and_the_others_are_measured(self):
        """Its rank meets the error alone, during set-up: nobody may wait for it in a collective operation."""
        for fault, code, words in [("lost", 2, "cannot be described"), ("ecc", 2, "uncorrectable ECC error"), ("busy", 0, "busy or unavailable")]:
            with self.subTest(fault=fault):
                gpus = fake_gpus.small()
                gpus["nodes"]["*"][1]["fault"] = fault
                path = self.write(f"{fault}.json", json.dumps(gpus))
                result = self.run_on(2, *GEMM, "--force", "--gemm.dtypes", "bf16", "--level", "smoke", env={"ASSAY_FAKE_GPUS": str(path)})
                self.assert_code(result, code)
                said = " ".join(result.stdout.split())
                self.assertIn(words, said)
                self.assertIn("the run continues without it", said)
                with self.open() as file:
                    names = [n.decode().split("/")[-1] for n in file["entities/name"][:]]
                    self.assertEqual([names[e] for e in file["cases/gemm/bf16-n64-together/entity"][:]], ["gpu0"])
                    self.assertEqual(str(file["cases/gemm/bf16-n64-together"].attrs["state"]).strip("b'"), "pass")
                    self.assertEqual(str(file.attrs["state"]).strip("b'"), "complete")

    def test_a_gpu_in_use_is_a_gap_where_all_must_be_covered(self):
        gpus = fake_gpus.small()
        gpus["nodes"]["*"][1]["fault"] = "busy"
        path = self.write("busy.json", json.dumps(gpus))
        result = self.run_on(2, *GEMM, "--gemm.dtypes", "bf16", "--level", "smoke", "--require", "coverage", env={"ASSAY_FAKE_GPUS": str(path)})
        self.assert_code(result, 3)

    def test_no_gpu_that_can_be_used(self):
        gpus = fake_gpus.small()
        for gpu in gpus["nodes"]["*"]:
            gpu["fault"] = "ecc"
        path = self.write("sick.json", json.dumps(gpus))
        result = self.run_on(2, *GEMM, "--level", "smoke", env={"ASSAY_FAKE_GPUS": str(path)})
        self.assert_code(result, 3)
        self.assertIn("no GPU can be used", result.stderr)
        self.assertFalse((self.dir / "r.h5").exists())

    def test_surplus_ranks_rest_and_sharing_is_asked_for(self):
        result = self.run_on(3, *GEMM, "--gemm.dtypes", "bf16", "--level", "smoke")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        with self.open() as file:
            self.assertEqual(len(self.device_names(file)), 2)
        (self.dir / "r.h5").unlink()
        result = self.run_on(3, *GEMM, "--gemm.dtypes", "bf16", "--level", "smoke", "--share-gpus")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        with self.open() as file:
            self.assertGreaterEqual(len(file["cases/gemm/bf16-n64-together/entity"][:]), 3)

    def with_energy(self):
        """The library of a driver whose GPUs use 40 W, and 200 W more for each processor that their process keeps busy."""
        gpus = fake_gpus.small()
        for gpu in gpus["nodes"]["*"]:
            gpu["energy_j"] = {"start": 0, "rate": 40, "busy": 200}
        path = self.write("energy.json", json.dumps(gpus))
        return {"ASSAY_FAKE_GPUS": str(path), "ASSAY_NVML_LIBRARY": os.environ["ASSAY_FAKE_NVML"]}

    def test_a_burn_keeps_gpu_links_and_host_busy_and_verifies_all(self):
        args = ["run", "--device", "cuda", "--suites", "burn", "--level", "smoke", "--burn.size", "64", "--burn.duration", "4s", "--burn.memory", "2MiB", "--burn.message", "64KiB",
                "--quiet", "--out", "r.h5"]
        result = self.run_on(2, *args, env=self.with_energy())
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            case = file["cases/burn/mixed-together"]
            self.assertEqual(case["parameters"].attrs["parts"], "compute,memory,links,host")
            self.assertRegex(str(case["parameters"].attrs["path"]), "nccl")
            for metric in ("throughput", "bandwidth", "busbw", "host_throughput"):
                self.assertGreater(harness.taken(self, case, metric).max(), 0, metric)
            self.assertEqual(case["errors"][:].max(), 0)
            self.assertGreater(harness.taken(self, case, "power").min(), 40)
            self.assertEqual(len(set(case["digest"][:].tolist())), 1)
            for column in ("injected", "caught", "located", "counted"):
                self.assertEqual(file["selftest"][column][:].tolist(), [5, 5], column)
        for target in harness.share(["allreduce", "gemm", "memory"], 1):
            with self.subTest(target=target):
                result = self.run_on(2, *args, "--force", "--burn.parts", "compute,memory,links", "--inject", f"bitflip:target={target},rank=1")
                self.assert_code(result, 2)
                with self.open() as file:
                    self.assertEqual({gpu for _, gpu, _, _ in self.miscompares(file)}, {"gpu1"})

    def test_the_power_swing_of_pulses_is_measured(self):
        result = self.run_on(1, "run", "--device", "cuda", "--suites", "burn", "--cases", "pulse*", "--burn.pulse", "1", "--burn.size", "64", "--burn.dtype", "fp32",
                             "--level", "smoke", "--burn.duration", "11s", "--burn.memory", "2MiB", "--quiet", "--out", "r.h5", env=self.with_energy())
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            case = file["cases/burn/pulse-1000ms-d50-together"]
            # At rest nothing keeps the processor busy but what looks at the counters.
            self.assertLess(case["power_low"][0], 80)
            # Others may use the processor too.
            self.assertGreater(case["power_high"][0], case["power_low"][0] + 20)
            self.assertAlmostEqual(case["power_swing"][0], case["power_high"][0] - case["power_low"][0])
            self.assertEqual(case["errors"][:].max(), 0)

    def test_rates_are_held_against_what_the_driver_says_of_the_gpu(self):
        gpus = fake_gpus.small()
        bounds = {"slow": {"generation_max": 1, "width_max": 1}, "fast": {"generation_max": 6, "width_max": 16}}
        for speed, bound in bounds.items():
            for gpu in gpus["nodes"]["*"]:
                gpu["pcie"] = bound
            path = self.write(speed + ".json", json.dumps(gpus))
            with self.subTest(speed):
                result = self.run_on(1, "run", "--device", "cuda", "--suites", "memory", "--cases", "memory/h2d-*-together", "--level",
                                     "smoke", "--force", "--out", "r.h5", env={"ASSAY_FAKE_GPUS": str(path), "ASSAY_NVML_LIBRARY": os.environ["ASSAY_FAKE_NVML"]})
                said = " ".join(result.stdout.split())
                with self.open() as file:
                    if "memory" not in file["cases"] and "the system gave out no more" in said:
                        self.skipTest("noise: on this busy machine memory came too slowly for these copies")
                    shares = [case["bound_share"][0] for case in file["cases/memory"].values() if "bound_share" in case]
                self.assertGreaterEqual(len(shares), 1, result.stdout)
                if speed == "slow":  # an emulated GPU is faster than these
                    self.assertGreater(min(shares), 1)
                    self.assertNotIn("physical floor", said)
                    self.assertNotIn("% of PCIe generation x lanes", said)  # more than all of it is no share
                else:
                    self.assertLess(max(shares), 0.6)
                    self.assertRegex(said, "(FAIL|WARN) vm/gpu0: memory/h2d.* physical floor")
                    self.assertIn("% of PCIe generation x lanes", said)

    def test_products_have_a_price_in_clocks_and_watts(self):
        result = self.run_on(1, *GEMM, "--gemm.dtypes", "bf16", "--gemm.modes", "together", "--gemm.sustained", "3s", "--level", "quick", env=self.with_energy())
        self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
        with self.open() as file:
            case = file["cases/gemm/bf16-sustained-n64-together"]
            rate = sorted(case["throughput"][0])[case["throughput"].shape[1] // 2]
            self.assertGreater(case["power"][0], 40)
            self.assertLess(abs(case["per_watt"][0] * case["power"][0] / rate - 1), 0.2)
            self.assertGreater(case["per_clock"][0], 0)


if __name__ == "__main__":
    harness.main()
