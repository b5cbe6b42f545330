#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first hour of a new user: a bare root of a distribution, in which the README's two commands run as printed there. Exit code 77
# where this machine cannot make such a root or lacks its packages; the reason is on the last line.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: ci/fresh_root.sh [SUITE] [--quick] [--ci] [--mpich] [--cuda] [--keep]

SUITE: bookworm (Debian 12, the default), trixie (Debian 13) or noble (Ubuntu 24.04). In a new root with nothing but apt, mount and
certificates: scripts/quickstart.sh, which must end with a verdict, then scripts/test.sh --strict.

  --quick  only quickstart.sh
  --ci     instead: .ci/run, which runs both
  --mpich  instead: build with MPICH (libmpich-dev) and run the MPI tests
  --cuda   instead: build with the CUDA Toolkit 12.4 of Debian 13 (non-free) and look that the program has it
  --keep   leave the root where it is, and say where
TEXT
}

suite=bookworm quick=0 ci=0 mpich=0 cuda=0 keep=0
for word in "$@"; do
  case "$word" in
    bookworm | trixie | noble) suite=$word ;;
    --quick) quick=1 ;;
    --ci) ci=1 ;;
    --mpich) mpich=1 ;;
    --cuda) cuda=1 suite=trixie ;;
    --keep) keep=1 ;;
    --help | -h) usage; exit 0 ;;
    *) printf 'fresh_root.sh: unknown word %s (try --help)\n' "$word" >&2; exit 4 ;;
  esac
done

skip() { printf 'SKIPPED %s\n' "$*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip 'no privilege: only root can make a root directory of its own'
unshare --mount --pid --fork true 2>/dev/null || skip 'no privilege: no mount namespace can be made here'
command -v mmdebstrap >/dev/null || skip 'no mmdebstrap on this machine (package mmdebstrap)'

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/var/tmp}/assay-root.XXXXXX")
if [ "$keep" = 1 ]; then
  trap 'printf "kept: %s\n" "$work"' EXIT
else
  trap 'rm -rf --one-file-system "$work"' EXIT
fi
chmod 755 "$work"
root=$work/root

debian=http://deb.debian.org/debian debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg
bootstrap() {  # DIRECTORY SUITE MIRROR KEYRING OPTION...
  mmdebstrap --quiet --keyring="$4" "${@:5}" "$2" "$1" "$3" >"$work/bootstrap.log" 2>&1 ||
    skip "the packages of $2 cannot be had: $(tail -n 1 "$work/bootstrap.log")"
}

mirror=$debian components=main keyring=$debian_keys
[ -f "$debian_keys" ] || skip "no keys of Debian on this machine ($debian_keys)"
started=$SECONDS
if [ "$suite" = noble ]; then
  mirror=http://archive.ubuntu.com/ubuntu components=main,universe keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
  if [ ! -f "$keyring" ]; then  # Debian 12 has no package of them, Debian 13 has
    bootstrap "$work/keys" trixie "$debian" "$debian_keys" --variant=extract --include=ubuntu-keyring
    keyring=$work/keys$keyring
  fi
fi
if [ "$cuda" = 1 ]; then components=main,contrib,non-free; fi
bootstrap "$root" "$suite" "$mirror" "$keyring" --variant=apt --include=ca-certificates,mount --components="$components"
printf '%s: a bare root in %s s\n' "$suite" "$((SECONDS - started))"

# What is in the checkout, and nothing that was built.
mkdir "$root/assay"
if git -C "$source" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  git -C "$source" ls-files -z --cached --others --exclude-standard | tar -C "$source" --null --ignore-failed-read -T - -cf - | tar -C "$root/assay" -xf -
else
  tar -C "$source" --exclude=./build -cf - . | tar -C "$root/assay" -xf -
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"

# A command in the root, with what programs expect there and an end to all of its processes.
inside() {  # COMMAND...
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -c '
    set -e
    root=$1
    shift
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    cd "$root"
    pivot_root . . # no chroot: in one no further mount namespace can be made
    umount --lazy .
    exec /usr/bin/env -i HOME=/ PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
  ' - "$root" "$@" </dev/null
}

timed() {  # WHAT COMMAND...
  local what=$1 begun=$SECONDS code=0
  shift
  inside "$@" || code=$?
  printf '%s: %s ended with %s after %s s\n' "$suite" "$what" "$code" "$((SECONDS - begun))"
  return "$code"
}

if [ "$mpich" = 1 ]; then
  # shellcheck disable=SC2016
  timed 'the build with MPICH' bash -euc '
    cd /assay
    . scripts/packages.sh
    mapfile -t packages < <(packages_of build test | grep -v openmpi)
    apt-get -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${packages[@]}" libmpich-dev mpich
    cmake --preset release -DASSAY_TESTS=ON -DMPI_C_COMPILER=mpicc.mpich -DMPIEXEC_EXECUTABLE=/usr/bin/mpiexec.mpich
    cmake --build build/release -j "$(nproc)" --target assay assay_mpi_tests
    build/release/assay list transports | grep -i mpich
    for ranks in 1 2 4; do mpiexec.mpich -n "$ranks" build/release/tests/mpi/assay_mpi_tests --gtest_brief=1; done'
  exit
fi

if [ "$cuda" = 1 ]; then
  # shellcheck disable=SC2016
  timed 'the build with CUDA 12.4' bash -euc '
    cd /assay
    . scripts/packages.sh
    mapfile -t packages < <(packages_of build run)
    apt-get -q update
    DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${packages[@]}" nvidia-cuda-toolkit
    cmake --preset release -DASSAY_TESTS=OFF -DASSAY_CUDA=ON
    cmake --build build/release -j "$(nproc)" --target assay
    build/release/assay list devices | grep "built: CUDA 12.4"'
  exit
fi

if [ "$ci" = 1 ]; then
  timed '.ci/run' bash -c 'cd /assay && .ci/run'
  exit
fi

# A verdict is what counts: a small machine may be too noisy for a PASS.
code=0
timed 'scripts/quickstart.sh' bash -c 'cd /assay && scripts/quickstart.sh --out /assay/build/first.h5' || code=$?
case "$code" in 0 | 2 | 3) ;; *) exit "$code" ;; esac
[ -f "$root/assay/build/first.h5" ] || { printf 'no results file\n'; exit 1; }
if [ "$quick" = 1 ]; then exit 0; fi
timed 'scripts/test.sh' bash -c 'cd /assay && scripts/test.sh --strict'
