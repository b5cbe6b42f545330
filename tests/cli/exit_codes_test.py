# SPDX-License-Identifier: Apache-2.0
"""Every exit code of `run`, from cases that pass, fail, skip and throw on purpose."""

import re
import subprocess
import time

import harness


class ExitCodes(harness.CliTest):
    def run_selftest(self, cases, *more):
        return self.assay("run", "--suites", "selftest", "--selftest.cases", cases, "--out", "r.h5", *more)

    def assert_file_agrees(self, code):
        """The file is there, nothing else is, and `verdict` repeats the exit code."""
        self.assertTrue((self.dir / "r.h5").exists())
        self.assertFalse((self.dir / "r.h5.partial").exists())
        self.assert_code(self.assay("verdict", "r.h5"), code)

    def test_failed_case_is_2(self):
        result = self.run_selftest("fail")
        self.assert_code(result, 2)
        self.assertIn("FAIL", result.stdout)
        self.assertIn("selftest/fail", result.stdout)
        self.assert_file_agrees(2)

    def test_failed_beats_inconclusive(self):
        self.assert_code(self.run_selftest("pass,skip,fail"), 2)
        self.assert_file_agrees(2)

    def test_skipped_required_case_is_3(self):
        result = self.run_selftest("pass,skip")
        self.assert_code(result, 3)
        self.assertIn("INCONCLUSIVE", result.stdout)
        self.assert_file_agrees(3)

    def test_case_that_throws_is_3(self):
        for what in ["throw", "throw-unknown"]:
            with self.subTest(what):
                result = self.run_selftest(what, "--force")
                self.assert_code(result, 3)
                self.assertIn("INCONCLUSIVE", result.stdout)
                self.assert_file_agrees(3)

    def test_no_case_at_all_is_never_0(self):
        result = self.run_selftest("pass", "--cases", "selftest/none*")
        self.assertIn(result.returncode, (3, 4), result.stderr)

    def test_self_tests_alone_are_never_0(self):
        smoke = ["run", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "r.h5", "--force", "--suites"]
        for arguments, why in [(["p2p"], "p2p: "), (["congestion"], "congestion: "), (["p2p,congestion"], "congestion: .*; p2p: "),
                               (["gemm", "--gemm.sizes", "65536"], "gemm: needs .* per rank")]:
            with self.subTest(arguments):
                result = self.assay(*smoke, *arguments)
                self.assert_code(result, 3)
                self.assertRegex(result.stdout, "nothing was measured: " + why)

    def test_cases_bring_the_self_tests_that_they_need(self):
        for suites, cases, brought in [("memory", "memory/triad*", "memory/selftest-memory "), ("gemm", "*-alone", "gemm/fp"),
                                       ("memory", "*selftest*", "memory/selftest-memory "),
                                       ("train", "train/*-lockstep", "train/selftest-train")]:
            with self.subTest(cases):
                plan = self.assay("plan", "--suites", suites, "--cases", cases, *(["--train.preset", "tiny"] if suites == "train" else []))
                self.assert_code(plan, 0)
                self.assertIn(brought, plan.stdout)
                self.assertNotIn("memory/pattern-", plan.stdout)
        run = self.assay("run", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "r.h5", *harness.LITTLE_MEMORY,
                         "--suites", "memory,gemm", "--cases", "gemm/*-alone")
        self.assert_code(run, 0)
        run = self.assay("run", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "s.h5", *harness.memory_beside_caches(1),
                         "--suites", "memory", "--memory.patterns", "none")
        if run.returncode == 3 and "the system gave out no more" in " ".join(run.stdout.split()):
            self.skipTest("noise: on this busy machine memory came too slowly for more than caches")
        self.assert_code(run, 0)

    def test_a_suite_of_which_only_self_tests_ran_is_a_note_beside_others(self):
        result = self.assay("run", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "r.h5", "--suites", "inventory,p2p")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"INFO .*p2p: only self-tests were run: ")
        self.assertRegex(result.stdout, r"\nPASS \(exit 0\)\n")

    def test_machine_readable_outputs(self):
        result = self.run_selftest("pass,skip", "--json", "v.json", "--junit", "v.xml", "--nodes", "n.txt", "--prometheus", "n.prom")
        self.assert_code(result, 3)
        self.assertEqual(self.left_behind(), ["n.prom", "n.txt", "r.h5", "v.json", "v.xml"])
        import json
        import xml.etree.ElementTree
        self.assertIsInstance(json.loads((self.dir / "v.json").read_text()), dict)
        xml.etree.ElementTree.parse(self.dir / "v.xml")
        self.assertIn("INCONCLUSIVE", (self.dir / "n.txt").read_text() + (self.dir / "v.json").read_text())

    def test_quiet_says_less_and_still_the_verdict(self):
        loud = self.run_selftest("pass,skip")
        quiet = self.run_selftest("pass,skip", "--quiet", "--force")
        self.assertIn("INCONCLUSIVE", quiet.stdout)
        self.assertEqual(quiet.stderr, "")
        self.assertLess(len(quiet.stdout), len(loud.stdout))

    def test_default_name_has_the_time(self):
        self.assay("run", "--suites", "selftest", "--selftest.cases", "pass")
        self.assertEqual(len(self.left_behind()), 1)
        self.assertRegex(self.left_behind()[0], r"^assay-\d{8}T\d{6}Z\.h5$")


class Output(harness.CliTest):
    PASS = ["run", "--suites", "selftest", "--selftest.cases", "pass", "--quiet"]

    def test_unwritable_out(self):
        self.assert_error([*self.PASS, "--out", "/nonexistent-folder/r.h5"], "")
        self.assertIn("/nonexistent-folder", self.assay(*self.PASS, "--out", "/nonexistent-folder/r.h5").stderr)
        self.assert_error([*self.PASS, "--out", "/proc/r.h5"], "")
        self.write("plain", "no folder")
        self.assert_error([*self.PASS, "--out", "plain/r.h5"], "")

    def test_a_name_that_is_too_long_is_named(self):
        for name in ("x" * 300 + ".h5", "x" * 250 + ".h5", "x/" * 3000 + "r.h5"):
            with self.subTest(length=len(name)):
                self.assert_error([*self.PASS, "--out", name], "--out: name too long")
                self.assert_error([*self.PASS, "--json", name], "--json: name too long")
                self.assert_error(["simulate", "-o", name], "--output: name too long")

    def test_out_is_a_directory(self):
        (self.dir / "folder").mkdir()
        self.assert_error([*self.PASS, "--out", "folder"], "")

    def test_existing_out_needs_force(self):
        self.write("r.h5", "precious")
        result = self.assert_error([*self.PASS, "--out", "r.h5"], "")
        self.assertIn("r.h5", result.stderr)
        self.assertIn("--force", result.stderr)
        self.assertEqual((self.dir / "r.h5").read_text(), "precious")
        self.assertNotEqual(self.assay(*self.PASS, "--out", "r.h5", "--force").returncode, 4)
        self.assertTrue((self.dir / "r.h5").read_bytes().startswith(b"\x89HDF"))

    def test_stale_partial_directory_is_named_with_the_ways_out(self):
        (self.dir / "r.h5.partial").mkdir()
        result = self.assert_error([*self.PASS, "--out", "r.h5"], "")
        for word in ["r.h5.partial", "recover", "--force"]:
            self.assertIn(word, result.stderr)

    def test_a_missing_directory_for_checkpoints_is_not_made(self):
        run = self.assay("run", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "r.h5", "--suites", "train",
                         "--train.preset", "tiny", "--cases", "train/*-checkpoint", "--train.scratch", self.dir / "no" / "such")
        self.assert_code(run, 3)
        self.assertIn("--train.scratch:", run.stdout)
        self.assertEqual(self.left_behind(), ["r.h5"])

    def test_a_second_run_is_told_of_the_first(self):
        run = [harness.ASSAY, "run", "--suites", "memory", "--level", "smoke", "--quiet", "--launcher", "none", "--out", "r.h5", *harness.LITTLE_MEMORY]
        with subprocess.Popen(run, cwd=self.dir, stdout=subprocess.DEVNULL) as first:
            while first.poll() is None and not (self.dir / "r.h5.partial" / "plan.json").exists():
                time.sleep(0.01)
            second = self.assay(*self.PASS, "--out", "r.h5")
        self.assert_code(second, 4)
        self.assertRegex(second.stderr, r"^assay: r\.h5: a run is writing it \(process \d+ on \S+, in r\.h5\.partial\)\n$")
        self.assertEqual(self.left_behind(), ["r.h5"])

    def test_a_small_address_space_is_told_and_not_waited_for(self):
        for limit, told in [(150000, "to load the libraries"), (330000, "to start a rank")]:
            with self.subTest(limit):
                run = harness.execute(["bash", "-c", f"ulimit -v {limit}; '{harness.ASSAY}' run --suites selftest --launcher none --out r.h5"],
                                      self.dir)
                self.assert_code(run, 4)
                self.assertRegex(run.stderr, rf"\Aassay: the limit of the address space is \d+ KiB too small {told}: raise it .*\(ulimit -v\)\n\Z")

    def test_limits_of_the_shell_are_named(self):
        self.assert_code(self.assay("simulate", "--nodes", "8", "-o", "s.h5"), 0)
        for limit, command, code, named in [("-f 10", "export s.h5 --csv -o e.csv", 3, "ulimit -f"), ("-s 64", "verdict s.h5", 4, "ulimit -s")]:
            with self.subTest(limit):
                result = harness.execute(["bash", "-c", f"ulimit {limit}; '{harness.ASSAY}' {command}"], self.dir)
                self.assert_code(result, code)
                self.assertIn(named, result.stderr)
                self.assertNotIn("damaged", result.stderr)
                self.assertEqual(self.left_behind(), ["s.h5"])

    def test_unwritable_small_outputs_are_found_before_the_run(self):
        for option in ["--json", "--junit", "--nodes", "--prometheus"]:
            with self.subTest(option):
                self.assert_error([*self.PASS, option, "/nonexistent-folder/x"], f"{option}:")
                self.assert_error([*self.PASS, option, "/proc/self"], f"{option}: '/proc/self'")

    def test_max_file_is_checked_before_the_start(self):
        self.assert_error([*self.PASS, "--max-file", "1kB"], "--max-file:")


class Smoke(harness.CliTest):
    def test_smoke_of_one_suite_passes(self):
        result = self.assay("run", "--level", "smoke", "--suites", "inventory,gemm", "--out", "smoke.h5")
        self.assert_code(result, 0)
        self.assertIn("PASS", result.stdout)
        self.assertIn("smoke.h5", result.stdout)
        self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)
        self.assertEqual(self.left_behind(), ["smoke.h5"])
        self.assert_code(self.assay("verdict", "smoke.h5"), 0)
        self.assert_code(self.assay("schema", "--check", "smoke.h5"), 0)

        impossible = '[[limit]]\nmetric = "gemm/*:throughput"\nmin = "900 PFLOP/s"\n'
        self.write("limits.toml", impossible)
        judged = self.assay("verdict", "smoke.h5", "--limits", "limits.toml")
        self.assert_code(judged, 2)
        self.assertIn("throughput", judged.stdout)
        self.assert_code(self.assay("verdict", "smoke.h5", "--strict"), self.strict_code(result.stdout))

    def strict_code(self, summary):
        return 1 if "WARN" in summary else 0

    def test_plan_runs_nothing(self):
        result = self.assay("plan", "--level", "smoke")
        self.assert_code(result, 0)
        self.assertIn("gemm/", result.stdout)
        self.assertRegex(result.stderr, r"planned in \S+ .*\bmemory\b.* \S+ MiB")
        self.assertEqual(self.left_behind(), [])

    def test_plan_refuses_what_run_refuses(self):
        self.write("r.h5", "precious")
        (self.dir / "s.h5.partial").mkdir()
        for arguments, line in [(["--out", "r.h5"], "r.h5 exists --force"), (["--out", "s.h5"], "s.h5.partial exists"), (["--out", "no/such/r.h5"], "--out:"),
                                (["--json", "no/such/v.json"], "--json:"), (["--history", "none"], "--history:")]:
            for command in ("run", "plan"):
                with self.subTest(command=command, arguments=arguments):
                    self.assert_error([command, "--suites", "selftest", *arguments], "no/such" if command == "run" and "no/such/r.h5" in arguments else line)
        self.assert_code(self.assay("plan", "--suites", "selftest", "--out", "r.h5", "--force"), 0)

    def test_names_that_match_nothing_are_told_before_the_run(self):
        self.write("l.toml", '[[limit]]\nmetric = "gemm/fp32-*:throughput"\nmin = "1 GFLOP/s"\n'
                             '[[limit]]\nmetric = "gemm/fq32-*:throughput"\nmin = "1 GFLOP/s"\n')
        result = self.assay("plan", "--suites", "gemm", "--level", "smoke", "--limits", "l.toml", "--exclude", "nonode",
                            "--require", "coverage,gemm,throughput,gemm/fp32-*,gemm/fq32-*,xid_79,mce,edac_ce:dimm0,nvml_pcie_fatal")
        self.assert_code(result, 0)
        said = [line for line in result.stderr.splitlines() if "planned in" not in line]
        self.assertEqual(len(said), 3, result.stderr)
        self.assertIn("--exclude: 'nonode' is no node of this launch", said[0])
        self.assertIn("l.toml:4: gemm/fq32-*:throughput matches no case of this plan: the run will be INCONCLUSIVE", said[1])
        self.assertIn("--require: no case of this plan is called 'gemm/fq32-*': the run will be INCONCLUSIVE", said[2])

    def test_names_to_require_that_nothing_can_have_are_refused(self):
        for name in ("trough", "gem/*", "edac_cf", "tx_byte"):
            self.assert_error(["run", "--suites", "selftest", "--require", f"coverage,{name}", "--out", "r.h5"],
                              f"--require: no suite, case, metric or counter is called '{name}'")
        self.assertEqual(self.left_behind(), [])

    def test_plan_tells_that_the_file_would_be_too_large(self):
        plan = ["plan", "--level", "smoke", "--suites", "inventory,gemm", "--as-nodes", "200"]
        self.assertNotIn("--max-file", self.assay(*plan).stdout)
        self.assertIn("--max-file allows 100 KiB", self.assay(*plan, "--max-file", "100KiB").stdout)

    def test_plan_tells_that_required_cases_take_longer_than_the_budget(self):
        plan = ["plan", "--level", "soak", "--suites", "gemm", "--duration"]
        self.assertRegex(self.assay(*plan, "1s").stderr, r"assay: required cases need .*, the budget is 1 s\n")
        self.assertNotIn("the budget is", self.assay(*plan, "1h").stderr)

    def test_plan_tells_who_meets_whom_on_as_many_nodes_as_asked(self):
        result = self.assay("plan", "--suites", "p2p", "--level", "quick", "--as-nodes", 64, "--pairs", "--launcher", "none")
        self.assert_code(result, 0)
        self.assertIn("64 ranks on 64 nodes", result.stdout)
        partners, busy = {}, set()
        for case, number, source, destination in re.findall(r"^(p2p/\S+) (\d+) (\S+) (\S+)$", result.stdout, re.M):
            for end, other in ((source, destination), (destination, source)):
                self.assertNotIn((case, number, end), busy, "nobody is in two pairs of a round")
                busy.add((case, number, end))
                partners.setdefault((case, end), set()).add(other)
        self.assertEqual(len({end for _, end in partners}), 64)
        self.assertGreaterEqual(min(map(len, partners.values())), 8)
        self.assert_error(["plan", "--as-nodes", "0"], "--as-nodes: 0 1 100000")


if __name__ == "__main__":
    harness.main()
