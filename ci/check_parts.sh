#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a part that this machine can have was left out of a build: a suite, a device, a transport, the results of a test group.
# What can be had is read from the source tree (suites), from the packages of the groups build and test, and from the CUDA Toolkit
# where it is installed.
#
#   ci/check_parts.sh ASSAY
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
assay=$1 failed=0

missing() {
  printf 'check_parts: %s\n' "$*"
  failed=$((failed + 1))
}

# Whether `assay list WHAT` calls a part built.
built() {  # WHAT NAME
  "$assay" list "$1" | grep -q -E "^  $2 +built( |:|$)"
}

require() {  # WHAT NAME WHY
  built "$1" "$2" || missing "$1: '$2' is not built, though $3"
}

suites=$("$assay" list suites)
while read -r suite; do
  if [ "$suite" = selftest ]; then continue; fi  # hidden
  printf '%s\n' "$suites" | grep -q -E "^  $suite( |$)" || missing "suites: '$suite' has a folder and is not built"
done < <(find "$root/suites" -mindepth 2 -maxdepth 2 -name CMakeLists.txt -printf '%h\n' | xargs -n 1 basename | sort)

require devices host 'every machine has one'
require transports mpi 'every machine has it'
require transports ucx 'libucx-dev is in the group build of scripts/packages.sh'

# No list names it: a program that has it calls the library by this name.
if pkg-config --exists liburing && ! grep -q io_uring_queue_init "$assay"; then missing "storage: io_uring is not built, though liburing is there"; fi

# The toolkit as CMake looks for it: the compiler in PATH or in its usual place, with the headers of cuBLASLt; version 12 or later.
nvcc=$(command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && printf '/usr/local/cuda/bin/nvcc'; } || true)
if [ -n "$nvcc" ]; then
  release=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
  if [ "${release:-0}" -ge 12 ] && find -L "$toolkit" -maxdepth 5 -name cublasLt.h 2>/dev/null | grep -q .; then
    require devices cuda "$nvcc is there"
    require transports cuda "$nvcc is there"
    if find -L "$toolkit" /usr/include -maxdepth 5 -name nccl.h 2>/dev/null | grep -q .; then require transports nccl 'nccl.h is there'; fi
  fi
fi

if [ "$failed" -gt 0 ]; then exit 1; fi
printf 'check_parts: %s suites; devices %s; transports %s\n' "$(printf '%s\n' "$suites" | grep -c -E '^  [a-z]')" \
  "$("$assay" list devices | sed -n -E 's/^  ([a-z]+) +built.*/\1/p' | tr '\n' ' ')" \
  "$("$assay" list transports | sed -n -E 's/^  ([a-z]+) +built.*/\1/p' | tr '\n' ' ')"
