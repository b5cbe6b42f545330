# SPDX-License-Identifier: Apache-2.0
"""scripts/batch.sh: the job scripts of all batch systems say the same, and are what their readers can parse."""

import re
import shutil
import subprocess

import place

KINDS = ["acceptance", "nightly", "soak"]
# Where each system says how many minutes a job may take, and how many seconds before the end the signal comes.
LIMITS = {
    "slurm": (r"--time=(\d+):(\d+):00", r"--signal=B:USR1@(\d+)"),
    "pbs": (r"walltime=(\d+):(\d+):00", r"sleep (\d+); kill -USR1"),
    "lsf": (r"-W (\d+)", r"-wa USR1 -wt (\d+)"),
    "flux": (r"--time-limit=(\d+)m", r"--signal=SIGUSR1@(\d+)s"),
    "kubernetes": (r"activeDeadlineSeconds: (\d+)", r"\"--foreground\", \"--preserve-status\", \"--signal=USR1\", \"(\d+)\""),  # a FAIL stays one
}


class Batch(place.SiteTest):
    def text(self, system, kind, *args):
        gpus = ["--gpus", "0"] if system in ("pbs", "lsf", "kubernetes") and "--gpus" not in args else []
        cores = ["--cores", "128"] if system in ("pbs", "lsf") else []
        result = self.script("batch.sh", system, kind, *args, *gpus, *cores)
        self.assert_code(result, 0)
        return result.stdout

    def limits(self, system, kind):
        text = self.text(system, kind)
        minutes, ahead = (re.search(pattern, text).groups() for pattern in LIMITS[system])
        minutes = int(minutes[0]) * 60 + int(minutes[1]) if len(minutes) == 2 else int(minutes[0])
        ahead = int(ahead[0])
        if system == "kubernetes":
            minutes //= 60
        if system == "lsf":
            ahead *= 60
        if system in ("pbs", "kubernetes"):
            ahead = minutes * 60 - ahead
        return minutes, ahead

    def test_all_systems_ask_for_the_same(self):
        for kind in KINDS:
            # The soak of Slurm is a chain of jobs.
            alike = [system for system in LIMITS if (system, kind) != ("slurm", "soak")]
            self.assertEqual(len({self.limits(system, kind) for system in alike}), 1, kind)
            for system in LIMITS:
                text = self.text(system, kind, "--nodes", "16")
                self.assertIn('-n 2048\n#BSUB -R "span[ptile=128]"\n' if system == "lsf" else "16", text)
                self.assertIn(f"/{kind}.sh", text)
                self.assertEqual("# Untested" in text, system != "slurm")

    def test_a_soak_outside_slurm_has_time_for_all_segments(self):
        for segments, minutes in [(16, 30), (1, 30), (3, 60), ("08", 10)]:
            self.settings(ASSAY_SOAK_SEGMENTS=segments, ASSAY_SOAK_MINUTES=minutes, ASSAY="no-such-program")
            for system in LIMITS:
                asked, ahead = self.limits(system, "soak")
                if system == "slurm":
                    self.assertEqual(asked, 45)
                else:
                    self.assertGreater(asked - ahead / 60, int(segments) * (minutes + 4), system)
                    self.assertLess(asked, int(segments) * minutes * 2 + 30, system)
        self.settings(ASSAY_SOAK_SEGMENTS="many")
        result = self.script("batch.sh", "flux", "soak")
        self.assert_code(result, 4)
        self.assertIn("ASSAY_SOAK_SEGMENTS is a whole number", result.stderr)

    def test_the_gpus_of_a_node_are_asked_for(self):
        for system, gpus, cpus in [("slurm", "--gres=gpu:8", "--gres"), ("pbs", "ncpus=128:ngpus=8:mpiprocs=8", "gpus"), ("lsf", '-gpu "num=8', "-gpu"),
                                   ("kubernetes", "nvidia.com/gpu: 8", "nvidia")]:
            self.assertIn(gpus, self.text(system, "nightly", "--gpus", "8"))
            self.assertNotIn(cpus, self.text(system, "nightly", "--gpus", "0"))
        self.assertIn("slotsPerWorker: 8\n", self.text("kubernetes", "soak", "--gpus", "8"))
        for system in ("slurm", "flux"):  # alone on its nodes, a job has all of their parts
            self.assertIn("--exclusive", self.text(system, "nightly"))
            self.assertNotIn("ntasks", self.text(system, "nightly"))
        for system in ("pbs", "lsf", "kubernetes"):
            result = self.script("batch.sh", system, "nightly")
            self.assert_code(result, 4)
            self.assertIn("say --gpus N", result.stderr)

    def test_pbs_and_lsf_ask_for_all_cores_of_a_node(self):
        self.assertIn("ncpus=128:mpiprocs=1\n", self.text("pbs", "nightly"))
        self.assertIn('-n 128\n#BSUB -R "span[ptile=128]"\n', self.text("lsf", "nightly"))
        for system in ("pbs", "lsf"):
            result = self.script("batch.sh", system, "nightly", "--gpus", "0")
            self.assert_code(result, 4)
            self.assertIn(f"batch.sh: {system} allocates only the cores requested: say --cores N", result.stderr)

    def test_those_of_slurm_are_the_ones_in_the_folder(self):
        for kind in KINDS:
            self.assertEqual((place.SCRIPTS / "slurm" / f"{kind}.sbatch").read_text(), self.text("slurm", kind, "--beside"))

    def test_a_script_that_is_saved_anywhere_starts_the_scripts_beside_the_program(self):
        scripts = self.dir / "my 'tools}" / "scripts"
        scripts.mkdir(parents=True)
        for name in ("batch.sh", "site.sh", "launch.sh", "safe.sh"):
            shutil.copy(place.SCRIPTS / name, scripts)
        for folder in (scripts, self.dir):
            (folder / "nightly.sh").write_text('#!/bin/sh\necho "$0 $*"\n')
            (folder / "nightly.sh").chmod(0o755)
        for system in ("slurm", "pbs", "lsf", "flux"):
            said = subprocess.run([scripts / "batch.sh", system, "nightly", "--gpus", "0", "--cores", "8"], env=self.env, capture_output=True, text=True)
            self.assert_code(said, 0)
            script = re.sub(r"(?m)^\( sleep .*", "", said.stdout)  # the timer of PBS would outlive the test
            for env, folder in [({}, scripts), ({"ASSAY_SCRIPTS": str(self.dir)}, self.dir)]:
                job = subprocess.run(["bash", "-s", "--", "--quiet"], input=script, env={**self.env, **env}, cwd="/", capture_output=True, text=True)
                self.assertEqual((job.stdout, job.stderr), (f"{folder}/nightly.sh --quiet\n", ""), system)

    def test_those_in_the_folder_find_the_scripts_where_they_were_submitted(self):
        self.program("scontrol", f"#!/bin/sh\necho 'JobId=7 Command={self.dir}/slurm/nightly.sbatch WorkDir=/'\n")
        (self.dir / "nightly.sh").write_text("#!/bin/sh\necho here\n")
        (self.dir / "nightly.sh").chmod(0o755)
        job = subprocess.run(["bash", "-s"], input=self.text("slurm", "nightly", "--beside"), env={**self.env, "SLURM_JOB_ID": "7"}, capture_output=True, text=True)
        self.assertEqual((job.stdout, job.stderr), ("here\n", ""))

    def test_shells_can_read_them(self):
        shellcheck = shutil.which("shellcheck")
        if shellcheck is None:
            self.skipTest("no shellcheck on this machine (package shellcheck)")
        for kind in KINDS:
            for system in ["slurm", "pbs", "lsf", "flux"]:
                checked = subprocess.run([shellcheck, "-"], input=self.text(system, kind), capture_output=True, text=True)
                self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    def test_the_mpijob_has_the_fields_of_its_kind(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml for python3 (package python3-yaml)")
        for kind in KINDS:
            job = yaml.safe_load(self.text("kubernetes", kind, "--nodes", "7", "--image", "registry.example/assay:1"))
            self.assertEqual((job["apiVersion"], job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
            self.assertLessEqual(set(job["spec"]), {"slotsPerWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath", "launcherCreationPolicy",
                                                    "mpiImplementation"})
            self.assertLessEqual(set(job["spec"]["runPolicy"]), {"cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit",
                                                                 "schedulingPolicy", "suspend", "managedBy"})
            self.assertEqual(job["spec"]["launcherCreationPolicy"], "WaitForWorkersReady")
            self.assertEqual(job["metadata"], {"generateName": f"assay-{kind}-"}, "a second night is another job")
            replicas = job["spec"]["mpiReplicaSpecs"]
            self.assertEqual(replicas["Launcher"]["restartPolicy"], "Never", "the operator overwrites that of the pod")
            [apart] = replicas["Worker"]["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            self.assertEqual(apart["labelSelector"]["matchLabels"], replicas["Worker"]["template"]["metadata"]["labels"])
            self.assertEqual(set(replicas), {"Launcher", "Worker"})
            self.assertEqual((replicas["Launcher"]["replicas"], replicas["Worker"]["replicas"]), (1, 7))
            for role in replicas.values():
                self.assertLessEqual(set(role), {"replicas", "template", "restartPolicy"})
                pod = role["template"]["spec"]
                self.assertLessEqual(set(pod), {"restartPolicy", "initContainers", "containers", "volumes", "affinity"})
                volumes = {volume["name"] for volume in pod.get("volumes", [])}
                for container in pod["containers"] + pod.get("initContainers", []):
                    self.assertEqual(container["image"], "registry.example/assay:1")
                    self.assertLessEqual({mount["name"] for mount in container.get("volumeMounts", [])}, volumes)
                    self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory"})
            worker = replicas["Worker"]["template"]["spec"]
            self.assertIn({"name": "shm", "emptyDir": {"medium": "Memory"}}, worker["volumes"])
            self.assertIn({"name": "shm", "mountPath": "/dev/shm"}, worker["containers"][0]["volumeMounts"])
            # Rank 0 runs in a worker, with the paths that the launcher's script gives to it.
            launcher = replicas["Launcher"]["template"]["spec"]
            for mount in [{"name": "results", "mountPath": "/var/lib/assay", "subPath": "assay"}, {"name": "site", "mountPath": "/etc/assay/options"}]:
                for pod in (launcher, worker):
                    self.assertIn(mount, pod["containers"][0]["volumeMounts"])
            for volume in launcher["volumes"]:
                self.assertIn(volume, worker["volumes"])
            self.assertEqual(worker["containers"][0]["securityContext"], {"capabilities": {"add": ["IPC_LOCK"]}})

    def test_the_mpijob_keeps_settings_and_results_where_the_scripts_take_them(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml for python3 (package python3-yaml)")
        pod = yaml.safe_load(self.text("kubernetes", "nightly"))["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
        self.assertEqual(pod["containers"][0]["volumeMounts"], [{"name": "site", "mountPath": "/etc/assay/site.conf", "subPath": "site.conf"},
                                                                {"name": "site", "mountPath": "/etc/assay/options"},
                                                                {"name": "results", "mountPath": "/var/lib/assay", "subPath": "assay"}])
        # A claim whose root, and with it what Kubernetes makes below it for a subPath, can be written by others.
        for mode, made in [(0o777, False), (0o2775, True)]:
            claim = self.dir / f"claim{mode:o}"
            claim.mkdir()
            if made:
                (claim / "assay").mkdir()
                (claim / "assay").chmod(mode)
            claim.chmod(mode)
            words = [word.replace("/results", str(claim)) for word in pod["initContainers"][0]["command"]]
            subprocess.run(words, check=True, umask=0)
            said = subprocess.run(["bash", "-c", f". {place.SCRIPTS}/safe.sh; unsafe_why {claim}; echo; unsafe_why {claim}/assay"], capture_output=True, text=True)
            self.assertEqual(said.stdout, f"{claim} can be written by others\n")

    def test_the_mpijob_tells_on_which_nodes_its_pods_were(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("no yaml for python3 (package python3-yaml)")
        [told] = yaml.safe_load(self.text("kubernetes", "nightly"))["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"]
        self.assertEqual(told["env"], [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}])
        self.assertEqual(told["volumeMounts"], [{"name": "results", "mountPath": "/var/lib/assay", "subPath": "assay"}])
        # Made-up pods, named as the nodes of the run that the night gets.
        self.results.mkdir()
        words = [word.replace("/var/lib/assay", str(self.results)) for word in told["command"]]
        for number in range(3):
            subprocess.run(words, check=True, env={**self.env, "NODE_NAME": f"gpu{number}.site", "HOSTNAME": f"node{number}"})
        self.settings(ASSAY=self.fake_assay())
        self.made(nodes=4, slow="node1", factor=0.5)
        self.runs(place.COPY)
        night = self.script("nightly.sh")
        self.assert_code(night, 2)
        self.assertIn("node1 was a pod on node gpu1.site\n", night.stdout)
        self.assertNotIn("node0 was", night.stdout)
        [pods] = self.results.glob("*/nightly-*/pods.txt")
        self.assertEqual(sorted(pods.read_text().splitlines()), ["node0 gpu0.site", "node1 gpu1.site", "node2 gpu2.site"])

    def test_the_mpijob_asks_for_cores_and_memory(self):
        said = self.text("kubernetes", "nightly", "--gpus", "8", "--cores", "96", "--memory", "900")
        self.assertIn("requests: {cpu: 96, memory: 900Gi}\n                limits: {nvidia.com/gpu: 8}\n", said)
        self.assertNotIn("limits:", self.text("kubernetes", "nightly", "--gpus", "0"))

    def test_wrong_use(self):
        for args, line in [(["slurm"], "usage: "), (["lsd", "nightly"], "SYSTEM is "), (["slurm", "daily"], "KIND is "),
                           (["slurm", "nightly", "--nodes", "x"], "--nodes takes a number"), (["slurm", "nightly", "--nodes"], "--nodes needs a value"), (["slurm", "nightly", "--gpus", "x"], "--gpus takes"), (["flux", "nightly", "--beside"], "--beside needs a value"),
                           (["kubernetes", "nightly", "--gpus", "1", "--image", "a b"], "--image: ")]:
            result = self.script("batch.sh", *args)
            self.assert_code(result, 4)
            self.assertEqual((result.stdout, result.stderr.count("\n")), ("", 1))
            self.assertTrue(result.stderr.startswith("batch.sh: " + line), result.stderr)


if __name__ == "__main__":
    place.main()
