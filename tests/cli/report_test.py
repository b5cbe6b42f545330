# SPDX-License-Identifier: Apache-2.0
"""`assay report`: every section, states equal to those of the verdict, the same bytes, nothing that runs or loads."""

import base64
import hashlib
import html.parser
import json
import pathlib
import re

import harness
from temporary_folder import temporary_folder

SECTIONS = ["state", "contract", "not-tested", "fleet", "findings", "pairs", "sweeps", "distributions", "telemetry", "training", "history",
            "comparison", "inventory"]
SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "results-schema" / "page.schema.json").read_text())
LIMITS = '[[limit]]\nmetric = "memory/triad-*:bandwidth"\nmin = "2.9 TB/s"\n[[limit]]\nmetric = "storage/read:bandwidth"\nmin = "2 GB/s"\n'


def check(value, schema, path="$"):
    """The part of JSON Schema that page.schema.json uses."""
    if "const" in schema:
        assert value == schema["const"], path
    if "enum" in schema:
        assert value in schema["enum"], f"{path}: {value}"
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "null": type(None), "boolean": bool}
    if "type" in schema:
        types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
        good = any(isinstance(value, kinds[t]) and (t == "boolean" or not isinstance(value, bool)) for t in types)
        assert good, f"{path}: {str(value)[:60]} is not {types}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            assert name in value, f"{path}: no {name}"
        for name, item in value.items():
            known = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            assert known is not False, f"{path}.{name} is not in the schema"
            check(item, known, f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            check(item, schema["items"], f"{path}[{i}]")


class Page(html.parser.HTMLParser):
    """What a browser would see: elements with their attributes, ids, and the data block."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.words, self.data = [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "img", "br", "hr", "input"):
            self.open.append((tag, dict(attributes)))

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1][0] == "script" and self.open[-1][1].get("id") == "data":
            self.data += text
        elif self.open and self.open[-1][0] not in ("script", "style"):
            self.words.append(text)


class Report(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.store = temporary_folder(cls.addClassCleanup)
        common = ["simulate", "--nodes", "12", "--devices-per-node", "2", "--leaves", "2", "--metrics", "memory,p2p,allreduce"]
        for name, extra in {"before": [], "fault": ["--run", "1", "--fault", "slow:node=5,device=1,percent=12,suite=memory"]}.items():
            harness.execute([harness.ASSAY, *common, *extra, "-o", str(cls.store / f"{name}.h5")], cls.store)
            assert (cls.store / f"{name}.h5").exists()

    def page(self, *args):
        result = self.assay("report", *args, "-o", "page.html")
        self.assert_code(result, 0)
        text = (self.dir / "page.html").read_text()
        page = Page(text)
        self.assertEqual(page.open, [])
        return text, page, json.loads(page.data)

    def test_every_section_is_there_and_says_something(self):
        _, page, data = self.page(self.store / "fault.h5")
        ids = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
        self.assertEqual(ids, SECTIONS)
        words = " ".join(page.words)
        run = data["run"]
        for signed in (hashlib.sha256((self.store / "fault.h5").read_bytes()).hexdigest(), run["plan_hash"], run["assay_version"], run["started"], run["command_line"],
                       "exit code 2", "level standard", "none given: no contract, no baseline, no history", "Measured by: name, signature", "Accepted by: name, signature",
                       "1 node FAIL", f"Seed {run['seed']}", "Injected corruptions and what the checkers detected"):
            self.assertIn(signed, words)
        everything = [attributes.get("id") for _, attributes in page.elements if "id" in attributes]
        self.assertEqual(len(everything), len(set(everything)))
        check(data, SCHEMA)

    def test_states_are_those_of_the_verdict(self):
        self.write("limits.toml", LIMITS)
        for options in ([], ["--limits", "limits.toml"]):
            _, _, data = self.page(self.store / "fault.h5", *options)
            verdict = self.assay("verdict", self.store / "fault.h5", "--json", "v.json", *options)
            whole = json.loads((self.dir / "v.json").read_text())
            told = {e["name"]: e["state"] for e in whole["entities"]}
            whole["entities"] = [e for e in whole["entities"] if e["state"] != "PASS" or e["reason"]]
            self.assertEqual(data["verdict"], whole)
            self.assertEqual(data["verdict"]["exit_code"], verdict.returncode)
            drawn = {n: s for n, s in zip(data["parts"]["name"], data["parts"]["state"]) if s}
            self.assertEqual(drawn, told)
        self.assertEqual(told["sim05/gpu1"], "FAIL")

    def test_a_contract_is_told_bound_by_bound(self):
        self.write("limits.toml", LIMITS)
        _, page, data = self.page(self.store / "fault.h5", "--limits", "limits.toml")
        met = {(r["metric"], r["met"]) for r in data["contract"]}
        self.assertIn(("", "absent"), met)
        self.assertIn(("memory/triad-together:bandwidth", "no"), met)
        margins = [r["margin"] for r in data["contract"] if r["margin"] is not None]
        self.assertEqual(margins, sorted(margins))
        self.assertEqual({r["worst"] for r in data["contract"] if r["met"] == "no"}, {"sim05/gpu1"})

    def test_a_finding_shows_its_samples_beside_its_peers(self):
        _, _, data = self.page(self.store / "fault.h5")
        fault = next(i for i, f in enumerate(data["verdict"]["findings"]) if f["name"] == "sim05/gpu1")
        evidence = next(e for e in data["evidence"] if e["finding"] == fault)
        self.assertEqual(evidence["peer_count"], 23)
        for kind in ("first", "again"):
            self.assertTrue(evidence[kind])
            self.assertLess(max(evidence[kind]), min(evidence["peers"]))

    def test_the_same_file_gives_the_same_bytes(self):
        first, _, _ = self.page(self.store / "fault.h5")
        second, _, _ = self.page(self.store / "fault.h5")
        self.assertEqual(first, second)
        self.assertIn(hashlib.sha256((self.store / "fault.h5").read_bytes()).hexdigest(), first)

    def test_nothing_runs_or_loads_but_the_page_itself(self):
        text, page, _ = self.page(self.store / "fault.h5")
        policy = next(a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for tag in ("style", "script"):
            for content in re.findall(f"<{tag}>(.*?)</{tag}>", text, re.S):
                self.assertIn("'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'", policy)
        for tag, attributes in page.elements:
            self.assertNotIn(tag, ("link", "iframe", "object", "embed", "base", "form"))
            for name, value in attributes.items():
                self.assertFalse(name.startswith("on") or name == "style", f"<{tag} {name}>")
                if name in ("src", "href", "xlink:href"):
                    self.assertRegex(value, r"^(#|data:image/png;base64,)")

    def test_hostile_names_are_text(self):
        evil = "<img src=x onerror=alert(1)>\"'&.h5"
        (self.dir / evil).write_bytes((self.store / "fault.h5").read_bytes())
        _, page, data = self.page(evil)
        self.assertEqual(data["file"], evil)
        self.assertIn(evil, page.words)
        self.assertFalse([a for tag, a in page.elements if tag == "img"])
        self.assert_code(self.assay("report", evil, "--markdown", "-o", "evil.md"), 0)
        self.assertNotRegex((self.dir / "evil.md").read_text(), r"(?<!\\)<")

    def test_two_runs_are_compared(self):
        _, page, _ = self.page(self.store / "before.h5", self.store / "fault.h5")
        words = " ".join(page.words)
        self.assertIn("12 nodes in A, 12 in B, 12 in both", words)
        self.assertNotIn("One run was given", words)

    def test_a_directory_is_a_history(self):
        _, _, data = self.page(self.store)
        self.assertEqual(len(data["trend"]["runs"]), 2)

    def test_two_runs_show_no_lasting_change_nor_its_absence(self):
        result = self.assay("trend", self.store, "-o", "trend.html")
        self.assert_code(result, 0)
        words = "2 runs: lasting changes are sought in metrics with 5 or more runs."
        self.assertEqual(result.stdout, words + "\n")
        page = (self.dir / "trend.html").read_text()
        self.assertIn(words, page)
        self.assertNotIn("No lasting change", page)

    def test_a_run_is_shown_beside_its_history(self):
        (self.dir / "past").mkdir()
        (self.dir / "past" / "before.h5").write_bytes((self.store / "before.h5").read_bytes())
        _, page, data = self.page(self.store / "fault.h5", "--history", "past")
        self.assertEqual([r["file"] for r in data["trend"]["runs"]], ["before.h5", "fault.h5"])
        words = " ".join(page.words)
        self.assertIn("history past", words)
        self.assertNotIn("Only one run is at hand", words)

    def test_a_directory_is_judged_as_a_whole(self):
        _, page, data = self.page(self.store)
        self.assert_code(self.assay("verdict", self.store, "--json", "joint.json"), data["joint"]["exit_code"])
        joint = json.loads((self.dir / "joint.json").read_text())
        self.assertEqual((data["joint"]["state"], data["joint"]["findings"]), (joint["state"], len(joint["findings"])))
        self.assertEqual({r["file"]: r["state"] for r in data["joint"]["runs"]}, {"before.h5": "PASS", "fault.h5": "FAIL"})
        self.assertIn("All runs of " + self.store.name + " together", " ".join(page.words))
        check(data, SCHEMA)
        result = self.assay("verdict", self.store, "--report", "verdict.html")
        self.assertEqual(result.returncode, data["joint"]["exit_code"])
        self.assertEqual((self.dir / "verdict.html").read_text(), (self.dir / "page.html").read_text())

    def test_two_sets_are_compared_node_by_node(self):
        for name in ("a", "b"):
            (self.dir / name).mkdir()
            for i in (1, 2):
                fault = ["--fault", "slow:node=2,percent=10"] if name == "b" else []
                self.assay("simulate", "--nodes", "8", "--metrics", "memory/triad-together", "--run", str(i + 2 * (name == "b")), *fault, "-o", f"{name}/{i}.h5")
        _, page, data = self.page("a", "b")
        metric = next(m for m in data["comparison"]["metrics"] if m["metric"] == "memory/triad-together:bandwidth")
        ratio = dict(zip(metric["node"], metric["node_ratio"]))
        slow = min(ratio, key=ratio.get)
        self.assertRegex(slow, "^sim0*2$")
        self.assertAlmostEqual(ratio.pop(slow), 0.9, delta=0.02)
        self.assertTrue(all(abs(r - 1) < 0.02 for r in ratio.values()), ratio)
        self.assertLessEqual(metric["low"], metric["ratio"])
        words = " ".join(page.words)
        self.assertIn("A: 1.h5, 2.h5. B: 1.h5, 2.h5. 8 nodes", words)
        self.assertIn("B against A, node by node", words)
        self.assertEqual(len(data["joint"]["runs"]), 2)
        check(data, SCHEMA)

    def test_links_are_told_by_rail_and_direction(self):
        _, page, data = self.page(self.store / "fault.h5")
        self.assertTrue(data["matrices"])
        for matrix in data["matrices"]:
            self.assertEqual(matrix["rails"], ["nic0", "nic1"])
        self.assertEqual(sum("svg" == tag and a.get("class") == "plot rail" for tag, a in page.elements), 2 * len(data["matrices"]))
        self.assertIn("By node, rail and direction", page.words)

    def test_a_verdict_writes_the_same_page(self):
        text, _, _ = self.page(self.store / "fault.h5")
        self.assert_code(self.assay("verdict", self.store / "fault.h5", "--report", "verdict.html"), 2)
        self.assertEqual((self.dir / "verdict.html").read_text(), text)

    def test_markdown_tells_state_and_findings(self):
        self.assert_code(self.assay("report", self.store / "fault.h5", "--markdown", "-o", "page.md"), 0)
        text = (self.dir / "page.md").read_text()
        self.assertTrue(text.startswith("# FAIL: fault.h5\n"))
        self.assertIn("- 1 FAIL: sim05", text)
        self.assertIn("- **FAIL** sim05/gpu1", text)

    def test_markdown_of_a_directory_begins_with_the_verdict_over_all_runs(self):
        (self.dir / "nights").mkdir()
        for name, run in (("fault", "1.h5"), ("before", "2.h5")):
            (self.dir / "nights" / run).write_bytes((self.store / f"{name}.h5").read_bytes())
        self.assert_code(self.assay("report", "nights", "--markdown", "-o", "page.md"), 0)
        text = (self.dir / "page.md").read_text()
        self.assertTrue(text.startswith("# FAIL: all runs of nights\n\n- exit code 2\n"), text[:200])
        self.assertIn("- **FAIL** sim05/gpu1", text)

    def test_wrong_use_is_one_line(self):
        self.assert_error(["report", self.store / "fault.h5"], "report: -o FILE")
        self.assert_error(["report", "absent.h5", "-o", "p.html"], "absent.h5")
        self.assert_error(["report", self.store / "fault.h5", "-o", self.store / "fault.h5"], "--output:")


if __name__ == "__main__":
    harness.main()
