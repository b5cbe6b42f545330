# SPDX-License-Identifier: Apache-2.0
"""The batch scripts on a real Slurm of four nodes on this machine (ci/slurm.sh): submitted, signalled, drained, chained."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import place
from temporary_folder import temporary_folder

SLURM = place.ROOT / "ci" / "slurm.sh"


def slurm(*args):
    return subprocess.run([SLURM, *map(str, args)], capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)


def remove_leftovers():
    """Ends the daemons of a test that was killed: the directory has its number."""
    for folder in pathlib.Path(tempfile.gettempdir()).glob("assay-slurm-*"):
        number = folder.name.split("-")[2]
        if number.isdigit() and not pathlib.Path("/proc", number).exists():
            slurm("down", folder / "slurm")
            shutil.rmtree(folder, ignore_errors=True)


class Slurm(place.SiteTest):
    @classmethod
    def setUpClass(cls):
        remove_leftovers()
        folder = temporary_folder(cls.addClassCleanup, f"assay-slurm-{os.getpid()}-")
        cls.slurm = folder / "slurm"
        # A prolog that does nothing until a test gives it settings.
        prolog = folder / "prolog"
        prolog.write_text(f"#!/bin/sh\n[ -f {folder}/site ] || exit 0\nASSAY_SITE=$(cat {folder}/site) exec {place.SCRIPTS}/slurm/prolog.sh\n")
        prolog.chmod(0o755)
        cls.prolog_site = folder / "site"
        (folder / "slurm.extra").write_text(f"Prolog={prolog}\n")
        result = slurm("up", cls.slurm, 4, 17000 + os.getpid() % 400 * 20)
        if result.returncode == 77:
            raise place.unittest.SkipTest(result.stderr.strip().removeprefix("slurm.sh: "))
        assert result.returncode == 0, result.stderr
        cls.addClassCleanup(slurm, "down", cls.slurm)

    def setUp(self):
        super().setUp()
        self.env["SLURM_CONF"] = str(self.slurm / "slurm.conf")
        self.env.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"})
        self.prom = self.dir / "assay.prom"
        self.fake = self.fake_assay()
        self.runs(place.COPY)
        self.site(ASSAY=self.fake)
        self.addCleanup(self.restore)

    def site(self, **changes):
        self.settings(**{"ASSAY_DRAIN": "apply", "ASSAY_PROM": self.prom, "ASSAY_STATE": self.dir / "state", **changes})

    def restore(self):
        self.prolog_site.unlink(missing_ok=True)
        for node in range(4):
            slurm("start", self.slurm, f"node{node}")
        self.until(self.is_idle, "all nodes are idle again")

    def is_idle(self):
        """Cancels and resumes on each call: Slurm requeues a job and drains its node some time after a prolog has failed."""
        if self.nodes("idle") == 4 and not self.command("squeue", "-h").stdout:
            return True
        self.command("scancel", "--user=root")
        for node in range(4):
            self.command("scontrol", "update", f"NodeName=node{node}", "State=RESUME")
        return False

    def command(self, *args, **env):
        return subprocess.run([*map(str, args)], cwd=self.dir, env={**self.env, **env}, capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)

    def until(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f"{what}\n{self.command('sinfo', '-N', '-l').stdout}\n{self.command('squeue').stdout}")
            time.sleep(0.2)

    def nodes(self, state):
        return self.command("sinfo", "-h", "-N", "-o", "%t").stdout.split().count(state)

    def reasons(self):
        """Drained nodes with their Reason."""
        return dict(line.split("|", 1) for line in self.command("sinfo", "-R", "-h", "-o", "%N|%E").stdout.splitlines())

    def submit(self, kind, *args, options=(), seconds=120):
        """Submits and waits; (job number, exit code). `sbatch --wait` would look only after 2, 10 and 42 seconds."""
        result = self.command("sbatch", "--parsable", *options, place.SCRIPTS / "slurm" / f"{kind}.sbatch", *args)
        self.assertRegex(result.stdout, r"^\d+\n", result.stderr)
        job = int(result.stdout.split()[0])
        going = ("PENDING", "CONFIGURING", "RUNNING", "SIGNALING")  # the last while it is told of its time limit
        self.until(lambda: self.job(job, "JobState") not in going, f"job {job} ends", seconds)
        code, signal = map(int, self.job(job, "ExitCode").split(":"))
        return job, 128 + signal if signal else code

    def job(self, job, field):
        said = self.command("scontrol", "--oneliner", "show", "job", job)
        self.assertEqual(said.returncode, 0, said.stderr)
        return re.search(rf"\b{field}=(\S+)", said.stdout)[1]

    def directory(self, kind, job):
        return self.results / time.strftime("%Y-%m-%d", time.gmtime()) / f"{kind}-{job}"

    def said(self, kind, job):
        return (self.dir / f"assay-{kind}-{job}.out").read_text()

    def test_from_sbatch_to_a_drained_node_and_its_metrics(self):
        self.made(nodes=4)
        job, code = self.submit("nightly", options=["--nodes=4"])
        self.assertEqual(code, 0, self.said("nightly", job))
        self.assertEqual(self.reasons(), {})
        self.assertIn('assay_verdict{state="PASS"} 1\n', self.prom.read_text())
        self.assertRegex((self.results / "log").read_text(), rf" nightly job={job} exit=0 .*: PASS ")
        self.assertIn("PASS (exit 0), 4 PASS\n", self.said("nightly", job))
        # The same night with a slow node.
        self.made(nodes=4, slow="node2", factor=0.5, seed=2)
        job, code = self.submit("nightly", options=["--nodes=4"])
        self.assertEqual(code, self.verdict_of(job))
        self.assertEqual(code, 2, self.said("nightly", job))
        reasons = self.reasons()
        self.assertEqual(list(reasons), ["node2"])
        self.assertRegex(reasons["node2"], r"^assay: node2/cores0-3: gemm/fp32-n1024-together:throughput (49|50)\.")
        self.assertIn('assay_node_state{node="node2",state="FAIL"} 1\n', self.prom.read_text())
        # Repaired, it comes back; what somebody else drained does not.
        self.command("scontrol", "update", "NodeName=node0", "State=DRAIN", "Reason=new DIMM")
        self.make_run("good.h5", nodes=4, seed=3)
        self.assert_code(self.script("slurm/drain.sh", "--apply", "--resume", "good.h5"), 0)
        self.assertEqual(self.reasons(), {"node0": "new DIMM"})

    def verdict_of(self, job):
        file = self.directory("nightly", job) / "run.h5"
        return subprocess.run([place.ASSAY, "verdict", file], capture_output=True).returncode

    def test_ranks_are_started_by_srun_with_pmix_and_by_mpirun(self):
        for launch in ["srun --mpi=pmix", "mpirun"]:
            with self.subTest(launch):
                self.site(ASSAY=place.ASSAY, ASSAY_LAUNCH=launch, ASSAY_RANKS="2", ASSAY_DRAIN="print", ASSAY_LEVEL="smoke",
                          ASSAY_OPTIONS="--suites inventory --expect-ranks 2")
                # Both on one node: what PMIx keeps per job would meet on a machine that is several nodes.
                job, code = self.submit("nightly", options=["--nodes=1"])
                directory = self.directory("nightly", job)
                self.assertTrue((directory / "run.h5").exists(), (directory / "run.log").read_text())
                self.assertIn(code, (0, 3), self.said("nightly", job))
                self.assertNotIn("ranks", self.said("nightly", job), "two ranks were there")
                table = self.command(place.ASSAY, "export", directory / "run.h5", "--jsonl").stdout
                self.assertGreater(len(table), 0)

    def test_the_ranks_of_a_job_that_asks_for_no_gpus_have_those_of_its_nodes(self):
        self.runs(place.COPY + """
import shlex
launcher = shlex.split(sys.argv[sys.argv.index("--launcher") + 1].replace("{exclude}", ""))
rank = ["bash", "-c", 'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES"']
(here / "ranks").write_text(subprocess.run(launcher + rank, capture_output=True, text=True).stdout)
""")
        self.made(nodes=2)
        for launch in ("srun", "mpirun"):
            for options in ([], ["--gres=gpu:2"]):
                with self.subTest(launch, options=options):
                    self.site(ASSAY=self.fake, ASSAY_LAUNCH=launch, ASSAY_RANKS="1")
                    job, code = self.submit("nightly", options=["--nodes=2", *options])
                    self.assertEqual(code, 0, self.said("nightly", job))
                    ranks = sorted((self.dir / "ranks").read_text().splitlines())
                    self.assertEqual([rank.split()[1:] for rank in ranks], 2 * [["0,1"]])

    def test_a_job_that_its_time_limit_ends_keeps_its_results(self):
        self.site(ASSAY=place.ASSAY, ASSAY_LAUNCH="srun --mpi=pmix", ASSAY_LEVEL="soak",
                  ASSAY_OPTIONS="--duration 10m --suites inventory,gemm,allreduce")
        for _ in range(8):  # Slurm looks at time limits every 30 s, and signals ahead of them by up to 60 s more than asked for
            begin = time.monotonic()
            job, code = self.submit("nightly", options=["--nodes=1", "--ntasks-per-node=2", "--time=1", "--signal=B:USR1@40"])
            self.assertLess(time.monotonic() - begin, 100)
            directory = self.directory("nightly", job)
            # Where a busy machine is so slow that Slurm itself ends the job, the next night recovers what there is. Such a job is
            # COMPLETING until its processes are gone, and TIMEOUT only then.
            self.until(lambda: self.job(job, "JobState") != "COMPLETING", f"the processes of job {job} end", 90)
            files = list(directory.glob("run*.h5"))
            if files or (list(directory.glob("*.partial/plan.json")) and self.job(job, "JobState") != "TIMEOUT"):
                break
        else:
            self.skipTest("noise: the ranks were not up, or not done, when the time limit came")
        self.assertEqual(len(files), 1, (self.job(job, "JobState"), (directory / "run.log").read_text(), self.said("nightly", job)))
        self.assertEqual(code, 3, self.said("nightly", job))
        self.assertIn("aborted", self.command(place.ASSAY, "inspect", files[0]).stdout)
        self.assertRegex((self.results / "log").read_text(), rf" nightly job={job} exit=3 .*INCONCLUSIVE")
        self.assertEqual(self.reasons(), {}, "nobody is drained for a short night")

    def test_a_night_with_a_node_that_does_not_answer_is_a_night_of_the_others(self):
        self.site(ASSAY=place.ASSAY, ASSAY_LAUNCH="srun --mpi=pmix", ASSAY_RANKS="1", ASSAY_LEVEL="smoke", ASSAY_OPTIONS="--suites inventory")
        slurm("stop", self.slurm, "node3")
        # Two: what PMIx keeps per job would meet on a machine that is several nodes.
        job, code = self.submit("nightly", options=["--nodes=2", "--nodelist=node[2-3]"], seconds=240)
        directory = self.directory("nightly", job)
        log = (directory / "run.log").read_text()
        self.assertEqual(code, 3, log)
        self.assertIn("assay: node3 does not answer: ", log)
        self.assertIn("assay: launching again without node3, ", log)
        self.assertTrue((directory / "run.h5").exists(), log)
        self.assertNotIn("no results: ", self.said("nightly", job))
        states = dict(line.split()[:2] for line in (directory / "nodes.txt").read_text().splitlines())
        self.assertEqual(states.pop("node3"), "INCONCLUSIVE", log)
        self.assertEqual([state in ("PASS", "WARN") for state in states.values()], [True], states)
        self.assertFalse([reason for reason in self.reasons().values() if reason.startswith("assay")], "an unanswered call drains nobody")

    def test_a_soak_goes_on_where_it_began_without_the_node_that_failed(self):
        self.site(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="2", ASSAY_DRAIN="print")
        self.addCleanup(self.command, "scontrol", "delete", "partition=new")
        self.assert_code(self.command("scontrol", "create", "partition=new", "nodes=node[1-3]", "state=up"), 0)
        self.make_run("bad.h5", nodes=4, slow="node1", factor=0.5)
        self.make_run("good.h5", nodes=4, seed=2)
        self.runs('import shutil\nfirst = not (here / "nodes1").exists()\n'
                  'name = "nodes1" if first else "nodes2"\n(here / name).write_text(os.environ["SLURM_JOB_PARTITION"] + " " + os.environ["SLURM_JOB_NODELIST"])\n'
                  'shutil.copy(here / ("bad.h5" if first else "good.h5"), out)\n')
        job, code = self.submit("soak", options=["--nodes=3", "--partition=new"])
        self.assertEqual(code, 2, self.said("soak", job))
        directory = self.directory("soak", job)
        self.until(lambda: (directory / "summary.txt").exists(), "the last segment sums up")
        # Neither its partition nor its nodes are what Slurm would take by itself.
        self.assertEqual((self.dir / "nodes1").read_text(), "new node[1-3]")
        self.assertEqual((self.dir / "nodes2").read_text(), "new node[2-3]")
        self.assertEqual((directory / "failed.txt").read_text(), "node1\n")
        self.assertEqual(sorted(p.name for p in (directory / "segments").iterdir()), ["seg01.h5", "seg02.h5"])
        self.assertRegex((directory / "summary.txt").read_text(), r"^assay soak \S+: FAIL \(exit 2\), ")
        self.until(lambda: not self.command("squeue", "-h").stdout, "the chain ends")
        self.assertIn("scontrol update NodeName=node1 State=DRAIN", self.said("soak", job) + (directory / "summary.txt").read_text())

    def test_a_soak_goes_on_after_the_loss_of_the_node_that_ran_its_script(self):
        self.site(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="2", ASSAY_DRAIN="print")
        self.make_run("good.h5", nodes=4, seed=2)
        # The node is frozen and its script with it; Slurm takes it as down.
        slurm_sh, first = str(SLURM), str(self.slurm)
        self.runs('import shutil, signal\nif "/seg01/" in out:\n'
                  f'    subprocess.run([{slurm_sh!r}, "stop", {first!r}, "node1"], check=True)\n'
                  '    subprocess.run(["scontrol", "update", "NodeName=node1", "State=DOWN", "Reason=lost"], check=True)\n'
                  '    os.kill(os.getppid(), signal.SIGKILL)\n    sys.exit(1)\n'
                  '(here / "nodes2").write_text(os.environ["SLURM_JOB_NODELIST"])\nshutil.copy(here / "good.h5", out)\n')
        job, _ = self.submit("soak", options=["--nodelist=node[1-3]", "--nodes=3"])
        directory = self.directory("soak", job)
        self.until(lambda: (directory / "summary.txt").exists(), "the last segment sums up")
        self.assertEqual((self.dir / "nodes2").read_text(), "node[2-3]")
        self.assertRegex((directory / "summary.txt").read_text(), rf"\nsegment 1: its job {job} was lost \([A-Z_]+\)\nsegment 2 without node1 \(down\*?\)\n$")
        self.until(lambda: not self.command("squeue", "-h").stdout, "the chain ends")

    def test_acceptance_leaves_a_report_to_sign(self):
        self.made(nodes=4)
        job, code = self.submit("acceptance", "--expect-nodes", "4", options=["--nodes=4"])
        self.assertEqual(code, 0, self.said("acceptance", job))
        report = (self.directory("acceptance", job) / "report.txt").read_text()
        self.assertEqual(self.said("acceptance", job), report)
        page = self.directory("acceptance", job) / "report.html"
        self.assertIn("<!doctype html>", page.read_text())
        for text in [": PASS (exit 0), 4 PASS\n", f"\n{page}\n", "\nnode   node3 ", "\nsha256 ", "\naccepted / not accepted"]:
            self.assertIn(text, report)
        self.assertIn("--level\nextended\n", (self.dir / "arguments").read_text())

    def test_a_prolog_that_finds_a_fault_keeps_the_job_away(self):
        # Every node runs it, and the made-up file names one of them.
        self.made(nodes=4, slow="node0", factor=0.5)
        self.runs(place.COPY + 'sys.exit(2 if os.environ.get("SLURMD_NODENAME", "node0") == "node0" else 0)\n')
        self.site(ASSAY=self.fake)
        self.prolog_site.write_text(str(self.dir / "site.conf"))
        ran = self.dir / "ran"
        sent = self.command("sbatch", "--parsable", "--nodes=1", "--nodelist=node0", "--wrap", f"touch {ran}")
        self.assertRegex(sent.stdout, r"^\d+\n", sent.stderr)
        job = sent.stdout.strip()
        self.until(lambda: "node0" in self.reasons(), "the node is drained")
        self.assertRegex(self.reasons()["node0"], "^assay: node0/cores0-3: ")
        self.assertRegex((self.results / "log").read_text() if (self.results / "log").exists() else "", r"prolog job=\S+ exit=2 ")
        # Slurm takes the job back and holds it.
        self.until(lambda: (self.job(job, "JobState"), self.job(job, "Priority")) == ("PENDING", "0"), "the job is held in the queue")
        self.assertFalse(ran.exists(), "the job ran on a node with a fault")
        # The same job runs when the node is whole.
        self.prolog_site.unlink()
        self.command("scontrol", "update", "NodeName=node0", "State=RESUME")
        self.assert_code(self.command("scontrol", "update", f"JobId={job}", "StartTime=now"), 0)  # else it waits for two minutes
        self.assert_code(self.command("scontrol", "release", job), 0)
        self.until(lambda: self.job(job, "JobState") == "COMPLETED", "the job ends")
        self.assertTrue(ran.exists())

    def test_a_prolog_knows_of_the_other_jobs_on_its_node(self):
        self.made(nodes=4)
        self.runs(place.COPY + 'print("PASS (exit 0)")\n')
        self.site(ASSAY=self.fake)
        # A job is RUNNING before its own prolog has run; its script starts after that.
        started, ran = self.dir / "started", self.dir / "ran"
        first = self.command("sbatch", "--parsable", "--nodes=1", "--ntasks=1", "--nodelist=node1", "--wrap", f"touch {started}; sleep 60").stdout.strip()
        self.until(started.exists, "the first job runs")
        self.prolog_site.write_text(str(self.dir / "site.conf"))
        second = self.command("sbatch", "--parsable", "--nodes=1", "--ntasks=1", "--nodelist=node1", "--wrap", f"touch {ran}").stdout.strip()
        self.until(lambda: self.job(second, "JobState") == "COMPLETED", "the second job ends")
        self.assertTrue(ran.exists())
        self.assertIn(f"(beside job {first})", (self.results / "log").read_text())
        self.assertFalse((self.dir / "state" / "prolog.passed").exists())


if __name__ == "__main__":
    place.main()
