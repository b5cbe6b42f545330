#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU: its GEMM rates beside PyTorch's in turns, as a table for suites/gemm/README.md.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/bench_gpu.sh [--assay PROGRAM] [--python PROGRAM] [--size N] [--rounds R] [DTYPE...]

Measures matrix products of assay and of PyTorch one after the other, R times (5), and prints for every number type the median
rates and the median ratio with its range. Exit code 77 where there is no GPU or no PyTorch, 1 when assay found a fault.

  --assay PROGRAM   (build/release/assay)
  --python PROGRAM  a Python that has PyTorch (python3)
  --size N          n of n x n x n (8192)
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
assay=$here/../build/release/assay python=python3 size=8192 rounds=5 dtypes=()
wrong() { printf 'bench_gpu.sh: %s (try --help)\n' "$*" >&2; exit 4; }
while [ "$#" -gt 0 ]; do
  case "$1" in
    --assay) [ -n "${2:-}" ] || wrong '--assay needs a program'; assay=$2; shift ;;
    --python) [ -n "${2:-}" ] || wrong '--python needs a program'; python=$2; shift ;;
    --size) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--size: '${2:-}' is no number"; size=$2; shift ;;
    --rounds) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--rounds: '${2:-}' is no number"; rounds=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    -*) wrong "unknown option $1" ;;
    *) dtypes+=("$1") ;;
  esac
  shift
done
[ "${#dtypes[@]}" -gt 0 ] || dtypes=(bf16 fp16 fp8 fp8_fast fp8_e5m2 int8 tf32 fp32 fp64)
[ -x "$assay" ] || wrong "--assay: '$assay' is no program"

if "$assay" list devices | tr '\n' ' ' | tr -s ' ' | grep -q 'no GPU is used here\|not built'; then
  printf 'bench_gpu.sh: assay uses no GPU here:\n' >&2
  "$assay" list devices >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
list=$(IFS=,; printf '%s' "${dtypes[*]}")
for ((round = 1; round <= rounds; ++round)); do
  code=0
  "$assay" run --device cuda --suites gemm --level quick --cases "*-n$size-together" --gemm.sizes "$size" --gemm.dtypes "$list" \
    --quiet --force --out "$work/r.h5" >"$work/assay.log" 2>&1 || code=$?
  [ "$code" -ne 2 ] || { cat "$work/assay.log" >&2; exit 1; }
  "$assay" export "$work/r.h5" --csv >"$work/assay.$round.csv"
  "$python" "$here/../tests/bench/gemm_torch.py" --size "$size" "${dtypes[@]}" >"$work/torch.$round" || exit $?
done
"$python" "$here/../tests/bench/gemm_table.py" "$work" "$rounds" "$size" "${dtypes[@]}"
