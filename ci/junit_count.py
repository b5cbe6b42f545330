#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts a JUnit report of ctest: prints "passed failed skipped" and names what failed or was skipped on standard error.

A test whose executable is missing is "skipped" to ctest. Here it is a failure: only a test that said so is skipped.
"""
import sys
import xml.etree.ElementTree as ElementTree


def state_of(case):
    skip = case.find("skipped")
    if skip is not None:
        text = skip.get("message", "")
        return "skipped" if text.startswith("SKIP_") else "failed"
    if case.get("status") == "disabled":
        return "failed"  # nothing is disabled in silence
    return "passed" if case.get("status") == "run" else "failed"


def reason_of(case):
    output = case.findtext("system-out") or ""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [i for i, line in enumerate(lines) if "Skipped" in line or "SKIP" in line]
    return lines[min(marked[0] + 1, len(lines) - 1)][:160] if marked else ""


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    root = ElementTree.parse(sys.argv[1]).getroot()
    for case in root.iter("testcase"):
        state = state_of(case)
        counts[state] += 1
        if state == "failed":
            print(f"   FAILED  {case.get('name')}", file=sys.stderr)
            for line in (case.findtext("system-out") or "").splitlines()[-30:]:
                print(f"      | {line}", file=sys.stderr)
        elif state == "skipped":
            print(f"   skipped {case.get('name')}: {reason_of(case)}", file=sys.stderr)
    if sum(counts.values()) == 0:
        raise SystemExit("no test ran")
    print(counts["passed"], counts["failed"], counts["skipped"])


if __name__ == "__main__":
    main()
