#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages that assay needs, the one list that quickstart.sh, test.sh and bench_peers.sh share.
#
#   scripts/packages.sh [GROUP...]      print "group package why" (groups: build run test services nightly peers optional)
#
# Sourced, it offers: packages_of GROUP..., missing_packages GROUP..., install_packages GROUP...

assay_packages() {
  cat <<'LIST'
build|g++|the C++20 compiler
build|cmake|configures the build
build|ninja-build|runs the build
build|pkg-config|finds hwloc
build|libopenmpi-dev|MPI headers and libraries
build|libhdf5-dev|the results file
build|libcli11-dev|the command line
build|libfmt-dev|text output
build|libhwloc-dev|sockets, cores, caches, NUMA domains
build|libopenblas-pthread-dev|matrix multiplication, threaded
build|libtomlplusplus-dev|configuration and limits files
build|nlohmann-json3-dev|JSON in the results file
build|libboost-dev|Boost.Math quantiles (headers)
build|libucx-dev|the UCX transport
build|librandom123-dev|counter-based random numbers (headers)
build|libsodium-dev|HMAC-SHA256: how the processes of a run know each other
build|libseccomp-dev|filters the system calls of the readers of untrusted files
build|liburing-dev|storage: many requests at a time
build|ca-certificates|fetches what the report draws with (npm registry, by hash)
run|openmpi-bin|mpirun
test|libgtest-dev|unit tests
test|libgmock-dev|unit tests
test|libboost-context-dev|kernels for GPUs are run on the host
test|python3-h5py|tests read results files as users do
test|python3-h5netcdf|tests read results files as users do
test|python3-netcdf4|tests read results files as users do
test|python3-xarray|tests read results files as users do
test|netcdf-bin|tests open results files with ncdump
test|hdf5-tools|tests open results files with h5dump
test|shellcheck|checks the scripts
test|clang-format|checks the layout of sources
test|iproute2|ip and tc: the virtual cluster's network
test|procps|pkill: a build in the background pauses while tests run again
test|mount|file systems that are full, read-only or broken
test|e2fsprogs|mkfs.ext4: disks that are stopped, cut and damaged
test|btrfs-progs|mkfs.btrfs: a file system on several disks
test|file|CPack looks for the libraries of the Debian package
test|dpkg-dev|dpkg-shlibdeps: the libraries that the Debian package depends on
services|prometheus|promtool checks the metrics
services|munge|authentication of the virtual cluster's Slurm
services|slurmctld|the controller of the virtual cluster's Slurm
services|slurmd|the node daemon of the virtual cluster's Slurm
services|slurm-client|sbatch, srun, scontrol
services|python3-yaml|reads the Kubernetes job
services|mandoc|checks the man pages
services|man-db|formats the man pages
services|nodejs|drives the browser in which reports are opened
services|chromium|the browser
services|systemd|systemd-analyze: the exposure of the units
nightly|mmdebstrap|bare roots of Debian 12, 13 and Ubuntu 24.04
nightly|debian-archive-keyring|the keys of Debian's packages
nightly|libhdf5-openmpi-dev|parallel HDF5: the cases hdf5 of storage
peers|fio|storage of one node
peers|hpcc|STREAM of the HPC Challenge
peers|stressapptest|memory patterns
peers|memtester|memory patterns
peers|stress-ng|memory and matrix stressors
peers|ucx-utils|ucx_perftest: latency and bandwidth
peers|libblis4-pthread|a second BLAS
peers|libdnnl2|oneDNN's matrix multiplication
peers|python3-torch|PyTorch on the CPU
optional|ccache|faster rebuilds
optional|clang-tidy|the checks of .clang-tidy
optional|clang|libFuzzer: scripts/fuzz.sh
LIST
}

# Names of the packages of some groups.
packages_of() {
  local group
  for group in "$@"; do
    assay_packages | awk -F'|' -v g="$group" '$1 == g { print $2 }'
  done
}

# What a package is for.
package_reason() {
  assay_packages | awk -F'|' -v p="$1" '$2 == p { print $3; exit }'
}

package_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The packages of some groups that this machine lacks.
missing_packages() {
  local package
  for package in $(packages_of "$@"); do
    package_installed "$package" || printf '%s\n' "$package"
  done
}

# Says what it installs and why, then installs it. Needs root or sudo only when something is missing.
install_packages() {
  local missing=() as_root=() package attempt
  if ! command -v dpkg-query >/dev/null; then
    printf 'This is not a Debian system. These must be present under their names here: %s\n' \
      "$(packages_of "$@" | tr '\n' ' ')" >&2
    return 0
  fi
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    printf 'Packages: all present (%s)\n' "$*"
    return 0
  fi
  printf 'Packages to install:\n'
  for package in "${missing[@]}"; do
    printf '  %-26s %s\n' "$package" "$(package_reason "$package")"
  done
  if [ "${ASSAY_PRINT_ONLY:-0}" = 1 ]; then
    return 0
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      printf 'Not root, and there is no sudo: install the packages above and run this again.\n' >&2
      return 1
    }
    as_root=(sudo)
  fi
  # Tried again after an error of the mirror.
  for attempt in 1 2; do
    if "${as_root[@]}" apt-get -q update </dev/null; then break; fi
    [ "$attempt" = 2 ] && printf 'apt-get update failed twice; trying with the lists at hand.\n' >&2
    sleep 3
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
    "${missing[@]}" </dev/null || {
    printf 'apt-get install failed for: %s\n' "${missing[*]}" >&2
    return 1
  }
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  set -eu
  if [[ ${1:-} =~ ^(-h|--help)$ ]]; then
    sed -n 's/^#   //p' "$0"
    exit 0
  fi
  [ "$#" -gt 0 ] || set -- build run test services nightly peers optional
  for group in "$@"; do
    assay_packages | awk -F'|' -v g="$group" '$1 == g { printf "%-9s %-26s %s\n", $1, $2, $3; n++ }
      END { if (!n) { print "unknown group: " g > "/dev/stderr"; exit 4 } }'
  done
fi
