# SPDX-License-Identifier: Apache-2.0
"""scripts/soak.sh outside of Slurm: segments follow each other until their number, a signal or the last node."""

import place

SIGNALLED = """
import shutil, signal, time
got = []
signal.signal(signal.{name}, lambda *_: got.append(1))
os.kill(os.getppid(), signal.{name})
while not got:
    time.sleep(0.01)
shutil.copy(here / "made.h5", out)
"""


class Soak(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.fake = self.fake_assay()
        self.settings(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="3")
        self.made(nodes=4)
        self.count("")

    def count(self, text):
        """What a run does: `text`, after it has told that it ran."""
        self.runs('(here / "ran").open("a").write("x")\n' + (text or place.COPY))

    def soak(self, code):
        """Runs a soak to its end; its directory and the number of segments."""
        result = self.script("soak.sh")
        self.assert_code(result, code)
        directory = next(self.results.glob("*/soak-*"))
        summary = (directory / "summary.txt").read_text()
        self.assertEqual(result.stdout, summary)
        self.assertEqual(summary.splitlines()[1], f"{directory}/segments")
        self.assertNotIn("no results file", summary)
        self.assertRegex((self.results / "log").read_text().splitlines()[-1], " soak job=- exit=%d assay soak " % code)
        ran = len((self.dir / "ran").read_text())
        self.assertEqual(len(list((directory / "segments").iterdir())), ran)
        return directory, ran

    def test_all_segments_are_summed_up(self):
        self.assertEqual(self.soak(0)[1], 3)

    def test_a_soak_without_results_is_inconclusive_and_says_why(self):
        self.settings(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="2")
        self.count('print("the fabric is on fire", file=sys.stderr); sys.exit(1)\n')
        result = self.script("soak.sh")
        self.assert_code(result, 3)
        self.assertEqual(len((self.dir / "ran").read_text()), 2)
        self.assertIn(": INCONCLUSIVE (exit 3)\nno results file\n", result.stdout)
        self.assertRegex(result.stdout, r"\nno results: .*\b1\nthe fabric is on fire\n$")
        self.assertRegex((self.results / "log").read_text().splitlines()[-1], " soak job=- exit=3 assay soak ")

    def test_options_that_set_the_length_of_a_segment_are_refused(self):
        for options, words in (("", ["--duration", "8h"]), ("", ["--segment=1h"]), ("--duration=8h", [])):
            self.settings(ASSAY=self.fake, ASSAY_OPTIONS=options)
            result = self.script("soak.sh", *words)
            self.assert_code(result, 4)
            self.assertRegex(result.stderr, r"^soak.sh: --duration and --segment: .*ASSAY_SOAK_MINUTES\n$")
        self.assertEqual([(self.dir / "ran").exists(), self.results.exists()], [False, False])

    def test_a_signal_ahead_of_the_time_limit_ends_the_soak(self):
        # The run ends in order; the soak's own process is the parent of `assay run`.
        self.count(SIGNALLED.format(name="SIGUSR1"))
        self.assertEqual(self.soak(0)[1], 1)

    def test_a_signal_while_a_segment_is_judged_ends_the_soak(self):
        real = self.fake.rename(self.dir / "bin" / "real")
        self.program("assay-under-test", f'#!/bin/bash\ncase "$*" in verdict*run.h5*) kill -USR1 $PPID ;; esac\nexec {real} "$@"\n')
        self.assertEqual(self.soak(0)[1], 1)

    def slurm(self, states="", lost="NODE_FAIL"):
        """Stands for Slurm: `submitted` is what sbatch was told, `watch` of the job that waits; `cancelled` are the jobs that were
        taken back. Returns the environment of a job on node[0-3]."""
        self.program("squeue", "#!/bin/sh\necho 45:00\n")
        self.program("scontrol", '#!/bin/sh\n[ "$*" = "show hostnames node[0-3]" ] && exec printf "node0\\nnode1\\nnode2\\nnode3\\n"\n'
                                 f'[ "$*" = "show job -o 7" ] && exec echo "JobId=7 JobName=assay-soak JobState={lost} Reason=None"\n')
        self.program("sinfo", f"#!/bin/sh\nprintf '{states}'\n")
        self.program("sbatch", f'#!/bin/sh\ncase "$*" in *--dependency=*) echo "$@" >{self.dir}/watch; echo 99 ;; *) echo "$@" >{self.dir}/submitted ;; esac\n')
        self.program("scancel", f'#!/bin/sh\necho "$@" >>{self.dir}/cancelled\n')
        return {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "4", "SLURM_JOB_NODELIST": "node[0-3]"}

    def test_a_job_submits_the_next_segment_unless_it_is_cancelled(self):
        for name, submitted in (("SIGUSR1", True), ("SIGTERM", False)):
            job = self.slurm()
            self.count(SIGNALLED.format(name=name))
            self.assert_code(self.script("soak.sh", env={**job, "SLURM_JOB_ID": name}), 0)
            self.assertEqual((self.dir / "submitted").exists(), submitted, name)
            (self.dir / "submitted").unlink(missing_ok=True)
            self.assertNotEqual(bool(list(self.results.glob(f"*/soak-{name}/summary.txt"))), submitted, name)

    def test_the_next_segment_stays_on_the_nodes_of_the_first(self):
        job = self.slurm()
        self.assert_code(self.script("soak.sh", env=job), 0)
        line = (self.dir / "submitted").read_text()
        self.assertRegex(line, r"^--nodes=4 --nodelist=node0,node1,node2,node3 --export=ALL,ASSAY_SOAK_DIRECTORY=\S+,ASSAY_SOAK_NUMBER=2 "
                               r"--time=45:00 \S+/soak.sbatch\n$")
        job.update(SLURM_JOB_PARTITION="burnin", SLURM_JOB_ACCOUNT="ops", SLURM_JOB_QOS="(null)", SLURM_JOB_RESERVATION="new", SLURM_JOB_ID="8")
        self.assert_code(self.script("soak.sh", "--suites", "gemm", env=job), 0)
        line = (self.dir / "submitted").read_text()
        self.assertIn(" --partition=burnin --account=ops --reservation=new --time=45:00 ", line)
        self.assertTrue(line.endswith("/soak.sbatch --suites gemm\n"), line)
        for said, gres in [("gres:gpu:8,gres:nvme:1", "gpu:8,nvme:1"), ("gres/gpu:h100:8", "gpu:h100:8")]:
            self.program("scontrol", f'#!/bin/sh\n[ "$1 $2" = "show job" ] && exec echo "JobId=$4 Power= TresPerNode={said} MailUser=x"\necho node0\n')
            self.assert_code(self.script("soak.sh", env=job | {"SLURM_JOB_ID": gres[-1] + "9"}), 0)
            self.assertIn(f" --reservation=new --gres={gres} --time=45:00 ", (self.dir / "submitted").read_text())

    def test_many_nodes_are_no_word_of_a_command_line(self):
        names = [f"cluster-rack{i // 64:03}-node{i:05}" for i in range(12500)]
        (self.dir / "names").write_text("\n".join(names) + "\n")
        job = self.slurm()
        self.program("scontrol", f'#!/bin/bash\n[ "$2" = hostnames ] && exec cat {self.dir}/names\n[ "$2" = hostlist ] || exit 1\ncat "$3" >{self.dir}/list\necho "n[3-4]"\n')
        self.assert_code(self.script("soak.sh", env=job), 0)
        self.assertRegex((self.dir / "submitted").read_text(), r"^--nodes=12500 --nodelist=n\[3-4\] --export=ALL,")
        self.assertEqual((self.dir / "list").read_text().split(), names)
        # Without a list the next job would get nodes of Slurm's choice.
        (self.dir / "submitted").unlink()
        self.program("scontrol", f'#!/bin/bash\n[ "$2" = hostnames ] && exec cat {self.dir}/names\nexit 1\n')
        result = self.script("soak.sh", env=job | {"SLURM_JOB_ID": "8"})
        self.assertIn("soak.sh: segment 2 cannot be submitted\n", result.stderr)
        self.assertFalse((self.dir / "submitted").exists())

    def test_a_job_waits_for_the_loss_of_this_one_until_its_end(self):
        job = self.slurm() | {"SLURM_JOB_PARTITION": "burnin"}
        self.count('(here / "seen").write_text((here / "watch").read_text())\nassert not (here / "cancelled").exists()\n' + place.COPY)
        self.assert_code(self.script("soak.sh", "--suites", "gemm", env=job), 0)
        self.assertRegex((self.dir / "seen").read_text(), r"^--parsable --nodes=1 --dependency=afternotok:7 --kill-on-invalid-dep=yes "
                         r"--export=ALL,ASSAY_SOAK_DIRECTORY=\S+/soak-7,ASSAY_SOAK_NUMBER=1,ASSAY_SOAK_LOST=7 --partition=burnin --time=45:00 "
                         r"\S+/soak.sbatch --suites gemm\n$")
        self.assertEqual((self.dir / "cancelled").read_text(), "99\n")

    def lost(self, state, results=True):
        """What the job that waited does after job 7 ended in `state`: its result, and the directory of the soak."""
        directory = self.dir / "soak"
        (directory / "seg01").mkdir(parents=True)
        (directory / "asked.txt").write_text("node0\nnode1\nnode2\nnode3\n")
        if results:
            place.subprocess.run(["cp", self.dir / "made.h5", directory / "seg01" / "run.launch1.h5"], check=True)
        job = self.slurm("state node1 down*\\n", state) | {"SLURM_JOB_ID": "8", "SLURM_JOB_NODELIST": "node3", "SLURM_JOB_NUM_NODES": "1"}
        result = self.script("soak.sh", env=job | {"ASSAY_SOAK_DIRECTORY": str(directory), "ASSAY_SOAK_NUMBER": "1", "ASSAY_SOAK_LOST": "7"})
        self.assertFalse((self.dir / "ran").exists(), "it measures nothing itself")
        return result, directory

    def test_the_job_that_waited_keeps_what_was_measured_and_submits_the_next_segment(self):
        result, directory = self.lost("NODE_FAIL")
        self.assert_code(result, 0)
        self.assertEqual([path.name for path in (directory / "segments").iterdir()], ["seg01.h5"])
        self.assertRegex((self.dir / "submitted").read_text(), "^--nodes=3 --nodelist=node0,node2,node3 .*ASSAY_SOAK_NUMBER=2 ")
        self.assertEqual((directory / "absent.txt").read_text(), "segment 1: its job 7 was lost (NODE_FAIL)\nsegment 2 without node1 (down*)\n")

    def test_a_lost_job_without_results_is_told(self):
        result, directory = self.lost("NODE_FAIL", results=False)
        self.assert_code(result, 3)
        self.assertIn("ASSAY_SOAK_NUMBER=2 ", (self.dir / "submitted").read_text())
        self.assertRegex((self.results / "log").read_text(), r" soak job=8 exit=3 segment 1 of 3: its job 7 was lost \(NODE_FAIL\) \S+/seg01\n$")

    def test_a_soak_that_is_cancelled_and_killed_is_summed_up(self):
        result, directory = self.lost("CANCELLED")
        self.assert_code(result, 0)
        self.assertFalse((self.dir / "submitted").exists())
        self.assertTrue((directory / "summary.txt").read_text().endswith("\nsegment 1: its job 7 was lost (CANCELLED)\n"))

    def test_nodes_that_failed_or_are_down_are_left_out_of_the_next_segment(self):
        self.made(nodes=4, slow="node1", factor=0.5)
        job = self.slurm("state node0 alloc\\nstate node1 drng\\nstate node2 alloc\\nstate node3 down*\\nstate other down\\n")
        self.assert_code(self.script("soak.sh", env=job), 2)
        self.assertIn("--nodes=2 --nodelist=node0,node2 ", (self.dir / "submitted").read_text())
        directory = next(self.results.glob("*/soak-7"))
        # One that is back takes part again; the last job has only those that were there.
        job = self.slurm("state node3 idle\\n") | {"SLURM_JOB_ID": "8", "SLURM_JOB_NODELIST": "node[0,2]", "SLURM_JOB_NUM_NODES": "2"}
        self.made(nodes=4, seed=2)
        self.assert_code(self.script("soak.sh", env=job | {"ASSAY_SOAK_DIRECTORY": str(directory), "ASSAY_SOAK_NUMBER": "2"}), 0)
        self.assertIn("--nodes=3 --nodelist=node0,node2,node3 ", (self.dir / "submitted").read_text())
        self.assert_code(self.script("soak.sh", env=job | {"ASSAY_SOAK_DIRECTORY": str(directory), "ASSAY_SOAK_NUMBER": "3"}), 2)
        self.assertTrue((directory / "summary.txt").read_text().endswith("\nsegment 2 without node3 (down*)\n"), "told to the reader")

    def test_a_chain_that_cannot_go_on_is_summed_up(self):
        job = self.slurm()
        self.program("sbatch", "#!/bin/sh\nexit 1\n")
        result = self.script("soak.sh", env=job)
        self.assert_code(result, 0)
        self.assertIn("soak.sh: segment 2 cannot be submitted\n", result.stderr)
        self.assertIn(": PASS (exit 0), 4 PASS\n", result.stdout)
        self.slurm("".join(f"state node{node} down\\n" for node in range(4)))
        result = self.script("soak.sh", env=job | {"SLURM_JOB_ID": "8"})
        self.assertIn("soak.sh: no node is left for the next segment\n", result.stderr)
        self.assertTrue(result.stdout.endswith("\nsegment 2 without node3 (down)\n"), result.stdout)

    def test_nodes_that_failed_sleep_while_others_are_left(self):
        self.made(nodes=4, slow="node1", factor=0.5)
        directory, ran = self.soak(2)
        self.assertEqual((ran, (directory / "failed.txt").read_text()), (3, "node1\n"))
        self.assertIn(f"--exclude\n{directory}/seg03/exclude.txt\n", (self.dir / "arguments").read_text())
        self.assertEqual((directory / "seg03" / "exclude.txt").read_text(), "node1\n")

    def test_ends_of_a_slow_link_stay_in_the_soak(self):
        fault = ["--fault", "slow:node=3,nic=0,percent=50", "--fault", "slowlink:pair=5>6,percent=60"]
        place.subprocess.run([place.ASSAY, "simulate", "--nodes", "8", "--metrics", "gemm,p2p", *fault, "--force", "-o", "made.h5"], cwd=self.dir, capture_output=True)
        directory, _ = self.soak(2)
        failed = [line.split(": ")[0] for line in (directory / "seg01" / "nodes.txt").read_text().splitlines() if " FAIL " in line]
        self.assertEqual(failed, ["sim03 FAIL sim03 (sim03/nic0)"] + [f"sim0{node} FAIL sim05/gpu0>sim06/gpu0" for node in (5, 6)])
        self.assertEqual((directory / "failed.txt").read_text(), "sim03\n")

    def test_members_of_a_slow_cluster_stay_in_the_soak(self):
        real = self.fake.rename(self.dir / "bin" / "real")
        finding = '{"severity":"FAIL","claim":"fact","level":"cluster","name":"cluster","text":"cluster: 4 parts are slow"}'
        self.program("assay-under-test", f"""#!/bin/bash
case "$*" in *verdict*run.h5*--nodes*) {real} "$@"; cd "$(dirname "$2")"
  printf 'node%s FAIL cluster: 4 parts are slow\\n' 0 1 2 3 >nodes.txt; echo '{{"findings":[{finding}]}}' >verdict.json; exit 2 ;; esac
exec {real} "$@"
""")
        directory, ran = self.soak(0)
        self.assertEqual((ran, (directory / "failed.txt").read_text()), (3, ""))

    def test_nodes_that_the_options_exclude_stay_out_with_those_that_failed(self):
        self.made(nodes=4, slow="node1", factor=0.5)
        (self.dir / "out.txt").write_text("node7\nnode8\n")
        for number, (options, words, lines) in enumerate([("--exclude node[4-5],node9", [], "node[4-5],node9\n"), ("--exclude node9", ["--exclude=out.txt"], "node7\nnode8\n")]):
            self.settings(ASSAY=self.fake, ASSAY_SOAK_SEGMENTS="2", ASSAY_OPTIONS=options)
            results = self.dir / f"soak{number}"
            self.assert_code(self.script("soak.sh", *words, env={"ASSAY_SOAK_DIRECTORY": str(results)}), 2)
            self.assertEqual((results / "seg02" / "exclude.txt").read_text(), "node1\n" + lines)
            arguments = (self.dir / "arguments").read_text()
            self.assertIn(f"--exclude\n{results}/seg02/exclude.txt\n", arguments)
            self.assertEqual(arguments.count("--exclude"), 1)

    def test_without_a_node_left_the_soak_ends_with_its_summary(self):
        # Every segment has one node, and the next would have none.
        done = place.subprocess.run([place.ASSAY, "simulate", "--nodes", "1", "--metrics", "gemm", "--fault", "bitflip:node=0,target=gemm", "--force", "-o", "made.h5"],
                                    cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.count("if '--exclude' in sys.argv: sys.exit(4)\n" + place.COPY)
        directory, ran = self.soak(2)
        self.assertEqual(ran, 1)
        self.assertRegex((directory / "summary.txt").read_text(), r"^assay soak \S+: FAIL \(exit 2\), 1 FAIL: ")


if __name__ == "__main__":
    place.main()
