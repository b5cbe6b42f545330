# SPDX-License-Identifier: Apache-2.0
"""`--baseline` and `--history`: what is said, what is stored, what is refused."""

import json
import os
import shutil
import time

import compare_test
import harness


class References(compare_test.FleetTest):
    def days(self, count, **last):
        """A history of `count` days of 16 nodes, the last with other keys."""
        for day in range(count):
            keys = last if day == count - 1 else {}
            self.make(f"past/d{day}.h5", nodes=16, seed=day + 1, started=f"2026-01-{day + 1:02}T00:00:00Z", **keys)

    def findings(self, name):
        return json.loads((self.dir / name).read_text())["findings"]

    def test_a_node_alone_against_a_fleet(self):
        self.make("fleet.h5", nodes=32)
        self.make("good.h5", nodes=1, seed=5)
        self.make("bad.h5", nodes=1, seed=6, slow="node0", factor=0.9)
        self.assert_code(self.assay("verdict", "good.h5", "--baseline", "fleet.h5"), 0)
        self.assert_code(self.assay("verdict", "bad.h5"), 0)
        result = self.assay("verdict", "bad.h5", "--baseline", "fleet.h5", "--json", "v.json")
        self.assert_code(result, 2)
        self.assertIn("baseline fleet.h5", result.stdout)
        finding = self.findings("v.json")[0]
        self.assertEqual((finding["name"], finding["reference_kind"]), ("node0/cores0-3", "baseline"))
        self.assertNotIn("values", json.loads((self.dir / "v.json").read_text())["inputs"]["baseline"])

    def test_a_run_stores_its_baseline_and_verdict_repeats_it(self):
        first = self.assay("run", "--level", "smoke", "--suites", "inventory,gemm", "--seed", "1", "--quiet", "--out", "first.h5")
        self.assertIn(first.returncode, (0, 3), first.stdout + first.stderr)
        second = self.assay("run", "--level", "smoke", "--suites", "inventory,gemm", "--seed", "1", "--quiet", "--out", "second.h5",
                            "--baseline", "first.h5", "--history", ".")
        self.assertIn("baseline ", second.stdout)
        self.assertNotIn("baseline 0", second.stdout)
        (self.dir / "first.h5").unlink()
        again = self.assay("verdict", "second.h5")
        self.assertEqual(again.stdout, second.stdout)
        self.assertEqual(again.returncode, second.returncode)

    def test_history_warns_and_then_fails(self):
        self.days(6)
        self.make("now.h5", nodes=2, first=3, seed=50, started="2026-01-20T00:00:00Z", slow="node3", factor=0.9)
        result = self.assay("verdict", "now.h5", "--history", "past", "--json", "v.json")
        self.assert_code(result, 0)
        drift = [f for f in self.findings("v.json") if f["kind"] == "drift"]
        self.assertEqual([(f["name"], f["severity"], f["since"]) for f in drift],
                         [("node3/cores0-3", "WARN", "2026-01-20T00:00:00Z")])
        self.make("past/d6.h5", nodes=16, seed=7, started="2026-01-07T00:00:00Z", slow="node3", factor=0.9)
        result = self.assay("verdict", "now.h5", "--history", "past", "--json", "v.json")
        self.assert_code(result, 2)
        drift = [f for f in self.findings("v.json") if f["kind"] == "drift"]
        self.assertEqual([(f["severity"], f["since"]) for f in drift], [("FAIL", "2026-01-07T00:00:00Z")])

    def test_a_run_in_several_files_of_a_directory_counts_once(self):
        self.days(3)
        for copy in ("a.h5", "z.h5"):
            shutil.copy(self.dir / "past" / "d1.h5", self.dir / "past" / copy)
        self.assert_code(self.assay("trend", "past", "-o", "t.html"), 0)
        self.assertIn("<p>3 runs from 2026-01-01", (self.dir / "t.html").read_text())
        self.make("now.h5", nodes=16, seed=50, started="2026-01-20T00:00:00Z")
        for _ in ("files", "index"):
            self.assay("verdict", "now.h5", "--history", "past", "--json", "v.json")
            earlier = json.loads((self.dir / "v.json").read_text())["inputs"]["history"]["runs"]
            self.assertEqual([run["file"] for run in earlier], ["d0.h5", "a.h5", "d2.h5"])

    def test_the_index_is_kept_refreshed_and_refused_when_stale(self):
        self.days(4)
        self.make("now.h5", nodes=2, first=3, seed=50, started="2026-01-20T00:00:00Z", slow="node3", factor=0.9)
        index = self.dir / "past" / "assay-history.index"
        first = self.assay("verdict", "now.h5", "--history", "past")
        self.assertTrue(index.exists())
        stamp = index.stat().st_mtime_ns
        self.assertEqual(self.assay("verdict", "now.h5", "--history", "past").stdout, first.stdout)
        self.assertEqual(index.stat().st_mtime_ns, stamp)
        # The index alone serves as well as the files.
        (self.dir / "elsewhere").mkdir()
        shutil.copy(index, self.dir / "elsewhere")
        self.assertEqual(self.assay("verdict", "now.h5", "--history", "elsewhere").stdout.replace("elsewhere", "past"), first.stdout)
        # A file that changed is read again; the index itself is then refused.
        (self.dir / "past" / "d3.h5").unlink()
        self.make("past/d3.h5", nodes=16, seed=9, rate=0.5e11, started="2026-01-04T00:00:00Z")
        self.assert_error(["verdict", "now.h5", "--history", "past/assay-history.index"],
                          "--history: past/assay-history.index: stale: d3.h5")
        self.assay("verdict", "now.h5", "--history", "past")
        self.assertNotEqual(index.stat().st_mtime_ns, stamp)
        # A damaged index is made anew.
        index.write_bytes(index.read_bytes()[:-5])
        self.assert_error(["verdict", "now.h5", "--history", "past/assay-history.index"], "--history: past/assay-history.index:")
        self.assertNotIn("damaged", self.assay("verdict", "now.h5", "--history", "past").stderr)
        self.assertEqual([p.name for p in (self.dir / "past").iterdir() if "tmp" in p.name], [])

    def test_thirty_runs_of_a_thousand_nodes_are_read_fast_from_the_index(self):
        for day in range(2 if not os.environ.get("ASSAY_NIGHTLY") == "1" else 30):
            self.make(f"past/d{day:02}.h5", nodes=1000, metrics=8, seed=day + 1, started=f"2026-01-{day + 1:02}T00:00:00Z")
        self.make("now.h5", nodes=4, metrics=8, seed=99, started="2026-02-20T00:00:00Z")
        self.assay("verdict", "now.h5", "--history", "past")
        begin = time.monotonic()
        self.assert_code(self.assay("verdict", "now.h5", "--history", "past"), 0)
        self.assertLess(time.monotonic() - begin, 5)

    def test_bad_input(self):
        self.make("a.h5")
        self.write("bad.h5", "no results\n" * 100)
        (self.dir / "empty").mkdir()
        for option in ["--baseline", "--history"]:
            self.assert_error(["verdict", "a.h5", option, "none.h5"], f"{option}: none.h5:")
            self.assertIn("bad.h5", self.assert_error(["verdict", "a.h5", option, "bad.h5"], option).stderr)
            self.assert_error(["run", option, "none.h5"], f"{option}: 'none.h5'")
            self.assert_error(["run", "--suites", "inventory", option, "bad.h5"], f"{option}: bad.h5")
        self.assert_error(["verdict", "a.h5", "--baseline", "empty"], "--baseline: empty:")
        self.assert_error(["verdict", "a.h5", "--baseline", "a.h5"], "--baseline: 'a.h5'")

    def test_the_first_night_has_an_empty_history(self):
        (self.dir / "past").mkdir()
        result = self.assay("run", "--level", "smoke", "--suites", "inventory", "--history", "past", "--out", "past/first.h5")
        self.assert_code(result, 0)
        self.assertIn("own history 0", result.stdout)
        result = self.assay("verdict", "past/first.h5")
        self.assertIn("INFO  history past: it has no earlier run", result.stdout)

    def test_another_case_key_is_no_reference(self):
        self.make("fleet.h5", nodes=32, key="fedcba9876543210")
        self.make("now.h5", nodes=1, slow="node0", factor=0.5)
        result = self.assay("verdict", "now.h5", "--baseline", "fleet.h5")
        self.assert_code(result, 3)
        self.assertIn("another case_key", result.stdout)


if __name__ == "__main__":
    harness.main()
