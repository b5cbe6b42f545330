# SPDX-License-Identifier: Apache-2.0
"""Nights on virtual hosts with a real Slurm: from sbatch to a drained node with no hand in between, and nights that are killed."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import cluster
import fake_gpus
import outcome
from results import Results

SCRIPTS = cluster.SCRIPT.parents[1] / "scripts"
PAIRS = "--suites inventory,p2p --p2p.scopes cross --p2p.modes uni --p2p.sizes 262144"


class Night(cluster.ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        result = cluster.script(cls.cluster.name, "slurm")
        if result.returncode == 77:
            raise cluster.unittest.SkipTest(result.stderr.strip().removeprefix("virtual-cluster: ").removeprefix("slurm.sh: "))
        assert result.returncode == 0, result.stderr
        cls.conf = cluster.STATE / cls.cluster.name / "slurm" / "slurm.conf"

    def setUp(self):
        super().setUp()
        self.results, self.prom = self.dir / "results", self.dir / "assay.prom"
        (self.dir / "limits.toml").write_text('[[limit]]\nmetric = "p2p/bandwidth-uni-*:bandwidth"\nmin = "5 MB/s"\n')
        self.addCleanup(self.restore)

    def restore(self):
        self.slurm("scancel", "--user=root")
        for host in self.cluster.hosts:
            self.slurm("scontrol", "update", f"NodeName={host}", "State=RESUME")
        cluster.wait_until(lambda: self.slurm("sinfo", "-h", "-N", "-o", "%t").stdout.split() == ["idle"] * 4, 60, "all hosts are idle")

    def site(self, options, level="smoke", assay=cluster.ASSAY):
        settings = {"ASSAY": assay, "ASSAY_RESULTS": self.results, "ASSAY_PROM": self.prom, "ASSAY_DRAIN": "apply",
                    "ASSAY_LEVEL": level, "ASSAY_OPTIONS": options, "ASSAY_STATE": self.dir / "state",
                    "ASSAY_LAUNCH": "mpirun --mca btl self,vader,tcp --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"}
        (self.dir / "site.conf").write_text("".join(f'{key}="{value}"\n' for key, value in settings.items()))

    def slurm(self, *command):
        """A command of Slurm on the first host, where its controller is."""
        return subprocess.run([cluster.SCRIPT, "--name", self.cluster.name, "exec", self.cluster.hosts[0], "env", "-C", self.dir,
                               f"SLURM_CONF={self.conf}", f"ASSAY_SITE={self.dir}/site.conf", "OMPI_ALLOW_RUN_AS_ROOT=1",
                               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", *map(str, command)],
                              capture_output=True, text=True, timeout=150, stdin=subprocess.DEVNULL)

    def submit(self, *options):
        result = self.slurm("sbatch", "--parsable", "--nodes=4", *options, SCRIPTS / "slurm" / "nightly.sbatch")
        self.assertRegex(result.stdout, r"^\d+\n", result.stderr)
        return int(result.stdout)

    def night(self, limit_s=140):
        """Submits and waits: (job, exit code). `sbatch --wait` would look only after 2, 10 and 42 seconds."""
        job = self.submit()
        end = time.monotonic() + limit_s
        while self.slurm("squeue", "-h").stdout.strip():
            self.assertLess(time.monotonic(), end, "the job ends")
            time.sleep(1)
        said = self.slurm("scontrol", "--oneliner", "show", "job", job).stdout
        code = re.search(r"\bExitCode=(\d+):0\b", said)
        self.assertTrue(code, said)
        return job, int(code[1])

    def job_ends(self, limit_s=150):
        """Slurm gives a process that a disk keeps from ending 60 s, and then its node up."""
        try:
            cluster.wait_until(lambda: not self.slurm("squeue", "-h").stdout.strip(), limit_s, "the job ends")
        except AssertionError as late:
            running = [(host, pid, self.program(pid), self.state(pid)) for host in self.cluster.hosts for pid in self.pids(host)]
            raise AssertionError(f"{late}\n{self.slurm('squeue', '--states=all').stdout}\n{self.slurm('sinfo', '-N').stdout}\n{running}") from None

    def said(self, job):
        return (self.dir / f"assay-nightly-{job}.out").read_text()

    def directory(self, job):
        return next(self.results.glob(f"*/nightly-{job}"))

    def reasons(self):
        return dict(line.split("|", 1) for line in self.slurm("sinfo", "-R", "-h", "-o", "%N|%E").stdout.splitlines())

    def test_from_sbatch_to_a_drained_node_with_a_slow_nic(self):
        self.site(f"{PAIRS} --limits {self.dir}/limits.toml")
        job, code = self.night()
        self.quiet(job, self.cluster.hosts)
        self.assertEqual(code, 0, self.said(job))
        self.assertEqual(self.reasons(), {})
        slow = self.cluster.hosts[2]
        self.fault("slow-nic", slow, "20mbit")
        job, code = self.night()
        self.quiet(job, [host for host in self.cluster.hosts if host != slow])
        self.assertEqual(code, 2, self.said(job))
        reasons = self.reasons()
        self.assertEqual(list(reasons), [slow], self.said(job))
        self.assertRegex(reasons[slow], rf"^assay: {slow}: (all its pairs slow, )?p2p/bandwidth-uni-262144-cross-mpi:bandwidth \S+ [kM]B/s")
        prom = self.prom.read_text()
        for host in self.cluster.hosts:
            self.assertIn(f'assay_node_state{{node="{host}",state="FAIL"}} {int(host == slow)}\n', prom)
        last = (self.results / "log").read_text().splitlines()[-1]
        self.assertRegex(last, rf"nightly job={job} exit=2 .* \d PASS, 1 FAIL(, \d WARN)?: {slow} ", self.said(job))
        if "WARN" in last:
            self.skipTest(f"noise: healthy hosts are WARN beside the slow one: {self.said(job)}")

    def quiet(self, job, healthy):
        """Skips where the links between healthy hosts are slow, too: then the machine is busy with something else."""
        rates = Results(self.directory(job) / "run.h5").of_each("p2p", "bandwidth-uni-262144-cross-mpi", "bandwidth")
        between = [rate for link, rate in rates.items() if all(end.split("/")[0] in healthy for end in link.split(">"))]
        self.assertTrue(between, rates)
        if min(between) < 10e6:
            self.skipTest(f"noise: healthy hosts reach {min(between) / 1e6:.0f} MB/s")

    def emulated(self, faults=(), **changed):
        """The program on two emulated GPUs per host; `faults` by (host, GPU)."""
        gpus = fake_gpus.small()
        two = gpus["nodes"].pop("*")
        for i, host in enumerate(self.cluster.hosts):
            gpus["nodes"][host] = [gpu | changed | {"uuid": gpu["uuid"].replace("0011", f"00{i}1")} for gpu in two]
        for (host, gpu), fault in dict(faults).items():
            gpus["nodes"][host][gpu]["fault"] = fault
        (self.dir / "gpus.json").write_text(json.dumps(gpus))
        program = self.dir / "assay"
        program.write_text(f"#!/bin/sh\nexport ASSAY_FAKE_GPUS={self.dir}/gpus.json ASSAY_NVML_LIBRARY=/nonexistent\n"
                           f"exec {os.environ['ASSAY_EMULATED']} \"$@\"\n")
        program.chmod(0o755)
        return program

    def gpus(self):
        return {f"{host}/gpu{gpu}" for host in self.cluster.hosts for gpu in (0, 1)}

    def test_every_gpu_of_every_node_is_measured_by_default(self):
        self.site("--suites inventory,gemm --gemm.sizes 64 --gemm.dtypes fp32", assay=self.emulated())
        job, code = self.night()
        self.assertIn(code, (0, 3), self.said(job))
        run = Results(self.directory(job) / "run.h5")
        self.assertEqual(set(run.of_each("gemm", "fp32-n64-together", "throughput")), self.gpus())
        self.assertNotIn("uncovered", {f["kind"] for f in run.findings})
        self.assertNotIn("uncovered", self.said(job))

    def test_gpus_that_fail_while_the_night_is_set_up(self):
        """One of a node, on the leader of all, and both of another: what is left is measured, and both nodes are named."""
        one, both = self.cluster.hosts[0], self.cluster.hosts[2]
        lost = {(one, 0): "stream", (both, 0): "stream", (both, 1): "stream"}
        self.site("--suites inventory,gemm --gemm.sizes 64 --gemm.dtypes fp32", assay=self.emulated(lost))
        job, code = self.night()
        self.assertEqual(code, 2, self.said(job))
        run = Results(self.directory(job) / "run.h5")
        self.assertEqual(set(run.of_each("gemm", "fp32-n64-together", "throughput")), self.gpus() - {f"{host}/gpu{gpu}" for host, gpu in lost})
        failed = [f for f in run.findings if f["severity"] == "FAIL"]
        self.assertEqual({f["name"].split("/")[0] for f in failed}, {one, both}, "a node without GPUs has a row, too")
        self.assertIn(both, run.nodes)
        told = [f["text"] for f in failed]
        self.assertEqual(len(told), 3, told)
        for host, gpu in lost:
            self.assertTrue(any(f"{host}: the GPU GPU-" in text and f"f{gpu} cannot be used" in text for text in told), told)

    def test_a_node_whose_gpus_are_gone_does_not_keep_others_from_being_measured(self):
        gone = self.cluster.hosts[1]
        program = self.emulated()
        gpus = json.loads((self.dir / "gpus.json").read_text())
        gpus["nodes"][gone] = []
        (self.dir / "gpus.json").write_text(json.dumps(gpus))
        self.site("--suites inventory,gemm --gemm.sizes 64 --gemm.dtypes fp32", assay=program)
        job, code = self.night()
        self.assertEqual(code, 3, self.said(job))
        run = Results(self.directory(job) / "run.h5")
        self.assertEqual(set(run.of_each("gemm", "fp32-n64-together", "throughput")), {gpu for gpu in self.gpus() if not gpu.startswith(gone)})
        missing = [f["text"] for f in run.findings if f["kind"] == "missing" and "NVML" not in f["text"]]
        self.assertEqual(len(missing), 1, run.findings)
        self.assertIn(f"{gone}: no rank can use a GPU", missing[0])
        self.assertIn(gone, run.nodes)
        # Few cores compute for all GPUs: their rates may fall into two groups, which leaves their nodes open, too.
        unsteady = any(f["kind"] in ("slow", "split") for f in run.findings)
        self.assertRegex((self.results / "log").read_text(),
                         rf"nightly job={job} exit=3 .*, {'[1-4] INCONCLUSIVE' if unsteady else '1 INCONCLUSIVE, 3 WARN '}")

    @outcome.nightly
    def test_the_default_night_measures_every_gpu(self):
        """All suites at the level of a site that has two minutes. What two cores compute for eight GPUs has no steady speed, so that the
        state of the run says nothing."""
        self.site("", level="quick", assay=self.emulated(memory_bytes=256 << 20))
        begin = time.monotonic()
        job, code = self.night(limit_s=400)
        seconds = time.monotonic() - begin
        self.assertIn(code, (0, 2, 3), self.said(job))
        run = Results(self.directory(job) / "run.h5")
        for suite in ("gemm", "memory", "p2p", "allreduce"):
            self.assertEqual(run.devices(suite), self.gpus(), suite)
        self.assertNotIn("uncovered", {f["kind"] for f in run.findings})
        verdict = (self.directory(job) / "verdict.txt").read_text()
        self.assertNotIn("uncovered", verdict)
        self.assertRegex(verdict, r"planned=\d+ passed=\d+ failed=0 skipped=\d+ error=0 incomplete=0")
        print(f"{seconds:.0f} s from sbatch to the end, exit {code},", re.search("planned=[^(]*", verdict)[0].strip())

    def started(self, job):
        """The directory of a night that has measured something."""
        def found():
            return next(iter(self.results.glob(f"*/nightly-{job}/run.h5.partial/cases/*.h5")), None)
        return cluster.wait_until(found, 60, "the night measures").parents[2]

    def kill(self, *programs):
        """kill -9 for all processes of these names on all hosts at once: nobody sees another one go."""
        pids = [pid for host in self.cluster.hosts for pid in self.pids(host) if self.program(pid) in programs]
        self.assertTrue(pids)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def pids(self, host):
        return map(int, subprocess.run(["ip", "netns", "pids", f"assay-{host}"], capture_output=True, text=True).stdout.split())

    @staticmethod
    def program(pid):
        try:
            return pathlib.Path("/proc", str(pid), "comm").read_text().strip()
        except OSError:
            return ""

    @staticmethod
    def state(pid):
        """R, S, D, T, Z: as in `ps`."""
        try:
            return pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(") ", 1)[1][0]
        except OSError:
            return ""

    LONG = ("--suites inventory,gemm,allreduce", "standard")

    def test_ranks_that_are_killed_leave_what_they_measured(self):
        self.site(*self.LONG)
        job = self.submit()
        directory = self.started(job)
        self.kill("assay")
        self.job_ends()
        self.assertIn("INCONCLUSIVE (exit 3)", self.said(job))
        run = Results(directory / "run.h5")
        self.assertTrue(run.cases("inventory"))
        self.assertNotEqual(run.state, "complete")
        self.assertRegex((self.results / "log").read_text(), rf"nightly job={job} exit=3 ")
        self.assertEqual(self.reasons(), {}, "nobody is drained")

    @outcome.nightly
    def test_a_night_with_a_node_that_dies_is_a_night_of_all_others(self):
        self.site("--suites inventory,gemm,allreduce", "quick")
        dead, job = self.cluster.hosts[2], self.submit()
        directory = self.started(job)
        for pid in self.pids(dead):
            if self.program(pid) == "assay":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.job_ends(200)
        log = (directory / "run.log").read_text()
        self.assertIn(f"launching again without {dead}", log)
        run = Results(directory / "run.h5")
        last = {name.split("/")[0] for name in run.of_each("allreduce", "allreduce-world-8-mpi", "duration")}
        self.assertEqual(last, set(self.cluster.hosts) - {dead}, log)
        self.assertRegex((self.results / "log").read_text(), rf"nightly job={job} exit=[23] ")

    def test_a_night_that_is_killed_with_its_job_is_recovered_by_the_next(self):
        self.site(*self.LONG)
        killed = self.submit()
        directory = self.started(killed)
        self.kill("bash", "assay", "mpirun", "srun", "orted")
        self.job_ends()
        self.assertFalse((directory / "run.h5").exists())
        self.site("--suites inventory")
        job, code = self.night()
        self.assertEqual(code, 0, self.said(job))
        self.assertTrue(Results(directory / "run.h5").cases("inventory"))
        self.assertIn("INCONCLUSIVE", (directory / "summary.txt").read_text())
        self.assertRegex((self.results / "log").read_text(), rf"recovered: assay night \S+ INCONCLUSIVE .*/nightly-{killed}\n(.*\n)*.* nightly job={job} exit=0 ")


if __name__ == "__main__":
    cluster.main()
