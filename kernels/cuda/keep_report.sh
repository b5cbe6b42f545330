#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands before the CUDA compiler in its command line: what ptxas -v says of every kernel (registers, stack, spills) goes to
# OBJECT.ptxas beside the object, for tests/kernels/ptxas_table.py; everything else is said as ever.
set -uo pipefail

object=''
previous=''
for argument in "$@"; do
  if [ "$previous" = -o ]; then object=$argument; fi
  previous=$argument
done
[ -n "$object" ] || exec "$@"

report=$object.ptxas
rm -f "$report"
"$@" 2>"$report.new"
code=$?
grep -v -E '^ptxas info |^ +[0-9]+ bytes stack frame, ' "$report.new" >&2
if [ "$code" -eq 0 ]; then mv "$report.new" "$report"; else rm -f "$report.new"; fi
exit "$code"
