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

Exit code: 0. The result is a line in the log, or in the system's log where a file system does not answer, and in
ASSAY_STATE/healthcheck.txt.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"
# shellcheck source=scripts/slurm/node_check.sh
. "$here/slurm/node_check.sh"

export PATH=$PATH:/usr/local/bin:/usr/bin:/bin
case "${1:-}" in
  --help | -h) usage; exit 0 ;;
esac

# shellcheck disable=SC2317  # site_check_within calls it
healthcheck() {
  site_load_or_leave healthcheck
  site_state_or_leave healthcheck
  if site_check_node healthcheck inventory 45 && [ "$ASSAY_DRAIN" = apply ] && grep -q '^PASS ' "$ASSAY_STATE/healthcheck.txt"; then
    "$here/slurm/drain.sh" --apply --resume --by healthcheck "$ASSAY_STATE/healthcheck.h5" >>"$ASSAY_STATE/healthcheck.txt" 2>&1
  fi
  return 0
}

# Slurm ends it after HealthCheckTimeout, by default 60 s.
site_check_within 57 healthcheck
