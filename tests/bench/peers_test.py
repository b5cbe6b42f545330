# SPDX-License-Identifier: Apache-2.0
"""The rows of scripts/bench_peers.sh: each is printed as soon as it is known, and one that cannot be had says `not run` and why."""

import contextlib
import importlib.util
import io
import types
import unittest

import outcome

try:
    import peers
    import training
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")


def told(act):
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(KeyboardInterrupt):
        act()
    return [line.strip().split(" | ") for line in text.getvalue().splitlines()]


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

    @unittest.skipIf(importlib.util.find_spec("torch"), "nightly: PyTorch is here")
    def test_training_without_torch_says_so(self):
        options = types.SimpleNamespace(quick=True, llmc=None, threads=1, pairs=1, level="smoke")
        rows = told(lambda: training.compare(None, options, peers.Row, peers.interleave, peers.absent))
        said = {row[0]: row[-1] for row in rows if row[1] == "PyTorch, CPU"}
        self.assertEqual(set(said), {f"train {preset}" for preset in training.SHAPES})
        for why in said.values():
            self.assertRegex(why, "^not run: .*torch")


if __name__ == "__main__":
    outcome.main()
