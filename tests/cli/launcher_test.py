# SPDX-License-Identifier: Apache-2.0
"""Under a launcher: one line whatever the number of ranks, the same exit code, no colour into files."""

import os
import re
import time

import harness


def ours(result):
    """The lines of assay, without the launcher's."""
    return [line for line in result.stderr.splitlines() if line.startswith("assay: ")]


class Launcher(harness.CliTest):
    def test_one_error_line_before_mpi_is_up(self):
        result = self.mpirun(3, "run", "--suites", "nosuch")
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertIn("nosuch", ours(result)[0])
        self.assertEqual(self.left_behind(), [])

    def test_one_error_line_after_mpi_is_up(self):
        self.write("r.h5", "precious")
        result = self.mpirun(3, "run", "--suites", "selftest", "--selftest.cases", "pass", "--quiet", "--out", "r.h5")
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertEqual(self.left_behind(), ["r.h5"])

    def test_one_summary_and_one_file(self):
        result = self.mpirun(3, "run", "--suites", "selftest", "--selftest.cases", "pass,fail", "--out", "r.h5")
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5"])
        self.assertNotIn("\x1b", result.stdout)
        self.assertNotIn("\x1b", result.stderr)
        self.assert_code(self.assay("verdict", "r.h5"), 2)

    def test_options_that_differ_between_ranks_are_named(self):
        run = ["run", "--suites", "selftest", "--quiet", "--out", "r.h5"]
        result = harness.execute([harness.MPIEXEC, "-n", "1", harness.ASSAY, *run, ":", "-n", "1", harness.ASSAY, *run,
                                  "--level", "smoke"], self.dir)
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertRegex(ours(result)[0], r"rank.* 1")
        self.assertEqual(self.left_behind(), [])

    def test_too_few_open_files_are_told_before_anything_starts(self):
        run = f"exec {harness.ASSAY} run --suites selftest --selftest.cases pass --out r.h5"
        result = harness.execute([harness.MPIEXEC, "-n", "4", "sh", "-c", f"ulimit -n 67; {run}"], self.dir)
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertRegex(ours(result)[0], r"\brank 0\b.*\b68\b.*\b4 ranks\b.*\b67\b")
        self.assertIn("ulimit", ours(result)[0])
        self.assertEqual(self.left_behind(), [])
        # A soft limit is raised; one process alone has no lines.
        self.assert_code(harness.execute([harness.MPIEXEC, "-n", "2", "sh", "-c", f"ulimit -Sn 40; {run}"], self.dir), 0)
        self.assert_code(harness.execute(["sh", "-c", f"ulimit -n 60; {run} --force --launcher none"], self.dir), 0)

    def test_ranks_without_a_shared_folder_find_the_run(self):
        """The second one cannot read the file by which the first is found, and gets it over MPI."""
        run = [harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", "pass", "--out", "r.h5"]
        for name in "ab":
            (self.dir / name).mkdir()
        begin = time.monotonic()
        result = harness.execute([harness.MPIEXEC, "-n", "1", "-wdir", self.dir / "a", *run, ":", "-n", "1", "-wdir", self.dir / "b", *run], self.dir)
        self.assert_code(result, 0)
        self.assertIn("2 devices", result.stdout)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_run_starts_its_launcher_itself(self):
        launcher = f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2"
        run = ["run", "--suites", "selftest", "--selftest.cases", "pass,fail", "--out", "r.h5"]
        result = self.assay(*run, "--launcher", launcher)
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5"])
        self.assertIn("2 devices", result.stdout)
        result = self.assay(*run, "--force", "--launcher", "none")
        self.assert_code(result, 2)
        self.assertIn("1 device", result.stdout)

    def test_ranks_leave_the_code_to_the_file(self):
        """mpirun takes 3 s to end a job of which a rank leaves with another code than 0."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f'#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@"\necho $? >code\n')
        launcher.chmod(0o755)
        run = ["run", "--suites", "selftest", "--selftest.cases", "fail", "--level", "smoke", "--out", "r.h5"]
        self.assert_code(self.assay(*run, "--launcher", str(launcher)), 2)
        self.assertEqual((self.dir / "code").read_text(), "0\n")

    def test_ranks_that_outlive_a_killed_launcher_end_their_run(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 \"$@\" &\n"
                            "while [ ! -e r.h5.partial/plan.json ]; do sleep 0.05; done\nkill -9 $$\n")
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "gemm", "--gemm.sizes", "256", "--level", "smoke", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertNotIn("again", result.stderr)
        self.assert_code(self.assay("verdict", "r.h5"), result.returncode)

    def test_a_launcher_that_cannot_start(self):
        run = ["run", "--suites", "selftest", "--quiet", "--out", "r.h5"]
        self.assert_code(self.assay(*run, "--launcher", "no-such-launcher"), 4)
        self.assert_code(self.assay(*run, "--launcher", "false"), 3)
        self.assert_code(self.assay(*run, "--launcher", "mpirun '"), 4)
        self.assertEqual(self.left_behind(), [])

    def test_a_launcher_that_does_not_end_is_terminated(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f'#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@"\nexec sleep 1000\n')
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "smoke", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assert_code(result, 0)
        self.assertRegex(result.stderr, r"terminating the launcher: it still runs \d+ s after the results file was closed")
        self.assertIn("2 devices", result.stdout)

    def test_a_smoke_keeps_to_its_time(self):
        """From exec to exit. Where others use the cores, too, ASSAY_TEST_SLACK gives seconds and the reason, as in '10 shared runner'."""
        slack, _, why = os.environ.get("ASSAY_TEST_SLACK", "0").partition(" ")
        self.assertTrue(slack == "0" or why, "ASSAY_TEST_SLACK without its reason")
        for ranks, launcher in [(1, "none"), (2, f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2")]:
            with self.subTest(ranks=ranks):
                begin = time.monotonic()
                result = self.assay("run", "--level", "smoke", "--out", f"{ranks}.h5", "--launcher", launcher)
                seconds = time.monotonic() - begin
                self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
                ran = re.search(r"^ran ([\d.]+) s of 15 s$", result.stdout, re.M)
                self.assertTrue(ran, result.stdout)
                self.assertLessEqual(float(ran[1]), 1.1 * 15 + float(slack), result.stdout)
                self.assertLess(seconds - float(ran[1]), 1.5, "what is told is what it took")

    def test_a_soak_has_the_worst_code_of_its_segments(self):
        launcher = f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2"
        run = ["run", "--level", "soak", "--duration", "4s", "--segment", "2s", "--suites", "selftest"]
        for cases, fails in [("pass", False), ("pass,fail", True)]:
            result = self.assay(*run, "--selftest.cases", cases, "--out", f"{fails}.h5", "--launcher", launcher)
            # Of a busy machine a segment may be INCONCLUSIVE.
            codes = [int(code) for code in re.findall(r"\(exit (\d)\)", result.stdout)]
            self.assertEqual((len(codes), 2 in codes), (2, fails), result.stdout)
            self.assert_code(result, 2 if fails else max(codes))
            self.assertNotIn("wrote no", result.stderr)
            self.assertEqual([name for name in self.left_behind() if name.startswith(str(fails))],
                             [f"{fails}-seg01.h5", f"{fails}-seg02.h5"], result.stderr)

    def test_a_report_that_cannot_be_written_hides_no_verdict(self):
        """Nor does the file's PASS hide that it could not be written."""
        run = ["run", "--suites", "selftest", "--level", "smoke", "--force", "--json", "/dev/full", "--out", "r.h5"]
        for launcher in ["none", f"{harness.MPIEXEC} --allow-run-as-root -n 1"]:
            for cases, code in [("pass,fail", 2), ("pass", 3)]:
                with self.subTest(launcher=launcher, cases=cases):
                    result = self.assay(*run, "--selftest.cases", cases, "--launcher", launcher)
                    self.assert_code(result, code)
                    self.assertIn("--json: cannot write '/dev/full'", result.stderr)

    def test_what_is_lost_twice_is_a_fault_of_one_run(self):
        """The only node is lost, tried once more, and lost again: one file, one verdict. A name that a kept file could take is left alone."""
        self.write("r.launch1.h5", "precious")
        result = self.assay("run", "--suites", "selftest", "--level", "smoke", "--inject", "crash:rank=0", "--out", "r.h5",
                            "--launcher", f"{harness.MPIEXEC} --allow-run-as-root -n 1")
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5", "r.launch1.h5"])
        self.assertEqual((self.dir / "r.launch1.h5").read_text(), "precious")
        self.assertEqual(result.stderr.count("launching again"), 1, result.stderr)
        self.assertEqual(result.stderr.count("ending mpi"), 2, "the launcher would wait for what was lost")
        self.assertIn("TRIAGE", result.stdout)

    def test_expected_ranks(self):
        result = self.mpirun(2, "run", "--suites", "selftest", "--expect-ranks", "4", "--quiet", "--out", "r.h5")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("4", result.stdout + result.stderr)


if __name__ == "__main__":
    harness.main()
