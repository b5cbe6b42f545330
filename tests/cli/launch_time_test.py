# SPDX-License-Identifier: Apache-2.0
"""What counts as time of a run under --launcher, and when a launch is ended before its time."""

import re

import harness
import outcome


class LaunchTime(harness.CliTest):
    @outcome.nightly
    def test_a_launch_whose_rank_0_is_cut_off_is_ended_before_its_time(self):
        """Of the first launch there is a directory, which nobody renews."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"""#!/bin/sh
if mkdir first 2>/dev/null; then
  mkdir r.h5.partial && echo '{{"host":"gone","pid":1,"run_id":"x","start":1}}' >r.h5.partial/owner
  exec sleep 1000
fi
exec {harness.MPIEXEC} -n 2 "$@"
""")
        launcher.chmod(0o755)
        result = harness.execute([harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "standard", "--out", "r.h5",
                                  "--launcher", str(launcher)], self.dir, timeout=250)
        self.assert_code(result, 0)
        self.assertRegex(result.stderr, r"terminating the launcher: it still runs 12\d s after the last sign of life of rank 0")
        self.assertIn("launching again", result.stderr)

    def test_what_mpirun_takes_to_start_is_time_of_the_run(self):
        result = self.assay("run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "smoke", "--out", "r.h5",
                            "--launcher", f"sh -c 'sleep 6; exec \"$0\" \"$@\"' {harness.MPIEXEC} -n 2")
        ran = re.search(r"^ran ([\d.]+) s of 15 s$", result.stdout, re.M)
        self.assertTrue(ran, result.stdout + result.stderr)
        self.assertGreater(float(ran[1]), 6)


if __name__ == "__main__":
    harness.main()
