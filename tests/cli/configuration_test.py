# SPDX-License-Identifier: Apache-2.0
"""Configuration files and limits: what is wrong is named by file, line and key."""

import socket

import harness


class Configuration(harness.CliTest):
    def test_missing_file(self):
        self.assert_error(["run", "--config", "none.toml"], "--config: 'none.toml'")

    def test_a_file_that_only_some_nodes_have_is_named_with_the_host(self):
        other = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
        for option in ("--config", "--limits", "--topology"):
            self.assert_error(["run", option, "none"], f"{socket.gethostname().split('.')[0]}: {option}: 'none'", env=other)
            said = self.assay("run", option, "none", env={**other, "OMPI_COMM_WORLD_LOCAL_RANK": "1"})
            self.assertEqual((said.returncode, said.stderr), (4, ""), "one rank of a node says it")

    def test_a_pipe_is_read(self):
        piped = harness.execute(["bash", "-c", f"printf 'level = \"smoke\"\\n' | {harness.ASSAY} plan --config /dev/stdin"], self.dir)
        self.assert_code(piped, 0)
        self.assertIn("level smoke: ", piped.stdout)

    def test_too_many_threads(self):
        self.assert_error(["plan", "--threads", "4294967297"], "--threads: 4294967297 65536")

    def test_unknown_key_names_the_nearest(self):
        self.write("c.toml", 'level = "smoke"\nlimts = "x.toml"\n')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:2: limts: limits")

    def test_unknown_key_of_a_suite(self):
        self.write("c.toml", '[gemm]\ndtype = ["fp32"]\n')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:2: gemm.dtype: gemm.dtypes")

    def test_truncated_file(self):
        self.write("c.toml", 'level = "smoke"\nsuites = ["gemm",')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:2:")
        self.write("c.toml", 'level = "smo')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:1:")

    def test_binary_file(self):
        self.write("c.toml", bytes(range(256)))
        self.assert_error(["run", "--config", "c.toml"], "c.toml:1:")

    def test_wrong_type_and_value(self):
        self.write("c.toml", 'seed = "7"\n')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:1: seed: string")
        self.write("c.toml", '\nlevel = "tiny"\n')
        self.assert_error(["run", "--config", "c.toml"], "c.toml:2: level: 'tiny' smoke")

    def test_command_line_wins(self):
        self.write("c.toml", 'level = "soak"\nduration = "8h"\nsuites = ["nosuch"]\n')
        self.assert_error(["run", "--config", "c.toml"], "--suites: 'nosuch'")
        self.assert_error(["run", "--config", "c.toml", "--suites", "gemm", "--level", "quick"],
                          "--duration: --level soak quick")

    def test_options_in_a_file_are_used(self):
        self.write("c.toml", 'suites = ["selftest"]\nout = "from-file.h5"\nquiet = true\n[selftest]\ncases = ["pass"]\n')
        result = self.assay("run", "--config", "c.toml")
        self.assertNotEqual(result.returncode, 4, result.stderr)
        self.assertTrue((self.dir / "from-file.h5").exists())


class Topology(harness.CliTest):
    def test_topology_errors_name_file_and_line(self):
        self.assert_error(["run", "--topology", "none.csv"], "--topology: 'none.csv'")
        (self.dir / "t.csv").write_text("node,nic,switch\nn1,eth0\n")
        self.assert_error(["run", "--topology", "t.csv"], "t.csv:2: switch")
        (self.dir / "t.csv").write_text("node,nic,switch\nnobody,eth0,L1\n")
        self.assert_error(["plan", "--suites", "inventory", "--topology", "t.csv"], "--topology: t.csv NIC")


class Limits(harness.CliTest):
    def limits_error(self, text, line):
        self.write("l.toml", text)
        result = self.assert_error(["run", "--limits", "l.toml"], "")
        self.assertIn(line, result.stderr)
        self.assertIn("l.toml", result.stderr)

    def test_missing_file(self):
        self.assert_error(["run", "--limits", "none.toml"], "--limits: 'none.toml'")

    def test_truncated_file(self):
        self.limits_error('[[limit]]\nmetric = "gemm/fp3', "l.toml:2")

    def test_unit_missing(self):
        self.limits_error('[[limit]]\nmetric = "memory/triad*:bandwidth"\nmin = "180"\n', "'180' has no unit")

    def test_unit_unknown(self):
        self.limits_error('[[limit]]\nmetric = "memory/triad*:bandwidth"\nmin = "180 furlong"\n', "'furlong'")

    def test_bound_missing(self):
        self.limits_error('[[limit]]\nmetric = "memory/triad*:bandwidth"\n', "neither min nor max")

    def test_unknown_key(self):
        self.limits_error('[[limit]]\nmetric = "memory/triad*:bandwidth"\nminimum = "1 GB/s"\n', "minimum")


if __name__ == "__main__":
    harness.main()
