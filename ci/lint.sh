#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rules of this project that a compiler does not check. Prints one line per breach; exit code 1 if there is any.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
breaches=0

breach() {
  printf '%s\n' "$*"
  breaches=$((breaches + 1))
}

# Files of the project: those of git in a checkout, otherwise all in this directory.
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

# Length of files.
while read -r file; do
  [ -n "$file" ] || continue
  lines=$(wc -l <"$file")
  [ "$lines" -le 400 ] || breach "$file: $lines lines, more than 400"
done < <(select_files '\.(cpp|hpp|cu|cuh|sh|py|mjs|ts)$')

# Length of functions; tests may be longer.
mapfile -t matched < <(select_files '^(src|kernels|suites)/.*\.(cpp|hpp|cu|cuh)$')
while read -r hit; do
  [ -z "$hit" ] || breach "$hit"
done < <(ci/function_lengths.py "${matched[@]}")

# Sources as .clang-format says. Other major versions of clang-format break lines elsewhere.
mapfile -t matched < <(select_files '\.(cpp|hpp|cu|cuh)$')
if command -v clang-format >/dev/null && clang-format --version | grep -q 'version 14\.'; then
  while read -r file; do
    [ -z "$file" ] || breach "$file: not as clang-format writes it (clang-format -i)"
  done < <(printf '%s\n' "${matched[@]}" | xargs -P 4 -n 20 clang-format --dry-run 2>&1 | sed -n 's/^\([^:]*\):.*\[-Wclang-format-violations\]$/\1/p' | sort -u)
else
  while read -r hit; do
    [ -z "$hit" ] || breach "$hit: a line of more than 110 columns"
  done < <(awk 'length($0) > 110 { print FILENAME ":" FNR }' "${matched[@]}")
fi

# Prose in Markdown: at most 120 characters a line, outside of tables and code.
# shellcheck disable=SC2016
while read -r hit; do
  [ -n "$hit" ] || continue
  text=${hit#*:*:}
  [ "$(LC_ALL=C.UTF-8; printf '%s' "${#text}")" -le 120 ] || breach "${hit%%:"$text"}: prose of more than 120 columns"
done < <(select_files '\.md$' | xargs awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code } !code && !/^ *\|/ && length($0) > 120 { print FILENAME ":" FNR ":" $0 }')

# The first page stays one that is read; reference material is in the folders.
[ "$(wc -l <README.md)" -le 300 ] || breach "README.md: $(wc -l <README.md) lines, more than 300"

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
forbid_include '^kernels/' '(cli|config|topology|telemetry|device|transport|measure|suite|workload|run|results|verdict|report|simulate|import|supervisor|suites)/' \
  'kernels know nothing above them'
forbid_include '^src/(base|device)/.*\.hpp$' 'fmt/' 'headers that CUDA sources reach carry no fmt'
forbid_include '^src/(base|config|supervisor|measure|results|verdict|report|simulate|import)/' 'mpi\.h' 'no MPI here'

# Every folder of src, and what it may include beside itself, downward only.
declare -A may_include=(
  [base]=''
  [config]='base'
  [supervisor]='base'
  [measure]='base'
  [results]='base'
  [device]='base kernels'
  [topology]='base results'
  [telemetry]='base topology'
  [transport]='base supervisor device kernels'
  [verdict]='base measure results'
  [import]='base results'
  [report]='base measure results verdict'
  [simulate]='base config results verdict'
  [suite]='base config supervisor measure results topology telemetry device transport'
  [workload]='base measure topology device transport suite kernels'
  [run]='base config supervisor measure results topology telemetry device transport verdict suite'
  [cli]='base config supervisor measure results topology device transport verdict import report simulate suite run'
)
project_folders="${!may_include[*]} kernels"
for folder in $(select_files '^src/[^/]+/' | cut -d/ -f2 | sort -u); do
  if [ -z "${may_include[$folder]+known}" ]; then
    breach "src/$folder: a folder of no layer (the table is in ci/lint.sh)"
    continue
  fi
  forbidden=''
  for other in $project_folders; do
    [[ " $folder ${may_include[$folder]} " == *" $other "* ]] || forbidden+="${forbidden:+|}$other"
  done
  forbid_include "^src/$folder/" "($forbidden)/" "src/$folder may include: $folder ${may_include[$folder]}"
done

# No literal suite name in src, but in the simulator's own list of metrics.
mapfile -t matched < <(select_files '^src/' | grep -v '^src/simulate/catalogue\.cpp$')
hits=$(grep -n -H -E '"(gemm|memory|p2p|allreduce|train|burn|congestion|storage)"' "${matched[@]}" || true)
if [ -n "$hits" ]; then
  while read -r hit; do breach "$hit: the name of a suite"; done <<<"$hits"
fi
forbid_include '^(src|kernels)/' '(suites|tests)/' 'only generated code and tests include suites'

mapfile -t matched < <(select_files '^src/verdict/.*\.(cpp|hpp)$')
hits=$(grep -n -H -E '"(inventory|selftest)"' "${matched[@]}" || true)
if [ -n "$hits" ]; then
  while read -r hit; do breach "$hit: what a case is stands in results/described.hpp"; done <<<"$hits"
fi

# No literal name of a kind of GPUs in src outside its own folders: CMake lists them (ASSAY_BACKENDS).
mapfile -t matched < <(select_files '^src/' | grep -v -E '^src/(device|transport)/cuda/|\.md$|CMakeLists\.txt$')
hits=$(grep -n -H -E '"cuda|cuda_(backend|transports)' "${matched[@]}" || true)
if [ -n "$hits" ]; then
  while read -r hit; do breach "$hit: the name of a kind of GPUs"; done <<<"$hits"
fi
forbid_include '^src/(base|cli|config|supervisor|import|measure|report|results|run|simulate|suite|telemetry|topology|verdict|workload)/' \
  '(device|transport)/cuda/' 'kinds of GPUs are reached through device/backend.hpp and transport/gpu_transports.hpp'

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

# The pages of the verdict: constants, tests and sources that they name.
python3 ci/verdict_page.py || breach 'src/verdict: see above'

# The page's script: types and a linter, where CMake has fetched them (build/npm).
npm=build/npm/node_modules
machine=$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
if [ -x "$npm/@typescript/typescript-linux-$machine/lib/tsc" ]; then
  rm -rf build/npm/lint
  mkdir build/npm/lint
  cp src/report/page/*.ts src/report/page/tsconfig.json build/npm/lint/
  "$npm/@typescript/typescript-linux-$machine/lib/tsc" -p build/npm/lint || breach 'src/report/page: tsc: see above'
  if command -v node >/dev/null && [ -f "$npm/oxlint/bin/oxlint" ]; then
    node "$npm/oxlint/bin/oxlint" --quiet -D correctness -D suspicious -A no-array-sort build/npm/lint || breach 'src/report/page: oxlint: see above'
    # Long tests run at night only: a name that is not imported shows here by day.
    node "$npm/oxlint/bin/oxlint" --quiet -c tests/page/.oxlintrc.json tests/page || breach 'tests/page: oxlint: see above'
  fi
else
  printf 'lint: src/report/page is not checked: configure with tests first\n'
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
