# SPDX-License-Identifier: Apache-2.0
"""Help, version, list, completion, and what happens when nobody reads the output."""

import errno
import os
import re
import shutil
import subprocess
import unittest

import harness

COMMANDS = ["run", "plan", "list", "inspect", "verdict", "compare", "export", "schema", "recover", "simulate", "import", "report", "trend", "completion", "man"]


class Help(harness.CliTest):
    def test_top(self):
        result = self.assay("--help")
        self.assert_code(result, 0)
        self.assertEqual(result.stderr, "")
        for command in COMMANDS:
            self.assertIn(f"\n  {command} ", result.stdout)

    def test_every_command(self):
        for command in COMMANDS:
            with self.subTest(command):
                result = self.assay(command, "--help")
                self.assert_code(result, 0)
                self.assertEqual(result.stderr, "")
                self.assertIn(f"\nUsage: assay {command}", result.stdout)
                self.assertIn("\nExamples:\n", result.stdout)
                self.assertLessEqual(max(map(len, result.stdout.splitlines())), 80)
                self.assertEqual(self.assay(command, "-h").stdout, result.stdout)

    def test_run_shows_the_options_of_the_suites_and_hides_the_hidden(self):
        text = self.assay("run", "--help").stdout
        self.assertIn("--gemm.dtypes", text)
        self.assertIn("--memory.fraction", text)
        self.assertNotIn("selftest", text)
        for command in ("run", "plan"):
            for name in ("--spent", "--absent", "internal,"):
                self.assertNotIn(name, self.assay(command, "--help").stdout)

    def test_simulate_tells_all_that_it_takes(self):
        page = self.assay("simulate", "--help").stdout
        kinds = re.findall(r"^  ([a-z]+) ", page.partition("Kinds and their keys:\n")[2].partition("Values of the keys")[0], re.MULTILINE)
        text = " ".join(page.split())
        self.assertLessEqual({"slow", "bitflip", "corrupt", "crash", "lost", "dead"}, set(kinds))
        for kind in kinds:
            self.assertNotIn("unknown", self.assay("simulate", "-o", "s.h5", "--fault", f"{kind}:node=99,percent=5").stderr)
        for suite in re.search(r"or suites \(([a-z0-9, ]+)\)", text).group(1).split(", "):
            self.assert_code(self.assay("simulate", "--metrics", suite, "-o", f"{suite}.h5"), 0)
        self.assertIn("storage.h5", self.left_behind())


class Version(harness.CliTest):
    def test_names_every_library_device_and_transport(self):
        result = self.assay("--version")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"^assay \d+\.\d+\.\d+")
        for name in ["MPI", "BLAS", "HDF5", "hwloc", "CLI11", "fmt", "toml\\+\\+", "nlohmann-json", "Boost"]:
            self.assertRegex(result.stdout, rf"\n  {name} +\S.*\d+\.\d+")
        for name in ["Random123", "CUDA toolkit", "NCCL", "UCX", "host", "cuda", "mpi", "ucx", "nccl"]:
            self.assertRegex(result.stdout, rf"\n  {name} +\S")
        self.assertNotIn("Open MPI v", result.stdout, "as results files name it")


class List(harness.CliTest):
    def test_everything(self):
        result = self.assay("list")
        self.assert_code(result, 0)
        for title in ["Suites", "Cases", "Metrics", "Options", "Devices", "Transports"]:
            self.assertRegex(result.stdout, rf"(^|\n){title}")
        self.assertRegex(result.stdout, r"\n  cuda +(not built|built: [\s\S]*(GPUs? here|no\s+GPU\s+is\s+used))")
        self.assertNotRegex(result.stdout, r"\n  selftest")

    def test_fits_a_terminal(self):
        for part in ["suites", "metrics", "options", "devices", "transports"]:
            with self.subTest(part):
                text = self.assay("list", part).stdout
                self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_parts(self):
        self.assertRegex(self.assay("list", "suites").stdout, r"\n  gemm +\S")
        self.assertRegex(self.assay("list", "metrics").stdout, r"FLOP/s +higher")
        cases = self.assay("list", "cases")
        self.assertRegex(cases.stdout, r"memory/selftest-memory +smoke\+ quick\+")
        self.assert_code(cases, 0)
        self.assertRegex(cases.stdout, r"\n  gemm/\S+ .*smoke")
        self.assertNotIn("Metrics", cases.stdout)


class Completion(harness.CliTest):
    def complete(self, *words):
        """What bash proposes for the last of `words`."""
        script = self.assay("completion", "bash").stdout
        self.write("completion.bash", script)
        quoted = " ".join(f"'{word}'" for word in words)
        program = (f"source ./completion.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _assay; "
                   'printf "%s\\n" "${COMPREPLY[@]}"')
        result = subprocess.run(["bash", "--norc", "-c", program], cwd=self.dir, capture_output=True, text=True, timeout=30)
        self.assertEqual(result.stderr, "")
        return result.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("assay", "ve"), ["verdict"])

    def test_option_names(self):
        self.assertEqual(self.complete("assay", "run", "--le"), ["--level"])
        self.assertIn("--gemm.dtypes", self.complete("assay", "run", "--gemm."))
        self.assertEqual(self.complete("assay", "run", "--selftest."), [])
        self.assertEqual(self.complete("assay", "schema", "--"), ["--help", "--check"])

    def test_choices(self):
        levels = ["smoke", "quick", "standard", "extended", "soak"]
        self.assertEqual(self.complete("assay", "run", "--level", ""), levels)
        self.assertEqual(self.complete("assay", "run", "--strict", "--level", "s"), ["smoke", "standard", "soak"])
        self.assertEqual(self.complete("assay", "run", "--level", "=", "q"), ["quick"])

    def test_lists_complete_the_last_item(self):
        self.assertEqual(self.complete("assay", "run", "--suites", "gemm,mem"), ["gemm,memory"])

    def test_files(self):
        self.write("result.h5", "")
        self.assertEqual(self.complete("assay", "inspect", "res"), ["result.h5"])
        self.assertEqual(self.complete("assay", "run", "--out", "res"), ["result.h5"])

    def test_is_registered(self):
        self.assertIn("complete -F _assay assay", self.assay("completion", "bash").stdout)


class Output(harness.CliTest):
    def test_a_reader_that_goes_away_is_no_error(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        result = subprocess.run([harness.ASSAY, "run", "--help"], stdout=write_end, stderr=subprocess.PIPE, timeout=30)
        os.close(write_end)
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_no_file_gets_the_number_of_a_closed_stream(self):
        run = f"'{harness.ASSAY}' run --suites selftest --quiet --launcher none --out r.h5 --force"
        for closed in (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed):
                result = harness.execute(["sh", "-c", f"{run} {closed}"], self.dir)
                self.assert_code(result, 0)
                self.assertEqual(result.stderr, "")
                self.assert_code(self.assay("schema", "--check", "r.h5"), 0)
        result = harness.execute(["sh", "-c", f"'{harness.ASSAY}' export r.h5 --csv >&-"], self.dir)
        self.assert_code(result, 0)
        self.assertEqual(result.stderr, "", "it is no place for what was to be printed")

    @unittest.skipUnless(os.path.exists("/dev/full"), "this system has no /dev/full")
    def test_a_full_disk_behind_standard_output_is_one(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([harness.ASSAY, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stderr.splitlines(), [b"assay: standard output: " + os.strerror(errno.ENOSPC).encode()])

    def test_no_colour_codes_into_a_file(self):
        self.assertNotIn("\x1b", self.assay("list").stdout)


class ManPage(harness.CliTest):
    def test_every_command_and_option_is_in_it(self):
        page = self.assay("man").stdout.replace("\\-", "-")
        for command in COMMANDS:
            help_text = self.assay(command, "--help").stdout
            self.assertIn(f'.SS "assay {command}', page)
            for option in re.findall(r"^ {2}(?:-[a-z], |    )(--[a-z][a-z0-9.-]*)", help_text, re.M):
                if option != "--help":
                    self.assertIn(f"{option}\\fR", page)

    def test_formatters_have_nothing_to_complain_about(self):
        page = self.assay("man").stdout
        self.write("assay.1", page)
        for command, package in [(["mandoc", "-T", "lint", "-W", "warning", "assay.1"], "mandoc"),
                                 (["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "assay.1"], "man-db")]:
            if shutil.which(command[0]) is None:
                self.skipTest(f"no {command[0]} on this machine (package {package})")
            result = harness.execute(command, self.dir, env={"MANWIDTH": "80", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"})
            self.assertEqual(result.stderr, "")
            if command[0] == "mandoc":
                self.assertEqual([line for line in result.stdout.splitlines() if "missing date" not in line], [])
            else:
                self.assertTrue("contract.toml --nodes nodes.txt" in result.stdout, "the examples of verdict are set")


class PlanOfALauncher(harness.CliTest):
    def test_a_plan_is_that_of_the_ranks_that_a_run_starts(self):
        launcher = f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2"
        plan = ["plan", "--level", "smoke", "--suites", "p2p"]
        result = self.assay(*plan, "--launcher", launcher)
        self.assert_code(result, 0)
        self.assertIn("2 ranks on 1 node,", result.stdout)
        self.assertIn("1 rank on 1 node,", self.assay(*plan, "--launcher", "none").stdout)
        self.assertIn("8 ranks on 4 nodes,", self.assay(*plan, "--launcher", launcher, "--as-nodes", "4").stdout)
        self.write("r.h5", "precious")
        refused = self.assay(*plan, "--launcher", launcher, "--out", "r.h5")
        self.assert_code(refused, 4)
        self.assertEqual(refused.stderr.count("assay: "), 1, refused.stderr)


if __name__ == "__main__":
    harness.main()
