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

    def test_of_the_ranks_of_a_node_without_the_file_one_tells_it(self):
        """mpirun ends all as soon as one leaves. The first rank has the file, and waits for the others."""
        self.write("c.toml", 'suites = ["selftest"]\n')
        (self.dir / "other").mkdir()
        words = [harness.MPIEXEC, "-n", "1", harness.ASSAY, "run", "--config", "c.toml"]
        for local_rank in (0, 1, 2):
            words += [":", "-n", "1", "-wdir", self.dir / "other", "env", f"OMPI_COMM_WORLD_LOCAL_RANK={local_rank}",
                      harness.ASSAY, "run", "--config", "c.toml"]
        said = harness.execute(words, self.dir)
        self.assert_code(said, 4)
        host = socket.gethostname().split(".")[0]
        self.assertEqual([line for line in said.stderr.splitlines() if "--config" in line],
                         [f"assay: {host}: --config: cannot read 'c.toml': No such file or directory"])

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
        self.assert_error(["plan", "--config", "c.toml", "--suites", "gemm", "--level", "quick", "--duration", "8h"],
                          "--duration: --level soak quick")

    def test_a_file_serves_several_levels(self):
        self.write("c.toml", 'level = "soak"\nduration = "8h"\nsegment = "20m"\nsuites = ["selftest"]\n[gemm]\nsizes = ["512"]\n')
        soak = self.assay("plan", "--config", "c.toml")
        self.assert_code(soak, 0)
        self.assertIn("level soak: ", soak.stdout)
        smoke = self.assay("plan", "--config", "c.toml", "--level", "smoke")
        self.assert_code(smoke, 0)
        self.assertIn("level smoke: ", smoke.stdout)

    def test_options_in_a_file_are_used(self):
        self.write("c.toml", 'suites = ["selftest"]\nout = "from-file.h5"\nquiet = true\n[selftest]\ncases = ["pass"]\n')
        result = self.assay("run", "--config", "c.toml")
        self.assertNotEqual(result.returncode, 4, result.stderr)
        self.assertTrue((self.dir / "from-file.h5").exists())


class OutputInAFile(harness.CliTest):
    """It names the file of a run from its start. One that is resumed writes what it writes without it."""

    def setUp(self):
        super().setUp()
        self.write("c.toml", 'suites = ["selftest"]\nout = "r.h5"\nforce = true\nselftest.cases = ["pass", "skip"]\n')

    def resume(self, what, *more):
        return self.assay("run", "--config", "c.toml", "--quiet", "--resume", what, *more)

    def test_partial_results_are_completed(self):
        for name in ("r.h5", "other.h5"):
            with self.subTest(name):
                self.leave_partial(self.dir / f"{name}.partial", "pass,skip")
                self.assertEqual(self.resume(f"{name}.partial").stderr, "")
                self.assertEqual(self.left_behind(), ["c.toml", name])
                (self.dir / name).unlink()
        self.leave_partial(self.dir / "r.h5.partial", "pass,skip")
        refused = self.resume("r.h5.partial", "--out", "n.h5")
        self.assertEqual((refused.returncode, refused.stderr), (4, "assay: --out: --resume writes the file of the resumed run\n"))

    def test_a_closed_file_is_not_replaced(self):
        self.assertEqual(self.assay("run", "--config", "c.toml", "--quiet").stderr, "")
        content = (self.dir / "r.h5").read_bytes()
        self.assertEqual(self.resume("r.h5").stderr, "")
        self.assertEqual((self.dir / "r.h5").read_bytes(), content)
        self.assertEqual(self.resume("r.h5", "--out", "n.h5").stderr, "")
        left = self.left_behind()
        self.assertRegex(left.pop(0), r"^assay-\d{8}T\d{6}Z\.h5$")
        self.assertEqual(left, ["c.toml", "n.h5", "r.h5"])

    def test_a_launch_after_a_loss_resumes(self):
        """The first one is killed with its supervisors, and leaves partial results."""
        self.write("c.toml", 'level = "smoke"\nsuites = ["inventory", "gemm"]\nout = "r.h5"\ngemm.sizes = ["256"]\n')
        launcher = self.write("launcher.sh", f"""#!/bin/sh
[ -e first ] && exec {harness.MPIEXEC} -n 2 "$@"
{harness.MPIEXEC} -n 2 "$@" &
until ls r.h5.partial/cases/*.h5 >first 2>&1; do sleep 0.05; done
supervisor=$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' r.h5.partial/owner)
kill -9 $supervisor $(cat /proc/$supervisor/task/*/children)
wait
""")
        launcher.chmod(0o755)
        said = self.assay("run", "--config", "c.toml", "--launcher", str(launcher))
        self.assertIn("launching again", said.stderr)
        self.assertEqual(self.left_behind(), ["c.toml", "first", "launcher.sh", "r.h5"], said.stderr)
        listed = self.assay("inspect", "r.h5").stdout
        self.assertRegex(listed, "(?m)^state +complete$")
        self.assertIn(" cases were there; resumed by", listed)


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
