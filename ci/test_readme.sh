#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the Python examples of README.md and results-schema/README.md against a results file, feeds the TOML examples of
# README.md to the program, and checks that every `assay` option that a README names exists and every local link leads
# to a file.
#
#   ci/test_readme.sh ASSAY RESULTS.h5
set -euo pipefail

[ "$#" -eq 2 ] || { printf 'usage: ci/test_readme.sh ASSAY RESULTS.h5\n' >&2; exit 4; }
assay=$(realpath "$1") results=$(realpath "$2")
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
readme=$root/README.md
mapfile -t documents < <(find "$root" -name '*.md' -not -path '*/build*' -not -path '*/node_modules/*' -not -path '*/.git/*')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$results" "$work/run.h5"
cd "$work"

python=python3
"$python" -c 'import h5py, xarray' 2>/dev/null || python=/usr/bin/python3
# Each fenced python block is one program that reads run.h5.
awk '/^```python$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > ("example" n ".py") }' \
  "$readme" "$root/results-schema/README.md"
count=0
for example in example*.py; do
  [ -f "$example" ] || { printf 'README.md has no python example\n' >&2; exit 1; }
  printf -- '-- %s\n' "$example"
  "$python" "$example" >"$example.out" || { cat "$example" >&2; exit 1; }
  [ -s "$example.out" ] || { printf '%s printed nothing\n' "$example" >&2; exit 1; }
  head -n 6 "$example.out"
  count=$((count + 1))
done

# Each toml block says on its first line which file it is.
awk '/^```toml$/ { getline; file = $2; print > file; on = 1; next } /^```$/ { on = 0 } on { print > file }' "$readme"
for file in assay.toml limits.toml; do [ -s "$file" ] || { printf 'README.md has no %s\n' "$file" >&2; exit 1; }; done
"$assay" plan --config assay.toml >plan.txt || { cat plan.txt >&2; exit 1; }
code=0
"$assay" verdict run.h5 --limits limits.toml >verdict.txt 2>&1 || code=$?
case "$code" in
  0 | 2 | 3) ;;
  *) cat verdict.txt >&2; printf 'assay verdict with the limits of README.md left with %s\n' "$code" >&2; exit 1 ;;
esac

"$assay" run --help >run.help
"$assay" --help >>run.help
commands='run|plan|verdict|compare|inspect|export|schema|recover|simulate|import|report|trend|list'
for command in ${commands//|/ }; do "$assay" "$command" --help >>run.help; done
missing=0
while read -r option; do
  grep -q -- "$option\b" run.help || {
    printf 'a README names %s, which --help does not\n' "$option" >&2
    missing=1
  }
done < <(awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "${documents[@]}" | grep -E "(^|[ /])assay ($commands)\b" |
  sed "s/ #.*//; s/'[^']*'//g; s/.*assay //" | grep -oE -- '--[a-z][a-z0-9.-]*' | sort -u)
# Local links lead to files.
for document in "${documents[@]}"; do
  while read -r link; do
    [ -e "$(dirname "$document")/${link%%#*}" ] || {
      printf '%s links to %s, which does not exist\n' "${document#"$root/"}" "$link" >&2
      missing=1
    }
  done < <(grep -oE '\]\([^)#][^)]*\)' "$document" | sed 's/^](//; s/)$//' | grep -vE '^[a-z]+:' || true)
done
[ "$missing" -eq 0 ] || exit 1
printf 'README.md: %s examples ran\n' "$count"
