# SPDX-License-Identifier: Apache-2.0
"""Under a launcher: one line whatever the number of ranks, the same exit code, no colour into files."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import harness
import outcome


def ours(result):
    """The lines of assay, without the launcher's."""
    return [line for line in result.stderr.splitlines() if line.startswith("assay: ")]


class Launcher(harness.CliTest):
    def test_one_error_line_before_mpi_is_up(self):
        result = self.mpirun(3, "run", "--suites", "nosuch")
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertIn("nosuch", ours(result)[0])
        self.assertEqual(self.left_behind(), [])

    def test_one_error_line_after_mpi_is_up(self):
        self.write("r.h5", "precious")
        result = self.mpirun(3, "run", "--suites", "selftest", "--selftest.cases", "pass", "--quiet", "--out", "r.h5")
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertEqual(self.left_behind(), ["r.h5"])

    def test_one_summary_and_one_file(self):
        result = self.mpirun(3, "run", "--suites", "selftest", "--selftest.cases", "pass,fail", "--out", "r.h5")
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5"])
        self.assertNotIn("\x1b", result.stdout)
        self.assertNotIn("\x1b", result.stderr)
        self.assert_code(self.assay("verdict", "r.h5"), 2)

    def test_options_that_differ_between_ranks_are_named(self):
        run = ["run", "--suites", "selftest", "--quiet", "--out", "r.h5"]
        result = harness.execute([harness.MPIEXEC, "-n", "1", harness.ASSAY, *run, ":", "-n", "1", harness.ASSAY, *run,
                                  "--level", "smoke"], self.dir)
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertRegex(ours(result)[0], r"rank.* 1")
        self.assertEqual(self.left_behind(), [])

    def test_too_few_open_files_are_told_before_anything_starts(self):
        run = f"exec {harness.ASSAY} run --suites selftest --selftest.cases pass --out r.h5"
        result = harness.execute([harness.MPIEXEC, "-n", "4", "sh", "-c", f"ulimit -n 67; {run}"], self.dir)
        self.assert_code(result, 4)
        self.assertEqual(len(ours(result)), 1, result.stderr)
        self.assertRegex(ours(result)[0], r"\brank 0\b.*\b68\b.*\b4 ranks\b.*\b67\b")
        self.assertIn("ulimit", ours(result)[0])
        self.assertEqual(self.left_behind(), [])
        # A soft limit is raised; one process alone has no lines.
        self.assert_code(harness.execute([harness.MPIEXEC, "-n", "2", "sh", "-c", f"ulimit -Sn 40; {run}"], self.dir), 0)
        self.assert_code(harness.execute(["sh", "-c", f"ulimit -n 60; {run} --force --launcher none"], self.dir), 0)

    def test_ranks_without_a_shared_folder_find_the_run(self):
        """The second one cannot read the file by which the first is found, and gets it over MPI."""
        run = [harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", "pass", "--out", "r.h5"]
        for name in "ab":
            (self.dir / name).mkdir()
        begin = time.monotonic()
        result = harness.execute([harness.MPIEXEC, "-n", "1", "-wdir", self.dir / "a", *run, ":", "-n", "1", "-wdir", self.dir / "b", *run], self.dir)
        self.assert_code(result, 0)
        self.assertIn("2 devices", result.stdout)
        self.assertLess(time.monotonic() - begin, 60)

    def test_a_run_starts_its_launcher_itself(self):
        launcher = f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2"
        run = ["run", "--suites", "selftest", "--selftest.cases", "pass,fail", "--out", "r.h5"]
        result = self.assay(*run, "--launcher", launcher)
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5"])
        self.assertIn("2 devices", result.stdout)
        result = self.assay(*run, "--force", "--launcher", "none")
        self.assert_code(result, 2)
        self.assertIn("1 device", result.stdout)

    def test_colour_is_for_the_terminal_of_the_process_that_launches(self):
        run = [harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", "pass", "--force", "--out", "r.h5", "--launcher", f"{harness.MPIEXEC} -n 2"]
        environment = {**os.environ, **harness.LAUNCH}
        environment.pop("NO_COLOR", None)
        for more, set_there, coloured in [([], {}, True), (["--color", "auto"], {}, True), (["--color=auto"], {"NO_COLOR": "1"}, False),
                                          (["--color", "never"], {}, False)]:
            with self.subTest(more=more, set_there=set_there):
                screen, terminal = (os.fdopen(end, "rb", buffering=0) for end in pty.openpty())
                with screen:
                    with terminal:
                        result = subprocess.run([*run, *more], cwd=self.dir, env={**environment, **set_there}, timeout=90,
                                                stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE, text=True)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    shown = screen.read(4096).decode()
                self.assertEqual("\x1b[" in shown, coloured, shown)

    def test_ranks_leave_the_code_to_the_file(self):
        """mpirun takes 3 s to end a job of which a rank leaves with another code than 0."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f'#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@"\necho $? >code\n')
        launcher.chmod(0o755)
        run = ["run", "--suites", "selftest", "--selftest.cases", "fail", "--level", "smoke", "--out", "r.h5"]
        self.assert_code(self.assay(*run, "--launcher", str(launcher)), 2)
        self.assertEqual((self.dir / "code").read_text(), "0\n")

    def test_ranks_that_outlive_a_killed_launcher_end_their_run(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 \"$@\" &\n"
                            "while [ ! -e r.h5.partial/plan.json ]; do sleep 0.05; done\nkill -9 $$\n")
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "gemm", "--gemm.sizes", "256", "--level", "smoke", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assertIn(result.returncode, (0, 1), result.stderr)
        self.assertNotIn("again", result.stderr)
        self.assert_code(self.assay("verdict", "r.h5"), result.returncode)

    def test_a_run_under_nohup_outlives_its_terminal(self):
        run = ["run", "--level", "smoke", "--suites", "gemm", "--gemm.sizes", "256", "--quiet"]
        for name, launcher in (("one.h5", "none"), ("two.h5", f"{harness.MPIEXEC} -n 2")):
            with self.subTest(launcher):
                out = self.dir / name
                with subprocess.Popen(["nohup", harness.ASSAY, *run, "--out", out, "--launcher", launcher], cwd=self.dir,
                                      env={**os.environ, **harness.LAUNCH}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
                    self.addCleanup(process.kill)
                    while not (self.dir / f"{name}.partial" / "plan.json").exists() and process.poll() is None:
                        time.sleep(0.01)
                    self.assertIsNone(process.poll(), "over before its terminal hung up")
                    os.killpg(process.pid, signal.SIGHUP)
                    said = process.communicate(timeout=60)[1]
                self.assertNotIn("signal 1", said)
                self.assertRegex(self.assay("inspect", out).stdout, "(?m)^state +complete$")

    def test_a_standard_output_that_cannot_be_written_hides_no_failure(self):
        for cases, code in [("fail", 2), ("pass", 3)]:
            command = [harness.ASSAY, "run", "--suites", "selftest", "--selftest.cases", cases, "--out", f"{cases}.h5",
                       "--launcher", f"{harness.MPIEXEC} -n 2"]
            result = harness.execute(["sh", "-c", 'exec "$0" "$@" >/dev/full', *command], self.dir)
            self.assert_code(result, code)
            self.assertIn("No space left", result.stderr)

    def test_what_stays_beside_a_file_that_was_closed_does_not_stop_the_next_launch(self):
        """Rank 0 is lost in the first launch; its supervisor is killed before it has removed the partial directory."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"""#!/bin/sh
if [ -e first ]; then exec {harness.MPIEXEC} -n 2 "$@"; fi
touch first
{harness.MPIEXEC} -n 2 "$@" &
until ls r.h5.partial/cases/*.h5 >first 2>&1; do sleep 0.05; done
supervisor=$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' r.h5.partial/owner)
kill -9 $(cat /proc/$supervisor/task/*/children)
wait
mkdir r.h5.partial && echo '{{"host":"gone","pid":1,"run_id":"x","start":1}}' >r.h5.partial/owner
""")
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "inventory,gemm", "--gemm.sizes", "256", "--level", "smoke", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assertIn("launching again", result.stderr)
        self.assertRegex(self.assay("inspect", "r.h5").stdout, "(?m)^state +complete$", result.stdout + result.stderr)
        self.assertNotIn("r.h5.partial", self.left_behind())

    def test_a_launch_that_dies_before_its_plan_is_stored_does_not_stop_the_next_one(self):
        for made in ("", " && mkdir r.h5.partial/cases"):
            with self.subTest(made=made):
                launcher = self.dir / "launcher.sh"
                launcher.write_text(f"""#!/bin/sh
if mkdir first 2>/dev/null; then
  mkdir r.h5.partial{made} && echo '{{"host":"gone","pid":1,"run_id":"x","start":1}}' >r.h5.partial/owner
  exit 1
fi
exec {harness.MPIEXEC} -n 2 "$@"
""")
                launcher.chmod(0o755)
                result = self.assay("run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "smoke", "--out", "r.h5",
                                    "--launcher", str(launcher))
                self.assert_code(result, 0)
                self.assertIn("launching again", result.stderr)
                self.assertEqual(self.left_behind(), ["first", "launcher.sh", "r.h5"])
                (self.dir / "first").rmdir()
                (self.dir / "r.h5").unlink()

    def test_a_launcher_that_cannot_start(self):
        run = ["run", "--suites", "selftest", "--quiet", "--out", "r.h5"]
        self.assert_code(self.assay(*run, "--launcher", "no-such-launcher"), 4)
        self.assert_code(self.assay(*run, "--launcher", "false"), 3)
        self.assert_code(self.assay(*run, "--launcher", "mpirun '"), 4)
        self.assertEqual(self.left_behind(), [])

    def launch_without(self, *dead, fails='echo "$node: no route to host" >&2; exit 1', domain="", timeout=90):
        """Three made nodes, of which the dead ones keep a launch from beginning that does not leave them out."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"""#!/bin/sh
shift 2
case $1 in without=*) without=,$(echo "${{1#*=}}" | sed 's/{domain or "-"}//g'),; shift ;; esac
for node in a b c; do
  case "$without" in *,$node,*) continue ;; esac
  case " {' '.join(dead)} " in *" $node "*) {fails} ;; esac
done
case $* in *--version) exec "$@" ;; esac
exec {harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@"
""")
        launcher.chmod(0o755)
        return harness.execute([harness.ASSAY, "run", "--suites", "inventory,selftest", "--selftest.cases", "pass", "--level", "smoke",
                                "--nodes", "nodes", "--out", "r.h5", "--launcher", f"{launcher} --host a{domain}:1,b{domain}:1,c{domain}:1 without={{exclude}}"],
                               self.dir, timeout=timeout)

    def test_a_node_that_is_dead_at_the_start_is_left_out(self):
        result = self.launch_without("b")
        self.assert_code(result, 3)
        self.assertIn("assay: b does not answer: exit code 1: b: no route to host\n", result.stderr)
        self.assertIn("assay: launching again without b, ", result.stderr)
        states = {line.split()[0]: line for line in (self.dir / "nodes").read_text().splitlines()}
        self.assertRegex(states.pop("b"), "^b INCONCLUSIVE .*did not answer when the run was to begin: exit code 1")
        self.assertRegex(*states.values(), r"^\S+ (PASS|WARN)\b")
        self.assertIn("[TRIAGE]", result.stdout)
        self.assertIn("2 devices", result.stdout)
        self.assertIn("incomplete=0 ", result.stdout, "the others are measured")

    def test_hosts_with_a_domain_are_the_nodes_that_results_name(self):
        result = self.launch_without("b", domain=".cluster")
        self.assert_code(result, 3)
        self.assertIn("assay: b.cluster does not answer: ", result.stderr)
        self.assertIn("assay: launching again without b, ", result.stderr)
        self.assertEqual([line.split()[1] for line in (self.dir / "nodes").read_text().splitlines() if line.startswith("b ")], ["INCONCLUSIVE"])
        self.assertNotIn("b.cluster", (self.dir / "nodes").read_text())

    @outcome.nightly
    def test_results_do_not_wait_for_a_launch_that_never_begins(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"""#!/bin/sh
mkdir first 2>/dev/null || exec sleep 1000
{harness.MPIEXEC} -n 2 "$@" &
until ls r.h5.partial/cases/*.h5 >/dev/null 2>&1; do sleep 0.05; done
kill -9 $(cat /proc/$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' r.h5.partial/owner)/task/*/children)
wait
""")
        launcher.chmod(0o755)
        result = harness.execute([harness.ASSAY, "run", "--suites", "inventory,gemm", "--gemm.sizes", "256", "--level", "smoke", "--out", "r.h5",
                                  "--launcher", str(launcher)], self.dir, timeout=150)
        self.assert_code(result, 3)
        self.assertRegex(result.stderr, r"it still runs \d+ s after its start, nothing has begun, and the level's time is over")
        self.assertIn("assay: results of an earlier launch are in r.h5", result.stderr)
        self.assertIn("INCONCLUSIVE", result.stdout)
        self.assert_code(self.assay("verdict", "r.h5"), 3)

    @outcome.nightly
    def test_a_node_that_keeps_a_launch_waiting_is_left_out(self):
        result = self.launch_without("b", fails="exec sleep 1000", timeout=200)
        self.assert_code(result, 3)
        self.assertIn("assay: nothing has begun in 60 s: asking 3 nodes\n", result.stderr)
        self.assertIn("assay: b does not answer: no answer within 30 s\n", result.stderr)
        self.assertRegex(result.stderr, r"terminating the launcher: it still runs \d+ s after its start, nothing has begun, and 1 of 3 nodes")
        self.assertIn("incomplete=0 ", result.stdout)

    def test_where_all_nodes_answer_or_none_does_no_node_is_left_out(self):
        for dead, said in [("", "each of its 3 nodes answers"), ("a b c", "none of its 3 nodes answers")]:
            launches = self.launch_without(*dead.split()) if dead else self.assay(
                "run", "--suites", "selftest", "--out", "r.h5", "--launcher",
                f"sh -c 'case $* in *--version) exit 0 ;; esac; exit 1' x --host a,b,c without={{exclude}}")
            self.assert_code(launches, 3)
            self.assertIn(said, launches.stderr)
            self.assertNotIn("launching again", launches.stderr)
            self.assertNotIn("r.h5", self.left_behind())

    def test_a_launcher_that_does_not_end_is_terminated(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f'#!/bin/sh\n{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@"\nexec sleep 1000\n')
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "selftest", "--selftest.cases", "pass", "--level", "smoke", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assert_code(result, 0)
        self.assertRegex(result.stderr, r"terminating the launcher: it still runs \d+ s after the results file was closed")
        self.assertIn("2 devices", result.stdout)

    def test_a_smoke_keeps_to_its_time(self):
        """From exec to exit. Beside other work it may take longer: then nothing is known. ASSAY_TEST_SLACK gives seconds and the reason, as in '10 shared runner'."""
        slack, _, why = os.environ.get("ASSAY_TEST_SLACK", "0").partition(" ")
        self.assertTrue(slack == "0" or why, "ASSAY_TEST_SLACK without its reason")
        for ranks, launcher in [(1, "none"), (2, f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2")]:
            with self.subTest(ranks=ranks):
                begin, others = time.monotonic(), harness.OtherWork()
                result = self.assay("run", "--level", "smoke", "--out", f"{ranks}.h5", "--launcher", launcher)
                seconds = time.monotonic() - begin
                self.assertIn(result.returncode, (0, 3), result.stdout + result.stderr)
                ran = re.search(r"^ran ([\d.]+) s of 15 s$", result.stdout, re.M)
                self.assertTrue(ran, result.stdout)
                late, untold_s = float(ran[1]) > 1.1 * 15 + float(slack), seconds - float(ran[1])
                if (late or untold_s > 1.5) and others.share() > 0.2:
                    self.skipTest(f"noise: others used {others.share():.0%} of the cores, ran {ran[1]} s of 15 s, told after {untold_s:.1f} s")
                self.assertFalse(late, result.stdout)
                self.assertLess(untold_s, 1.5, "what is told is what it took")

    def test_a_wrong_output_is_told_before_memory_is_taken(self):
        self.write("r.h5", "precious")
        run = [harness.ASSAY, "run", "--level", "quick", "--launcher", "none", "--out", "r.h5"]
        peak = "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        result = harness.execute([sys.executable, "-c", peak, *run], self.dir)
        code, kib = map(int, result.stdout.split())
        self.assertEqual(code, 4, result.stderr)
        self.assertLess(kib, 300 << 10, "peak memory of a process in KiB")

    def test_what_a_job_script_did_before_counts_for_nothing(self):
        """A script that ends with exec has the age of the program, or of its launcher."""
        run = f"{harness.ASSAY} run --suites selftest --selftest.cases pass --level smoke --out"
        job = f"{{ sleep 14; exec {run} a.h5; }} & sleep 14; exec {harness.MPIEXEC} -n 2 {run} b.h5"
        result = harness.execute(["sh", "-c", job], self.dir)
        for name in ("a.h5", "b.h5"):
            self.assertRegex(self.assay("inspect", name).stdout, "(?m)^state +complete$", result.stdout + result.stderr)
        ran = [float(seconds) for seconds in re.findall(r"(?m)^ran ([\d.]+) s of 15 s$", result.stdout)]
        self.assertEqual(len(ran), 2, result.stdout)
        self.assertLess(max(ran), 14)

    def test_a_soak_has_the_worst_code_of_its_segments(self):
        launcher = f"{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2"
        run = ["run", "--level", "soak", "--duration", "4s", "--segment", "2s", "--suites", "selftest"]
        for cases, fails in [("pass", False), ("pass,fail", True)]:
            result = self.assay(*run, "--selftest.cases", cases, "--out", f"{fails}.h5", "--launcher", launcher)
            # Of a busy machine a segment may be INCONCLUSIVE. The last verdict is that on both.
            codes = [int(code) for code in re.findall(r"\(exit (\d)\)", result.stdout)]
            self.assertEqual((len(codes), 2 in codes), (3, fails), result.stdout)
            self.assert_code(result, 2 if fails else max(codes))
            self.assertEqual(codes[-1], result.returncode, result.stdout)
            self.assertNotIn("wrote no", result.stderr)
            self.assertEqual([name for name in self.left_behind() if name.startswith(str(fails))],
                             [f"{fails}-seg01.h5", f"{fails}-seg02.h5"], result.stderr)

    def test_a_report_that_cannot_be_written_hides_no_verdict(self):
        """Nor does the file's PASS hide that it could not be written."""
        run = ["run", "--suites", "selftest", "--level", "smoke", "--force", "--json", "/dev/full", "--out", "r.h5"]
        for launcher in ["none", f"{harness.MPIEXEC} --allow-run-as-root -n 1"]:
            for cases, code in [("pass,fail", 2), ("pass", 3)]:
                with self.subTest(launcher=launcher, cases=cases):
                    result = self.assay(*run, "--selftest.cases", cases, "--launcher", launcher)
                    self.assert_code(result, code)
                    self.assertIn("--json: cannot write '/dev/full'", result.stderr)

    def test_what_is_lost_twice_is_a_fault_of_one_run(self):
        """The only node is lost, tried once more, and lost again: one file, one verdict. A name that a kept file could take is left alone."""
        self.write("r.launch1.h5", "precious")
        result = self.assay("run", "--suites", "selftest", "--level", "smoke", "--inject", "crash:rank=0", "--out", "r.h5",
                            "--launcher", f"{harness.MPIEXEC} --allow-run-as-root -n 1")
        self.assert_code(result, 2)
        self.assertEqual(self.left_behind(), ["r.h5", "r.launch1.h5"])
        self.assertEqual((self.dir / "r.launch1.h5").read_text(), "precious")
        self.assertEqual(result.stderr.count("launching again"), 1, result.stderr)
        self.assertEqual(result.stderr.count("ending mpi"), 2, "the launcher would wait for what was lost")
        self.assertIn("TRIAGE", result.stdout)

    def test_what_the_first_launch_found_stands_where_the_second_does_not_begin(self):
        """Rank 0 is lost in the first, in the case after the one that fails: this seed has that order."""
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f'#!/bin/sh\nif [ -e first ]; then exit 1; fi\ntouch first\nexec {harness.MPIEXEC} --allow-run-as-root -n 1 "$@"\n')
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "selftest", "--selftest.cases", "fail,pass", "--seed", "3",
                            "--inject", "crash:rank=0,case=pass", "--out", "r.h5", "--launcher", str(launcher))
        self.assertIn("launching again", result.stderr)
        self.assert_code(result, 2)
        self.assertRegex(result.stdout, r"(?m)^FAIL \(exit 2\)")
        self.assert_code(self.assay("verdict", "r.h5"), 2)
        self.assertEqual(self.left_behind(), ["first", "launcher.sh", "r.h5"])

    def test_partial_results_of_the_first_launch_keep_their_name(self):
        launcher = self.dir / "launcher.sh"
        launcher.write_text(f"""#!/bin/sh
if [ -e first ]; then exit 1; fi
{harness.MPIEXEC} --allow-run-as-root --oversubscribe -n 2 "$@" &
until ls r.h5.partial/cases/*.h5 >first 2>&1; do sleep 0.05; done
supervisor=$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' r.h5.partial/owner)
kill -9 $supervisor $(cat /proc/$supervisor/task/*/children)
wait
""")
        launcher.chmod(0o755)
        result = self.assay("run", "--suites", "inventory,gemm", "--gemm.sizes", "256", "--level", "smoke", "--exclude", "nosuch", "--out", "r.h5",
                            "--launcher", str(launcher))
        self.assertIn("launching again", result.stderr)
        self.assert_code(result, 3)
        self.assertIn("results of an earlier launch are in r.h5.partial\n", result.stderr)
        self.assert_code(self.assay("recover", "r.h5.partial", "-o", "r.h5"), 0)

    def test_relaunch_0_launches_once(self):
        result = self.assay("run", "--suites", "selftest", "--level", "smoke", "--inject", "crash:rank=0", "--out", "r.h5",
                            "--relaunch", "0", "--launcher", f"{harness.MPIEXEC} --allow-run-as-root -n 1")
        self.assert_code(result, 3)
        self.assertEqual(self.left_behind(), ["r.h5"])
        self.assertNotIn("launching again", result.stderr)

    def test_expected_ranks(self):
        result = self.mpirun(2, "run", "--suites", "selftest", "--expect-ranks", "4", "--quiet", "--out", "r.h5")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("4", result.stdout + result.stderr)


if __name__ == "__main__":
    harness.main()
