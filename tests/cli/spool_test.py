# SPDX-License-Identifier: Apache-2.0
"""`--spool`: ended cases are in a directory on another file system until the results file is made of them."""

import json
import os
import pathlib
import signal
import subprocess
import time

import outcome

try:
    import h5py
except ImportError as missing:
    outcome.skip_file(f"{missing} (package python3-h5py)")

import harness
from temporary_folder import temporary_folder

SELFTEST = ["run", "--launcher", "none", "--suites", "selftest", "--quiet", "--selftest.cases", "pass,skip"]
SMOKE = ["run", "--launcher", "none", "--level", "smoke", "--suites", "inventory,gemm", "--quiet"]
INCONCLUSIVE = 3


class Spool(harness.CliTest):
    def setUp(self):
        super().setUp()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.spool = temporary_folder(self.addCleanup, dir=memory)

    def start(self, out, command=SMOKE):
        process = subprocess.Popen([harness.ASSAY, *command, "--spool", self.spool, "--out", out], cwd=self.dir,
                                   env={**os.environ, **harness.LAUNCH}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def wait_for_case(self, partial, process):
        while process.poll() is None and not list((self.dir / partial / "cases").glob("*.h5")):
            time.sleep(0.002)
        self.assertIsNone(process.poll(), "over before it could be killed")

    def leave(self, *outs):
        """Runs at the same time, each killed after its first case."""
        runs = [(out, self.start(out)) for out in outs]
        for out, process in runs:
            self.wait_for_case(out + ".partial", process)
            process.kill()
            process.wait()
        return [pathlib.Path(os.readlink(self.dir / (out + ".partial") / "cases")) for out in outs]

    def events(self, file, kind):
        with h5py.File(self.dir / file) as results:
            return "\n".join(text for k, text in zip(results["events/kind"].asstr(), results["events/text"].asstr()) if k == kind)

    def assert_only(self, *names):
        self.assertEqual(self.left_behind(), sorted(names))
        self.assertEqual(list(self.spool.iterdir()), [])

    def test_only_the_results_file_remains(self):
        self.assert_code(self.assay(*SELFTEST, "--spool", self.spool, "--out", "run.h5"), INCONCLUSIVE)
        self.assert_only("run.h5")
        self.assert_code(self.assay("schema", "--check", "run.h5"), 0)
        self.assertIn("planned=2", self.assay("verdict", "run.h5").stdout)

    def test_killed_runs_with_one_spool_are_recovered_and_resumed(self):
        one, two = self.leave("one.h5", "two.h5")
        self.assertEqual({one.parent, two.parent}, {self.spool})
        self.assertNotEqual(one, two)
        self.assertTrue(list(one.glob("*.h5")))
        self.assert_code(self.assay("verdict", "one.h5.partial"), INCONCLUSIVE)
        self.assert_error([*SMOKE, "--spool", str(self.spool), "--out", "one.h5"], "one.h5.partial exists recover --resume --force")
        self.assert_code(self.assay("recover", "one.h5.partial", "-o", "one.h5"), 0)
        self.assert_code(self.assay("schema", "--check", "one.h5"), 0)
        self.assertEqual(list(self.spool.iterdir()), [two])
        self.assert_code(self.assay(*SMOKE, "--resume", "two.h5.partial"), 0)
        self.assertRegex(self.events("two.h5", "resumed"), r"^\d+ cases were there")
        self.assert_only("one.h5", "two.h5")

    def test_a_directory_that_cannot_be_used_is_named_before_the_run(self):
        self.write("file", "")
        for name, why in [("none", "No such file"), ("file", "Not a directory"), ("file/in", "Not a directory"), ("/proc", "No such file")]:
            self.assert_error([*SELFTEST, "--out", "run.h5", "--spool", name], f"--spool: cannot create {name} {why}")
        os.chmod(self.spool, 0o500)
        if os.geteuid() != 0:
            self.assert_error([*SELFTEST, "--out", "run.h5", "--spool", str(self.spool)], f"--spool: cannot create {self.spool} Permission denied")

    def test_a_full_spool_ends_the_run_with_the_cases_that_it_holds(self):
        script = f'mount -t tmpfs -o size=20k none "{self.spool}" || exit 77; shift; "$0" "$@"; code=$?; ls "{self.spool}"; exit $code'
        command = [harness.ASSAY, "", *SELFTEST, "--spool", str(self.spool), "--out", "run.h5", "--color", "never"]
        result = harness.execute(["unshare", "--mount", "--propagation", "private", "sh", "-c", script, *command], self.dir)
        if result.returncode in (1, 77):
            self.skipTest("no privilege: a small file system needs the right to mount")
        self.assert_code(result, INCONCLUSIVE)
        self.assertRegex(result.stderr, rf"cannot write run.h5.partial/cases/\S+ \(in {self.spool}/run.h5@\S+.cases\): No space left")
        self.assertNotIn(".cases", result.stdout.splitlines()[-1], "the spool is empty")
        self.assert_code(self.assay("schema", "--check", "run.h5"), 0)
        self.assert_only("run.h5")

    @outcome.nightly
    def test_a_run_that_is_launched_again_keeps_what_its_spool_holds(self):
        command = SMOKE[3:]
        launcher = f"{harness.MPIEXEC} -n 1"
        process = self.start("run.h5", ["run", "--launcher", launcher, *command])
        self.wait_for_case("run.h5.partial", process)
        owner = json.loads((self.dir / "run.h5.partial" / "owner").read_text())
        os.kill(owner["pid"], signal.SIGKILL)
        self.assertEqual(process.wait(60), 0)
        self.assertRegex(self.events("run.h5", "resumed"), r"^\d+ cases were there")
        self.assert_only("run.h5")

    def test_what_the_spool_of_a_lost_host_holds_is_measured_again(self):
        """Rank 0's spool is on its host only: here in a mount of its first launch."""
        mounted = "unshare --mount --propagation private sh -c"
        if harness.execute(mounted.split() + [f"mount -t tmpfs none {self.spool}"], self.dir).returncode != 0:
            self.skipTest("no privilege: a file system of one launch needs the right to mount")
        self.write("start.sh", f"""[ -e begun ] && exec {harness.MPIEXEC} -n 1 "$@"
touch begun
exec {mounted} 'mount -t tmpfs none {self.spool} && "$0" "$@"' {harness.MPIEXEC} -n 1 "$@"
""")
        with open(self.dir / "said", "w") as said:
            process = subprocess.Popen([harness.ASSAY, "run", "--launcher", "sh start.sh", *SMOKE[3:], "--spool", self.spool, "--out", "run.h5"],
                                       cwd=self.dir, env={**os.environ, **harness.LAUNCH}, stdout=said, stderr=said)
        self.addCleanup(process.kill)
        owner = self.dir / "run.h5.partial" / "owner"
        inside = lambda pid: pathlib.Path(f"/proc/{pid}/root{(self.dir / 'run.h5.partial' / 'cases').readlink()}")
        pid = 0
        while process.poll() is None and not (pid and list(inside(pid).glob("*.h5"))):
            if owner.exists() and (self.dir / "run.h5.partial" / "plan.json").exists():
                pid = json.loads(owner.read_text())["pid"]
            time.sleep(0.002)
        self.assertIsNone(process.poll(), "over before it could be killed")
        os.kill(pid, signal.SIGKILL)
        code = process.wait(90)
        said = (self.dir / "said").read_text()
        self.assertEqual(code, 0, said)
        self.assertIn("has the cases that had ended in its --spool: they are measured again", said)
        self.assertEqual(self.events("run.h5", "resumed"), "")
        self.assert_code(self.assay("schema", "--check", "run.h5"), 0)
        self.assert_only("begun", "run.h5", "said", "start.sh")


if __name__ == "__main__":
    harness.main()
