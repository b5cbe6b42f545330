#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A soak as a chain of short jobs: each measures one segment with new seeds, and the next leaves out the nodes that failed.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/soak.sh [RUN OPTIONS...]

One segment (setting ASSAY_SOAK_MINUTES) of a soak of ASSAY_SOAK_SEGMENTS. As a Slurm job it submits the next one, unless the job
is cancelled: on the nodes of the first, without those that failed so far and those that are down or drained then; with its
partition, account, QOS, reservation, GRES of a node (--gres) and time limit. A second job waits on one node for the case that this one is lost with
its node, killed or out of time: it judges what was measured and submits the next segment. Elsewhere the segments follow
each other in this process, without the nodes that failed, until a signal comes (USR1 ahead of a time limit, or TERM) or
all nodes have failed. In RESULTS/DATE/soak-JOB/:

  segments/segNN.h5       one results file each
  segNN/                  verdict, log and metrics of each
  failed.txt              nodes that failed, one per line; not those where only a link, a switch or the cluster is slow
  asked.txt, next.txt     in Slurm: nodes of the first segment, and of the next
  absent.txt              in Slurm: nodes that were down or drained, and the segments that ran without them; segments whose
                          job was lost; also in the summary
  summary.txt             the verdict over all segments, after the last

An option here takes the place of the same one in ASSAY_OPTIONS or of this script; --require adds up. --duration and
--segment are refused: ASSAY_SOAK_MINUTES is both.
Settings: ASSAY_SITE=FILE, or /etc/assay/site.conf (scripts/site.conf lists all).
Exit code: that of the segment; of the last one, that of all segments together, 3 if none has results. 4 wrong settings.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

case "${1:-}" in --help | -h) usage; exit 0 ;; esac
site_load
site_option_words
case "$(site_names "${site_options[@]}" "$@")" in
  *' --duration '* | *' --segment '*) site_wrong '--duration and --segment: each segment is a run of its own, of ASSAY_SOAK_MINUTES' ;;
esac
# The first job makes the directory; the others get its name.
directory=${ASSAY_SOAK_DIRECTORY:-}
number=${ASSAY_SOAK_NUMBER:-1}
[[ $number =~ ^[1-9][0-9]{0,3}$ ]] || site_wrong "ASSAY_SOAK_NUMBER is the number of the segment, not '$number'"
lost=${ASSAY_SOAK_LOST:-}
unset ASSAY_SOAK_LOST
[[ $lost =~ ^[0-9]*$ ]] || site_wrong "ASSAY_SOAK_LOST is the number of a job, not '$lost'"
if [ -z "$directory" ]; then directory=$(site_directory soak); fi
safe_directory ASSAY_SOAK_DIRECTORY "$directory/segments" || exit 4
touch "$directory/failed.txt"

# What the options exclude already: those of this script, else of ASSAY_OPTIONS.
excluded() {  # RUN-OPTIONS...
  local word last='' value='' site_options=()
  site_option_words
  for word in "${site_options[@]}" "$@"; do
    case "$word" in --exclude=*) value=${word#*=} ;; *) if [ "$last" = --exclude ]; then value=$word; fi ;; esac
    last=$word
  done
  if [ -f "$value" ]; then cat "$value"; elif [ -n "$value" ]; then printf '%s\n' "$value"; fi
}

# Moves the results of segment $number to the others, and adds to failed.txt.
keep_segment() {  # DIRECTORY CODE
  local part=$1 code=$2 name node of
  if [ -f "$part/run.h5" ]; then
    printf -v name '%s/segments/seg%02d.h5' "$directory" "$number"
    mv "$part/run.h5" "$name"
    if [ "$code" -eq 2 ]; then
      # The end of a slow link, or one of a slow cluster, is needed to see whether that stays.
      site_failed "$part/nodes.txt" "$part/verdict.json" |
        while read -r node of _; do if [ "$of" = own ] && site_node "$node"; then printf '%s\n' "$node"; fi; done |
        sort -u - "$directory/failed.txt" >"$directory/failed.new"
      mv "$directory/failed.new" "$directory/failed.txt"
      site_drain "$name"
    fi
  fi
  site_record soak "$code" "segment $number of $ASSAY_SOAK_SEGMENTS: $(tail -n 1 "$part/verdict.txt") $part"
}

segment() {  # RUN-OPTIONS...: measures segment $number, keeps its results, returns the code
  local part code=0 kept=("$@")
  printf -v part '%s/seg%02d' "$directory" "$number"
  mkdir "$part" || site_wrong "cannot make $part"
  if [ -s "$directory/failed.txt" ] && [ -z "${SLURM_JOB_ID:-}" ]; then
    { cat "$directory/failed.txt"; excluded "$@"; } >"$part/exclude.txt"
    site_without ' --exclude ' "$@"
    kept+=(--exclude "$part/exclude.txt")
  fi
  site_measure "$part" '' --level soak --duration "${ASSAY_SOAK_MINUTES}m" --segment "${ASSAY_SOAK_MINUTES}m" --quiet -- "${kept[@]}" || code=$?
  keep_segment "$part" "$code"
  return "$code"
}

finish() {
  local code=0 summary
  if compgen -G "$directory/segments/*.h5" >/dev/null; then
    "$ASSAY" verdict "$directory/segments" --no-color --nodes "$directory/nodes.txt" --json "$directory/verdict.json" \
      >"$directory/verdict.txt" 2>&1 || code=$?
    site_pods "$directory" || true
  else
    # No segment has results: the last one says why, as a night without results does.
    code=3
    cp "$(compgen -G "$directory/seg*/verdict.txt" | sort -V | tail -n 1)" "$directory/verdict.txt" || true
  fi
  summary=$(site_summary soak "$code" "$directory" 60; if [ -s "$directory/absent.txt" ]; then cat "$directory/absent.txt"; fi)
  site_write "$directory/summary.txt" "$summary"
  site_record soak "$code" "${summary%%$'\n'*} $directory"
  printf '%s\n' "$summary"
  site_notify "$summary"
  exit "$code"
}

# Whether a node of the last segment has not failed so far.
nodes_left() {
  local nodes
  printf -v nodes '%s/seg%02d/nodes.txt' "$directory" "$number"
  # Not `grep -q`: under pipefail a closed pipe is an error.
  [ ! -s "$nodes" ] || awk '{ print $1 }' "$nodes" | grep -vxF -f "$directory/failed.txt" >/dev/null
}

# Writes next.txt: the nodes of the first job without those that failed, and without those that would keep the next job waiting
# because they are down or drained; these are named in absent.txt. A node that is back is there again.
next_nodes() {
  [ -s "$directory/asked.txt" ] || return 1
  # Slurm's name of a node and its own may differ by the domain.
  { sed 's/^/failed /; s/\..*//' "$directory/failed.txt"
    sinfo -h -N -o 'state %N %t' || true
    sed 's/^/asked /' "$directory/asked.txt"; } 2>/dev/null |
    awk -v segment="$((number + 1))" -v next_file="$directory/next.txt" -v absent="$directory/absent.txt" '
      BEGIN { printf "" >next_file }
      $1 == "failed" { failed[$2] = 1 }
      $1 == "state" && $3 ~ /^(down|drain|drng|fail|inval|unk)|\*$/ { away[$2] = $3 }
      $1 == "asked" { short = $2; sub(/\..*/, "", short)
        if (short in failed) next
        if ($2 in away) print "segment " segment " without " $2 " (" away[$2] ")" >>absent
        else print $2 >next_file }'
}

code=0 site_signalled=''
if [ -z "${SLURM_JOB_ID:-}" ]; then
  # A signal also counts while a segment is judged.
  trap 'site_signalled=USR1' USR1 USR2
  trap 'site_signalled=TERM' TERM INT
  for ((; number <= ASSAY_SOAK_SEGMENTS; ++number)); do
    code=0
    segment "$@" || code=$?
    if [ "$code" -eq 4 ] || [ "$code" -eq 5 ]; then exit "$code"; fi
    if [ -n "$site_signalled" ] || ! nodes_left; then break; fi
  done
  finish
fi

# Sets `queue` to what sbatch does not take over by itself from the job that calls it.
same_queue() {
  local name value limit
  queue=()
  for name in partition account qos reservation; do
    value=SLURM_JOB_${name^^} value=${!value:-}
    if [ -n "$value" ] && [ "$value" != '(null)' ]; then queue+=(--"$name=$value"); fi
  done
  # Slurm says gres:gpu:8,gres:nvme:1 of --gres=gpu:8,nvme:1, and gres/gpu:8 since 23.11.
  value=$(scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null | sed -n 's/.* TresPerNode=\([^ ]*\).*/\1/p' | tr , '\n' |
    sed -n 's/^gres[:\/]//p' | paste -sd,) || value=''
  if [ -n "$value" ]; then queue+=(--gres="$value"); fi
  limit=$(squeue -h -j "$SLURM_JOB_ID" -o %l 2>/dev/null) || limit=''
  if [ -n "$limit" ]; then queue+=(--time="$limit"); fi
}

# Submits the job that goes on if this one ends without having done so. The end of this script cancels it.
submit_watch() {  # RUN-OPTIONS...
  local job
  job=$(env -u SLURM_EXCLUSIVE sbatch --parsable --nodes=1 --dependency="afternotok:$SLURM_JOB_ID" --kill-on-invalid-dep=yes \
    --export="ALL,ASSAY_SOAK_DIRECTORY=$directory,ASSAY_SOAK_NUMBER=$number,ASSAY_SOAK_LOST=$SLURM_JOB_ID" "${queue[@]}" \
    "$here/slurm/soak.sbatch" "$@") || {
    printf 'soak.sh: if this job is lost, the soak ends: no job can be submitted that waits for it\n' >&2
    return
  }
  # shellcheck disable=SC2064  # the number of this job
  trap "scancel ${job%%;*} || true" EXIT
}

# In the job that waited: judges what the lost job measured. Returns the code.
lost_segment() {
  local part state code=3
  printf -v part '%s/seg%02d' "$directory" "$number"
  state=$(scontrol show job -o "$lost" 2>/dev/null | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p')
  state=${state:-of unknown state}
  printf 'segment %s: its job %s was lost (%s)\n' "$number" "$lost" "$state" >>"$directory/absent.txt"
  if [ -f "$part/run.h5" ] || { [ -d "$part" ] && site_recover "$part"; }; then
    code=0
    site_judge "$part" || code=$?
    keep_segment "$part" "$code"
  else
    site_record soak 3 "segment $number of $ASSAY_SOAK_SEGMENTS: its job $lost was lost ($state) $part"
  fi
  # As when a job is cancelled that still can end in order.
  if [ "$state" = CANCELLED ]; then site_signalled=TERM; fi
  return "$code"
}

same_queue
if [ -n "$lost" ]; then
  lost_segment || code=$?
else
  if [ ! -s "$directory/asked.txt" ]; then scontrol show hostnames "${SLURM_JOB_NODELIST:-}" >"$directory/asked.txt" || true; fi
  submit_watch "$@"
  segment "$@" || code=$?
fi
if [ "$code" -eq 4 ] || [ "$code" -eq 5 ]; then exit "$code"; fi
# A job that is cancelled ends the chain; USR1 ends its segment only.
if ((number >= ASSAY_SOAK_SEGMENTS)) || [ "$site_signalled" = TERM ]; then finish; fi
# The next job gets the nodes of the first one, less those that failed and those that Slurm cannot give.
next_nodes || true
if [ ! -s "$directory/next.txt" ]; then printf 'soak.sh: no node is left for the next segment\n' >&2; finish; fi
list=$(paste -sd, "$directory/next.txt")
if launch_too_long "$list"; then list=$(scontrol show hostlist "$(realpath "$directory/next.txt")") || list=''; fi
options=(--nodes="$(wc -l <"$directory/next.txt")" --nodelist="$list"
  --export="ALL,ASSAY_SOAK_DIRECTORY=$directory,ASSAY_SOAK_NUMBER=$((number + 1))")
# What launch.sh set for the steps of this job is none of the next.
if [ -z "$list" ] || ! env -u SLURM_EXCLUSIVE ${launch_gres:+-u SLURM_GRES} sbatch "${options[@]}" "${queue[@]}" "$here/slurm/soak.sbatch" "$@"; then
  printf 'soak.sh: segment %s cannot be submitted\n' "$((number + 1))" >&2
  finish
fi
exit "$code"
