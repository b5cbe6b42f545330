# SPDX-License-Identifier: Apache-2.0
"""A host whose link is cut in the middle of a run is named, and the run ends in time."""

import subprocess
import time

import cluster
from results import Results

SMOKE_BUDGET_S = 15
GRACE_S = 10
START_S = 10  # launcher, MPI and the devices come up before the budget counts


class CutHost(cluster.ClusterTest):
    def test_a_cut_host_is_named_in_time(self):
        lost = self.cluster.hosts[2]
        file = self.dir / "r.h5"
        started = time.monotonic()
        launch = self.cluster.start(["-n", len(self.cluster.hosts)], "run", "--level", "smoke", "--seed", "7", "--out", file,
                                     cwd=self.dir)
        ended_cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: ended_cases.is_dir() and len(list(ended_cases.glob("*.h5"))) >= 3, START_S + SMOKE_BUDGET_S,
                           "three ended cases")
        self.fault("cut", lost)
        result = launch.finish(START_S + SMOKE_BUDGET_S + GRACE_S - (time.monotonic() - started))
        self.assert_code(result, 2, 3)
        self.assertIn(lost, result.stderr)
        self.assertTrue(file.exists(), f"{sorted(p.name for p in self.dir.iterdir())}\n{result.stderr}")
        run = Results(file)
        self.assertNotIn(run.verdict, ("PASS", "WARN"))
        named = [f for f in run.findings if f["name"].split("/")[0] == lost and f["kind"] in ("lost", "hang", "missing")]
        self.assertNotEqual(named, [], run.findings)
        blamed = [f["name"] for f in run.findings if f["kind"] in ("lost", "hang") and f["name"].split("/")[0] != lost]
        self.assertEqual(blamed, [], "only the host that was cut is lost")
        # The file can be judged again, to the same end.
        again = subprocess.run([cluster.ASSAY, "verdict", str(file)], capture_output=True, text=True, timeout=60)
        self.assertEqual(again.returncode, result.returncode, again.stdout + again.stderr)
        self.assertIn(lost, again.stdout)


if __name__ == "__main__":
    cluster.main()
