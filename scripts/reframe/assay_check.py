# SPDX-License-Identifier: Apache-2.0
"""A ReFrame test that runs assay on the nodes of a partition and takes over its verdict.

  reframe -C site.py -c assay_check.py -r
  reframe -C site.py -c assay_check.py -r -S AssayCheck.level=standard -S AssayCheck.suites=gemm,memory -S AssayCheck.num_tasks=16

It passes on PASS and WARN (`strict` turns WARN into a failure), and says on failure what was found. Its performance variables are
`<suite>/<case>/<metric>`, for each the worst part's median, so that ReFrame's references and history apply to them.
"""
import json
import os
import re

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_before, sanity_function, variable

# Units of the metric names that `assay --prometheus` writes, and how ReFrame shows them.
UNITS = {"bytes_per_second": "B/s", "flop_per_second": "FLOP/s", "tokens_per_second": "token/s", "operations_per_second": "op/s",
         "seconds": "s"}
SAMPLE = re.compile(r"^assay_median_(?P<metric>\w+?)_(?P<unit>%s)\{(?P<labels>.*)\} (?P<value>\S+)$" % "|".join(UNITS))


def worst_medians(path):
    """{"suite/case/metric": (value, unit)} of the part that is worst in it."""
    worst = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = SAMPLE.match(line)
            if not found:
                continue
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found["labels"]))
            name, unit = f"{labels['suite']}/{labels['case']}/{found['metric']}", UNITS[found["unit"]]
            pick = max if unit == "s" else min
            value = float(found["value"])
            worst[name] = (pick(value, worst[name][0]) if name in worst else value, unit)
    return worst


def what_failed(path, strict):
    """Empty when the verdict is good enough, else one line with the state and the first findings."""
    if not os.path.exists(path):
        return "assay wrote no verdict: see its output"
    with open(path, encoding="utf-8") as file:
        verdict = json.load(file)
    if verdict["state"] == "PASS" or (verdict["state"] == "WARN" and not strict):
        return ""
    said = [finding["text"] for finding in verdict["findings"] if finding["severity"] in ("FAIL", "WARN")] or verdict["reasons"]
    return f"{verdict['state']}: " + "; ".join(said[:5])


@rfm.simple_test
class AssayCheck(rfm.RunOnlyRegressionTest):
    descr = "assay: GEMM, memory, network and training of every node, with a verdict"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    level = variable(str, value="quick")
    suites = variable(str, value="")
    limits = variable(str, value="")
    more = variable(str, value="")
    strict = variable(bool, value=False)
    executable = "assay"
    num_tasks = 1
    time_limit = "30m"
    keep_files = ["assay.h5", "verdict.json", "assay.prom"]

    @run_before("run")
    def make_command(self):
        self.executable_opts = ["run", "--level", self.level, "--out", "assay.h5", "--json", "verdict.json", "--prometheus", "assay.prom"]
        for name in ("suites", "limits"):
            if getattr(self, name):
                self.executable_opts += [f"--{name}", getattr(self, name)]
        self.executable_opts += self.more.split()

    @sanity_function
    def is_good(self):
        problem = what_failed(os.path.join(self.stagedir, "verdict.json"), self.strict)
        return sn.assert_true(not problem, problem)

    @run_before("performance")
    def take_medians(self):
        for name, (value, unit) in worst_medians(os.path.join(self.stagedir, "assay.prom")).items():
            self.perf_variables[name] = sn.make_performance_function(sn.defer(value), unit)
