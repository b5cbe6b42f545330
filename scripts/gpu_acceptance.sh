#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the GPUs of one machine that has a driver and CUDA libraries and nothing else; part of the bundle (scripts/bundle.sh --gpu).
# POSIX shell, coreutils, find, sed and awk only.
set -u
# Where numbers have a decimal comma, awk takes 1.5 for 1.
LC_ALL=C
export LC_ALL

usage() {
  cat <<'TEXT'
Usage: scripts/gpu_acceptance.sh [--minutes N] [--out DIR] [OPTIONS]

Tests the GPUs of this machine within N minutes, the most valuable steps first. Each step has a time limit of its own; a
step that fails does not end the others. Needs no Open MPI, HDF5, compiler or network. cuBLASLt and NCCL are looked for;
without them the steps that need them fail or are left out. PyTorch, compute-sanitizer and ncu are used where they are.
Ends with a table of figures: value, physical bound, fraction of it, the same by PyTorch, ratio.

  --minutes N       time in all (9); the limits of the steps are shares of it
  --out DIR         a directory to make for logs, results files and tables (gpu-acceptance-<UTC time>)
  --assay PROGRAM   (that of the bundle, else build/release/assay)
  --tests DIR       the programs cuda_kernel_tests, cuda_train_tests and cuda_mpi_tests (those of the bundle or the build)
  --python PROGRAM  a Python that may have PyTorch (python3)
  --size N          n of the products n x n x n that are compared with PyTorch, and of the burn (8192)
  --types LIST      number types of the products (bf16,fp16,fp8,fp8_fast,fp8_e5m2,int8,tf32,fp32,fp64)
  --presets LIST    models to train (small,slice-7b)
  --steps LIST      only these steps, separated by commas

Steps: devices smoke kernels model memory gemm torch-gemm train torch-PRESET burn pulse shared nccl memcheck profile
Exit code: 0 when all steps passed, 2 when a verdict is FAIL (also of a run that was cut short) or a test fails, 3 when
a step was cut short or measured nothing, 4 wrong options. Steps that this machine has no program for are listed and do not count.
TEXT
}

wrong() { printf 'gpu_acceptance.sh: %s (try --help)\n' "$*" >&2; exit 4; }
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
top=$(CDPATH='' cd -- "$here/../../.." && pwd)
minutes=9 out='' assay='' tests='' python=python3 size=8192 types=bf16,fp16,fp8,fp8_fast,fp8_e5m2,int8,tf32,fp32,fp64 presets=small,slice-7b only=''
while [ "$#" -gt 0 ]; do
  case "$1" in --help | -h) usage; exit 0 ;; --*) [ -n "${2:-}" ] || wrong "$1: unknown, or without its value" ;; esac
  case "$1" in
    --minutes) minutes=$2 ;;
    --out) out=$2 ;;
    --assay) assay=$2 ;;
    --tests) tests=$2 ;;
    --python) python=$2 ;;
    --size) size=$2 ;;
    --types) types=$2 ;;
    --presets) presets=$2 ;;
    --steps) only=$2 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift 2
done
for number in "--minutes $minutes" "--size $size"; do
  case "${number#* }" in 0* | *[!0-9]*) wrong "${number%% *}: '${number#* }' is no whole number above 0" ;; esac
done

# In the bundle, libexec/environment says how to start a program; in a build tree programs start as they are.
root=$top loader='' libraries=''
if [ -r "$root/libexec/environment" ]; then
  # shellcheck source=/dev/null
  . "$root/libexec/environment"
  assay=${assay:-$root/bin/assay} tests=${tests:-$root/libexec/tests} peers=$root/share/assay/bench
else
  assay=${assay:-$here/../build/release/assay} tests=${tests:-$here/../build/release/tests} peers=$here/../tests/bench
fi
[ -x "$assay" ] || wrong "--assay: '$assay' is no program"
out=${out:-gpu-acceptance-$(date -u +%Y%m%dT%H%M%SZ)}
mkdir -- "$out" 2>/dev/null || wrong "--out: '$out' is there already or cannot be made"
out=$(CDPATH='' cd -- "$out" && pwd)
mpirun=${assay%/*}/mpirun
[ -x "$mpirun" ] || mpirun=mpirun
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 GTEST_COLOR=no

begin=$(date +%s)
end=$((begin + 60 * minutes))
worst=0
worse() { if [ "$1" -eq 2 ] || [ "$worst" -eq 0 ]; then worst=$1; fi; }
note() { printf '%-12s %5s s  %s\n' "$1" "$2" "$3" | tee -a "$out/steps.txt"; }

wanted() { case ",${only:-$1}," in *",$1,"*) return 0 ;; *) return 1 ;; esac }

# step NAME SECONDS-OF-540 COMMAND...: the output goes to NAME.log.
failure=3  # what an exit code that is nobody's verdict means
step() {
  name=$1 limit=$(($2 * minutes / 9)) left=$((end - $(date +%s)))
  shift 2
  wanted "$name" || return 0
  if [ "$limit" -gt "$left" ]; then limit=$left; fi
  if [ "$limit" -lt 3 ]; then note "$name" 0 'not run: no time is left'; worse 3; return 0; fi
  started=$(date +%s)
  # In the foreground only the program itself is told to end; it ends its ranks in order, keeps their results, and judges them.
  timeout --foreground --preserve-status -k 20 "$limit" "$@" >"$out/$name.log" 2>&1 </dev/null
  code=$?
  took=$(($(date +%s) - started))
  cut=''
  if [ "$took" -ge "$limit" ]; then cut="cut short at its limit of $limit s: "; fi
  if [ "$code" -eq 0 ] && grep -q '^\[=====' "$out/$name.log" && ! grep -q '^\[       OK' "$out/$name.log"; then code=77; fi
  case "$code${cut:+ cut}" in
    0) note "$name" "$took" 'passed' ;;
    2 | '2 cut') note "$name" "$took" "FAIL: $cut$name.log"; worse 2 ;;
    *\ cut) note "$name" "$took" "$cut$name.log"; worse 3 ;;
    3) note "$name" "$took" "INCONCLUSIVE: $name.log"; worse 3 ;;
    77) note "$name" "$took" "skipped itself: $name.log"; worse 3 ;;
    *) note "$name" "$took" "failed with exit code $code: $name.log"; worse "$failure" ;;
  esac
}
left_out() { if wanted "$1"; then note "$1" 0 "not run: $2"; fi; }

# measure NAME SECONDS OPTIONS...: a run of assay; in the bundle it starts a rank for each GPU itself.
measure() {
  file=$out/$1.h5 run_name=$1 run_seconds=$2
  shift 2
  step "$run_name" "$run_seconds" "$assay" run --device cuda --quiet --no-color --out "$file" "$@"
}

# test_with NAME SECONDS STARTER WORDS PROGRAM OPTIONS...: a program of tests, started by STARTER with its WORDS where there is one.
test_with() {
  test_name=$1 test_seconds=$2 starter=$3 words=$4 program=''
  for directory in "$tests" "$tests/kernels" "$tests/mpi"; do
    if [ -x "$directory/$5" ]; then program=$directory/$5; fi
  done
  if [ -z "$program" ]; then left_out "$test_name" "there is no program $5 in $tests"; return 0; fi
  shift 5
  failure=2
  # shellcheck disable=SC2086  # words
  step "$test_name" "$test_seconds" ${starter:+"$starter"} $words ${loader:+"$loader" --library-path "$libraries"} "$program" "$@"
  failure=3
}

# Libraries that assay opens itself: where the loader does not find one, in a toolkit's and Python's directories.
find_library() {  # VARIABLE NAME
  eval "found=\${$1:-}"
  [ -n "$found" ] || found=$(ldconfig -p 2>/dev/null | sed -n "s|^[[:space:]]*$2 .*=> ||p" | head -n 1)
  if [ -z "$found" ]; then
    # shellcheck disable=SC2046  # directories of Python that have no space
    found=$(timeout 20 find -L /usr/local /usr/lib /usr/lib64 /opt "${HOME:-/root}" \
      $("$python" -c 'import sys; print(*[p for p in sys.path if p and " " not in p])' 2>/dev/null) \
      -maxdepth 8 -name "$2" -type f 2>/dev/null | head -n 1)
    if [ -n "$found" ]; then export "$1=$found"; fi
  fi
  printf '%s: %s\n' "$2" "${found:-not found}"
}
cuda=$("$assay" --version 2>/dev/null | sed -n 's/^ *cuda .*CUDA \([0-9]*\)\..*/\1/p')
"$assay" --version >"$out/build.txt" 2>&1
find_library ASSAY_CUBLASLT_LIBRARY "libcublasLt.so.${cuda:-13}" >>"$out/build.txt"
find_library ASSAY_NCCL_LIBRARY libnccl.so.2 >>"$out/build.txt"
if "$python" -c 'import torch' 2>/dev/null; then torch=yes; else torch=''; fi

devices=$("$assay" list devices 2>&1 | tr -s ' \n' ' ')
gpus=$(printf '%s' "$devices" | sed -n 's/.* \([1-9][0-9]*\) GPUs\{0,1\} here.*/\1/p')
if [ -z "$gpus" ]; then
  printf 'gpu_acceptance.sh: assay finds no GPU here: %s\n' "$devices" >&2
  exit 3
fi
# shellcheck disable=SC2016  # expanded by the inner shell
step devices 20 sh -c '"$1" list devices && if command -v nvidia-smi; then nvidia-smi -q; nvidia-smi topo -m; fi' sh "$assay"
measure smoke 40 --level smoke
test_with kernels 60 '' '' cuda_kernel_tests
test_with model 60 '' '' cuda_train_tests
measure memory 100 --level standard --suites memory
measure gemm 60 --level quick --suites gemm --gemm.dtypes "$types" --gemm.sizes "$size" --gemm.modes together
if [ -n "$torch" ]; then
  # shellcheck disable=SC2046  # a word for each type
  step torch-gemm 40 "$python" "$peers/gemm_torch.py" --size "$size" --seconds 1 $(printf '%s' "$types" | tr , ' ')
else
  left_out torch-gemm 'no PyTorch here'
fi
measure train 80 --level quick --suites train --train.preset "$presets"
# The same model as the run's: layers and sequences are planned by the memory of the GPU.
planned() {  # PRESET PARAMETER
  "$assay" export "$out/train.h5" --jsonl 2>/dev/null |
    sed -n "s/.*\"case\":\"$1-together\".*\"$2\":\([1-9][0-9]*\).*/--$2 \1/p" | head -n 1
}
for preset in $(printf '%s' "$presets" | tr , ' '); do
  if [ -n "$torch" ]; then
    # shellcheck disable=SC2046  # words
    step "torch-$preset" 80 "$python" "$peers/train_torch.py" --preset "$preset" $(planned "$preset" layers) $(planned "$preset" batch)
  else
    left_out "torch-$preset" 'no PyTorch here'
  fi
done
measure burn 40 --level quick --suites burn --burn.size "$size" --burn.duration "$((20 * minutes / 9 + 1))s"
measure pulse 30 --level quick --suites burn --cases 'burn/pulse*' --burn.size "$size" --burn.duration "$((10 * minutes / 9 + 1))s" --burn.pulse 1
step shared 40 "$mpirun" -n 2 --oversubscribe "$assay" run --device cuda --share-gpus --quiet --no-color --out "$out/shared.h5" \
  --level quick --suites p2p,allreduce --p2p.transport mpi,cuda,cuda-sm --allreduce.transport mpi
test_with nccl 40 "$mpirun" "-n $gpus --oversubscribe" cuda_mpi_tests
if command -v compute-sanitizer >/dev/null; then
  test_with memcheck 60 compute-sanitizer '--tool memcheck --error-exitcode 9' cuda_kernel_tests '--gtest_filter=CudaDigest.*:CudaStream.*:CudaPatterns.*'
else
  left_out memcheck 'no compute-sanitizer here'
fi
if command -v ncu >/dev/null; then
  # The begin of one step of training: a profiled kernel takes a tenth of a second, and a case that takes much longer than
  # planned is ended. The clocks stay as they are.
  step profile 60 ncu --csv --log-file "$out/profile.ncu" --page raw --target-processes all --profile-from-start off --clock-control none \
    --launch-count 100 --metrics gpu__time_duration.sum \
    "$assay" run --launcher none --device cuda --quiet --no-color --out "$out/profile.h5" --level quick --suites train \
    --train.preset "${presets%%,*}" --cases 'train/s*-[at][lr]*'  # ...-alone, and the self-test without which nothing passes
  if [ -r "$out/profile.ncu" ]; then
    awk -F'","' '
      /^"ID"/ { for (i = 1; i <= NF; ++i) { if ($i == "Kernel Name") name = i; if ($i ~ /time_duration/) time = i }; next }
      name && /^"",/ { unit = $time; gsub(/"/, "", unit); next }
      name && /^"[0-9]/ { kernel = $name; sub(/\(.*/, "", kernel); value = $time; gsub(/[",]/, "", value); ++count[kernel]; sum[kernel] += value }
      END { for (kernel in count) printf "%12.0f %s in %3d launches: %s\n", sum[kernel], unit, count[kernel], kernel }' "$out/profile.ncu" |
      sort -rn | head -n 8 >"$out/profile.txt"
  fi
else
  left_out profile 'no ncu here'
fi

# The table. Of several GPUs the worst counts; a fraction is what the file says (bound_share, efficiency, mfu).
for file in "$out"/*.h5; do
  if [ -e "$file" ]; then "$assay" export "$file" --csv -o "${file%.h5}.csv" 2>>"$out/build.txt"; fi
done
set --
for file in "$out"/torch-*.log "$out"/*.csv; do
  if [ -s "$file" ]; then set -- "$@" "$file"; fi
done
awk -F, -v size="$size" '
  function si(value, unit,   prefix, k) {
    if (value == "") return "-"
    if (unit == "1" || unit == "count") return sprintf("%.3g", value)
    prefix = "num kMGTP"; k = 4
    while (k < 9 && value >= 1000) { value /= 1000; ++k }
    while (k > 1 && value > 0 && value < 1) { value *= 1000; --k }
    return sprintf("%.4g %s%s", value, k == 4 ? "" : substr(prefix, k, 1), unit)
  }
  function median(text,   list, n, i, j, x) {
    n = split(text, list, " ")
    for (i = 2; i <= n; ++i) {
      x = list[i] + 0
      for (j = i - 1; j >= 1 && list[j] + 0 > x; --j) list[j + 1] = list[j]
      list[j + 1] = x
    }
    return n % 2 ? list[(n + 1) / 2] + 0 : (list[n / 2] + list[n / 2 + 1]) / 2
  }
  FNR == 1 { step = FILENAME; sub(/.*\//, "", step); sub(/\.[a-z]*$/, "", step) }
  step == "torch-gemm" { if (split($0, word, " ") == 2 && word[2] > 0) peer["gemm/" word[1] "-n" size "-together"] = word[2]; next }
  step ~ /^torch-/ { if (split($0, word, /:? /) > 2 && word[3] ~ /^token/) peer["train/" word[1] "-together"] = word[2]; next }
  FNR == 1 { next }
  {
    key = step "," $2 "/" $3 "," $5
    if ($19 !~ /^[-0-9]/) next
    if ($5 ~ /^(bound_share|efficiency|mfu)$/) {
      place = step "," $2 "/" $3 "," $10
      if ($19 > 0 && (!(place in fraction) || $5 == "bound_share")) fraction[place] = $19
      next
    }
    if ($5 == "errors") { ++checks; wrong += $19; next }
    if ($6 != "metric" || $5 !~ /^(throughput|bandwidth|latency|busbw|message_rate)$/) next
    if (!(key in unit)) { order[++keys] = key; unit[key] = $7; better[key] = $8 }
    if (!((key, $10) in samples)) parts[key] = parts[key] (parts[key] == "" ? "" : ",") $10
    samples[key, $10] = samples[key, $10] " " $19
  }
  END {
    form = "%-10s %-56s %14s %14s %8s %14s %7s\n"
    printf form, "step", "figure", "value", "bound", "fraction", "PyTorch", "ratio"
    for (k = 1; k <= keys; ++k) {
      key = order[k]
      split(key, name, ",")
      n = split(parts[key], part, ",")
      worst = ""
      for (i = 1; i <= n; ++i) {
        value = median(samples[key, part[i]])
        if (worst == "" || (better[key] == "lower" ? value > worst : value < worst)) { worst = value; entity = part[i] }
      }
      share = fraction[name[1] "," name[2] "," entity]
      other = peer[name[2]]
      figure = name[2]
      if (n > 1) figure = figure " (worst of " n ")"
      bound = percent = ratio = "-"
      if (share > 0) { bound = si(worst / share, unit[key]); percent = sprintf("%.1f %%", 100 * share) }
      if (other > 0) ratio = sprintf("%.3f", worst / other)
      printf(form, name[1], figure, si(worst, unit[key]), bound, percent, si(other, unit[key]), ratio)
    }
    printf "%d counts of checks, %.0f errors\n", checks, wrong
    if (keys == 0) exit 3
  }' "$@" </dev/null >"$out/table.txt" || worse 3
printf '\n'
cat "$out/table.txt"
if [ -s "$out/profile.txt" ]; then printf '\nhottest kernels of a training step:\n'; cat "$out/profile.txt"; fi
printf '\n%s of %s min used; logs, results files and tables in %s\n' "$((($(date +%s) - begin + 59) / 60))" "$minutes" "$out"
exit "$worst"
