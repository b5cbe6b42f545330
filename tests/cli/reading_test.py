# SPDX-License-Identifier: Apache-2.0
"""Every command that reads a file of somebody else reads it in the child that can do nothing else: whoever reads it here is taken over."""

import os
import pathlib
import shutil

import harness

CSV = "node,device,metric,unit,better,sample,value\nn1,gpu0,rate,B/s,higher,0,1\n"
RUN = ["run", "--suites", "selftest", "--selftest.cases", "pass", "--quiet"]


class Reading(harness.CliTest):
    def setUp(self):
        super().setUp()
        self.write("x.csv", CSV)
        self.assert_code(self.assay("import", "csv", "x.csv", "-o", "good.h5"), 0)
        shutil.copy(self.dir / "good.h5", self.dir / "evil.h5")
        self.write("evil.txt", CSV)
        (self.dir / "evils").mkdir()
        shutil.copy(self.dir / "good.h5", self.dir / "evils" / "night.h5")
        (self.dir / "evil.h5.partial" / "cases").mkdir(parents=True)
        for name in ("plan.json", "end.json", "events.jsonl", "owner", "cases/000000.h5"):
            (self.dir / "evil.h5.partial" / name).write_text("{}\n")
        listed = self.assay("list").stdout
        self.filtered = pathlib.Path("/proc/sys/kernel/seccomp").exists() and "no libseccomp where this was built" not in listed
        self.assertEqual("without a filter of system calls" not in listed, self.filtered)

    def attacked(self, *args):
        """What came of the command; a file that the attacker could make is an error."""
        taken = self.dir / "taken"
        result = self.assay(*args, env={"LD_PRELOAD": os.environ["ASSAY_DIES_OF_EVIL"], "ASSAY_TAKEN": str(taken),
                                        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        if self.filtered:
            self.assertFalse(taken.exists(), f"{args}: made a file")
        return result

    def assert_taken_over(self, *args):
        result = self.attacked(*args)
        self.assertIn("reading it crashes (signal 6)", result.stderr, args)
        self.assertIn("evil", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assert_code(result, 4)

    def test_results_files(self):
        for args in (["inspect", "evil.h5"], ["verdict", "evil.h5"], ["schema", "--check", "evil.h5"],
                     ["export", "evil.h5", "--csv"], ["export", "evil.h5", "--jsonl"], ["export", "evil.h5", "--table"],
                     ["compare", "evil.h5", "good.h5"], ["compare", "good.h5", "evil.h5"], ["report", "evil.h5", "-o", "p.html"],
                     ["verdict", "good.h5", "--baseline", "evil.h5"], ["verdict", "good.h5", "--history", "evils"]):
            with self.subTest(args=args):
                self.assert_taken_over(*args)

    def test_directories(self):
        for args in (["verdict", "evils"], ["trend", "evils", "-o", "p.html"], ["report", "evils", "-o", "p.html"], ["compare", "good.h5", "evils"],
                     ["verdict", "evil.h5.partial"], ["inspect", "evil.h5.partial"], ["recover", "evil.h5.partial", "-o", "out.h5"]):
            with self.subTest(args=args):
                self.assert_taken_over(*args)

    def test_an_index_of_a_history(self):
        (self.dir / "nights").mkdir()
        shutil.copy(self.dir / "good.h5", self.dir / "nights" / "a.h5")
        self.assay("verdict", "good.h5", "--history", "nights")
        index = self.dir / "nights" / "assay-history.index"
        if not index.exists():
            self.assay(*RUN, "--history", "nights", "--out", "r.h5")
        shutil.copy(index, self.dir / "evil.index")
        self.assert_taken_over("verdict", "good.h5", "--history", "evil.index")

    def test_measurements_of_other_tools(self):
        for form in ("csv", "nccl-tests", "osu"):
            with self.subTest(form=form):
                self.assert_taken_over("import", form, "evil.txt", "-o", "out.h5")

    def test_a_run(self):
        for args in (["--baseline", "evil.h5"], ["--baseline", "evils"], ["--history", "evils"], ["--resume", "evil.h5", "--out", "out.h5"],
                     ["--resume", "evil.h5.partial"]):
            with self.subTest(args=args):
                self.assert_taken_over(*RUN, *args)
                self.assertFalse((self.dir / "out.h5").exists())

    def test_a_case_that_kills_its_reader_is_put_aside(self):
        """--resume, recover and verdict go on without it, and keep the others."""
        kept = self.dir / "run.h5.partial"
        self.leave_partial(kept, "pass,fail")
        victim = sorted((kept / "cases").glob("*.h5"))[0]
        victim.rename(victim.with_name("evil.h5"))
        for command in (["recover", "copy.h5.partial", "-o", "out.h5"], ["verdict", "copy.h5.partial"],
                        [*RUN[:-2], "pass,fail", "--quiet", "--resume", "copy.h5.partial"]):
            with self.subTest(command=command):
                shutil.rmtree(self.dir / "copy.h5.partial", ignore_errors=True)
                shutil.copytree(kept, self.dir / "copy.h5.partial")
                result = self.attacked(*command)
                self.assertIn(result.returncode, (0, 2, 3), result.stderr)
                if command[0] == "recover":
                    self.assert_code(result, 3)
                    self.assertEqual(result.stdout, "out.h5: recovered; 1 case could not be read and was skipped; copy.h5.partial is kept\n")
                    self.assertTrue((self.dir / "copy.h5.partial" / "cases" / "evil.h5").exists())
                if command[0] == "verdict":
                    self.assertIn("selftest", result.stdout)
                    continue
                listed = self.assay("inspect", "out.h5" if command[0] == "recover" else "copy.h5")
                self.assert_code(listed, 0)
                self.assertIn("a case was skipped" if command[0] == "recover" else "resumed", listed.stdout)
                self.assertIn("selftest/", listed.stdout)


if __name__ == "__main__":
    harness.main()
