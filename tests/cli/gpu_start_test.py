# SPDX-License-Identifier: Apache-2.0
"""A GPU that fails after it could be described, most often while the launch is set up: its rank meets that alone, and nobody waits for it."""

import json

import h5py

import fake_gpus
import harness
import outcome

GEMM = ["--suites", "gemm", "--gemm.sizes", "64", "--gemm.dtypes", "bf16"]
LINKS = ["--suites", "gemm,p2p", *GEMM[2:], "--p2p.sizes", "8388608", "--p2p.modes", "uni", "--p2p.gpu-direct", "on"]


class Start(harness.CliTest):
    def run_with(self, faults, *args):
        """On two emulated GPUs, one per rank; `faults` by GPU."""
        gpus = fake_gpus.small()
        for gpu, fault in faults.items():
            gpus["nodes"]["*"][gpu]["fault"] = fault
        env = {"ASSAY_FAKE_GPUS": str(self.write("gpus.json", json.dumps(gpus))), "ASSAY_NVML_LIBRARY": "/nonexistent"}
        return self.mpirun(2, "run", "--device", "cuda", "--level", "smoke", "--quiet", "--force", "--out", "r.h5", *args, env=env)

    def left_out(self, gpu, fault, words, *args, **others):
        """The other one is measured, all of it, and nobody waits for the one that failed."""
        with self.subTest(gpu=gpu, fault=fault):
            result = self.run_with({gpu: fault, **others.get("faults", {})}, *args)
            self.assert_code(result, 2)
            said = " ".join(result.stdout.split())
            self.assertRegex(said, rf"FAIL \S+ the GPU GPU-\S+f{gpu} cannot be used \({words}[^)]*\(cudaError\)\);")
            self.assertNotIn("hang", result.stderr)
            self.assertRegex(said, r"planned=(\d+) passed=\d+ failed=0 skipped=\d+ error=0 incomplete=0")
            with h5py.File(self.dir / "r.h5") as f:
                names = f["entities/name"].asstr()[:]
                measured = {names[entity].rsplit("/", 1)[1] for entity in f["cases/gemm/bf16-n64-together/entity"][:]}
            self.assertEqual(measured, {f"gpu{1 - gpu}"})

    def test_one_that_cannot_be_used_is_left_out(self):
        """At a first look, and when streams beside the first are made."""
        for gpu in (0, 1) if outcome.NIGHTLY else (0,):
            self.left_out(gpu, "engine", "cudaStreamCreate: uncorrectable ECC error", *GEMM)
            self.left_out(1 - gpu, "stream", "cudaStreamCreateWithPriority: uncorrectable ECC error", *GEMM)
        self.left_out(1, "late", "the GPU: uncorrectable ECC error", *GEMM)

    def test_one_that_this_build_has_no_code_for_is_a_gap_and_no_fault(self):
        result = self.run_with({0: "no-image"}, *GEMM)
        self.assertIn(result.returncode, (0, 3), result.stderr)
        said = " ".join(result.stdout.split())
        self.assertRegex(said, r"WARN \S+ the GPU GPU-\S+f0 cannot be used \(this assay has no code for its compute capability \d+\.\d+: it was built for the host\);")
        self.assertNotIn("FAIL", said)

    def test_one_without_the_memory_that_was_planned_is_left_out(self):
        """It is planned anew, and another rank leads where rank 0 rests."""
        for gpu in (0, 1) if outcome.NIGHTLY else (0,):
            self.left_out(gpu, "large", "cudaMalloc: uncorrectable ECC error", "--suites", "gemm,memory", "--memory.fraction", "0.3", *GEMM[2:])

    def test_one_that_fails_anywhere_before_the_first_case_is_left_out(self):
        """Its memory, algorithms (rank 0 looks for them), what MPI does with its memory, the end."""
        for gpu, waits in [(0, 30), (1, 5), (1, 8)] + [(0, 2), (1, 3), (1, 6)] * outcome.NIGHTLY:
            self.left_out(gpu, f"wait{waits}", "", *LINKS)

    def test_one_that_fails_amid_a_pair_ends_that_case_alone(self):
        """Its partner learns of it, and all cases of the plan end by themselves."""
        ways = [("mpi", "uni"), ("mpi", "latency"), ("nccl", "bi"), ("cuda", "put")]
        for transport, mode in ways if outcome.NIGHTLY else harness.share(ways, 2):
            with self.subTest(transport=transport, mode=mode):
                # After the set-up, which on a busy machine may wait more often, and early enough for a pair that is then measured seldom.
                for wait in (25, 40, 60):
                    result = self.run_with({1: f"wait{wait}"}, "--suites", "p2p", "--p2p.sizes", "65536", "--p2p.modes", mode, "--p2p.transport", transport)
                    self.assert_code(result, 3)
                    said = " ".join(result.stdout.split())
                    if "nothing was measured" not in said:
                        break
                self.assertRegex(said, r"p2p/\S+-node-%s ended in error: \S+/gpu1: [^:]+: uncorrectable ECC error" % transport)
                self.assertRegex(said, r"planned=2 passed=[01] failed=0 skipped=0 error=[12] incomplete=0 ")
                with h5py.File(self.dir / "r.h5") as f:
                    names = f["entities/name"].asstr()[:]
                    failed = [(kind, names[entity].rsplit("/", 1)[1]) for kind, entity in zip(f["events/kind"].asstr()[:], f["events/entity"][:]) if kind == "pair-not-measured"]
                self.assertEqual(failed, [("pair-not-measured", "gpu1")])

    def test_a_gpu_that_works_keeps_its_process(self):
        """In exclusive mode another one could not use it."""
        self.left_out(0, "engine", "cudaStreamCreate: uncorrectable ECC error", *GEMM, faults={1: "exclusive"})

    def test_a_run_that_is_resumed_ends(self):
        """It has its plan."""
        self.assert_code(self.run_with({}, *GEMM), 0)
        (self.dir / "r.h5").rename(self.dir / "before.h5")
        result = self.run_with({1: "stream"}, *GEMM, "--resume", "before.h5")
        self.assert_code(result, 3)
        self.assertRegex(result.stderr, r"assay: \S+, GPU GPU-\S+f1: cudaStreamCreateWithPriority: uncorrectable ECC error")
        self.assertNotIn("hang", result.stderr)
        self.assertFalse((self.dir / "r.h5").exists())


if __name__ == "__main__":
    harness.main()
