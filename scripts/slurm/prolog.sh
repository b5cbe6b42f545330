#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# For Prolog= in slurm.conf: a smoke test of all devices of the node before a job gets it; at most once in ASSAY_PROLOG_EVERY seconds.
# With ASSAY_DRAIN=apply a FAIL exits with 1: Slurm drains the node and requeues the job, held. All else exits with 0 and is a line in
# the log, because a prolog that fails for other reasons drains every node. It waits 60 seconds for the prolog of another job on the
# node, and ends after 170 seconds whatever hangs. The result is in ASSAY_STATE/prolog.txt.
set -u

usage() {
  cat <<'TEXT'
Usage: scripts/slurm/prolog.sh

For Prolog= in slurm.conf: tests all devices of this node for at most 45 seconds before a job gets it, at most once in
ASSAY_PROLOG_EVERY seconds. Takes no options; settings: ASSAY_SITE=FILE, or /etc/assay/site.conf (scripts/site.conf
lists all).

Exit code: 1 on a FAIL with ASSAY_DRAIN=apply, after which Slurm drains the node; 0 of all else, which is a line in the
log, or in the system's log where a file system does not answer. The result is in ASSAY_STATE/prolog.txt.
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

# A stamp from the future, after the clock was set back, does not count.
# shellcheck disable=SC2317  # prolog calls it
passed() {
  local age
  [ -f "$stamp" ] && age=$(($(date +%s) - $(stat -c %Y "$stamp"))) && ((age >= 0 && age < ASSAY_PROLOG_EVERY))
}

# shellcheck disable=SC2317  # site_check_within calls it
prolog() {
  site_load_or_leave prolog
  site_state_or_leave prolog
  stamp=$ASSAY_STATE/prolog.passed
  if passed; then exit 0; fi
  # The prolog of another job may be testing this node: what it finds counts, and a node that did not pass is tested again.
  exec 9>"$ASSAY_STATE/prolog.lock"
  if ! flock -w 60 9; then
    site_note prolog 3 "not tested: another prolog holds $ASSAY_STATE/prolog.lock"
    exit 0
  fi
  if passed; then exit 0; fi
  if ! site_check_node prolog inventory,gemm,memory 45; then
    rm -f "$stamp"
    exit 1
  fi
  # A warning, a part that was left out or another job's load is no pass: the next prolog tests again.
  if [ "$site_passed" = yes ]; then touch "$stamp"; fi
  exit 0
}

site_check_within 170 prolog
