# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Number of ranks per node, the launcher options that start them, and nodes that are left out; sourced by site.sh. All of a node is
# measured: one rank per GPU, else one per socket, and the binding of the ranks leaves out no core.
# As a program it is what `assay run --launcher` calls: launch.sh start [--without=NODES | --only=NODES] LAUNCHER WORD... -- PROGRAM
# WORD... NODES is a list with commas, or a file with such a list: a word of a command line has at most 128 KiB.

# CPUs that this process may run on, one a line.
launch_cpus() {
  awk '/^Cpus_allowed_list:/ { n = split($2, parts, ","); for (i = 1; i <= n; ++i) {
    ends = split(parts[i], range, "-"); for (cpu = range[1]; cpu <= range[ends]; ++cpu) print cpu } }' /proc/self/status
}

# Number of GPUs that the program can use here; nothing where it is built without GPUs.
launch_gpus_here() {
  "$ASSAY" list devices 2>/dev/null | tr -s ' \n' ' ' | sed -n -E 's/.* ([0-9]{1,4}) GPUs? here:.*/\1/p; t; s/.* no GPU is used here:.*/0/p' || true
}

# Ranks for this node: one per GPU that the program can use here, else one per socket that this process may run on.
launch_ranks_here() {  # [GPUS-HERE]
  local gpus=${1-$(launch_gpus_here)} cpu packages=''
  if [ "${gpus:-0}" -gt 0 ]; then
    printf '%s\n' "$gpus"
    return
  fi
  for cpu in $(launch_cpus); do
    packages+=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/physical_package_id" 2>/dev/null || printf 0)$'\n'
  done
  printf '%s' "$packages" | sort -u | wc -l | awk '{ print ($1 > 0 ? $1 : 1) }'
}

# Whether the launcher options already give the number of ranks. Letters mean other things elsewhere: of srun, -N is nodes and -c
# CPUs of a task; of Open MPI's mpirun, ranks of a node and ranks.
launch_says_ranks() {  # LAUNCHER WORD...
  local word
  for word in "${@:2}"; do
    case "${1##*/} $word" in
      srun\ -n* | srun\ --ntasks* | srun\ --tasks-per-node*) return 0 ;;
      srun\ *) ;;
      *\ -n | *\ --n | *\ --n=* | *\ -np | *\ --np | *\ --np=* | *\ -c | *\ -N | *\ -npernode | *\ --npernode* | *\ -npersocket | \
        *\ --npersocket* | *\ -pernode | *\ --pernode | *\ -map-by | *\ --map-by | *\ --map-by=* | *\ -rf | *\ -rankfile | *\ --rankfile* | \
        *\ -app | *\ --app) return 0 ;;
    esac
  done
  return 1
}

# The last value of an option among the words of a launcher: "--host a,b", "--host=a,b", "-w a" or "-wa". Nothing if it has none.
launch_option() {  # "|NAME|NAME|" WORD...
  local word last='' value=''
  for word in "${@:2}"; do
    case "$1" in *"|$last|"*) value=$word ;; esac
    case "$word" in
      --*=* | -??*=*) case "$1" in *"|${word%%=*}|"*) value=${word#*=} ;; esac ;;
      -[!-]?*) case "$1" in *"|${word:0:2}|"*) value=${word:2} ;; esac ;;
    esac
    last=$word
  done
  printf '%s\n' "$value"
}
launch_lists='|-H|-host|--host|-hostfile|--hostfile|-machinefile|--machinefile|'  # of nodes, to mpirun

# Nodes of a job step: those that srun is told (nothing for a range or a list), else those of the job.
launch_step_nodes() {  # SRUN WORD...
  local nodes
  nodes=$(launch_option '|-N|--nodes|' "$@")
  if [ -z "$nodes" ] && [ -z "$(launch_option '|-w|--nodelist|-F|--nodefile|' "$@")" ]; then nodes=${SLURM_JOB_NUM_NODES:-1}; fi
  if [[ $nodes =~ ^[0-9]+$ ]]; then printf '%s\n' "$nodes"; fi
}

# What a node says that is asked.
launch_answer() {
  local gpus
  gpus=$(launch_gpus_here)
  printf 'ranks=%s gpus=%s\n' "$(launch_ranks_here "$gpus")" "${gpus:-0}"
}

# Asks the nodes of a launch; "RANKS GPUS" a line for each, nothing where the launcher fails.
launch_ask() {  # NODES-ASKED LAUNCHER WORD...; all if empty
  local seconds=60 self answers nodes='' one=(--map-by ppr:1:node --oversubscribe --bind-to none)
  self=$(realpath "${BASH_SOURCE[0]}")
  answers=$(mktemp)  # no pipe: an ssh that outlives its launcher would keep it open
  if [ "${2##*/}" = srun ]; then
    # Outside of a job it waits in the queue; inside of one it would start as many tasks as the job has.
    if [ -z "${SLURM_JOB_ID:-}" ]; then seconds=600; else nodes=$(launch_step_nodes "${@:2}"); fi
    one=(--ntasks-per-node=1 --cpu-bind=none ${nodes:+--ntasks="$nodes"})
  fi
  timeout --kill-after=10 "$seconds" bash "$self" start ${1:+"--only=$1"} "${@:2}" "${one[@]}" -- env ASSAY="$ASSAY" bash -c \
    ". '$self'; launch_answer" </dev/null >"$answers" || true
  sed -n 's/.*ranks=\([0-9]*\) gpus=\([0-9]*\).*/\1 \2/p' "$answers"
  rm -f "$answers"
}

# Asks the `nodes` of the caller in groups of SIZE, 32 groups at a time. Prints the answers, and "silent FIRST" of a group without
# one, whose first node has this index.
launch_ask_groups() {  # SIZE LAUNCHER WORD...
  local first answer asked=0
  for ((first = 0; first < ${#nodes[@]}; first += $1)); do
    {
      answer=$(IFS=,; launch_ask "${nodes[*]:first:$1}" "${@:2}" 2>/dev/null)
      printf '%s\n' "${answer:-silent $first}"
    } &
    if ((++asked % 32 == 0)); then wait; fi
  done
  wait
}

# The same as launch_ask where one node is dead, since Open MPI then starts nothing: groups are asked, and each node of the groups
# without an answer.
launch_ask_each() {  # LAUNCHER WORD...
  local nodes all answers first silent size
  mapfile -t all < <(launch_nodes "$@")
  all=("${all[@]%%:*}")
  nodes=("${all[@]}")
  size=$(((${#nodes[@]} + 31) / 32))
  answers=$(launch_ask_groups "$size" "$@")
  sed '/silent/d' <<<"$answers"
  if [ "$size" -lt 2 ]; then return; fi
  mapfile -t silent < <(sed -n 's/silent //p' <<<"$answers")
  nodes=()
  for first in "${silent[@]}"; do nodes+=("${all[@]:first:size}"); done
  launch_ask_groups 1 "$@" | sed '/silent/d'
}

# Ranks by the answers of the nodes. If as many have GPUs as have none, the run measures GPUs: the most count, since a rank without a GPU
# is told and no GPU is left out. Otherwise the fewest sockets: no core is left out, and srun refuses more ranks than a node has cores.
launch_agreed() {
  awk '$2 > 0 { ++with; if ($1 > most) most = $1; next } !without++ || $1 < least { least = $1 }
    END { if (NR) print (with >= without ? most : least) }'
}

# Ranks of every node of the launch. Inside a job this script runs on one of its nodes, and without hosts of its own the launcher
# starts ranks here: the nodes are asked where Slurm knows of more GPUs than this node has. PBS and LSF tell nothing of that, and what
# ssh starts for a question may see GPUs of other jobs. Outside of a job the nodes are asked. Fails where no node answers.
launch_ranks() {  # LAUNCHER WORD...
  local asked='' gpus='' agreed job=${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${FLUX_JOB_ID:-}
  local slurm=${launch_gres:-gpu:${SLURM_GPUS_ON_NODE:-0}}
  if [ "$ASSAY_RANKS" != auto ]; then printf '%s\n' "$ASSAY_RANKS"; return; fi
  if [ -n "${SLURM_NTASKS_PER_NODE:-}" ]; then printf '%s\n' "${SLURM_NTASKS_PER_NODE%%(*}"; return; fi
  if [ -n "$job" ]; then
    gpus=$(launch_gpus_here)
    if [ -n "${SLURM_JOB_ID:-}" ] && [ -n "$gpus" ] && [ "$gpus" -lt "${slurm#gpu:}" ]; then asked=yes; fi
  # Here srun makes a job of its own. The operator of Kubernetes names the workers by this variable of Open MPI.
  elif [ -n "$(launch_option "$launch_lists" "$@")" ] || [ "${1##*/}" = srun ] || [ -n "${OMPI_MCA_orte_default_hostfile:-}" ]; then asked=yes; fi
  if [ -z "$asked" ]; then launch_ranks_here ${job:+"$gpus"}; return; fi
  agreed=$(launch_ask '' "$@" | launch_agreed) || true
  if [ -z "$agreed" ] && [ "${1##*/}" != srun ]; then agreed=$(launch_ask_each "$@" | launch_agreed) || true; fi
  if [ -n "$agreed" ] && [ "${gpus:-0}" -gt "$agreed" ]; then agreed=$gpus; fi  # steps may have fewer: --gpus-per-task
  if [ -n "$agreed" ]; then printf '%s\n' "$agreed"; return; fi
  if [ "${1##*/}" != srun ] && [ -z "$job" ]; then
    printf 'no node answers how many ranks it takes (ASSAY_RANKS can say it)\n' >&2
    return 1
  fi
  # It may wait in the queue longer than a question may, and the run can wait there as long as it must.
  printf '%s did not say how many ranks its nodes take: the number for this machine is used (ASSAY_RANKS can say it)\n' "${1##*/}" >&2
  launch_ranks_here
}

# Whether a program is the mpirun of Open MPI.
launch_is_open_mpi() { [[ $("$1" --version 2>/dev/null) =~ Open\ MPI|OpenRTE ]]; }  # PROGRAM

# Of nodes of Slurm, as scontrol shows them: the GPUs that each of them has as GRES, such as Gres=gpu:h100:8(S:0-1),nvme:1. Two
# numbers, the least and the most.
launch_node_gpus() {
  awk '{ gpus = 0; gsub(/\([^)]*\)/, "")
      for (i = 1; i <= NF; ++i) if ($i ~ /^Gres=/) {
        n = split(substr($i, 6), parts, ",")
        for (k = 1; k <= n; ++k) if (parts[k] ~ /^gpu(:|$)/) gpus += parts[k] ~ /:[0-9]+$/ ? substr(parts[k], match(parts[k], /[0-9]+$/)) : 1
      }
      if (NR == 1 || gpus < least) least = gpus
      if (gpus > most) most = gpus }
    END { print least + 0, most + 0 }'
}

# A job step gets the GPUs that its job asked for, but not those that the job has because it has its nodes for itself. Where nobody
# asks for GPUs, the steps of such a job do: those of srun, and those in which mpirun starts its daemons. Sets `launch_gres` where
# it sets SLURM_GRES.
launch_step_gpus() {  # LAUNCHER WORD...
  local word job least most asks=' (TresPer[A-Za-z]*|Gres)=[^ ]*(gpu|none)'
  # Slurm 26.05 has Exclusive= for that, and says OverSubscribe=NO of other jobs, too.
  local alone=' OverSubscribe=NO Contiguous=| Exclusive=(NODE|TOPO) '
  case "${1##*/}" in srun | mpirun | mpiexec | orterun) ;; *) return 0 ;; esac
  if [ -z "${SLURM_JOB_ID:-}" ]; then return 0; fi
  for word in "$@"; do
    case "$word" in --gres | --gres=* | --gpus | --gpus=* | --gpus-per-* | -G* | --tres-per-task*) return 0 ;; esac
  done
  for word in GRES STEP_GRES GPUS GPUS_PER_NODE GPUS_PER_SOCKET GPUS_PER_TASK; do
    word=SLURM_$word
    if [ -n "${!word:-}" ]; then return 0; fi
  done
  job=$(scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null) || return 0
  if [[ $job =~ $asks || ! $job =~ $alone ]]; then return 0; fi
  read -r least most < <(scontrol show node -o "${SLURM_JOB_NODELIST:-${SLURMD_NODENAME:-none}}" 2>/dev/null | launch_node_gpus) || return 0
  if [ "$least" -ne "$most" ]; then
    # A step that asks for the least would see no more on any node, and all would look complete.
    printf 'the nodes have %s to %s GPUs by Slurm, and a step asks for as many on each: none are asked for (sbatch --gres can)\n' \
      "$least" "$most" >&2
    return 0
  fi
  # As --gres of srun. SLURM_STEP_GRES needs a prefix since Slurm 21.08 (gres: or gres/, by version): 22.05 refuses a step without it.
  if [ "$least" -gt 0 ]; then
    launch_gres=gpu:$least
    export SLURM_GRES=$launch_gres
  fi
}

# The file with the hosts of this PBS or LSF job, for mpirun; nothing where it is told others.
launch_job_file() {  # LAUNCHER WORD...
  local listed file=${PBS_NODEFILE:-${LSB_DJOB_HOSTFILE:-}}
  case "${1:-}" in mpirun | mpiexec | orterun | */mpirun | */mpiexec | */orterun) ;; *) return 0 ;; esac
  if [ -n "${SLURM_JOB_ID:-}${OMPI_MCA_orte_default_hostfile:-}" ] || [ ! -r "$file" ]; then return 0; fi
  listed=$(launch_option "$launch_lists-hosts|--hosts|-f|" "$@")  # the last three are of MPICH
  if [ "${listed:-$file}" = "$file" ]; then printf '%s\n' "$file"; fi
}

# Number of nodes of this PBS or LSF job, which the run must have; nothing where it is unknown.
launch_job_nodes() {  # LAUNCHER WORD...
  if [ -n "$(launch_job_file "$@")" ]; then launch_nodes "$@" | wc -l; fi
}

# Sets `launch` to the words of ASSAY_LAUNCH and those that start ASSAY_RANKS ranks on every node. Launchers other than Open MPI's
# mpirun and srun are taken as they are. Fails where the number of ranks is unknown.
launch_words() {
  local ranks nodes file
  read -r -d '' -a launch <<<"$ASSAY_LAUNCH" || true
  if [ "${#launch[@]}" -eq 0 ]; then return 0; fi
  # A job that was submitted with --export=NONE or with a list (or SBATCH_EXPORT) hands that on to its steps: ranks, and the daemons
  # of mpirun, would have neither PATH nor what the settings export. Options of srun still count.
  if [ -n "${SLURM_JOB_ID:-}" ]; then export SLURM_EXPORT_ENV=ALL; fi
  launch_step_gpus "${launch[@]}"
  # Open MPI as Debian builds it knows neither PBS nor LSF, and would start all ranks on this node.
  file=$(launch_job_file "${launch[@]}")
  if [ -n "$file" ] && [ -z "$(launch_option "$launch_lists" "${launch[@]}")" ] && launch_is_open_mpi "${launch[0]}"; then
    launch+=(--hostfile "$file")
  fi
  if launch_says_ranks "${launch[@]}"; then return 0; fi
  case "${launch[0]##*/}" in
    mpirun | mpiexec | orterun)
      launch_is_open_mpi "${launch[0]}" || return 0
      ranks=$(launch_ranks "${launch[@]}") || return 1
      # Batch systems give one slot per node by default; there are cores for all of these ranks.
      launch+=(--map-by "ppr:$ranks:node" --oversubscribe --bind-to none)
      if [ -z "${OMPI_MCA_mpi_yield_when_idle:-}" ] && [ "$ranks" -le "$(launch_cpus | wc -l)" ]; then
        launch+=(--mca mpi_yield_when_idle 0)
      fi ;;
    srun)
      ranks=$(launch_ranks "${launch[@]}") || return 1
      nodes=$(launch_step_nodes "${launch[@]}")
      launch+=(--ntasks-per-node="$ranks")
      if [ -n "$nodes" ]; then launch+=(--ntasks="$((ranks * nodes))"); fi
      launch+=(--cpu-bind=none) ;;
  esac
}

# The nodes of this job or hostfile, one a line: those that a launcher would use by itself. NAME:SLOTS for Open MPI, to
# which a bare name of --host has one slot, and a bare name of a hostfile as many as cores. Of a name that comes again
# slots add up.
launch_nodes() {  # LAUNCHER WORD...
  local file hosts without
  if [ "${1##*/}" = srun ]; then
    hosts=$(launch_option '|-w|--nodelist|' "$@")
    without=$(launch_option '|-x|--exclude|' "$@")
    hosts=${hosts:-${SLURM_JOB_NODELIST:-}}
    if [ -z "$hosts" ]; then return; fi
    scontrol show hostnames "$hosts" | if [ -n "$without" ]; then launch_chosen "--without=$without"; else cat; fi
    return
  fi
  hosts=$(launch_option '|-H|-host|--host|' "$@")
  file=$(launch_option '|-hostfile|--hostfile|-machinefile|--machinefile|' "$@")
  if [ -z "$file$hosts" ] && [ -n "${SLURM_JOB_NODELIST:-}" ]; then scontrol show hostnames "$SLURM_JOB_NODELIST"; return; fi
  if [ -z "$file" ]; then file=${PBS_NODEFILE:-${LSB_DJOB_HOSTFILE:-${OMPI_MCA_orte_default_hostfile:-}}}; fi
  if [ -n "$hosts" ]; then sed -E 's/:([0-9]+)/ slots=\1/g; s/,/\n/g' <<<"$hosts"; elif [ -r "$file" ]; then cat "$file"; fi |
    awk -v listed="$hosts" '
      { sub(/\r$/, ""); sub(/#.*/, "") }
      NF { gsub(/ *= */, "="); own = 0
        for (i = 2; i <= NF; ++i) if ($i ~ /^slots=[0-9]+$/) own = substr($i, 7) + 0
        if (!($1 in lines)) names[++n] = $1
        ++lines[$1]; slots[$1] += own > 0 ? own : 1; if (own > 0 || listed != "") known[$1] = 1 }
      END { for (i = 1; i <= n; ++i) print names[i] ":" (known[names[i]] || lines[names[i]] > 1 ? slots[names[i]] : "auto") }'
}

# Of the nodes that it reads (NAME:SLOTS), those of --only=NODES, or all but those of --without=NODES. NODES may have brackets:
# n[01-16,20].
launch_chosen() {  # --only=NODES | --without=NODES
  awk -F: -v only="$([ "${1%%=*}" = --only ] && printf 1)" '
    function list(item,    open, shut, parts, n, i, ends, m, k) {
      if (!(open = index(item, "["))) { if (item != "") listed[item] = 1; return }
      shut = index(item, "]")
      n = split(substr(item, open + 1, shut - open - 1), parts, ",")
      for (i = 1; i <= n; ++i) {
        m = split(parts[i], ends, "-")
        for (k = ends[1] + 0; k <= ends[m] + 0; ++k)
          list(substr(item, 1, open - 1) sprintf("%0" length(ends[1]) "d", k) substr(item, shut + 1))
      }
    }
    FNR == NR {
      n = split($0, chars, "")
      for (i = 1; i <= n + 1; ++i) {
        inside = chars[i] == "[" ? 1 : chars[i] == "]" ? 0 : inside
        if (i > n || (chars[i] == "," && !inside)) { list(item); item = "" } else item = item chars[i]
      }
      next
    }
    { short = $1; sub(/[.].*/, "", short); if ((($1 in listed) || (short in listed)) == (only != "")) print }
  ' <(case "${1#*=}" in /*) cat "${1#*=}" ;; *) printf '%s\n' "${1#*=}" ;; esac) -
}

# Starts a launcher on part of its nodes. What it is told last counts; a launcher that cannot be told is started as it is, and the
# run leaves the nodes out by itself (--exclude).
launch_start() {  # [--without=NODES | --only=NODES] LAUNCHER WORD... -- PROGRAM WORD...
  local chosen='' all=() kept=() words=()
  case "$1" in --without=* | --only=*) chosen=$1; shift ;; esac
  while [ "$1" != -- ]; do words+=("$1"); shift; done
  shift
  if [ -n "${chosen#*=}" ]; then mapfile -t all < <(launch_nodes "${words[@]}"); fi
  if [ "${#all[@]}" -gt 0 ]; then mapfile -t kept < <(printf '%s\n' "${all[@]}" | launch_chosen "$chosen"); fi
  if [ "${#kept[@]}" -gt 0 ]; then
    case "${words[0]##*/}" in
      srun) launch_srun_on ;;
      mpirun | mpiexec | orterun) launch_mpirun_on ;;
    esac
  fi
  exec "${words[@]}" "$@"
}

# A word of a command line has at most 128 KiB.
launch_too_long() { [ "${#1}" -gt "${ASSAY_WORD_BYTES:-100000}" ]; }

# Ranks for the nodes that are `kept` of `all`, where the words say how many there are in all.
launch_share() {  # RANKS
  local ranks=$1
  if [[ $ranks =~ ^[0-9]+$ ]]; then
    ranks=$((ranks * ${#kept[@]} / ${#all[@]}))
    if [ "$ranks" -eq 0 ]; then ranks=1; fi
  fi
  printf '%s\n' "$ranks"
}

# Adds to the `words` of srun that it starts on the nodes that are `kept`.
launch_srun_on() {
  local list ranks total file
  ranks=$(launch_option '|--ntasks-per-node|' "${words[@]}")
  total=$(launch_option '|-n|--ntasks|' "${words[@]}")
  kept=("${kept[@]%%:*}")
  list=$(IFS=,; printf '%s' "${kept[*]}")
  if launch_too_long "$list"; then
    file=$(mktemp)
    printf '%s\n' "${kept[@]}" >"$file"
    list=$(scontrol show hostlist "$file")
    rm "$file"
  fi
  words+=(--nodes="${#kept[@]}" --nodelist="$list")
  if [ -n "$ranks" ]; then
    words+=(--ntasks="$((ranks * ${#kept[@]}))")
  elif [ -n "$total" ]; then
    words+=(--ntasks="$(launch_share "$total")")
  fi
}

# The same for mpirun. Of several lists of hosts Open MPI takes all: those of before go.
launch_mpirun_on() {
  local list word last='' told=() file fd
  list=$(IFS=,; printf '%s' "${kept[*]}")
  if launch_too_long "$list"; then
    file=$(mktemp)
    printf '%s\n' "${kept[@]}" | sed 's/:auto$//; s/:/ slots=/' >"$file"
    exec {fd}<"$file"  # inherited by the launcher, which reads the file more than once
    rm "$file"
    told=(--hostfile "/dev/fd/$fd")
  else
    told=(--host "$list")
  fi
  for word in "${words[@]:1}"; do
    case "$launch_lists" in *"|$last|"*) last=''; continue ;; esac
    case "$last" in -n | -np | --n | --np | -c) word=$(launch_share "$word") ;; esac
    last=$word
    case "$launch_lists" in *"|${word%%=*}|"*) ;; *) told+=("$word") ;; esac
  done
  unset OMPI_MCA_orte_default_hostfile
  words=("${words[0]}" "${told[@]}")
}

# The options of `assay run` that start the ranks by the words of `launch`, again and without the nodes that were lost in a launch
# that ended early. Sets `launcher`.
# shellcheck disable=SC2034
launch_options() {
  local word line
  launcher=()
  if [ "${#launch[@]}" -eq 0 ]; then return 0; fi
  line="bash '$(realpath "${BASH_SOURCE[0]}")' start --without={exclude}"
  for word in "${launch[@]}" --; do line+=" '$word'"; done
  launcher=(--launcher "$line")
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -euo pipefail
  [ "${1:-}" = start ] || { printf 'launch.sh: usage: launch.sh start [--without=NODES] LAUNCHER WORD... -- PROGRAM WORD...\n' >&2; exit 4; }
  shift
  launch_start "$@"
fi
