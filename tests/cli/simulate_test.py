# SPDX-License-Identifier: Apache-2.0
"""assay simulate: a file like that of a run, which says that nothing was measured; errors are one line and exit 4."""

import harness


class Simulate(harness.CliTest):
    def simulate(self, *args):
        return self.assay("simulate", "--metrics", "memory", "--between-cv", "0.1%", "-o", "s.h5", *args)

    def test_a_healthy_cluster_passes_and_the_file_is_judged_alike(self):
        result = self.simulate("--nodes", "12", "--devices-per-node", "2")
        self.assert_code(result, 0)
        self.assertIn("simulated: ", result.stdout)
        self.assertEqual(self.left_behind(), ["s.h5"])
        again = self.assay("verdict", "s.h5")
        self.assert_code(again, 0)
        self.assertIn("simulated: ", again.stdout)
        self.assert_code(self.assay("schema", "--check", "s.h5"), 0)
        inspected = self.assay("inspect", "s.h5").stdout
        self.assertIn("simulated", inspected)

    def test_the_seed_decides(self):
        samples = []
        for name, seed in [("a", "5"), ("b", "5"), ("c", "6")]:
            self.assay("simulate", "--metrics", "memory/triad*", "--seed", seed, "-o", name + ".h5")
            samples.append(self.assay("export", name + ".h5", "--csv").stdout)
        self.assertEqual(samples[0], samples[1])
        self.assertNotEqual(samples[0], samples[2])

    def test_a_slow_device_is_named(self):
        result = self.simulate("--nodes", "16", "--devices-per-node", "4", "--fault", "slow:node=7,device=2,percent=20")
        self.assertIn(result.returncode, (2, 3))  # never clean, whatever the verdict finds
        self.assertIn("sim07/gpu2", result.stdout)
        for other in ["sim07/gpu1", "sim08/gpu2"]:
            self.assertNotIn(other + ":", result.stdout)

    def test_a_wrong_value_fails(self):
        result = self.simulate("--fault", "bitflip:target=memory,node=3")
        self.assert_code(result, 2)
        self.assertIn("FAIL  sim03/gpu0", result.stdout)

    def test_errors(self):
        out = ["-o", "s.h5"]
        cases = [
            ([], "simulate: -o FILE"),
            ([*out, "--nodes", "0"], "--nodes: 0 1"),
            ([*out, "--nodes", "x"], "--nodes: 'x'"),
            ([*out, "--devices-per-node", "4000"], "--devices-per-node: 4000"),
            ([*out, "--nodes", "1000000", "--devices-per-node", "1000"], "--nodes:"),
            ([*out, "--nics-per-node", "0"], "--nics-per-node: 0 1"),
            ([*out, "--leaves", "99"], "--leaves: 99"),
            ([*out, "--metrics", "disk"], "--metrics: 'disk'"),
            ([*out, "--between-cv", "much"], "--between-cv: 'much'"),
            ([*out, "--within-cv", "120%"], "--within-cv: '120%' 0 1"),
            ([*out, "--share", "-5%"], "--share: '-5%' 0 1"),
            ([*out, "--population", "odd"], "--population: 'odd' normal heavy bimodal models"),
            ([*out, "--seed", "-1"], "--seed: -1 0"),
            ([*out, "--fault", "slow:node=1"], "--fault: slow factor= percent="),
            ([*out, "--fault", "slow:node=99,percent=5"], "--fault: 'slow:node=99,percent=5':"),
            ([*out, "--fault", "melt"], "--fault: 'melt'"),
            (["-o", "no/such/place.h5"], "--output:"),
        ]
        for arguments, line in cases:
            with self.subTest(arguments):
                self.assert_error(["simulate", *arguments], line)

    def test_an_existing_file_is_kept_without_force(self):
        self.write("s.h5", "mine")
        self.assert_error(["simulate", "-o", "s.h5"], "s.h5 exists")
        self.assertEqual((self.dir / "s.h5").read_text(), "mine")
        self.assert_code(self.simulate("--force"), 0)
        self.assert_code(self.assay("schema", "--check", "s.h5"), 0)


if __name__ == "__main__":
    harness.main()
