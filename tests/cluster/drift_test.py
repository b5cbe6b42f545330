# SPDX-License-Identifier: Apache-2.0
"""A rank that loses speed during a long case is named with the time at which the loss began; the others are not."""

import cluster
import outcome
from results import Results

BURN = ["--suites", "burn", "--cases", "burn/mixed*", "--burn.parts", "compute", "--burn.size", "256", "--level", "quick", "--seed", "7",
        "--burn.duration", "90s"]


class Drift(cluster.ClusterTest):
    HOSTS = 6  # as many as a drift needs

    def named(self, *args):
        file = self.dir / "r.h5"
        self.assert_code(self.cluster.run("run", *BURN, *args, "--force", "--out", file, cwd=self.dir, timeout=200), 0, 3)
        return [f for f in Results(file).findings if f["kind"] == "drift"]

    @outcome.nightly
    def test_a_growing_loss_is_named_with_its_begin(self):
        slow = self.cluster.hosts[3]
        found = self.named("--inject", "slow:rank=3,factor=0.5,after=10s,ramp=70s")
        self.assertEqual([f["name"].split("/")[0] for f in found], [slow], found)
        self.assertEqual((found[0]["severity"], found[0]["reference_kind"]), ("WARN", "peers"))
        self.assertGreater(found[0]["deficit"], 0.1)
        self.assertRegex(found[0]["since"], r"^20\d\d-\d\d-\d\dT")

    @outcome.nightly
    def test_healthy_hosts_are_not_named(self):
        self.assertEqual(self.named(), [])


if __name__ == "__main__":
    cluster.main()
