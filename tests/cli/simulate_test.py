# SPDX-License-Identifier: Apache-2.0
"""assay simulate: a file like that of a run, which says that nothing was measured; errors are one line and exit 4."""

import json

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

    def nodes(self, *args, history=()):
        """State of each node of a simulated cluster that is not PASS."""
        result = self.assay("simulate", "-o", "s.h5", "--force", *history, *args)
        self.assertIn(result.returncode, (0, 2, 3), result.stderr)
        self.assay("verdict", "s.h5", *history, "--json", "v.json")
        states = json.loads((self.dir / "v.json").read_text())["entities"]
        return {e["name"]: e["state"] for e in states if e["kind"] == "node" and e["state"] != "PASS"}

    def assert_fail(self, names, *args):
        self.assertEqual(self.nodes(*args), dict.fromkeys(names, "FAIL"))

    def test_only_the_faulty_are_accused(self):
        memory = ("--metrics", "memory/triad-together,memory/latency-alone", "--between-cv", "0.1%")
        for args, faulty in ((("--nodes", "64", "--fault", "slow:node=17+18,percent=10", "--seed", "77411"), {"sim17", "sim18"}),
                             (("--nodes", "64", "--fault", "slow:node=17,percent=6", "--fault", "slow:node=40,percent=30"), {"sim17", "sim40"}),
                             (("--nodes", "64", "--chassis", "4", "--fault", "slow:node=8+9+10,percent=8"), {"sim08", "sim09", "sim10"}),
                             (("--nodes", "300", "--fault", "slow:node=" + "+".join(map(str, range(3, 299, 40))) + ",percent=10"),
                              {f"sim{n:03}" for n in range(3, 299, 40)})):
            with self.subTest(args):
                self.assert_fail(faulty, *memory, *args)

    def test_values_that_cannot_be_are_faults(self):
        for value in ("0", "-5", "inf"):
            with self.subTest(value):
                self.assert_fail({"sim31"}, "--nodes", "64", "--metrics", "memory/triad-together", "--fault", f"dead:node=31,value={value}")

    def test_one_sample_of_each_part_names_a_gross_deficit(self):
        fleet = ("--nodes", "22", "--samples", "1", "--metrics", "memory/triad-together")
        self.assertEqual(self.nodes(*fleet), {})
        self.assert_fail({"sim05"}, *fleet, "--fault", "slow:node=5,percent=30")

    def test_a_lasting_fault_is_named_every_night_and_fails_from_the_second_on(self):
        (self.dir / "nights").mkdir()
        seen = []
        for night in range(10):
            fault = ("--fault", "slow:node=3,percent=10") if night >= 6 else ()
            states = self.nodes("--nodes", "16", "--metrics", "memory", "--between-cv", "1.7%", "--run-cv", "0.1%", "--run", str(night),
                                "--started", f"2026-01-{night + 1:02}T00:00:00Z", *fault, history=("--history", "nights") if night > 0 else ())
            self.assertLessEqual(states.keys(), {"sim03"}, night)
            seen.append(states.get("sim03", "-"))
            (self.dir / "s.h5").rename(self.dir / "nights" / f"n{night}.h5")
        self.assertEqual(seen[:6], ["-"] * 6)
        self.assertIn(seen[6], ("WARN", "FAIL"))
        self.assertEqual(seen[7:], ["FAIL"] * 3)

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
            ([*out, "--nodes", "16", "--devices-per-node", "4", "--leaves", "4", "--metrics", "p2p", "--fault", "slow:leaf=2,percent=50"],
             "--fault: 'slow:leaf=2,percent=50': changes no sample --leaves 8"),
            ([*out, "--metrics", "p2p", "--nodes", "200", "--fault", "slowlink:pair=0>1,percent=50"], "changes no sample the pair is not measured"),
            ([*out, "--metrics", "allreduce", "--fault", "slow:node=1,percent=50"], "changes no sample suite=allreduce"),
            ([*out, "--metrics", "allreduce", "--fault", "dead:node=1"], "changes no sample suite=allreduce"),
            (["-o", "no/such/place.h5"], "--output:"),
        ]
        for arguments, line in cases:
            with self.subTest(arguments):
                self.assert_error(["simulate", *arguments], line)

    def test_a_full_disk_is_told_by_name_and_leaves_nothing(self):
        for size in ("8k", "20k", "60k", "100k", "200k"):
            with self.subTest(size):
                result = self.on_small_disk(size, "simulate", "--nodes", "64", "-o", "small/s.h5")
                self.assert_code(result, 3)
                self.assertEqual((result.stdout, result.stderr), ("", "assay: small/s.h5: No space left on device\n"))

    def test_a_fault_that_its_duty_left_out_is_named(self):
        result = self.simulate("--fault", "slow:node=3,percent=20,duty=0.0001")
        self.assert_code(result, 3)
        self.assertIn("injected fault without effect", result.stdout)

    def test_help_has_the_keys_of_each_kind_and_their_values(self):
        text = self.assay("simulate", "--help").stdout
        for line in ("  missing   node, what; needs node\n", "device, nic, memory [device]", "slow:leaf acts on links between leaves only"):
            self.assertIn(line, text)

    def test_an_existing_file_is_kept_without_force(self):
        self.write("s.h5", "mine")
        self.assert_error(["simulate", "-o", "s.h5"], "s.h5 exists")
        self.assertEqual((self.dir / "s.h5").read_text(), "mine")
        self.assert_code(self.simulate("--force"), 0)
        self.assert_code(self.assay("schema", "--check", "s.h5"), 0)


if __name__ == "__main__":
    harness.main()
