#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=IDLE and HealthCheckInterval=600 or more: inventory and error
# counters of the node; nothing is loaded. Drains as ASSAY_DRAIN says, and resumes what it drained itself once that passes.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

export PATH=$PATH:/usr/local/bin:/usr/bin:/bin
(site_load) || exit 0
site_load
safe_directory ASSAY_STATE "$ASSAY_STATE" || exit 0
drained=$ASSAY_STATE/healthcheck.drained
if ! site_check_node healthcheck inventory 45; then
  # Only what this check drained is its to resume: not a node that was drained before, or that is one too many.
  if grep -q '^scontrol update NodeName=' "$ASSAY_STATE/healthcheck.txt"; then touch "$drained"; fi
elif [ -f "$drained" ] && grep -q '^PASS ' "$ASSAY_STATE/healthcheck.txt"; then
  "$here/slurm/drain.sh" --apply --resume "$ASSAY_STATE/healthcheck.h5" >>"$ASSAY_STATE/healthcheck.txt" 2>&1 && rm -f "$drained"
fi
exit 0
