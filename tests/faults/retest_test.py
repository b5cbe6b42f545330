# SPDX-License-Identifier: Apache-2.0
"""A rank slowed down on purpose is named, measured again in the same run, and fails it; nobody else does.

Where the file itself says that the machine is too noisy (the ranks that were left alone differ too much, medians do not repeat,
or the retest is ambiguous), it is tried again, and skipped in the end; it never passes for that.
"""

import unittest

import common
import numpy as np

TRIES = 3
FAULTY = 1


class Retest(common.FaultTest):
    def spread(self, results, case, metric):
        """Of the medians of the ranks that were left alone."""
        medians = [np.median(v) for rank, v in results.samples(case, metric).items() if rank != FAULTY]
        return (max(medians) - min(medians)) / np.median(medians)

    def error(self, results, case, metric):
        """Largest relative standard error of a rank's median."""
        samples = results.samples(case, metric).values()
        if min(map(len, samples)) < 2:
            return np.inf
        return max(1.2533 * np.std(v, ddof=1) / np.sqrt(len(v)) / np.median(v) for v in samples)

    def named(self, suite, case, metric, factor, *args, level="quick"):
        """True when it went as it should, else why the machine was too noisy to tell."""
        result = self.inject(4, f"slow:rank={FAULTY},factor={factor},case={case}", *args, "--suites", f"inventory,{suite}",
                             level=level)
        results = self.file()
        path = f"{suite}/{case}"
        if unfired := results.events("inject-unfired"):
            return unfired[0]["text"]
        failed = [f for f in results.findings() if f["severity"] == "FAIL"]
        faulty = results.names[results.device[FAULTY]]
        # Whatever the noise: nobody else may be failed for being slow.
        self.assertEqual([f["name"] for f in failed if f["name"] != faulty], [], result.stdout)
        self.assert_spec_unseen(results, f"slow:rank={FAULTY}")
        counts = {rank: len(v) for rank, v in results.samples(path, metric).items()}
        if len(counts) < 4 or min(counts.values()) == 0:
            return f"{path}: samples of 4 ranks: {counts}"
        spread = self.spread(results, path, metric)
        if spread > (1 - factor) / 8:
            return f"{path}: the ranks that were left alone differ by {spread:.1%}"
        error = self.error(results, path, metric)
        if not failed and error > -np.log(factor) / 8:  # what the verdict measures again (Population::tells)
            return f"{path}: the medians of 4 ranks repeat to {error:.1%} only"
        undecided = [f["text"] for f in results.findings()
                     if f["name"] == faulty and "AMBIGUOUS" in f["text"] or "medians are uncertain by" in f["text"]]
        undecided += [e["text"] for e in results.events("unconfirmed")]  # no time was left
        undecided += [f["text"] for f in results.findings("shared-core")]
        undecided += [f["text"] for f in results.findings() if f["name"] == faulty and "used most of their cores" in f["text"]]
        if undecided and not failed:  # the file says that it was not measured well enough to be failed
            return undecided[0]
        self.assert_code(result, common.FAIL)
        self.assertTrue(failed[0]["metric"].startswith(path), failed[0])
        self.assertEqual(int(failed[0]["confirmed"]), 1, failed[0])
        self.assertAlmostEqual(float(failed[0]["deficit"]), 1 - factor, delta=0.3 * (1 - factor))
        again = f"{path}.c1"
        self.assertEqual(results.state(again), "pass")
        self.assertIn(FAULTY, results.samples(again, metric))
        self.assertGreater(len(results.samples(again, metric)), 1, "controls are measured beside the candidate")
        self.assertTrue(any(again in e["text"] for e in results.events("confirming")))
        return True

    def try_again(self, *args, **kwargs):
        said = []
        for _ in range(TRIES):
            said.append(self.named(*args, **kwargs))
            if said[-1] is True:
                return
        self.skipTest(f"noise: {said}")

    def gemm(self, factor):
        self.try_again("gemm", "fp32-n1024-alone", "throughput", factor, "--gemm.sizes", "1024", "--gemm.dtypes", "fp32",
                       "--gemm.modes", "alone")

    def memory(self, factor):
        self.try_again("memory", "triad-alone", "bandwidth", factor, "--cases", "memory/triad-alone")

    def test_gemm_alone(self):
        self.gemm(0.5)

    def test_train_alone(self):
        self.try_again("train", "tiny-alone", "throughput", 0.25, "--cases", "train/tiny-alone")

    @common.nightly
    def test_memory_alone(self):
        self.memory(0.7)

    @common.nightly
    def test_a_tenth_in_gemm(self):
        self.gemm(0.9)

    @common.nightly
    def test_a_tenth_in_memory(self):
        self.memory(0.9)


if __name__ == "__main__":
    common.main()
