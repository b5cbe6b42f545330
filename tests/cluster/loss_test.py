# SPDX-License-Identifier: Apache-2.0
"""A rank that dies in a stage inside of nodes ends its own node only; what needs all nodes is incomplete."""

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
        self.assertNotIn("is incomplete", result.stdout)
        with h5py.File(file) as f:
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


if __name__ == "__main__":
    cluster.main()
