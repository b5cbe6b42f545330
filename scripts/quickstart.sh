#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a fresh Debian 12 to a first verdict on this machine: packages, build, `assay run --level smoke`.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/quickstart.sh [OPTIONS]

Installs the packages assay needs, builds it, and runs `mpirun -n 2 assay run --level smoke` on this machine.
Ends by naming the results file and the verdict; the exit code is that of the run:
0 PASS, 2 FAIL, 3 INCONCLUSIVE, 4 usage, 5 internal error.

  --print        only print what would be done
  --no-install   never install a package
  --ranks N      MPI ranks (default 2)
  --level LEVEL  smoke, quick or standard (default smoke)
  --out FILE     results file that does not exist yet (default assay-<UTC time>.h5 in the current directory)
  --help         this text

ASSAY_BUILD_DIR names another build directory than build/release.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

print=0 install=1 ranks=2 level=smoke out=""
while [ "$#" -gt 0 ]; do
  case "$1" in
    --print) print=1 ;;
    --no-install) install=0 ;;
    --ranks | --level | --out)
      [ "$#" -ge 2 ] || { printf 'quickstart.sh: %s needs a value\n' "$1" >&2; exit 4; }
      case "$1" in
        --ranks) ranks=$2 ;;
        --level)
          case "$2" in smoke | quick | standard) level=$2 ;; *) printf "quickstart.sh: --level is smoke, quick or standard, not '%s'\n" "$2" >&2; exit 4 ;; esac ;;
        --out) out=$2 ;;
      esac
      shift
      ;;
    --help | -h) usage; exit 0 ;;
    *) printf 'quickstart.sh: unknown option %s (try --help)\n' "$1" >&2; exit 4 ;;
  esac
  shift
done
case "$ranks" in
  '' | *[!0-9]* | 0) printf 'quickstart.sh: --ranks needs a positive number, not "%s"\n' "$ranks" >&2; exit 4 ;;
esac

build=${ASSAY_BUILD_DIR:-$root/build/release}
[ -n "$out" ] || out=$PWD/assay-$(date -u +%Y%m%dT%H%M%SZ).h5
case "$out" in /*) ;; *) out=$PWD/$out ;; esac

# Physical cores that this process may use: what Open MPI counts as slots.
count_cores() {
  local cores
  cores=$(lscpu -p=CORE,SOCKET 2>/dev/null | grep -v '^#' | sort -u | wc -l)
  [ "$cores" -gt 0 ] || cores=$(nproc)
  [ "$cores" -le "$(nproc)" ] || cores=$(nproc)
  printf '%s\n' "$cores"
}

configure=(cmake -S "$root" --preset release -B "$build")
# Without tests, which scripts/test.sh builds, the build is faster and needs fewer packages.
[ -f "$build/CMakeCache.txt" ] || configure+=(-DASSAY_TESTS=OFF)
if command -v ccache >/dev/null; then configure+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
compile=(cmake --build "$build" --target assay)
# Open MPI 4 prints a page about every exit code but 0 otherwise; Open MPI 5 has no option --quiet.
mpirun=(mpirun --mca orte_execute_quiet 1 -n "$ranks")
if [ "$ranks" -gt "$(count_cores)" ]; then mpirun+=(--oversubscribe); fi
run=("${mpirun[@]}" "$build/assay" run --level "$level" --out "$out")
if [ "$(id -u)" -eq 0 ]; then
  # mpirun refuses root unless both are set.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

if [ "$print" = 1 ]; then
  if [ "$install" = 1 ]; then ASSAY_PRINT_ONLY=1 install_packages build run; fi
  printf 'Then:\n'
  printf '  %s\n' "${configure[*]}" "${compile[*]}" "${run[*]}"
  exit 0
fi

# Before the build: a run refuses it, and its verdict would be that of an earlier one.
if [ -e "$out" ]; then printf 'quickstart.sh: --out: %s exists already\n' "$out" >&2; exit 4; fi
if [ "$install" = 1 ]; then install_packages build run; fi
printf 'Configuring and building in %s\n' "$build"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${configure[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  printf 'quickstart.sh: configuring failed\n' >&2
  exit 5
fi
"${compile[@]}" || { printf 'quickstart.sh: the build failed\n' >&2; exit 5; }

printf 'Running: %s\n' "${run[*]}"
code=0
"${run[@]}" </dev/null || code=$?
if [ ! -f "$out" ]; then
  printf 'No results file was written; the run left with exit code %s\n' "$code" >&2
  exit "$code"
fi
if [ "$code" -eq 4 ] || [ "$code" -eq 5 ]; then
  printf 'No verdict: the run left with exit code %s\n' "$code" >&2
  exit "$code"
fi
state=$("$build/assay" inspect "$out" 2>/dev/null | sed -n 's/^ *verdict[: ]*\([A-Z]\{4,\}\).*/\1/p' | head -n 1) || true
case "$code" in
  0) state=${state:-PASS} ;;
  2) state=${state:-FAIL} ;;
  3) state=${state:-INCONCLUSIVE} ;;
  *) state=${state:-none} ;;
esac
printf 'Results: %s\nVerdict: %s (exit code %s)\n' "$out" "$state" "$code"
exit "$code"
