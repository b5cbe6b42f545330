# SPDX-License-Identifier: Apache-2.0
"""`verdict DIR`: several results files judged together. And who may write a file at all."""

import json
import os
import re
import shutil
import stat
import subprocess

import harness
from temporary_folder import temporary_folder


def selftest(cases, out):
    return ["run", "--suites", "selftest", "--selftest.cases", cases, "--quiet", "--out", str(out)]


class Directory(harness.CliTest):
    KINDS = {"fail": ("pass,fail", 2), "skip": ("pass,skip", 3), "pass": ("pass", 0)}

    @classmethod
    def setUpClass(cls):
        cls.store = temporary_folder(cls.addClassCleanup)
        for kind in cls.KINDS:
            cls.make(kind, cls.store / f"{kind}.h5")

    @classmethod
    def make(cls, kind, file):
        cases, code = cls.KINDS[kind]
        result = harness.execute([harness.ASSAY, *selftest(cases, file)], cls.store)
        assert result.returncode == code, result.stderr

    def place(self, **files):
        """Each file is a run of its own."""
        (self.dir / "soak").mkdir(exist_ok=True)
        for name, kind in files.items():
            self.make(kind, self.dir / "soak" / f"{name}.h5")

    def test_a_soak_is_a_chain_of_files_with_seeds_of_their_own(self):
        run = self.assay("run", "--level", "soak", "--duration", "4s", "--segment", "2s", "--suites", "inventory", "--out", "n.h5")
        self.assertEqual(self.left_behind(), ["n-seg01.h5", "n-seg02.h5"], run.stdout + run.stderr)
        seeds = set()
        for name in self.left_behind():
            text = self.assay("inspect", name).stdout
            seeds.add(next(line.split()[1] for line in text.splitlines() if line.startswith("seed")))
        self.assertEqual(len(seeds), 2)
        joined = self.assay("verdict", ".")
        self.assertEqual(joined.returncode, run.returncode, joined.stdout)
        self.assertIn("2 files judged together", joined.stdout)
        self.assertRegex(run.stdout, rf"2 files judged together[\s\S]*\n[A-Z]+ \(exit {run.returncode}\)\n")

    def test_reports_of_a_soak_stand_for_all_its_segments(self):
        run = self.assay("run", "--level", "soak", "--duration", "4s", "--segment", "2s", "--suites", "selftest", "--selftest.cases",
                         "pass", "--out", "n.h5", "--json", "v.json")
        self.assertEqual(json.loads((self.dir / "v.json").read_text())["inputs"]["files"], ["n-seg01.h5", "n-seg02.h5"], run.stderr)

    def test_a_soak_begins_only_where_all_its_files_can_be_made(self):
        soak = ["run", "--level", "soak", "--duration", "4s", "--segment", "2s", "--suites", "selftest", "--quiet", "--out", "n.h5", "--launcher", "none"]
        self.leave_partial(self.dir / "n-seg02.h5.partial")
        self.assert_error(soak, "n-seg02.h5.partial exists")

    def test_segments_belong_to_a_soak(self):
        self.assert_error(["run", "--segment", "5m"], "--segment: --level soak quick")

    def test_segments_that_divide_a_soak_have_their_full_time(self):
        soak = ["plan", "--level", "soak", "--suites", "selftest", "--duration"]
        for duration, segment, budget in [("1.1h", "0.1h", "6 min 0 s"), ("3.3h", "1.1h", "1 h 6 min"), ("1.1h", "1.1h", "1 h 6 min")]:
            planned = self.assay(*soak, duration, "--segment", segment).stdout
            self.assertIn(f"level soak: budget {budget}, ", planned)

    def test_a_soak_too_short_for_its_required_cases_is_refused(self):
        run = ["run", "--level", "soak", "--suites", "gemm", "--out", "n.h5", "--duration"]
        self.assert_error([*run, "1s"], "--duration: required cases need budget is 1 s")
        self.assert_error([*run, "60s", "--segment", "2s"], "--segment: required cases need 2 s of a segment")
        self.assertEqual(self.left_behind(), [])

    def test_a_soak_that_ends_early_tells_which_segments_are_missing(self):
        run = self.assay("run", "--level", "soak", "--duration", "9s", "--segment", "3s", "--suites", "selftest",
                         "--selftest.cases", "pass", "--inject", "crash:rank=0", "--launcher", "none", "--out", "n.h5")
        self.assert_code(run, 3)
        self.assertIn("ended in segment 1 of 3, the others are not run", run.stdout + run.stderr)

    def test_the_worst_state_wins(self):
        self.place(seg01="pass", seg02="pass")
        result = self.assay("verdict", "soak")
        self.assert_code(result, 0)
        self.assertIn("2 files judged together", result.stdout)
        self.place(seg03="skip")
        self.assert_code(self.assay("verdict", "soak/"), 3)
        self.place(seg04="fail", seg05="pass")
        self.assert_code(self.assay("verdict", "soak"), 2)

    def test_reasons_and_findings_name_their_files(self):
        self.place(seg01="fail", seg02="pass", seg03="fail", seg04="skip")
        result = self.assay("verdict", "soak", "--json", "v.json")
        self.assert_code(result, 2)
        joined = json.loads((self.dir / "v.json").read_text())
        self.assertEqual(joined["inputs"]["files"], ["seg01.h5", "seg02.h5", "seg03.h5", "seg04.h5"])
        self.assertTrue(any(r.startswith("seg04.h5: ") for r in joined["reasons"]), joined["reasons"])
        failed = [f for f in joined["findings"] if f["severity"] == "FAIL"]
        self.assertEqual(len(failed), len({(f["level"], f["name"], f["kind"], f["suite"], f["metric"]) for f in failed}))
        self.assertGreater(len(failed), 0)
        self.assertIn("in 2 of 4 files: seg01.h5, seg03.h5", failed[0]["text"])
        self.assertTrue(failed[0]["evidence"].startswith("seg01.h5:/"), failed[0]["evidence"])
        self.assertIn("seg01.h5", result.stdout)

    def test_counts_are_summed(self):
        counts = {}
        for kind in ["fail", "skip"]:
            self.assay("verdict", self.store / f"{kind}.h5", "--json", "one.json")
            counts[kind] = json.loads((self.dir / "one.json").read_text())["accounting"]
        self.place(a="fail", b="skip", c="skip")
        self.assay("verdict", "soak", "--json", "all.json")
        joined = json.loads((self.dir / "all.json").read_text())["accounting"]
        for key, value in joined.items():
            self.assertEqual(value, counts["fail"][key] + 2 * counts["skip"][key], key)
        self.assertGreater(joined["planned"], 0)

    def test_nodes_are_named_once_with_their_worst_state(self):
        self.place(a="pass", b="fail", c="pass")
        result = self.assay("verdict", "soak", "--nodes", "n.txt", "--junit", "v.xml")
        self.assert_code(result, 2)
        lines = (self.dir / "n.txt").read_text().splitlines()
        self.assertEqual(len(lines), 1, lines)
        one = self.assay("verdict", self.store / "fail.h5", "--nodes", "one.txt")
        self.assert_code(one, 2)
        worst = (self.dir / "one.txt").read_text().split()[1]
        self.assertIn(lines[0].split()[1], (worst, "FAIL"))

    def test_an_unfinished_run_is_judged_from_its_directory(self):
        self.place(seg01="pass")
        partial = self.dir / "soak" / "seg02.h5.partial"
        self.leave_partial(partial)
        joined = self.assay("verdict", "soak", "--json", "v.json")
        alone = self.assay("verdict", partial)
        self.assert_code(joined, alone.returncode)
        files = json.loads((self.dir / "v.json").read_text())["inputs"]["files"]
        self.assertEqual(files, ["seg01.h5", "seg02.h5.partial"])

    def test_a_run_that_several_files_hold_counts_once(self):
        self.place(a="pass", b="pass")
        once = self.assay("verdict", "soak", "--json", "once.json")
        shutil.copy(self.dir / "soak" / "b.h5", self.dir / "soak" / "copy.h5")
        (self.dir / "soak" / "link.h5").symlink_to("a.h5")
        result = self.assay("verdict", "soak", "--json", "v.json", "--report", "page.html")
        self.assert_code(result, once.returncode)
        joined = json.loads((self.dir / "v.json").read_text())
        self.assertEqual(joined["inputs"]["files"], ["a.h5", "b.h5"])
        for key in ["accounting", "basis", "false_alarm_rate"]:
            self.assertEqual(joined[key], json.loads((self.dir / "once.json").read_text())[key])
        self.assertIn("copy.h5 holds the same run as b.h5", result.stdout)
        self.assertIn("link.h5 holds the same run as a.h5", result.stdout)
        self.assertIn("2 runs judged one by one", (self.dir / "page.html").read_text())

    def test_the_file_of_a_run_with_the_most_results_counts(self):
        self.leave_partial(self.dir / "left.h5.partial")
        shutil.copytree(self.dir / "left.h5.partial", self.dir / "soak" / "a.h5.partial")
        self.assert_code(self.assay("recover", "left.h5.partial", "-o", "soak/b.h5"), 0)
        result = self.assay("verdict", "soak")
        self.assertIn("a.h5.partial holds the same run as b.h5", result.stdout)

    def test_the_page_shows_a_run_that_died_where_it_is_the_newest(self):
        self.leave_partial(self.dir / "late.h5.partial")
        (self.dir / "soak").mkdir()
        (self.dir / "late.h5.partial").rename(self.dir / "soak" / "z.h5.partial")
        result = self.assay("verdict", "soak", "--report", "page.html")
        alone = self.assay("verdict", "soak/z.h5.partial")
        self.assert_code(result, alone.returncode)
        self.assertIn("this page shows the newest, z.h5.partial.", (self.dir / "page.html").read_text())

    def test_one_file_that_cannot_be_read_is_named(self):
        self.place(seg01="pass")
        self.write("soak/seg02.h5", "no results")
        result = self.assert_error(["verdict", "soak"], "")
        self.assertIn("seg02.h5", result.stderr)

    def test_empty_directory(self):
        (self.dir / "soak").mkdir()
        self.write("soak/readme.txt", "nothing here")
        self.assert_error(["verdict", "soak"], "soak:")


class OneWriter(harness.CliTest):
    def test_of_two_runs_at_once_one_is_refused(self):
        processes = [subprocess.Popen([harness.ASSAY, *selftest("pass", "same.h5")], cwd=self.dir,
                                      env={**os.environ, **harness.LAUNCH}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True) for _ in range(3)]
        outcomes = []
        for process in processes:
            _, said = process.communicate(timeout=90)
            outcomes.append((process.returncode, said))
        refused = [said for code, said in outcomes if code == 4]
        self.assertEqual(len(refused), 2, outcomes)
        for said in refused:
            self.assertIn("same.h5", said)
            self.assertEqual(said.count("\n"), 1)
        self.assertEqual(self.left_behind(), ["same.h5"])
        self.assert_code(self.assay("schema", "--check", "same.h5"), 0)

    def test_a_directory_that_is_left_over_is_named_and_kept(self):
        self.leave_partial(self.dir / "run.h5.partial")
        before = sorted((self.dir / "run.h5.partial").iterdir())
        result = self.assert_error(selftest("pass", "run.h5"), "run.h5.partial exists")
        for word in ["recover", "--resume", "--force"]:
            self.assertIn(word, result.stderr)
        self.assertEqual(sorted((self.dir / "run.h5.partial").iterdir()), before)

    def test_a_run_through_a_link_replaces_what_the_link_points_to(self):
        (self.dir / "d").mkdir()
        (self.dir / "run.h5").symlink_to("d/target.h5")
        for more in ([], ["--force"]):  # the target is not there yet, and then it is
            self.assertEqual(self.assay(*selftest("pass", "run.h5"), *more).returncode, 0)
            self.assertTrue((self.dir / "run.h5").is_symlink())
            self.assertEqual(sorted(p.name for p in (self.dir / "d").iterdir()), ["target.h5"])
        self.assert_code(self.assay(*selftest("pass", "run.h5")), 4)
        self.leave_partial(self.dir / "old.h5.partial")
        for command in (["recover", "old.h5.partial", "-o", "run.h5", "--force"],
                        ["simulate", "--nodes", "2", "-o", "run.h5", "--force"]):
            self.assay(*command)
            self.assertTrue((self.dir / "run.h5").is_symlink(), command)
            self.assertEqual(sorted(p.name for p in (self.dir / "d").iterdir()), ["target.h5"])
            self.assert_code(self.assay("schema", "--check", "run.h5"), 0)

    def test_a_resumed_run_may_be_presented_in_another_way(self):
        self.assay(*selftest("pass,skip", "a.h5"))
        again = [*selftest("pass,skip", "b.h5"), "--resume", "a.h5"]
        for option, value in [("--coverage", "c.csv"), ("--prometheus", "p.prom"), ("--color", "never")]:
            result = self.assay(*again, option, value, "--force")
            self.assertNotEqual(result.returncode, 4, result.stderr)
            self.assert_code(self.assay("schema", "--check", "b.h5"), 0)
        self.assertIn("c.csv", self.left_behind())
        other = self.assay(*again, "--threads", "1", "--force")
        self.assert_code(other, 4)
        self.assertIn("--resume a.h5: ", other.stderr)

    def test_a_plan_is_that_of_the_run_to_resume(self):
        self.leave_partial(self.dir / "r.h5.partial", "pass,skip")
        seed = re.search(r"(?m)^seed +(\d+)", self.assay("inspect", "r.h5.partial").stdout)[1]
        plan = ["plan", "--suites", "selftest", "--selftest.cases", "pass,skip", "--resume", "r.h5.partial"]
        for more in ([], ["--pairs"]):
            planned = self.assay(*plan, *more)
            self.assert_code(planned, 0)
            self.assertIn(f" seed {seed},", planned.stdout)
            self.assertIn("\n1 of 2 cases is stored in r.h5.partial and not measured again:\n  selftest/pass\n", planned.stdout)
        other = str(int(seed) + 1)
        self.assert_error([*plan, "--seed", other], f"--seed {other} seed {seed}")
        refused = self.assay("plan", "--suites", "selftest", "--selftest.cases", "pass", "--resume", "r.h5.partial")
        self.assert_code(refused, 4)
        self.assertIn("--resume r.h5.partial: --selftest.cases", refused.stderr)
        # In place the launch must be the same, too; in a new file it need not.
        refused = self.assay(*plan, "--expect-ranks", "1")
        self.assert_code(refused, 4)
        self.assertIn("--resume r.h5.partial: --expect-ranks", refused.stderr)

    def test_modes_follow_the_umask(self):
        old = os.umask(0o027)
        try:
            self.assay(*selftest("pass", "run.h5"), "--json", "v.json", "--junit", "v.xml", "--nodes", "n.txt")
            self.assay("export", "run.h5", "--csv", "-o", "samples.csv")
            self.leave_partial(self.dir / "left.h5.partial")
            self.assay("recover", "left.h5.partial", "-o", "recovered.h5")
        finally:
            os.umask(old)
        for name in ["run.h5", "v.json", "v.xml", "n.txt", "samples.csv", "recovered.h5"]:
            with self.subTest(name):
                self.assertEqual(stat.S_IMODE((self.dir / name).stat().st_mode), 0o640)


if __name__ == "__main__":
    harness.main()
