#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=IDLE and HealthCheckInterval=600 or more: inventory and error
# counters of the node; nothing is loaded. Drains as ASSAY_DRAIN says, and resumes what it drained itself once that passes.
set -u

usage() {
  cat <<'TEXT'
Usage: scripts/slurm/healthcheck.sh

For HealthCheckProgram= in slurm.conf: looks at inventory and error counters of this node and loads nothing. Drains as
ASSAY_DRAIN says, and resumes what it drained itself once that passes. Takes no options; settings: ASSAY_SITE=FILE, or
/etc/assay/site.conf (scripts/site.conf lists all).

Exit code: 0. The result is a line in the log and in ASSAY_STATE/healthcheck.txt.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

export PATH=$PATH:/usr/local/bin:/usr/bin:/bin
case "${1:-}" in
  --help | -h) usage; exit 0 ;;
esac
site_load_or_leave healthcheck
site_state_or_leave healthcheck
drained=$ASSAY_STATE/healthcheck.drained
if ! site_check_node healthcheck inventory 45; then
  # Only what this check drained is its to resume: not a node that was drained before, or that is one too many.
  if grep -q '^scontrol update NodeName=' "$ASSAY_STATE/healthcheck.txt"; then touch "$drained"; fi
elif [ -f "$drained" ] && grep -q '^PASS ' "$ASSAY_STATE/healthcheck.txt"; then
  "$here/slurm/drain.sh" --apply --resume "$ASSAY_STATE/healthcheck.h5" >>"$ASSAY_STATE/healthcheck.txt" 2>&1 && rm -f "$drained"
fi
exit 0
