# SPDX-License-Identifier: Apache-2.0
"""ci/junit_count.py: no test is counted that did not run, and none that failed is lost in its executable."""

import pathlib
import subprocess
import sys
import unittest
from xml.sax.saxutils import escape

import outcome
from temporary_folder import temporary_folder

COUNT = pathlib.Path(__file__).resolve().parents[2] / "ci" / "junit_count.py"
SKIP = '<skipped message="SKIP_RETURN_CODE=77"/>'


def ran(*tests, announced=None):
    """What GoogleTest prints of (name, end, text before it); an end of None: the process was gone."""
    lines = [f"[==========] Running {len(tests) if announced is None else announced} tests from 2 test suites."]
    for name, end, *text in tests:
        lines += [f"[ RUN      ] {name}", *text, *([f"[{end:^10}] {name} (3 ms)"] if end else [])]
    return "\n".join(lines + [f"[{end:^10}] {name}" for name, end, *_ in tests if end in ("FAILED", "SKIPPED")])


def skipped(reason):
    return ("A.Skips", " SKIPPED", "/a/b.cpp:12: Skipped", reason)


class JunitCount(unittest.TestCase):
    def count(self, cases, *options, later=()):
        """(what it printed, what it named); `cases`: name, status, output, content; `later`: of further reports."""
        folder, reports = temporary_folder(self.addCleanup), []
        for entries in (cases, *later):
            reports.append(folder / f"{len(reports)}.xml")
            reports[-1].write_text("<testsuite>" + "".join(
                f'<testcase name="{name}" status="{status}">{content}<system-out>{escape(output)}</system-out></testcase>'
                for name, status, output, content in entries) + "</testsuite>")
        done = subprocess.run([sys.executable, COUNT, *options, *reports], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip(), done.stderr

    def one(self, status, output, *options):
        return self.count([("unit_x", status, output, "")], *options)

    def test_an_executable_counts_as_its_tests(self):
        output = ran(("A.One", "      OK"), ("A/B.Two/3", "      OK"), skipped("no GPU here"))
        counts, said = self.one("run", output, "--strict")
        self.assertEqual(counts, "2 0 1")
        self.assertIn("skipped unit_x: A.Skips: no GPU here", said)

    def test_a_failure_is_not_excused_by_noise_when_it_runs_again(self):
        again = [("cluster.slow", "notrun", "SKIPPED noise: others", SKIP)]
        counts, said = self.count([("cluster.slow", "fail", "host 3 is FAIL", "<failure/>")], later=[again])
        self.assertEqual(counts, "0 1 0")
        self.assertIn("| host 3 is FAIL", said)

    def test_a_failed_test_is_named_with_its_output(self):
        counts, said = self.one("fail", ran(("A.One", "      OK"), ("A.Bad", " FAILED ", "b.cpp:7: Failure"), ("A.Three", "      OK")))
        self.assertEqual(counts, "2 1 0")
        self.assertIn("FAILED  unit_x: A.Bad\n", said)
        self.assertIn("| b.cpp:7: Failure", said)

    def test_a_process_that_goes_away_has_failed(self):
        for status in ("fail", "run"):  # crashed, or left with 0 in the middle
            counts, said = self.one(status, ran(("A.One", "      OK"), ("A.Crash", None), announced=9))
            self.assertEqual(counts, "1 1 0", status)
            self.assertRegex(said, r"A\.Crash: .*\b1 of 9\b")
        self.assertEqual(self.one("fail", ran(("A.One", "      OK")))[0], "1 1 0", "a leak that a sanitizer finds in the end")

    def test_skips_without_an_excuse_fail_when_strict(self):
        output = ran(("A.One", "      OK"), skipped("no such thing"))
        self.assertEqual(self.one("run", output)[0], "1 0 1")
        self.assertEqual(self.one("run", output, "--strict")[0], "1 1 0")
        self.assertEqual(self.one("run", output, "--strict", "--allow", "no such")[0], "1 0 1")
        self.assertEqual(self.count([("emulated_x", "run", ran(("A.One", "      OK"), skipped("no GPU here")), "")], "--strict")[0], "1 1 0")

    def test_noise_is_tried_again(self):
        cases = [("unit_x", "run", ran(("A.One", "      OK"), skipped("noise: busy")), ""), ("unit_y", "run", ran(("A.One", "      OK")), ""),
                 ("cli.z", "notrun", "SKIPPED noise: busy", SKIP), ("cli.w", "notrun", "SKIPPED no GPU here", SKIP)]
        self.assertEqual(self.count(cases, "--again")[0].split(), ["unit_x", "cli.z"])

    def test_what_fails_beside_others_gets_one_try_alone_and_is_named(self):
        first = [("faults.a", "fail", "lost a rank", ""), ("unit_x", "fail", ran(("A.Bad", " FAILED ")), ""), ("cli.c", "run", "", "")]
        self.assertEqual(self.count(first, "--again")[0].split(), ["faults.a"], "an executable of GoogleTests gets no second try")
        self.assertEqual(self.count(first)[0], "1 2 0")
        passed, failed = [("faults.a", "run", "", "")], [("faults.a", "fail", "lost it again", "")]
        counts, said = self.count(first, later=[passed])
        self.assertEqual(counts, "1 1 1")
        self.assertIn("UNSTABLE faults.a: ", said)
        self.assertIn("| lost a rank", said)
        self.assertEqual(self.count(first, "--again", later=[failed])[0], "")
        counts, said = self.count(first, later=[failed])
        self.assertEqual(counts, "1 2 0")
        self.assertIn("| lost it again", said)

    def test_other_entries_count_as_one(self):
        cases = [("cli.a", "run", "", ""), ("cli.b", "fail", "", ""), ("cli.c", "notrun", "SKIPPED no GPU here", SKIP),
                 ("cli.gone", "notrun", "", ""), ("mpi.2", "run", ran(("A.One", "      OK"), skipped("this CPU is old")), ""),
                 ("mpi.4", "run", ran(("A.One", "      OK"), skipped("this CPU is old")), "")]
        self.assertEqual(self.count(cases)[0], "3 2 2")


if __name__ == "__main__":
    outcome.main()
