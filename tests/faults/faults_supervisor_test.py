# SPDX-License-Identifier: Apache-2.0
"""Ranks that hang, die or leave: the run names them, keeps what was measured, and ends."""

import common


class Lost(common.FaultTest):
    def lost(self, fault, kind, rank, ranks=3, suite="gemm"):
        result = self.inject(ranks, fault, "--suites", f"inventory,{suite}")
        self.assert_code(result, common.INCONCLUSIVE)
        results = self.file()
        self.assertEqual(int(results.file.attrs["injected"]), 1)
        found = results.findings(kind)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f"rank {rank}", found[0]["text"])
        self.assertEqual(found[0]["action"], "TRIAGE")
        self.assertIn(f"rank {rank}", result.stderr)
        return result, results, found[0]

    def test_a_rank_that_hangs_is_named_with_where_it_stands(self):
        for suite in common.share(("p2p", "gemm", "memory", "allreduce")):
            with self.subTest(suite):
                _, results, finding = self.lost(f"hang:rank=1,suite={suite}", "hang", 1, suite=suite)
                self.assertIn(suite + "/", finding["text"])
                self.assertTrue(any("injected_hang" in e["text"] for e in results.events("stack")))

    @common.nightly
    def test_a_rank_that_hangs_at_a_step(self):
        _, _, finding = self.lost("hang:rank=2,suite=gemm,step=2", "hang", 2)
        self.assertIn("gemm/", finding["text"])

    def test_a_rank_that_is_killed(self):
        strikes = [(0, "allreduce"), (2, "gemm"), (0, "gemm"), (0, "memory"), (0, "p2p"), (2, "memory"), (2, "p2p"),
                   (2, "allreduce")]
        for rank, suite in common.share(strikes, 2):
            with self.subTest(suite=suite, rank=rank):
                _, results, finding = self.lost(f"crash:rank={rank},suite={suite}", "lost", rank, suite=suite)
                self.assertIn("signal 9", finding["text"])
                self.assertEqual(results.state("inventory/node"), "pass", "what had ended is kept")

    def test_a_rank_that_leaves(self):
        _, _, finding = self.lost("exit:rank=1,code=7,suite=gemm", "lost", 1)
        self.assertIn("7", finding["text"])

    def test_a_rank_that_throws_amid_a_collective(self):
        result = self.inject(3, "throw:rank=1,suite=allreduce,step=3", "--suites", "inventory,allreduce")
        self.assert_code(result, common.INCONCLUSIVE)
        self.assertIn("rank 1", result.stdout + result.stderr)


if __name__ == "__main__":
    common.main()
