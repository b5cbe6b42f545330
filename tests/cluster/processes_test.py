# SPDX-License-Identifier: Apache-2.0
"""The finder of a rank's processes finds the right ones: on stand-ins that fork as a guarded rank does."""

import os
import subprocess
import sys
import unittest

import cluster
import processes

GUARDED = "import os, time; os.fork(); time.sleep(60)"
ALONE = "import time; time.sleep(60)"
PYTHON = os.path.realpath(sys.executable)


def stand_in(rank, code, token, prefix=()):
    return subprocess.Popen([*prefix, PYTHON, "-c", code, token], stdin=subprocess.DEVNULL,
                            env={**os.environ, "OMPI_COMM_WORLD_RANK": str(rank)})


class Find(unittest.TestCase):
    def start(self, *args, **options):
        process = stand_in(*args, **options)

        def end():
            for rank in processes.find(PYTHON, self.id()).values():
                processes.kill(rank.worker)
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def test_supervisor_and_worker(self):
        first, second = self.start(0, GUARDED, self.id()), self.start(3, GUARDED, self.id())
        self.start(3, GUARDED, "another run")
        found = processes.wait_for(PYTHON, 2, self.id())
        self.assertEqual(sorted(found), [0, 3])
        self.assertEqual(found[0].supervisor, first.pid)
        self.assertEqual(found[3].supervisor, second.pid)
        self.assertNotIn(found[3].worker, (first.pid, second.pid))
        processes.stop(found[3].worker)
        cluster.wait_until(lambda: processes._state(found[3].worker) == "T", 5, "stopped")
        processes.resume(found[3].worker)
        processes.kill(found[3].worker)
        cluster.wait_until(lambda: processes.gone(found[3].worker), 5, "killed")
        self.assertFalse(processes.gone(found[0].worker))
        for rank in processes.find(PYTHON, "another run").values():
            processes.kill(rank.worker)

    def test_a_rank_without_a_supervisor(self):
        process = self.start(1, ALONE, self.id())
        found = processes.wait_for(PYTHON, 1, self.id(), guarded=False)
        self.assertEqual(found, {1: processes.RankProcesses(1, "", None, process.pid)})

    def test_on_a_virtual_host(self):
        hosts = cluster.Cluster(2)
        self.addCleanup(hosts.down)
        for rank, host in enumerate(hosts.hosts):
            self.start(rank, GUARDED, self.id(), prefix=[str(cluster.SCRIPT), "--name", hosts.name, "exec", host])
        found = processes.wait_for(PYTHON, 2, self.id(), hosts=hosts.hosts)
        self.assertEqual([found[0].host, found[1].host], hosts.hosts)


if __name__ == "__main__":
    cluster.main()
