# SPDX-License-Identifier: Apache-2.0
"""scripts/slurm/drain.sh with a scontrol that only remembers: who is drained, why, and who is left alone."""

import place

SCONTROL = """#!/bin/bash
# State and Reason of a node lie in files; every call is written down.
here={here}
case "$1" in
  listpids)
    [ ! -e "$here/deaf" ] || {{ echo 'scontrol: error: Unable to connect to slurmstepd' >&2; exit 1; }}
    cat "$here/pids" 2>/dev/null || {{ echo 'No job steps exist on this node.' >&2; exit 1; }} ;;
  show)
    node=${{@: -1}}
    [ -f "$here/$node" ] || exit 1
    printf 'NodeName=%s Arch=x86_64 State=%s ThreadsPerCore=1 ' "$node" "$(sed -n 1p "$here/$node")"
    reason=$(sed -n 2p "$here/$node")
    [ -z "$reason" ] || printf 'Reason=%s [root@2026-01-01T00:00:00]' "$reason"
    echo ;;
  update)
    shift
    printf '%s\\n' "$*" >>"$here/calls"
    [ ! -e "$here/broken" ] ;;
esac
"""

# `assay verdict FILE --nodes N --json J` with an answer of the test's own; the FAIL findings are the reasons of the nodes.
ANSWER = """#!/bin/bash
while [ "$#" -gt 0 ]; do
  case "$1" in
    --nodes) printf '{nodes}' >"$2" ;;
    --json) echo '{{"findings":[{findings}],"injected":false}}' >"$2" ;;
  esac
  shift
done
exit 2
"""
FINDING = '{{"severity":"{severity}","claim":"fact","level":"node","name":"x","members":[],"text":"{text}"}}'
LIMITS = '[[limit]]\nmetric = "gemm/*:throughput"\nmin = "90 GFLOP/s"\n'


class Drain(place.SiteTest):
    def setUp(self):
        super().setUp()
        self.slurm = self.dir / "slurm"
        self.slurm.mkdir()
        self.program("scontrol", SCONTROL.format(here=self.slurm))
        for node in range(8):
            self.node(f"node{node}", "IDLE")
        self.make_run("bad.h5", nodes=8, slow="node3", factor=0.5)
        self.make_run("good.h5", nodes=8, seed=2)
        (self.dir / "l.toml").write_text(LIMITS)

    def node(self, name, state, reason=""):
        (self.slurm / name).write_text(f"{state}\n{reason}\n")

    def calls(self):
        path = self.slurm / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def answers(self, nodes, *findings):
        """The verdict: lines of --nodes, and as findings the reasons of those that FAIL and FINDINGS, (severity, text)."""
        told = [("FAIL", line.split(" ", 2)[2]) for line in nodes if " FAIL " in line]
        findings = ",".join(FINDING.format(severity=severity, text=text) for severity, text in (*told, *findings))
        text = ANSWER.format(nodes="".join(line + "\\n" for line in nodes), findings=findings)
        self.settings(ASSAY=self.program("answer", text))

    def drain(self, *args):
        return self.script("slurm/drain.sh", *args)

    def test_without_apply_the_line_is_printed_and_nothing_runs(self):
        result = self.drain("bad.h5", "--limits", "l.toml")
        self.assert_code(result, 0)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith('scontrol update NodeName=node3 State=DRAIN Reason="assay: node3'), lines)
        self.assertIn("throughput", lines[0])
        self.assertEqual(self.calls(), [])

    def test_apply_runs_what_it_prints(self):
        result = self.drain("--apply", "bad.h5", "--limits", "l.toml")
        self.assert_code(result, 0)
        calls = self.calls()
        self.assertEqual(len(calls), 1, calls)
        self.assertTrue(calls[0].startswith("NodeName=node3 State=DRAIN Reason=assay: node3"), calls)
        self.assertEqual("scontrol update " + calls[0].replace("Reason=", 'Reason="') + '"', result.stdout.strip())

    def test_a_node_that_lacks_a_part_is_drained_and_one_behind_a_switch_is_not(self):
        self.answers(["node2 FAIL node2: one GPU cannot be used", "node5 FAIL switch:L3: slow", "node6 PASS"])
        result = self.drain("--apply", "bad.h5")
        self.assert_code(result, 0)
        self.assertEqual(self.calls(), ["NodeName=node2 State=DRAIN Reason=assay: node2: one GPU cannot be used"])
        self.assertRegex(result.stdout, r"(?m)^# node5 .*switch:L3: slow$")

    def test_a_node_that_is_named_with_its_only_nic_is_drained(self):
        self.answers(["node2 FAIL node2 (node2/eth0): all its pairs slow"])
        self.assert_code(self.drain("--apply", "bad.h5"), 0)
        self.assertEqual(self.calls(), ["NodeName=node2 State=DRAIN Reason=assay: node2 (node2/eth0): all its pairs slow"])

    def test_a_node_whose_first_finding_is_a_link_is_drained_for_its_own(self):
        link = "node2/gpu0>node3/gpu0: this pair slow"
        self.answers([f"node2 FAIL {link}", f"node3 FAIL {link}", "node4 FAIL cluster: 5 parts"], ("WARN", "node3: warm"),
                     ("FAIL", r'node2/gpu3: 1 \"wrong\" value, at {17}'), ("FAIL", "node2/gpu3: missing"), ("INFO", "node4: x"))
        result = self.drain("--apply", "bad.h5")
        self.assert_code(result, 0)
        self.assertEqual(self.calls(), ["NodeName=node2 State=DRAIN Reason=assay: node2/gpu3: 1 wrong value, at 17"])
        self.assertRegex(result.stdout, r"(?m)^# node3: only a link of it is slow: node2/gpu0>node3/gpu0: this pair slow$")
        self.assertRegex(result.stdout, r"(?m)^# node4 is not named itself: cluster: 5 parts$")

    def test_only_a_fail_drains(self):
        # 4 % below its peers is a warning: exit 0.
        self.make_run("warn.h5", nodes=8, slow="node3", factor=0.96)
        for run, state in [("warn.h5", "WARN"), ("good.h5", "PASS")]:
            judged = place.subprocess.run([place.ASSAY, "verdict", run], cwd=self.dir, capture_output=True, text=True)
            self.assertIn(f"\n{state} (exit 0)", judged.stdout)
            result = self.drain("--apply", run)
            self.assert_code(result, 0)
            self.assertEqual((result.stdout, self.calls()), ("", []))
        # INCONCLUSIVE: a limit that nothing measured meets.
        (self.dir / "other.toml").write_text('[[limit]]\nmetric = "p2p/latency-8:latency"\nmax = "1 us"\n')
        judged = place.subprocess.run([place.ASSAY, "verdict", "warn.h5", "--limits", "other.toml"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(judged.returncode, 3, judged.stdout)
        result = self.drain("--apply", "warn.h5", "--limits", "other.toml")
        self.assertEqual((result.returncode, self.calls()), (0, []), result.stdout + result.stderr)

    def test_a_node_that_somebody_drained_keeps_its_reason(self):
        self.node("node3", "IDLE+DRAIN", "new DIMM on the way")
        result = self.drain("--apply", "bad.h5", "--limits", "l.toml")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"^# node3 .*: new DIMM on the way\n$")
        self.assertEqual(self.calls(), [])

    def test_too_many_nodes_are_not_nodes(self):
        (self.dir / "all.toml").write_text(LIMITS.replace("90 GFLOP/s", "900 TFLOP/s"))
        result = self.drain("--apply", "--most", "0", "bad.h5", "--limits", "l.toml")
        self.assert_code(result, 3)
        self.assertRegex(result.stdout, r"\b1 nodes failed\b.*\b0\b")
        self.assertEqual(self.calls(), [])
        # A bound that all miss is a finding of the cluster and names no node.
        result = self.drain("--apply", "bad.h5", "--limits", "all.toml")
        self.assertEqual(self.calls(), [], result.stdout)

    def test_resume_brings_back_only_its_own(self):
        self.node("node1", "IDLE+DRAIN", "assay: node1/cores0-3: slow")
        self.node("node2", "IDLE+DRAIN", "new DIMM on the way")
        self.node("node3", "DRAINED", "assay: node3/cores0-3: slow")
        result = self.drain("--apply", "--resume", "bad.h5", "--limits", "l.toml")
        self.assert_code(result, 0)
        self.assertEqual(self.calls(), ["NodeName=node1 State=RESUME"], "node3 still fails, node2 is not ours")
        self.assertRegex(result.stdout, r"(?m)^# node2 .*: new DIMM on the way$")

    def test_a_check_has_reasons_of_its_own_and_resumes_these_alone(self):
        self.assert_code(self.drain("--apply", "--by", "healthcheck", "bad.h5", "--limits", "l.toml"), 0)
        [call] = self.calls()
        self.assertTrue(call.startswith("NodeName=node3 State=DRAIN Reason=assay: healthcheck: node3/"), call)
        self.node("node1", "IDLE+DRAIN", call.split("Reason=")[1])
        self.node("node2", "IDLE+DRAIN", "assay: node2/cores0-3: slow")
        self.node("node4", "IDLE+DRAIN", "assay: healthchecks: x")
        result = self.drain("--apply", "--resume", "--by", "healthcheck", "good.h5")
        self.assert_code(result, 0)
        self.assertEqual(self.calls()[1:], ["NodeName=node1 State=RESUME"])
        self.assertRegex(result.stdout, r"(?m)^# node2 is not ours to resume: assay: node2/cores0-3: slow$")
        # A night brings back both.
        self.drain("--apply", "--resume", "good.h5")
        self.assertEqual([line.split()[0] for line in self.calls()[2:]], ["NodeName=node1", "NodeName=node2", "NodeName=node4"])

    def test_simulated_and_injected_runs_touch_nobody(self):
        done = place.subprocess.run([place.ASSAY, "simulate", "--nodes", "8", "--fault", "bitflip:node=3,target=gemm", "-o", "sim.h5"],
                                    cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        result = self.drain("--apply", "sim.h5")
        self.assert_code(result, 0)
        self.assertRegex(result.stdout, r"^# .*\binjected\b.*\bsimulated\b")
        self.assertEqual(self.calls(), [])

    def test_scontrol_that_fails_is_told(self):
        (self.slurm / "broken").touch()
        result = self.drain("--apply", "bad.h5", "--limits", "l.toml")
        self.assert_code(result, 5)
        self.assertRegex(result.stderr, r"\bscontrol\b.*\bnode3\b")

    def test_wrong_use(self):
        for args, line in [([], "usage: "), (["--drain", "bad.h5"], "--drain"), (["--most", "x", "bad.h5"], "--most"), (["--by", "a b", "bad.h5"], "--by"),
                           (["none.h5"], "assay: ")]:
            result = self.drain(*args)
            self.assert_code(result, 4)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, f"^drain.sh: .*{line}")
            self.assertEqual(result.stderr.count("\n"), 1)
        self.settings(ASSAY_DRAIN="maybe")
        self.assertRegex(self.drain("bad.h5").stderr, r"\bASSAY_DRAIN\b.*'maybe'")


if __name__ == "__main__":
    place.main()
