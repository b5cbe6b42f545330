# SPDX-License-Identifier: Apache-2.0
"""scripts/reframe/assay_check.py: what it makes of a verdict and of metrics. ReFrame itself is used where it is installed; elsewhere
a stand-in with the few names that the check imports takes its place."""

import importlib.util
import subprocess
import sys
import types

import place

CHECK = place.SCRIPTS / "reframe" / "assay_check.py"


def stand_in():
    def same(*_, **__):
        return lambda thing: thing

    names = {"reframe": {"simple_test": lambda c: c, "RunOnlyRegressionTest": object}, "reframe.utility": {}, "reframe.core": {},
             "reframe.utility.sanity": {"assert_true": lambda good, text: (good, text), "defer": lambda value: value,
                                        "make_performance_function": lambda value, unit: (value, unit)},
             "reframe.core.builtins": {"run_before": same, "sanity_function": lambda f: f, "variable": lambda _, value: value}}
    for name, content in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)


try:
    import reframe
    REAL = hasattr(reframe, "RunOnlyRegressionTest")
except ImportError:
    REAL = False
if not REAL:
    stand_in()
spec = importlib.util.spec_from_file_location("assay_check", CHECK)
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)


class Check(place.SiteTest):
    def verdict(self, *faults):
        for command in (["simulate", "--nodes", "12", "--metrics", "gemm,p2p", "--seed", "5", *faults, "--force", "-o", "s.h5"],
                        ["verdict", "s.h5", "--json", "verdict.json", "--prometheus", "assay.prom"]):
            subprocess.run([place.ASSAY, *command], cwd=self.dir, capture_output=True, check=False)
        return str(self.dir / "verdict.json")

    def test_a_good_verdict_passes_and_a_bad_one_says_who(self):
        self.assertEqual(check.what_failed(self.verdict(), strict=True), "")
        said = check.what_failed(self.verdict("--fault", "slow:node=3,percent=20"), strict=False)
        self.assertTrue(said.startswith("FAIL: "), said)
        self.assertIn("sim03", said)
        self.assertIn("no verdict", check.what_failed(str(self.dir / "none.json"), strict=False))

    def test_the_worst_part_of_every_case_is_a_performance_variable(self):
        self.verdict("--fault", "slow:node=3,percent=20,suite=gemm")
        values = check.worst_medians(str(self.dir / "assay.prom"))
        self.assertTrue(any(unit == "FLOP/s" for _, unit in values.values()), values)
        text = (self.dir / "assay.prom").read_text()
        for name, (value, unit) in values.items():
            suite, case, metric = name.split("/")
            lines = [line for line in text.splitlines() if line.startswith(f"assay_median_{metric}_") and f'suite="{suite}",case="{case}"' in line]
            of_parts = [float(line.split()[-1]) for line in lines]
            self.assertEqual(value, max(of_parts) if unit == "s" else min(of_parts), name)

    def test_the_command_is_one_that_assay_takes(self):
        if REAL:
            self.skipTest("ReFrame makes the object")
        run = check.AssayCheck()
        run.suites, run.level, run.more = "gemm", "smoke", "--threads 1"
        run.make_command()
        self.assertEqual(run.executable_opts.pop(0), "run")
        result = subprocess.run([place.ASSAY, "plan", *run.executable_opts], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("level smoke", result.stdout)


if __name__ == "__main__":
    place.main()
