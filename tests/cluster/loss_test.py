# SPDX-License-Identifier: Apache-2.0
"""A rank that dies in a stage inside of nodes ends its own node only; what needs all nodes is incomplete."""

import shlex

import cluster
import h5py
import processes
from results import Results

# In the order of the line that the run prints; little memory, which a virtual machine hands out slowly.
OPTIONS = ["--suites", "gemm,memory,p2p,allreduce", "--level", "smoke", "--seed", "7", "--memory.fraction", "0.05"]


class Loss(cluster.ClusterTest):
    def test_the_other_nodes_go_on(self):
        lost = self.cluster.hosts[2]
        file = self.dir / "r.h5"
        launch = self.cluster.start(["-n", len(self.cluster.hosts)], "run", *OPTIONS, "--out", file, cwd=self.dir)
        ended_cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: ended_cases.is_dir() and len(list(ended_cases.glob("*.h5"))) >= 2, 40, "two ended cases")
        processes.kill(processes.find(cluster.ASSAY, file)[2].worker)
        result = launch.finish(60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertRegex(result.stderr, rf"rank 2 on {lost}\b.*\bsignal 9\b")
        relaunch = f"assay run {' '.join(OPTIONS)} --exclude {lost} --resume {file}"
        self.assertIn(f": {relaunch}\n", result.stderr)
        run = Results(file)
        self.assertEqual([f["name"].split("/")[0] for f in run.findings if f["kind"] == "lost"], [lost])
        with h5py.File(file) as f:
            names = f["entities/name"].asstr()[:]
            measured = {}  # hosts by case
            for suite in ("gemm", "memory"):
                for name, case in f["cases"][suite].items():
                    measured[f"{suite}/{name}"] = {names[row].split("/")[0] for row in case["entity"][:]}
            across = [s for s in ("p2p", "allreduce") if s in f["cases"]]
        without = [case for case, hosts in measured.items() if hosts == set(self.cluster.hosts) - {lost}]
        self.assertGreater(len(without), 1, f"cases that ran on after the loss: {measured}\n{result.stdout}")
        self.assertEqual(across, [], "no case across nodes starts after a loss")
        self.relaunch(lost, relaunch.split()[1:], without)

    def relaunch(self, lost, args, without):
        """The others measure what is missing; the ranks of the lost node sleep, even if it is back."""
        file = self.dir / "again.h5"
        result = self.cluster.run(*args, "--out", file, cwd=self.dir)
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        run = Results(file)
        self.assertEqual(run.state, "complete")
        self.assertEqual([f["name"].split("/")[0] for f in run.findings if f["kind"] == "lost"], [lost])
        with h5py.File(file) as f:
            short = [f"{case.name}: {case.attrs['reason']}" for suite in f["cases"].values() for case in suite.values()
                     if str(case.attrs.get("reason")).startswith("cut short")]
            if short:
                self.skipTest(f"noise: {short[0]}")
            self.assertNotIn("is incomplete", result.stdout)
            names = f["entities/name"].asstr()[:]
            suites = set(f["cases"])
            for case in f["cases/p2p"].values():
                measured = {names[row].split("/")[0] for row in case["entity"][:]}
                self.assertNotIn(lost, measured)
        self.assertLessEqual({"gemm", "memory", "p2p", "allreduce"}, suites)
        taken = [text for kind, text in run.events if kind == "resumed"]
        self.assertEqual(len(taken), 1)
        self.assertGreaterEqual(int(taken[0].split()[0]), 1, "what had been measured is taken over")
        self.assertRegex(result.stdout, rf"nodes: 1 INCONCLUSIVE \({lost}\)", "only the lost node is in doubt")

    def test_the_others_go_on_without_the_host_of_rank_0(self):
        """With it the collector is gone, and the results so far lie in a directory that it owned."""
        lost = self.cluster.hosts[0]
        file, nodes = self.dir / "r.h5", self.dir / "nodes"
        launch = cluster.Launch([cluster.ASSAY, "run", "--suites", "inventory,gemm", "--level", "quick", "--out", str(file),
                                 "--nodes", str(nodes), "--launcher", self.cluster.launcher()], self.dir)
        ended_cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: ended_cases.is_dir() and len(list(ended_cases.glob("*.h5"))) >= 2, 40, "two ended cases")
        rank = processes.find(cluster.ASSAY, file, [lost])[0]
        for pid in (rank.supervisor, rank.worker):
            processes.kill(pid)
        result = launch.finish(150)
        self.assert_code(result, 3)
        self.assertIn(f"launching again without {lost}", result.stderr)
        run = Results(file)
        self.assertEqual(run.state, "complete", result.stderr)
        self.assertEqual([f["name"].split("/")[0] for f in run.findings if f["kind"] == "lost"], [lost])
        states = {line.split()[0]: line.split()[1] for line in nodes.read_text().splitlines()}
        self.assertEqual(states.pop(lost), "INCONCLUSIVE", states)
        self.assertEqual(set(states), set(self.cluster.hosts[1:]))
        self.assertLessEqual(set(states.values()), {"PASS", "WARN"})

    def test_a_host_that_is_lost_before_the_first_case_has_a_row(self):
        """The others are measured by the next launch, in the same file."""
        lost = self.cluster.hosts[1]
        file, nodes = self.dir / "r.h5", self.dir / "nodes"
        launch = cluster.Launch([cluster.ASSAY, "run", "--suites", "inventory,selftest", "--selftest.cases", "pass",
                                 "--level", "quick", "--out", str(file), "--nodes", str(nodes), "--launcher", self.cluster.launcher()],
                                self.dir)

        def worker():
            found = [p for p in processes.find(cluster.ASSAY, file, [lost]).values() if p.host == lost]
            return found[0].worker if found and found[0].supervisor else None

        processes.kill(cluster.wait_until(worker, 40, f"a worker on {lost}"))
        result = launch.finish(120)
        self.assert_code(result, 3)
        self.assertTrue(nodes.exists(), result.stderr)
        states = {line.split()[0]: line for line in nodes.read_text().splitlines()}
        self.assertEqual(sorted(states), sorted(self.cluster.hosts), result.stderr)
        for host, line in states.items():
            if host != lost:
                self.assertIn(line.split()[1], ("PASS", "WARN"), line)
        self.assertRegex(states[lost], rf"INCONCLUSIVE .*rank 1 on {lost}")
        named = [f for f in Results(file).findings if f["kind"] == "lost"]
        self.assertEqual([(f["name"].split("/")[0], f["action"]) for f in named], [(lost, "TRIAGE")])

    def test_a_host_that_is_dead_at_the_start_is_left_out(self):
        lost = self.cluster.hosts[2]
        file, nodes, hosts = self.dir / "r.h5", self.dir / "nodes", self.dir / "hosts"
        hosts.write_text("".join(f"{host} slots=1\n" for host in self.cluster.hosts))
        self.fault("cut", lost)
        # As from a login node: mpirun does not run on the host that it asks.
        mpirun = (f"mpirun --mca plm_rsh_agent {cluster.STATE}/{self.cluster.name}/rsh --mca btl self,vader,tcp --mca btl_tcp_if_include eth0 "
                  f"--mca oob_tcp_if_include eth0 --hostfile {hosts} --map-by ppr:1:node")
        launch = cluster.Launch(["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", cluster.SCRIPT, "--name", self.cluster.name,
                                 "exec", self.cluster.hosts[0], cluster.ASSAY, "run", "--suites", "inventory,selftest", "--selftest.cases", "pass",
                                 "--level", "smoke", "--out", str(file), "--nodes", str(nodes), "--launcher",
                                 f"bash {shlex.quote(str(cluster.SCRIPT.parents[1]))}/scripts/launch.sh start --without={{exclude}} {mpirun} --"], self.dir)
        result = launch.finish(200)
        self.assert_code(result, 3)
        self.assertIn(f"{lost} does not answer: ", result.stderr)
        self.assertIn(f"launching again without {lost}, ", result.stderr)
        states = {line.split()[0]: line.split()[1] for line in nodes.read_text().splitlines()}
        self.assertEqual(states.pop(lost), "INCONCLUSIVE", result.stderr)
        self.assertEqual(set(states), set(self.cluster.hosts) - {lost})
        self.assertLessEqual(set(states.values()), {"PASS", "WARN"})


if __name__ == "__main__":
    cluster.main()
