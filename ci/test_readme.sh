#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the Python examples of README.md against a results file, and checks that every `assay` option it names exists.
#
#   ci/test_readme.sh ASSAY RESULTS.h5
set -euo pipefail

[ "$#" -eq 2 ] || { printf 'usage: ci/test_readme.sh ASSAY RESULTS.h5\n' >&2; exit 4; }
assay=$(realpath "$1") results=$(realpath "$2")
readme=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../README.md")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$results" "$work/run.h5"
cd "$work"

# Each fenced python block is one program that reads run.h5.
awk '/^```python$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("example" n ".py") }' "$readme"
count=0
for example in example*.py; do
  [ -f "$example" ] || { printf 'README.md has no python example\n' >&2; exit 1; }
  printf -- '-- %s\n' "$example"
  python3 "$example" >"$example.out" || { cat "$example" >&2; exit 1; }
  [ -s "$example.out" ] || { printf '%s printed nothing\n' "$example" >&2; exit 1; }
  head -n 6 "$example.out"
  count=$((count + 1))
done

"$assay" run --help >run.help
"$assay" --help >>run.help
for command in plan verdict inspect export schema recover list; do "$assay" "$command" --help >>run.help; done
missing=0
while read -r option; do
  grep -q -- "$option\b" run.help || {
    printf 'README.md names %s, which --help does not\n' "$option" >&2
    missing=1
  }
done < <(awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$readme" | grep -E '(^|[ /])assay ' |
  sed 's/.*assay //' | grep -oE -- '--[a-z][a-z0-9.-]*' | sort -u)
[ "$missing" -eq 0 ] || exit 1
printf 'README.md: %s examples ran\n' "$count"
