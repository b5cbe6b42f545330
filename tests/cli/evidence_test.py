# SPDX-License-Identifier: Apache-2.0
"""`verdict --explain`, `--write-limits`, `--json`, `--junit`, `--nodes`, `--prometheus`: what they hold, and what they refuse."""

import json
import shutil
import subprocess
import xml.etree.ElementTree as xml

import compare_test
import harness


class Explain(compare_test.FleetTest):
    def setUp(self):
        super().setUp()
        self.make("a.h5", nodes=32, slow="node3", factor=0.8)

    def test_the_chain_of_evidence(self):
        self.make("fleet.h5", nodes=32, seed=2)
        result = self.assay("verdict", "a.h5", "--explain", "node3/cores0-3", "--baseline", "fleet.h5")
        self.assertEqual(result.stderr, "")
        told = " ".join(result.stdout.split())
        for text in ["device node3/cores0-3: ", "31 peers 100", "1 of 32 from the slow end", "baseline 100", "n=6",
                     "id uuid-node3/cores0-3", "evidence /cases/gemm/"]:
            self.assertIn(text, told)
        self.assertTrue(all(len(line) <= 80 for line in result.stdout.splitlines()), result.stdout)

    def test_a_node_tells_of_its_parts_and_a_healthy_one_of_no_finding(self):
        told = self.assay("verdict", "a.h5", "--explain", "node3")
        self.assertIn("throughput of node3/cores0-3", " ".join(told.stdout.split()))
        self.assertIn("no finding", self.assay("verdict", "a.h5", "--explain", "node5").stdout)

    def test_the_exit_code_is_that_of_the_verdict(self):
        self.assertEqual(self.assay("verdict", "a.h5", "--explain", "node3").returncode, self.assay("verdict", "a.h5").returncode)

    def test_a_switch_is_found_by_the_name_that_the_summary_prints(self):
        run = self.assay("simulate", "--nodes", "32", "--leaves", "4", "--metrics", "p2p", "--fault", "slow:leaf=3,percent=30", "-o", "n.h5")
        self.assertIn("switch FAIL (L3)", run.stdout)
        told = [self.assay("verdict", "n.h5", "--explain", name).stdout for name in ("L3", "switch:L3")]
        self.assertIn("switch L3: FAIL", told[0])
        self.assertEqual(*told)

    def test_an_unknown_name(self):
        self.assert_error(["verdict", "a.h5", "--explain", "nod3"], "--explain: a.h5 'nod3' node3")
        (self.dir / "all").mkdir()
        (self.dir / "a.h5").rename(self.dir / "all" / "a.h5")
        self.assert_error(["verdict", "all", "--explain", "node3"], "--explain:")
        self.assert_error(["verdict", "all", "--write-limits", "l.toml"], "--write-limits:")


class WriteLimits(compare_test.FleetTest):
    def test_the_file_serves_as_limits(self):
        self.make("good.h5", nodes=8, metrics=3)
        self.assert_code(self.assay("verdict", "good.h5", "--write-limits", "l.toml"), 0)
        text = (self.dir / "l.toml").read_text()
        self.assertEqual(text.count("[[limit]]"), 3)
        self.make("few.h5", nodes=8, metrics=3, noise=0.2)
        few = self.assay("verdict", "few.h5", "--write-limits", "few.toml")
        self.assertIn("few.toml: 3 of 3 limits are uncertain: ", few.stdout)
        self.assertEqual((self.dir / "few.toml").read_text().count("# uncertain: medians are uncertain by "), 3)
        self.assertIn("GFLOP/s", text)
        again = self.assay("verdict", "good.h5", "--limits", "l.toml")
        self.assert_code(again, 0)
        self.assertIn("limits 24", again.stdout)
        self.make("bad.h5", nodes=8, metrics=3, slow="node3", factor=0.85, seed=4)
        bad = self.assay("verdict", "bad.h5", "--limits", "l.toml")
        self.assert_code(bad, 2)
        self.assertIn("node3/cores0-3", bad.stdout)

    def test_only_from_a_good_run(self):
        self.make("bad.h5", nodes=8)
        self.write("strict.toml", '[[limit]]\nmetric = "gemm/*:throughput"\nmin = "1 PFLOP/s"\n')
        failed = self.assay("verdict", "bad.h5", "--limits", "strict.toml", "--write-limits", "l.toml")
        self.assert_code(failed, 2)
        self.assertIn("--write-limits: bad.h5 is FAIL: limits come from a run that is PASS or WARN", failed.stderr)
        self.assertFalse((self.dir / "l.toml").exists())
        self.assert_error(["verdict", "bad.h5", "--write-limits", "bad.h5"], "--write-limits: 'bad.h5'")
        self.assert_error(["verdict", "bad.h5", "--write-limits", "/nonexistent-folder/l.toml"], "--write-limits:")

    def test_from_a_real_run(self):
        # Products end in their time on a busy machine, too; patterns in memory do not.
        run = self.assay("run", "--level", "smoke", "--suites", "inventory,gemm", "--quiet", "--out", "r.h5")
        if run.returncode != 0:
            self.skipTest("noise: " + run.stdout + run.stderr)
        self.assert_code(self.assay("verdict", "r.h5", "--write-limits", "l.toml"), 0)
        self.assert_code(self.assay("verdict", "r.h5", "--limits", "l.toml"), 0)
        self.assertNotIn('device = "*"', (self.dir / "l.toml").read_text())


# What readers of JUnit XML know of its elements (the schema of the Jenkins plugin): attributes and children.
JUNIT = {"testsuites": ({"name", "time", "tests", "failures", "errors", "disabled"}, {"testsuite"}),
         "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"},
                       {"properties", "testcase", "system-out", "system-err"}),
         "testcase": ({"name", "classname", "time", "assertions", "status"}, {"skipped", "error", "failure", "system-out", "system-err"}),
         "failure": ({"message", "type"}, set()), "error": ({"message", "type"}, set()), "skipped": ({"message"}, set()),
         "system-out": (set(), set())}


class Outputs(compare_test.FleetTest):
    def setUp(self):
        super().setUp()
        self.make("a.h5", nodes=8, devices=2, metrics=2, slow="node3", factor=0.5)
        self.write("l.toml", '[[limit]]\nmetric = "gemm/*:throughput"\nmin = "90 GFLOP/s"\n')
        self.result = self.assay("verdict", "a.h5", "--limits", "l.toml", "--json", "v.json", "--junit", "v.xml", "--nodes", "n.txt")
        self.assert_code(self.result, 2)

    def test_junit_has_a_case_per_entity_and_suite_that_adds_up(self):
        root = xml.parse(self.dir / "v.xml").getroot()
        self.assertEqual(root.tag, "testsuites")
        for suite in root:
            self.assertEqual(suite.tag, "testsuite")
            cases = list(suite)
            self.assertEqual(int(suite.get("tests")), len(cases))
            for tag, count in [("failure", "failures"), ("error", "errors"), ("skipped", "skipped")]:
                self.assertEqual(int(suite.get(count)), sum(case.find(tag) is not None for case in cases))
            names = [(case.get("classname"), case.get("name")) for case in cases]
            self.assertEqual(len(set(names)), len(names))
            self.assertTrue(all(len(list(case)) <= 1 for case in cases))
        gemm = next(suite for suite in root if suite.get("name") == "gemm")
        devices = [case for case in gemm if "/cores" in case.get("name")]
        self.assertEqual(len(devices), 16)
        failed = {case.get("name") for case in devices if case.find("failure") is not None}
        self.assertEqual(failed, {"node3/cores0-3", "node3/cores4-7"})

    def test_junit_holds_nothing_its_readers_do_not_know(self):
        root = xml.parse(self.dir / "v.xml").getroot()
        seen = set()
        for element in root.iter():
            seen.add(element.tag)
            attributes, children = JUNIT[element.tag]
            self.assertLessEqual(set(element.keys()), attributes)
            self.assertLessEqual({child.tag for child in element}, children)
            if element.tag in ("testsuite", "testcase"):
                self.assertTrue(element.get("name"))
        self.assertLessEqual({"testsuite", "testcase", "failure"}, seen)

    def test_warnings_are_output_and_with_strict_a_failure_of_the_run(self):
        self.make("w.h5", nodes=8, slow="node3", factor=0.95)
        for strict, code, failures in [([], 0, set()), (["--strict"], 1, {("run", "verdict")})]:
            self.assert_code(self.assay("verdict", "w.h5", *strict, "--junit", "w.xml"), code)
            cases = list(xml.parse(self.dir / "w.xml").getroot().iter("testcase"))
            self.assertEqual({(case.get("classname"), case.get("name")) for case in cases if case.find("failure") is not None}, failures)
            told = {case.get("name"): case.find("system-out").text for case in cases if case.find("system-out") is not None}
            self.assertTrue(any(name.startswith("node3") and text.startswith("node3") for name, text in told.items()), told)

    def test_prometheus_is_what_promtool_accepts(self):
        result = self.assay("verdict", "a.h5", "--limits", "l.toml", "--prometheus", "a.prom")
        self.assert_code(result, 2)
        text = (self.dir / "a.prom").read_text()
        series = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
        values = {name: float(value) for name, value in series}
        self.assertEqual(len(values), len(series))
        self.assertEqual(values['assay_verdict{state="FAIL"}'], 1)
        self.assertEqual({name.split('"')[1] for name, value in values.items() if name.startswith("assay_node_state") and 'state="FAIL"' in name and value},
                         {"node3"})
        self.assertEqual(len([name for name in values if name.startswith("assay_median_throughput_flop_per_second{")]), 2 * 16)
        # A second run of the same nodes changes values, never names.
        self.make("b.h5", nodes=8, devices=2, metrics=2, seed=2)
        self.assert_code(self.assay("verdict", "b.h5", "--prometheus", "a.prom"), 0)
        again = {line.rsplit(" ", 1)[0] for line in (self.dir / "a.prom").read_text().splitlines() if line.startswith("assay_")}
        changed = {name for name in again ^ set(values) if not name.startswith("assay_finding")}
        self.assertEqual(changed, set())
        self.assertEqual([name for name in self.left_behind() if "tmp" in name], [])
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool on this machine (package prometheus)")
        for content in (text, (self.dir / "a.prom").read_text()):
            check = subprocess.run([promtool, "check", "metrics"], input=content, capture_output=True, text=True, timeout=30)
            self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))

    def test_prometheus_of_a_run_of_every_suite_is_what_promtool_accepts(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool on this machine (package prometheus)")
        self.assay("simulate", "--nodes", "8", "--devices-per-node", "2", "--leaves", "2", "--metrics", "gemm,memory,p2p,allreduce", "--fault",
                   "bitflip:node=3,device=1,target=gemm", "-o", "s.h5")
        self.assert_code(self.assay("verdict", "s.h5", "--prometheus", "s.prom"), 2)
        text = (self.dir / "s.prom").read_text()
        families = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE assay_median_")}
        self.assertLessEqual({f"assay_median_{name}" for name in ["throughput_flop_per_second", "bandwidth_bytes_per_second", "latency_seconds"]},
                             families)
        check = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=30)
        self.assertEqual((check.returncode, check.stdout + check.stderr), (0, ""))

    def test_nodes_has_every_node_once_with_its_state(self):
        rows = [line.split()[:2] for line in (self.dir / "n.txt").read_text().splitlines()]
        self.assertEqual([row[0] for row in rows], [f"node{i}" for i in range(8)])
        self.assertEqual({row[0] for row in rows if row[1] == "FAIL"}, {"node3"})

    def test_json_has_every_field_of_a_finding(self):
        told = json.loads((self.dir / "v.json").read_text())
        fields = ("severity claim level name id part members kind suite metric unit better value reference reference_kind deficit "
                  "ci_low ci_high samples controls stratum confirmed confirmed_by p_adjusted uncertainty since action evidence text").split()
        self.assertGreater(len(told["findings"]), 0)
        for finding in told["findings"]:
            self.assertEqual(sorted(finding), sorted(fields))
            self.assertEqual(finding["confirmed"], finding["confirmed_by"] != "", finding)
        for key in ["state", "exit_code", "basis", "reasons", "accounting", "entities", "inputs", "run", "false_alarm_rate"]:
            self.assertIn(key, told)
        self.assertEqual(told["exit_code"], 2)
        self.assertEqual(len([e for e in told["entities"] if e["kind"] == "node"]), 8)


if __name__ == "__main__":
    harness.main()
