# SPDX-License-Identifier: Apache-2.0
"""scripts/slurm/prolog.sh and healthcheck.sh on one node, with the scontrol of drain_test.py: what is tested, and what keeps a job away."""

import os
import shutil
import time

import drain_test
import outcome
import place


class NodeChecks(place.SiteTest):
    """prolog.sh and healthcheck.sh, with a program whose runs are made up."""

    def setUp(self):
        super().setUp()
        self.slurm = self.dir / "slurm"
        self.slurm.mkdir()
        self.program("scontrol", drain_test.SCONTROL.format(here=self.slurm))
        (self.slurm / "node0").write_text("IDLE\n\n")
        self.fake = self.fake_assay()
        self.node_settings()
        self.result_of_run(2, nodes=4, slow="node0", factor=0.5)

    def node_settings(self, **changes):
        self.settings(**{"ASSAY": self.fake, "ASSAY_STATE": self.dir / "state", "ASSAY_DRAIN": "apply", **changes})

    def result_of_run(self, code, **keys):
        self.made(**keys)
        state = {0: "PASS", 2: "FAIL", 3: "INCONCLUSIVE"}[code]
        self.runs(place.COPY + f'(here / "ran").open("a").write("x")\nprint("{state} (exit {code})")\nsys.exit({code})\n')

    def ran(self):
        path = self.dir / "ran"
        return len(path.read_text()) if path.exists() else 0

    def calls(self):
        path = self.slurm / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def test_a_fault_drains_and_keeps_the_job_away(self):
        result = self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"})
        self.assert_code(result, 1)
        self.assertEqual([call.split(": ")[0] for call in self.calls()], ["NodeName=node0 State=DRAIN Reason=assay"])
        self.assertRegex((self.results / "log").read_text(), r"Z prolog job=5 exit=2 \S+: FAIL \(exit 2\)\n$")

    def test_a_fault_counts_where_the_time_limit_ended_the_run(self):
        timeout, date = shutil.which("timeout"), shutil.which("date")  # 2 seconds take the place of 45
        self.program("timeout", f'#!/bin/bash\nexec {timeout} "${{@/#45/2}}"\n')
        self.node_settings(ASSAY_RANKS="1")
        self.runs('import signal, time\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *_: got.append(1))\n'
                  'while not got:\n    time.sleep(0.01)\n' + place.COPY + 'print("FAIL (exit 2)")\nsys.exit(2)\n')
        self.program("date", f'#!/bin/bash\n[ "$*" != +%s ] || exec echo "$(($({date} +%s) * 45))"\nexec {date} "$@"\n')
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 1)
        self.assertEqual([call.split(": ")[0] for call in self.calls()], ["NodeName=node0 State=DRAIN Reason=assay"])
        self.assertRegex((self.results / "log").read_text(), r"Z prolog job=5 exit=2 \S+: FAIL \(exit 2\) \(ended after 45 s\)\n$")

    def test_nothing_but_a_fault_keeps_a_job_away(self):
        self.node_settings(ASSAY_DRAIN="print")
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.node_settings()
        self.result_of_run(3, nodes=4)
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.runs("sys.exit(5)\n")
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.assertEqual(self.calls(), [])

    def test_wrong_settings_are_a_line_in_the_log(self):
        self.node_settings(ASSAY="no-such-program")
        self.syslog()
        for kind in ("prolog", "healthcheck"):
            with self.subTest(kind):
                self.assert_code(self.script(f"slurm/{kind}.sh"), 0)
                self.assertRegex((self.results / "log").read_text(), rf" {kind} job=- exit=4 \S+: not tested: .*no program 'no-such-program': set ASSAY to its path in \S+\n$")
                self.assert_code(self.script(f"slurm/{kind}.sh", env={"ASSAY_SITE": "/nonexistent"}), 0)
                self.assertRegex((self.dir / "syslog").read_text(), rf"-t assay {kind} exit=4 not tested: .*cannot read '/nonexistent'\n$")
        self.assertEqual(self.ran(), 0)

    def test_a_state_that_cannot_be_kept_is_a_line_in_the_log(self):
        state = self.dir / "state"
        for kind in ("prolog", "healthcheck"):
            state.mkdir()
            state.chmod(0o777)
            self.assert_code(self.script(f"slurm/{kind}.sh"), 0)
            self.assertRegex((self.results / "log").read_text(), rf" {kind} job=- exit=4 \S+: not tested: .*ASSAY_STATE: .*state can be written by others\n$")
            state.rmdir()
            state.write_text("")
            self.assert_code(self.script(f"slurm/{kind}.sh"), 0)
            self.assertRegex((self.results / "log").read_text(), rf" {kind} job=- exit=4 \S+: not tested: .*ASSAY_STATE: .*/state\n$")
            state.unlink()
        self.assertEqual(self.ran(), 0)

    def syslog(self):
        """What goes to the system's log from now on."""
        self.program("logger", f'#!/bin/sh\necho "$*" >>"{self.dir}/syslog"\n')
        return self.dir / "syslog"

    def test_a_log_on_a_server_that_hangs_keeps_no_job_and_hides_no_fault(self):
        syslog = self.syslog()
        self.results.mkdir()
        os.mkfifo(self.results / "log")  # whoever opens it waits
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}, timeout=60), 1)
        self.assertEqual([call.split(": ")[0] for call in self.calls()], ["NodeName=node0 State=DRAIN Reason=assay"])
        self.assertRegex(syslog.read_text(), r"-t assay prolog exit=2 FAIL \(exit 2\)\n$")
        self.result_of_run(0, nodes=4)
        for kind in ("prolog", "healthcheck"):
            self.assert_code(self.script(f"slurm/{kind}.sh", timeout=60), 0)
            self.assertRegex(syslog.read_text(), rf"-t assay {kind} exit=0 PASS \(exit 0\)\n$")
        self.assertTrue((self.dir / "state" / "prolog.passed").exists(), "it was tested all the same")

    def test_settings_on_a_server_that_hangs_keep_no_job(self):
        syslog = self.syslog()
        (self.dir / "site.conf").write_text("exec sleep 100\n")
        for kind in ("prolog", "healthcheck"):
            self.assert_code(self.script(f"slurm/{kind}.sh", timeout=60), 0)
            self.assertRegex(syslog.read_text(), rf"-t assay {kind} exit=3 not tested: settings and program cannot be read within 10 s .*\n$")
        self.assertEqual(self.ran(), 0)

    @outcome.nightly
    def test_whatever_hangs_keeps_no_job(self):
        syslog = self.syslog()
        self.program("scontrol", "#!/bin/sh\nexec sleep 200\n")
        for kind, limit_s in (("prolog", 170), ("healthcheck", 57)):
            self.assert_code(self.script(f"slurm/{kind}.sh", env={"SLURM_JOB_ID": "5"}, timeout=limit_s + 20), 0)
            self.assertRegex(syslog.read_text(), rf"-t assay {kind} exit=3 ended after {limit_s} s .*\n$")

    def test_help_tests_nothing(self):
        for kind in ("prolog", "healthcheck"):
            for option in ("--help", "-h"):
                result = self.script(f"slurm/{kind}.sh", option, env={"ASSAY_SITE": "/nonexistent"})
                self.assert_code(result, 0)
                self.assertTrue(result.stdout.startswith(f"Usage: scripts/slurm/{kind}.sh\n"), result.stdout)
        self.assertEqual(self.ran(), 0)

    def beside(self, *jobs):
        (self.slurm / "pids").write_text("PID      JOBID    STEPID   LOCALID GLOBALID\n" + "".join(f"{i}      {job}      batch    0       0\n" for i, job in enumerate(jobs)))

    def judged(self, file):
        """The fake run also says what --json does, from the verdict of FILE."""
        return (f'subprocess.run([{place.ASSAY!r}, "verdict", str(here / {file!r}), "--json", sys.argv[sys.argv.index("--json") + 1]], '
                'stdout=subprocess.DEVNULL)\n')

    def test_what_another_job_can_cause_drains_nobody(self):
        self.made(nodes=4, slow="node0", factor=0.5)
        slow = place.COPY + self.judged("made.h5") + 'print("FAIL (exit 2)")\nsys.exit(2)\n'
        self.runs(slow)
        self.beside(5, 77)
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 0)
        self.assertEqual(self.calls(), [])
        self.assertRegex((self.results / "log").read_text(), r"prolog job=5 exit=2 \S+: FAIL \(exit 2\) \(beside job 77\)\n$")
        arguments = (self.dir / "arguments").read_text()
        self.assertIn("--suites\ninventory\n--device\nhost\n", arguments)
        # The GPUs that the job was given are its own, and nobody else's.
        self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5", "SLURM_JOB_GPUS": "2,3"})
        self.assertIn("--suites\ninventory,gemm\n--device\ncuda\n", (self.dir / "arguments").read_text())
        # Wrong values are nobody else's doing.
        subprocess = place.subprocess
        subprocess.run([place.ASSAY, "simulate", "--nodes", "4", "--metrics", "gemm", "--fault", "bitflip:node=1,target=gemm", "-o", self.dir / "wrong.h5"],
                       capture_output=True, check=False)
        self.runs(slow.replace("'made.h5'", "'wrong.h5'"))
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 1)
        self.assertEqual(len(self.calls()), 1)
        # Alone, the slow node is the node's own doing.
        (self.slurm / "calls").unlink()
        self.beside(5)
        self.runs(slow)
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 1)
        self.assertEqual(len(self.calls()), 1)

    def test_where_other_jobs_are_unknown_some_are_expected(self):
        (self.slurm / "deaf").touch()
        self.runs(place.COPY + self.judged("made.h5") + 'print("FAIL (exit 2)")\nsys.exit(2)\n')
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 0)
        self.assertEqual(self.calls(), [])
        self.assertIn("--suites\ninventory\n--device\nhost\n", (self.dir / "arguments").read_text())
        self.assertIn("(other jobs may run here: scontrol listpids fails)", (self.results / "log").read_text())
        self.assertFalse((self.dir / "state" / "prolog.passed").exists())

    def test_in_slurm_without_scontrol_some_are_expected(self):
        tools = self.dir / "tools"  # all programs of this machine but scontrol
        tools.mkdir()
        for tool in os.listdir("/usr/bin"):
            if tool != "scontrol":
                (tools / tool).symlink_to(f"/usr/bin/{tool}")
        self.node_settings(PATH=tools)
        self.runs(place.COPY + self.judged("made.h5") + 'print("FAIL (exit 2)")\nsys.exit(2)\n')
        for env in ({"SLURM_JOB_ID": "5"}, {"SLURMD_NODENAME": "node0"}):
            self.assert_code(self.script("slurm/prolog.sh", env=env), 0)
            self.assertIn("--suites\ninventory\n--device\nhost\n", (self.dir / "arguments").read_text())
            self.assertIn("(other jobs may run here: no scontrol in PATH)\n", (self.results / "log").read_text().splitlines(True)[-1])

    def test_all_devices_are_tested_and_only_a_whole_pass_is_remembered(self):
        self.node_settings(ASSAY_RANKS="3")
        stamp = self.dir / "state" / "prolog.passed"
        for state, jobs in [("WARN", ()), ("PASS", (77,))]:
            self.beside(*jobs)
            self.runs(place.COPY + f'(here / "ran").open("a").write("x")\nprint("{state} (exit 0)")\n')
            self.assert_code(self.script("slurm/prolog.sh"), 0)
            self.assertFalse(stamp.exists(), state)
        (self.dir / "ran").unlink()
        self.beside()
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.assertEqual(self.ran(), 3, "one for every rank")
        self.assertIn("--require\ncoverage\n", (self.dir / "arguments").read_text())
        self.assertTrue(stamp.exists())

    def test_the_devices_that_the_settings_expect_are_expected_of_the_node(self):
        self.node_settings(ASSAY_OPTIONS="--limits l.toml --device cuda --expect-nodes 16 --expect-devices=8 --strict")
        self.result_of_run(0, nodes=4)
        for kind, suites in (("prolog", "inventory,gemm,memory"), ("healthcheck", "inventory")):
            self.assert_code(self.script(f"slurm/{kind}.sh"), 0)
            self.assertIn(f"--suites\n{suites}\n--require\ncoverage\n--device\ncuda\n--expect-devices=8\n--quiet\n", (self.dir / "arguments").read_text())
        # Beside other jobs only some of them are looked at.
        self.beside(77)
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertIn("--suites\ninventory\n--device\nhost\n--quiet\n", (self.dir / "arguments").read_text())

    def test_gpus_that_slurm_knows_of_the_node_are_expected_of_it(self):
        said, node = self.dir / "said", self.slurm / "node0"
        lists = self.program("assay-of-gpus", f"""#!/bin/bash
[ "$1 $2" = "list devices" ] && {{ echo "  cuda  built: CUDA 13.0; $(cat {said})"; exit; }}
exec {self.fake} "$@"
""")
        self.made(nodes=4)
        self.runs(place.COPY + '(here / "visible").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))\nprint("PASS (exit 0)")\n')
        job = {"SLURM_JOB_ID": "5", "SLURMD_NODENAME": "node0", "CUDA_VISIBLE_DEVICES": "0,1"}

        def expected(here="7 GPUs here: A", gres="gpu:h100:8(S:0-1),nvme:1", kind="healthcheck", **settings):
            """What the run is told by --expect-devices where the driver lists HERE and Slurm GRES."""
            self.node_settings(ASSAY=lists, ASSAY_RANKS="1", ASSAY_PROLOG_EVERY="0", **settings)
            said.write_text(here)
            node.write_text(f"IDLE Gres={gres}\n\n")
            self.assert_code(self.script(f"slurm/{kind}.sh", env=job if kind == "prolog" else {"SLURMD_NODENAME": "node0"}), 0)
            words = (self.dir / "arguments").read_text().split("\n")
            return words[words.index("--expect-devices") + 1] if "--expect-devices" in words else ""

        self.assertEqual(expected(), "8")
        self.assertEqual(expected(kind="prolog"), "", "prologs of a large job begin together")
        self.assertEqual((self.dir / "visible").read_text(), "all", "the GPUs of the job are not all of the node")
        for here in ("8 GPUs here: A", "9 GPUs here: A", "no GPU is used here: no driver", "not built"):
            self.assertEqual(expected(here), "", here)
        for gres in ("(null)", "nvme:8", "gpu:a100_1g.10gb:56"):
            self.assertEqual(expected(gres=gres), "", gres)
        self.assertEqual(expected(ASSAY_OPTIONS="--expect-devices 4"), "4")
        self.assertEqual(expected(ASSAY_OPTIONS="--device cuda"), "8")
        self.assertEqual(expected(ASSAY_OPTIONS="--device host"), "")
        self.beside(77)
        self.assertEqual(expected(), "", "beside other jobs not all of the node is tested")

    def test_a_node_that_passed_is_left_alone_for_a_while(self):
        self.result_of_run(0, nodes=4)
        for runs in (1, 1):
            self.assert_code(self.script("slurm/prolog.sh"), 0)
            self.assertEqual(self.ran(), runs)
        # Passed in the future: the clock was set back.
        stamp = self.dir / "state" / "prolog.passed"
        os.utime(stamp, (time.time() + 86400,) * 2)
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.assertEqual(self.ran(), 2)
        self.assertLess(stamp.stat().st_mtime, time.time() + 60)
        self.node_settings(ASSAY_PROLOG_EVERY="0")
        self.assert_code(self.script("slurm/prolog.sh"), 0)
        self.assertEqual(self.ran(), 3)

    def two_prologs(self, code, **keys):
        """Two jobs start at once; the tests that were run and whether they overlapped."""
        self.node_settings(ASSAY_RANKS="1")
        self.result_of_run(code, **keys)
        alone = 'import time\nos.mkdir(here / "alone")\ntime.sleep(1)\nos.rmdir(here / "alone")\n'
        self.runs(alone + (self.dir / "RUN").read_text())
        prologs = [place.subprocess.Popen([place.SCRIPTS / "slurm" / "prolog.sh"], cwd=self.dir, env={**self.env, "SLURM_JOB_ID": job})
                   for job in ("5", "6")]
        self.assertEqual([prolog.wait(timeout=100) for prolog in prologs], [0, 0])
        self.assertNotIn("exit=1", (self.results / "log").read_text())
        return self.ran()

    def test_two_prologs_at_once_test_the_node_once_where_it_passes(self):
        self.assertEqual(self.two_prologs(0, nodes=4), 1)

    def test_two_prologs_at_once_both_test_a_node_that_does_not_pass(self):
        self.assertEqual(self.two_prologs(3, nodes=4), 2)

    def test_a_job_that_starts_without_a_test_is_in_the_log(self):
        self.program("flock", "#!/bin/sh\nexit 1\n")
        self.assert_code(self.script("slurm/prolog.sh", env={"SLURM_JOB_ID": "5"}), 0)
        self.assertEqual(self.ran(), 0)
        self.assertRegex((self.results / "log").read_text(), r"Z prolog job=5 exit=3 \S+: not tested: another prolog holds \S+/state/prolog.lock\n$")

    def test_the_health_check_brings_back_what_it_drained(self):
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        [drained] = self.calls()
        self.assertTrue(drained.startswith("NodeName=node0 State=DRAIN Reason=assay: healthcheck: node0/"), drained)
        self.result_of_run(0, nodes=4)
        (self.slurm / "node0").write_text(f"DRAINED\n{drained.split('Reason=')[1]}\n")
        shutil.rmtree(self.dir / "state")  # a restart of the node empties /run
        self.node_settings(ASSAY_DRAIN="print")
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertEqual(self.calls()[1:], [])
        self.node_settings()
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertEqual(self.calls()[1:], ["NodeName=node0 State=RESUME"])
        # A node that a night drained later is the night's.
        (self.slurm / "node0").write_text("DRAINED\nassay: node0/cores0-3: slow\n")
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertEqual(len(self.calls()), 2)

    def test_the_health_check_leaves_what_others_drained(self):
        (self.slurm / "node0").write_text("IDLE+DRAIN\nassay: node0/gpu3: slow, by a night\n")
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.result_of_run(0, nodes=4)
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertEqual(self.calls(), [])

    def test_a_launcher_of_another_mpi_gets_no_words_of_open_mpi(self):
        mpich = self.program("assay-of-mpich", f"""#!/bin/bash
[ "$1" = --version ] && {{ echo '  MPI            MPICH 4.0.2'; exit; }}
exec {self.fake} "$@"
""")
        self.node_settings(ASSAY_RANKS="3", ASSAY=mpich)
        self.result_of_run(0, nodes=4)
        self.program("mpirun", f"""#!/bin/bash
[ "$1" = --version ] && {{ echo 'HYDRA build details:'; exit; }}
[ "$1 $2" = "-n 3" ] || {{ echo "unrecognized argument ${{1#--}}"; exit 255; }}
echo "$*" >>{self.dir}/launched
exec "${{@:3}}"
""")
        for kind in ("prolog", "healthcheck"):
            self.assert_code(self.script(f"slurm/{kind}.sh"), 0)
            self.assertRegex((self.results / "log").read_text(), rf" {kind} job=- exit=0 \S+: PASS \(exit 0\)\n$")
        self.assertEqual(len((self.dir / "launched").read_text().splitlines()), 2)
        # A program of Open MPI is not started by it: its ranks would be as many runs of one rank.
        self.node_settings(ASSAY_RANKS="3")
        self.assert_code(self.script("slurm/healthcheck.sh"), 0)
        self.assertEqual(len((self.dir / "launched").read_text().splitlines()), 2)

    def test_a_check_on_this_machine_is_real(self):
        self.node_settings(ASSAY=place.ASSAY, ASSAY_DRAIN="print")
        self.assert_code(self.script("slurm/healthcheck.sh", env={"SLURM_JOB_ID": "9", "PMI_RANK": "3"}), 0)
        # A machine that is too busy may not get through: that is a line, too.
        self.assertRegex((self.results / "log").read_text(), r" healthcheck job=9 exit=(0 \S+: (PASS|WARN) \(exit 0\)|3 \S+: \S.*)\n$")
        if "exit=0" in (self.results / "log").read_text():
            self.assertTrue((self.dir / "state" / "healthcheck.h5").exists())


if __name__ == "__main__":
    place.main()
