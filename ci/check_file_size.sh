#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the size of a results file with what `assay plan` says of the same level and ranks: within 30 %.
#
#   ci/check_file_size.sh ASSAY RESULTS.h5 RANKS LEVEL
set -euo pipefail

[ "$#" -eq 4 ] || { printf 'usage: ci/check_file_size.sh ASSAY RESULTS.h5 RANKS LEVEL\n' >&2; exit 4; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
plan=$(mpirun --mca orte_execute_quiet 1 --oversubscribe -n "$3" "$1" plan --level "$4")
planned=$(sed -n 's/.*results file about \(.*\)$/\1/p' <<<"$plan")
bytes=$(numfmt --from=auto "$(sed 's/ \([KMGT]i\)B$/\1/; s/ B$//' <<<"$planned")")
real=$(stat -c %s "$2")
printf 'results file: %s planned, %s bytes\n' "$planned" "$real"
[ $((10 * bytes)) -gt $((7 * real)) ] && [ $((10 * bytes)) -lt $((13 * real)) ]
