#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the bundle of a build tree, unpacks it under another name in a root directory that has glibc, a shell and little more, and
# uses it there. Exit code 77, with the reason, where no such root can be entered.
#
#   ci/test_bundle.sh BUILD_DIR
#
# Command lines in single quotes are expanded by the shell in that root.
# shellcheck disable=SC2016
set -euo pipefail

[ "$#" -eq 1 ] || { printf 'usage: ci/test_bundle.sh BUILD_DIR\n' >&2; exit 4; }
build=$(realpath "$1")
script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../scripts/bundle.sh")

skip() { printf 'SKIPPED %s\n' "$*"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip 'no privilege: only root can hide the libraries of this machine'
for tool in unshare chroot hostname dash ompi_info mpirun; do
  command -v "$tool" >/dev/null || skip "no $tool here"
done
unshare --mount --uts true 2>/dev/null || skip 'no privilege: no mount namespace can be made here'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'test_bundle: %s\n' "$*" >&2; exit 1; }
glibc='^(ld-linux.*|ld64|linux-.*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl|libnsl|libnss_.*)\.so'
rdma='^(libibverbs|librdmacm|libmlx[0-9]+|libefa|libmana|libibumad|libnl-3|libnl-route-3)\.so'

for wrong in --bogus --build '--build /nosuch' '--output bundle.zip' '--library /nosuch'; do
  code=0
  # shellcheck disable=SC2086  # options and their values
  "$script" $wrong >"$work/wrong.txt" 2>&1 </dev/null || code=$?
  [ "$code $(wc -l <"$work/wrong.txt")" = '4 1' ] || fail "bundle.sh $wrong: exit code $code: $(cat "$work/wrong.txt")"
done

# Without a CUDA compiler there are no tests of GPU code to pack; all else is as with them.
gpu=(--gpu) of_gpus=(share/assay/bench/gemm_torch.py libexec/tests/cuda_kernel_tests)
if [ ! -x "$build/tests/kernels/cuda_kernel_tests" ]; then
  gpu=() of_gpus=() code=0
  "$script" --build "$build" --gpu --output "$work/bundle.tar.gz" >"$work/made.txt" 2>&1 || code=$?
  case "$code $(cat "$work/made.txt")" in
    '1 '*'the build has no tests/kernels/cuda_kernel_tests') ;;
    *) fail "bundle.sh --gpu without CUDA: exit code $code: $(cat "$work/made.txt")" ;;
  esac
fi

# A library of a Python package, whose licence is in the package's record.
mkdir -p "$work/lib" "$work/dist-info/extra/licenses"
printf 'int extra;\n' | cc -x c -shared -o "$work/lib/libextra.so.7" -Wl,-soname,libextra.so.7 -
mkdir "$work/stub"
printf '#!/bin/sh\n: >%s\n' "$work/staged" >"$work/stub/cmake" && chmod +x "$work/stub/cmake"
PATH=$work/stub:$PATH "$script" --build "$build" --library "$work/lib/libextra.so.7" --output "$work/bundle.tar.gz" >"$work/made.txt" 2>&1 &&
  fail 'packed without a licence'
[ ! -e "$work/staged" ] || fail 'a library without a licence was refused after the bundle was begun'
printf 'nvidia/lib/libextra.so.7,sha256=0,1\n' >"$work/dist-info/extra/RECORD"
printf 'the licence of extra\n' >"$work/dist-info/extra/licenses/License.txt"
"$script" --build "$build" "${gpu[@]}" --library "$work/lib/libextra.so.7" --output "$work/bundle.tar.gz" >"$work/made.txt" || fail 'bundle.sh failed'
[ "$(wc -c <"$work/bundle.tar.gz")" -le $((60 << 20)) ] || fail "the bundle is larger than 60 MiB: $(cat "$work/made.txt")"
grep -q "sha256 $(sha256sum "$work/bundle.tar.gz" | cut -d' ' -f1)" "$work/made.txt" || fail "bundle.sh says: $(cat "$work/made.txt")"
# A space is what a path has that breaks scripts.
inside='/srv/some where/tools'
top=$work/root$inside
mkdir -p "$top"
tar -xzf "$work/bundle.tar.gz" -C "$top" --strip-components=1
for file in BUNDLE share/man/man1/assay.1 share/bash-completion/completions/assay share/assay/results-schema/schema.json \
  lib/shared/libextra.so.7 share/doc/assay/licences/libextra "${of_gpus[@]}" \
  share/assay/scripts/nightly.sh share/assay/scripts/site.conf share/assay/scripts/slurm/drain.sh share/openmpi/help-mpi-runtime.txt; do
  [ -s "$top/$file" ] || fail "the bundle lacks $file"
done
if command -v shellcheck >/dev/null; then
  shellcheck --exclude=SC1091,SC2154,SC2034 "$top"/bin/* "$top/libexec/environment" || fail "shellcheck finds fault with the scripts of the bundle"
fi
mapfile -t plugins < <(find "$top/lib" -name '*.so*' ! -path '*/shared/*' ! -path '*/rdma/*')
mapfile -t objects < <(find "$top/lib" -name '*.so*'; find "$top/libexec" -type f ! -name environment)

# On this machine, which has libraries of the same names: those of the bundle come first, but for what must be the machine's.
(
  # shellcheck disable=SC2034  # read by what is sourced
  root=$top
  # shellcheck disable=SC1091
  . "$top/libexec/environment"
  # shellcheck disable=SC2154  # set by what was sourced
  LD_LIBRARY_PATH=$libraries ldd "${objects[@]}"
) >"$work/ldd.txt" 2>&1 || true
grep -q '=>' "$work/ldd.txt" || fail 'ldd says nothing'
awk -v top="$top/" -v glibc="$glibc" -v rdma="$rdma" \
  '$2 == "=>" && index($0, "=> " top) == 0 && $1 !~ glibc && $1 !~ rdma { print }' "$work/ldd.txt" | sort -u >"$work/strangers.txt"
[ ! -s "$work/strangers.txt" ] || { cat "$work/strangers.txt" >&2; fail 'libraries from outside of the bundle'; }
if find "$top/lib" -name '*.so*' -printf '%f\n' | grep -E "$glibc|^(libcuda|libnvidia-.*)\.so"; then fail 'that does not belong in a bundle'; fi
"$top/bin/ompi_info" --parsable --all | grep '^mca:.*:version:' | sort >"$work/here.txt"
ompi_info --parsable --all | grep '^mca:.*:version:' | sort >"$work/system.txt"
cmp -s "$work/system.txt" "$work/here.txt" || { diff "$work/system.txt" "$work/here.txt" | head >&2; fail 'not the components of this machine'; }
# Plugins whose absence nobody would notice before something is slow: as many as beside the libraries of this machine.
for pair in libpmix.so:pmix libhwloc.so:hwloc libucs.so:ucx; do
  beside=$(ldd "$top"/libexec/assay "$top"/lib/openmpi/mca_*.so 2>/dev/null | awk -v name="${pair%:*}" 'index($1, name) == 1 && $3 ~ /^\// && !n++ { print $3 }')
  if [ -z "$beside" ]; then continue; fi
  beside=$(dirname "$(realpath "$beside")")/${pair#*:}
  while read -r plugin; do
    [ -s "$top/lib/${pair#*:}/$plugin" ] || fail "the bundle lacks the plugin $plugin"
  done < <(find "$beside" \( -name 'pmix_mca_*.so' -o -name 'hwloc_pci.so' -o -name 'lib*.so.0' \) -printf '%f\n' 2>/dev/null)
done

# A root directory of nearly nothing.
root=$work/root
mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp}
tools=(cat env false hostname readlink uname unshare)
acceptance=(awk date dirname find grep head mkdir sed sort tail tee timeout tr)  # what gpu_acceptance.sh needs
for tool in "${tools[@]}" "${acceptance[@]}"; do cp -L "$(type -P "$tool")" "$root/bin/$tool"; done
cp -L "$(type -P dash)" "$root/bin/sh"
cp "$build/assay" "$root/bin/plain-assay"
take() { mkdir -p "$root$(dirname "$1")" && cp -L "$1" "$root$1"; }
while read -r library; do
  [[ ${library##*/} =~ $glibc ]] || [ ! -e "$top/lib/shared/${library##*/}" ] || fail "$library would be found beside the bundle"
  take "$library"
done < <(ldd "$root"/bin/sh "${tools[@]/#/$root/bin/}" "${acceptance[@]/#/$root/bin/}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u)
while read -r library; do  # what of glibc programs may want
  if [[ ${library##*/} =~ $glibc ]]; then take "$library"; fi
done < <(ldd "${objects[@]}" 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | sort -u)
printf 'root:x:0:0:root:/tmp:/bin/sh\n' >"$root/etc/passwd"
printf 'passwd: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
printf '127.0.0.1 localhost near\n192.0.2.7 far\n' >"$root/etc/hosts"  # an address that is nobody's: far is not here
# Stands for ssh: another host name and nothing of the environment, as on another host.
cat >"$root/bin/agent" <<'SH'
#!/bin/sh
echo "host=$1 libraries=${LD_LIBRARY_PATH-none}" >>/tmp/agent.txt
export agent_host="$1"
shift
exec unshare --uts sh -c 'hostname "$agent_host"; exec env -i PATH=/bin HOME=/tmp sh -c "$1"' sh "$*"
SH
chmod 755 "$root/bin/agent"

# Runs a shell command line in there, in /tmp, with $B the bundle. Mounts are seen by it alone and go with it.
try() {
  unshare --mount --uts bash -euc 'hostname near
    for directory in dev proc sys; do mount --rbind "/$directory" "$1/$directory"; done
    exec chroot "$1" /bin/env -i PATH=/bin HOME=/tmp B="$2" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
      /bin/sh -c "cd /tmp; $3"' bash "$root" "$inside" "$1" </dev/null
}
want() {  # CODES COMMAND-LINE: its exit code must be one of them; the output is in out.txt
  code=0
  try "$2" >"$work/out.txt" 2>&1 || code=$?
  case " $1 " in *" $code "*) ;; *) tail -n 20 "$work/out.txt" >&2; fail "left with $code: $2" ;; esac
}
says() { grep -qE "$1" "$work/out.txt" || { cat "$work/out.txt" >&2; fail "not said: $1"; }; }

want 0 'echo this shell works'
# The libraries are hidden: the plain program, which runs outside, does not start.
"$build/assay" --version >/dev/null || fail 'the program of the build tree does not run at all'
want 127 '/bin/plain-assay --version'
says 'error while loading shared libraries'

want 0 '"$B/bin/assay" --version' && says '^assay '
with_ucx=0
if grep -qE '^ *ucx +built' "$work/out.txt"; then with_ucx=1; fi
want 0 '"$B/bin/assay" list' && says '^ *inventory '
want 0 'cd "$B/bin" && sh mpirun --version && ./orterun --version' && says 'orterun \(OpenRTE\)|Open MPI'
ln -s "$inside/bin/assay" "$root/bin/linked"
ln -s linked "$root/bin/twice"
want 0 'twice --version' && says '^assay '

# Nothing is missing to any program, library or plugin, with what the programs in bin/ set.
printf '%s\n' "${objects[@]#"$root"}" >"$root/tmp/objects"
want 0 'root=$B; . "$B/libexec/environment"; while read -r object; do "$loader" --library-path "$libraries" --list "$object"; done </tmp/objects'
if grep -E 'not found|error while loading|cannot open' "$work/out.txt" >&2; then fail 'libraries are missing in the bundle'; fi

run='"$B/bin/mpirun" -n 2 --oversubscribe "$B/bin/assay" run --level smoke --no-color'
want '0 2 3' "$run --suites inventory,allreduce --out x.h5"
ran=$code
want "$ran" '"$B/bin/assay" verdict x.h5'
want 0 '"$B/bin/assay" inspect x.h5' && says '^entities .* 2 device .*1 node' && says '^allreduce/allreduce-world-'
# Alone: it starts the mpirun of the bundle.
want '0 2 3' '"$B/bin/assay" run --suites inventory --level smoke --out alone.h5'

if [ "$with_ucx" = 1 ]; then
  ucx='run --level smoke --suites p2p --p2p.transport ucx --p2p.scopes node --p2p.modes latency'
  want '0 2 3' "\"\$B/bin/mpirun\" -n 2 --oversubscribe \"\$B/bin/assay\" $ucx --out ucx.h5"
  # The same transports as outside: one that is a plugin of UCX (cma) would be missing in silence.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # shellcheck disable=SC2086
  mpirun -n 2 --oversubscribe "$build/assay" $ucx --out "$work/ucx.h5" >"$work/out.txt" 2>&1 </dev/null || true
  path_of() { grep -aoE '[a-z]+/memory' "$1" | sort -u | tr '\n' ' '; }
  [ -n "$(path_of "$work/ucx.h5")" ] || { cat "$work/out.txt" >&2; fail 'the results do not say how UCX went'; }
  [ "$(path_of "$root/tmp/ucx.h5")" = "$(path_of "$work/ucx.h5")" ] ||
    fail "UCX went by $(path_of "$root/tmp/ucx.h5") in the bundle and by $(path_of "$work/ucx.h5") outside"
fi

# On another host: mpirun finds its daemon there by the path, and ssh is not given the libraries of the bundle. What it sends
# to a remote shell has no quotes, so here the path has no space.
ln -s "some where/tools" "$root/srv/tools"
want '0 2 3' 'B=/srv/tools; "$B/bin/mpirun" --mca plm_rsh_agent /bin/agent -H near:1,far:1 --mca btl self,vader,tcp \
  "$B/bin/assay" run --level smoke --suites inventory --out far.h5'
want 0 '"$B/bin/assay" inspect far.h5' && says '^entities .* 2 device .*2 node'
grep -q '^host=far ' "$root/tmp/agent.txt" || fail 'the launch agent was not called'
# A run that starts its launcher itself: the words after the launcher's must start the program on the other host, too.
want '0 2 3' 'B=/srv/tools; "$B/bin/assay" run --launcher "$B/bin/mpirun --mca plm_rsh_agent /bin/agent -H near:1,far:1 --mca btl self,vader,tcp" \
  --level smoke --suites inventory --out launched.h5'
want 0 '"$B/bin/assay" inspect launched.h5' && says '^entities .* 2 device .*2 node'
if grep -qE 'lib/(shared|rdma)' "$root/tmp/agent.txt"; then fail "the launch agent was called with: $(cat "$root/tmp/agent.txt")"; fi
[ -z "$(find "$top/lib" -maxdepth 1 -name '*.so*')" ] || fail 'libraries where mpirun --prefix leads every program it starts'

# The GPU acceptance, on emulated GPUs: the bundle's programs are replaced by the same ones for the emulation. By night every step.
[ -x "$build/tests/emulation/assay_emulated" ] || skip 'no emulated GPUs in this build; the bundle itself is tested'
cp "$build/tests/emulation/assay_emulated" "$top/libexec/assay"
mkdir -p "$top/libexec/tests" "$top/share/assay/bench"
if [ "${#gpu[@]}" -eq 0 ]; then cp "$(dirname "$script")"/../tests/bench/{gemm,train}_torch.py "$top/share/assay/bench/"; fi
for name in kernel:kernels/emulated_kernel_tests train:kernels/emulated_train_tests mpi:mpi/emulated_mpi_tests; do
  cp "$build/tests/${name#*:}" "$top/libexec/tests/cuda_${name%%:*}_tests"
done
while read -r library; do
  if [[ ! ${library##*/} =~ $glibc ]] && [ ! -e "$top/lib/shared/${library##*/}" ]; then cp -L "$library" "$top/lib/shared/"; fi
done < <(ldd "$top/libexec/assay" "$top"/libexec/tests/* | grep -o '/[^ ]*\.so[^ ]*' | sort -u)
cp "$(dirname "$script")/../tests/fake_gpus/four_small.json" "$root/etc/gpus.json"
# A PyTorch: what its programs print.
cat >"$root/bin/python3" <<'SH'
#!/bin/sh
case "$*" in
  *gemm_torch*) echo 'bf16 1e9' ;;
  *train_torch*) echo 'tiny: 1000 token/s, 1.0 TFLOP/s' ;;
esac
SH
chmod 755 "$root/bin/python3"
accept='CUDA_VISIBLE_DEVICES=0,1 ASSAY_FAKE_GPUS=/etc/gpus.json ASSAY_NVML_LIBRARY=/nonexistent "$B/share/assay/scripts/gpu_acceptance.sh" --size 64 --types bf16,fp32 --presets tiny'
for wrong in --bogus '--minutes 0' '--minutes x' '--assay /nosuch' '--out /etc'; do
  want 4 "$accept $wrong"
  [ "$(wc -l <"$work/out.txt")" = 1 ] || { cat "$work/out.txt" >&2; fail "gpu_acceptance.sh $wrong: not one line"; }
done
want 3 "ASSAY_NVML_LIBRARY=/nonexistent \"\$B/share/assay/scripts/gpu_acceptance.sh\" --out none" && says 'finds no GPU here'
steps='--steps devices,gemm,torch-gemm,memcheck'
if [ "${ASSAY_NIGHTLY:-}" = 1 ]; then steps='--minutes 20'; fi
want '0 3' "$accept --out gpu $steps"
says '^devices .* passed' && says '^gemm .* passed' && says '^memcheck .* not run: no compute-sanitizer here'
says '^gemm +gemm/bf16-n64-together \(worst of 2\) .*FLOP/s .* 1 GFLOP/s +[0-9.]+$'
says '^gemm +gemm/fp32-n64-together \(worst of 2\) .*FLOP/s +[0-9.]+ [MG]FLOP/s +[0-9.]+ %'
says '^[1-9][0-9]* counts of checks, 0 errors'
# A step without time is said, and is no success; a run that finds a wrong product is a FAIL.
want 3 "$accept --out short --minutes 1 --steps kernels" && says '^kernels .* cut short at its limit of 6 s'
cat >"$root/bin/wrong" <<'SH'
#!/bin/sh
if [ "$1" = run ]; then set -- "$@" --inject 'bitflip:target=gemm,rank=0,case=*exact*,word=7,bit=3'; fi
exec "$B/bin/assay" "$@"
SH
chmod 755 "$root/bin/wrong"
want 2 "export B; $accept --out wrong --assay /bin/wrong --types bf16 --steps gemm" && says '^gemm .* FAIL: gemm.log'

[ "${#gpu[@]}" -gt 0 ] || skip 'no GPU here: the build has no CUDA; the bundle without its tests of GPU code is tested'
printf 'test_bundle: %s; runs where its libraries are hidden, %s plugins\n' "$(sed 's/.*: \(.*\), sha.*/\1/' "$work/made.txt")" "${#plugins[@]}"
