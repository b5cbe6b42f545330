# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu_acceptance.sh with a program in the place of `assay`: what becomes of a step that its time limit ends."""

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


if __name__ == "__main__":
    place.main()
