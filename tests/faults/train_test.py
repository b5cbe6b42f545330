# SPDX-License-Identifier: Apache-2.0
"""Wrong bits, slow ranks and bad file systems in training: found in their step, and named."""

import os
import shutil
import signal
import subprocess
import time

import common
import h5py
import harness
import numpy as np
from temporary_folder import temporary_folder

LOCKSTEP, TOGETHER = "train/tiny-lockstep", "train/tiny-together"


class Training(common.FaultTest):
    def need_room(self, path):
        """Skips the test where the suite refuses to write checkpoints."""
        total, _, free = shutil.disk_usage(path)
        if free <= max(total / 10, 5 << 30) + (1 << 30):
            self.skipTest(f"no privilege: {path} has less than a tenth or 5 GiB left, which the suite leaves alone")

    def train(self, ranks, case, *args, steps=6, faults=(), level="smoke"):
        return self.inject(ranks, list(faults), "--suites", "train", "--train.preset", "tiny", "--train.batch", "2",
                           "--train.steps", steps, "--cases", case, *args, level=level)

    def faulty(self, results, case):
        """The only rank with errors in the case, and its errors by step."""
        errors = [e for e in results.errors() if e["case"] == case]
        self.assertEqual(len({e["entity"] for e in errors}), 1, errors)
        ranks = {entity: rank for rank, entity in results.device.items()}
        return ranks[errors[0]["entity"]], [int(e["index"]) for e in errors]

    def test_gradient_flipped_is_named_with_rank_step_and_bucket(self):
        result = self.train(3, LOCKSTEP, faults=["bitflip:target=gradient,rank=1,step=4,word=0,bit=2"])
        self.assert_code(result, common.FAIL)
        results = self.file()
        rank, indices = self.faulty(results, LOCKSTEP)
        self.assertEqual((rank, indices), (1, [4 * 4 + 3]))  # four buckets; the embedding, where element 0 is, comes last
        texts = [e["text"] for e in results.events("miscompare")]
        self.assertEqual(len(texts), 1, texts)
        self.assertRegex(texts[0], r"^rank 1\b.*gradients\b.*embedding\b.*\b4\b.*transient")
        found = [f for f in results.findings("corrupt") if f["metric"].startswith(LOCKSTEP)]
        self.assertEqual({f["name"] for f in found}, {results.names[results.device[1]]})

    def test_gradients_left_out_of_the_sum_name_their_rank(self):
        result = self.mpirun(3, "run", "--level", "quick", "--suites", "train", "--cases", TOGETHER, "--train.batch", "2",
                             "--train.steps", "2", "--train.break", "rank", "--quiet", "--force", "--out", "r.h5")
        self.assert_code(result, common.FAIL)
        self.assertRegex(result.stdout + result.stderr, r"those\s+of\s+rank\s+2\s+are\s+missing")

    def test_two_ranks_settle_a_tie_by_repetition(self):
        result = self.train(2, LOCKSTEP, faults=["bitflip:target=gradient,rank=0,step=2"])
        self.assert_code(result, common.FAIL)
        self.assertEqual(self.faulty(self.file(), LOCKSTEP)[0], 0)

    def test_parameter_that_is_not_a_number_on_one_replica(self):
        result = self.train(3, TOGETHER, faults=["nan:target=parameter,rank=2,step=3"])
        self.assert_code(result, common.FAIL)
        results = self.file()
        self.assertEqual(self.faulty(results, TOGETHER), (2, [3]))
        self.assertEqual(results.samples(TOGETHER, "throughput")[0].size, 6, "training went on with the right parameters")

    def test_same_seed_same_bits_and_one_rank_agrees_with_two(self):
        digests, losses = [], []
        for ranks, batch in ((2, 2), (2, 2), (1, 4)):
            result = self.mpirun(ranks, "run", "--level", "quick", "--suites", "train", "--cases", TOGETHER, "--seed", "7",
                                 "--train.batch", batch, "--train.steps", "5", "--quiet", "--force", "--out", "r.h5")
            self.assertIn(result.returncode, (0, 3), result.stderr)
            case = self.file().case(TOGETHER)
            digests.append(case["digest_parameter"][:].tolist())
            losses.append(case["loss"][:].mean(axis=0))
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[0][0], digests[0][1])
        for a, b in zip(losses[0], losses[2]):
            self.assertAlmostEqual(a, b, delta=1e-4)

    def test_slow_rank_is_the_straggler(self):
        seen = []
        ranks = 4  # as many on each core of a small machine, so that the others are alike
        for _ in range(3):  # ranks take turns on the cores: not every try shows it
            self.train(ranks, TOGETHER, steps=12, faults=["slow:factor=0.25,rank=1"])
            texts = [e["text"] for e in self.file().events("straggler")]
            if any(text.startswith("rank 1 ") for text in texts):
                return
            median = {rank: np.median(samples) for rank, samples in self.file().samples(TOGETHER, "compute").items()}
            others = [median[rank] for rank in range(ranks) if rank != 1]
            ahead, behind = min(others), max(others)
            seen.append([float(median[rank]) for rank in range(ranks)])
            # As suites/train/README.md has it, with room: five deviations (MAD) above the median rank.
            apart = median[1] > 1.2 * behind and median[1] - behind > 8 * (behind - ahead)
            self.assertFalse(apart, f"its own samples stand apart, and nobody says so: {texts} {seen}")
        self.skipTest(f"noise: a rank made four times as slow is not apart by its samples: {seen}")

    def test_a_killed_run_leaves_no_checkpoint(self):
        scratch = self.dir / "scratch"
        scratch.mkdir()
        self.need_room(scratch)
        command = [harness.MPIEXEC, "-n", 2, harness.ASSAY, "run", "--level", "quick", "--suites", "train", "--cases", "train/tiny-checkpoint",
                   "--train.scratch", scratch, "--train.checkpoint-every", 100, "--train.batch", 1, "--quiet", "--out", "r.h5"]
        with subprocess.Popen(list(map(str, command)), cwd=self.dir, env={**os.environ, **harness.LAUNCH}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not list(scratch.glob("*/step-*/DONE")) and process.poll() is None:
                time.sleep(0.005)
            maker = int(os.listdir(scratch)[0].split("-")[5])  # assay-train-<host>-<boot>-<pid namespace>-<pid>
            os.kill(maker, signal.SIGKILL)
            process.wait(60)
        end = time.monotonic() + 20
        while os.listdir(scratch) and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(os.listdir(scratch), [])

    def test_every_metric_follows_its_formula(self):
        """As suites/train/README.md gives it, recomputed from the samples in the file."""
        scratch = self.dir / "scratch"
        scratch.mkdir()
        self.need_room(scratch)
        result = self.train(2, "train/tiny-*", "--train.scratch", scratch, steps=12, level="quick")
        self.assertIn(result.returncode, (0, 3), result.stderr)
        self.assertEqual(os.listdir(scratch), [])
        results, same = self.file(), lambda a, b, atol=0: np.testing.assert_allclose(a, b, rtol=1e-9, atol=atol)
        states = {name: case.attrs["state"] for name, case in results.file["cases/train"].items()}
        if "incomplete" in states.values():
            self.skipTest(f"noise: cases met their deadlines: {states}")

        def values(case):
            group = results.case(case)
            return {name: group[name][:] for name in group if isinstance(group[name], h5py.Dataset)}, group["parameters"].attrs

        t, given = values(TOGETHER)
        tokens, median = 2 * 64, lambda name: np.median(t[name], axis=1)
        stages = [t[stage] for stage in ("data", "forward", "backward", "optimizer")]
        same(given["flops_per_token"], 6 * (12 * 128**2 * 2 + 128 * 32) + 6 * 2 * 128 * 64)
        same(t["compute"], sum(stages))
        same(t["step"], t["compute"] + t["exposed"])
        same(t["throughput"], tokens / t["step"])
        same(t["compute_throughput"], tokens / t["compute"])
        same(t["overlap"], np.clip(1 - t["exposed"] / t["communication"], 0, 1), atol=1e-9)  # a difference of near numbers
        same(t["regret"], np.tile((t["loss"] - t["oracle"]).mean(axis=0), (2, 1)))
        same(t["flop_rate"], given["flops_per_token"] * tokens / median("step"))
        same(t["utilization"], t["flop_rate"] / t["gemm_rate"])
        same(t["jitter"], np.quantile(t["step"], 0.99, axis=1) / median("step"))
        same(t["straggler_relative"], median("compute").min() / median("compute"))
        same(t["straggler_individual"], np.quantile(t["compute"], 0.05, axis=1) / median("compute"))
        reached = np.cumsum(stages[:3], axis=0)  # [stage, rank, step]; the optimizer starts over
        growth = np.diff(np.concatenate([np.zeros_like(reached[:1, 0]), reached.max(axis=1)]), axis=0)
        growth, last = np.vstack([growth, stages[3].max(axis=0)[None]]), [*reached.argmax(axis=1), stages[3].argmax(axis=0)]
        for stage, name in enumerate(("data", "forward", "backward", "optimizer")):
            share = [growth[stage][last[stage] == rank].sum() / growth.sum() for rank in (0, 1)]
            same(t[f"frontier_{name}"], share)

        t, _ = values("train/tiny-scaling")
        alone, compute, communication, both = (median(name) for name in ("alone", "compute", "communication", "together"))
        same(t["contention"], alone / compute)
        same(t["weak_scaling"], alone / both)
        same(t["overlap_gain"], (compute + communication - both) / np.minimum(compute, communication), atol=1e-8)  # the same

        t, _ = values("train/tiny-alone")
        count = results.case("train/tiny-alone")["count"][:]
        for rank, n in enumerate(count):
            stages = sum(t[stage][rank, :n] for stage in ("data", "forward", "backward", "optimizer"))
            self.assertAlmostEqual(np.median(tokens / t["throughput"][rank, :n] / stages), 1, delta=0.1)

        t, _ = values("train/tiny-checkpoint")
        shard = (12 * (12 * 128**2 * 2 + 2 * 128 * 32) / 2 + 63) // 64 * 64 + 64
        for direction in ("write", "read"):  # under the name that the kernel's counters allow
            cached = (t[f"moved_share_{direction}"] < 0.95).any() or (direction == "read" and (t["resident_share"] > 0.05).any())
            named, other = ("_cached", "") if cached else ("", "_cached")
            self.assertTrue(np.isnan(t[direction + other]).all() and np.isnan(t[direction + "_all" + other]).all())
            own, whole = t[direction + named], t[direction + "_all" + named]
            self.assertTrue((whole < 2 * own.min(axis=0) * 1.001).all(), "all of them until the last one ended")
            if direction == "write":
                self.assertTrue((shard / own > t["sync"]).all(), "a shard is written, then synced")
        self.assertTrue(((0 < t["stall"]) & (t["stall"] < 1)).all())

    def test_checkpoints_name_their_rates_by_the_kernels_counters(self):
        """On a disk they are those of storage; in a file system in memory nothing reaches any, and they judge nothing."""
        memory = temporary_folder(self.addCleanup, dir="/dev/shm")
        for scratch in (memory, self.dir):
            self.need_room(scratch)
        in_memory = {memory: True, self.dir: "tmpfs" in subprocess.check_output(["stat", "-f", "-c", "%T", self.dir], text=True)}
        for scratch, cached in in_memory.items():
            with self.subTest(scratch=scratch):
                result = self.mpirun(2, "run", "--level", "quick", "--suites", "train", "--cases", "train/tiny-checkpoint", "--train.scratch", scratch,
                                     "--train.batch", "1", "--quiet", "--force", "--out", "r.h5")
                self.assertIn(result.returncode, (0, common.INCONCLUSIVE), result.stdout + result.stderr)
                case = self.file().case("train/tiny-checkpoint")
                for direction in ("write", "read"):
                    share = case[f"moved_share_{direction}"][:]
                    self.assertTrue((share < 0.05).all() if cached else (share >= 0.95).all(), share)
                    self.assertEqual(case[direction].attrs["role"], "metric")
                    self.assertEqual(case[direction + "_cached"].attrs["role"], "covariate")
                    self.assertEqual(np.isnan(case[direction][:]).all(), cached)
                    self.assertEqual(np.isnan(case[direction + "_all_cached"][:]).all(), not cached)

    def test_checkpoints_on_a_read_only_disk_are_a_clear_error(self):
        disk = self.dir / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", disk], capture_output=True).returncode != 0:
            self.skipTest("no privilege: mount a file system")
        try:
            result = self.mpirun(2, "run", "--level", "quick", "--suites", "train", "--cases", "train/tiny-checkpoint",
                                 "--train.scratch", disk, "--train.batch", "1", "--quiet", "--out", "r.h5")
            self.assert_code(result, common.INCONCLUSIVE)
            reason = self.file().case("train/tiny-checkpoint").attrs["reason"]
            self.assertIn("Read-only file system", reason)
            self.assertIn(str(disk), reason)
        finally:
            subprocess.run(["umount", disk], check=False)

    def test_checkpoints_on_a_full_disk_are_a_clear_error(self):
        """One that becomes full amid the first checkpoint (of inodes: of bytes it has enough), and one that has too little room for three."""
        disk = self.dir / "disk"
        disk.mkdir()
        for options, reason in (("size=20g,nr_inodes=4", "No space left on device"), ("size=3m", "of 3 MiB are free, 5 GiB must stay so")):
            with self.subTest(options=options):
                if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", disk], capture_output=True).returncode != 0:
                    self.skipTest("no privilege: mount a file system")
                try:
                    result = self.mpirun(2, "run", "--level", "quick", "--suites", "train", "--cases", "train/tiny-checkpoint",
                                         "--train.scratch", disk, "--train.batch", "1", "--quiet", "--force", "--out", "r.h5")
                    self.assert_code(result, common.INCONCLUSIVE)
                    self.assertIn(reason, self.file().case("train/tiny-checkpoint").attrs["reason"])
                    self.assertEqual(os.listdir(disk), [])
                finally:
                    subprocess.run(["umount", disk], check=False)


if __name__ == "__main__":
    common.main()
