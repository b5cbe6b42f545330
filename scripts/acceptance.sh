#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Acceptance of a new cluster: measures for up to two hours, judges by the contract's limits, and leaves a report to sign.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/acceptance.sh [RUN OPTIONS...]

Runs assay at level extended; --limits FILE and --expect-nodes N belong to it. In RESULTS/DATE/acceptance-JOB/:

  report.txt   verdict, findings, one row per node, device and NIC, and a line to sign
  report.html  the same as a page, with pictures (assay report)
  run.h5       the results file, with every sample; its checksum is in the report
  verdict.json junit.xml nodes.txt assay.prom run.log

An option here takes the place of the same one in ASSAY_OPTIONS or of this script; --require adds up.
Settings: ASSAY_SITE=FILE, or /etc/assay/site.conf (scripts/site.conf lists all). Nothing is drained.
Exit code: that of the verdict (0 PASS, 2 FAIL, 3 INCONCLUSIVE), 4 wrong settings.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

case "${1:-}" in --help | -h) usage; exit 0 ;; esac
site_load
directory=$(site_directory acceptance)
code=0
site_measure "$directory" '' --level extended --quiet -- "$@" || code=$?
report=$(
  site_summary acceptance "$code" "$directory"
  if [ -f "$directory/run.h5" ]; then
    "$ASSAY" export "$directory/run.h5" --table --no-color
    printf '\nsha256 %s\n' "$(sha256sum "$directory/run.h5" | cut -d' ' -f1)"
  fi
  printf '\naccepted / not accepted   place, date, name: ______________________________\n'
)
site_write "$directory/report.txt" "$report"
site_record acceptance "$code" "${report%%$'\n'*} $directory"
printf '%s\n' "$report"
site_notify "$report"
exit "$code"
