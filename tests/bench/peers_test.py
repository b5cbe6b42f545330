# SPDX-License-Identifier: Apache-2.0
"""The rows of scripts/bench_peers.sh: each is printed as soon as it is known, and one that cannot be had says `not run` and why."""

import contextlib
import io
import os
import pathlib
import shutil
import tempfile
import types
import unittest
import unittest.mock

import outcome

try:
    import peers
    import storage
    import training
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")


def told(act):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(KeyboardInterrupt):
        act()
    return [line.strip().split(" | ") for line in text.getvalue().splitlines()]


# As IOR 4.1 and mdtest 3.3 print it.
IOR = """IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     300.00     300.12     0.006       65536      1024.00    0.0005     0.426      0.0001     0.426      0
read      400.00     400.50     0.005       65536      1024.00    0.0003     0.319      0.0001     0.320      0

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test#
write         310.00     290.00     300.00       8.16     310.00     290.00     300.00       8.16    0.42667         NA            NA     0
read          410.00     390.00     400.00       8.16     410.00     390.00     400.00       8.16    0.32000         NA            NA     0
Finished            : Wed Nov 25 09:08:04 2026
"""
MDTEST = """mdtest-3.3.0 was launched with 2 total task(s) on 1 node(s)
SUMMARY rate: (of 3 iterations)
   Operation                      Max            Min           Mean        Std Dev
   ---------                      ---            ---           ----        -------
   File creation             :       4100.000       3900.000       4000.000         81.000
   File stat                 :      41000.000      39000.000      40000.000        810.000
   File read                 :       8100.000       7900.000       8000.000         81.000
   File removal              :       5100.000       4900.000       5000.000         81.000
   Tree creation             :        900.000        700.000        800.000         81.000
-- finished at 11/24/2026 20:00:00 --
"""


class MadeRuns:
    """Twice as fast as IOR prints, half as fast as mdtest does."""

    def run(self, ranks, options):
        easy = {"storage/shared-easy-write-0": {"bandwidth": [600 * 2**20] * 3}, "storage/shared-easy-read-0": {"bandwidth": [800 * 2**20] * 3}}
        own = {"create": [2e3] * 3, "stat": [2e4] * 3, "read": [4e3] * 3, "delete": [2.5e3] * 3}
        return easy if "storage/shared-easy-*" in options else {"storage/metadata-own-0": own}


class Peers(unittest.TestCase):
    def setUp(self):
        self.rows = [peers.Row("speed", name, "B/s", 1, 0.9) for name in ("here", "gone")]

    def ours(self):
        return {row: 2.0 for row in self.rows}

    def missing(self):
        raise peers.Unavailable("No module named 'torch'")

    def test_a_missing_peer_is_not_run_and_the_others_are(self):
        here, gone = told(lambda: peers.interleave(7, self.rows, self.ours, {self.rows[0]: lambda: 1.0, self.rows[1]: self.missing}))
        self.assertEqual((here[1], here[5]), ("here", "2.000"))
        self.assertEqual((gone[1], gone[-1]), ("gone", "not run: No module named 'torch'"))

    def test_what_is_cut_keeps_what_it_measured(self):
        calls = []

        def theirs():
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return 1.0
        here, _ = told(lambda: peers.interleave(7, self.rows, self.ours, {self.rows[0]: theirs, self.rows[1]: self.missing}))
        self.assertEqual(here[5:7], ["2.000", "(n=3)"])

    def test_a_peer_that_is_not_here_has_a_row_at_once(self):
        self.assertEqual(told(lambda: peers.absent("training", "PyTorch", "no torch"))[0][-1], "not run: no torch")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_storage_beside_programs_that_print_as_ior_and_mdtest(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("ior", IOR), ("mdtest", MDTEST)):
                path = pathlib.Path(folder, "bin", name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(f"#!/bin/sh\n[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 0\ncat <<'TEXT'\n{text}TEXT\n")
                path.chmod(0o755)
            options = types.SimpleNamespace(ior=folder, directory=folder, level="quick", pairs=2)
            rows = told(lambda: storage.compare_parallel(MadeRuns(), options, peers.Row, peers.interleave, peers.absent))
            said = {row[0]: (row[1], row[3], row[5], row[-2]) for row in rows}
            self.assertEqual(said, {
                "shared-easy-write": ("IOR", "314.6", "2.000", ">= 0.98"),
                "shared-easy-read": ("IOR", "419.4", "2.000", ">= 0.98"),
                "metadata-own, create": ("mdtest", "4", "0.500", ">= 0.95"),
                "metadata-own, stat": ("mdtest", "40", "0.500", ">= 0.95"),
                "metadata-own, read": ("mdtest", "8", "0.500", ">= 0.95"),
                "metadata-own, delete": ("mdtest", "5", "0.500", ">= 0.95"),
            })
            os.remove(os.path.join(folder, "bin", "mdtest"))
            rows = told(lambda: storage.compare_parallel(MadeRuns(), options, peers.Row, peers.interleave, peers.absent))
            self.assertEqual({row[-1] for row in rows if row[1] == "mdtest"}, {f"not run: no mdtest under {folder}"})
            self.assertEqual({row[5] for row in rows if row[1] == "IOR"}, {"2.000"})

    def test_without_ior_its_rows_say_so(self):
        rows = told(lambda: storage.compare_parallel(None, types.SimpleNamespace(ior=""), peers.Row, peers.interleave, peers.absent))
        self.assertEqual([(row[1], row[-1]) for row in rows],
                         [(peer, "not run: it is not packaged; --ior DIR compares with it") for peer in ("IOR", "mdtest")])

    def test_training_without_torch_says_so(self):
        options = types.SimpleNamespace(quick=True, llmc=None, threads=1, pairs=1, level="smoke")
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
            with unittest.mock.patch.dict(os.environ, PYTHONPATH=folder):
                rows = told(lambda: training.compare(None, options, peers.Row, peers.interleave, peers.absent))
        said = {row[0]: row[-1] for row in rows if row[1] == "PyTorch, CPU"}
        self.assertEqual(set(said), {f"train {preset}" for preset in training.SHAPES})
        for why in said.values():
            self.assertRegex(why, "^not run: .*torch")


if __name__ == "__main__":
    outcome.main()
