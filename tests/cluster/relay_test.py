# SPDX-License-Identifier: Apache-2.0
"""One TCP connection per host, and what happens to a host whose relay of messages is killed or stopped."""

import re

import cluster
import outcome
import processes
from results import Results

SLOTS, HOSTS = 3, 3
OPTIONS = ["--suites", "gemm,memory,p2p", "--level", "smoke", "--seed", "7", "--memory.fraction", "0.05"]


def sockets_of(pid, table):
    """Rows of a table of sockets that belong to a process, as the fields of /proc/PID/net/TABLE."""
    own = set()
    for link in processes.pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()))
        except OSError:
            continue
        if found:
            own.add(found[1])
    column = 9 if table == "tcp" else 6
    rows = [row.split() for row in processes._read(pid, f"net/{table}").decode().splitlines()[1:]]
    return [row for row in rows if row[column] in own]


class Relay(cluster.ClusterTest):
    HOSTS = HOSTS

    def start(self, mpirun=()):
        self.file = self.dir / "r.h5"
        launch = self.cluster.start(["-n", HOSTS * SLOTS, *mpirun], "run", *OPTIONS, "--out", self.file, cwd=self.dir, slots=SLOTS)
        cases = self.dir / "r.h5.partial" / "cases"
        cluster.wait_until(lambda: launch.process.poll() is not None or (cases.is_dir() and any(cases.glob("*.h5"))), 60, "an ended case")
        self.ranks = processes.find(cluster.ASSAY, self.file, self.cluster.hosts)
        self.assertEqual(len(self.ranks), HOSTS * SLOTS)
        return launch

    def connections(self):
        """Of rank 0's supervisor to other processes, without those of the launcher."""
        return [row for row in sockets_of(self.ranks[0].supervisor, "tcp") if row[3] == "01"]

    def relays(self, host):
        """Ranks of a host whose supervisor has a TCP connection."""
        return [r.rank for r in self.ranks.values() if r.host == host and not processes.gone(r.supervisor) and sockets_of(r.supervisor, "tcp")]

    def relay(self, host):
        found = self.relays(host)
        self.assertNotEqual(found, [], f"supervisors of {host} with a TCP connection")
        if len(found) > 1:  # one that was silent for 2 s is left
            self.skipTest(f"noise: ranks {found} of {host} have connections of their own on this busy machine")
        return found[0]

    def lost(self, result):
        """Ranks that the run names as lost."""
        self.assertNotEqual(result.returncode, 0)
        self.assertTrue(self.file.exists(), result.stderr)
        return {int(n) for f in Results(self.file).findings if f["kind"] == "lost" for n in re.findall(r"rank (\d+) on", f["text"])}

    def test_a_killed_relay_under_a_launcher_that_goes_on(self):
        launch = self.start(["--enable-recovery"])
        rank, _ = self.relay(self.cluster.hosts[1]), self.relay(self.cluster.hosts[2])
        self.assertEqual(len(self.connections()), HOSTS - 1)
        processes.kill(self.ranks[rank].supervisor)
        cluster.wait_until(lambda: set(self.relays(self.cluster.hosts[1])) - {rank}, 5, "another supervisor takes over")
        cluster.wait_until(lambda: not processes.find(cluster.ASSAY, self.file), 30, "all processes have ended")
        launch.process.kill()  # with this option, Open MPI's launcher does not end by itself
        result = launch.finish(5)
        self.assertEqual(self.lost(result), {rank}, result.stderr)
        self.assertNotIn("supervisor is gone", result.stderr)

    @outcome.nightly
    def test_a_killed_relay_under_a_launcher_that_ends_the_job(self):
        launch = self.start()
        rank = self.relay(self.cluster.hosts[1])
        processes.kill(self.ranks[rank].supervisor)
        result = launch.finish(60)
        self.assertEqual(self.lost(result), {rank}, result.stderr)
        self.assertIn(f"rank {rank} on {self.cluster.hosts[1]} is gone, and its supervisor with it", result.stderr)

    @outcome.nightly
    def test_a_stopped_relay(self):
        launch = self.start()
        rank = self.relay(self.cluster.hosts[1])
        processes.stop(self.ranks[rank].supervisor)
        result = launch.finish(60)
        self.assertEqual(self.lost(result), {rank}, result.stderr)
        self.assertIn(f"rank {rank} on {self.cluster.hosts[1]} is unreachable", result.stderr)


if __name__ == "__main__":
    cluster.main()
