#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real Slurm on one machine for tests: munged, slurmctld, and several slurmd that are nodes of their own by name and port.
# Everything lies in one directory; no setting and no Slurm of the machine is touched.
set -euo pipefail
umask 022

readonly no_privilege=77
enter=()

usage() {
  cat <<'TEXT'
Usage: ci/slurm.sh up DIR NODES PORT | up-on DIR HOSTS PORT ENTER... | env DIR | stop DIR NODE | start DIR NODE | down DIR

  up      start NODES (1-16) nodes node0.. with the ports from PORT on; DIR must not exist; slurm.extra beside it (DIR.extra)
          is added to slurm.conf; each node has two files as its GPUs (GRES gpu:2)
  up-on   the same on hosts that share this machine's files: HOSTS has a line `NAME ADDRESS` for each, and `ENTER... NAME CMD...`
          runs a command there; slurmctld and munged are on the first
  env     print what a shell must export to reach it
  stop    freeze the slurmd of a node, so that it does not answer; start lets it go on
  down    end all daemons and the jobs they run, and remove DIR

Needs root and the packages munge, slurmctld, slurmd, slurm-client. Exit code 4: wrong use; 77: not possible here.
TEXT
}

wrong() { printf 'slurm.sh: %s\n' "$*" >&2; exit 4; }
refused() { printf 'slurm.sh: %s\n' "$*" >&2; exit "$no_privilege"; }

require() {
  local tool
  [ "$(id -u)" -eq 0 ] || refused 'no privilege: slurmctld and slurmd need root'
  for tool in munged:munge slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${tool%:*}" >/dev/null || refused "no ${tool%:*} on this machine (package ${tool#*:})"
  done
}

# The nodes: NAME HOST ADDRESS PORT, one a line.
nodes_here() {  # NODES PORT
  local i host
  host=$(hostname -s)
  for ((i = 1; i <= $1; ++i)); do printf 'node%s %s 127.0.0.1 %s\n' "$((i - 1))" "$host" "$(($2 + i))"; done
}

configuration() {  # DIR PORT, nodes on the input
  local nodes
  mapfile -t nodes
  cat <<TEXT
ClusterName=assaytest
SlurmctldHost=$(cut -d' ' -f2 <<<"${nodes[0]}")($(cut -d' ' -f3 <<<"${nodes[0]}"))
SlurmctldPort=$2
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool.%n
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.%n.pid
SlurmctldLogFile=$1/slurmctld.log
SlurmdLogFile=$1/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
ReturnToService=1
SlurmdTimeout=60
SlurmctldTimeout=10
MessageTimeout=10
KillWait=5
InactiveLimit=0
BatchStartTimeout=10
GresTypes=gpu
TEXT
  if [ -f "$1.extra" ]; then cat "$1.extra"; fi
  printf '%s\n' "${nodes[@]}" | sed 's/^\(.*\) \(.*\) \(.*\) \(.*\)$/NodeName=\1 NodeHostname=\2 NodeAddr=\3 Port=\4 CPUs=2 Gres=gpu:2 State=UNKNOWN/'
  printf 'PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n'
}

run_env() { printf 'export SLURM_CONF=%s/slurm.conf\n' "$1"; }

# A command where a node is: `enter` is empty when that is this machine.
on() {  # HOST CMD...
  if [ "${#enter[@]}" -gt 0 ]; then "${enter[@]}" "$@"; else "${@:2}"; fi
}

# Starts everything for the nodes on the input.
up() {  # DIR PORT
  local nodes node try first
  mapfile -t nodes
  first=$(cut -d' ' -f2 <<<"${nodes[0]}")
  require
  mkdir -m 755 "$1" || wrong "up: cannot make $1"
  # Until all nodes are there, whatever ends this removes what there is.
  directory=$1
  trap 'down "$directory"' EXIT
  mkdir "$1/state"
  head -c 1024 /dev/urandom >"$1/munge.key"
  chmod 400 "$1/munge.key"
  printf '%s\n' "${nodes[@]}" | configuration "$@" >"$1/slurm.conf"
  printf 'Name=gpu File=/dev/%s\n' null zero >"$1/gres.conf"
  export SLURM_CONF=$1/slurm.conf PATH=$PATH:/usr/sbin:/sbin
  on "$first" munged --force --key-file="$1/munge.key" --socket="$1/munge.socket" --pid-file="$1/munged.pid" --log-file="$1/munged.log" \
    --seed-file="$1/munge.seed" </dev/null >"$1/munged.out" 2>&1 || refused "munged does not start: $(head -n 1 "$1/munged.out")"
  on "$first" slurmctld -i </dev/null >"$1/slurmctld.out" 2>&1 || refused "slurmctld does not start: $(head -n 1 "$1/slurmctld.out")"
  for node in "${nodes[@]}"; do
    read -r node host _ <<<"$node"
    mkdir "$1/spool.$node"
    on "$host" slurmd -N "$node" </dev/null >"$1/slurmd.$node.out" 2>&1 || refused "slurmd does not start: $(head -n 1 "$1/slurmd.$node.out")"
  done
  for ((try = 0; try < 150; ++try)); do
    if [ "$(on "$first" sinfo -h -N -o %t 2>/dev/null | grep -c '^idle$')" -eq "${#nodes[@]}" ]; then
      trap - EXIT
      return 0
    fi
    sleep 0.2
  done
  refused "the nodes of Slurm do not come up: $(on "$first" sinfo -h -N -o '%N %t' 2>&1 | tr '\n' ' ')"
}

up_here() {  # DIR NODES PORT
  [[ $2 =~ ^([1-9]|1[0-6])$ ]] || wrong "up: NODES is 1 to 16, not '$2'"
  [[ $3 =~ ^[1-6][0-9]{3,4}$ ]] || wrong "up: PORT is 1000 to 69999, not '$3'"
  up "$1" "$3" < <(nodes_here "$2" "$3")
}

up_on() {  # DIR HOSTS PORT ENTER...
  enter=("${@:4}")
  [ -s "$2" ] || wrong "up-on: no hosts in '$2'"
  up "$1" "$3" < <(awk -v p="$3" '{ print $1, $1, $2, p + 1 }' "$2")
}

pid_of() { cat "$1" 2>/dev/null || true; }

down() {  # DIR
  local file pid pids=()
  [ -f "$1/slurm.conf" ] || return 0
  # Steps outlive their slurmd: they are found by the spool they work in.
  mapfile -t pids < <(pgrep -f "^slurmstepd: |slurmstepd" || true)
  for pid in "${pids[@]}"; do
    if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "SLURM_CONF=$1/slurm.conf"; then
      pkill -KILL -P "$pid" 2>/dev/null || true
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done
  for file in "$1"/slurmd.*.pid "$1/slurmctld.pid" "$1/munged.pid"; do
    pid=$(pid_of "$file")
    if [ -n "$pid" ]; then kill -CONT "$pid" 2>/dev/null || true; kill -KILL "$pid" 2>/dev/null || true; fi
  done
  rm -rf --one-file-system -- "$1"
}

command=${1:-}
[ "$#" -eq 0 ] || shift
case "$command:$#" in
  up:3) up_here "$@" ;;
  up-on:*) [ "$#" -ge 4 ] || wrong 'usage: up-on DIR HOSTS PORT ENTER...'; up_on "$@" ;;
  env:1) run_env "$1" ;;
  stop:2) kill -STOP "$(pid_of "$1/slurmd.$2.pid")" ;;
  start:2) kill -CONT "$(pid_of "$1/slurmd.$2.pid")" ;;
  down:1) down "$1" ;;
  --help:* | -h:*) usage ;;
  *) wrong "unknown or incomplete command '$command' (try --help)" ;;
esac
