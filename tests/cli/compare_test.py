# SPDX-License-Identifier: Apache-2.0
"""`compare A B` on made-up fleets: what it says, what it returns, what it refuses."""

import json
import os

import harness

MAKE_RUN = os.environ["ASSAY_MAKE_RUN"]


class FleetTest(harness.CliTest):
    def make(self, name, **keys):
        (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
        result = harness.execute([MAKE_RUN, name, *(f"{key}={value}" for key, value in keys.items())], self.dir)
        assert result.returncode == 0, result.stderr
        return name


class Compare(FleetTest):
    def test_two_directories_with_files_of_one_name_are_told_apart(self):
        self.make("a/run/x.h5")
        self.make("b/run/x.h5", seed=2)
        told = self.assay("compare", "a/run", "b/run", "--json", "c.json").stdout
        self.assertRegex(told, r"(?m)^A  8 nodes: a/run \(x\.h5\)$")
        self.assertRegex(told, r"(?m)^B  .*: b/run \(x\.h5\)$")
        self.assertEqual([json.loads((self.dir / "c.json").read_text())[key] for key in ("given_a", "given_b")], ["a/run", "b/run"])

    def test_the_exit_code_tells_same_from_slower_and_faster(self):
        self.make("a.h5")
        self.make("b.h5", seed=2)
        self.make("c.h5", seed=3, rate=0.95e11)
        same = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(same, 0)
        self.assertIn("SAME (exit 0)", same.stdout)
        slower = self.assay("compare", "a.h5", "c.h5")
        self.assert_code(slower, 1)
        self.assertIn("8 nodes in pairs", slower.stdout)
        self.assertIn("0.9", slower.stdout)
        faster = self.assay("compare", "c.h5", "a.h5")
        self.assert_code(faster, 0)
        self.assertIn("FASTER", faster.stdout)
        for result in (same, slower, faster):
            self.assertEqual(result.stderr, "")
            self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()), result.stdout)

    def test_different_machines_are_two_samples(self):
        self.make("a.h5")
        self.make("b.h5", first=100, rate=0.9e11)
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 1)
        self.assertNotIn("in pairs", result.stdout)
        self.assertRegex(result.stdout, r"\b0\b.*\bin A\b")

    def test_dead_and_missing_nodes_are_told(self):
        fleet = ["simulate", "--nodes", "8", "--metrics", "memory/triad-together", "-o"]
        self.assay(*fleet, "a.h5")
        self.assay(*fleet, "b.h5", "--run", "1", "--fault", "dead:node=3,value=0")
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 3)
        self.assertIn("1 node has values only in A: sim03", result.stdout)
        self.assertRegex(result.stdout, r"b\.h5: 1 impossible value of a part is\s+left\s+out: sim03/gpu0")

    def test_one_slow_node_of_a_fleet_that_is_the_same_is_named(self):
        fleet = ["simulate", "--nodes", "24", "--metrics", "memory", "-o"]
        self.assay(*fleet, "a.h5")
        self.assay(*fleet, "b.h5", "--run", "1")
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 0)
        self.assertNotIn("unlike the others", result.stdout)
        self.assay(*fleet, "b.h5", "--run", "1", "--force", "--fault", "slow:node=4,percent=30")
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 3)
        self.assertRegex(" ".join(result.stdout.split()), r"1 part is slower in B than in A, unlike the others: sim04\b.* (29|30)\.\d %, and \d+ more")

    def test_few_nodes_are_too_few_however_many_devices(self):
        self.make("a.h5", nodes=3, devices=8)
        self.make("b.h5", nodes=3, devices=8, rate=0.5e11)
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 3)
        self.assertIn("insufficient nodes", result.stdout)
        self.assert_code(self.assay("compare", "a.h5", "b.h5", "--unit", "device"), 3)

    def test_an_ambiguous_result_is_not_same(self):
        self.make("a.h5", noise=0.2, nodes=5)
        self.make("b.h5", noise=0.2, nodes=5, seed=5)
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 3)
        self.assertIn("AMBIGUOUS (exit 3)", result.stdout)

    def test_sides_may_be_lists_and_directories(self):
        self.make("a1.h5")
        self.make("a2.h5", seed=2, started="2026-01-02T00:00:00Z")
        self.make("later/b1.h5", seed=3, started="2026-02-01T00:00:00Z")
        self.make("later/b2.h5", seed=4, started="2026-02-02T00:00:00Z")
        result = self.assay("compare", "a1.h5,a2.h5", "later", "--json", "c.json")
        self.assert_code(result, 0)
        told = json.loads((self.dir / "c.json").read_text())
        self.assertEqual([r["file"] for r in told["a"]], ["a1.h5", "a2.h5"])
        self.assertEqual([r["file"] for r in told["b"]], ["b1.h5", "b2.h5"])
        self.assertEqual(told["relation"], "SAME")
        self.assertEqual(told["metrics"][0]["a"]["units"], 8)  # nodes, not nodes x runs
        self.assertTrue(told["metrics"][0]["paired"])
        self.assertEqual(sorted(p.name for p in (self.dir / "later").iterdir()), ["b1.h5", "b2.h5"])

    def test_a_run_given_twice_is_named(self):
        self.make("a.h5")
        self.make("b.h5", seed=2, started="2026-01-02T00:00:00Z")
        (self.dir / "copy.h5").write_bytes((self.dir / "a.h5").read_bytes())
        for args, line in [(["compare", "a.h5,a.h5", "b.h5"], "compare: a.h5 twice"), (["compare", "b.h5", "a.h5,copy.h5"], "compare: copy.h5 twice a.h5"),
                           (["trend", "a.h5,a.h5", "-o", "t.html"], "trend: a.h5 twice"), (["report", "a.h5", "a.h5", "-o", "p.html"], "report: a.h5 twice"),
                           (["report", "a.h5,b.h5", "a.h5", "-o", "p.html"], "report: a.h5 twice")]:
            with self.subTest(args):
                self.assert_error(args, line)
        self.assert_code(self.assay("trend", "a.h5,b.h5", "-o", "t.html"), 0)

    def test_another_case_key_is_refused_unless_told(self):
        self.make("a.h5")
        self.make("b.h5", key="fedcba9876543210")
        result = self.assay("compare", "a.h5", "b.h5")
        self.assert_code(result, 3)
        self.assertIn("case_key", result.stdout)
        self.assert_code(self.assay("compare", "a.h5", "b.h5", "--ignore-case-key"), 0)

    def test_bad_input(self):
        self.make("a.h5")
        (self.dir / "empty").mkdir()
        self.write("bad.h5", "no results\n" * 100)
        self.assert_error(["compare", "a.h5", "none.h5"], "none.h5:")
        self.assert_error(["compare", "none.h5,a.h5", "a.h5"], "none.h5:")
        self.assert_error(["compare", "a.h5", "empty"], "empty: NAME.h5")
        self.assertIn("bad.h5", self.assert_error(["compare", "a.h5", "bad.h5"], "").stderr)
        self.assert_error(["compare", "a.h5"], "compare: B")
        for margin in ["x", "0", "-1", "60", "1 GB"]:
            self.assert_error(["compare", "a.h5", "a.h5", "--margin", margin], f"--margin: '{margin}'")
        self.assert_error(["compare", "a.h5", "a.h5", "--unit", "rank"], "--unit:")
        self.assert_error(["compare", "a.h5", "a.h5", "--json", "a.h5"], "--json: 'a.h5'")

    def test_nothing_in_common(self):
        self.make("a.h5")
        self.assert_error(["compare", "a.h5", "a.h5", "--cases", "memory/*"], "--cases: 'memory/*'")


if __name__ == "__main__":
    harness.main()
