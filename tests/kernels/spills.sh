#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No kernel that is bound by memory or by tensor cores may keep registers in local memory: reads what ptxas said of the objects of
# this build (kernels/cuda/keep_report.sh) and fails for each function with spill stores, spill loads or a stack frame.
#
#   spills.sh OBJECT-DIRECTORY "80 90a 100" NAME...
set -euo pipefail

objects=$1 architectures=$2
shift 2

bad=0
functions=0
for name in "$@"; do
  report=$objects/$name.cu.o.ptxas
  [ -f "$report" ] || { printf 'spills: no %s\n' "$report"; exit 1; }
  for arch in $architectures; do
    grep -q "Compiling entry function .* for 'sm_$arch'" "$report" || { printf 'spills: %s.cu has nothing for sm_%s\n' "$name" "$arch"; exit 1; }
  done
  # "Compiling entry function 'NAME' for 'sm_90a'", and on a later line its frame and spills.
  while read -r arch frame stores loads function; do
    functions=$((functions + 1))
    [ "$frame" = 0 ] && [ "$stores" = 0 ] && [ "$loads" = 0 ] && continue
    bad=$((bad + 1))
    printf '%s.cu, %s: %s bytes of stack, %s stored, %s loaded: %s\n' "$name" "$arch" "$frame" "$stores" "$loads" "$function"
  done < <(awk '/Function properties for/ { name = $0; sub(/.*for /, "", name) }
    /Compiling entry function/ { split($0, part, "\047"); name = part[2]; arch = part[4] }
    /bytes stack frame/ { print arch, $1, $5, $9, name }' "$report")
done

[ "$functions" -gt 0 ] || { echo 'spills: nothing was looked at'; exit 1; }
printf 'spills: %s of %s functions\n' "$bad" "$functions"
[ "$bad" -eq 0 ]
