# SPDX-License-Identifier: Apache-2.0
"""scripts/grafana/assay.json: every query asks for metrics and labels that `--prometheus` writes, and Prometheus can parse it. What a
run without a verdict leaves in ASSAY_PROM."""

import json
import re
import shutil
import subprocess
import time

import place


class Dashboard(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.dashboard = json.loads((place.SCRIPTS / "grafana" / "assay.json").read_text())
        self.queries = [target["expr"] for panel in self.dashboard["panels"] for target in panel["targets"]]
        self.assertGreater(len(self.queries), 5)

    def test_every_query_asks_for_what_is_written(self):
        subprocess.run([place.ASSAY, "simulate", "--nodes", "8", "--metrics", "gemm,memory,p2p", "--fault", "slow:node=3,percent=20", "-o", "s.h5"],
                       cwd=self.dir, capture_output=True, check=False)
        subprocess.run([place.ASSAY, "verdict", "s.h5", "--prometheus", "s.prom"], cwd=self.dir, capture_output=True, check=False)
        labels = {}
        for line in (self.dir / "s.prom").read_text().splitlines():
            if not line.startswith("#"):
                name = re.match(r"[a-z_]+", line).group()
                labels.setdefault(name, set()).update(re.findall(r'[{,]([a-z]+)="', line))
        asked = 0
        for query in self.queries + [self.dashboard["templating"]["list"][1]["query"]]:
            for name, selector in re.findall(r"(assay_[a-z_]+)(\{[^}]*\})?", query):
                asked += 1
                self.assertIn(name, labels, query)
                self.assertLessEqual(set(re.findall(r"([a-z]+)=", selector)), labels[name], query)
        self.assertGreater(asked, 8)
        for panel in self.dashboard["panels"]:
            for target in panel["targets"]:
                name = re.search(r"assay_[a-z_]+", target["expr"]).group()
                self.assertLessEqual(set(re.findall(r"\{\{([a-z]+)\}\}", target["legendFormat"])), labels[name], panel["title"])

    def test_prometheus_can_parse_every_query(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool on this machine (package prometheus)")
        # Rules are the one form in which promtool reads a query without a server.
        rules = "".join(f"  - record: query{i}\n    expr: {json.dumps(query.replace('$node', 'n.*'))}\n" for i, query in enumerate(self.queries))
        (self.dir / "rules.yml").write_text("groups:\n- name: dashboard\n  rules:\n" + rules)
        result = subprocess.run([promtool, "check", "rules", "rules.yml"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn(f"{len(self.queries)} rules found", result.stdout)

    def test_a_node_that_is_not_pass_is_seen(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool on this machine (package prometheus)")
        panel = next(panel for panel in self.dashboard["panels"] if panel["title"] == "Nodes that are not PASS")
        query = panel["targets"][0]["expr"].replace("$node", ".*")
        mapped = panel["fieldConfig"]["defaults"]["mappings"][0]["options"]
        value = {mapped[text]["text"]: int(text) for text in mapped}
        nodes = {"n1": "PASS", "n2": "WARN", "n3": "INCONCLUSIVE", "n4": "FAIL"}
        # States that a node is not in are 0, and of many parts left out.
        for large in (False, True):
            lines = [(node, state, int(its == state)) for node, its in nodes.items() for state in ("PASS", "WARN", "FAIL", "INCONCLUSIVE", "NOT_TESTED")]
            series = [{"series": f'assay_node_state{{node="{node}",state="{state}"}}', "values": str(on)} for node, state, on in lines if on or not large]
            seen = [{"labels": f'{{node="{node}"}}', "value": value[state if state != "PASS" else "-"]}
                    for node, state in nodes.items() if state != "PASS" or not large]
            (self.dir / "tests.yml").write_text(json.dumps({"tests": [{"input_series": series, "promql_expr_test": [
                {"expr": query, "eval_time": "0m", "exp_samples": seen}]}]}))
            result = subprocess.run([promtool, "test", "rules", "tests.yml"], cwd=self.dir, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_panels_have_numbers_and_places_of_their_own(self):
        panels = self.dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        cells = set()
        for panel in panels:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            covered = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
            self.assertFalse(cells & covered, panel["title"])
            cells |= covered


class WithoutVerdict(place.SiteTest):
    """The metrics of the run before do not stay."""

    def setUp(self):
        super().setUp()
        self.prom = self.dir / "assay.prom"
        self.begin({"ASSAY_LAUNCH": ""})
        self.made(nodes=4)
        self.runs(place.COPY)
        self.assert_code(self.script("nightly.sh"), 0)
        self.before = self.prom.read_text()
        self.assertIn('assay_verdict{state="PASS"} 1\n', self.before)

    def begin(self, settings):
        self.settings(ASSAY=self.fake_assay(), ASSAY_PROM=self.prom, **settings)

    def assert_inconclusive(self, code):
        begin = int(time.time())
        self.assert_code(self.script("nightly.sh"), code)
        text = self.prom.read_text()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        started = int(values.pop("assay_run_started_timestamp_seconds"))
        self.assertTrue(begin <= started <= time.time(), started)
        self.assertEqual(values, {"assay_exit_code": str(code), **{f'assay_verdict{{state="{state}"}}': str(int(state == "INCONCLUSIVE"))
                                                                   for state in ("FAIL", "INCONCLUSIVE", "PASS", "WARN")}})
        names = {line.split()[0] for line in self.before.splitlines()} | {"#"}
        self.assertLessEqual({line.split()[0] for line in text.splitlines()}, names)
        self.assertLessEqual({line for line in text.splitlines() if line.startswith("#")}, set(self.before.splitlines()))
        self.assertEqual(self.prom.stat().st_mode & 0o777, 0o644)

    def test_a_run_without_results(self):
        self.runs('print("the fabric is on fire", file=sys.stderr); sys.exit(1)\n')
        self.assert_inconclusive(3)

    def test_wrong_options(self):
        self.runs("sys.exit(4)\n")
        self.assert_inconclusive(4)

    def test_no_node_answers(self):
        (self.dir / "hosts").write_text("a\nb\n")
        self.program("mpirun", "#!/bin/sh\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4'\n")
        self.begin({"ASSAY_LAUNCH": f"mpirun --hostfile {self.dir}/hosts"})
        self.assert_inconclusive(3)

    def test_results_that_cannot_be_read(self):
        self.runs('open(out, "w").write("damaged")\n')
        result = self.script("nightly.sh")
        self.assertGreater(result.returncode, 2, result.stdout + result.stderr)
        self.assert_inconclusive(result.returncode)


if __name__ == "__main__":
    place.main()
