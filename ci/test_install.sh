#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build tree into an empty prefix, runs the installed program, and builds a small program against the package.
#
#   ci/test_install.sh BUILD_DIR [CXX]
set -euo pipefail

[ "$#" -ge 1 ] || { printf 'usage: ci/test_install.sh BUILD_DIR [CXX]\n' >&2; exit 4; }
build=$(realpath "$1")
cxx=${2:-c++}
consumer=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../tests/install/consumer")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() { printf 'test_install: %s\n' "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail 'install failed'; }
for file in bin/assay share/man/man1/assay.1 share/assay/scripts/nightly.sh share/assay/scripts/site.conf share/assay/scripts/slurm/drain.sh \
  share/bash-completion/completions/assay share/assay/results-schema/schema.json \
  share/doc/assay/README.md share/doc/assay/LICENSE include/assay/verdict/verdict.hpp include/assay/results/reader.hpp; do
  [ -s "$prefix/$file" ] || fail "$file is missing"
done
bash -n "$prefix/share/bash-completion/completions/assay" || fail 'the completion is not bash'

cd "$work"
"$prefix/bin/assay" --version >version.txt || fail 'installed assay --version failed'
grep -q '^assay ' version.txt || fail "assay --version says: $(head -n 1 version.txt)"
"$prefix/bin/assay" schema >schema.json || fail 'installed assay schema failed'
cmp -s schema.json "$prefix/share/assay/results-schema/schema.json" || fail 'assay schema differs from the installed schema.json'

# In a real bash, and as the units and scripts name it.
[ "$(bash --norc -c ". '$prefix/share/bash-completion/completions/assay'; COMP_WORDS=(assay ver); COMP_CWORD=1; _assay; printf '%s' \"\${COMPREPLY[*]}\"")" = verdict ] ||
  fail 'the completion does not complete'
"$prefix/share/assay/scripts/nightly.sh" --help >/dev/null || fail 'the installed nightly.sh does not run'
grep -q " root $prefix/share/assay/scripts/nightly.sh " "$prefix/share/assay/cron/assay-nightly" || fail 'the cron line names another script'
if command -v systemd-analyze >/dev/null; then
  systemd-analyze --man=no verify "$prefix/share/assay/systemd/assay-nightly.service" "$prefix/share/assay/systemd/assay-nightly.timer" 2>units.txt ||
    { cat units.txt >&2; fail 'systemd does not take the units'; }
fi

# The build tree must not be needed: a consumer sees the prefix only.
cmake -S "$consumer" -B consumer -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$prefix" >consumer.log 2>&1 || { cat consumer.log >&2; fail 'find_package(assay) failed'; }
cmake --build consumer >>consumer.log 2>&1 || { cat consumer.log >&2; fail 'the consumer does not build'; }
! grep -rqF "$build" "$prefix/lib" --include='*.cmake' || fail 'the package names the build directory'

code=0
./consumer/judge_file "$work/nosuch.h5" >judge.txt || code=$?
[ "$code" -eq 4 ] || fail "the consumer left with $code on a missing file, not 4"
grep -q 'nosuch.h5' judge.txt || fail "the consumer did not name the file: $(cat judge.txt)"

# A real file, judged by the consumer as by the program. `inventory` alone is quick.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run_code=0
"$prefix/bin/assay" run --suites inventory --level smoke --quiet --out run.h5 >run.log 2>&1 </dev/null || run_code=$?
[ -f run.h5 ] || { cat run.log >&2; fail "no results file, exit code $run_code"; }
code=0
./consumer/judge_file run.h5 >judge.txt || code=$?
[ "$code" -eq "$run_code" ] || fail "the run left with $run_code, the consumer with $code ($(cat judge.txt))"
printf 'test_install: the program and the package work; verdict %s\n' "$(cat judge.txt)"
