# SPDX-License-Identifier: Apache-2.0
"""assay between GPUs, without one: messages, copies, loads and sums."""

import json
import os
import re
import statistics
import unittest

import emulated
import fake_gpus
import harness
import outcome


class Emulated(emulated.EmulatedTest):
    def test_links_and_sums_between_gpus(self):
        args = ["run", "--device", "cuda", "--level", "smoke", "--quiet", "--force", "--out", "r.h5"]
        transports, passed = ["nccl", "cuda", "cuda-sm", "mpi"], set()
        for asked in (transports, *([one] for one in transports)):  # alone, each has the time of all of them
            left = [transport for transport in asked if transport not in passed]
            if not left:
                continue
            result = self.run_on(2, *args, "--suites", "p2p", "--p2p.transport", ",".join(left))
            self.assertIn(result.returncode, (0, 3), result.stderr + result.stdout)
            with self.open() as file:
                states = {name: str(c.attrs["state"]).strip("b'") for name, c in file["cases/p2p"].items()}
            self.assertLessEqual(set(states.values()), {"pass", "skip"}, "a busy machine has no time left for the last ones")
            passed |= {transport for transport in left if "pass" in [state for name, state in states.items() if name.endswith("-" + transport)]}
        if passed != set(transports):
            self.need_time()
        self.assertEqual(passed, set(transports), states)
        result = self.run_on(2, *args, "--suites", "allreduce,train", "--inject", "bitflip:target=allreduce,rank=1,case=*nccl*,word=5,bit=20")
        self.assert_code(result, 2)
        with self.open() as file:
            self.assertEqual({gpu for _, gpu, _, _ in self.miscompares(file)}, {"gpu1"})
            self.assertTrue(all("nccl" in case for case, *_ in self.miscompares(file)))
            self.assertEqual({str(c.attrs["state"]).strip("b'") for c in file["cases/train"].values()}, {"pass"})

    def test_copies_both_ways_at_once_are_checked_where_they_arrive(self):
        """What is written is wrong at the other GPU, what is read at the own one."""
        put, get = "bandwidth-put-bi-65536-node-cuda", "bandwidth-get-bi-65536-node-cuda-sm"
        result = self.run_on(2, "run", "--device", "cuda", "--level", "smoke", "--quiet", "--out", "r.h5", "--suites", "p2p", "--p2p.transport", "cuda,cuda-sm",
                             "--p2p.modes", "put-bi,get-bi", "--p2p.sizes", "65536",
                             *[f for case in (put, get) for f in ("--inject", f"bitflip:target=message,rank=1,case={case},word=5,bit=20")])
        self.assert_code(result, 2)
        with self.open() as file:
            cases = {name: case for name, case in file["cases/p2p"].items() if name.startswith("bandwidth")}
            states = {name: str(case.attrs["state"]).strip("b'") for name, case in cases.items()}
            self.assertEqual(len(states), 4)
            self.assertEqual({name for name, state in states.items() if state == "fail"}, {put, get}, states)
            self.assertLessEqual(set(states.values()) - {"fail"}, {"pass"})
            self.assertEqual({(case.removeprefix("p2p/"), gpu, xor) for case, gpu, _, xor in self.miscompares(file)}, {(put, "gpu0", 1 << 20), (get, "gpu1", 1 << 20)})
            for name, case in cases.items():
                self.assertEqual(case["parameters"].attrs["path"], "cuda/sm" if name.endswith("sm") else "cuda/ce")
                self.assertEqual(len(case["bandwidth"]), 2, "a row for each direction")

    def test_loads_from_the_memory_of_another_gpu_follow_its_links(self):
        """A wrong link is found by the GPU that meets it, at its place."""
        case = "chase-1048576-node-cuda-sm"
        result = self.run_on(2, "run", "--device", "cuda", "--level", "smoke", "--quiet", "--out", "r.h5", "--suites", "p2p", "--p2p.transport", "cuda-sm",
                             "--p2p.modes", "chase", "--inject", f"bitflip:target=message,rank=1,case={case},word=8,bit=20")
        self.assert_code(result, 2)
        with self.open() as file:
            chase = file[f"cases/p2p/{case}"]
            self.assertEqual(str(chase.attrs["state"]).strip("b'"), "fail")
            self.assertEqual(self.miscompares(file), [(f"p2p/{case}", "gpu0", 8, 1 << 20)], "the second node of rank 1")
            self.assertEqual(len(chase["latency"]), 2, "a row for each direction")
            latency = harness.taken(self, chase, "latency")
            self.assertGreater(latency.min(), 1e-10)
            self.assertLess(latency.max(), 1e-3, "of one load")

    def test_each_gpu_copies_to_all_others_and_they_to_it(self):
        """A wrong message is found where it arrived; its sender is named."""
        out, into = "one-to-all-65536-node-cuda", "all-to-one-65536-node-cuda-sm"
        path = self.write("three.json", json.dumps(fake_gpus.small(3)))
        result = self.run_in_time(3, "--quiet", "--suites", "p2p", "--p2p.transport", "cuda,cuda-sm", "--p2p.modes", "one-to-all,all-to-one",
                                  "--p2p.sizes", "65536", whole=True, env={"ASSAY_FAKE_GPUS": str(path)},
                                  *[f for case in (out, into) for f in ("--inject", f"bitflip:target=message,rank=2,case={case},word=5,bit=20")])
        self.assert_code(result, 2)
        with self.open() as file:
            cases = {name: case for name, case in file["cases/p2p"].items() if "-to-" in name}
            states = {name: str(case.attrs["state"]).strip("b'") for name, case in cases.items()}
            self.assertEqual(states, {f"{way}-65536-node-{by}": "pass" for way in ("one-to-all", "all-to-one") for by in ("cuda", "cuda-sm")} | {out: "fail", into: "fail"})
            self.assertEqual({(case.removeprefix("p2p/"), xor) for case, _, _, xor in self.miscompares(file)}, {(out, 1 << 20), (into, 1 << 20)})
            self.assertNotIn("gpu2", {gpu for _, gpu, _, _ in self.miscompares(file)}, "it sent them")
            told = [text for kind, text in zip(file["events/kind"].asstr()[:], file["events/text"].asstr()[:]) if kind == "miscompare"]
            self.assertEqual(len(told), 2)
            for text in told:
                self.assertRegex(text, "1 wrong 8-byte words in messages from .*gpu2")
            for name, case in cases.items():
                if "cut short" in str(case.attrs.get("reason")) or len(case["bandwidth"]) == 2:
                    self.skipTest(f"noise: {name} had no time for each GPU in the centre")
                self.assertEqual(len(case["bandwidth"]), 3, "each GPU in the centre")
                self.assertGreater(harness.taken(self, case, "bandwidth").min(), 0)

    @unittest.skipUnless(outcome.NIGHTLY, "nightly: 20 s, and a busy machine needs the time of a level that has it")
    def test_a_gpu_that_is_slow_to_all_others_is_measured_again_and_named(self):
        path = self.write("four.json", json.dumps(fake_gpus.small(4)))
        result = self.run_on(4, "run", "--device", "cuda", "--level", "standard", "--quiet", "--out", "r.h5", "--suites", "p2p", "--p2p.transport", "cuda",
                             "--p2p.modes", "one-to-all", "--p2p.sizes", "65536", "--inject", "slow:rank=1,factor=0.02", env={"ASSAY_FAKE_GPUS": str(path)})
        self.assert_code(result, 2)
        said = " ".join(result.stdout.split())
        self.assertRegex(said, r"FAIL \S+/gpu1: p2p/one-to-all-65536-node-cuda:bandwidth .* confirmed by .* 3 controls")
        self.assertNotRegex(said, r"FAIL \S+/gpu[023]")

    @unittest.skipUnless(outcome.NIGHTLY, "nightly: what is left of the other links depends on how busy the machine is")
    def test_a_link_that_is_slow_both_ways_at_once_is_measured_again_and_named(self):
        path = self.write("four.json", json.dumps(fake_gpus.small(4)))
        result = self.run_on(4, "run", "--device", "cuda", "--level", "smoke", "--quiet", "--out", "r.h5", "--suites", "p2p", "--p2p.transport", "cuda",
                             "--p2p.modes", "get-bi", "--p2p.sizes", "1MiB", "--inject", "slowlink:pair=0>3,factor=0.02", env={"ASSAY_FAKE_GPUS": str(path)})
        self.assert_code(result, 2)
        said = " ".join(result.stdout.split())
        self.assertRegex(said, r"FAIL \S+/gpu(0>\S+/gpu3|3>\S+/gpu0): this pair")
        self.assertEqual(set(re.findall(r"FAIL \S+/gpu(\d>)\S+/gpu(\d)", said)) - {("0>", "3"), ("3>", "0")}, set())

    def test_links_between_gpus_are_held_against_their_number_and_rate(self):
        gpus = fake_gpus.small()
        for gpu in gpus["nodes"]["*"]:
            gpu["nvlink"] = {"links": 18, "up": 17, "speed_mb_s": 26562}
        path = self.write("linked.json", json.dumps(gpus))
        result = self.run_in_time(2, "--suites", "p2p,allreduce", "--p2p.transport", "cuda", "--p2p.modes", "put,put-bi,one-to-all", "--p2p.sizes", "64MiB",
                                  "--allreduce.scopes", "node", "--allreduce.sizes", "16MiB",
                                  env={"ASSAY_FAKE_GPUS": str(path), "ASSAY_NVML_LIBRARY": os.environ["ASSAY_FAKE_NVML"]})
        said = " ".join(result.stdout.split())
        for way, case in [("put", "put-6"), ("put, both ways", "put-bi")]:
            self.assertRegex(said, f"bandwidth by {way}, 64 MiB, inside nodes, cuda: .*% of NVLinks up x rate")
            # Both are one finding, of the metric that lacks more.
            self.assertRegex(said, r"(FAIL|WARN) vm/gpu.>vm/gpu.: p2p/bandwidth-[^\[]* physical floor 270.9 GB/s[^\[]*\[")
            self.assertRegex(said, rf"(FAIL|WARN) vm/gpu.>vm/gpu.: [^\[]*bandwidth-{case}")
        self.assertRegex(said, r"(FAIL|WARN) vm(/gpu.)?: [^\[]*p2p/one-to-all-[^\[]* physical floor 270.9 GB/s")
        with self.open() as file:
            collective = file["cases/allreduce/allreduce-node-16777216-nccl"]
            share = collective["bound_share"][:] * 17 * 26.562e9 / [statistics.median(row) for row in collective["busbw"][:]]
            for value in share:
                self.assertAlmostEqual(value, 1, places=2)
            self.assertEqual(set(file["inventory/device/nvlink_rate_bytes_per_s"][:2]), {26.562e9})


if __name__ == "__main__":
    harness.main()
