# SPDX-License-Identifier: Apache-2.0
"""An option wrong in name, value or combination: one clear line naming it, exit 4, nothing written."""

import harness


class Names(harness.CliTest):
    def test_no_command(self):
        self.assert_error([], "no command given (commands: run, plan,")

    def test_unknown_command(self):
        self.assert_error(["rnu"], "rnu: no such command (did you mean run?)")

    def test_unknown_option_of_every_command(self):
        for command in ["run", "plan", "list", "inspect", "verdict", "compare", "export", "schema", "recover", "simulate", "import", "completion", "man"]:
            with self.subTest(command):
                self.assert_error([command, "--nosuch"], f"--nosuch: unknown option of {command}")

    def test_nearest_option_is_suggested(self):
        self.assert_error(["run", "--levle", "smoke"], "--levle: unknown option of run (did you mean --level?)")

    def test_options_stand_below_the_suite_that_they_belong_to(self):
        said = self.assay("plan", "--help").stdout
        self.assertNotIn("Options of suite :", said)
        self.assertLess(said.index("--as-nodes"), said.index("Options of suite gemm:"))

    def test_options_of_later_versions_are_not_taken_in_silence(self):
        for name in ["--retest"]:
            with self.subTest(name):
                self.assert_error(["run", name, "x"], f"{name}: unknown option of run")

    def test_resume(self):
        self.assert_error(["run", "--resume", "x.txt"], "--resume: 'x.txt' is neither NAME.h5.partial nor NAME.h5")
        self.assert_error(["run", "--resume", "x.h5"], "cannot read x.h5: No such file or directory")
        self.assert_error(["run", "--resume", "x.h5.partial"], "there is no directory x.h5.partial")
        self.assert_error(["run", "--resume", "x.h5.partial", "--out", "y.h5"],
                          "--out: --resume writes the file of the resumed run")
        self.assert_error(["run", "--resume", "x.h5.partial", "--level", "soak", "--duration", "2h"],
                          "--resume: not with a soak of several segments")

    def test_nodes_that_take_part(self):
        self.assert_error(["run", "--only", "nosuch[1-3]"], "--only: no rank runs on 'nosuch1'")
        self.assert_error(["run", "--exclude", "*"], "--exclude: no node is left to measure")
        self.assert_error(["run", "--exclude", "node[1-"], "--exclude: 'node[1-': a bracket is not closed")
        self.assert_error(["plan", "--only", "node[x]"], "--only: 'node[x]': a bracket holds numbers and ranges")
        self.assert_error(["run", "--exclude", "no/such/file"], "--exclude: there is no file 'no/such/file'")
        empty = self.write("empty", "# nobody\n")
        self.assert_error(["run", "--exclude", empty], "--exclude: names no node")

    def test_option_before_the_command(self):
        self.assert_error(["--quiet", "run"], "--quiet: unknown option; a command comes first")

    def test_unexpected_argument(self):
        self.assert_error(["run", "gemm"], "run: unexpected argument 'gemm'")

    def test_line_breaks_in_what_was_typed_do_not_break_the_line(self):
        self.assert_error(["run", "--suites", "no\nsuch"], "--suites: no suite 'no such'")


class Values(harness.CliTest):
    def test_unknown_suite(self):
        self.assert_error(["run", "--suites", "gemm,nosuch"], "--suites: no suite 'nosuch' (suites: inventory, gemm, ")

    def test_hidden_suite_is_not_advertised(self):
        result = self.assert_error(["run", "--suites", "nosuch"], "--suites: no suite 'nosuch'")
        self.assertNotIn("selftest", result.stderr)

    def test_missing_value(self):
        self.assert_error(["run", "--level"], "--level: needs a value")
        self.assert_error(["run", "--out", "--force"], "--out: needs a value, '--force' is an option")

    def test_empty_value(self):
        self.assert_error(["run", "--out="], "--out: empty value")
        self.assert_error(["run", "--limits", ""], "--limits: empty value")

    def test_value_given_twice(self):
        self.assert_error(["run", "--level", "smoke", "--level", "quick"], "--level: given 2 times")

    def test_bad_value_of_every_kind(self):
        cases = [
            (["--level", "tiny"], "--level: 'tiny' is not one of smoke, quick, standard, extended, soak"),
            (["--device", "tpu"], "--device: 'tpu' is not one of auto, host, cuda"),
            (["--seed", "x"], "--seed: 'x' is no whole number"),
            (["--seed", "1.5"], "--seed: '1.5' is no whole number"),
            (["--seed", "-1"], "--seed: -1 is less than 0"),
            (["--seed", "99999999999999999999"], "--seed: '99999999999999999999' is out of range"),
            (["--threads", "0"], "--threads: 0 is less than 1"),
            (["--expect-nodes", "0"], "--expect-nodes: 0 is less than 1"),
            (["--expect-ranks", "-4"], "--expect-ranks: -4 is less than 1"),
            (["--expect-devices", "many"], "--expect-devices: 'many' is no whole number"),
            (["--max-file", "4KB"], "--max-file: '4KB' is no size"),
            (["--max-file", "0"], "--max-file: 0 leaves no room"),
            (["--level", "soak", "--duration", "soon"], "--duration: 'soon' is no duration"),
            (["--level", "soak", "--duration", "0"], "--duration: 0 s is not between"),
            (["--suites", "gemm,,memory"], "--suites: empty item in 'gemm,,memory'"),
            (["--strict=maybe"], "--strict: 'maybe' is neither true nor false"),
            (["--color", "red"], "--color: 'red' is not one of auto, always, never"),
            (["--progress", "loud"], "--progress: 'loud' is not one of auto, always, never"),
        ]
        for arguments, line in cases:
            with self.subTest(arguments):
                self.assert_error(["run", *arguments], line)

    def test_bad_value_of_a_suite_option(self):
        self.assert_error(["run", "--gemm.dtypes", "fp7"], "--gemm.dtypes: 'fp7' is not one of ")
        self.assert_error(["run", "--memory.fraction", "half"], "--memory.fraction: 'half' is no number")

    def test_device_that_cannot_be_used(self):
        self.assert_error(["run", "--device", "cuda"], "--device: cuda")


class Combinations(harness.CliTest):
    def test_contradictions(self):
        cases = [
            (["--level", "soak"], "--level: soak needs --duration"),
            (["--duration", "8h"], "--duration: only goes with --level soak, not quick"),
            (["--no-color", "--color", "always"], "--no-color: contradicts --color always"),
            (["--quiet", "--progress", "always"], "--quiet: contradicts --progress always"),
            (["--out", "a", "--json", "a"], "--json: 'a' is already the file of another option"),
            (["--suites", "memory", "--gemm.dtypes", "fp32"], "--gemm.dtypes: suite gemm is not among --suites"),
        ]
        for arguments, line in cases:
            for command in ["run", "plan"]:
                with self.subTest(command=command, arguments=arguments):
                    self.assert_error([command, *arguments], line)

    def test_export_needs_one_form(self):
        self.assert_error(["export", "x.h5"], "export: needs exactly one of --csv, --jsonl, --table")
        self.assert_error(["export", "x.h5", "--csv", "--table"], "export: needs exactly one of --csv, --jsonl, --table")

    def test_recover_needs_an_output(self):
        self.assert_error(["recover", "x.h5.partial"], "recover: -o FILE is missing")

    def test_missing_arguments(self):
        for command, name in [("inspect", "FILE"), ("verdict", "FILE"), ("recover", "PARTIAL"), ("completion", "SHELL")]:
            with self.subTest(command):
                self.assert_error([command], f"{command}: {name} is missing (usage: assay {command} ")

    def test_unknown_words(self):
        self.assert_error(["completion", "tcsh"], "completion: 'tcsh'")
        self.assert_error(["list", "everything"], "list: 'everything' is not one of suites, metrics,")


if __name__ == "__main__":
    harness.main()
