#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How often the verdict is right: simulated clusters with known faults, judged by the verdict itself, as a table.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/operating_curve.sh [--scale X] [--only GLOB] [--seed S] [--threads N] [--build DIR]

Simulates healthy and faulty clusters in memory, judges each like a real run (retest stage included), and prints
what was found as a Markdown table with the targets and Clopper-Pearson bounds. Missed targets are printed as missed.

  --scale X      times the usual number of runs (default 1: more than 2000 healthy ones)
  --only GLOB    only rows whose "what, fleet" matches, e.g. '*NIC*'
  --seed S       first seed (default 1000000; the tests use others)
  --threads N    default: all cores
  --build DIR    build directory (default build/release; made when it is not there)
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${ASSAY_BUILD_DIR:-$root/build/release} arguments=()
while [ "$#" -gt 0 ]; do
  case "$1" in
    --help) usage; exit 0 ;;
    --scale | --only | --seed | --threads | --build)
      [ "$#" -ge 2 ] || { printf 'operating_curve.sh: %s needs a value\n' "$1" >&2; exit 4; }
      if [ "$1" = --build ]; then build=$2; else arguments+=("$1" "$2"); fi
      shift ;;
    *) printf 'operating_curve.sh: %s is unknown (--help)\n' "$1" >&2; exit 4 ;;
  esac
  shift
done
if [ ! -f "$build/CMakeCache.txt" ]; then
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >&2
fi
cmake --build "$build" --target operating_curve >&2
# Takes hours on all cores: it runs at the lowest priority.
exec nice -n 15 "$build/tests/operating/operating_curve" "${arguments[@]}"
