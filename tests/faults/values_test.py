# SPDX-License-Identifier: Apache-2.0
"""One wrong value, made on purpose in a real run: found, and named by rank and place."""

import re

import common


class Values(common.FaultTest):
    def wrong(self, ranks, fault, case, faulty, *args, index=None, xor=None):
        """The only rank with errors in `case` is `faulty`; returns its first error."""
        result, results = self.inject_into(case, ranks, fault, *args)
        self.assert_code(result, common.FAIL)
        self.assert_injected(results, fault)
        self.assert_spec_unseen(results, fault)
        errors = [e for e in results.errors() if e["case"] == case]
        self.assertEqual({e["entity"] for e in errors}, {results.device[faulty]}, errors)
        self.assertEqual(results.state(case), "fail")
        if index is not None:
            self.assertEqual([int(e["index"]) for e in errors], [index])
        if xor is not None:
            self.assertEqual([int(e["xor"]) for e in errors], [xor])
        found = [f for f in results.findings("corrupt") if f["metric"].startswith(case + ":")]
        self.assertEqual({f["name"] for f in found}, {results.names[results.device[faulty]]})
        self.assertEqual(found[0]["severity"], "FAIL")
        self.assertIn(results.names[results.device[faulty]], result.stdout)
        self.assert_code(self.assay("verdict", "r.h5"), common.FAIL)
        return errors[0], results

    def test_gemm_result_checked_against_the_golden_one(self):
        case = "gemm/fp32-exact-n512"
        args = ["--suites", "gemm", "--cases", case]  # three ranks, so that the vote on digests has a majority
        for rank in (0, 1):
            with self.subTest(rank):
                self.wrong(3, f"bitflip:target=gemm,rank={rank},word=77777,bit=20", case, rank, *args, index=77777,
                           xor=1 << 20)
        error, _ = self.wrong(3, "nan:target=gemm,rank=1,word=5", case, 1, *args, index=5)
        self.assertEqual(int(error["actual"]), 0x7FFFFFFF)

    def test_gemm_result_that_was_timed(self):
        # Small ones, of which a sample holds every pair of inputs: a result is compared with an earlier one of its pair.
        case = "gemm/fp32-n128-together"
        self.wrong(3, "bitflip:target=gemm,rank=1,word=12345,bit=3,seed=4", case, 1, "--suites", "gemm", "--cases", case,
                   "--gemm.sizes", "128", index=12345, xor=8)

    def test_place_drawn_from_the_seed_is_the_same_again(self):
        case = "gemm/fp32-exact-n512"
        args = ["--suites", "gemm", "--cases", case]
        first, _ = self.wrong(3, "bitflip:target=gemm,rank=1", case, 1, *args)
        again, _ = self.wrong(3, "bitflip:target=gemm,rank=1", case, 1, *args)
        other, _ = self.wrong(3, "bitflip:target=gemm,rank=1,seed=8", case, 1, *args)
        place = ("index", "xor", "expected")
        self.assertEqual([first[k] for k in place], [again[k] for k in place])
        self.assertNotEqual([first[k] for k in place], [other[k] for k in place])

    def test_memory_pattern_names_the_address(self):
        case = "memory/pattern-own-address-together"
        self.wrong(2, "bitflip:target=memory,rank=1,word=100001,bit=63,step=1", case, 1, "--suites", "memory", "--cases",
                   case, index=100001 * 8, xor=1 << 63)

    def test_memory_that_was_timed(self):
        case = "memory/triad-together"
        error, _ = self.wrong(2, "bitflip:target=memory,rank=0,bit=40", case, 0, "--suites", "memory", "--cases", case,
                              xor=1 << 40)
        self.assertEqual(int(error["index"]) % 8, 0)

    def test_allreduce_result(self):
        case = "allreduce/allreduce-world-1048576-mpi"
        args = ["--suites", "allreduce", "--cases", "allreduce/allreduce-world-1048576*"]
        self.wrong(3, "bitflip:target=allreduce,rank=2,word=1000,bit=1", case, 2, *args, index=1000, xor=2)
        error, _ = self.wrong(3, "nan:target=allreduce,rank=1", case, 1, *args)
        self.assertEqual(int(error["actual"]), 0x7FFFFFFF)

    def test_message(self):
        built = re.findall(r"^  (mpi|ucx) +built: ", self.assay("list").stdout, re.M)
        self.assertIn("mpi", built)
        for transport in built:
            with self.subTest(transport):
                case = f"p2p/bandwidth-uni-1048576-node-{transport}"
                args = ["--suites", "p2p", "--p2p.transport", transport, "--cases", case]
                _, results = self.wrong(3, "bitflip:target=message,rank=2,word=131071,bit=9,step=7", case, 2, *args,
                                        index=131071, xor=1 << 9)
                # The link has two ends: the event names the sender.
                source = [e["text"] for e in results.events("miscompare") if e["entity"] == results.device[2]]
                self.assertTrue(source)
                for text in source:  # one more for each case that measures again
                    self.assertRegex(text, "^1 wrong 8-byte words\\b.* from ")

    def test_message_that_never_arrives(self):
        for case in ("p2p/bandwidth-uni-1048576-node-mpi", "p2p/latency-8-node-mpi"):
            with self.subTest(case):
                for _ in range(3):  # on a busy machine the time of a case may end before its last pair
                    _, results = self.wrong(3, "drop:rank=1", case, 1, "--suites", "p2p", "--cases", case)
                    links = zip(*(results.case(case)[name][:] for name in ("source", "destination", "count")))
                    samples = {source: count for source, destination, count in links if destination == results.device[1]}
                    if len(samples) == 2 and min(samples.values()) > 0:
                        break
                texts = [e["text"] for e in results.events("miscompare")]
                for sender in (0, 2):
                    name = results.names[results.device[sender]]
                    self.assertTrue(any(text.endswith("from " + name) for text in texts), (texts, samples))


if __name__ == "__main__":
    common.main()
