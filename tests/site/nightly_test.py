# SPDX-License-Identifier: Apache-2.0
"""scripts/nightly.sh with a program in the place of `assay` whose runs are simulated: a week of nights, locks, what is kept."""

import datetime
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import place

SIMULATE = """
import h5py
night = int((here / "night").read_text())
fault = ["--fault", "slow:node=3,percent=" + str(night - 2)] if night > 2 else []
code = subprocess.run([{assay!r}, "simulate", "--nodes", "16", "--metrics", "memory", "--run", str(night), "--run-cv", "0.1%", "--between-cv", "0.2%", "-o", out, *fault]).returncode
with h5py.File(out, "r+") as file:
    file.attrs["started"] = os.environ["NIGHT"] + "T02:00:00Z"
sys.exit(code)
"""
# The date of a night that is not today.
DATE = """#!/bin/bash
case "$*" in
  *'-d -'*) arguments=("${@/#-d/-d}"); for i in "${!arguments[@]}"; do [[ ${arguments[i]} == -*weeks ]] && arguments[i]="$NIGHT ${arguments[i]}"; done
            exec /bin/date "${arguments[@]}" ;;
  *-d*) exec /bin/date "$@" ;;
  *) exec /bin/date -d "$NIGHT 02:00:00 UTC" "$@" ;;
esac
"""


class Nightly(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.fake = self.fake_assay()
        self.settings(ASSAY=self.fake)
        self.runs(place.COPY)

    def night(self, *args, **env):
        return self.script("nightly.sh", *args, env=env)

    def directory(self, date=None):
        found = list((self.results / (date or time.strftime("%Y-%m-%d", time.gmtime()))).iterdir())
        self.assertEqual(len(found), 1)
        return found[0]

    def test_a_long_verdict_keeps_its_end_and_says_what_is_left_out(self):
        (self.dir / "verdict.txt").write_text("simulated: x\n" + "WARN  something to look at\n" * 20000 + "reason\nFAIL (exit 2)\n")
        script = f"set -euo pipefail; . {place.SCRIPTS}/site.sh; for lines in 60 60 60 ''; do site_summary night 2 {self.dir} $lines; done"
        result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30)
        self.assert_code(result, 0)
        self.assertEqual(len(result.stdout.splitlines()), 3 * (2 + 61) + 2 + 20002)
        self.assertEqual(result.stdout.count(f"... 19942 more lines: {self.dir}/verdict.txt\n"), 3)
        self.assertEqual(result.stdout.count("\nreason\nFAIL (exit 2)\n"), 4)
        self.assertNotIn("simulated", result.stdout)

    def test_a_report_of_an_acceptance_has_the_whole_verdict(self):
        self.made(nodes=4)
        real = self.fake.rename(self.dir / "bin" / "real")
        self.program("assay-under-test", f'#!/bin/bash\n{real} "$@"; code=$?\ncase "$*" in verdict*--report*) seq -f "line %g" 200 ;; esac\nexit $code\n')
        result = self.script("acceptance.sh")
        self.assert_code(result, 0)
        self.assertIn("\n".join(f"line {number}" for number in range(1, 201)), result.stdout)

    def test_what_is_left_of_a_night_that_was_killed_between_two_launches_is_judged(self):
        self.made(nodes=4)
        left = self.results / "2026-01-01" / "nightly-020000"
        left.mkdir(parents=True)
        for number in (2, 10):  # the later one is judged
            shutil.copy(self.dir / "made.h5", left / f"run.launch{number}.h5")
        (left / "run.launch2.h5").write_text("an earlier launch")
        self.assert_code(self.night(), 0)
        self.assertEqual({path.name for path in left.glob("run.*")}, {"run.h5", "run.launch2.h5"})
        self.assertIn("(exit 0)", (left / "verdict.txt").read_text())
        self.assertIn("recovered: ", (self.results / "log").read_text())

    def test_a_launch_that_had_not_taken_over_what_the_one_before_measured_is_not_the_night(self):
        self.made(nodes=4)
        left = self.results / "2026-01-01" / "nightly-020000"
        partial = left / "run.h5.partial"
        partial.mkdir(parents=True)
        (partial / "plan.json").write_text("cut off")
        shutil.copy(self.dir / "made.h5", left / "run.launch1.h5")
        (partial / "events.jsonl").write_text('{"kind": "resumed", "text": "9 cases were taken over from run x"}\n')
        self.assert_code(self.night(), 0)
        self.assertFalse((left / "run.h5").exists(), "this one may be recovered later")
        (partial / "events.jsonl").write_text("")
        self.assert_code(self.night(), 0)
        self.assertTrue((left / "run.h5").exists())

    def test_a_week_in_which_a_node_drifts(self):
        try:
            subprocess.run(["/usr/bin/python3", "-c", "import h5py"], check=True, capture_output=True)
        except subprocess.CalledProcessError:
            self.skipTest("no h5py for /usr/bin/python3 (package python3-h5py)")
        self.runs(SIMULATE.format(assay=place.ASSAY))
        self.program("date", DATE)
        told, prom = {}, self.dir / "assay.prom"
        self.settings(ASSAY=self.fake, ASSAY_PROM=prom, ASSAY_DRAIN="print")
        for night in range(1, 8):
            date = f"2026-03-{night:02}"
            (self.dir / "night").write_text(str(night))
            result = self.night(NIGHT=date)
            verdict = json.loads((self.directory(date) / "verdict.json").read_text())
            self.assertEqual(result.returncode, verdict["exit_code"], result.stdout + result.stderr)
            self.assertIn(f'assay_run_started_timestamp_seconds {int(datetime.datetime.fromisoformat(date + "T02:00:00+00:00").timestamp())}\n',
                          prom.read_text(), "the metrics are those of this night")
            told[night] = [f for f in verdict["findings"] if f["severity"] in ("WARN", "FAIL")]
            self.assertEqual({f["name"].split("/")[0] for f in told[night]} - {"sim03"}, set(), f"night {night} accuses a healthy node")
            self.assertEqual((self.results / "log").read_text().count("\n"), night)
        # It loses 1 % a night from the third on. One night may be chance: the history tells on the second, with the first as the date.
        self.assertEqual([f for night in (1, 2) for f in told[night]], [])
        drift = [f for f in told[4] if f["kind"] == "drift"]
        self.assertTrue(drift, told[4])
        self.assertIn("2026-03-03T02:00:00Z", {f["since"] for f in drift})
        self.assertLessEqual({f["since"][:10] for f in drift}, {"2026-03-03", "2026-03-04"})
        self.assertIn("2026-03-03", (self.directory("2026-03-04") / "summary.txt").read_text())
        # And while it goes on it becomes a fault, which it stays.
        self.assertEqual([any(f["severity"] == "FAIL" for f in told[night]) for night in (5, 6, 7)], [True] * 3)
        self.assertTrue((self.directory("2026-03-07") / "summary.txt").read_text().startswith("assay night 2026-03-07: FAIL (exit 2), "))
        # The index knows the last night already: given alone it would be refused if it did not.
        index = subprocess.run([place.ASSAY, "verdict", self.directory("2026-03-07") / "run.h5", "--history",
                                self.results / "history" / "assay-history.index"], capture_output=True, text=True)
        self.assertEqual((index.returncode, index.stderr), (2, ""))

    def test_what_a_night_leaves_and_tells(self):
        self.made(nodes=8)
        prom = self.dir / "collector" / "assay.prom"
        prom.parent.mkdir()
        notify = self.program("tell", f"#!/bin/sh\ncat > {self.dir}/told\n")
        self.settings(ASSAY=self.fake, ASSAY_PROM=prom, ASSAY_NOTIFY=notify, ASSAY_OPTIONS="--expect-nodes 8", ASSAY_LEVEL="extended")
        result = self.night("--cases", "gemm/*", SLURM_JOB_ID="77")
        self.assert_code(result, 0)
        today = time.strftime("%Y-%m-%d", time.gmtime())
        directory = self.results / today / "nightly-77"
        self.assertEqual(sorted(p.name for p in directory.iterdir()),
                         ["assay.prom", "junit.xml", "nodes.txt", "report.html", "run.h5", "run.log", "summary.txt", "verdict.json", "verdict.txt"])
        self.assertTrue(result.stdout.startswith(f"assay night {today}: PASS (exit 0), 8 PASS\n"), result.stdout)
        self.assertIn(f"\n{directory}/run.h5\n{directory}/report.html\n", result.stdout)
        self.assertEqual((self.dir / "told").read_text(), result.stdout)
        self.assertEqual(prom.read_text(), (directory / "assay.prom").read_text())
        self.assertEqual([p.name for p in prom.parent.iterdir()], ["assay.prom"])
        self.assertEqual((self.dir / "arguments").read_text().split("\n"),
                         ["run", "--require", "coverage", "--level", "extended", "--quiet", "--cases", "gemm/*", "--expect-nodes", "8", "--out", str(directory / "run.h5")])
        history = self.results / "history" / f"{today}-nightly-77.h5"
        self.assertTrue(history.samefile(directory / "run.h5"), "one copy")
        self.assertRegex((self.results / "log").read_text(), r"^\S+Z nightly job=77 exit=0 assay night .*: PASS \(exit 0\), 8 PASS \S+/nightly-77\n$")
        self.assertEqual(self.night("--quiet", SLURM_JOB_ID="78").stdout, "", "nothing to tell")
        self.assertIn("--history\n" + str(self.results / "history"), (self.dir / "arguments").read_text())

    def test_an_option_of_the_script_takes_the_place_of_the_same_setting(self):
        self.made(nodes=8)
        self.settings(ASSAY=self.fake, ASSAY_OPTIONS="--limits site.toml --expect-nodes=16 --suites gemm --seed 1 --require clock_hz --strict")
        (self.results / "history").mkdir(parents=True)
        shutil.copy(self.dir / "made.h5", self.results / "history" / "2026-01-01-nightly-1.h5")
        result = self.night("--level", "quick", "--expect-nodes", "8", "--limits=other.toml", "--suites", "memory", "--require", "power_w", "--strict")
        arguments = (self.dir / "arguments").read_text().split("\n")
        self.assertEqual(arguments[:arguments.index("--out")],
                         ["run", "--require", "coverage", "--quiet", "--history", str(self.results / "history"), "--level", "quick", "--expect-nodes", "8",
                          "--limits=other.toml", "--suites", "memory", "--require", "power_w", "--strict", "--seed", "1", "--require", "clock_hz"], result.stderr)
        self.night("--history", "elsewhere", SLURM_JOB_ID="2")
        self.assertEqual((self.dir / "arguments").read_text().count("--history"), 1)

    def test_settings_may_have_several_lines(self):
        self.made(nodes=8)
        notify = self.program("tell", f"#!/bin/sh\necho \"$@\" > {self.dir}/told\n")
        self.settings(ASSAY=self.fake, ASSAY_NOTIFY=f"{notify}\n  ops@example.org", ASSAY_OPTIONS="--limits /etc/l.toml\n--expect-nodes 16\n\t--seed 1\n",
                      ASSAY_LAUNCH="jsrun -N 4\n  --ppn=8")
        self.assert_code(self.night(), 0)
        arguments = (self.dir / "arguments").read_text()
        self.assertIn("\n--limits\n/etc/l.toml\n--expect-nodes\n16\n--seed\n1\n", arguments)
        self.assertRegex(arguments, r"(?m)^bash .* '-N' '4' '--ppn=8' '--'$")
        self.assertEqual((self.dir / "told").read_text(), "ops@example.org\n")

    def test_a_file_system_without_hard_links_gets_a_copy(self):
        self.made(nodes=8)
        self.program("ln", "#!/bin/sh\necho 'ln: Operation not permitted' >&2\nexit 1\n")
        result = self.night(SLURM_JOB_ID="1")
        self.assert_code(result, 0)
        self.assertEqual(result.stderr, "")
        kept = self.results / "history" / f"{self.directory().parent.name}-nightly-1.h5"
        self.assertEqual(kept.read_bytes(), (self.dir / "made.h5").read_bytes())
        # A disk that is full is told, and the night is told all the same.
        self.program("cp", "#!/bin/sh\nexit 1\n")
        result = self.night(SLURM_JOB_ID="2")
        self.assert_code(result, 0)
        self.assertIn(": PASS (exit 0)", result.stdout)
        self.assertRegex(result.stderr, r"^nightly.sh: later nights are not compared with this one: cannot write \S+-nightly-2.h5\n$")
        self.assertEqual([path.name for path in kept.parent.glob("*.h5*")], [kept.name])
        self.assertEqual((self.results / "log").read_text().count(": PASS (exit 0)"), 2)

    def test_the_exit_code_is_that_of_the_verdict(self):
        self.made(nodes=8, slow="node3", factor=0.5)
        self.runs(place.COPY + "sys.exit(137)\n")
        result = self.night("--quiet")
        self.assert_code(result, 2)
        self.assertIn(": FAIL (exit 2)", result.stdout.splitlines()[0])
        self.assertTrue(result.stdout.splitlines()[0].endswith(": node3"), result.stdout)
        self.assertNotIn("scontrol", result.stdout)
        self.settings(ASSAY=self.fake, ASSAY_DRAIN="print")
        self.assertIn("\nscontrol update NodeName=node3 State=DRAIN Reason=", self.night(SLURM_JOB_ID="2").stdout)

    def test_a_warning_is_told_although_the_exit_code_is_0(self):
        self.made(nodes=8, slow="node3", factor=0.95)
        result = self.night("--quiet")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"^assay night \S+: WARN \(exit 0\), ")

    def test_a_night_of_root_needs_nothing_in_its_environment(self):
        self.runs('assert os.environ["OMPI_ALLOW_RUN_AS_ROOT"] == os.environ["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] == "1"' + place.COPY)
        self.made(nodes=8)
        self.env = {name: value for name, value in self.env.items() if not name.startswith("OMPI_")}
        self.assert_code(self.night(), 0)

    def test_a_night_without_results_is_inconclusive_and_says_why(self):
        self.runs('print("the fabric is on fire", file=sys.stderr); sys.exit(1)\n')
        result = self.night()
        self.assert_code(result, 3)
        self.assertIn("INCONCLUSIVE (exit 3)", result.stdout)
        self.assertRegex(result.stdout, r"no results: .*\b1\nthe fabric is on fire\n")
        self.assertIn(" exit=3 ", (self.results / "log").read_text())

    def test_wrong_options_leave_no_directory(self):
        self.runs('print("assay: --bogus: unknown option of run", file=sys.stderr); sys.exit(4)\n')
        result = self.night("--bogus")
        self.assert_code(result, 4)
        self.assertIn("--bogus: unknown option", result.stdout)
        self.assertNotIn("run.h5", result.stdout)
        self.assertRegex((self.results / "log").read_text(), r" exit=4 .*: --bogus: unknown option of run\n$")
        self.assertEqual(sorted(path.name for path in self.results.iterdir()), ["history", "log"])

    def test_old_samples_go_and_verdicts_stay(self):
        self.made(nodes=2)
        self.program("date", DATE)
        self.settings(ASSAY=self.fake, ASSAY_KEEP_NIGHTS="3", ASSAY_KEEP_WEEKS="6")
        first = datetime.date(2026, 1, 5)  # a Monday
        dates = [str(first + datetime.timedelta(days=day)) for day in range(60)]
        for date in dates[:-1]:
            folder = self.results / date / "nightly-1"
            folder.mkdir(parents=True)
            (folder / "verdict.json").write_text("{}")
            shutil.copy(self.dir / "made.h5", folder / "run.h5")
            (self.results / "history").mkdir(exist_ok=True)
            os.link(folder / "run.h5", self.results / "history" / f"{date}-nightly-1.h5")
        # Nights that are not in the history, as those that were killed: two old ones, and one of the last three days.
        outside = [self.results / date / "nightly-2" / name for date, name in ((dates[0], "run.h5"), (dates[-10], "run.h5.partial"), (dates[-2], "run.h5"))]
        for path in outside:
            path.parent.mkdir()
            path.touch()
        self.assertIn(self.night(NIGHT=dates[-1], SLURM_JOB_ID="1").returncode, (0, 3))
        self.assertEqual([path.exists() for path in outside], [False, False, True])
        kept = sorted(p.name[:10] for p in (self.results / "history").glob("*.h5"))
        # Mondays of the last six weeks, the night on which those begin, and the last three nights.
        mondays = [date for date in dates if datetime.date.fromisoformat(date).weekday() == 0]
        oldest = str(datetime.date.fromisoformat(dates[-1]) - datetime.timedelta(weeks=6))
        self.assertEqual(kept, sorted({date for date in mondays if date >= oldest} | {oldest} | set(dates[-3:])))
        self.assertEqual(sorted(p.parent.parent.name for p in self.results.glob("*/nightly-1/run.h5")), kept)
        self.assertEqual(len(list(self.results.glob("*/nightly-1/verdict.json"))), 60)

    def test_two_nights_never_overlap(self):
        self.made(nodes=2)
        self.runs(place.COPY + 'import time\n(here / "started").touch()\nwhile not (here / "go").exists():\n    time.sleep(0.05)\n')
        command = [place.SCRIPTS / "nightly.sh"]
        first = subprocess.Popen(command, env={**self.env, "SLURM_JOB_ID": "1"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(first.stdout.close)
        self.wait_for("started")
        second = self.night(SLURM_JOB_ID="2")
        self.assert_code(second, 3)
        self.assertEqual(second.stdout, "")
        self.assertIn("another night is still running", second.stderr)
        self.assertFalse(list(self.results.glob("*/nightly-2")))
        self.assertEqual(first.poll(), None)
        # A night that was killed leaves its lock; the next one sees that nobody holds it.
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        self.assertTrue((self.results / "nightly.lock").exists())
        (self.dir / "go").touch()
        self.assertIn(self.night(SLURM_JOB_ID="3").returncode, (0, 3))
        self.assertEqual([p.name for p in self.results.iterdir() if "lock" in p.name], [])
        self.assertTrue(list(self.results.glob("*/nightly-3/verdict.json")))
        # That of another host counts until it is old.
        lock = self.results / "nightly.lock"
        lock.mkdir()
        (lock / "owner").write_text("elsewhere 1 1\n")
        self.assert_code(self.night(SLURM_JOB_ID="4"), 3)
        os.utime(lock, (time.time() - 25 * 3600,) * 2)
        self.assertIn(self.night(SLURM_JOB_ID="5").returncode, (0, 3))
        self.assertTrue(list(self.results.glob("*/nightly-5/verdict.json")))

    def test_a_lock_that_cannot_be_made_is_no_other_night(self):
        self.made(nodes=2)
        self.results.mkdir()
        lock = self.results / "nightly.lock"
        lock.write_text("")
        result = self.night()
        self.assert_code(result, 3)
        self.assertEqual(result.stderr, f"nightly.sh: cannot make {lock}: File exists\n")
        self.assertRegex((self.results / "log").read_text(), rf" nightly job=- exit=3 not started: cannot make {lock}: File exists\n$")

    def test_a_full_disk_keeps_nobody_from_being_told(self):
        self.made(nodes=8, slow="node3", factor=0.5)
        self.results.mkdir()
        (self.results / "log").symlink_to("/dev/full")
        self.program("logger", f'#!/bin/sh\necho "$*" >>"{self.dir}/syslog"\n')
        notify = self.program("tell", f"#!/bin/sh\ncat > {self.dir}/told\n")
        self.settings(ASSAY=self.fake, ASSAY_DRAIN="print", ASSAY_NOTIFY=notify, ASSAY_SOAK_SEGMENTS="1")
        for kind, name in [("nightly", "summary.txt"), ("acceptance", "report.txt"), ("soak", "summary.txt")]:
            with self.subTest(kind):
                folder = "pathlib.Path(out).parent" + (".parent" if kind == "soak" else "")
                self.runs(place.COPY + f'({folder} / {name!r} / "x").mkdir(parents=True)\n')
                result = self.script(f"{kind}.sh")
                self.assert_code(result, 2)
                self.assertRegex(result.stderr, rf"(?m)^{kind}.sh: cannot write \S+/{name}$")
                self.assertIn(": FAIL (exit 2)", result.stdout)
                self.assertTrue(result.stdout.endswith((self.dir / "told").read_text()))
                self.assertRegex((self.dir / "syslog").read_text(), rf"-t assay {kind} exit=2 assay \S+ \S+: FAIL \(exit 2\), .*\n$")
                if kind != "acceptance":
                    self.assertIn("scontrol update NodeName=node3 State=DRAIN Reason=", result.stdout)

    def wait_for(self, name):
        end = time.monotonic() + 30
        while not (self.dir / name).exists():
            self.assertLess(time.monotonic(), end, f"no {name}")
            time.sleep(0.05)

    def test_the_signal_ahead_of_the_limit_reaches_the_run(self):
        self.made(nodes=2)
        self.runs(place.COPY + 'import signal\nimport time\nsignal.signal(signal.SIGUSR1, lambda *_: (here / "signalled").touch())\n(here / "started").touch()\n'
                  'while not (here / "signalled").exists():\n    time.sleep(0.05)\nsys.exit(3)\n')  # a pause would miss a signal before it
        night = subprocess.Popen([place.SCRIPTS / "nightly.sh"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.wait_for("started")
        night.send_signal(signal.SIGUSR1)
        out, _ = night.communicate(timeout=60)
        self.assertTrue((self.dir / "signalled").exists())
        self.assertIn(night.returncode, (0, 3), out)
        self.assertTrue((self.directory() / "verdict.json").exists(), "judged and kept")

    def test_numbers_may_begin_with_a_zero_and_be_very_large(self):
        self.made(nodes=2)
        self.settings(ASSAY=self.fake, ASSAY_KEEP_NIGHTS="08", ASSAY_KEEP_WEEKS="999999999")  # more than there is time
        result = self.night()
        self.assertIn(result.returncode, (0, 3), result.stderr)
        self.assertEqual(result.stderr, "")

    def test_the_signal_ahead_of_the_limit_ends_no_verdict(self):
        self.made(nodes=4)
        real = self.fake.rename(self.dir / "bin" / "real")
        self.program("assay-under-test", f'#!/bin/bash\ncase "$*" in verdict*--report*) kill -USR1 $PPID; sleep 0.2 ;; esac\nexec {real} "$@"\n')
        for script in ("nightly", "acceptance"):
            result = self.script(f"{script}.sh")
            self.assert_code(result, 0)
            self.assertIn(": PASS (exit 0), 4 PASS\n", result.stdout)
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "x"}
        self.program("scontrol", "#!/bin/sh\necho node0\n")
        self.program("sbatch", "#!/bin/sh\necho submitted\n")
        self.assertEqual(self.script("soak.sh", env=job).stdout, "submitted\n")

    def test_scripts_of_one_job_or_second_have_directories_of_their_own(self):
        self.results.mkdir()
        script = f"set -euo pipefail; . {place.SCRIPTS}/site.sh; site_settings; for i in 1 2 3; do site_directory nightly; done"
        env = {name: value for name, value in self.env.items() if not name.startswith(("SLURM_", "PBS_", "LSB_", "FLUX_"))}
        for job, name in [({"SLURM_JOB_ID": "7"}, "7"), ({"PBS_JOBID": "12[3].server"}, "12-3-.server"), ({"FLUX_JOB_ID": "fX2"}, "fX2"), ({}, None)]:
            result = subprocess.run(["bash", "-c", script], env={**env, **job}, capture_output=True, text=True, timeout=30)
            self.assert_code(result, 0)
            names = [pathlib.Path(line).name for line in result.stdout.split()]
            self.assertEqual(len(set(names)), 3)
            if name:
                self.assertEqual(names, [f"nightly-{name}", f"nightly-{name}-2", f"nightly-{name}-3"])

    def test_settings_that_are_wrong_are_named(self):
        for changes, text in [({"ASSAY": "no-such-program"}, "no program 'no-such-program': set ASSAY to its path in "), ({"ASSAY_KEEP_NIGHTS": "many"}, "ASSAY_KEEP_NIGHTS is a whole number, not 'many'"),
                              ({"ASSAY_RESULTS": "here"}, "ASSAY_RESULTS must begin with /, not 'here'"), ({"ASSAY_RESULTS": "/proc/none"}, "ASSAY_RESULTS: cannot make /proc/none")]:
            self.settings(**changes)
            result = self.night()
            self.assert_code(result, 4)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(text, result.stderr)
        result = self.night(ASSAY_SITE="/nonexistent")
        self.assert_code(result, 4)
        self.assertRegex(result.stderr, r"^nightly\.sh: ASSAY_SITE: .*'/nonexistent'\n$")

    def test_every_setting_is_explained_and_has_the_value_it_says(self):
        names = "ASSAY ASSAY_RESULTS ASSAY_LAUNCH ASSAY_LEVEL ASSAY_OPTIONS ASSAY_PROM ASSAY_NOTIFY ASSAY_KEEP_NIGHTS ASSAY_KEEP_WEEKS " \
                "ASSAY_LOCK_HOURS ASSAY_DRAIN ASSAY_DRAIN_MOST ASSAY_RANKS ASSAY_PROLOG_EVERY ASSAY_STATE ASSAY_SOAK_SEGMENTS ASSAY_SOAK_MINUTES"
        show = f'for name in {names}; do echo "$name=${{!name}}"; done'
        self.program("assay", "#!/bin/sh\n")
        environment = {**self.env, "ASSAY_SITE": str(place.SCRIPTS / "site.conf")}
        template = subprocess.run(["bash", "-c", f'. "$ASSAY_SITE"; {show}'], env=environment, capture_output=True, text=True).stdout
        (self.dir / "site.conf").write_text("")
        loaded = subprocess.run(["bash", "-c", f'. "{place.SCRIPTS}/site.sh"; site_load; {show}'], env=self.env, capture_output=True, text=True).stdout
        self.assertEqual(template, loaded)
        listed = {line.split("=")[0] for line in (place.SCRIPTS / "site.conf").read_text().splitlines() if line.startswith("ASSAY")}
        self.assertEqual(listed, set(names.split()))


if __name__ == "__main__":
    place.main()
