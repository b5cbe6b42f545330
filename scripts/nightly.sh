#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One nightly run: measures, judges against earlier nights, removes old results, sends the summary. For cron, a systemd timer or a
# batch job.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/nightly.sh [--quiet] [RUN OPTIONS...]

Runs assay, judges the run against the history of this site, and puts it there. In RESULTS (setting ASSAY_RESULTS):

  DATE/nightly-JOB/   run.h5 verdict.txt verdict.json report.html nodes.txt junit.xml assay.prom summary.txt run.log of one night
  history/            the results files that later nights are compared with, and their index
  log                 one line a night

Prints the summary, gives it to ASSAY_NOTIFY, writes ASSAY_PROM, and on a FAIL drains nodes as ASSAY_DRAIN
says. Settings: ASSAY_SITE=FILE, or /etc/assay/site.conf (scripts/site.conf lists all). Two nights never overlap.
An option here takes the place of the same one in ASSAY_OPTIONS or of this script; --require adds up.

  --quiet  print nothing when the night passed, so that cron sends no mail

Exit code: that of the verdict (0 PASS, 2 FAIL, 3 INCONCLUSIVE), 3 also if another night is still running or its lock
cannot be made, 4 wrong settings.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

quiet=0
case "${1:-}" in
  --help | -h) usage; exit 0 ;;
  --quiet) quiet=1; shift ;;
esac
site_load
{ safe_directory ASSAY_RESULTS "$ASSAY_RESULTS" && safe_directory ASSAY_RESULTS "$ASSAY_RESULTS/history"; } || exit 4

# ---- lock --------------------------------------------------------------------------------------------------------

lock=$ASSAY_RESULTS/nightly.lock

# Whether the process that holds the lock still runs.
lock_is_held() {
  local host='' pid='' begun='' job='' age
  read -r host pid begun job <"$lock/owner" 2>/dev/null || true
  if [ "$host" = "$(hostname)" ]; then
    # Process numbers are reused: the start time tells them apart.
    [ -n "$pid" ] && [ "$(process_start "$pid")" = "$begun" ]
    return
  fi
  # Slurm knows whether a job of another host is still there; it says so only for jobs it remembers.
  if [[ $job =~ ^[0-9]+$ ]] && command -v squeue >/dev/null && squeue -h -o %A >/dev/null 2>&1; then
    [ -n "$(squeue -h -o %A -j "$job" 2>/dev/null)" ]
    return
  fi
  age=$(($(date +%s) - $(stat -c %Y "$lock" 2>/dev/null || date +%s)))
  ((age < ASSAY_LOCK_HOURS * 3600))
}

process_start() { awk '{ sub(/^.*\) /, ""); print $20 }' "/proc/$1/stat" 2>/dev/null || printf gone; }

# What tells a lock from a later one in its place: its time and its owner.
lock_identity() { stat -c %y "$1" 2>/dev/null; cat "$1/owner" 2>/dev/null; }  # DIRECTORY

# Removes the lock where it is still that of this process. On a full disk it has no owner.
# shellcheck disable=SC2317  # a trap calls it
release_lock() {
  case "$(cat "$lock/owner" 2>/dev/null)" in "$lock_owner" | '') rm -rf "$lock" ;; esac
}

# mkdir is the lock, since flock is unreliable on the file systems that clusters share. A stale one is renamed first, which only
# one process can do; a fresh lock that another night has put in its place meanwhile goes back. Sets `not_taken` to why it has
# none, and `holder`.
take_lock() {
  local try why stale dead=$lock.dead.$$
  for try in 1 2 3; do
    if why=$(mkdir "$lock" 2>&1); then
      lock_owner="$(hostname) $$ $(process_start "$$") ${SLURM_JOB_ID:--}"
      printf '%s\n' "$lock_owner" >"$lock/owner"
      trap release_lock EXIT
      return 0
    fi
    not_taken="cannot make $lock: ${why##*: }" holder=''
    # It may have gone meanwhile.
    [ -d "$lock" ] || continue
    not_taken='another night is still running' holder=" ($lock: $(cat "$lock/owner" 2>/dev/null))"
    # Its owner may not have written its file yet.
    [ -s "$lock/owner" ] || sleep 1
    stale=$(lock_identity "$lock") || true
    if lock_is_held || [ "$try" = 3 ]; then return 1; fi
    mv -T "$lock" "$dead" 2>/dev/null || continue
    [ "$(lock_identity "$dead")" = "$stale" ] || mv -T "$dead" "$lock" 2>/dev/null || true
    rm -rf "$dead"
  done
  return 1
}

take_lock || {
  printf 'nightly.sh: %s%s\n' "$not_taken" "$holder" >&2
  site_record nightly 3 "not started: $not_taken"
  exit 3
}

# ---- the night ---------------------------------------------------------------------------------------------------

# A night that was killed with its job left no results file: it is recovered now, under the lock.
for left in "$ASSAY_RESULTS"/*/nightly-*; do
  code=0
  if [ ! -d "$left" ] || [ -e "$left/run.h5" ] || ! site_recover "$left"; then continue; fi
  site_judge "$left" || code=$?
  summary=$(site_summary night "$code" "$left" 60)
  site_write "$left/summary.txt" "$summary"
  site_record nightly "$code" "recovered: ${summary%%$'\n'*} $left"
done

directory=$(site_directory nightly)
code=0
site_measure "$directory" "$ASSAY_RESULTS/history" --level "$ASSAY_LEVEL" --quiet -- "$@" || code=$?

# The run is added to the history and to its index. A hard link is one copy; some file systems have none.
if [ -f "$directory/run.h5" ] && "$ASSAY" schema --check "$directory/run.h5" >/dev/null 2>&1; then
  name=$(basename "$(dirname "$directory")")-$(basename "$directory").h5
  stored=$ASSAY_RESULTS/history/$name
  # Under its name the copy is whole, and no night is lost for want of space.
  if ! ln "$directory/run.h5" "$stored" 2>/dev/null && ! { cp "$directory/run.h5" "$stored.new" && mv -T "$stored.new" "$stored"; }; then
    rm -f "$stored.new"
    printf 'nightly.sh: later nights are not compared with this one: cannot write %s\n' "$stored" >&2
  fi
  "$ASSAY" verdict "$directory/run.h5" --history "$ASSAY_RESULTS/history" >/dev/null 2>&1 || true
fi

# ---- retention ---------------------------------------------------------------------------------------------------

# Names begin with their date, so that their order is that of time.
thin() {
  local files=() file name week last='' oldest
  mapfile -t files < <(find "$ASSAY_RESULTS/history" -maxdepth 1 -name '*.h5' -printf '%f\n' | sort -r)
  oldest=$(date -u -d "-$ASSAY_KEEP_WEEKS weeks" +%Y-%m-%d)
  # From the oldest on, so that the first of each week stays.
  for ((i = ${#files[@]} - 1; i >= ASSAY_KEEP_NIGHTS; --i)); do
    file=${files[i]} name=${files[i]%.h5}
    week=$(date -u -d "${file:0:10}" +%G-%V 2>/dev/null) || continue
    if [ "$week" != "$last" ] && [[ ! ${file:0:10} < $oldest ]]; then last=$week; continue; fi
    remove_samples "${name:0:10}/${name:11}"
    rm -f "$ASSAY_RESULTS/history/$file"
  done
  # Nights that are not in the history: killed ones, and files that could not be read.
  if [ "${#files[@]}" -lt "$ASSAY_KEEP_NIGHTS" ]; then return; fi
  for file in "$ASSAY_RESULTS"/*/nightly-*; do
    name=${file#"$ASSAY_RESULTS/"}
    if [[ ${name/\//-}.h5 < ${files[ASSAY_KEEP_NIGHTS - 1]} ]] && [ ! -e "$ASSAY_RESULTS/history/${name/\//-}.h5" ]; then remove_samples "$name"; fi
  done
}

remove_samples() {  # NIGHT
  rm -rf "$ASSAY_RESULTS/$1"/run.{h5,h5.partial,launch*}
}
thin

# ---- tell --------------------------------------------------------------------------------------------------------

summary=$(site_summary night "$code" "$directory" 60)
first=${summary%%$'\n'*}
if [ "$code" -eq 2 ]; then
  drained=$(site_drain "$directory/run.h5")
  summary+=${drained:+$'\n'$drained}
fi
site_write "$directory/summary.txt" "$summary"
where=" $directory"
# Wrong options are told and are no night: nothing of it stays but its line in the log.
if [ "$code" -eq 4 ] && [ ! -e "$directory/run.h5" ]; then where=": $(sed -n 's/^assay: //p' "$directory/run.log" | tail -n 1)"; fi
site_record nightly "$code" "$first$where"
if [ "$quiet" -eq 0 ] || [[ $first != *': PASS (exit 0)'* ]]; then printf '%s\n' "$summary"; fi
site_notify "$summary"
if [ "$where" != " $directory" ]; then
  rm -rf "$directory"
  rmdir "${directory%/*}" 2>/dev/null || true  # unless another night of the day is there
fi
exit "$code"
