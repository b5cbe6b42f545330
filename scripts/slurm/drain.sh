#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Drains the nodes in Slurm that a verdict names, and resumes those that this script drained.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/slurm/drain.sh [--apply] [--resume] [--by CHECK] [--most N] FILE|DIR [VERDICT OPTIONS...]

Judges FILE (`assay verdict`, with the options given) and prints an scontrol line for every node that FAIL findings name;
only when the verdict is FAIL (exit 2). The Reason begins with `assay:` and says what was found. A link or a switch is no
node, a node that was drained before keeps its Reason, and a run with injected faults drains no node: these are
printed as comments.

  --apply     run the lines too
  --resume    instead: bring back nodes that are PASS in FILE and whose Reason begins with `assay:`; no others
  --by CHECK  the Reason begins with `assay: CHECK:`, and --resume brings back only nodes whose Reason begins so
  --most N    with more failed nodes than N none is drained (default: setting ASSAY_DRAIN_MOST); exit code 3

Exit code: 0; 3 too many nodes; 4 wrong use or an unreadable file; 5 scontrol failed.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/site.sh
. "$here/site.sh"

apply=0 resume=0 most='' ours=assay:
while [ "$#" -gt 0 ]; do
  case "$1" in
    --help | -h) usage; exit 0 ;;
    --apply) apply=1 ;;
    --resume) resume=1 ;;
    --by) [[ ${2:-} =~ ^[A-Za-z0-9_-]{1,40}$ ]] || site_wrong "--by takes the name of a check, not '${2:-}'"; ours="assay: $2:"; shift ;;
    --most) [[ ${2:-} =~ ^[0-9]{1,6}$ ]] || site_wrong "--most takes a number, not '${2:-}'"; most=$2; shift ;;
    -*) site_wrong "unknown option $1 (try --help)" ;;
    *) break ;;
  esac
  shift
done
[ "$#" -gt 0 ] || site_wrong 'usage: drain.sh [--apply] [--resume] FILE|DIR (try --help)'
site_load
[ -n "$most" ] || most=$ASSAY_DRAIN_MOST
if [ "$apply" = 1 ]; then command -v scontrol >/dev/null || site_wrong '--apply: no scontrol on this machine'; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
code=0
"$ASSAY" verdict "$@" --nodes "$work/nodes" --json "$work/json" >"$work/verdict" 2>"$work/error" || code=$?
case "$code" in
  0 | 1 | 2 | 3) ;;
  *) site_wrong "$(head -n 1 "$work/error")" ;;
esac

if grep -q '"injected": *true' "$work/json"; then
  printf '# faults were injected in this run, or it is simulated: no node is changed\n'
  exit 0
fi

# State and Reason as Slurm has them now; nothing where there is no Slurm, no such node, or a name that stands for several.
show_node() {
  local shown
  shown=$(scontrol show node -o "$1" 2>/dev/null) || return 0
  if [[ $shown == "NodeName=$1 "* && $shown != *$'\n'* ]]; then printf '%s\n' "$shown"; fi
}
state_of() { sed -n 's/.* State=\([^ ]*\).*/\1/p' <<<"$1"; }
reason_of() { sed -n 's/.* Reason=\(.*\) \[.*/\1/p' <<<"$1"; }

act() {  # NODE ARGUMENTS...: prints the line, and runs it
  if [ "$apply" = 1 ] && [ -z "$(show_node "$1")" ]; then
    printf '# %s: no node that Slurm knows by this name alone\n' "$1"
    return 0
  fi
  printf 'scontrol update NodeName=%s State=%s%s\n' "$1" "$2" "${3:+ Reason=\"$3\"}"
  [ "$apply" = 1 ] || return 0
  scontrol update NodeName="$1" State="$2" ${3:+Reason="$3"} || { printf 'drain.sh: scontrol failed for %s\n' "$1" >&2; failed=1; }
}

failed=0 drains=()
while read -r node state reason; do
  if [ "$resume" = 0 ] || [ "$state" != PASS ]; then continue; fi
  site_node "$node" || { printf '# %s: no name that Slurm knows\n' "$node"; continue; }
  shown=$(show_node "$node")
  case "$(state_of "$shown"):$(reason_of "$shown")" in
    *DRAIN*:"$ours"*) act "$node" RESUME ;;
    *DRAIN*) printf '# %s is not ours to resume: %s\n' "$node" "$(reason_of "$shown")" ;;
  esac
done <"$work/nodes"
while read -r node of reason; do
  if [ "$resume" = 1 ] || [ "$code" -ne 2 ]; then continue; fi
  site_node "$node" || { printf '# %s: no name that Slurm knows\n' "$node"; continue; }
  case "$of:${reason%%: *}" in
    own:*) drains+=("$node $reason") ;;
    *'>'*) printf '# %s: only a link of it is slow: %s\n' "$node" "$reason" ;;
    *) printf '# %s is not named itself: %s\n' "$node" "$reason" ;;
  esac
done < <(site_failed "$work/nodes" "$work/json")

if [ "${#drains[@]}" -gt "$most" ]; then
  printf '# %s nodes failed, more than %s: none is drained. Look at what they share first.\n' "${#drains[@]}" "$most"
  exit 3
fi
for line in "${drains[@]}"; do
  node=${line%% *}
  shown=$(show_node "$node")
  case "$(state_of "$shown")" in
    *DRAIN*) printf '# %s is drained already: %s\n' "$node" "$(reason_of "$shown")"; continue ;;
  esac
  # One line, short enough for sinfo, and nothing in it that a shell would read.
  reason=${line#* }
  reason=$(printf '%s %s' "$ours" "${reason%%; next: *}" | tr -cd 'A-Za-z0-9 .,:;/%()+=_<>-' | cut -c1-200)
  act "$node" DRAIN "$reason"
done
if [ "$failed" = 1 ]; then exit 5; fi
