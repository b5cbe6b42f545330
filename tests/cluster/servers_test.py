# SPDX-License-Identifier: Apache-2.0
"""A matrix of clients and servers of storage on virtual hosts: the server, client or pair that is slow is named, and no other."""

import os
import pathlib

import cluster
from results import Results

SERVERS = 5
# What Lustre's tool prints, of files whose names end in the number of their target. Target 9 is out of service, 7 full: what is
# wanted there comes elsewhere.
LFS = """#!/bin/sh
case $1 in
osts) echo OBDS:; for i in 0 1 2 3 4 7; do echo "$i: scratch-OST000${i}_UUID ACTIVE"; done; echo '9: scratch-OST0009_UUID INACTIVE' ;;
setstripe) [ "$2 $3 $4" = '-c 1 -i' ] && [ "$5" != 9 ] && set -C && : > "$6" ;;
getstripe) n=${2##*-}; [ $n = 7 ] && n=0; printf '%s\\nlmm_stripe_count:  1\\n\\tobdidx\\t\\t objid\\n\\t     %s\\t  4711\\n\\n' "$2" $n ;;
*) exit 2 ;;
esac
"""


class Servers(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        tools = self.dir / "bin"
        tools.mkdir()
        (tools / "lfs").write_text(LFS)
        (tools / "lfs").chmod(0o755)
        self.path = os.environ["PATH"]
        os.environ["PATH"] = f"{tools}:{self.path}"
        self.addCleanup(os.environ.__setitem__, "PATH", self.path)

    def measure(self, *args, servers="lustre", seed=7):
        """With `paths`, a directory for each server."""
        folders = [self.dir / f"ost{i}" for i in range(SERVERS if servers == "paths" else 1)]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        result = self.cluster.start(["-n", 4, "-x", "PATH"], "run", "--level", "quick", "--suites", "storage", "--cases",
                                    "storage/servers-*", "--storage.paths", ",".join(f"shared:{f}" for f in folders),
                                    "--storage.servers", servers, "--storage.space", "64MiB", "--seed", seed, "--out", "r.h5",
                                    "--force", *args, cwd=self.dir).finish(120)
        self.assertEqual([str(p) for f in folders for p in f.iterdir()], [], "files are left")
        run = Results(self.dir / "r.h5")
        if any(kind == "storage-cached" for kind, _ in run.events):
            self.skipTest("noise: the directory of this test is in memory")
        return result, run

    def names(self, run, *severities):
        return {(f["level"], f["name"]) for f in run.findings if f["severity"] in severities and f["kind"] in ("slow", "split")}

    def named(self, fault, wanted, **settings):
        """Hosts and servers share a few cores and one disk: what else runs here may hide the fault, not move it."""
        for attempt in range(3):
            result, run = self.measure("--inject", fault, seed=7 + attempt, **settings)
            self.assertLessEqual(self.names(run, "FAIL"), {wanted}, result.stdout)
            if self.names(run, "FAIL") == {wanted}:
                self.assert_code(result, 2)
                return
        self.fail(f"{wanted} is not named: {result.stdout}")

    def test_healthy_ones_and_what_the_tool_says(self):
        result, run = self.measure()
        self.assertEqual(self.names(run, "FAIL"), set(), result.stdout)
        cells = run.of_each("storage", "servers-0", "write")
        wanted = {f"{host}>server:scratch-OST000{i}" for host in self.cluster.hosts for i in range(SERVERS)}
        self.assertEqual(set(cells), wanted)

    def test_a_slow_server(self):
        self.named("slow:server=scratch-OST0002,factor=0.1", ("server", "server:scratch-OST0002"))

    def test_a_slow_client_of_directories_on_servers_of_their_own(self):
        self.named("slow:rank=1,factor=0.1", ("node", self.cluster.hosts[1]), servers="paths")

    def test_a_node_reads_what_another_has_written(self):
        for case in ("shared-easy-read-0", "checkpoint-0"):
            result = self.cluster.start(["-n", 4], "run", "--level", "quick", "--suites", "storage", "--cases", f"storage/{case}",
                                        "--storage.paths", f"shared:{self.dir}", "--storage.space", "64MiB", "--out", "r.h5", "--force",
                                        "--inject", "bitflip:target=disk-stale,rank=1,step=1", cwd=self.dir).finish(120)
            self.assert_code(result, 2)
            run = Results(self.dir / "r.h5")
            told = [text for kind, text in run.events if kind == "storage-damage"]
            self.assertRegex(told[0], rf"/assay-storage-{self.cluster.hosts[2]}-\S+/data-000002: \d+ words stale")
            self.assertEqual({f["name"] for f in run.findings if f["kind"] == "corrupt"}, {self.cluster.hosts[1]})

    def test_a_tool_that_fails_is_an_error_with_its_words(self):
        pathlib.Path(self.dir / "bin" / "lfs").write_text("#!/bin/sh\necho no such file system; exit 3\n")
        result, run = self.measure()
        self.assert_code(result, 3)
        self.assertIn("lfs osts: exit code 3: no such file system", " ".join(result.stdout.split()))
        self.assertEqual(self.names(run, "FAIL", "WARN"), set())


if __name__ == "__main__":
    cluster.main()
