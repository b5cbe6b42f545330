# SPDX-License-Identifier: Apache-2.0
"""scripts/launch.sh: how many ranks a node gets, and how mpirun and srun are told so."""

import os
import pathlib
import shutil
import subprocess

import place

LIST = """#!/bin/sh
[ "$1 $2" = "list devices" ] && printf 'Devices\\n  host  built: CPU cores\\n  cuda  built: CUDA 13.0;%s\\n' "$(cat {said})"
"""


class Launch(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.said = self.dir / "said"
        self.gpus("no GPU is used here: no driver")
        self.assay = self.program("assay", LIST.format(said=self.said))

    def gpus(self, text):
        self.said.write_text(" " + text)

    def shell(self, command, **env):
        clean = {key: value for key, value in self.env.items() if not key.startswith(("SLURM_", "PBS_", "OMPI_"))}
        result = subprocess.run(["bash", "-c", f"set -u; . {place.SCRIPTS}/launch.sh; {command}"], cwd=self.dir, capture_output=True, text=True,
                                env={**clean, "ASSAY": str(self.assay), "ASSAY_RANKS": "auto", **env})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def words(self, launch, **env):
        return self.shell('launch_words; echo "${launch[*]-}"', ASSAY_LAUNCH=launch, **env).strip()

    def test_a_rank_for_every_gpu_else_for_every_socket(self):
        sockets = {pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id").read_text() for cpu in os.sched_getaffinity(0)}
        self.assertEqual(self.shell("launch_ranks_here"), f"{len(sockets)}\n")
        # The list is wrapped, wherever that falls.
        for text, ranks in [("8\n    GPUs here: A (0), B (1)", 8), ("1 GPU\n   here: A (0)", 1), ("16 GPUs here:\n   A", 16)]:
            self.gpus(text)
            self.assertEqual(self.shell("launch_ranks_here"), f"{ranks}\n", text)

    def test_the_cpus_of_this_process_are_all_of_them(self):
        self.assertEqual([int(cpu) for cpu in self.shell("launch_cpus").split()], sorted(os.sched_getaffinity(0)))

    def test_mpirun_and_srun_are_told(self):
        self.gpus("2 GPUs here: A, B")
        self.assertRegex(self.words("mpirun --mca btl self"), r"^mpirun --mca btl self --map-by ppr:2:node --oversubscribe --bind-to none\b")
        self.assertEqual(self.words("srun --mpi=pmix", SLURM_JOB_ID="1", SLURM_JOB_NUM_NODES="4"),
                         "srun --mpi=pmix --ntasks-per-node=2 --ntasks=8 --cpu-bind=none")
        self.assertIn("ppr:3:node", self.words("mpirun", ASSAY_RANKS="3"))
        self.assertIn("ppr:5:node", self.words("mpirun", SLURM_JOB_ID="1", SLURM_NTASKS_PER_NODE="5"), "the user's own wish")
        self.assertIn("mpi_yield_when_idle 0", self.words("mpirun", ASSAY_RANKS="1"), "a core for every rank")
        self.assertNotIn("mpi_yield_when_idle", self.words("mpirun", ASSAY_RANKS="9000"))

    def test_the_steps_of_a_job_have_the_environment_of_its_script(self):
        """Whatever sbatch was told to hand on to the script, srun and the daemons of mpirun hand on what that has."""
        for launch in ["srun --mpi=pmix", "mpirun", "mpirun -n 4"]:
            for told in ["NONE", "ASSAY_SITE=/x", ""]:
                said = self.shell('launch_words; printenv SLURM_EXPORT_ENV', ASSAY_LAUNCH=launch, SLURM_JOB_ID="7", SLURM_EXPORT_ENV=told)
                self.assertEqual(said, "ALL\n", (launch, told))
        self.assertEqual(self.shell('launch_words; echo "$SLURM_EXPORT_ENV"', ASSAY_LAUNCH="srun -n 2", SLURM_EXPORT_ENV="NONE"), "NONE\n", "a job of its own")

    ALONE = "OverSubscribe=NO Contiguous=0 Licenses=(null)"

    def gpus_of_steps(self, launch, nodes, job=ALONE, **env):
        """What the job steps of a launch in job 7 ask for, where scontrol says NODES and JOB."""
        self.program("scontrol", f"""#!/bin/bash
case "$*" in
  "show job -o 7") echo 'JobId=7 JobName=night TRES=cpu=64,gres/gpu=8 {job} Command=/x/gpu.sh' ;;
  "show node -o n[1-2]") printf '{nodes}' ;;
  *) exit 1 ;;
esac
""")
        clean = {name: "" for name in ("SLURM_STEP_GRES", "SLURM_GRES")}
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2", "SLURMD_NODENAME": "n1", "ASSAY_RANKS": "1"}
        return self.shell('launch_words 2>&1; env -u SLURM_STEP_GRES bash -c "echo \\${SLURM_GRES:-none}"', **{**clean, **job, "ASSAY_LAUNCH": launch, **env}).strip()

    def test_steps_of_a_job_that_has_its_nodes_for_itself_ask_for_their_gpus(self):
        node = "NodeName=n1 Arch=x86_64 {} NodeAddr=n1 State=ALLOCATED AllocTRES=gres/gpu=9\\n".format
        typed, plain = node("Gres=gpu:h100:8(S:0-1),nvme:1"), node("Gres=gpu:4(S:0,2),gpu:a100:2,gpu")
        for launch in ["srun --mpi=pmix", "srun -n 16", "/opt/slurm/bin/srun", "mpirun", "mpirun -N 8", "srun --gres-flags=disable-binding"]:
            self.assertEqual(self.gpus_of_steps(launch, typed * 2), "gpu:8", launch)
        self.assertEqual(self.gpus_of_steps("srun", plain), "gpu:7")
        # A step asks for as many on each node: of different ones some would stay untested, and nothing would say so.
        differ = "the nodes have {} to 8 GPUs by Slurm, and a step asks for as many on each: none are asked for (sbatch --gres can)\nnone"
        self.assertEqual(self.gpus_of_steps("srun", typed + plain), differ.format(7))
        self.assertEqual(self.gpus_of_steps("srun", typed + node("Gres=(null)")), differ.format(0))
        self.assertEqual(self.gpus_of_steps("srun", typed, job="OverSubscribe=NO Exclusive=NODE Contiguous=0"), "gpu:8")
        for nodes in [node("Gres=(null)") * 2, node("Gres=gpus:8"), node("Gres=shard:8,nvme:2"), node("CfgTRES=cpu=8"), ""]:
            self.assertEqual(self.gpus_of_steps("srun", nodes), "none", nodes)

    def test_where_somebody_asks_for_gpus_the_steps_do_not(self):
        nodes = "NodeName=n1 Gres=gpu:8\\n"
        for launch in ["srun --gres=gpu:4", "srun --gres gpu:4", "srun --gpus=8", "srun -G 8", "srun -G8", "srun --gpus-per-node=4", "srun --gpus-per-task 1",
                       "mpirun --mca plm_slurm_args --gres=gpu:4", "flux run", ""]:
            self.assertEqual(self.gpus_of_steps(launch, nodes), "none", launch)
        for asked in ["TresPerNode=gres:gpu:8", "TresPerNode=gres/gpu:h100:8", "TresPerJob=gres:nvme:1,gres:gpu:16", "Gres=gpu:8", "TresPerNode=gres:none"]:
            self.assertEqual(self.gpus_of_steps("srun", nodes, job=f"{self.ALONE} {asked}"), "none", asked)
        self.assertEqual(self.gpus_of_steps("srun", nodes, job=f"{self.ALONE} TresPerNode=gres:nvme:1"), "gpu:8")
        self.assertEqual(self.gpus_of_steps("srun", nodes, SLURM_GRES="gpu:2"), "gpu:2")
        for name in ["SLURM_STEP_GRES", "SLURM_GPUS_PER_NODE", "SLURM_GPUS"]:
            self.assertEqual(self.gpus_of_steps("srun", nodes, **{name: "2"}), "none", name)
        # A job that shares its nodes has no GPUs without asking, and outside a job srun makes one of its own.
        for job in ["OverSubscribe=OK Contiguous=0", "OverSubscribe=NO Exclusive=NO Contiguous=0"]:
            self.assertEqual(self.gpus_of_steps("srun", nodes, job=job), "none", job)
        self.assertEqual(self.gpus_of_steps("srun -n 2", nodes, SLURM_JOB_ID=""), "none")

    def test_mpirun_gets_the_hosts_of_a_job_of_pbs_or_lsf(self):
        hosts = self.dir / "123.server"
        hosts.write_text("n1\nn1\nn2\nn2\nn3\nn3\n")
        nodes = 'launch_words; echo "${launch[*]-} $(launch_job_nodes "${launch[@]}")"'
        for job in [{"PBS_NODEFILE": str(hosts), "PBS_JOBID": "1"}, {"LSB_DJOB_HOSTFILE": str(hosts), "LSB_JOBID": "1"}]:
            self.program("mpirun", "#!/bin/bash\necho 'mpirun (Open MPI) 4.1.4'\n")
            self.assertRegex(self.words("mpirun", **job), rf"^mpirun --hostfile {hosts} --map-by ppr:\d+:node ")
            self.assertEqual(self.words("mpirun -n 6", **job), f"mpirun -n 6 --hostfile {hosts}")
            # It can be told others; the list that it would get is its own where it is told that one.
            for words, count in [("mpirun -n 6", 3), (f"mpirun -n 6 --hostfile {hosts}", 3), (f"mpirun -n 6 -machinefile={hosts}", 3), ("mpirun -n 4 --host n1:2,n2:2", "")]:
                said = self.shell(nodes, ASSAY_LAUNCH=words, **job).strip()
                self.assertEqual(said, f"{words}{'' if 'file' in words or 'host' in words else f' --hostfile {hosts}'} {count}".strip())
            self.assertEqual(self.words("jsrun -a 1", **job), "jsrun -a 1")
            self.assertEqual(self.words("mpirun -n 6", SLURM_JOB_ID="1", **job), "mpirun -n 6")
            self.assertEqual(self.words("mpirun -n 6", **{name: "/nonexistent" for name in job}), "mpirun -n 6")
            # Lost nodes are left out of it.
            words = ["mpirun", "--hostfile", str(hosts), "-n", "6"]
            self.assertEqual(self.started(*words, nodes="--without=n2", **job), "mpirun --host n1:2,n3:2 -n 4 assay run --level smoke")
        # Hydra finds them by itself; the run must have them all the same.
        self.program("mpirun", "#!/bin/bash\necho 'HYDRA build details:'\n")
        self.assertEqual(self.shell(nodes, ASSAY_LAUNCH="mpirun", **job), "mpirun 3\n")

    def test_a_job_of_pbs_must_have_all_of_its_nodes_but_those_that_are_left_out(self):
        self.program("mpirun", "#!/bin/bash\necho 'mpirun (Open MPI) 4.1.4'\n")
        (self.dir / "nodes").write_text("n1\nn2\nn2\n")
        self.made(nodes=2)
        self.runs(place.COPY)
        job = {"PBS_NODEFILE": str(self.dir / "nodes"), "PBS_JOBID": "1", "SLURM_JOB_ID": ""}
        for options, words, expected in [("", [], ["--expect-nodes", "2"]), ("--expect-nodes 3", [], ["--expect-nodes", "3"]), ("", ["--expect-nodes=1"], ["--expect-nodes=1"]),
                                         ("--exclude n1", [], []), ("", ["--only=n1"], [])]:
            self.settings(ASSAY=self.fake_assay(), ASSAY_LAUNCH="mpirun", ASSAY_OPTIONS=options)
            self.script("acceptance.sh", *words, env=job)
            arguments = (self.dir / "arguments").read_text().split("\n")
            at = [index for index, word in enumerate(arguments) if word.startswith("--expect-nodes")]
            self.assertEqual([word for index in at for word in arguments[index:index + (1 if "=" in arguments[index] else 2)]], expected)
        self.settings(ASSAY=self.fake_assay(), ASSAY_LAUNCH="mpirun --host n1")
        self.script("acceptance.sh", env=job)
        self.assertNotIn("--expect-nodes", (self.dir / "arguments").read_text())

    def test_what_says_its_ranks_itself_is_left_as_it_is(self):
        for launch in ["mpirun -n 4", "mpirun --npernode 2", "mpirun -N 2", "mpirun -c 2", "mpirun --map-by ppr:1:socket", "mpirun --map-by=node",
                       "mpirun -pernode", "srun --ntasks=3", "srun -n 3", "srun -n3", "srun --ntasks-per-node 2", "srun --tasks-per-node=2",
                       "jsrun -a 1", "aprun -N 1", "flux run -N 4", ""]:
            self.assertEqual(self.words(launch), launch)

    def test_nodes_and_cpus_of_srun_are_no_ranks(self):
        job = {"ASSAY_RANKS": "2", "SLURM_JOB_ID": "1", "SLURM_JOB_NUM_NODES": "8"}
        for words, ranks in [("-N 4", " --ntasks=8"), ("-N4", " --ntasks=8"), ("--nodes=4", " --ntasks=8"), ("--nodes 4", " --ntasks=8"),
                             ("-N 2-4", ""), ("-w n[1-3]", ""), ("-wn1", ""), ("--nodelist=n1 -N 1", " --ntasks=2"), ("-c 16", " --ntasks=16"), ("--network=x --nice", " --ntasks=16")]:
            self.assertEqual(self.words(f"srun --mpi=pmix {words}", **job), f"srun --mpi=pmix {words} --ntasks-per-node=2{ranks} --cpu-bind=none")

    def started(self, *words, nodes="", **env):
        """What is started where node `n2` was lost."""
        for name in ("mpirun", "srun"):
            self.program(name, '#!/bin/bash\necho "${0##*/} $*"\n')
        self.program("scontrol", "#!/bin/bash\nprintf 'n1\\nn2\\nn3\\n'\n")
        return self.shell(f"bash {place.SCRIPTS}/launch.sh start {nodes} {' '.join(words)} -- assay run --level smoke", **env).strip()

    def test_lost_nodes_are_left_out_of_the_next_launch(self):
        hosts = self.dir / "hosts"
        hosts.write_text("# nodes\nn1 slots=2\nn2.cluster\nn3\nn1\n")
        srun, run = ["srun", "--ntasks-per-node=2", "--ntasks=6"], "assay run --level smoke"
        self.assertEqual(self.started(*srun), f"{' '.join(srun)} {run}")
        lost = {"nodes": "--without=n2,n9"}
        self.assertEqual(self.started(*srun, **lost, SLURM_JOB_NODELIST="n[1-3]"),
                         f"{' '.join(srun)} --nodes=2 --nodelist=n1,n3 --ntasks=4 {run}")
        self.assertEqual(self.started("mpirun", "--hostfile", str(hosts), "--map-by", "ppr:2:node", **lost),
                         f"mpirun --host n1:3,n3:auto --map-by ppr:2:node {run}")
        self.assertEqual(self.started("mpirun", "--host", "n1:4,n2:4,n3,n3", **lost), f"mpirun --host n1:4,n3:2 {run}")
        self.assertEqual(self.started("mpirun", **lost, PBS_NODEFILE=str(hosts)), f"mpirun --host n1:3,n3:auto {run}")
        # The nodes that the launcher names are those of the launch, not all of the job.
        self.assertEqual(self.started("mpirun", "-H", "n2:2,n3:2", **lost, SLURM_JOB_NODELIST="n[1-3]"), f"mpirun --host n3:2 {run}")
        self.assertEqual(self.started("mpirun", f"--hostfile={hosts}", **lost), f"mpirun --host n1:3,n3:auto {run}")
        self.assertEqual(self.started("mpirun", "--host=n1:4,n2:4", **lost), f"mpirun --host n1:4 {run}")
        hosts.write_text("\t# spare\nn1 slots=4 # slots=9\r\n\t\nn2 slots=4\n")
        self.assertEqual(self.started("mpirun", "--hostfile", str(hosts), **lost), f"mpirun --host n1:4 {run}")
        # Where no node is known, or the launcher cannot be told, the run leaves them out by itself.
        self.assertEqual(self.started("mpirun", **lost), f"mpirun {run}")
        self.assertEqual(self.started("echo", **lost, SLURM_JOB_NODELIST="x"), run)

    def test_the_nodes_of_srun_are_those_it_is_told(self):
        run, lost = "assay run --level smoke", {"nodes": "--without=n2", "SLURM_JOB_NODELIST": "n[1-9]"}
        self.assertEqual(self.started("srun", "-x", "n3", **lost), f"srun -x n3 --nodes=1 --nodelist=n1 {run}")
        # What scontrol is asked is what was said.
        asked = '#!/bin/bash\n[ "$3" = "n[1-2]" ] && printf \'n1\\nn2\\n\'\n'
        self.program("srun", '#!/bin/bash\necho "$*"\n')
        self.program("scontrol", asked)
        for words in ["-w n[1-2]", "-wn[1-2]", "--nodelist=n[1-2]"]:
            said = self.shell(f"set -f; bash {place.SCRIPTS}/launch.sh start --without=n2 srun {words} -- assay", SLURM_JOB_NODELIST="n[1-9]")
            self.assertEqual(said, f"{words} --nodes=1 --nodelist=n1 assay\n")

    def test_a_number_of_all_ranks_becomes_that_of_the_nodes_that_are_left(self):
        run, lost = "assay run --level smoke", {"nodes": "--without=n2"}
        hosts = "n1:4,n2:4,n3:4,n4:4"
        for option in ["-np", "-n", "--np", "-c"]:
            self.assertEqual(self.started("mpirun", "--host", hosts, option, "16", **lost), f"mpirun --host n1:4,n3:4,n4:4 {option} 12 {run}")
        self.assertEqual(self.started("srun", "-n", "6", **lost, SLURM_JOB_NODELIST="n[1-3]"),
                         f"srun -n 6 --nodes=2 --nodelist=n1,n3 --ntasks=4 {run}")

    def test_nodes_are_chosen_by_lists_with_brackets_and_files(self):
        hosts = ",".join(f"n{i:02}.cluster:2" for i in range(1, 13))
        for choice, left in [("--only=n[03-04,11],n12", "03 04 11 12"), ("--without=n[01-09],n12.cluster", "10 11"), ("--only=n1,n[2-3]", "")]:
            kept = ",".join(f"n{node}.cluster:2" for node in left.split()) or hosts
            self.assertEqual(self.started("mpirun", "--host", hosts, nodes=choice), f"mpirun --host {kept} assay run --level smoke", choice)
        (self.dir / "lost").write_text("n01,n02,n[04-12]")
        self.assertEqual(self.started("mpirun", "--host", hosts, nodes=f"--without={self.dir}/lost"),
                         "mpirun --host n03.cluster:2 assay run --level smoke")

    def test_ten_thousand_nodes_are_no_word_of_a_command_line(self):
        names = [f"cluster-rack{i // 64:03}-node{i:05}" for i in range(12500)]
        (self.dir / "hosts").write_text("".join(f"{name} slots=8\n" for name in names))
        self.program("mpirun", '#!/bin/bash\n[ "$1" = --hostfile ] && cat "$2" && cat "$2" | wc -l\n')
        start = f"bash {place.SCRIPTS}/launch.sh start --without={names[1]},{names[-1]}"
        said = self.shell(f"{start} mpirun --hostfile hosts -- assay").splitlines()
        left = [names[0], *names[2:-1]]
        self.assertEqual(said, [f"{name} slots=8" for name in left] + [str(len(left))])
        self.program("srun", '#!/bin/bash\necho "$*"\n')
        self.program("scontrol", '#!/bin/bash\n[ "$2" = hostnames ] && { awk \'{ print $1 }\' hosts; exit; }\ncat "$3" >list\necho n[3-4]\n')
        said = self.shell(f"{start} srun --ntasks-per-node=2 -- assay", SLURM_JOB_NODELIST="n")
        self.assertEqual(said, "--ntasks-per-node=2 --nodes=12498 --nodelist=n[3-4] --ntasks=24996 assay\n")
        self.assertEqual((self.dir / "list").read_text().split(), left)

    def test_the_nodes_that_are_left_keep_their_slots(self):
        """Else the real mpirun refuses to start as many ranks again."""
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun on this machine")
        hosts = self.dir / "hosts"
        for line in ["localhost slots=3", "localhost\nlocalhost\nlocalhost"]:
            hosts.write_text(f"{line}\nn2 slots=3\n")
            for bytes in "100000", "1":  # as a word, and as a file
                said = self.shell(f"bash {place.SCRIPTS}/launch.sh start --without=n2 mpirun --hostfile hosts --map-by ppr:3:node --bind-to none -- echo started",
                                  OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", ASSAY_WORD_BYTES=bytes)
                self.assertEqual(said, "started\n" * 3)

    def test_a_run_is_given_its_launcher(self):
        words = self.shell('launch=(mpirun --tag "a b"); launch_options; printf "%s\\n" "${launcher[@]}"').splitlines()
        self.assertEqual(words, ["--launcher", f"bash '{place.SCRIPTS}/launch.sh' start --without={{exclude}} 'mpirun' '--tag' 'a b' '--'"])
        self.assertEqual(self.shell('launch=(); launch_options; printf "%s" "${launcher[@]}"'), "")

    def test_hosts_of_its_own_are_asked(self):
        # As on a machine that starts nights on others: it has no GPU, they have 4.
        self.program("mpirun", "#!/bin/bash\n[ \"$1\" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit; }\necho ranks=4 gpus=4; echo ranks=4 gpus=4\n")
        self.assertIn("ppr:4:node", self.words("mpirun --hostfile hosts"))
        # Outside of a job srun makes one, whose nodes are others than this machine.
        self.program("srun", "#!/bin/bash\necho 0: ranks=4 gpus=4\necho 1: ranks=4 gpus=4\n")
        self.assertEqual(self.words("srun -N 16"), "srun -N 16 --ntasks-per-node=4 --ntasks=64 --cpu-bind=none")
        # A question that waits in the queue for too long does not keep the night from waiting there.
        self.program("srun", "#!/bin/bash\nexit 1\n")
        here = self.shell("launch_ranks_here").strip()
        said = self.shell('launch_words 2>&1; echo "${launch[*]}"', ASSAY_LAUNCH="srun -N 16")
        self.assertRegex(said, rf"(?s)srun did not say .* --ntasks-per-node={here} ")

    def test_a_node_that_has_lost_gpus_lowers_the_ranks_of_no_other(self):
        """Each node that is asked runs this script; the nodes of a launch differ in what the program says there."""
        said, sockets = self.dir / "asked", self.shell("launch_ranks_here").strip()
        self.program("mpirun", f"""#!/bin/bash
[ "$1" = --version ] && {{ echo 'mpirun (Open MPI) 4.1.4'; exit; }}
while [ "$1" != env ]; do shift; done
while read -r text; do echo " $text" >{self.said}; "$@"; done <{said}
""")
        healthy, less, dead = "8 GPUs here: A", "7 GPUs here: A", "no GPU is used here: no driver"
        for nodes, ranks in [([healthy, less, healthy], "8"), ([dead, healthy], "8"), ([less, dead], "7"),
                             # Where most have no GPU the run measures CPUs, and no GPU counts.
                             ([healthy, dead, dead], sockets), ([dead, dead], sockets)]:
            said.write_text("\n".join(nodes) + "\n")
            self.assertIn(f" --map-by ppr:{ranks}:node ", self.words("mpirun --hostfile hosts"), nodes)
        # Of CPUs alone the fewest sockets count.
        self.program("srun", "#!/bin/bash\necho ranks=4 gpus=0\necho ranks=2 gpus=0\n")
        self.assertIn(" --ntasks-per-node=2 ", self.words("srun -N 2"))

    def test_a_job_whose_first_node_has_lost_gpus_asks_the_others(self):
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NUM_NODES": "2"}
        self.program("srun", f'#!/bin/bash\necho "$*" >>{self.dir}/steps\necho ranks=2 gpus=0\necho ranks=8 gpus=8\n')
        for here in ["no GPU is used here: no driver", "7 GPUs here: A"]:
            self.gpus(here)
            self.assertEqual(self.words("srun", SLURM_GPUS_ON_NODE="8", **job), "srun --ntasks-per-node=8 --ntasks=16 --cpu-bind=none", here)
            # A job that has its nodes for itself has what Slurm knows of them.
            self.assertEqual(self.gpus_of_steps("srun", "NodeName=n1 Gres=gpu:8\\n", ASSAY_RANKS="auto"), "gpu:8")
        steps = (self.dir / "steps").read_text().splitlines()
        self.assertEqual(len(steps), 4)
        self.assertRegex(steps[0], "^--ntasks-per-node=1 --cpu-bind=none --ntasks=2 env ")
        # Without an answer this node's own number counts, and no question is asked where nothing is lost.
        self.gpus("8 GPUs here: A")
        self.assertIn(" --ntasks-per-node=8 ", self.words("srun", SLURM_GPUS_ON_NODE="8", **job))
        self.assertEqual(len((self.dir / "steps").read_text().splitlines()), 4)
        self.gpus("7 GPUs here: A")
        for name, launch in [("srun", "srun"), ("mpirun", "mpirun --host n1,n2")]:
            self.program(name, "#!/bin/bash\n[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4'\nexit 1\n")
            said = self.shell('launch_words 2>&1; echo "${launch[*]}"', ASSAY_LAUNCH=launch, SLURM_GPUS_ON_NODE="8", **job)
            self.assertRegex(said, rf"(?s)^{name} did not say .*(--ntasks-per-node=7|ppr:7:node) ")

    def mpirun_without(self, *dead):
        """Like Open MPI's, it starts nothing where one of its hosts is dead. Of the others `b` has 9 GPUs, the rest 8."""
        self.program("mpirun", f"""#!/bin/bash
[ "$1" = --version ] && {{ echo 'mpirun (Open MPI) 4.1.4'; exit; }}
case $1 in --hostfile) hosts=$(awk '{{ print $1 }}' "$2") ;; --host) hosts=$(tr , '\n' <<<"$2" | cut -d: -f1) ;; esac
for host in $hosts; do case " {" ".join(dead)} " in *" $host "*) exit 1 ;; esac; done
for host in $hosts; do case $host in b) echo ranks=9 gpus=9 ;; *) echo ranks=8 gpus=8 ;; esac; done
""")
        (self.dir / "hosts").write_text("a slots=8\nb slots=8\nc slots=8\n")

    def test_a_dead_node_does_not_keep_the_others_from_being_asked(self):
        for dead, ranks in [(["c"], 9), (["a", "b"], 8)]:
            self.mpirun_without(*dead)
            self.assertIn(f"ppr:{ranks}:node", self.words("mpirun --hostfile hosts"))
        self.assertIn("ppr:8:node", self.words("mpirun --host a:8,b:8,c:8"))

    def test_many_nodes_are_asked_in_groups(self):
        self.mpirun_without("n10", "n40")
        names = [f"n{i:02}" for i in range(70)]
        names[11] = "b"  # in the group of a dead node
        (self.dir / "hosts").write_text("".join(f"{name} slots=8\n" for name in names))
        fake = self.dir / "bin" / "mpirun"
        fake.write_text(fake.read_text().replace("case $1 in --hostfile)", "echo >>asked\ncase $1 in --hostfile)", 1))
        self.assertIn("ppr:9:node", self.words("mpirun --hostfile hosts"))
        # All at once, 24 groups, and each node of two groups of 3.
        self.assertEqual(len((self.dir / "asked").read_text()), 1 + 24 + 2 * 3)

    def test_what_the_launch_warns_of_stays_in_the_log_of_the_run(self):
        self.program("srun", "#!/bin/sh\nexit 1\n")
        self.settings(ASSAY=self.fake_assay(), ASSAY_LAUNCH="srun -N 2")
        self.runs('print("the run itself"); sys.exit(1)\n')
        outside = {name: "" for name in ("SLURM_NTASKS_PER_NODE", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")}
        self.assert_code(self.script("acceptance.sh", env=outside), 3)
        log = next(self.results.glob("*/acceptance-*/run.log")).read_text()
        self.assertRegex(log, r"^srun did not say how many ranks its nodes take: .*\nthe run itself\n$")

    def test_where_no_node_answers_nothing_is_guessed(self):
        self.mpirun_without("a", "b", "c")
        said = self.shell('launch_words 2>&1 || echo "refused ${launch[*]}"', ASSAY_LAUNCH="mpirun --hostfile hosts")
        self.assertEqual(said, "no node answers how many ranks it takes (ASSAY_RANKS can say it)\nrefused mpirun --hostfile hosts\n")
        self.settings(ASSAY=self.fake_assay(), ASSAY_LAUNCH=f"mpirun --hostfile {self.dir}/hosts")
        self.runs("raise SystemExit('nothing must run')")
        result = self.script("acceptance.sh")
        self.assert_code(result, 3)
        self.assertIn("no results\nno node answers how many ranks it takes", result.stdout)


if __name__ == "__main__":
    place.main()
