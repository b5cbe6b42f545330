# SPDX-License-Identifier: Apache-2.0
"""A GPU that fails while the launch is set up, after it could be described: its rank meets that alone, and nobody waits for it."""

import json
import pathlib

import harness

GPUS = pathlib.Path(__file__).resolve().parents[1] / "emulation" / "gpus.json"


class Start(harness.CliTest):
    def run_with(self, fault, *args):
        """On two emulated GPUs, one per rank; the second has the fault."""
        gpus = json.loads(GPUS.read_text())
        gpus["nodes"]["*"][1]["fault"] = fault
        env = {"ASSAY_FAKE_GPUS": str(self.write(f"{fault}.json", json.dumps(gpus))), "ASSAY_NVML_LIBRARY": "/nonexistent"}
        return self.mpirun(2, "run", "--device", "cuda", "--level", "smoke", "--quiet", "--out", "r.h5", *args, env=env)

    def test_one_that_cannot_be_used_is_left_out(self):
        for fault, words in [("engine", "cudaStreamCreate: uncorrectable ECC error"), ("late", "the GPU: uncorrectable ECC error")]:
            with self.subTest(fault=fault):
                result = self.run_with(fault, "--force", "--suites", "gemm", "--gemm.sizes", "64", "--gemm.dtypes", "bf16")
                self.assert_code(result, 2)
                said = " ".join(result.stdout.split())
                self.assertRegex(said, r"the GPU GPU-\S+f1 cannot be used \(" + words)
                self.assertIn("the run goes on without it", said)
                self.assertIn("planned=3 passed=3", said)

    def test_one_without_the_memory_that_was_planned_ends_the_run_on_all_ranks(self):
        """The plan counts on it by then."""
        result = self.run_with("large", "--suites", "memory")
        self.assert_code(result, 3)
        self.assertRegex(result.stderr, r"assay: \S+, GPU GPU-\S+f1: cudaMalloc: uncorrectable ECC error")
        self.assertNotIn("hang", result.stderr)
        self.assertFalse((self.dir / "r.h5").exists())


if __name__ == "__main__":
    harness.main()
