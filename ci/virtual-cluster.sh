#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A cluster of virtual hosts on one Linux machine. Each host is a network namespace behind a bridge, with a host name,
# cores and a cgroup of its own, so that Open MPI starts its daemons remotely and really crosses a network by TCP.
# The bridges live in a namespace too: nothing appears in the machine's own network, and clusters do not meet.
set -euo pipefail

self=$(realpath "${BASH_SOURCE[0]}")
name=vnode
readonly network=10.77
readonly no_privilege=77

usage() {
  cat <<'TEXT'
Usage: ci/virtual-cluster.sh [--name NAME] COMMAND

  up N [--leaves L] [--rails R] [--disks]
                          start N hosts (1-64) NAME01..; with L leaf switches under one spine instead of one switch; with
                          R NICs each (1-4), eth0, eth1, ...: those after the first on a switch rail2, rail3, ... of their own;
                          with a disk each (9 GiB, ext4 on a loop device on memory), on all hosts at
                          /run/assay-virtual-cluster/NAME/disk
  status                  hosts, addresses, switches, links, limits, number of processes; then the topology file
  exec HOST CMD...        run a command on a host; its exit code is kept
  mpirun [--slots S] [--hosts HOST,HOST] [--without=HOST,HOST] ARGS...
                          mpirun from the first host over all hosts (or those named, or not), S slots each (default 1)
  slurm                   start a real Slurm: slurmctld on the first host, a slurmd on each; reach it by
                          `exec HOST env SLURM_CONF=/run/assay-virtual-cluster/NAME/slurm/slurm.conf sbatch ...`; down ends it
  slow-nic HOST RATE [NIC]
                          limit a NIC of the host (eth0) both ways: 500mbit, 2gbit
  slow-cpu HOST PERCENT   the host's processes together get PERCENT % of one core (1-1000)
  little-memory HOST MIB  the host's processes together get MIB MiB of memory (64-9999)
  slow-uplink LEAF RATE   limit what a leaf switch (leaf1, leaf2, ...) and its spine send each other
  slow-disk HOST MB [OF]  the host's processes together read, and write, MB megabytes a second of its disk, or of that of
                          the host OF; 0: next to nothing
  wrong-route HOST        what the host sends to the network of eth1 leaves by eth0
  heal HOST | heal LEAF   undo slow-nic, slow-cpu, little-memory, slow-disk and wrong-route | slow-uplink
  cut HOST | mend HOST    take the link of the host's eth0 down at its switch | bring it up again
  down                    end all processes on the hosts and remove everything, also after a crash

  --name NAME             letters a-z, at most 12 (default vnode); clusters of different names run side by side

Needs root (network and mount namespaces). Exit code 4: wrong use; 77: this machine does not allow it, with the reason.
TEXT
}

# shellcheck source=ci/virtual-faults.sh
. "${self%/*}/virtual-faults.sh"
# shellcheck source=ci/virtual-disks.sh
. "${self%/*}/virtual-disks.sh"

wrong() { printf 'virtual-cluster: %s\n' "$*" >&2; exit 4; }
refused() { printf 'virtual-cluster: %s\n' "$*" >&2; exit "$no_privilege"; }

# ---- what the machine allows -------------------------------------------------------------------------------------

require_privileges() {
  local tool
  [ "$(uname -s)" = Linux ] || refused 'virtual hosts need Linux'
  for tool in ip:iproute2 tc:iproute2 nsenter:util-linux unshare:util-linux hostname:hostname; do
    command -v "${tool%:*}" >/dev/null || refused "no ${tool%:*} on this machine (package ${tool#*:})"
  done
  [ "$(id -u)" -eq 0 ] || refused 'no privilege: network namespaces need root'
  unshare --net --uts --mount true 2>/dev/null ||
    refused 'no privilege: this root may not make network and mount namespaces (CAP_SYS_ADMIN, CAP_NET_ADMIN)'
}

# Where a controller is mounted: version 1 by its name, version 2 by the empty name.
cgroup_mount() {  # [CONTROLLER]
  awk -v c="${1:-}" '(c == "" && / - cgroup2 /) || (c != "" && / - cgroup / && "," $NF "," ~ "," c ",") {
    print $5; exit }' /proc/self/mountinfo
}

# Makes the cluster's groups and prints "CONTROLLER VERSION DIRECTORY" for each controller that can be had.
make_cgroups() {
  local controller mount group
  for controller in cpu cpuset memory blkio; do
    mount=$(cgroup_mount "$controller") group=$mount/assay-$name
    if [ -n "$mount" ]; then
      if mkdir -p "$group" 2>/dev/null; then printf '%s 1 %s\n' "$controller" "$group"; fi
      continue
    fi
    mount=$(cgroup_mount) group=$mount/assay-$name
    if [ -n "$mount" ] && { mkdir -p "$group" && printf '+%s' "$controller" >"$mount/cgroup.subtree_control" &&
      printf '+%s' "$controller" >"$group/cgroup.subtree_control"; } 2>/dev/null; then
      printf '%s 2 %s\n' "$controller" "$group"
    fi
  done
}

cgroup_of() {  # CONTROLLER HOST
  awk -v c="$1" -v h="$2" '$1 == c { print $3 "/" h }' "$state/cgroups"
}

# ---- names -------------------------------------------------------------------------------------------------------

switches() { printf 'assay-%s-switch' "$name"; }
namespaces() {
  local path
  for path in /run/netns/assay-"$name"[0-9][0-9] "/run/netns/$(switches)"; do
    if [ -e "$path" ]; then printf '%s\n' "${path##*/}"; fi
  done
}
all_hosts() { cut -d' ' -f1 "$state/nodes"; }

require_cluster() {
  require_privileges
  [ -f "$state/nodes" ] || wrong "no cluster '$name' is up (start one: up N)"
}

require_host() {
  require_cluster
  all_hosts | grep -qx -- "$1" ||
    wrong "no host '$1' in cluster '$name' ($(all_hosts | head -n 1)..$(all_hosts | tail -n 1))"
}

in_range() { [[ $1 =~ ^(0|[1-9][0-9]{0,3})$ ]] && (($1 >= $2 && $1 <= $3)); }  # TEXT LOW HIGH

take() {  # COUNT-WANTED USAGE ARGS...
  local wanted=$1 line=$2
  shift 2
  [ "$#" -eq "$wanted" ] || wrong "usage: $line"
}

# ---- up and down -------------------------------------------------------------------------------------------------

# CPUs this process may use, one per line.
allowed_cpus() {
  sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '\n' |
    awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); ++i) print i }'
}

# The cores are dealt out in equal blocks; with more hosts than cores, hosts share a core.
cpus_of_host() {  # INDEX COUNT
  local cpus each i list=()
  mapfile -t cpus < <(allowed_cpus)
  each=$((${#cpus[@]} / $2))
  [ "$each" -ge 1 ] || each=1
  for ((i = 0; i < each; ++i)); do list+=("${cpus[(($1 - 1) * each + i) % ${#cpus[@]}]}"); done
  (IFS=,; printf '%s' "${list[*]}")
}

make_bridge() { ip -n "$(switches)" link add "$1" type bridge && ip -n "$(switches)" link set "$1" up; }

# The end of a NIC's cable at its switch: the host's name, with a letter for all but the first NIC.
port_of() {  # HOST NIC
  local letters=abcd
  case "$2" in eth0) printf '%s' "$1" ;; *) printf '%s%s' "$1" "${letters:${2#eth}:1}" ;; esac
}

make_nic() {  # HOST INDEX NIC SWITCH
  local port rail=${3#eth}
  port=$(port_of "$1" "$3")
  # A fixed address for the NIC, so that a host is the same one when the cluster is started again.
  ip link add name "$3" netns "assay-$1" address "$(printf '02:00:0a:4d:%02x:%02x' "$rail" "$2")" type veth \
    peer name "$port" netns "$(switches)"
  ip -n "$(switches)" link set "$port" master "$4"
  ip -n "$(switches)" link set "$port" up
  ip -n "assay-$1" address add "$network.$rail.$2/24" dev "$3"
  ip -n "assay-$1" link set "$3" up
}

make_host() {  # HOST INDEX SWITCH COUNT
  local host=$1 controller version path file
  ip netns add "assay-$host"
  ip -n "assay-$host" link set lo up
  make_nic "$host" "$2" eth0 "$3"
  while read -r controller version path; do
    mkdir -p "$path/$host"
    case "$controller$version" in
      # The hosts together are one group, which else would weigh no more than one program beside them.
      cpu1) printf '%s' "$((1024 * $4))" >"$path/cpu.shares"; continue ;;
      memory* | blkio*) continue ;;
      cpu2) printf '%s' "$((100 * $4))" >"$path/cpu.weight"; continue ;;
      # Version 1 inherits nothing: an empty set takes no process.
      cpuset1)
        for file in cpus mems; do cat "${path%/*}/cpuset.effective_$file" >"$path/cpuset.$file"; done
        cat "$path/cpuset.mems" >"$path/$host/cpuset.mems" ;;
    esac
    cpus_of_host "$2" "$4" >"$path/$host/cpuset.cpus"
  done <"$state/cgroups"
}

# What mpirun calls instead of ssh, as `PROGRAM HOST WORD...`.
write_agent() {
  printf '#!/usr/bin/env bash\nexec bash %q --name %q rsh "$@"\n' "$self" "$name" >"$state/rsh"
  chmod 700 "$state/rsh"
}

build() {  # COUNT LEAVES RAILS DISKS
  local count=$1 leaves=$2 rails=$3 i leaf rail host made=()
  ip netns add "$(switches)"
  if [ "$leaves" -gt 0 ]; then make_bridge spine1; fi
  for ((i = 1; i <= (leaves > 0 ? leaves : 1); ++i)); do
    make_bridge "leaf$i"
    [ "$leaves" -gt 0 ] || continue
    ip -n "$(switches)" link add name "leaf$i-up" master "leaf$i" type veth peer name "spine1-$i"
    ip -n "$(switches)" link set "spine1-$i" master spine1
    ip -n "$(switches)" link set "leaf$i-up" up
    ip -n "$(switches)" link set "spine1-$i" up
  done
  for ((rail = 2; rail <= rails; ++rail)); do make_bridge "rail$rail"; done
  make_cgroups >"$state/cgroups"
  printf '127.0.0.1 localhost\n' >"$state/hosts"
  printf 'node,nic,switch,port,rack\n' >"$state/topology.csv"
  local -A port=()
  for ((i = 1; i <= count; ++i)); do
    printf -v host '%s%02d' "$name" "$i"
    made+=("$host")
    leaf=$(((i - 1) * (leaves > 0 ? leaves : 1) / count + 1))
    make_host "$host" "$i" "leaf$leaf" "$count"
    port[$leaf]=$((${port[$leaf]:-0} + 1))
    printf '%s %s\n' "$network.0.$i" "$host" >>"$state/hosts"
    printf '%s,eth0,leaf%s,%s,rack%s\n' "$host" "$leaf" "${port[$leaf]}" "$leaf" >>"$state/topology.csv"
    for ((rail = 2; rail <= rails; ++rail)); do
      make_nic "$host" "$i" "eth$((rail - 1))" "rail$rail"
      printf '%s,eth%s,rail%s,%s,rack%s\n' "$host" "$((rail - 1))" "$rail" "$i" "$leaf" >>"$state/topology.csv"
    done
    printf '%s %s leaf%s\n' "$host" "$network.0.$i" "$leaf" >>"$state/nodes.new"
  done
  if [ "$4" = yes ]; then make_disks "${made[@]}"; fi
  mkdir "$state/cgroup-view"
  write_agent
  mv "$state/nodes.new" "$state/nodes"
}

up() {
  local count='' leaves=0 rails=1 disks=no log code
  while [ "$#" -gt 0 ]; do
    case "$1" in
      --leaves) [ "$#" -ge 2 ] || wrong '--leaves needs a number'; leaves=$2; shift ;;
      --rails) [ "$#" -ge 2 ] || wrong '--rails needs a number'; rails=$2; shift ;;
      --disks) disks=yes ;;
      -*) wrong "up: unknown option $1" ;;
      *) [ -z "$count" ] || wrong "up: unexpected '$1'"; count=$1 ;;
    esac
    shift
  done
  in_range "$count" 1 64 || wrong "up: the number of hosts must be 1 to 64, not '$count'"
  in_range "$leaves" 0 "$count" || wrong "up: --leaves must be at most the number of hosts, not '$leaves'"
  in_range "$rails" 1 4 || wrong "up: --rails must be 1 to 4, not '$rails'"
  require_privileges
  mkdir -p "${state%/*}"
  mkdir -m 700 "$state" 2>/dev/null || wrong "cluster '$name' exists already (remove it: down)"
  trap 'tear_down' EXIT
  trap 'exit 130' INT TERM
  # Where a kernel or container lacks something, the first complaint of the tools is the reason.
  log=$state/log
  set +e
  (set -e; build "$count" "$leaves" "$rails" "$disks"; enter "$(all_hosts | head -n 1)" true) 2>"$log"
  code=$?
  set -e
  [ "$code" -eq 0 ] || refused "no privilege: virtual hosts do not work here: $(grep -m 1 . "$log" || printf 'no reason given')"
  trap - EXIT INT TERM
  printf "cluster '%s': %s hosts, topology in %s\n" "$name" "$count" "$state/topology.csv"
}

kill_namespace() {
  local try pids
  for ((try = 0; try < 50; ++try)); do
    mapfile -t pids < <(ip netns pids "$1")
    [ "${#pids[@]}" -gt 0 ] || return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.1
  done
  printf 'virtual-cluster: processes of %s do not end: %s\n' "${1#assay-}" "${pids[*]}" >&2
  return 1
}

remove_cgroups() {
  local mount group
  for mount in "$(cgroup_mount cpu)" "$(cgroup_mount cpuset)" "$(cgroup_mount memory)" "$(cgroup_mount blkio)" "$(cgroup_mount)"; do
    for group in "$mount/assay-$name"/*/ "$mount/assay-$name"; do
      if [ -n "$mount" ] && [ -d "$group" ]; then rmdir "$group" || true; fi
    done
  done
}

# Goes by names, not by what `up` noted, so that it also mends a crash in the middle of it. Safe to repeat.
tear_down() {
  local space code=0
  trap - EXIT
  free_disks
  for space in $(namespaces); do kill_namespace "$space" || code=1; done
  for space in $(namespaces); do
    # What a killed MPI process leaves, under its host's name.
    rm -rf -- /dev/shm/vader_segment."${space#assay-}".* "${TMPDIR:-/tmp}/ompi.${space#assay-}".*
    ip netns delete "$space" || code=1
  done
  remove_cgroups
  remove_disks
  rm -rf --one-file-system -- "$state"
  rmdir "${state%/*}" 2>/dev/null || true
  return "$code"
}

# ---- on a host ---------------------------------------------------------------------------------------------------

# Replaces this process by a command on a host. Works from one host to another, as mpirun needs it.
enter() {  # HOST COMMAND...
  local host=$1 path
  shift
  while read -r _ _ path; do printf '%s' "$BASHPID" >"$path/$host/cgroup.procs"; done <"$state/cgroups"
  exec nsenter --net="/run/netns/assay-$host" unshare --uts --mount --propagation slave \
    bash "$self" --name "$name" inside "$host" "$@"
}

# In the host's namespaces: /sys shows the NICs of the namespace it was mounted in, so it gets one of its own.
inside() {  # HOST COMMAND...
  local host=$1
  shift
  mount --rbind /sys/fs/cgroup "$state/cgroup-view"
  mount -t sysfs sysfs /sys
  mount --rbind "$state/cgroup-view" /sys/fs/cgroup
  umount -l "$state/cgroup-view"
  mount --bind "$state/hosts" /etc/hosts
  if [ -d "$state/disk" ]; then mount --bind "$state/disks/$host" "$state/disk"; fi
  hostname "$host"
  HOSTNAME=$host exec -- "$@"
}

launch() {  # [--slots S] [--hosts LIST] ARGS...
  local slots=1 hosts='' without='' slot_list='' from='' host ranks=0 more=()
  while [ "$#" -gt 0 ]; do
    case "$1" in
      --slots) in_range "${2:-}" 1 9999 || wrong "mpirun: --slots needs a number, not '${2:-}'"; slots=$2 ;;
      --without=*) without=,${1#*=},; shift; continue ;;
      --hosts) [ -n "${2:-}" ] || wrong 'mpirun: --hosts needs HOST,HOST'; hosts=${2//,/ } ;;
      *) break ;;
    esac
    shift 2
  done
  [ "$#" -gt 0 ] || wrong 'usage: mpirun [--slots S] [--hosts HOST,HOST] ARGS...'
  require_cluster
  command -v mpirun >/dev/null || refused 'no mpirun on this machine (package openmpi-bin)'
  [ -n "$hosts" ] || hosts=$(all_hosts)
  for host in $hosts; do
    require_host "$host"
    case "$without" in *,$host,*) continue ;; esac
    slot_list+=,$host:$slots ranks=$((ranks + slots))
  done
  for host in $(all_hosts); do
    case "$without" in *,$host,*) ;; *) from=$host; break ;; esac
  done
  # Ranks that wait by spinning would keep those of other hosts from a core they share.
  if ((ranks > $(nproc))); then more=(--mca mpi_yield_when_idle 1); fi
  # The launcher runs on a host: only there are the hosts' addresses reachable. Namespaces need root, so it is root.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  [ "$ranks" -gt 0 ] || wrong 'mpirun: no host is left'
  enter "$from" mpirun --mca plm_rsh_agent "$state/rsh" --mca btl self,vader,tcp \
    --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 "${more[@]}" -H "${slot_list#,}" "$@"
}

status() {
  local host address switch link rate
  require_cluster
  printf '%-15s %-12s %-8s %-5s %-9s %-5s %s\n' host address switch link nic cpu processes
  while read -r host address switch; do
    link=$(ip -n "$(switches)" link show "$host" | grep -q '[<,]UP[,>]' && printf up || printf cut)
    rate=$(tc -n "assay-$host" qdisc show dev eth0 | sed -n 's/.* rate \([^ ]*\).*/\1/p')
    printf '%-15s %-12s %-8s %-5s %-9s %-5s %s\n' "$host" "$address" "$switch" "$link" "${rate:-full}" \
      "$(quota_of "$host")" "$(ip netns pids "assay-$host" | wc -l)"
  done <"$state/nodes"
  printf 'topology: %s\n' "$state/topology.csv"
}

# ---- command line ------------------------------------------------------------------------------------------------

if [ "${1:-}" = --name ]; then
  [[ ${2:-} =~ ^[a-z]{1,12}$ ]] || wrong "--name takes 1 to 12 letters a-z, not '${2:-}'"
  name=$2
  shift 2
fi
# Namespaces need root, so the state lies where root's programs keep theirs, never in a shared directory.
readonly name state=/run/assay-virtual-cluster/$name
command=${1:-}
[ "$#" -eq 0 ] || shift
case "$command" in
  up) up "$@" ;;
  status) take 0 status "$@"; status ;;
  exec) [ "$#" -ge 2 ] || wrong 'usage: exec HOST CMD...'; require_host "$1"; enter "$@" ;;
  mpirun) launch "$@" ;;
  slurm) take 0 slurm "$@"; require_cluster; bash "${self%/*}/slurm.sh" up-on "$state/slurm" "$state/nodes" 17000 bash "$self" --name "$name" exec ;;
  slow-nic) if [ "$#" -ne 3 ]; then take 2 'slow-nic HOST RATE [NIC]' "$@"; fi; slow_nic "$@" ;;
  slow-cpu) take 2 'slow-cpu HOST PERCENT' "$@"; slow_cpu "$@" ;;
  slow-disk) [ $# = 3 ] || take 2 'slow-disk HOST MB [OF]' "$@"; slow_disk "$@" ;;
  little-memory) take 2 'little-memory HOST MIB' "$@"; little_memory "$@" ;;
  slow-uplink) take 2 'slow-uplink LEAF RATE' "$@"; slow_uplink "$@" ;;
  wrong-route) take 1 'wrong-route HOST' "$@"; route_rail "$1" eth0 ;;
  heal)
    take 1 'heal HOST | heal LEAF' "$@"
    if [[ $1 =~ ^leaf[0-9]+$ ]]; then heal_uplink "$1"; else heal "$1"; fi
    ;;
  cut) take 1 'cut HOST' "$@"; set_link "$1" down ;;
  mend) take 1 'mend HOST' "$@"; set_link "$1" up ;;
  down) take 0 down "$@"; require_privileges; tear_down ;;
  --help | -h | help) usage ;;
  rsh) [ "$#" -ge 2 ] || wrong 'usage: rsh HOST WORD...'; host=$1; shift; enter "$host" sh -c "$*" ;;
  inside) inside "$@" ;;
  *) wrong "unknown command '$command' (try --help)" ;;
esac
