#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes everything that reads what others wrote, with libFuzzer under the address and undefined-behaviour sanitizers.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/fuzz.sh [SECONDS [TARGET...]]

Builds the fuzz targets with clang into build/fuzz and runs each for SECONDS (default 600), one at a time on one
core. New inputs that reach new code stay in build/fuzz/corpus; an input that crashes, hangs (30 s) or takes more
than 2 GiB becomes build/fuzz/findings/TARGET-*, which belongs into tests/fuzz/corpus/TARGET once it is mended.
Exit code 0 when nothing was found, 1 when something was, 4 for wrong use.
TEXT
}

case "${1:-}" in --help | -h) usage; exit 0 ;; esac
seconds=${1:-600}
shift || true
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { printf 'fuzz.sh: %s is no number of seconds (try --help)\n' "$seconds" >&2; exit 4; }
root=$(dirname "$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)")
cd "$root"
if ! command -v clang++ >/dev/null; then
  printf 'fuzz.sh: clang++ is missing (package clang)\n' >&2
  exit 4
fi

build=${ASSAY_FUZZ_BUILD:-build/fuzz}
mkdir -p "$build/findings"
cmake -S . -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG='-O1 -g1' -DASSAY_FUZZ=ON \
  -DASSAY_SANITIZE=address,undefined,fuzzer-no-link >"$build/configure.log" 2>&1 || { tail -n 20 "$build/configure.log" >&2; exit 1; }
ninja -C "$build" -j "${ASSAY_FUZZ_JOBS:-$(nproc)}" fuzz_all >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log" >&2; exit 1; }

targets=("$@")
if [ "${#targets[@]}" -eq 0 ]; then
  for program in "$build"/tests/fuzz/fuzz_*; do
    name=$(basename "$program")
    if [ -x "$program" ] && [ -f "$program" ] && [ "$name" != fuzz_replay ]; then targets+=("${name#fuzz_}"); fi
  done
fi

export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:${UBSAN_OPTIONS:-}"
found=0
for target in "${targets[@]}"; do
  program=$build/tests/fuzz/fuzz_$target
  [ -x "$program" ] || { printf 'fuzz.sh: there is no target %s\n' "$target" >&2; exit 4; }
  mkdir -p "$build/corpus/$target"
  log=$build/$target.log code=0
  options=(-max_total_time="$seconds" -timeout=30 -rss_limit_mb=2048 -max_len=100000 -print_final_stats=1)
  options+=(-artifact_prefix="$build/findings/$target-")
  if [ -f "tests/fuzz/dictionary/$target" ]; then options+=(-dict="tests/fuzz/dictionary/$target"); fi
  "$program" "${options[@]}" "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || code=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  if [ "$code" -eq 0 ]; then
    printf '%-10s %s executions, nothing found\n' "$target" "${executions:-0}"
  else
    found=1
    printf '%-10s %s executions, FOUND: %s\n' "$target" "${executions:-0}" "$(grep -m 1 -E 'ERROR|broken:|SUMMARY|runtime error' "$log" || tail -n 1 "$log")"
  fi
done
exit "$found"
