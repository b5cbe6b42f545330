#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rules of the house that a compiler does not check. Prints one line per breach; exit code 1 if there is any.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
breaches=0

breach() {
  printf '%s\n' "$*"
  breaches=$((breaches + 1))
}

# Files of the project: what git knows where there is a checkout, otherwise what lies here.
files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files --cached --others --exclude-standard
  else
    find . -type f -not -path './build*' -not -path './.git/*' | sed 's|^\./||'
  fi
}

mapfile -t all < <(files | while read -r f; do [ -f "$f" ] && printf '%s\n' "$f"; done)
select_files() { printf '%s\n' "${all[@]}" | grep -E "$1" || true; }

# Every source says its licence on one of its first two lines (scripts start with #!).
while read -r file; do
  [ -n "$file" ] || continue
  head -n 2 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || breach "$file:1: no SPDX line"
done < <(select_files '\.(cpp|hpp|cu|cuh|c|h|in|sh|sbatch|py)$|^\.ci/run$')

# Short files are read; long ones are scrolled.
while read -r file; do
  [ -n "$file" ] || continue
  lines=$(wc -l <"$file")
  [ "$lines" -le 400 ] || breach "$file: $lines lines, more than 400"
done < <(select_files '\.(cpp|hpp|cu|cuh|sh|py)$')

# forbid_include FILES-REGEX INCLUDE-REGEX WHY
forbid_include() {
  local hits
  mapfile -t matched < <(select_files "$1")
  [ "${#matched[@]}" -gt 0 ] && [ -n "${matched[0]}" ] || return 0
  hits=$(grep -n -H -E "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]($2)" "${matched[@]}" || true)
  [ -z "$hits" ] && return 0
  while read -r hit; do breach "$hit: $3"; done <<<"$hits"
}

forbid_include '^kernels/' 'mpi\.h|hdf5|H5|fmt/' 'kernels know no MPI, HDF5 or fmt'
forbid_include '^kernels/' '(cli|config|topology|device|transport|measure|run|results|verdict|report|suites)/' \
  'kernels know nothing above them'
forbid_include '^src/(base|device)/.*\.hpp$' 'fmt/' 'headers that CUDA sources reach carry no fmt'
forbid_include '^src/(verdict|report|results)/' '(device|transport|topology|run|cli|kernels)/|mpi\.h' \
  'results, verdict and report know no device and no MPI'
forbid_include '^src/results/' '(verdict|report)/' 'results know no verdict'
forbid_include '^src/verdict/' 'report/' 'the verdict knows no report'
forbid_include '^src/base/' '(cli|config|topology|device|transport|measure|run|results|verdict|report)/' \
  'base is the lowest layer'
# results/model.hpp is plain values (an entity, a sample) that every layer may name.
forbid_include '^src/(config|topology|transport|measure|device)/' '(cli|run|verdict|report)/|results/(reader|writer)' \
  'includes go downward only'
forbid_include '^src/run/' 'cli/' 'includes go downward only'
forbid_include '^(src|kernels)/' 'suites/' 'only generated code and tests include suites'

# A suite may use its own folder only.
for suite in $(select_files '^suites/[^/]+/' | cut -d/ -f2 | sort -u); do
  mapfile -t matched < <(select_files "^suites/$suite/.*\.(cpp|hpp)$")
  if [ -z "${matched[0]:-}" ]; then continue; fi
  hits=$(grep -n -H -E '#include "suites/' "${matched[@]}" | grep -v "\"suites/$suite/" || true)
  if [ -n "$hits" ]; then
    while read -r hit; do breach "$hit: a suite knows no other suite"; done <<<"$hits"
  fi
done

# Paths of one machine do not belong here.
mapfile -t texts < <(select_files '\.(cpp|hpp|cu|cuh|sh|py|md|cmake|txt|json|toml)$|^\.ci/run$' | grep -v '^ci/lint\.sh$')
hits=$(grep -n -H -E '(/work/|/home/[a-z]+|/root/|/Users/)' "${texts[@]}" || true)
if [ -n "$hits" ]; then
  while read -r hit; do breach "$hit: path of one machine"; done <<<"$hits"
fi

# Shell scripts.
if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(select_files '\.(sh|sbatch)$|^\.ci/run$')
  shellcheck -x "${scripts[@]}" || breach "shellcheck: see above"
else
  breach 'shellcheck is not installed (package shellcheck)'
fi

if [ "$breaches" -gt 0 ]; then
  printf 'lint: %s breaches\n' "$breaches"
  exit 1
fi
printf 'lint: %s files, no breach\n' "${#all[@]}"
