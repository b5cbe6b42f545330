#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No kernel that is bound by memory or by tensor cores may keep registers in local memory: compiles kernels/cuda/NAME.cu for every
# architecture and fails for each function for which ptxas reports spill stores, spill loads or a stack frame.
#
#   spills.sh NVCC "80 90a 100" NAME...
set -euo pipefail

nvcc=$1 architectures=$2
shift 2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bad=0
functions=0
for name in "$@"; do
  for arch in $architectures; do
    "$nvcc" -std=c++20 -O3 --expt-relaxed-constexpr -gencode="arch=compute_$arch,code=sm_$arch" -Xptxas -v -cubin \
      -I"$root/src" -I"$root" "$root/kernels/cuda/$name.cu" -o "$work/$name.cubin" 2>"$work/report" ||
      { cat "$work/report"; exit 1; }
    # "Compiling entry function 'NAME' for 'sm_90a'", and on a later line its frame and spills.
    while read -r frame stores loads function; do
      functions=$((functions + 1))
      [ "$frame" = 0 ] && [ "$stores" = 0 ] && [ "$loads" = 0 ] && continue
      bad=$((bad + 1))
      printf '%s.cu, sm_%s: %s bytes of stack, %s stored, %s loaded: %s\n' "$name" "$arch" "$frame" "$stores" "$loads" "$function"
    done < <(awk '/Compiling entry function|Function properties for/ { name = $0; sub(/.*(function |for )/, "", name) }
      /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
      /bytes stack frame/ { print $1, $5, $9, name }' "$work/report")
  done
done

[ "$functions" -gt 0 ] || { echo 'spills: nothing was looked at'; exit 1; }
printf 'spills: %s of %s functions\n' "$bad" "$functions"
[ "$bad" -eq 0 ]
