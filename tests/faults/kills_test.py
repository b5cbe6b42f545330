# SPDX-License-Identifier: Apache-2.0
"""Kills at any instant of a run: while it starts, measures, measures again, merges, judges, and is launched again. What had
ended is kept, whatever is killed; every second run has a spool. ASSAY_KILLS sets how many are tried."""

import collections
import json
import os
import random
import time

import common
import harness
from running import Run, count_cases, processes

RANKS = 4
# A slow rank, so that cases are measured again.
OPTIONS = ("--suites", "inventory,gemm,allreduce,p2p", "--inject", "slow:rank=1,factor=0.25")
CODES = (0, 1, 2, 3)
# Half of the kills wait for a stage that an instant drawn evenly over the run seldom meets.
STAGES = (None, None, None, "measuring again", "merging", "launched again")


def planned(run):
    try:
        plan = json.loads((run.partial / "plan.json").read_text())["plan"]
    except (OSError, ValueError):
        return None
    return sum(row["state"] == "planned" for row in plan)


def stage(run):
    if list(run.file.parent.glob(run.file.stem + ".launch*")):
        return "launched again"
    if (run.partial / "end.json").exists():
        return "merging"
    if run.file.exists():
        return "ending"
    count = planned(run)
    if count is None:
        return "starting"
    return "measuring again" if run.stored() > count else "measuring"


class Kills(harness.CliTest):
    def test_kills_over_the_whole_run_keep_what_had_ended(self):
        seed = int(os.environ.get("ASSAY_SEED", random.randrange(1 << 32)))
        rng = random.Random(seed)
        length = self.length() if common.NIGHTLY else 10
        outcomes = collections.Counter()
        for number in range(int(os.environ.get("ASSAY_KILLS", "2"))):
            own_launcher = number % 3 != 0
            target = rng.choice(["worker", "supervisor", "all"] + (["launcher", "process that launches"] if own_launcher else []))
            with self.subTest(number=number, seed=seed, target=target, own_launcher=own_launcher):
                outcomes[self.kill_once(number, own_launcher, target, length, rng)] += 1
        print(f"\n{sum(outcomes.values())} kills, seed {seed}, run of {length:.1f} s")
        for (where, outcome), count in sorted(outcomes.items()):
            print(f"  {where}: {count} {outcome}")

    def length(self):
        run = Run(self, RANKS, "whole.h5", OPTIONS)
        self.assertIn(run.wait(), (2, 3), run.text())
        return run.seconds

    def wait_for_stage(self, run, wanted, length, rng):
        """Sleeps until an instant drawn evenly over the run, or shortly after a stage has begun."""
        end = time.monotonic() + 1.5 * length
        if wanted is None:
            end = time.monotonic() + rng.uniform(0, length)
        while time.monotonic() < end and run.process.poll() is None and (wanted is None or stage(run) != wanted):
            time.sleep(0.002)
        if wanted:
            time.sleep(rng.uniform(0, 0.2))

    def kill(self, run, target, rng):
        ranks = processes.find(harness.ASSAY, run.file)
        pids = []
        if target == "process that launches":
            pids = [run.process.pid]
        elif target == "launcher":
            pids = processes.children(run.process.pid)
        elif target == "all":
            pids = [run.process.pid, *processes.children(run.process.pid)]
            pids += [pid for rank in ranks.values() for pid in (rank.supervisor, rank.worker)]
        elif ranks:
            rank = rng.choice(sorted(ranks.values(), key=lambda r: r.rank))
            pids = [getattr(rank, target) or rank.worker]
        for pid in filter(None, pids):
            try:
                processes.kill(pid)
            except ProcessLookupError:
                pass

    def kill_once(self, number, own_launcher, target, length, rng):
        spool = self.dir / f"spool{number}"
        spool.mkdir()
        options = (*OPTIONS, "--spool", str(spool)) if number % 2 else OPTIONS
        run = Run(self, RANKS, f"run{number}.h5", options, own_launcher)
        wanted = rng.choice(STAGES if own_launcher else STAGES[:-1])
        if wanted == "launched again":  # what is lost makes it so
            self.wait_for_stage(run, None, length, rng)
            self.kill(run, "worker", rng)
        self.wait_for_stage(run, wanted, length, rng)
        where, stored, over = stage(run), run.ended(), run.process.poll() is not None
        self.kill(run, target, rng)
        # PMIx 4.2 can deadlock in mpirun's shutdown when a rank is killed while it connects. A process that launches ends
        # such an mpirun itself, within 67 s of its start (launcher_overdue).
        may_hang = where == "starting" and not own_launcher
        launcher_hung = run.wait_or_end_launcher(may_hang, alone_s=75 if own_launcher else 15)
        run.assert_no_strays(self, 20)
        file, outcome = self.best_of(run, number)
        if file is None:
            self.assertEqual(stored, 0, run.text())
        else:
            self.assert_code(self.assay("schema", "--check", file), 0)
            self.assertGreaterEqual(count_cases(file), stored, run.text())
            self.assertIn(self.assay("verdict", file).returncode, CODES)
        kept = {os.readlink(cases) for cases in self.dir.glob(f"run{number}.*partial/cases*") if cases.is_symlink()}
        self.assertLessEqual({str(path) for path in spool.iterdir()}, kept, "cases that nothing leads to")
        if own_launcher and target not in ("all", "process that launches"):
            self.assertIn(run.process.returncode, CODES, run.text())
        return "over" if over else where, outcome + (", launcher hung" if launcher_hung else "")

    def best_of(self, run, number):
        """The file with the most cases of those that the run left, or that `assay recover` makes."""
        found = [(path, "finished") for path in (run.file, *self.dir.glob(f"run{number}.launch*.h5")) if path.is_file()]
        for place, partial in enumerate((run.partial, *self.dir.glob(f"run{number}.launch*.partial"))):
            if (partial / "plan.json").exists():
                recovered = self.dir / f"recovered{number}-{place}.h5"
                self.assert_code(self.assay("recover", partial, "-o", recovered), 0)
                found.append((recovered, "recovered"))
        return max(found, key=lambda entry: count_cases(entry[0]), default=(None, "before the first case"))


if __name__ == "__main__":
    common.main()
