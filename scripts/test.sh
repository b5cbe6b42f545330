#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds assay and runs every test; on request the unit and kernel tests under sanitizers.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/test.sh [--sanitize | --nightly] [--strict] [--no-install]

Builds assay, on top of what scripts/quickstart.sh built, and runs every test. The last line is
`N passed, N failed, N skipped`; exit code 0 if none failed.

  --sanitize    the unit tests, but for the long ones of the verdict, under the address and undefined-behaviour
                sanitizers instead, and also the kernel tests
  --nightly     also the long counts, all tests under the address and undefined-behaviour sanitizers, the unit
                and kernel tests under the thread sanitizer, and a new user's first hour in bare roots of
                Debian 12 (also with MPICH), Debian 13 and Ubuntu 24.04 (ci/fresh_root.sh)
  --strict      also fail at a warning of the compiler, when this build lacks a part that the machine can have, and when
                a test is skipped for want of something else than a GPU or a privilege that is named
  --no-install  never install a package
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

mode=normal install=1 strict=() werror=OFF
while [ "$#" -gt 0 ]; do
  case "$1" in
    --sanitize) mode=sanitize ;;
    --nightly) mode=nightly ;;
    --strict) strict=(--strict) werror=ON ;;
    --no-install) install=0 ;;
    --help | -h) usage; exit 0 ;;
    *) printf 'test.sh: unknown option %s (try --help)\n' "$1" >&2; exit 4 ;;
  esac
  shift
done

if [ "$install" = 1 ]; then
  install_packages build run test
  groups=(services)
  if [ "$mode" = nightly ]; then groups+=(nightly); fi
  install_packages "${groups[@]}" || printf 'Tests that need these packages say so and are skipped.\n'
fi

jobs=$(nproc)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cache=()
if command -v ccache >/dev/null; then cache=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
passed=0 failed=0 skipped=0
cd "$root"

configure_preset() {  # PRESET [CMAKE-OPTION...]
  cmake --preset "$1" -DASSAY_WERROR="$werror" -DASSAY_TESTS=ON -DASSAY_UNIT_TEST_SET=all "${@:2}" "${cache[@]}" >"build/$1.configure.log" 2>&1
}

compile_preset() {  # PRESET TARGET [BEFORE IT...]
  "${@:3}" cmake --build --preset "$1" -j "$jobs" --target "$2" >"build/$1.build.log" 2>&1
}

# What cannot even be built counts as one failure.
not_built() {  # PRESET
  tail -n 40 "build/$1.configure.log" >&2
  if [ -f "build/$1.build.log" ]; then grep -n -E 'error|FAILED|warning' "build/$1.build.log" | head -n 40 >&2; fi
  printf '   BUILD FAILED: %s\n' "$1"
  failed=$((failed + 1))
  return 1
}

build_preset() {  # PRESET [TARGET [CMAKE-OPTION...]]
  local started=$SECONDS
  printf '== build %s\n' "$1"
  if configure_preset "$1" "${@:3}" && compile_preset "$1" "${2:-all}"; then
    printf '   built in %s s\n' "$((SECONDS - started))"
  else
    not_built "$1"
  fi
}

# Starts to build what is tested later on the time that tests leave of the cores, which is almost half of it. A session of its
# own, since Linux shares cores between sessions first.
ahead=''
build_ahead() {  # PRESET TARGET CMAKE-OPTION...
  # shellcheck disable=SC2016  # for the inner shell
  local idle='echo 19 2>/dev/null >/proc/self/autogroup; exec chrt --idle 0 "$@"'
  rm -f "build/$1.build.log"
  configure_preset "$1" "${@:3}" || return 0  # told by finish_ahead
  compile_preset "$1" "$2" exec setsid bash -c "$idle" _ &
  ahead=$!
  trap 'signal_ahead CONT; kill -- "-$ahead" 2>/dev/null || true' EXIT
}

# Tests that are run again have the machine to themselves.
signal_ahead() {  # STOP | CONT
  if [ -n "$ahead" ]; then pkill "-$1" -s "$ahead" 2>/dev/null || true; fi
}

finish_ahead() {  # PRESET
  local started=$SECONDS code=1
  printf '== build %s\n' "$1"
  if [ -n "$ahead" ]; then
    wait "$ahead" && code=0
    trap - EXIT
  fi
  if [ "$code" -ne 0 ]; then not_built "$1"; else printf '   built in %s s after the other tests\n' "$((SECONDS - started))"; fi
}

run_tests() {  # TEST-PRESET [WHAT A SKIP MAY BE FOR]
  local report="build/$1.junit.xml" counts again try started=$SECONDS allow=() reports
  printf '== test %s\n' "$1"
  rm -rf "$report" "build/$1".again?.junit.xml "build/$1.again"
  mkdir "build/$1.again"
  reports=("$report")
  if [ "$#" -gt 1 ]; then allow=(--allow "$2"); fi
  # A file of tests that runs once more repeats those that did not pass (tests/support/outcome.py).
  export ASSAY_AGAIN=$root/build/$1.again
  # With the whole output of each, in which the tests of an executable are counted.
  local whole=(--test-output-size-passed 1000000 --test-output-size-failed 1000000)
  # Seven slots for two cores: most tests wait more than they compute, and those that compute say how many slots they take
  # (PROCESSORS, ci/cmake/AssayTargets.cmake).
  ctest --preset "$1" -j "$((7 * jobs / 2))" --no-tests=error "${whole[@]}" --output-junit "$root/$report" \
    >"build/$1.test.log" 2>&1 </dev/null || true
  # One at a time: a test that was skipped for noise is run up to three more times, a failed one once more.
  signal_ahead STOP
  for try in 1 2 3; do
    again=$(python3 ci/junit_count.py --again "${reports[@]}" | sed 's/[.]/[.]/g' | paste -s -d '|') || true
    [ -n "$again" ] || break
    ctest --preset "$1" -R "^($again)\$" "${whole[@]}" --output-junit "$root/build/$1.again$try.junit.xml" \
      >>"build/$1.test.log" 2>&1 </dev/null || true
    if [ -f "build/$1.again$try.junit.xml" ]; then reports+=("build/$1.again$try.junit.xml"); fi
  done
  signal_ahead CONT
  if ! counts=$(python3 ci/junit_count.py "${strict[@]}" "${allow[@]}" "${reports[@]}"); then
    tail -n 20 "build/$1.test.log" >&2
    counts="0 1 0"
  fi
  read -r p f s <<<"$counts"
  printf '   %s passed, %s failed, %s skipped in %s s (build/%s.test.log)\n' "$p" "$f" "$s" \
    "$((SECONDS - started))" "$1"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

mkdir -p build
release_tests=release unit_tests=all
if [ "$mode" = nightly ]; then release_tests=nightly; fi
if [ "$mode" = sanitize ]; then unit_tests=long; fi  # the sanitized build has the short ones
built=no
if build_preset release all "-DASSAY_UNIT_TEST_SET=$unit_tests"; then built=yes; fi
if [ "$mode" = sanitize ]; then build_ahead debug unit_tests -DASSAY_UNIT_TEST_SET=short; fi
if [ "$built" = yes ]; then
  if [ "${#strict[@]}" -gt 0 ]; then
    if ci/check_parts.sh build/release/assay; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  fi
  run_tests "$release_tests"
fi
if [ "$mode" != normal ]; then
  if [ "$mode" = nightly ]; then
    if build_preset debug-all; then
      run_tests debug-all-unit
      run_tests debug-all  # with whole stacks of what was allocated, which is slow: MPI leaks on its own
    fi
  elif finish_ahead debug; then
    run_tests debug
  fi
fi
# A new user's first hour, in bare roots of this distribution and others, and with the other MPI.
if [ "$mode" = nightly ]; then
  for root_of in '' --mpich 'trixie --quick' 'noble --quick'; do
    printf '== fresh root %s\n' "$root_of"
    code=0
    # shellcheck disable=SC2086  # words
    ci/fresh_root.sh $root_of >"build/fresh_root${root_of:+.${root_of%% *}}.log" 2>&1 || code=$?
    tail -n 1 "build/fresh_root${root_of:+.${root_of%% *}}.log"
    case "$code" in
      0) passed=$((passed + 1)) ;;
      77) skipped=$((skipped + 1)) ;;
      *) failed=$((failed + 1)) ;;
    esac
  done
fi
if [ "$mode" = nightly ]; then
  if build_preset tsan unit_tests; then run_tests tsan 'built without UCX'; fi
fi
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
