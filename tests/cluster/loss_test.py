# SPDX-License-Identifier: Apache-2.0
"""A rank that dies in a stage inside of nodes ends its own node only; what needs all nodes is incomplete."""

import cluster
import h5py
import processes
from results import Results


class Loss(cluster.ClusterTest):
    def test_the_other_nodes_go_on(self):
        lost = self.cluster.hosts[2]
        file = self.dir / "r.h5"
        launch = self.cluster.start(["-n", len(self.cluster.hosts)], "run", "--level", "smoke", "--seed", "7", "--out", file,
                                     cwd=self.dir)
        ended_cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: ended_cases.is_dir() and len(list(ended_cases.glob("*.h5"))) >= 2, 40, "two ended cases")
        processes.kill(processes.find(cluster.ASSAY, file)[2].worker)
        result = launch.finish(60)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(f"rank 2 on {lost} was killed by signal 9", result.stderr)
        self.assertIn(f"launch the same again without {lost}", result.stderr)
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


if __name__ == "__main__":
    cluster.main()
