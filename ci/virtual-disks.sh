# SPDX-License-Identifier: Apache-2.0
# Sourced by virtual-cluster.sh: disks of virtual hosts.
# shellcheck shell=bash disable=SC2154  # its variables

# On memory, so that a slow disk of this machine does not slow them all; `down`, or the end of this mount namespace, frees the devices.
make_disks() {  # HOST...
  local host
  mkdir "$state/disks" "$state/disk"
  mount -t tmpfs -o size=50% disks "$state/disks"
  for host in "$@"; do
    truncate -s 9G "$state/disks/$host.image"
    mkfs.ext4 -q -O ^has_journal -E nodiscard "$state/disks/$host.image"
    mkdir "$state/disks/$host"
    mount -o loop "$state/disks/$host.image" "$state/disks/$host" 2>/dev/null || refused 'no privilege: a file cannot be mounted through a loop device here'
    rmdir "$state/disks/$host/lost+found"
  done
}

remove_disks() {
  local path
  for path in "$state"/disks/*/; do
    if mountpoint -q "$path"; then umount -l "$path"; fi
  done
  if mountpoint -q "$state/disks"; then umount -l "$state/disks"; fi
}

# A limit of 1 byte a second holds a request for hours, as a disk that has stopped does.
slow_disk() {  # HOST MB [OWNER]
  local group device owner=${3:-$1}
  in_range "$2" 0 9999 || wrong "slow-disk: MB is 0 to 9999, not '$2'"
  require_host "$1"
  [ -d "$state/disks/$owner" ] || wrong "slow-disk: the hosts of '$name' have no disks (up N --disks)"
  group=$(cgroup_of blkio "$1")
  [ -n "$group" ] || refused 'no privilege: slow-disk needs the blkio controller of cgroups of version 1, which this machine does not offer'
  device=$(mountpoint -d "$state/disks/$owner")
  limit_disk "$group" "$device" "$((${2} > 0 ? ${2} * 1000000 : 1))"
}

limit_disk() {  # GROUP DEVICE BYTES-A-SECOND (0: no limit)
  printf '%s %s' "$2" "$3" >"$1/blkio.throttle.read_bps_device"
  printf '%s %s' "$2" "$3" >"$1/blkio.throttle.write_bps_device"
}

# Without limits: a process that waits for its disk cannot end.
free_disk() {  # HOST
  local group path
  group=$(cgroup_of blkio "$1")
  for path in "$state"/disks/*/; do
    if [ -n "$group" ] && mountpoint -q "$path"; then limit_disk "$group" "$(mountpoint -d "$path")" 0; fi
  done
}
free_disks() {
  local host
  [ -f "$state/nodes" ] || return 0
  for host in $(all_hosts); do free_disk "$host" || true; done
}
