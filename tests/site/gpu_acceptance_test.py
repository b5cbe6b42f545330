# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu_acceptance.sh with a program in the place of `assay`: what becomes of a step that its time limit ends."""

import pathlib
import shutil
import subprocess

import place

# A run ends on request, with the exit code of its verdict.
ASSAY = """#!/bin/bash
case "$1" in
  list) echo 'cuda built: 1 GPU here: A' ;;
  run)
    trap 'exit {code}' TERM
    for ((i = 0; i < 200; ++i)); do sleep 0.1; done ;;
esac
"""
# A run that measures 1.5 TFLOP/s, half of what the device can.
FIGURES = """#!/bin/bash
case "$1" in
  list) echo 'cuda built: 1 GPU here: A' ;;
  run) while [ "$1" != --out ]; do shift; done; : >"$2" ;;
  export)
    echo header >"$5"
    echo ',gemm,bf16-n64-together,,throughput,metric,FLOP/s,higher,,gpu0,,,,,,,,,1.5e12' >>"$5"
    echo ',gemm,bf16-n64-together,,bound_share,metric,1,higher,,gpu0,,,,,,,,,0.5' >>"$5" ;;
esac
"""


class GpuAcceptance(place.SiteTest):
    def cut_short(self, code):
        """One step that takes longer than its 4 s: the exit code of the script, and the step's line."""
        assay = self.program("assay-under-test", ASSAY.format(code=code))
        result = self.script("gpu_acceptance.sh", "--assay", assay, "--minutes", "1", "--steps", "smoke", "--out", f"out{code}",
                             env={"ASSAY_CUBLASLT_LIBRARY": "none", "ASSAY_NCCL_LIBRARY": "none"})
        return result.returncode, (self.dir / f"out{code}" / "steps.txt").read_text()

    def test_a_fail_counts_where_the_time_limit_ended_the_run(self):
        code, line = self.cut_short(2)
        self.assertEqual(code, 2, line)
        self.assertRegex(line, r"^smoke +\d+ s  FAIL: cut short at its limit of 4 s: smoke.log\n$")

    def test_all_else_is_cut_short(self):
        for code in (0, 143):
            code, line = self.cut_short(code)
            self.assertEqual(code, 3, line)
            self.assertRegex(line, r"^smoke +\d+ s  cut short at its limit of 4 s: smoke.log\n$")

    def test_a_path_with_a_space_fails_no_gpu(self):
        folder = self.dir / "bin" / "some where"
        (folder / "tests").mkdir(parents=True)
        assay = self.program("some where/assay", FIGURES)
        self.program("some where/mpirun", '#!/bin/sh\n[ "$1 $2 $3" = "-n 1 --oversubscribe" ] && shift 3 && exec "$@"\n')
        for name in ("cuda_mpi_tests", "cuda_kernel_tests"):
            self.program(f"some where/tests/{name}", '#!/bin/sh\necho "$*"\n')
        self.program("compute-sanitizer", '#!/bin/sh\n[ "$1 $2 $3 $4" = "--tool memcheck --error-exitcode 9" ] && shift 4 && exec "$@"\n')
        self.script("gpu_acceptance.sh", "--assay", assay, "--tests", folder / "tests", "--minutes", "1", "--steps", "kernels,nccl,memcheck", "--out", "out",
                    env={"ASSAY_CUBLASLT_LIBRARY": "none", "ASSAY_NCCL_LIBRARY": "none"})
        steps = (self.dir / "out" / "steps.txt").read_text().splitlines()
        self.assertEqual([(line.split()[0], line.split()[-1]) for line in steps], [("kernels", "passed"), ("nccl", "passed"), ("memcheck", "passed")], steps)

    def test_figures_are_the_same_where_numbers_have_a_comma(self):
        if not shutil.which("localedef") or not pathlib.Path("/usr/share/i18n/locales/de_DE").exists():
            self.skipTest("no localedef here, or no locales to make one from")
        subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", self.dir / "de_DE.utf8"], check=True, capture_output=True)
        assay = self.program("assay-under-test", FIGURES)
        for name, env in {"plain": {}, "comma": {"LOCPATH": str(self.dir), "LC_ALL": "de_DE.utf8"}}.items():
            self.script("gpu_acceptance.sh", "--assay", assay, "--minutes", "1", "--steps", "smoke", "--out", name,
                        env={"ASSAY_CUBLASLT_LIBRARY": "none", "ASSAY_NCCL_LIBRARY": "none", **env})
            self.assertRegex((self.dir / name / "table.txt").read_text(), r"(?m)^smoke +gemm/bf16-n64-together +1\.5 TFLOP/s +3 TFLOP/s +50\.0 % ", name)


if __name__ == "__main__":
    place.main()
