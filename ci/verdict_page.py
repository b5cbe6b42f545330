#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps README.md and rules.md of src/verdict true to the code. Prints one line per breach; exit code 1 if there is any.

    ci/verdict_page.py            check constants.md, the values that the pages quote, and that their tests and sources exist
    ci/verdict_page.py --write    make constants.md of the constants' headers
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "src/verdict"
TABLE = FOLDER / "constants.md"
HEADERS = {"constants.hpp": "constants.cpp", "network_constants.hpp": "network_constants.hpp"}
CONSTANT = re.compile(r"inline constexpr [\w:]+ (\w+) =\s*([^;]+);")


def groups(header: Path):
    """Of a header: (reason, [(name, value)]) for each comment that stands above constants."""
    found, reason, fresh = [], [], True
    text = re.sub(r"=\n\s+", "= ", header.read_text())
    for line in text[text.index("namespace"):].splitlines():
        if line.startswith("//"):
            reason = ([] if fresh else reason) + [line.lstrip("/ ")]
            fresh = False
        elif match := CONSTANT.match(line):
            if not fresh or not found:
                found.append((" ".join(reason), []))
            found[-1][1].append(match.groups())
            fresh = True
    return found


def page(parts) -> str:
    lines = ["# Constants of the verdict", "",
             "Made by `ci/verdict_page.py --write` from `constants.hpp` and `network_constants.hpp`; do not edit.", "",
             "| constant | reason |", "|---|---|"]
    for reason, constants in parts:
        lines.append(f"| {'<br>'.join(f'`{name}` = {value}' for name, value in constants)} | {reason} |")
    return "\n".join(lines) + "\n"


def number(text: str) -> float:
    """The value of a C++ expression of numbers."""
    if not re.fullmatch(r"[\d.e*/<() +-]+", text):
        raise ValueError(text)
    return float(eval(text))  # digits and operators only


def quoted_breaches(text: str, values: dict):
    """Where a page says `name` = 3 % or `name` = 30 and the code another number."""
    for name, value, percent in re.findall(r"`(\w+)`\s+=\s+(\d+(?:\.\d+)?)(\s*%)?", text):
        if name not in values:
            yield f"`{name}` is no constant"
        elif abs(number(values[name]) - float(value) / (100 if percent else 1)) > 1e-9:
            yield f"`{name}` is {values[name]}, not {value}{percent}"


def test_breaches(text: str):
    """Tests that a page names and no source has; rows of rules without a test."""
    sources = "\n".join(p.read_text() for p in (ROOT / "tests/unit").rglob("*.cpp"))
    have = {".".join(pair) for pair in re.findall(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", sources, re.M)}
    named = set(re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", text))
    for name in sorted(named - have):
        yield f"no test {name}"
    for row in re.findall(r"^\| \*\*.*", text, re.M):
        if not re.search(r"`[A-Z]\w+\.[A-Z]\w+`", row):
            yield f"a rule without a test: {row[:40]}"


def main() -> int:
    parts, breaches, values = [], [], {}
    for header, json in HEADERS.items():
        found = groups(FOLDER / header)
        stored = (FOLDER / json).read_text()
        for _, constants in found:
            for name, value in constants:
                values[name] = value
                if not re.search(rf'{{"\w+", {name}}}', stored):
                    breaches.append(f"{json}: {name} is not copied into the file's inputs")
        parts += found
    if "--write" in sys.argv[1:]:
        TABLE.write_text(page(parts))
    elif not TABLE.exists() or TABLE.read_text() != page(parts):
        breaches.append(f"{TABLE.name} differs from the headers: run ci/verdict_page.py --write")
    for document in ("README.md", "rules.md"):
        text = (FOLDER / document).read_text()
        sources = (f"no source {name}" for name in sorted(set(re.findall(r"`(\w+\.[ch]pp)`", text)))
                   if not (FOLDER / name).exists())
        breaches += [f"{document}: {what}"
                     for what in (*quoted_breaches(text, values), *test_breaches(text), *sources)]
    for text in breaches:
        print(f"src/verdict/{text}")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
