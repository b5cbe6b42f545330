#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts JUnit reports of ctest: prints "passed failed skipped" and names what failed or was skipped on standard error.

  junit_count.py [--strict] [--allow TEXT] REPORT [REPORT...]   a later report replaces what an earlier one says of a test
  junit_count.py --again REPORT [REPORT...]   names of the tests to run again alone: skipped for noise, or failed once

A test whose executable is missing is "skipped" to ctest. Here it is a failure: only a test that said so is skipped. An executable of
GoogleTests is one entry of ctest and counts as the tests that it ran; one that ends before it has run all of them is a failure more. Tests
with several ranks run at several sizes (NAME.1, NAME.2 ...): what was skipped at every size counts as one more skip.

A test of several processes that failed beside the others gets one more try with the machine to itself. If it passes, it counts as skipped,
since it has not passed as the others have, and is named UNSTABLE, with the output of its failure. An executable of GoogleTests gets none.

With --strict a skip is a failure unless it is for want of a GPU (but not of a test on emulated ones), of something that this CPU lacks, or of a privilege that is named
(tests/support/outcome.py), or its reason starts with a TEXT of --allow.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree

EXCUSED = ("no GPU here", "no privilege: ", "this CPU ")
NOISE = "noise: "
OF_GTEST = re.compile(r"\[\s+(OK|SKIPPED|FAILED)\s*\] (\S+\.[^\s,]+)")
ANNOUNCED = re.compile(r"\[=+\] Running (\d+) tests? from ")
AT_SIZES = re.compile(r"(.*mpi)\.\d+")
COLOR = re.compile(r"(?:\[NON-XML-CHAR-0x1B\]|\x1b)\[[0-9;]*m")  # mpirun's ranks take their output for a terminal


def state_of(case):
    skip = case.find("skipped")
    if skip is not None:
        text = skip.get("message", "")
        return "skipped" if text.startswith("SKIP_") else "failed"
    if case.get("status") == "disabled":
        return "failed"  # nothing is disabled in silence
    return "passed" if case.get("status") == "run" else "failed"


def output_of(case):
    return COLOR.sub("", case.findtext("system-out") or "").splitlines()


def reasons_of(case):
    """Every reason that a skipped test gave: `SKIPPED REASON`, or what follows GoogleTest's `FILE:LINE: Skipped`."""
    lines = [line.strip() for line in output_of(case)]
    said = [line.removeprefix("SKIPPED ") for line in lines if line.startswith("SKIPPED ")]
    said += [lines[i + 1] for i, line in enumerate(lines[:-1]) if line.endswith(": Skipped")]
    return said or ["no reason given"]


def gtests(lines):
    """(test, OK or SKIPPED or FAILED, reason of a skip) of what GoogleTest printed; its summary repeats some."""
    said = ""
    for i, line in enumerate(lines):
        if line.rstrip().endswith(": Skipped") and i + 1 < len(lines):
            said = lines[i + 1].strip()
        elif found := OF_GTEST.match(line.strip()):
            yield found[2], found[1], said
            said = ""


def in_executable(name, case):
    """{test: (state, reason)} of the GoogleTests that one process ran, None of an entry that is something else."""
    lines = output_of(case)
    announced = [int(match[1]) for line in lines if (match := ANNOUNCED.match(line))]
    if len(announced) != 1 or AT_SIZES.fullmatch(name):
        return None
    tests = {}
    for test, state, said in gtests(lines):
        old = tests.get(test, ("", ""))
        tests[test] = ({"OK": "passed", "SKIPPED": "skipped", "FAILED": "failed"}[state], said or old[1])
    ended = state_of(case)
    if len(tests) != announced[0]:
        begun = [line.split("]", 1)[1].strip() for line in lines if line.startswith("[ RUN ")]
        tests[f"{begun[-1] if begun else 'no test'}: the process ended in it, {len(tests)} of {announced[0]} tests had run"] = ("failed", "")
    elif ended != "passed" and "failed" not in {state for state, _ in tests.values()}:
        tests["after its tests"] = ("failed", "")
    return tests


def skipped_at_every_size(cases):
    """{"mpi: Suite.Test": reason} of GoogleTests that run in one process per rank and were skipped whatever the number of ranks."""
    states, reasons = {}, {}
    for name, case in cases.items():
        match = AT_SIZES.fullmatch(name)
        if not match or state_of(case) != "passed":
            continue
        for test, state, said in gtests(output_of(case)):
            test = f"{match[1]}: {test}"
            states.setdefault(test, set()).add(state)
            if said:
                reasons[test] = said
    return {test: reasons.get(test, "") for test, seen in states.items() if seen == {"SKIPPED"}}


def cases_of(reports):
    cases = {}
    for report in reports:
        cases.update((case.get("name"), case) for case in ElementTree.parse(report).getroot().iter("testcase"))
    return cases


def failures_of(reports):
    """{test: the entries of the reports in which it failed}, of all but executables of GoogleTests."""
    failures = {}
    for report in reports:
        for name, case in cases_of([report]).items():
            if state_of(case) == "failed" and in_executable(name, case) is None:
                failures.setdefault(name, []).append(case)
    return failures


def to_run_again(reports):
    failures = failures_of(reports)
    for name, case in cases_of(reports).items():
        tests = in_executable(name, case)
        reasons = (said for state, said in tests.values() if state == "skipped") if tests is not None else (
            reasons_of(case) if state_of(case) == "skipped" else ())
        if any(reason.startswith(NOISE) for reason in reasons) or (state_of(case) == "failed" and len(failures.get(name, ())) == 1):
            yield name


def print_end_of(case):
    for line in output_of(case)[-30:]:
        print(f"      | {line}", file=sys.stderr)


def count(cases, excused, failures):
    """{state: number}; `excused`: what the reason of a skip may start with, None for anything; `failures`: of failures_of."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}

    def skip(name, reasons):
        allowed = excused if excused is None or not name.startswith("emulated") else tuple(e for e in excused if "GPU" not in e)
        wrong = [] if allowed is None else [reason for reason in reasons if not reason.startswith(allowed)]
        counts["failed" if wrong else "skipped"] += 1
        print(f"   {'FAILED  skipped' if wrong else 'skipped'} {name}: {'; '.join(wrong or reasons)[:300]}", file=sys.stderr)

    def count_tests(name, tests, lines):
        for test, (state, said) in tests.items():
            if state == "skipped":
                skip(f"{name}: {test}", [said or "no reason given"])
                continue
            counts[state] += 1
            if state == "failed":
                print(f"   FAILED  {name}: {test}", file=sys.stderr)
                begin = next((i for i, line in enumerate(lines) if line.startswith("[ RUN ") and line.endswith(" " + test.split(": ")[0])), len(lines) - 30)
                for line in lines[max(begin, 0):][:30]:
                    print(f"      | {line}", file=sys.stderr)

    for name, case in cases.items():
        state = state_of(case)
        if (tests := in_executable(name, case)) is not None:
            count_tests(name, tests, output_of(case))
            continue
        if state == "skipped" and name in failures:
            counts["failed"] += 1
            print(f"   FAILED  {name}: failed beside the other tests, skipped alone: {'; '.join(reasons_of(case))}", file=sys.stderr)
            print_end_of(failures[name][-1])
            continue
        if state == "skipped":
            skip(name, reasons_of(case))
            continue
        unstable = state == "passed" and name in failures
        counts["skipped" if unstable else state] += 1
        if state == "failed":
            print(f"   FAILED  {name}", file=sys.stderr)
            print_end_of(case)
        elif unstable:
            print(f"   UNSTABLE {name}: failed beside the other tests, passed alone", file=sys.stderr)
            print_end_of(failures[name][0])
    for name, reason in skipped_at_every_size(cases).items():
        skip(name, [reason])
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--allow", action="append", default=[])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("reports", nargs="+")
    given = parser.parse_args()
    cases = cases_of(given.reports)
    if given.again:
        print("\n".join(to_run_again(given.reports)))
        return
    if not cases:
        raise SystemExit("no test ran")
    counts = count(cases, (*EXCUSED, *given.allow) if given.strict else None, failures_of(given.reports))
    print(counts["passed"], counts["failed"], counts["skipped"])


if __name__ == "__main__":
    main()
