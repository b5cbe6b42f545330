# SPDX-License-Identifier: Apache-2.0
"""The virtual cluster itself, and a smoke run over it: hosts are nodes, and what is between them goes over TCP."""

import csv
import os
import pathlib
import unittest

import cluster
from results import Results


def traces(name):
    """All that a cluster of this name leaves on the machine."""
    found = [path for path in pathlib.Path("/run/netns").glob(f"assay-{name}*")] if os.path.isdir("/run/netns") else []
    found += [cluster.STATE / name] if (cluster.STATE / name).exists() else []
    found += pathlib.Path("/sys/fs/cgroup").glob(f"assay-{name}")
    found += pathlib.Path("/sys/fs/cgroup").glob(f"*/assay-{name}")
    found += pathlib.Path("/dev/shm").glob(f"vader_segment.{name}*")
    found += [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if name.encode() in command_line(path)]
    return [str(path) for path in found]


def command_line(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


class UpAndDown(unittest.TestCase):
    def test_nothing_is_left(self):
        interfaces = sorted(os.listdir("/sys/class/net"))
        hosts = cluster.Cluster(5, "--leaves", 2)
        self.addCleanup(hosts.down)
        self.assertNotEqual(traces(hosts.name), [])
        self.assertEqual(sorted(os.listdir("/sys/class/net")), interfaces, "the machine's own network is untouched")
        with open(cluster.STATE / hosts.name / "topology.csv", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
        self.assertEqual([row["node"] for row in rows], hosts.hosts)
        self.assertEqual([row["switch"] for row in rows], ["leaf1", "leaf1", "leaf1", "leaf2", "leaf2"])
        self.assertEqual(len({(row["switch"], row["port"]) for row in rows}), 5)
        twice = cluster.script(hosts.name, "up", 2)
        self.assertEqual(twice.returncode, 4)
        self.assertEqual(twice.stderr.count("\n"), 1)
        # A process that ignores being asked, and one that is stopped.
        hosts.on(hosts.hosts[0], "sh", "-c", f"exec >/dev/null 2>&1; setsid sh -c 'kill -STOP $$; : {hosts.name}' & "
                 f"setsid sh -c \"trap '' TERM; sleep 300; : {hosts.name}\" & sleep 0.2")
        self.assertRegex(cluster.script(hosts.name, "status").stdout, f"(?m)^{hosts.hosts[0]} .* [1-9][0-9]*$")
        result = hosts.down()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(traces(hosts.name), [])
        self.assertEqual(hosts.down().returncode, 0, "down may be repeated")

    def test_down_after_a_crash_of_up(self):
        hosts = cluster.Cluster(2)
        self.addCleanup(hosts.down)
        for path in (cluster.STATE / hosts.name).glob("*"):
            if path.is_file():
                path.unlink()
        self.assertEqual(cluster.script(hosts.name, "status").returncode, 4)
        self.assertEqual(hosts.down().returncode, 0)
        self.assertEqual(traces(hosts.name), [])

    def test_wrong_use_is_one_line_and_4(self):
        hosts = cluster.Cluster(1)
        self.addCleanup(hosts.down)
        host = hosts.hosts[0]
        for words in [["up"], ["up", "0"], ["up", "65"], ["up", "x"], ["up", "2", "--leaves", "3"], ["nonsense"], [],
                      ["exec", host], ["exec", "nobody", "true"], ["cut"], ["slow-nic", host, "fast"],
                      ["slow-cpu", host, "0"], ["slow-cpu", "nobody", "50"], ["slow-uplink", "leaf1", "1gbit"], ["wrong-route", host], ["heal", "leaf9"], ["mpirun"], ["status", "all"],
                      ["mpirun", "--slots", "x", "true"], ["mpirun", "--hosts", "nobody", "true"]]:
            with self.subTest(words=words):
                result = cluster.script(hosts.name, *words)
                self.assertEqual(result.returncode, 4, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertEqual(cluster.script("No1", "status").returncode, 4)


class FourHosts(cluster.ClusterTest):
    def test_exec_keeps_words_and_exit_code(self):
        result = self.cluster.on(self.cluster.hosts[1], "sh", "-c", 'hostname; echo "$1"; exit 9', "sh", "a  b")
        self.assertEqual((result.stdout, result.returncode), (f"{self.cluster.hosts[1]}\na  b\n", 9))

    def test_a_cut_link_is_mended(self):
        first, second = self.cluster.hosts[:2]
        # Nobody listens there: a host that can be reached refuses at once.
        connect = ["timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{second}/1"]
        self.assertIn("refused", self.cluster.on(first, *connect).stderr)
        self.fault("cut", second)
        self.assertIn("cut", self.cluster.do("status"))
        self.assertEqual(self.cluster.on(second, "cat", "/sys/class/net/eth0/carrier").stdout, "0\n")
        self.assertNotIn("refused", self.cluster.on(first, *connect).stderr)
        self.cluster.do("mend", second)
        self.assertNotIn("cut", self.cluster.do("status"))
        self.assertIn("refused", self.cluster.on(first, *connect).stderr)

    def smoke(self, mpirun, *args):
        """A smoke run over all hosts, whose NICs carried all that was timed between them."""
        before = {host: self.cluster.nic_bytes(host) for host in self.cluster.hosts}
        result = self.cluster.start(["-n", len(self.cluster.hosts), *mpirun], "run", "--level", "smoke", "--suites", "inventory,p2p",
                                    *args, "--out", "smoke.h5", cwd=self.dir).finish(120)
        # Four hosts on one machine share its cores: too noisy to be judged (3) is no fault of theirs, a FAIL is.
        self.assert_code(result, 0, 3)
        run = Results(self.dir / "smoke.h5")
        self.assertEqual(run.state, "complete")
        self.assertEqual(run.nodes, self.cluster.hosts)
        self.assertIn("4 nodes", result.stdout)
        bandwidth = [case for case in run.cases("p2p") if case.startswith("bandwidth-") and "-cross-" in case]
        self.assertNotEqual(bandwidth, [])
        payload = sum(run.payload_bytes(case) for case in bandwidth)
        self.assertGreater(payload, 0)
        sent = received = 0
        for host in self.cluster.hosts:
            tx, rx = self.cluster.nic_bytes(host)
            self.assertGreater(tx, before[host][0])
            sent += tx - before[host][0]
            received += rx - before[host][1]
        self.assertGreaterEqual(sent, payload)
        self.assertGreaterEqual(received, payload)
        return run

    def test_smoke_over_tcp(self):
        self.smoke([])

    def test_smoke_over_ucx(self):
        # Left alone, UCX finds that the hosts are one machine, and shares memory.
        self.need_ucx()
        run = self.smoke(["-x", "UCX_TLS=tcp"], "--p2p.transport", "ucx")
        measured = [case for case in run.cases("p2p") if "-cross-" in case]
        self.assertEqual({run.path(case) for case in measured}, {"tcp/eth0"})


if __name__ == "__main__":
    cluster.main()
