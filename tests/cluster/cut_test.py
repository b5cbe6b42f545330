# SPDX-License-Identifier: Apache-2.0
"""A host whose link is cut in the middle of a run is named, and the run ends in time."""

import subprocess
import time

import cluster
import processes
from results import Results

SMOKE_BUDGET_S = 15
GRACE_S = 10
START_S = 10  # launcher, MPI and the devices come up before the budget counts


class CutHost(cluster.ClusterTest):
    def test_a_cut_host_is_named_in_time(self):
        lost = self.cluster.hosts[2]
        file = self.dir / "r.h5"
        started = time.monotonic()
        launch = self.cluster.start(["-n", len(self.cluster.hosts)], "run", "--level", "smoke", "--seed", "7", "--suites",
                                     "inventory,gemm,p2p,allreduce", "--out", file, cwd=self.dir)
        ended_cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: ended_cases.is_dir() and len(list(ended_cases.glob("*.h5"))) >= 3, START_S + SMOKE_BUDGET_S,
                           "three ended cases")
        self.fault("cut", lost)
        result = launch.finish(START_S + SMOKE_BUDGET_S + GRACE_S - (time.monotonic() - started))
        # mpirun cannot end its daemon on a host that it does not reach any more: assay ends mpirun then, and what mpirun
        # returns says nothing. Never 0, and the file says what there is to say.
        self.assertNotEqual(result.returncode, 0, result.stderr)
        if result.returncode not in (2, 3):
            self.assertIn("ending mpirun", result.stderr)
        self.assertIn(lost, result.stderr)
        self.assertTrue(file.exists(), f"{sorted(p.name for p in self.dir.iterdir())}\n{result.stderr}")
        run = Results(file)
        self.assertNotIn(run.verdict, ("PASS", "WARN"))
        named = [f for f in run.findings if f["name"].split("/")[0] == lost and f["kind"] in ("lost", "hang", "missing")]
        self.assertNotEqual(named, [], run.findings)
        lost_others = [f["name"] for f in run.findings if f["kind"] in ("lost", "hang") and f["name"].split("/")[0] != lost]
        self.assertEqual(lost_others, [], "only the host that was cut is lost")
        # On the host that was cut, nothing of assay outlives the run either (the launcher's daemon does).
        cluster.wait_until(lambda: not processes.find(cluster.ASSAY, file), 20, "all processes of the run have ended")
        # The file can be judged again.
        again = subprocess.run([cluster.ASSAY, "verdict", str(file)], capture_output=True, text=True, timeout=60)
        self.assertIn(again.returncode, (2, 3), again.stdout + again.stderr)
        self.assertIn(lost, again.stdout)


if __name__ == "__main__":
    cluster.main()
