# SPDX-License-Identifier: Apache-2.0
"""The recipes of README.md, run as they stand: what measures for hours is made up, its options are still checked by `assay plan`."""

import re
import subprocess

import place

README = (place.ROOT / "README.md").read_text()
# In front of PATH: `assay run` plans with its options and then copies a file; mpirun drops its own options. It counts slots as
# Open MPI does: a host of --host without a number has one. `launched` gets a line with the ranks of each host of a run.
ASSAY = """#!/usr/bin/python3
import os, pathlib, shutil, subprocess, sys
here = pathlib.Path({here!r})
real, arguments = {assay!r}, sys.argv[1:]
with open(here / "said", "a") as said:
    said.write(" ".join(arguments) + "\\n")
if arguments[0] != "run":
    os.execv(real, [real, *arguments])
out = arguments[arguments.index("--out") + 1]
planned = subprocess.run([real, "plan", *arguments[1:]], stdout=subprocess.DEVNULL)
if planned.returncode != 0:
    sys.exit(planned.returncode)
made = here / ("made-" + pathlib.Path(out).name)
shutil.copy(made if made.exists() else here / "made-first.h5", out)
"""
MPIRUN = """#!/usr/bin/python3
import os, pathlib, re, sys
own = sys.argv[1:[os.path.basename(word) for word in sys.argv].index("assay")]
command = sys.argv[len(own) + 1:]
given = dict(zip(own, own[1:]))
slots = {{}}
for host in given.get("--host", "").split(",") if "--host" in given else []:
    name, _, number = host.partition(":")
    slots[name] = slots.get(name, 0) + int(number or 1)
for line in pathlib.Path(given["--hostfile"]).read_text().splitlines() if "--hostfile" in given else []:
    slots[line.split()[0]] = int(re.search(r"slots=(\\d+)", line).group(1))
ranks = re.fullmatch(r"ppr:(\\d+):node", given.get("--map-by", ""))
ranks = {{name: int(ranks.group(1)) if ranks else number for name, number in slots.items()}}
if any(ranks[name] > number for name, number in slots.items()):
    sys.exit(f"There are not enough slots available: {{slots}}, {{ranks}}")
if command[1] == "run":
    with open({here!r} + "/launched", "a") as launched:
        launched.write(" ".join(map(str, ranks.values())) + "\\n")
os.execvp(command[0], command)
"""


def recipes():
    return dict(re.findall(r"<!-- recipe (\w+) -->\n```sh\n(.*?)```", README, re.S))


class Recipes(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.program("assay", ASSAY.format(here=str(self.dir), assay=place.ASSAY))
        self.program("mpirun", MPIRUN.format(here=str(self.dir)))
        (self.dir / "scripts").symlink_to(place.SCRIPTS)
        self.make_run("made-first.h5", nodes=16)
        self.env["HOME"] = str(self.dir)

    def follow(self, name):
        """Runs a recipe to its end; every line must succeed."""
        result = subprocess.run(["bash", "-exo", "pipefail", "-c", recipes()[name]], cwd=self.dir, env=self.env, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=120)
        self.assertEqual(result.returncode, 0, f"{name}:\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def test_every_recipe_has_a_test(self):
        tested = {name.removeprefix("test_recipe_") for name in dir(self) if name.startswith("test_recipe_")}
        self.assertEqual(set(recipes()), tested)

    def launched(self):
        """Ranks of each host, run by run."""
        return [line.split() for line in (self.dir / "launched").read_text().splitlines()]

    def contract(self):
        (self.dir / "contract.toml").write_text('[[limit]]\nmetric = "gemm/*:throughput"\nmin = "90 GFLOP/s"\n')

    def test_recipe_acceptance(self):
        self.settings(ASSAY=self.dir / "bin" / "assay")
        self.contract()
        told = self.follow("acceptance")
        self.assertRegex(told, r"^assay acceptance \S+: PASS \(exit 0\), 16 PASS")
        self.assertEqual(len(list(self.results.glob("*/acceptance-*/run.h5"))), 1)
        self.assertRegex((self.dir / "said").read_text(), "(?m)^run .*--level extended .*--limits contract.toml")

    def test_recipe_steps(self):
        (self.dir / "hosts").write_text("".join(f"node{n} slots=8\n" for n in range(16)))
        self.contract()
        self.follow("steps")
        self.assertEqual(self.launched(), [["8"] * 16] * 2)
        self.assertIn("acceptance.h5", (self.dir / "acceptance.html").read_text())
        self.assertEqual((self.dir / "report.txt").read_text().count("\nnode "), 16)
        self.assertEqual((self.dir / "nodes.txt").read_text().count(" PASS"), 16)
        self.assertIn("gemm/fp32-n1024-together", (self.dir / "reached.toml").read_text())
        self.assertIn("<testsuites", (self.dir / "acceptance.xml").read_text())

    def test_recipe_repaired(self):
        self.make_run("acceptance.h5", nodes=16)
        self.make_run("made-repaired.h5", nodes=1, first=3, seed=5)
        self.program("scontrol", '#!/bin/sh\n[ "$1" = show ] && echo "NodeName=$4 State=IDLE+DRAIN Reason=assay: slow [root@x]"\n')
        self.assertIn("scontrol update NodeName=node3 State=RESUME\n", self.follow("repaired"))
        self.assertEqual(self.launched(), [["8"]], "as many ranks as each node of the baseline")
        # As bad as before, it is not brought back: the recipe ends at its verdict.
        self.make_run("made-repaired.h5", nodes=1, first=3, seed=5, slow="node3", factor=0.8)
        (self.dir / "repaired.h5").unlink()
        result = subprocess.run(["bash", "-ec", recipes()["repaired"]], cwd=self.dir, env=self.env, capture_output=True, text=True)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertNotIn("RESUME", result.stdout)

    def test_recipe_vendors(self):
        for run in range(2):
            (self.dir / "vendor-a").mkdir(exist_ok=True)
            (self.dir / "vendor-b").mkdir(exist_ok=True)
            self.make_run(f"vendor-a/{run}.h5", nodes=8, seed=run + 1)
            self.make_run(f"vendor-b/{run}.h5", nodes=8, seed=run + 11, rate=1.1e11, key="fedcba9876543210")
        told = self.follow("vendors")
        self.assertIn("FASTER", told)
        self.assertTrue((self.dir / "ratio.json").exists())

    def test_recipe_prolog(self):
        self.settings(ASSAY_STATE=self.dir / "state", ASSAY=self.dir / "bin" / "assay")
        self.follow("prolog")
        self.assertTrue((self.dir / "state" / "prolog.h5").exists())


if __name__ == "__main__":
    place.main()
