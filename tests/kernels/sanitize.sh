#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs kernel tests under a tool of NVIDIA's compute-sanitizer; any error that it finds fails. Exit code 77 where there is no such
# program or no GPU.
#
#   sanitize.sh memcheck|racecheck TESTS FILTER
set -euo pipefail

tool=$1 tests=$2 filter=$3
if ! command -v compute-sanitizer >/dev/null; then
  echo 'SKIPPED no GPU here, nor a compute-sanitizer'
  exit 77
fi
if "$tests" --gtest_filter='CudaDigest.*' | grep -q 'SKIPPED'; then
  echo 'SKIPPED no GPU here'
  exit 77
fi
# A test that skips would look like one without errors.
compute-sanitizer --tool "$tool" --error-exitcode 9 "$tests" --gtest_filter="$filter" | tee /dev/stderr | grep -q -E '\[  PASSED  \] [1-9]'
