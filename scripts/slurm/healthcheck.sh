#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For HealthCheckProgram= in slurm.conf, with HealthCheckNodeState=IDLE and HealthCheckInterval=600 or more: inventory and error
# counters of the node; nothing is loaded. Drains as ASSAY_DRAIN says, and resumes what it drained itself once that passes: its
# drains have a Reason of their own, which Slurm keeps when the node restarts.
set -u

usage() {
  cat <<'TEXT'
Usage: scripts/slurm/healthcheck.sh

For HealthCheckProgram= in slurm.conf: looks at inventory and error counters of this node and loads nothing. Drains as
ASSAY_DRAIN says, with a Reason that begins with `assay: healthcheck:`. With ASSAY_DRAIN=apply it resumes the node once that
passes, if the Reason still begins so. Takes no options; settings: ASSAY_SITE=FILE, or /etc/assay/site.conf
(scripts/site.conf lists all).

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
if site_check_node healthcheck inventory 45 && [ "$ASSAY_DRAIN" = apply ] && grep -q '^PASS ' "$ASSAY_STATE/healthcheck.txt"; then
  "$here/slurm/drain.sh" --apply --resume --by healthcheck "$ASSAY_STATE/healthcheck.h5" >>"$ASSAY_STATE/healthcheck.txt" 2>&1
fi
exit 0
