#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs a build tree (tar, Debian package) and uses both: the package from an empty root, the tar in the account of a plain user who
# does what scripts/README.md says. Exit code 77, with the reason, where no account can be made.
#
#   ci/test_package.sh BUILD_DIR
set -euo pipefail

[ "$#" -eq 1 ] || { printf 'usage: ci/test_package.sh BUILD_DIR\n' >&2; exit 4; }
build=$(realpath "$1")
readme=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../scripts/README.md")
work=$(mktemp -d)
user=assay-$$
cleanup() {
  if id "$user" >/dev/null 2>&1; then
    pkill -KILL -u "$user" 2>/dev/null || true
    userdel "$user" >/dev/null 2>&1 || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT

fail() { printf 'test_package: %s\n' "$*" >&2; exit 1; }

generators=TGZ
if command -v dpkg-deb >/dev/null; then generators='TGZ;DEB'; fi
cpack --config "$build/CPackConfig.cmake" -G "$generators" -B "$work" >"$work/cpack.log" 2>&1 || { tail -n 20 "$work/cpack.log" >&2; fail 'cpack failed'; }
tar=$(find "$work" -maxdepth 1 -name 'assay-*.tar.gz')
[ -s "$tar" ] || fail 'no tar'

if [ "$generators" != TGZ ]; then
  deb=$(find "$work" -maxdepth 1 -name 'assay_*.deb')
  [ -s "$deb" ] || fail 'no Debian package'
  [ "$(dpkg-deb -f "$deb" Package)" = assay ] || fail "its name is $(dpkg-deb -f "$deb" Package)"
  dpkg-deb -f "$deb" Depends | grep -q openmpi-bin || fail "it depends on: $(dpkg-deb -f "$deb" Depends)"
  if command -v dpkg-shlibdeps >/dev/null; then
    dpkg-deb -f "$deb" Depends | grep -q libhdf5 || fail "it does not depend on HDF5: $(dpkg-deb -f "$deb" Depends)"
  fi
  tree=$work/unpacked
  mkdir "$tree"
  dpkg-deb -x "$deb" "$tree"
  "$tree/usr/bin/assay" --version >/dev/null || fail 'the program of the package does not start'
  grep -qx 'ExecStart=/usr/share/assay/scripts/nightly.sh' "$tree/usr/share/assay/systemd/assay-nightly.service" ||
    fail "the unit does not start the installed script"
  for file in share/man/man1/assay.1 share/bash-completion/completions/assay share/assay/scripts/slurm/nightly.sbatch; do
    [ -s "$tree/usr/$file" ] || fail "the package lacks $file"
  done
  printf 'test_package: %s\n' "$(basename "$deb")"
fi

[ "$(id -u)" -eq 0 ] || { printf 'SKIPPED no privilege: only root can make an account to try the tar in\n'; exit 77; }
for tool in useradd runuser; do
  command -v "$tool" >/dev/null || { printf "SKIPPED no %s here\n" "$tool"; exit 77; }
done
chmod 711 "$work"
useradd --no-log-init --create-home --base-dir "$work" --shell /bin/bash "$user" >"$work/useradd.log" 2>&1 ||
  { printf 'SKIPPED no privilege: no account can be made: %s\n' "$(head -n 1 "$work/useradd.log")"; exit 77; }
home=$work/$user
cp "$tar" "$home"
# What the README says, in the block after its marker.
awk '/^<!-- without root -->$/ { on = 1; next } on && /^```sh$/ { code = 1; next } code && /^```$/ { exit } code' "$readme" >"$home/steps.sh"
[ -s "$home/steps.sh" ] || fail 'scripts/README.md does not say how to install without root'
chown -R "$user" "$home"
code=0
runuser -u "$user" -- env -i HOME="$home" USER="$user" PATH=/usr/local/bin:/usr/bin:/bin OMPI_MCA_rmaps_base_oversubscribe=1 \
  bash -ec 'cd; set -o pipefail; . ./steps.sh
    type -P assay; complete -p assay; man -w assay; ls first.h5' >"$work/steps.out" 2>&1 </dev/null || code=$?
[ "$code" -eq 0 ] || { cat "$work/steps.out" >&2; fail "the steps of scripts/README.md left with $code as a plain user"; }
for text in "$home/.*/bin/assay" 'complete -F _assay assay' "$home/.*/share/man/man1/assay.1" first.h5 'assay night '; do
  grep -q "$text" "$work/steps.out" || { cat "$work/steps.out" >&2; fail "missing after the steps of scripts/README.md: $text"; }
done
[ -d "$home/results/history" ] || fail 'the night left no results'
strangers=$(find "$home" ! -user "$user" | head -n 1)
[ -z "$strangers" ] || fail "not the user's: $strangers"
printf 'test_package: %s works in a plain account\n' "$(basename "$tar")"
