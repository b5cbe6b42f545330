# SPDX-License-Identifier: Apache-2.0
# Sourced by virtual-cluster.sh: faults of virtual hosts, and what undoes them.
# shellcheck shell=bash disable=SC2154  # its variables

# ---- faults ------------------------------------------------------------------------------------------------------

require_nic() {  # HOST NIC
  require_host "$1"
  if ! [[ $2 =~ ^eth[0-3]$ ]] || ! ip -n "assay-$1" link show "$2" >/dev/null 2>&1; then wrong "host '$1' has no NIC '$2'"; fi
}

# Sets `bits` and `burst`: what passes between two ticks of a slow kernel clock (10 ms), and at least eleven full frames. More would
# let whole messages through at the speed of the machine, which no slow NIC does.
read_rate() {  # COMMAND RATE
  [[ $2 =~ ^([1-9][0-9]{0,5})(k|m|g)bit$ ]] || wrong "$1: RATE is like 500mbit or 2gbit, not '$2'"
  case "${BASH_REMATCH[2]}" in k) bits=1000 ;; m) bits=1000000 ;; g) bits=1000000000 ;; esac
  bits=$((bits * BASH_REMATCH[1]))
  burst=$((bits / 800 > 16384 ? bits / 800 : 16384))
}

slow_nic() {  # HOST RATE [NIC]
  local bits burst nic=${3:-eth0}
  read_rate slow-nic "$2"
  require_nic "$1" "$nic"
  tc -n "assay-$1" qdisc replace dev "$nic" root tbf rate "$bits" burst "$burst" latency 50ms
  tc -n "$(switches)" qdisc replace dev "$(port_of "$1" "$nic")" root tbf rate "$bits" burst "$burst" latency 50ms
}

require_uplink() {  # LEAF
  if ! [[ $1 =~ ^leaf[0-9]+$ ]] || ! ip -n "$(switches)" link show "$1-up" >/dev/null 2>&1; then
    wrong "there is no leaf '$1' with an uplink"
  fi
}

slow_uplink() {  # LEAF RATE
  local bits burst end
  read_rate slow-uplink "$2"
  require_uplink "$1"
  for end in "$1-up" "spine1-${1#leaf}"; do
    tc -n "$(switches)" qdisc replace dev "$end" root tbf rate "$bits" burst "$burst" latency 50ms
  done
}

heal_uplink() {  # LEAF
  require_uplink "$1"
  tc -n "$(switches)" qdisc delete dev "$1-up" root 2>/dev/null || true
  tc -n "$(switches)" qdisc delete dev "spine1-${1#leaf}" root 2>/dev/null || true
}

address_of() { ip -n "assay-$1" -4 -o address show dev "$2" | sed 's#.*inet \([0-9.]*\)/.*#\1#'; }  # HOST NIC

# What a wrong routing table does: what the host sends to the network of eth1 leaves by NIC. (The others answer for all their
# addresses on every NIC.)
route_rail() {  # HOST NIC
  require_nic "$1" eth1
  ip -n "assay-$1" route replace "$network.1.0/24" dev "$2" src "$(address_of "$1" eth1)"
}

slow_cpu() {  # HOST PERCENT
  local group period=10000
  in_range "$2" 1 1000 || wrong "slow-cpu: PERCENT is 1 to 1000, not '$2'"
  require_host "$1"
  group=$(cgroup_of cpu "$1")
  [ -n "$group" ] || refused 'no privilege: slow-cpu needs the cpu controller of a cgroup, which this machine does not offer'
  # Short periods keep the slowness even; the kernel allows no slice under 1 ms.
  if (($2 < 10)); then period=100000; fi
  if [ -f "$group/cpu.max" ]; then
    printf '%s %s' "$((period * $2 / 100))" "$period" >"$group/cpu.max"
  else
    printf '%s' -1 >"$group/cpu.cfs_quota_us"
    printf '%s' "$period" >"$group/cpu.cfs_period_us"
    printf '%s' "$((period * $2 / 100))" >"$group/cpu.cfs_quota_us"
  fi
}

memory_file() {  # HOST: where its limit is written; empty without the controller
  local group
  group=$(cgroup_of memory "$1")
  if [ -f "$group/memory.max" ]; then printf '%s/memory.max' "$group"
  elif [ -f "$group/memory.limit_in_bytes" ]; then printf '%s/memory.limit_in_bytes' "$group"; fi
}

little_memory() {  # HOST MIB
  local file
  in_range "$2" 64 9999 || wrong "little-memory: MIB is 64 to 9999, not '$2'"
  require_host "$1"
  file=$(memory_file "$1")
  [ -n "$file" ] || refused 'no privilege: little-memory needs the memory controller of a cgroup, which this machine does not offer'
  printf '%s' "$(($2 << 20))" >"$file"
}

heal() {
  local group nic memory
  require_host "$1"
  for nic in eth0 eth1 eth2 eth3; do
    tc -n "assay-$1" qdisc delete dev "$nic" root 2>/dev/null || true
    tc -n "$(switches)" qdisc delete dev "$(port_of "$1" "$nic")" root 2>/dev/null || true
  done
  if ip -n "assay-$1" link show eth1 >/dev/null 2>&1; then route_rail "$1" eth1; fi
  group=$(cgroup_of cpu "$1")
  if [ -f "$group/cpu.max" ]; then printf max >"$group/cpu.max"; fi
  if [ -f "$group/cpu.cfs_quota_us" ]; then printf '%s' -1 >"$group/cpu.cfs_quota_us"; fi
  free_disk "$1"
  memory=$(memory_file "$1")
  case "$memory" in */memory.max) printf max >"$memory" ;; ?*) printf '%s' -1 >"$memory" ;; esac
}

set_link() { require_host "$1" && ip -n "$(switches)" link set "$1" "$2"; }  # HOST up|down

# The quota of a host as a percentage of one core.
quota_of() {
  local group quota period
  group=$(cgroup_of cpu "$1")
  if [ -f "$group/cpu.max" ]; then
    read -r quota period <"$group/cpu.max"
  elif [ -n "$group" ]; then
    quota=$(cat "$group/cpu.cfs_quota_us") period=$(cat "$group/cpu.cfs_period_us")
  else
    quota=-1
  fi
  case "$quota" in max | -1) printf full ;; *) printf '%s%%' "$((quota * 100 / period))" ;; esac
}
