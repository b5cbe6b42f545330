# SPDX-License-Identifier: Apache-2.0
"""An option wrong in name, value or combination: one clear line naming it, exit 4, nothing written."""

import re

import harness


class Names(harness.CliTest):
    def test_no_command(self):
        self.assert_error([], "commands: run plan")

    def test_unknown_command(self):
        self.assert_error(["rnu"], "rnu: run")

    def test_unknown_option_of_every_command(self):
        for command in ["run", "plan", "list", "inspect", "verdict", "compare", "export", "schema", "recover", "simulate", "import", "completion", "man"]:
            with self.subTest(command):
                self.assert_error([command, "--nosuch"], f"--nosuch: {command}")

    def test_nearest_option_is_suggested(self):
        self.assert_error(["run", "--levle", "smoke"], "--levle: --level")

    def test_options_stand_below_the_suite_that_they_belong_to(self):
        said = self.assay("plan", "--help").stdout
        self.assertNotIn("Options of suite :", said)
        self.assertLess(said.index("--as-nodes"), said.index("Options of suite gemm:"))

    def test_options_of_later_versions_are_not_taken_in_silence(self):
        for name in ["--retest"]:
            with self.subTest(name):
                self.assert_error(["run", name, "x"], f"{name}:")

    def test_resume(self):
        self.assert_error(["run", "--resume", "x.txt"], "--resume: 'x.txt' NAME.h5.partial NAME.h5")
        self.assert_error(["run", "--resume", "x.h5"], "x.h5: No")
        self.assert_error(["run", "--resume", "x.h5.partial"], "x.h5.partial")
        self.assert_error(["run", "--resume", "x.h5.partial", "--out", "y.h5"],
                          "--resume: 'x.h5.partial'")
        (self.dir / "x.h5.partial").mkdir()
        self.assert_error(["run", "--resume", "x.h5.partial", "--out", "y.h5"],
                          "--out: --resume")
        self.assert_error(["run", "--resume", "x.h5.partial", "--level", "soak", "--duration", "2h"],
                          "--resume: soak")

    def test_plan_and_run_tell_the_same_of_a_file_that_is_not_finished(self):
        (self.dir / "x.h5.partial").mkdir()
        told = {self.assay(command, "--suites", "selftest", "--launcher", "none", "--out", "x.h5").stderr for command in ("plan", "run")}
        self.assertEqual(len(told), 1, told)
        self.assertIn("x.h5.partial exists: finish it with 'assay recover x.h5.partial -o x.h5'", told.pop())

    def test_nodes_that_take_part(self):
        self.assert_error(["run", "--only", "nosuch[1-3]"], "--only: 'nosuch1'")
        self.assert_error(["run", "--exclude", "*"], "--exclude:")
        self.assert_error(["run", "--exclude", "node[1-"], "--exclude: 'node[1-': closed")
        self.assert_error(["plan", "--only", "node[x]"], "--only: 'node[x]':")
        for option in ("--only", "--exclude"):
            for name in ("no/such/file", "drained.txt", "drained.nodes", "drained.hosts"):
                self.assert_error(["run", option, name], f"{option}: {name} is no file and no node")
            self.assert_error(["run", option, "node1,drained.lst"], f"{option}:")
        self.assert_error(["run", "--exclude", "node1,drained.lst"], "--exclude: drained.lst is no file and no node")

    def test_a_file_without_nodes_is_told(self):
        for content in ("", "# nobody\n"):
            with self.subTest(content):
                empty = self.write("empty", content)
                self.assert_error(["run", "--only", empty], f"--only: '{empty}' names no node")
                plan = self.assay("plan", "--suites", "selftest", "--quiet", "--exclude", empty)
                self.assert_code(plan, 0)
                self.assertEqual(plan.stderr, f"assay: --exclude: '{empty}' names no node\n")

    def test_option_before_the_command(self):
        self.assert_error(["--quiet", "run"], "--quiet:")

    def test_unexpected_argument(self):
        self.assert_error(["run", "gemm"], "run: 'gemm'")

    def test_line_breaks_in_what_was_typed_do_not_break_the_line(self):
        self.assert_error(["run", "--suites", "no\nsuch"], "--suites: 'no such'")


class Values(harness.CliTest):
    def test_unknown_suite(self):
        self.assert_error(["run", "--suites", "gemm,nosuch"], "--suites: 'nosuch' suites: inventory gemm")

    def test_hidden_suite_is_not_advertised(self):
        result = self.assert_error(["run", "--suites", "nosuch"], "--suites: 'nosuch'")
        self.assertNotIn("selftest", result.stderr)

    def test_missing_value(self):
        self.assert_error(["run", "--level"], "--level:")
        self.assert_error(["run", "--out", "--force"], "--out: '--force'")

    def test_empty_value(self):
        self.assert_error(["run", "--out="], "--out:")
        self.assert_error(["run", "--limits", ""], "--limits:")

    def test_a_dash_is_no_file(self):
        for command, option in [("run --suites selftest", "out"), ("run --suites selftest", "json"), ("verdict s.h5", "nodes"),
                                ("export s.h5 --csv", "output"), ("simulate", "output"), ("trend nights", "output")]:
            with self.subTest(command=command, option=option):
                self.assert_error([*command.split(), f"--{option}", "-"], f"--{option}: '-'")

    def test_value_given_twice(self):
        self.assert_error(["run", "--level", "smoke", "--level", "quick"], "--level: 2")

    def test_bad_value_of_every_kind(self):
        cases = [
            (["--level", "tiny"], "--level: 'tiny' smoke quick standard extended soak"),
            (["--device", "tpu"], "--device: 'tpu' auto host cuda"),
            (["--seed", "x"], "--seed: 'x'"),
            (["--seed", "1.5"], "--seed: '1.5'"),
            (["--seed", "-1"], "--seed: -1 0"),
            (["--seed", "99999999999999999999"], "--seed: '99999999999999999999'"),
            (["--threads", "0"], "--threads: 0 1"),
            (["--expect-nodes", "0"], "--expect-nodes: 0 1"),
            (["--expect-ranks", "-4"], "--expect-ranks: -4 1"),
            (["--expect-devices", "many"], "--expect-devices: 'many'"),
            (["--max-file", "4KB"], "--max-file: '4KB'"),
            (["--max-file", "0"], "--max-file: 0"),
            (["--level", "soak", "--duration", "soon"], "--duration: 'soon'"),
            (["--level", "soak", "--duration", "0"], "--duration: 0 s"),
            (["--level", "soak", "--duration", "8"], "--duration: 8 s mixed-together a soak takes at least unit missing"),
            (["--level", "soak", "--duration", "2", "--suites", "burn"], "--duration: 2 s a soak takes at least unit missing"),
            (["--storage.space", "1"], "--storage.space: '1' 1 MiB unit missing"),
            (["--launcher", "mpirun -n 1 assay"], "--launcher: 'assay' appended"),
            (["--launcher", "mpirun -n 1 /opt/assay run"], "--launcher: 'assay' appended"),
            (["--launcher", "mpirun -n 1 assay plan"], "--launcher: 'assay' appended"),
            (["--suites", "gemm,,memory"], "--suites: 'gemm,,memory'"),
            (["--strict=maybe"], "--strict: 'maybe'"),
            (["--color", "red"], "--color: 'red' auto always never"),
            (["--progress", "loud"], "--progress: 'loud' auto always never"),
        ]
        for arguments, line in cases:
            with self.subTest(arguments):
                self.assert_error(["run", *arguments], line)

    def test_bad_value_of_a_suite_option(self):
        self.assert_error(["run", "--gemm.dtypes", "fp7"], "--gemm.dtypes: 'fp7'")
        self.assert_error(["run", "--memory.fraction", "half"], "--memory.fraction: 'half'")

    def test_values_are_checked_whatever_the_level_plans(self):
        for option, value, line in [("burn.duty", "2", "'2' 0.1 and 0.9"), ("burn.duration", "0s", "'0s' 1 s"), ("train.comm-pressure", "-1", "'-1' 0.01 and 100"),
                                    ("train.checkpoint-every", "0", "'0' 1 and 10000"), ("train.batch", "0", "'0' 1 and 4096"),
                                    ("train.steps", "0", "'0' 1 and 100000"), ("memory.patterns", "none,random", "'none'"),
                                    ("memory.fraction", "3", "'3' 0.001 and 0.95"), ("memory.fraction", "0", "'0' 0.001 and 0.95")]:
            for command in ("run", "plan"):
                with self.subTest(command=command, option=option):
                    self.assert_error([command, "--level", "smoke", f"--{option}", value], f"--{option}: {line}")
        self.write("c.toml", "[train]\nsteps = 0\n")
        self.assert_error(["plan", "--level", "smoke", "--config", "c.toml"], "train.steps")

    def test_the_share_of_memory_is_that_of_all_suites(self):
        memory = r"memory per rank: (.+) agreed"
        plan = ["plan", "--level", "smoke", "--suites", "p2p"]
        little = self.assay(*plan, "--memory.fraction", "0.01")
        self.assert_code(little, 0)
        self.assertNotEqual(re.search(memory, little.stdout)[1], re.search(memory, self.assay(*plan).stdout)[1])
        self.write("c.toml", "[memory]\nfraction = -1\n")
        self.assert_error([*plan, "--config", "c.toml"], "memory.fraction")

    def test_device_that_cannot_be_used(self):
        self.assert_error(["run", "--device", "cuda"], "--device: cuda")


class Combinations(harness.CliTest):
    def test_contradictions(self):
        cases = [
            (["--level", "soak"], "--level: soak --duration"),
            (["--duration", "8h"], "--duration: --level soak quick"),
            (["--no-color", "--color", "always"], "--no-color: --color always"),
            (["--quiet", "--progress", "always"], "--quiet: --progress always"),
            (["--out", "a", "--json", "a"], "--json: 'a'"),
            (["--suites", "memory", "--gemm.dtypes", "fp32"], "--gemm.dtypes: gemm --suites"),
        ]
        for arguments, line in cases:
            for command in ["run", "plan"]:
                with self.subTest(command=command, arguments=arguments):
                    self.assert_error([command, *arguments], line)

    def test_export_needs_one_form(self):
        self.assert_error(["export", "x.h5"], "export: --csv --jsonl --table")
        self.assert_error(["export", "x.h5", "--csv", "--table"], "export: --csv --jsonl --table")

    def test_recover_needs_an_output(self):
        self.assert_error(["recover", "x.h5.partial"], "recover: -o FILE")

    def test_missing_arguments(self):
        for command, name in [("inspect", "FILE"), ("verdict", "FILE"), ("recover", "PARTIAL"), ("completion", "SHELL")]:
            with self.subTest(command):
                self.assert_error([command], f"{command}: {name} usage: assay {command}")

    def test_unknown_words(self):
        self.assert_error(["completion", "tcsh"], "completion: 'tcsh'")
        self.assert_error(["list", "everything"], "list: 'everything' suites metrics")


if __name__ == "__main__":
    harness.main()
