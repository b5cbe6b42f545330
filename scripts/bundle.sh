#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs assay with everything it runs on except glibc and GPU drivers, for machines where nothing can be installed.
# Much in single quotes is for the scripts in the archive, which expand it when they run.
# shellcheck disable=SC2016
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/bundle.sh [--build DIR] [--gpu] [--library FILE]... [--output FILE.tar.gz]

Makes an archive that runs wherever it is unpacked: the program, Open MPI with its plugins, PMIx, UCX, HDF5 and every other
shared library they need. Not in it: glibc, and what belongs to the driver of a GPU. Prints the file, its size and SHA-256.

  --build DIR           the build tree to pack (build/release)
  --gpu                 also the tests of GPU code, for scripts/gpu_acceptance.sh
  --library FILE        also this shared library, with its licence: libcublasLt and libnccl for machines that lack them
  --output FILE.tar.gz  where to put the archive (assay-VERSION-SYSTEM-CPU.tar.gz, here)

Unpacked, bin/ has assay and mpirun; where they are to start on other hosts, all must see them under the same path.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$here/../build/release output='' gpu='' extra=()

wrong() { printf 'bundle.sh: %s (try --help)\n' "$*" >&2; exit 4; }
fail() { printf 'bundle.sh: %s\n' "$*" >&2; exit 1; }

while [ "$#" -gt 0 ]; do
  case "$1" in
    --gpu) gpu=1 ;;
    --library) [ -r "${2:-}" ] || wrong "--library: '${2:-}' cannot be read"; extra+=("$2"); shift ;;
    --build) [ -n "${2:-}" ] || wrong '--build needs a directory'; build=$2; shift ;;
    --output) [ -n "${2:-}" ] || wrong '--output needs a file'; output=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
case "$output" in '' | *.tar.gz | *.tgz) ;; *) wrong "--output: '$output' does not end in .tar.gz" ;; esac
[ -f "$build/cmake_install.cmake" ] || wrong "--build: '$build' is not a configured build tree"
[ -x "$build/assay" ] || wrong "--build: there is no program in '$build': build it first"
[ -z "$output" ] || [ -d "$(dirname "$output")" ] || wrong "--output: no directory '$(dirname "$output")'"
for tool in cmake ldd ompi_info readelf sha256sum; do
  command -v "$tool" >/dev/null || fail "no $tool on this machine"
done

# Never taken along. glibc goes with the loader of the machine; a driver's libraries go with its kernel module.
glibc='^(ld-linux.*|ld64|linux-.*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl|libnsl|libnss_.*|libthread_db|libBrokenLocale)\.so'
driver='^(libcuda|libcudadebugger|libnvidia-.*|libnvcuvid|libnvoptix)\.so'
# Used only where the machine has none of its own: what they load must fit the NICs and their drivers.
rdma='^(libibverbs|librdmacm|libmlx[0-9]+|libefa|libmana|libibumad|libnl-3|libnl-route-3)\.so'

# Libraries to be taken along are known, with their licences, before anything is copied. The licences lie in the records of Python's
# packages, or near the libraries.
sonames=() licences=()
for library in ${extra[@]+"${extra[@]}"}; do
  soname=$(readelf -d "$library" 2>/dev/null | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
  [ -n "$soname" ] || fail "--library: $library is no shared library"
  directory=$(dirname "$(realpath "$library")")
  records=("$directory"/../dist-info/*/RECORD "$directory"/../../../*.dist-info/RECORD)
  record=$(grep -ls "/${library##*/}" "${records[@]}" | sed -n 1p || true)
  licence=$(find ${record:+"${record%/*}"} "$directory" "$directory/.." -maxdepth 2 -type f -iregex '.*/\(licen[sc]e\|copying\|eula\)[^/]*' \
    2>/dev/null | sed -n 1p || true)
  [ -n "$licence" ] || [ -n "$(dpkg-query -S "$(realpath "$library")" 2>/dev/null)" ] || fail "--library: no licence lies near $library"
  sonames+=("$soname")
  licences+=("$licence")
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Its prefix ends up in units and cron lines, which are for machines with an administrator, who installs: they stay out, and
# so does what programs are built with.
DESTDIR=$work/install cmake --install "$build" --prefix /p >"$work/install.log" 2>&1 || { tail -n 5 "$work/install.log" >&2; fail 'cmake --install failed'; }
version=$("$build/assay" --version | awk 'NR == 1 { print $2 }') || fail "$build/assay does not start"
name=assay-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
[ -n "$output" ] || output=$name.tar.gz
stage=$work/$name
mkdir -p "$stage"/{bin,etc,lib/shared,lib/rdma,lib/openmpi,libexec}
cp -R "$work/install/p/share" "$stage/share"
rm -rf "$stage/share/assay/systemd" "$stage/share/assay/cron"
cp "$work/install/p/bin/assay" "$stage/libexec/assay"

# Open MPI: the one that the program is linked with. (No early exit of awk: pipefail would take the other end's death for a failure.)
mpi_path() { ompi_info --parsable --path "$1" | awk -F: -v key="$1" '$2 == key && !n++ { print $3 }'; }
linked() { ldd "$1" | awk -v name="$2" 'index($1, name) == 1 && $2 == "=>" && !n++ { print $3 }'; }
mpi=$(linked "$stage/libexec/assay" libmpi.so)
[ -n "$mpi" ] || fail 'the program is not linked with a shared libmpi'
[ "$(realpath "$mpi")" = "$(realpath "$(linked "$(type -P ompi_info)" libmpi.so)")" ] ||
  fail "the program is linked with $mpi, which is not what ompi_info belongs to"
programs=(orterun orted ompi_info)
for program in "${programs[@]}"; do
  [ -x "$(mpi_path bindir)/$program" ] || fail "no $program in $(mpi_path bindir): this is not Open MPI 3 or 4"
  cp -L "$(mpi_path bindir)/$program" "$stage/libexec/$program"
done
cp -L "$(mpi_path pkglibdir)"/*.so "$stage/lib/openmpi/"
cp -RL "$(mpi_path pkgdatadir)" "$stage/share/openmpi"
rm -f "$stage"/share/openmpi/*wrapper-data.txt  # of compilers
for file in openmpi-mca-params.conf openmpi-default-hostfile; do
  if [ -r "$(mpi_path sysconfdir)/$file" ]; then cp -L "$(mpi_path sysconfdir)/$file" "$stage/etc/"; fi
done

# Without this mpirun refuses, on a machine that has no ssh, to start ranks on that machine itself.
if ! grep -qsE '^ *plm_rsh_agent' "$stage/etc/openmpi-mca-params.conf"; then
  printf '\n# Where there is no ssh, ranks start on this host alone.\nplm_rsh_agent = ssh : rsh : false\n' >>"$stage/etc/openmpi-mca-params.conf"
fi

# Lines "lib NAME FILE" and "missing NAME OBJECT" of everything that objects need.
needs() { ldd "$@" 2>/dev/null | awk -v one="$1" 'BEGIN { object = one }
  /^[^ \t].*:$/ { object = substr($0, 1, length($0) - 1); next }
  $2 == "=>" && $3 == "not" { print "missing", $1, object; next }
  $2 == "=>" && $3 ~ /^\// { print "lib", $1, $3 }' || true; }

# What was put there first stays: the program's own choice of a BLAS.
take() {  # FILE TO
  if [ -e "$2" ]; then return 0; fi
  cp -L "$1" "$2"
  realpath "$1" >>"$work/taken"
}

# Puts what objects need into the bundle.
collect() {  # program|plugin OBJECT...
  local kind=$1 what soname file
  shift
  [ "$#" -gt 0 ] || return 0
  while read -r what soname file; do
    if [[ $soname =~ $glibc || $soname =~ $driver ]]; then continue; fi
    if [ "$what" = missing ]; then
      [ "$kind" = plugin ] || fail "${file##*/} needs $soname, which is not on this machine"
      printf 'bundle.sh: left out: %s, which needs %s\n' "${file##*/}" "$soname" >&2
      rm -f "$file"
    elif [[ $soname =~ $rdma ]]; then
      take "$file" "$stage/lib/rdma/$soname"
    else
      take "$file" "$stage/lib/shared/$soname"
    fi
  done < <(needs "$@" | sort -u)
}
collect program "$stage/libexec/assay"
collect program "${programs[@]/#/$stage/libexec/}"
collect plugin "$stage"/lib/openmpi/*.so

# Plugins of libraries that came along lie beside the original library.
origin() { grep -m 1 -E "/$1\\.so" "$work/taken" || true; }
take_plugins() {  # LIBRARY SUBDIRECTORY NAME-PATTERN
  local library beside plugin
  library=$(origin "$1")
  [ -n "$library" ] || return 0
  beside=${library%/*}/$2
  [ -d "$beside" ] || return 0
  mkdir -p "$stage/lib/$2"
  while read -r plugin; do take "$plugin" "$stage/lib/$2/${plugin##*/}"; done < <(find "$beside" -maxdepth 1 -name "$3" | sort)
  find "$stage/lib/$2" -name '*.so*' >"$work/plugins"
  mapfile -t plugins <"$work/plugins"
  collect plugin "${plugins[@]}"
}
take_plugins libpmix pmix '*.so'
take_plugins libucs ucx '*.so.[0-9]'
take_plugins libhwloc hwloc 'hwloc_pci.so'  # others want X11, OpenCL or a driver
# Libraries that assay opens by name.
for i in "${!extra[@]}"; do
  cp -L "${extra[i]}" "$stage/lib/shared/${sonames[i]}"
  realpath "${extra[i]}" >>"$work/taken"
  mkdir -p "$stage/share/doc/assay/licences"
  if [ -n "${licences[i]}" ]; then cp -L "${licences[i]}" "$stage/share/doc/assay/licences/${sonames[i]%%.*}"; fi
  collect program "$stage/lib/shared/${sonames[i]}"
done
if [ -n "$gpu" ]; then
  mkdir -p "$stage/libexec/tests" "$stage/share/assay/bench"
  for program in kernels/cuda_kernel_tests kernels/cuda_train_tests mpi/cuda_mpi_tests; do
    [ -x "$build/tests/$program" ] || fail "--gpu: the build has no tests/$program"
    strip -o "$stage/libexec/tests/${program##*/}" "$build/tests/$program"
  done
  collect program "$stage"/libexec/tests/*
  cp "$here"/../tests/bench/{gemm,train}_torch.py "$here"/../suites/train/make_bands.py "$stage/share/assay/bench/"
fi
pmix=$(origin libpmix)
for texts in "${pmix%/*}/../share/pmix" /usr/share/pmix; do
  if [ -n "$pmix" ] && [ -d "$texts" ]; then cp -RL "$texts" "$stage/share/pmix"; break; fi
done

# What the programs in bin/ share. Quoted: nothing of this is known before the archive is unpacked.
cat >"$stage/libexec/environment" <<'SH'
# shellcheck shell=sh
# Sourced by the programs in bin/, with $root set.
case "$root" in *:* | *\;*) printf '%s: a path with : or ; in it does not work: %s\n' "${0##*/}" "$root" >&2; exit 4 ;; esac
# The machine's own RDMA libraries fit its NICs; those in the bundle let plugins load where there are none.
libraries=$root/lib/shared
own=''
for directory in /lib64 /usr/lib64 "/lib/$(uname -m)-linux-gnu" "/usr/lib/$(uname -m)-linux-gnu"; do
  if [ -e "$directory/libibverbs.so.1" ] && [ -e "$directory/librdmacm.so.1" ]; then own=$directory; fi
done
if [ -z "$own" ]; then libraries=$libraries:$root/lib/rdma; fi
libraries=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Open MPI, PMIx, UCX and hwloc know the places they were installed to; these lead elsewhere.
export OPAL_PREFIX="$root" OPAL_EXEC_PREFIX="$root" OPAL_BINDIR="$root/bin" OPAL_LIBDIR="$root/lib" OPAL_PKGLIBDIR="$root/lib/openmpi"
export OPAL_DATAROOTDIR="$root/share" OPAL_DATADIR="$root/share" OPAL_PKGDATADIR="$root/share/openmpi" OPAL_SYSCONFDIR="$root/etc"
export PMIX_PREFIX="$root" PMIX_EXEC_PREFIX="$root" PMIX_LIBDIR="$root/lib" PMIX_PKGLIBDIR="$root/lib/pmix"
export PMIX_DATAROOTDIR="$root/share" PMIX_DATADIR="$root/share" PMIX_PKGDATADIR="$root/share/pmix" PMIX_SYSCONFDIR="$root/etc"
export UCX_MODULE_DIR="$root/lib/ucx" HWLOC_PLUGINS_PATH="$root/lib/hwloc"
SH

loader=$(readelf -l "$stage/libexec/orterun" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
[ -n "$loader" ] || fail 'orterun names no loader'
printf 'loader=%s\n' "$loader" >>"$stage/libexec/environment"

wrapper() {  # NAME COMMAND-LINE
  cat >"$stage/bin/$1" <<'SH'
#!/bin/sh
# Starts the program of this bundle, wherever it was unpacked to, with the libraries beside it.
self=$0
case "$self" in */*) ;; *) self=./$self ;; esac
while [ -L "$self" ]; do
  link=$(readlink "$self")
  case "$link" in /*) self=$link ;; *) self=${self%/*}/$link ;; esac
done
# As the path was given, where that works: other hosts may know the directory by that name only.
root=$(CDPATH='' cd -- "${self%/*}/.." && pwd)
[ -r "$root/libexec/environment" ] || root=$(CDPATH='' cd -P -- "${self%/*}/.." && pwd)
SH
  printf '. "$root/libexec/environment"\n%s\n' "$2" >>"$stage/bin/$1"
  chmod 755 "$stage/bin/$1"
}
# The program starts itself anew at times (OPENBLAS_CORETYPE), so that the libraries must be in its environment. Open MPI's
# programs start others (ssh, srun) that want the machine's libraries, so there the loader is told instead.
# The mpirun that `assay run` starts is that of the bundle. ASSAY_BUNDLE tells it what starts the program on other hosts.
wrapper assay 'LD_LIBRARY_PATH=$libraries PATH=$root/bin:$PATH ASSAY_BUNDLE=$root
export LD_LIBRARY_PATH PATH ASSAY_BUNDLE
exec "$root/libexec/assay" "$@"'
# --prefix: other hosts find orted under the same path.
wrapper mpirun 'exec "$loader" --library-path "$libraries" "$root/libexec/orterun" --prefix "$root" "$@"'
for program in orted ompi_info; do
  wrapper "$program" "exec \"\$loader\" --library-path \"\$libraries\" \"\$root/libexec/$program\" \"\$@\""
done
ln -s mpirun "$stage/bin/mpiexec"
ln -s mpirun "$stage/bin/orterun"

# What came along and whose it is, with the licences where dpkg knows them.
mapfile -t objects < <(find "$stage/lib" "$stage/libexec" -type f ! -name environment | sort)
glibc_needed=$(readelf -VW "${objects[@]}" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 || true)
if command -v dpkg-query >/dev/null; then
  # A directory that became a link to /usr is known to dpkg under its old name.
  { cat "$work/taken"; sed 's|^/usr||' "$work/taken"; } | xargs dpkg-query -S 2>/dev/null | sed 's/:.*//' | sort -u >"$work/packages" || true
  printf 'openmpi-bin\nopenmpi-common\n' >>"$work/packages"
  while read -r package; do
    if [ -r "/usr/share/doc/$package/copyright" ]; then
      mkdir -p "$stage/share/doc/assay/licences"
      cp -L "/usr/share/doc/$package/copyright" "$stage/share/doc/assay/licences/$package"
    fi
  done <"$work/packages"
fi
{
  printf 'assay %s with all it runs on, but for %s or newer and the drivers of the machine.\n\n' "$version" "${glibc_needed/GLIBC_/glibc }"
  printf '  PATH=DIRECTORY/bin:$PATH\n  mpirun -n 2 assay run --level smoke\n\n'
  printf 'On several hosts: unpack it where all see it under the same path, without spaces. etc/openmpi-mca-params.conf is that\n'
  printf 'of Open MPI. share/doc/assay has the manual and the licences of the libraries:\n\n'
  (cd "$stage/lib" && find . -type f | sed 's|^\./|  |' | sort)
} >"$stage/BUNDLE"

# The same input gives the same file: nothing of when, where and by whom.
find "$stage" -type d -empty -delete
tar -C "$work" --sort=name --format=gnu --mtime="@${SOURCE_DATE_EPOCH:-1577836800}" --owner=0 --group=0 --numeric-owner \
  --mode='u+rwX,go+rX,go-w' -cf - "$name" | gzip -n >"$work/archive"
mv "$work/archive" "$output"
printf '%s: %s MiB, sha256 %s, needs %s\n' "$output" "$(($(wc -c <"$output") / 1048576))" "$(sha256sum "$output" | awk '{ print $1 }')" \
  "${glibc_needed/GLIBC_/glibc }"
