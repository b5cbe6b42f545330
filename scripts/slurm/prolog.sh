#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For Prolog= in slurm.conf: a smoke test of all devices of the node before a job gets it; at most once in ASSAY_PROLOG_EVERY seconds.
# Only a fault that was shown keeps the job away (exit 1, and only with ASSAY_DRAIN=apply): Slurm gives it other nodes. All else is
# a line in the log, because a prolog that fails for reasons of its own takes the cluster down.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

export PATH=$PATH:/usr/local/bin:/usr/bin:/bin
(site_load) || exit 0
site_load
safe_directory ASSAY_STATE "$ASSAY_STATE" || exit 0
stamp=$ASSAY_STATE/prolog.passed
if [ -f "$stamp" ] && (($(date +%s) - $(stat -c %Y "$stamp") < ASSAY_PROLOG_EVERY)); then exit 0; fi
# Another job's prolog on this node may be at it.
exec 9>"$ASSAY_STATE/prolog.lock"
flock -n 9 || exit 0
if ! site_check_node prolog inventory,gemm,memory 45; then
  rm -f "$stamp"
  exit 1
fi
# A warning, a part that was left out or another job's load is no pass: the next job's prolog looks again.
if [ "$site_passed" = yes ]; then touch "$stamp"; fi
exit 0
