#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares assay with other programs that measure the same things, on this machine.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: scripts/bench_peers.sh [OPTIONS]

Installs the packaged peers (hpcc, stressapptest, memtester, stress-ng, ucx_perftest, BLIS, oneDNN, PyTorch, fio), builds assay
and prints a table: ours, the peer's, their ratio with a 95 % interval over interleaved pairs, and the target.

  --only LIST    of gemm,memory,comm,train,storage (default all but storage)
  --pairs N      interleaved pairs (default 7; at least 6 give an interval)
  --quick        shorter runs, smaller arrays, no hpcc
  --imb DIR      also compare with the Intel MPI Benchmarks: the directory of IMB-MPI1
  --osu DIR      also compare with the OSU micro-benchmarks: the directory of osu_latency and the others
  --llmc DIR     also compare with llm.c's CPU trainer: the directory of its train_gpt2.c
  --ior DIR      also compare storage with IOR and mdtest: the directory of ior and mdtest
  --directory D  where storage is compared with fio (default /var/tmp; 512 MiB)
  --no-install   never install a package
  --help         this text
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/packages.sh
. "$here/packages.sh"

install=1 arguments=()
while [ "$#" -gt 0 ]; do
  case "$1" in
    --quick) arguments+=("$1") ;;
    --only | --pairs | --imb | --osu | --llmc | --ior | --directory)
      [ "$#" -ge 2 ] || { printf 'bench_peers.sh: %s needs a value\n' "$1" >&2; exit 4; }
      arguments+=("$1" "$2")
      shift
      ;;
    --no-install) install=0 ;;
    --help | -h) usage; exit 0 ;;
    *) printf 'bench_peers.sh: unknown option %s (try --help)\n' "$1" >&2; exit 4 ;;
  esac
  shift
done

if [ "$install" = 1 ]; then install_packages build run test peers; fi
build=${ASSAY_BUILD_DIR:-$root/build/release}
cache=()
if command -v ccache >/dev/null; then cache=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
printf 'Building in %s\n' "$build" >&2
cmake -S "$root" --preset release -B "$build" -DASSAY_TESTS=ON "${cache[@]}" >/dev/null
cmake --build "$build" --target assay assay_peer_gemm assay_peer_stream assay_bench_comm >/dev/null

# The modules that read results files belong to Debian's Python, which need not be the first one found.
python=python3
"$python" -c 'import h5py' 2>/dev/null || python=/usr/bin/python3
exec "$python" "$root/tests/bench/peers.py" --build "$build" "${arguments[@]}"
