# SPDX-License-Identifier: Apache-2.0
"""A slow NIC and a slow processor on the virtual cluster show in the samples of their host, and of no other."""

import cluster
from results import Results


class SlowHost(cluster.ClusterTest):
    def test_slow_nic_limits_the_links_of_its_host(self):
        slow, rate_bytes_per_s = self.cluster.hosts[2], 25e6
        self.fault("slow-nic", slow, "200mbit")
        limits = self.dir / "limits.toml"
        limits.write_text('[[limit]]\nmetric = "p2p/bandwidth-uni-*:bandwidth"\nmin = "50 MB/s"\n')
        for attempt in range(3):
            result = self.cluster.run("run", "--suites", "p2p", "--p2p.scopes", "cross", "--p2p.modes", "uni", "--p2p.sizes",
                                      "262144", "--level", "smoke", "--seed", "7", "--limits", limits, "--out", "r.h5", "--force",
                                      cwd=self.dir)
            if result.returncode != 3 or "cut short" not in result.stdout:
                break
        else:
            self.skipTest("noise: not all pairs were measured in the time of smoke, three times")
        self.assert_code(result, 2)
        run = Results(self.dir / "r.h5")
        case = next(case for case in run.cases("p2p") if case.startswith("bandwidth-uni-262144-cross"))
        links = run.of_each("p2p", case, "bandwidth")
        touching = {name: rate for name, rate in links.items() if f"{slow}/" in name}
        others = {name: rate for name, rate in links.items() if name not in touching}
        self.assertTrue(touching and others, links)
        for name, rate in touching.items():
            # A host that had to wait for a core has saved up what its NIC may send at once.
            self.assertLess(rate, 1.9 * rate_bytes_per_s, f"{name}: {links}")
            self.assertGreater(rate, 0.5 * rate_bytes_per_s, f"{name}: {links}")  # the hosts share a few cores
        for name, rate in others.items():
            self.assertGreater(rate, 2 * rate_bytes_per_s, f"{name}: {links}")
        # What all its links have in common is the host: nobody else is to be drained.
        failed = {(f["level"], f["name"]) for f in run.findings if f["severity"] == "FAIL" and f["reference_kind"] == "limit"}
        self.assertEqual(failed, {("node", slow)})

    def test_slow_nic_is_named_without_limits(self):
        slow = self.cluster.hosts[2]
        self.fault("slow-nic", slow, "200mbit")
        # Four hosts share a few cores here: what else runs may slow another pair, so there are three tries to see it.
        for attempt in range(3):
            file = self.dir / f"named{attempt}.h5"
            result = self.cluster.run("run", "--suites", "p2p", "--p2p.scopes", "cross", "--p2p.modes", "uni", "--p2p.sizes",
                                      "262144", "--level", "smoke", "--seed", 7 + attempt, "--topology",
                                      cluster.STATE / self.cluster.name / "topology.csv", "--out", file, cwd=self.dir)
            self.assert_code(result, 0, 2, 3)
            run = Results(file)
            named = {(f["level"], f["name"], f["part"]) for f in run.findings if f["severity"] != "INFO"}
            failed = {f["name"] for f in run.findings if f["severity"] == "FAIL"}
            self.assertLessEqual(failed, {slow}, "nobody else fails")
            if named == {("node", slow, f"{slow}/eth0")}:
                return
        self.fail(f"the slow host alone is not named: {named}")

    def test_topology_is_told_and_stored(self):
        topology = cluster.STATE / self.cluster.name / "topology.csv"
        result = self.cluster.run("plan", "--suites", "p2p", "--level", "smoke", "--topology", topology, cwd=self.dir)
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"topology \(csv\): 4 of 4 nodes\b.*\b4 NICs\b.*\b1 switch\b.*\b1 rack\b")
        file = self.dir / "t.h5"
        result = self.cluster.run("run", "--suites", "inventory", "--level", "smoke", "--topology", topology, "--out", file,
                                  cwd=self.dir)
        self.assert_code(result, 0, 2, 3)
        run = Results(file)
        self.assertIn("switch:leaf1", run.names)
        self.assertIn("rack:rack1", run.names)
        wrong = self.dir / "wrong.csv"
        wrong.write_text("node,nic,switch\nn1,eth0,\n")
        result = self.cluster.run("plan", "--topology", wrong, cwd=self.dir, hosts=self.cluster.hosts[:1])
        self.assert_code(result, 4)
        self.assertIn("wrong.csv:2: no switch", result.stderr)

    def test_slow_cpu_slows_gemm_of_its_host(self):
        # Two hosts only: each then has a core of its own wherever there are two.
        healthy, slow = self.cluster.hosts[:2]
        self.fault("slow-cpu", slow, 20)
        # What else runs on this machine slows the healthy host too: its best sample says most, and it gets three tries.
        for attempt in range(3):
            file = self.dir / f"r{attempt}.h5"
            result = self.cluster.run("run", "--suites", "gemm", "--gemm.dtypes", "fp64", "--level", "smoke", "--seed", "7",
                                      "--out", file, cwd=self.dir, hosts=[healthy, slow])
            self.assert_code(result, 0, 2, 3)
            run = Results(file)
            self.assertEqual(run.nodes, [healthy, slow])
            self.assertIn(f"{slow}: the cgroup's CPU quota is 0.2 of 1 core", " ".join(text for _, text in run.events))
            case = next(case for case in run.cases("gemm") if "-n1024-" in case)
            best = {name.split("/")[0]: rate for name, rate in run.of_each("gemm", case, "throughput", max).items()}
            self.assertGreater(best[slow], 0.05 * best[healthy], best)
            if best[slow] < 0.5 * best[healthy]:
                return
        self.fail(f"the slow host is not slower: {best}")


class SlowUplink(cluster.ClusterTest):
    HOSTS, OPTIONS = 6, ("--leaves", 3)

    def test_congestion_is_measured_and_nobody_is_blamed(self):
        for leaf in ("leaf1", "leaf2", "leaf3"):
            self.fault("slow-uplink", leaf, "100mbit")
        (self.dir / "l.toml").write_text('[[limit]]\nmetric = "congestion/bandwidth-*-under-all-to-all-mpi:impact_p99"\nmax = "1.01 1"\n')
        result = self.cluster.run("run", "--suites", "congestion", "--level", "smoke", "--out", "c.h5", "--limits", "l.toml", "--coverage", "c.csv", cwd=self.dir)
        run = Results(self.dir / "c.h5")
        self.assertEqual(run.state, "complete", result.stderr)
        cases = [f"{canary}-under-{load}-mpi" for canary in ("latency-8", "bandwidth-131072", "allreduce-8") for load in ("all-to-all", "incast")]
        self.assertEqual(set(run.cases("congestion")), {*cases, "selftest-pair"})
        # All uplinks are narrow and full: canaries below one switch may not notice, others do.
        said = [f for f in run.findings if f["severity"] != "INFO"]
        self.assertEqual({(f["level"], f["suite"]) for f in said}, {("cluster", "congestion")}, said)
        impacts = [impact for load in ("all-to-all", "incast")
                   for impact in run.once("congestion", f"bandwidth-131072-under-{load}-mpi", "impact_p99")]
        self.assertGreater(max(impacts), 1.5, impacts)

    def test_the_switch_with_the_slow_uplink_is_named(self):
        self.fault("slow-uplink", "leaf2", "80mbit")
        # Six hosts share a few cores here: there are three tries to see the switch alone.
        for attempt in range(3):
            file = self.dir / f"r{attempt}.h5"
            result = self.cluster.run("run", "--suites", "p2p", "--p2p.scopes", "cross", "--p2p.modes", "uni", "--p2p.sizes",
                                      "65536", "--level", "quick", "--seed", 7 + attempt, "--topology",
                                      cluster.STATE / self.cluster.name / "topology.csv", "--out", file, cwd=self.dir)
            self.assert_code(result, 0, 2, 3)
            run = Results(file)
            failed = {(f["level"], f["name"]) for f in run.findings if f["severity"] == "FAIL"}
            self.assertLessEqual(failed, {("switch", "switch:leaf2")}, "nobody else fails")
            named = {(f["level"], f["name"]) for f in run.findings if f["severity"] != "INFO" and f["level"] != "node"}
            if failed and named == failed:
                return
        self.fail(f"the slow switch alone is not named: {named}\n{result.stdout}")


if __name__ == "__main__":
    cluster.main()
