# SPDX-License-Identifier: Apache-2.0
"""scripts/grafana/assay.json: every query asks for metrics and labels that `--prometheus` writes, and Prometheus can parse it."""

import json
import re
import shutil
import subprocess

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


if __name__ == "__main__":
    place.main()
