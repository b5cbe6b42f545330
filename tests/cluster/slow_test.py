# SPDX-License-Identifier: Apache-2.0
"""A slow NIC and a slow processor on the virtual cluster show in the samples of their host, and of no other."""

import cluster
from results import Results


class SlowHost(cluster.ClusterTest):
    def test_slow_nic_limits_the_links_of_its_host(self):
        slow, rate_bytes_per_s = self.cluster.hosts[2], 25e6
        self.fault("slow-nic", slow, "200mbit")
        result = self.cluster.run("run", "--suites", "p2p", "--p2p.scopes", "cross", "--p2p.modes", "uni", "--p2p.sizes",
                                  "262144", "--level", "smoke", "--seed", "7", "--out", "r.h5", cwd=self.dir)
        self.assertNotIn(result.returncode, (4, 5), result.stderr)
        run = Results(self.dir / "r.h5")
        case = next(case for case in run.cases("p2p") if case.startswith("bandwidth-uni-262144-cross"))
        links = run.medians("p2p", case, "bandwidth")
        touching = {name: rate for name, rate in links.items() if f"{slow}/" in name}
        others = {name: rate for name, rate in links.items() if name not in touching}
        self.assertTrue(touching and others, links)
        for name, rate in touching.items():
            self.assertLess(rate, 1.3 * rate_bytes_per_s, f"{name}: {links}")
            self.assertGreater(rate, 0.5 * rate_bytes_per_s, f"{name}: {links}")
        for name, rate in others.items():
            self.assertGreater(rate, 2 * rate_bytes_per_s, f"{name}: {links}")

    def test_slow_cpu_slows_gemm_of_its_host(self):
        # Two hosts only: each then has a core of its own wherever there are two.
        healthy, slow = self.cluster.hosts[:2]
        self.fault("slow-cpu", slow, 30)
        result = self.cluster.run("run", "--suites", "gemm", "--gemm.dtypes", "fp64", "--level", "smoke", "--seed", "7",
                                  "--out", "r.h5", cwd=self.dir, hosts=[healthy, slow])
        self.assertNotIn(result.returncode, (4, 5), result.stderr)
        run = Results(self.dir / "r.h5")
        self.assertEqual(run.nodes, [healthy, slow])
        case = next(case for case in run.cases("gemm") if case.endswith("-alone"))
        rates = {name.split("/")[0]: rate for name, rate in run.medians("gemm", case, "throughput").items()}
        self.assertLess(rates[slow], 0.6 * rates[healthy], rates)
        self.assertGreater(rates[slow], 0.1 * rates[healthy], rates)


if __name__ == "__main__":
    cluster.main()
