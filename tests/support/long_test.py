# SPDX-License-Identifier: Apache-2.0
"""Tests that are too long for the sanitizers by day are in executables that scripts/test.sh --sanitize builds without them, too."""

import json
import pathlib
import re
import unittest

import outcome

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Long(unittest.TestCase):
    def test_executables_with_tests_that_the_sanitizers_leave_out_are_long(self):
        presets = {preset["name"]: preset for preset in json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]}
        patterns = presets["debug"]["environment"]["GTEST_FILTER"]
        self.assertTrue(patterns.startswith("-"), patterns)
        left_out = {pattern.split(".")[0] for pattern in patterns[1:].split(":")}
        unit, seen = ROOT / "tests" / "unit", set()
        for area in unit.glob("*.cmake"):
            for words in (found[1].split() for found in re.finditer(r"\bassay_test\(([^)]*)\)", area.read_text())):
                sources = [unit / word for word in words if word.endswith(".cpp") and (unit / word).exists()]
                held = left_out & {suite for source in sources for suite in re.findall(r"^TEST(?:_F|_P)?\((\w+),", source.read_text(), re.M)}
                if held:
                    self.assertIn("LONG", words, f"{words[0]} holds {sorted(held)}")
                seen |= held
        self.assertEqual(seen, left_out, "no test has such a name")


if __name__ == "__main__":
    outcome.main()
