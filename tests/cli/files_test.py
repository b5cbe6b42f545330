# SPDX-License-Identifier: Apache-2.0
"""Commands on results files: missing, corrupt and truncated input is one line and exit 4; good input is exit 0."""

import csv
import io
import json
import os
import shutil
import signal
import stat
import subprocess

import harness
from temporary_folder import temporary_folder

FLEET = ["simulate", "--nodes", "8", "--metrics", "memory/triad-together", "-o"]
READERS = [["inspect"], ["verdict"], ["export", "--csv"], ["export", "--jsonl"], ["export", "--table"], ["schema", "--check"]]


class Files(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.good = temporary_folder(cls.addClassCleanup) / "good.h5"
        result = harness.execute([harness.ASSAY, "run", "--suites", "inventory,selftest", "--selftest.cases", "pass,skip",
                                  "--quiet", "--out", str(cls.good)], cls.good.parent)
        assert result.returncode == 3, result.stderr

    def test_a_parent_that_ignores_the_ends_of_children(self):
        for args, code in ((["inspect", self.good], 0), (["schema", "--check", self.good], 0), (["verdict", self.good], 3),
                           (["run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "smoke", "--out", "r.h5"], 0)):
            with self.subTest(args=args):
                result = subprocess.run([harness.ASSAY, *map(str, args)], cwd=self.dir, env={**os.environ, **harness.LAUNCH}, timeout=90,
                                        capture_output=True, text=True, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
                self.assert_code(result, code)
                self.assertNotIn("internal error", result.stderr)

    def test_missing(self):
        for reader in READERS:
            with self.subTest(reader):
                result = self.assert_error([*reader, "none.h5"], "")
                self.assertIn("none.h5", result.stderr)

    def test_not_hdf5(self):
        self.write("bad.h5", "this is no results file\n" * 100)
        self.write("empty.h5", "")
        for reader in READERS:
            for name in ["bad.h5", "empty.h5"]:
                with self.subTest(reader=reader, name=name):
                    result = self.assert_error([*reader, name], "")
                    self.assertIn(name, result.stderr)

    def test_truncated(self):
        content = self.good.read_bytes()
        for length in [100, len(content) // 2, len(content) * 9 // 10]:
            self.write("cut.h5", content[:length])
            for reader in READERS:
                with self.subTest(reader=reader, length=length):
                    result = self.assert_error([*reader, "cut.h5"], "")
                    self.assertIn("cut.h5", result.stderr)

    def test_another_hdf5_file(self):
        import h5py
        with h5py.File(self.dir / "other.h5", "w") as file:
            file["x"] = [1, 2, 3]
        for reader in READERS[:-1]:
            with self.subTest(reader):
                result = self.assert_error([*reader, "other.h5"], "")
                self.assertIn("other.h5", result.stderr)
        checked = self.assay("schema", "--check", "other.h5")
        self.assertIn(checked.returncode, (1, 4))

    def test_directory_that_is_no_run(self):
        (self.dir / "folder").mkdir()
        for reader in READERS:
            with self.subTest(reader):
                self.assert_error([*reader, "folder"], "")

    def test_good_file(self):
        for reader in READERS:
            with self.subTest(reader):
                result = self.assay(*reader, self.good)
                self.assert_code(result, 3 if reader[0] == "verdict" else 0)
                self.assertEqual(result.stderr, "")
                self.assertNotEqual(result.stdout, "")

    def test_csv_and_jsonl_hold_the_same_samples(self):
        rows = list(csv.DictReader(io.StringIO(self.assay("export", self.good, "--csv").stdout)))
        objects = [json.loads(line) for line in self.assay("export", self.good, "--jsonl").stdout.splitlines()]
        samples = [item for item in objects if item["record"] == "sample"]
        self.assertGreater(len(rows), 0)
        self.assertEqual([(r["case"], r["metric"], float(r["value"])) for r in rows],
                         [(s["case"], s["metric"], s["value"]) for s in samples])

    def test_export_into_a_file(self):
        printed = self.assay("export", self.good, "--csv").stdout
        result = self.assay("export", self.good, "--csv", "-o", "samples.csv")
        self.assert_code(result, 0)
        self.assertEqual(result.stdout, "")
        self.assertEqual((self.dir / "samples.csv").read_text(), printed)
        self.assertEqual(self.left_behind(), ["samples.csv"])

    def test_export_never_replaces_its_input(self):
        shutil.copy(self.good, self.dir / "copy.h5")
        self.assert_error(["export", "copy.h5", "--csv", "-o", "./copy.h5"], "--output: './copy.h5'")
        self.assert_error(["verdict", "copy.h5", "--json", "copy.h5"], "--json: 'copy.h5'")
        self.assertEqual((self.dir / "copy.h5").read_bytes(), self.good.read_bytes())

    def test_a_fail_is_told_although_outputs_cannot_be_written(self):
        self.assert_code(self.assay(*FLEET, "f.h5", "--fault", "dead:node=3,value=0"), 2)
        for more, why in [(["--json", "/dev/full", "--junit", "v.xml"], "--json: cannot write '/dev/full'"),
                          (["--write-limits", "l.toml", "--junit", "v.xml"], "--write-limits: f.h5 is FAIL")]:
            with self.subTest(more):
                result = self.assay("verdict", "f.h5", *more)
                self.assert_code(result, 2)
                self.assertIn("FAIL (exit 2)", result.stdout)
                self.assertIn(why, result.stderr)
                self.assertEqual(self.left_behind(), ["f.h5", "v.xml"])
                (self.dir / "v.xml").unlink()
        self.assert_code(self.assay(*FLEET, "g.h5"), 0)
        for more in ([], ["--explain", "sim00"]):
            passed = self.assay("verdict", "g.h5", "--json", "/dev/full", *more)
            self.assert_code(passed, 3)
            self.assertEqual(passed.stdout.splitlines()[-1], "PASS (exit 3)")
        run = self.assay("run", "--suites", "selftest", "--quiet", "--launcher", "none", "--out", "r.h5", "--json", "/dev/full")
        self.assert_code(run, 3)
        self.assertEqual(run.stdout.splitlines()[-1], "PASS (exit 3)")
        compared = self.assay("compare", "f.h5", "f.h5", "--json", "/dev/full")
        self.assert_code(compared, 3)
        self.assertIn("AMBIGUOUS (exit 3)", compared.stdout)

    def test_outputs_replace_neither_inputs_nor_each_other(self):
        (self.dir / "d").mkdir()
        for name in ["d/a.h5", "b.h5", "c,d.h5"]:
            self.assay(*FLEET, name)
        self.write("l.toml", '[[limit]]\nmetric = "memory/*:bandwidth"\nmin = "1 B/s"\n')
        (self.dir / "link.h5").symlink_to("b.h5")
        before = {path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file()}
        for args, names in [(["verdict", "d", "--json", "d/a.h5"], "--json: 'd/a.h5' read"),
                            (["verdict", "link.h5", "--json", "b.h5"], "--json: 'b.h5' read"),
                            (["verdict", "b.h5", "--limits", "l.toml", "--write-limits", "l.toml"], "--write-limits: 'l.toml' read"),
                            (["verdict", "b.h5", "--baseline", "d", "--json", "d/a.h5"], "--json: 'd/a.h5' read"),
                            (["verdict", "b.h5", "--history", "d/a.h5,c,d.h5", "--nodes", "d/a.h5"], "--nodes: 'd/a.h5' read"),
                            (["verdict", "b.h5", "--json", "x", "--junit", "./x"], "--junit: --json"),
                            (["report", "d/a.h5,b.h5", "c,d.h5", "-o", "d/a.h5"], "--output: 'd/a.h5' read"),
                            (["trend", "d/a.h5,b.h5", "-o", "link.h5"], "--output: 'link.h5' read"),
                            (["compare", "d/a.h5,b.h5", "c,d.h5", "--json", "c,d.h5"], "--json: 'c,d.h5' read"),
                            (["run", "--suites", "selftest", "--out", "x.h5", "--json", "./x.h5"], "--out: 'x.h5' --json")]:
            with self.subTest(args):
                self.assert_error(args, names)
        self.assertEqual({path: path.read_bytes() for path in self.dir.rglob("*") if path.is_file()}, before)

    def test_output_through_a_link_keeps_the_link(self):
        (self.dir / "d").mkdir()
        (self.dir / "link").symlink_to("d/v.json")
        for _ in range(2):
            self.assert_code(self.assay("verdict", self.good, "--json", "link"), 3)
            self.assertTrue((self.dir / "link").is_symlink())
        self.assertIn("INCONCLUSIVE", (self.dir / "d" / "v.json").read_text())

    def test_export_into_nowhere(self):
        for form in ["--csv", "--jsonl"]:
            self.assert_error(["export", self.good, form, "-o", "/dev/full"], "--output: '/dev/full': No space", code=3)
        self.assert_error(["export", self.good, "--csv", "-o", "/nonexistent-folder/x.csv"],
                          "--output: '/nonexistent-folder/x.csv'")

    def test_results_do_not_replace_special_files(self):
        os.mkfifo(self.dir / "pipe")
        (self.dir / "link.h5").symlink_to("pipe")
        for name in ("pipe", "link.h5"):
            for args in (["run", "--suites", "selftest", "--out"], ["simulate", "--nodes", "2", "-o"]):
                with self.subTest(args):
                    self.assert_error([*args, name, "--force"], "is a special file")
        self.assertTrue(stat.S_ISFIFO((self.dir / "pipe").stat().st_mode))
        self.assertTrue((self.dir / "link.h5").is_symlink())

    def test_verdict_with_limits_that_cannot_be_read(self):
        self.assert_error(["verdict", self.good, "--limits", "none.toml"], "--limits: 'none.toml'")

    def test_verdict_writes_its_outputs(self):
        result = self.assay("verdict", self.good, "--json", "v.json", "--nodes", "n.txt", "--junit", "v.xml")
        self.assert_code(result, 3)
        self.assertEqual(self.left_behind(), ["n.txt", "v.json", "v.xml"])

    def test_schema_prints_json(self):
        result = self.assay("schema")
        self.assert_code(result, 0)
        self.assertIsInstance(json.loads(result.stdout), dict)

    def test_schema_finds_a_broken_file(self):
        import h5py
        shutil.copy(self.good, self.dir / "broken.h5")
        with h5py.File(self.dir / "broken.h5", "r+") as file:
            del file["cases/selftest/pass/duration"].attrs["unit"]
        result = self.assay("schema", "--check", "broken.h5")
        self.assert_code(result, 1)
        self.assertIn("duration", result.stdout)
        self.assertIn("unit", result.stdout)

    def test_recover_keeps_what_it_makes_no_valid_file_of(self):
        """A case of another run, which the plan does not hold."""
        for name, case in (("a", "pass"), ("b", "fail")):
            self.leave_partial(self.dir / f"{name}.h5.partial", case)
        stray = self.dir / "a.h5.partial" / "cases" / "000009.h5"
        next((self.dir / "b.h5.partial" / "cases").glob("*.h5")).rename(stray)
        result = self.assay("recover", "a.h5.partial", "-o", "r.h5")
        self.assert_code(result, 3)
        self.assertEqual(result.stdout, "r.h5: recovered; it does not pass 'assay schema --check': not in /plan: /cases/selftest/fail; a.h5.partial is kept\n")
        self.assert_code(self.assay("schema", "--check", "r.h5"), 1)
        self.assertTrue(stray.exists())
        stray.unlink()
        self.assert_code(self.assay("recover", "a.h5.partial", "-o", "r.h5", "--force"), 0)
        self.assertEqual(self.left_behind(), ["b.h5.partial", "r.h5"])

    def test_recover_errors(self):
        self.assert_error(["recover", "none.h5.partial", "-o", "r.h5"], "")
        (self.dir / "empty.h5.partial").mkdir()
        self.assert_error(["recover", "empty.h5.partial", "-o", "r.h5"], "")


if __name__ == "__main__":
    harness.main()
