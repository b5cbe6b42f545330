# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What prolog.sh and healthcheck.sh share; sourced behind site.sh, never run. Both check one node outside of any job, and no shared file
# system that does not answer may keep them.

# To a prolog Slurm says which GPUs its job gets, but all of the node are tested; the settings, which are read later, may choose some.
unset CUDA_VISIBLE_DEVICES

# Runs COMMAND, which may need a shared file system, in a process of its own. Returns its exit code, or 124 where it has not ended after
# LIMIT seconds: it gets SIGKILL then, and is not waited for, because in the kernel it may outlive that. It holds none of this
# process's files: slurmd waits until the output of its script is closed, and a prolog for the lock (9). Sets `site_said` to
# what it printed.
site_within() {  # LIMIT COMMAND...
  local limit=$1 code='' said child fd
  shift
  said=$(mktemp 2>/dev/null) || said=/dev/null
  exec {fd}< <(
    exec 8>&1 >"$said" 2>&1 </dev/null 9>&-
    trap 'printf "%s\n" "$?" >&8' EXIT
    "$@"
  )
  child=$!
  read -r -t "$limit" code <&"$fd" || {
    # Without a line it was killed, or its time is over.
    if [ "$?" -gt 128 ]; then code=124; kill -KILL "$child" 2>/dev/null; fi
  }
  exec {fd}<&-
  site_said=$(cat "$said" 2>/dev/null)
  if [ "$said" != /dev/null ]; then rm -f "$said"; fi
  return "${code:-125}"
}

# Runs all of a check, and ends this script with its exit code: 1 for a FAIL that keeps jobs away, else 0. A check that is not over in
# LIMIT seconds is ended and is a line in the system's log, because settings and results may be where nothing answers.
site_check_within() {  # LIMIT KIND
  local code=0
  site_within "$1" "$2" || code=$?
  if [ -n "$site_said" ]; then printf '%s\n' "$site_said" >&2; fi
  if [ "$code" -eq 124 ]; then site_syslog "$2" 3 "ended after $1 s (does a shared file system answer?)"; fi
  exit "$((code == 1))"
}

# One line about this node in the log, or in the system's log where that cannot be written.
site_note() {  # KIND CODE TEXT
  site_within 5 site_log "$1" "$2" "$(hostname -s): $3" || site_syslog "$@"
}

# The settings. A check that fails would keep jobs away: wrong ones end it with 0 and a line in the log.
site_load_or_leave() {  # KIND
  local code=0 why
  site_within 10 site_load || code=$?
  if [ "$code" -eq 0 ]; then
    site_load
    return
  fi
  why=$site_said
  if [ "$code" -eq 124 ]; then
    site_syslog "$1" 3 'not tested: settings and program cannot be read within 10 s (does a shared file system answer?)'
    exit 0
  fi
  printf '%s\n' "$why" >&2
  # Without settings the place of the log is unknown.
  if (site_settings) >/dev/null 2>&1; then
    site_settings
    site_note "$1" 4 "not tested: $why"
  else
    site_syslog "$1" 4 "not tested: $why"
  fi
  exit 0
}

# The same where the state of the node cannot be kept: jobs would start untested unseen.
site_state_or_leave() {  # KIND
  local why
  if why=$(safe_directory ASSAY_STATE "$ASSAY_STATE" 2>&1); then return; fi
  printf '%s\n' "$why" >&2
  site_note "$1" 4 "not tested: $why"
  exit 0
}

# Numbers of the jobs on this node, other than the one that a prolog runs for; from the node's slurmd, not from the controller.
# `unknown` where it does not tell, or where Slurm started the script without scontrol in PATH: there may be some.
site_other_jobs() {
  local said
  if ! command -v scontrol >/dev/null; then
    if [ -n "${SLURM_JOB_ID:-}${SLURMD_NODENAME:-}" ]; then printf 'unknown\n'; fi
    return 0
  fi
  # Without any job it fails, too.
  if ! said=$(scontrol listpids '*' ${SLURMD_NODENAME:+"$SLURMD_NODENAME"} 2>&1) &&
    { grep -qi error <<<"$said" || ! grep -q '^No job steps exist on this node' <<<"$said"; }; then
    printf 'unknown\n'
    return 0
  fi
  awk -v own="${SLURM_JOB_ID:-}" '$2 ~ /^[0-9]+$/ && $2 != own { print $2 }' <<<"$said" | sort -u
}

# Whether the verdict in a JSON file has a fault other than a slow part, which another job on the node can cause.
site_hard_fault() {  # FILE
  grep -qE '"severity":"FAIL",[^{}]*"kind":"(corrupt|missing|mismatch|counter)"' "$1" 2>/dev/null
}

# Sets `kept` to the words of ASSAY_OPTIONS that hold for one node alone: which devices it must have. Limits are left out, because most
# of their metrics are not measured here, or at other sizes.
site_node_options() {
  local word keep='' site_options=()
  site_option_words
  kept=()
  for word in "${site_options[@]}"; do
    case "$word" in
      --device | --device=* | --expect-devices | --expect-devices=*) keep=yes ;;
      -*) keep='' ;;
    esac
    if [ -n "$keep" ]; then kept+=("$word"); fi
  done
}

# Number of GPUs that Slurm knows of this node, where the program can use fewer: a GPU that is lost from the bus is in no list of the driver.
# Nothing where it can use none, since the run then measures the host, where the settings say which devices are used or expected, and
# where the GPUs of Slurm are slices (MIG). The controller is asked, and one that does not answer soon leaves the number unknown. A
# prolog does not ask: those of a large job begin together.
site_gpus_of_slurm() {  # GPUS-HERE
  local node most slice='gpu:[^ ,]*[0-9]g\.[0-9]+gb'
  case " ${kept[*]} " in *' --expect-devices'* | *' --device host '* | *' --device=host '*) return 0 ;; esac
  if [ "${1:-0}" -eq 0 ] || [ -n "${CUDA_VISIBLE_DEVICES:-}" ] || [ -n "${SLURM_JOB_ID:-}" ]; then return 0; fi
  node=$(timeout 5 scontrol show node -o "${SLURMD_NODENAME:-$(hostname -s)}" 2>/dev/null) || return 0
  if [[ $node =~ $slice ]] || compgen -G '/proc/driver/nvidia/capabilities/gpu*/mig/gi*' >/dev/null; then return 0; fi
  read -r _ most < <(launch_node_gpus <<<"$node")
  if [ "$most" -gt "$1" ]; then printf '%s\n' "$most"; fi
}

# Starts a short run on all devices of this node, outside of any job. Beside other jobs only the GPUs of the job are loaded, which it
# has alone; cores and memory are not.
# shellcheck disable=SC2034  # launch.sh reads ASSAY_LAUNCH and ASSAY_RANKS
site_run_here() {  # OTHER-JOBS SUITES SECONDS FILE
  local others=$1 suites=$2 given=${SLURM_JOB_GPUS:-} launch=() kept=() options=() variable gpus expected=''
  site_node_options
  if [ -z "$others" ]; then
    gpus=$(launch_gpus_here)
    expected=$(site_gpus_of_slurm "$gpus")
  fi
  # MPI would take the batch system's variables for those of this run.
  for variable in $(compgen -e | grep -E '^(SLURM|PMI|PMIX)_'); do unset "$variable"; done
  options=(--require coverage "${kept[@]}" ${expected:+--expect-devices "$expected"})
  if [ -n "$others" ]; then
    options=(--device host) suites=inventory  # GPUs of other jobs are not touched
    if [[ $given =~ ^[0-9]+(,[0-9]+)*$ ]]; then
      export CUDA_VISIBLE_DEVICES=$given
      suites=inventory,gemm options=(--device cuda)
    fi
  fi
  if [ "$ASSAY_RANKS" = auto ] || [ -n "$others" ]; then ASSAY_RANKS=$(launch_ranks_here ${gpus+"$gpus"}); fi
  ASSAY_LAUNCH=''
  if launch_is_open_mpi mpirun; then ASSAY_LAUNCH='mpirun --mca orte_execute_quiet 1'
  # Ranks of Open MPI would be that many runs of one rank under another one's mpirun.
  elif command -v mpirun >/dev/null && ! [[ $("$ASSAY" --version 2>/dev/null) =~ MPI\ +Open\ MPI ]]; then ASSAY_LAUNCH="mpirun -n $ASSAY_RANKS"; fi
  launch_words
  # USR1 ends the run in order, with a file; the code is that of the run, since a FAIL counts however it ended.
  exec timeout --preserve-status --signal=USR1 --kill-after=10 "$3" "${launch[@]}" "$ASSAY" run --level smoke --suites "$suites" "${options[@]}" --quiet --force \
    --out "$4" --json "${4%.h5}.json"
}

# This node alone, outside of any job, with a time limit. Logs what it does, drains on a FAIL as
# ASSAY_DRAIN says, and returns 1 where that was to apply it. Sets `site_passed` to yes where everything of the node was measured,
# with no other job on it, and passed without a warning.
# shellcheck disable=SC2034  # read by prolog.sh
site_check_node() {  # KIND SUITES SECONDS
  local kind=$1 suites=$2 seconds=$3 code=0 file=$ASSAY_STATE/$1.h5 line others note='' begun by=()
  site_passed=no
  # A process that outlives the test must not hold the lock of the prolog.
  others=$(exec 9>&-; site_other_jobs)
  rm -f "${file%.h5}.json"
  begun=$(date +%s)
  (exec 9>&-; site_run_here "$others" "$suites" "$seconds" "$file") >"$ASSAY_STATE/$kind.txt" 2>&1 </dev/null || code=$?
  if [ $(($(date +%s) - begun)) -ge "$seconds" ]; then note=" (ended after $seconds s)"; fi
  if [ -z "$others" ]; then others=$(exec 9>&-; site_other_jobs); fi  # one that came meanwhile
  if [ "$others" = unknown ] && ! command -v scontrol >/dev/null; then note+=' (other jobs may run here: no scontrol in PATH)'
  elif [ "$others" = unknown ]; then note+=' (other jobs may run here: scontrol listpids fails)'
  elif [ -n "$others" ]; then note+=" (beside job $(printf '%s' "$others" | tr '\n' ' '))"; fi
  line=$(grep -E '^(PASS|WARN|FAIL|INCONCLUSIVE) ' "$ASSAY_STATE/$kind.txt" || grep . "$ASSAY_STATE/$kind.txt" || printf 'nothing said')
  line=${line##*$'\n'}$note
  site_note "$kind" "$code" "$line"
  if [ "$code" -eq 0 ] && [ -z "$others" ] && [[ $line == PASS\ * ]]; then site_passed=yes; fi
  if [ "$code" -ne 2 ]; then return 0; fi
  if [ -n "$others" ] && ! site_hard_fault "${file%.h5}.json"; then
    printf 'no node is drained: other jobs on this node can be why it is slow\n' >>"$ASSAY_STATE/$kind.txt"
    return 0
  fi
  if [ "$kind" = healthcheck ]; then by=(--by healthcheck); fi  # it resumes these itself
  site_within 30 site_drain "$file" "${by[@]}" || site_said+=$'\n'"drain.sh left with $?"
  if [ -n "$site_said" ]; then printf '%s\n' "$site_said" >>"$ASSAY_STATE/$kind.txt"; fi
  if [ "$ASSAY_DRAIN" = apply ]; then return 1; fi
}
