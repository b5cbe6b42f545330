# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Number of ranks per node, and the launcher options that start them; sourced by site.sh, not run. All of a node is measured:
# one rank per GPU, else one per socket, and the binding of the ranks leaves out no core.

# CPUs that this process may run on, one a line.
launch_cpus() {
  awk '/^Cpus_allowed_list:/ { n = split($2, parts, ","); for (i = 1; i <= n; ++i) {
    ends = split(parts[i], range, "-"); for (cpu = range[1]; cpu <= range[ends]; ++cpu) print cpu } }' /proc/self/status
}

# Ranks for this node: one per GPU that the program can use here, else one per socket that this process may run on.
launch_ranks_here() {
  local gpus cpu packages=''
  gpus=$("$ASSAY" list devices 2>/dev/null | tr -s ' \n' ' ' | sed -n -E 's/.* ([0-9]{1,4}) GPUs? here:.*/\1/p') || true
  if [ "${gpus:-0}" -gt 0 ]; then
    printf '%s\n' "$gpus"
    return
  fi
  for cpu in $(launch_cpus); do
    packages+=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/physical_package_id" 2>/dev/null || printf 0)$'\n'
  done
  printf '%s' "$packages" | sort -u | wc -l | awk '{ print ($1 > 0 ? $1 : 1) }'
}

# Whether the launcher options already give the number of ranks.
launch_says_ranks() {  # WORD...
  local word
  for word in "$@"; do
    case "$word" in
      -n | -np | -c | --n | --np | -N | -npernode | --npernode | -npersocket | --npersocket | -ppn | --ppn | -perhost | -map-by | --map-by | \
        --ntasks* | -n[0-9]* | --tasks-per-node* | -rf | --rankfile) return 0 ;;
    esac
  done
  return 1
}

# Ranks of every node of the launch. Inside a job this script runs on one of its nodes, and without hosts of its own the launcher
# starts ranks here; otherwise the nodes are asked. Where they differ, the smallest counts; the run names what that leaves out.
launch_ranks() {  # LAUNCHER WORD...
  local word asked='' least
  if [ "$ASSAY_RANKS" != auto ]; then printf '%s\n' "$ASSAY_RANKS"; return; fi
  if [ -n "${SLURM_NTASKS_PER_NODE:-}" ]; then printf '%s\n' "${SLURM_NTASKS_PER_NODE%%(*}"; return; fi
  if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${FLUX_JOB_ID:-}" ]; then
    for word in "$@"; do
      case "$word" in -H | -host | --host | -hostfile | --hostfile | -machinefile | --machinefile) asked=yes ;; esac
    done
    # The operator of Kubernetes names the workers by this variable of Open MPI.
    if [ -n "${OMPI_MCA_orte_default_hostfile:-}" ]; then asked=yes; fi
  fi
  if [ -n "$asked" ]; then
    least=$(timeout 60 "$@" --map-by ppr:1:node --oversubscribe --bind-to none env ASSAY="$ASSAY" bash -c \
      ". '$(realpath "${BASH_SOURCE[0]}")'; printf 'ranks=%s\n' \"\$(launch_ranks_here)\"" 2>/dev/null </dev/null |
      sed -n 's/.*ranks=\([0-9]*\).*/\1/p' | sort -n | head -n 1) || true
    if [ -n "$least" ]; then printf '%s\n' "$least"; return; fi
    printf 'the nodes cannot be asked how many ranks they take; as many as here\n' >&2
  fi
  launch_ranks_here
}

# Sets `launch` to the words of ASSAY_LAUNCH and those that start ASSAY_RANKS ranks on every node. Launchers other than Open MPI's
# mpirun and srun are taken as they are.
launch_words() {
  local ranks
  read -r -a launch <<<"$ASSAY_LAUNCH"
  if [ "${#launch[@]}" -eq 0 ] || launch_says_ranks "${launch[@]}"; then return 0; fi
  case "${launch[0]##*/}" in
    mpirun | mpiexec | orterun)
      "${launch[0]}" --version 2>/dev/null | grep -qE 'Open MPI|OpenRTE' || return 0
      ranks=$(launch_ranks "${launch[@]}")
      # Batch systems give one slot per node by default; there are cores for all of these ranks.
      launch+=(--map-by "ppr:$ranks:node" --oversubscribe --bind-to none)
      if [ -z "${OMPI_MCA_mpi_yield_when_idle:-}" ] && [ "$ranks" -le "$(launch_cpus | wc -l)" ]; then
        launch+=(--mca mpi_yield_when_idle 0)
      fi ;;
    srun)
      ranks=$(launch_ranks "${launch[@]}")
      launch+=(--ntasks-per-node="$ranks" --ntasks="$((ranks * ${SLURM_JOB_NUM_NODES:-1}))" --cpu-bind=none) ;;
  esac
}
