#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Degrades one of six virtual hosts in many ways, runs assay each time, and checks who is accused of what, with which exit
# code and within which time.
# shellcheck disable=SC2317  # rows call functions by eval
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here cluster=$here/virtual-cluster.sh state=/run/assay-virtual-cluster prefix=vb
assay=${ASSAY:-$here/../build/release/assay}
name='' nightly='' only='' keep='' slack=1 levels='smoke quick' seeds='1 2 3'

usage() {
  cat <<'TEXT'
Usage: ci/virtual-battery.sh [--nightly [--levels LIST] [--seeds LIST]] [--only REGEX] [--name NAME] [--keep DIR] [--slack FACTOR]

  By day at least ten degradations at level smoke, suites p2p and allreduce; a row that is INCONCLUSIVE
  unexpectedly, or a host of it, in which too little was measured in time, or of which a healthy host is WARN, is tried once more; if it is so again while other
  processes want half of the cores or more, the battery is skipped (77). --nightly: all of them at smoke and quick, all suites, three
  seeds each, or the --levels and --seeds given ("smoke", "1 2"). --only: rows whose name matches. --keep: leaves results and output of every row in DIR. ASSAY is the executable.
  --slack FACTOR lengthens the times that are allowed (17 s at smoke, 132 s at quick), where other work keeps the machine busy.
  --name: of the cluster (one that no other process has, so that batteries may run side by side).

Prints a table: what was done, level, seconds, exit code, who was accused (FAIL) or in doubt, and `ok` or what is wrong. Exit code: 0 all
rows as expected, 1 not; 77: this machine allows no virtual hosts, or is busy, with the reason.
TEXT
}

while [ "$#" -gt 0 ]; do
  case "$1" in
    --nightly) nightly=yes ;;
    --levels) levels=$2; shift ;;
    --seeds) seeds=$2; shift ;;
    --only) only=$2; shift ;;
    --name) name=$2; shift ;;
    --keep) keep=$2; shift ;;
    --slack) slack=$2; shift ;;
    --help) usage; exit 0 ;;
    *) usage >&2; exit 4 ;;
  esac
  shift
done
[ -x "$assay" ] || { printf 'virtual-battery: no executable %s\n' "$assay" >&2; exit 4; }

# A number in the letters a-z: names of hosts, and of the NICs that are called after them, are short.
letters() {
  local n=$1 text='' all=abcdefghijklmnopqrstuvwxyz
  for (( ; n > 0; n /= 26)); do text=${all:n % 26:1}$text; done
  printf '%s' "$text"
}
number_of() {
  local n=0 i all=abcdefghijklmnopqrstuvwxyz before
  for ((i = 0; i < ${#1}; ++i)); do before=${all%%"${1:i:1}"*} n=$((26 * n + ${#before})); done
  printf '%s' "$n"
}
# Takes down clusters of batteries that were killed: their names have the numbers of processes that are gone, or the number of this one.
remove_leftovers() {
  local path number
  for path in "$state"/"$prefix"*; do
    [[ ${path##*/} =~ ^${prefix}[a-z]+$ ]] || continue
    number=$(number_of "${path##*/"$prefix"}")
    if [ "$number" = $$ ] || [ ! -e "/proc/$number" ]; then "$cluster" --name "${path##*/}" down >/dev/null 2>&1; fi
  done
}
if [ -z "$name" ]; then
  remove_leftovers
  name=$prefix$(letters $$)
fi

dir=${keep:-$(mktemp -d)}
mkdir -p "$dir"
vc() { "$cluster" --name "$name" "$@"; }
is_up=''
clean_up() {
  [ "$BASHPID" = $$ ] || return  # a part in the background that is killed as it begins has this trap, too
  # A cluster of this name that was up before is somebody else's.
  if [ -n "$is_up" ]; then vc down >/dev/null 2>&1; fi
  [ -n "$keep" ] || rm -rf "$dir"
}
trap clean_up EXIT
host() { printf '%s%02d' "$name" "$1"; }

# ---- what is done to the cluster; DURING runs in the background while assay runs ----------------------------------------

half_nic() {  # HOST RATE out|in
  local port
  port=$(host "$1")
  if [ "$3" = out ]; then tc -n "assay-$port" qdisc replace dev eth0 root tbf rate "$2" burst 65536 latency 50ms
  else tc -n "assay-$name-switch" qdisc replace dev "$port" root tbf rate "$2" burst 65536 latency 50ms; fi
}
processes_of() { ip netns pids "assay-$(host "$1")"; }
# The worker is the child of the supervisor: both are `assay run`, and the supervisor was there first.
ranks_of() { processes_of "$1" | while read -r p; do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = assay ] && printf '%s\n' "$p"; done | sort -n; }
kill_rank() { ranks_of "$1" | "$2" -n 1 | xargs -r kill -9; }  # HOST tail (the worker)|head (its supervisor)
signal_all() { processes_of "$1" | xargs -r kill "-$2" 2>/dev/null; }
busy() {
  local spin='while :; do :; done'
  vc exec "$(host "$1")" timeout 60 sh -c "$spin" &
  vc exec "$(host "$1")" timeout 60 sh -c "$spin" &
  wait
}

# name | before | during | nodes that FAIL | nodes in doubt allowed | exit codes allowed | what a finding must say
# any4: host 4 may FAIL, nobody else. Text: an extended regular expression for a WARN or FAIL finding; with it half of the cases at
# least must have passed. So it must at quick where the NIC of a host is slow. A host that alone is allowed in doubt and is lost for good
# (exit code 3 only) must be named: FAIL, INCONCLUSIVE or WARN. A pause of all takes its seconds from the budget: what is then not measured is in doubt on every node, and nobody is accused.
rows() {
  cat <<'TEXT'
healthy|:|:|-|-|0
nic 1 Gbit/s|vc slow-nic $(host 4) 1gbit|:|4|-|2
nic 200 Mbit/s|vc slow-nic $(host 4) 200mbit|:|4|-|2
nic 50 Mbit/s|vc slow-nic $(host 4) 50mbit|:|4|-|2
nic 5 Mbit/s|vc slow-nic $(host 4) 5mbit|:|4|-|2
nic 1 Mbit/s|vc slow-nic $(host 4) 1mbit|:|4|-|2
nic 50 Mbit/s out|half_nic 4 50mbit out|:|4|-|2
nic 50 Mbit/s in|half_nic 4 50mbit in|:|4|-|2
two nics 200 Mbit/s|vc slow-nic $(host 2) 200mbit; vc slow-nic $(host 5) 200mbit|:|2,5|-|2
cpu 50 %|vc slow-cpu $(host 4) 50|:|any4|-|0,2|$(host 4).*CPU quota is 0.5 of
cpu 20 %|vc slow-cpu $(host 4) 20|:|any4|-|0,2|$(host 4).*CPU quota is 0.2 of
cpu 5 %|vc slow-cpu $(host 4) 5|:|any4|4|0,2,3|$(host 4).*CPU quota is 0.05 of
stopped 5 s|:|sleep 2.5; signal_all 4 STOP; sleep 5; signal_all 4 CONT|-|1,2,3,4,5,6|0,3
link down 3 s|:|begun; sleep 0.5; vc cut $(host 4); sleep 3; vc mend $(host 4)|-|1,2,3,4,5,6|0,3
link cut early|:|begun; sleep 0.5; vc cut $(host 4)|-|4|3
link cut late|:|sleep 5; vc cut $(host 4)|-|4|3
link cut very late|:|sleep 6.5; vc cut $(host 4)|-|4|3
worker killed|:|begun; sleep 0.5; kill_rank 4 tail|-|4|3
worker killed late|:|sleep 7; kill_rank 4 tail|-|4|3
supervisor killed|:|begun; sleep 0.5; kill_rank 4 head|-|4|3
supervisor killed late|:|sleep 7; kill_rank 4 head|-|4|3
two busy loops|:|busy 4|-|4|0,3|$(host 4).*core was shared
memory limit 512 MiB|vc little-memory $(host 4) 512|:|-|-|0
slow uplink 50 Mbit/s|vc slow-uplink leaf2 50mbit|:|-|-|2|switch:leaf2: links of this switch
TEXT
  rows_of_stages
}
# What ends a host for good, in each stage. At smoke a silence of 6 s late in the run leaves no time to measure the others again.
rows_of_stages() {
  local kind what stage name doubtful
  # shellcheck disable=SC2016  # expanded when a row runs
  for kind in 'cut|vc cut $(host 4)' 'worker killed|kill_rank 4 tail' 'supervisor killed|kill_rank 4 head' 'stopped|signal_all 4 STOP'; do
    what=${kind%|*}
    for stage in 'products|gemm/' 'pairs|p2p/' 'groups|allreduce/allreduce-[gl]' 'world|allreduce/allreduce-world' \
      'training|train/.*lockstep' 'burn|burn/'; do
      name=${stage%%|*} doubtful=4
      if [ "$level" = smoke ]; then
        [ "$name" != training ] || continue  # no time for it
        case "$what $name" in 'cut groups' | 'cut world' | 'stopped groups' | 'stopped world') doubtful=1,2,3,4,5,6 ;; esac
      fi
      printf '%s\n' "$what in $name|:|in_case ${stage#*|}; ${kind#*|}|-|$doubtful|3"
    done
  done
}
readonly by_day='^(healthy|nic (200|5|1) Mbit/s$|two nics|cpu 5 %|stopped 5|link down 3|link cut early|(worker|supervisor) killed$)'

# What the findings that are more than notes say, one a line.
findings_in() { grep -oE '"severity": ?"(WARN|FAIL)"[^{}]*' "$1" 2>/dev/null | sed -n 's/.*"text": *"\([^"]*\)".*/\1/p'; }
# Of the line with the counts: "passed planned".
counts_in() { sed -n 's/^planned=\([0-9]*\) passed=\([0-9]*\).*/\2 \1/p' "$1" | tail -n 1; }

# ---- one row ----------------------------------------------------------------------------------------------------------

list_of() {  # NAMES as in the table: the hosts, separated by commas
  local n out=''
  for n in ${1//,/ }; do [ "$n" = - ] || out+=,$(host "${n#any}"); done
  printf '%s' "${out#,}"
}
state_of() { awk -v s="$2" '$2 == s { printf "%s%s", sep, $1; sep = "," }' "$1" 2>/dev/null; }
within() {  # LIST ALLOWED: the first that is not allowed
  local n
  for n in ${1//,/ }; do case ",$2," in *,$n,*) ;; *) printf '%s' "$n"; return ;; esac; done
}

# Until the ranks have agreed on a plan: before that, a cut link ends Open MPI's launcher, and nothing is measured.
begun() {
  local n
  for ((n = 0; n < 300; ++n)); do [ -e "$file.h5.partial" ] && return; sleep 0.1; done
}

# Until a case runs whose name matches.
in_case() {  # REGEX
  local n
  for ((n = 0; n < 3000; ++n)); do
    [[ $(tr '\r' '\n' 2>/dev/null <"$file.err" | grep -E '^\[[0-9]+/' | tail -n 1) =~ $1 ]] && return
    sleep 0.04
  done
}

judge() {  # CODE SECONDS LIMIT FAILED OPEN wanted doubtful codes text FILE WHAT WARNED LEVEL: `ok` or what is wrong
  local code=$1 seconds=$2 limit=$3 failed=$4 open=$5 wanted doubtful codes=$8 text=$9 file=${10} what=${11} warned=${12} level=${13} stray passed planned
  read -r passed planned <<<"$(counts_in "$file.out")"
  ((${passed:-0} > 0)) || { printf 'nothing was measured'; return; }
  if [ -n "$text" ] || [[ $level = quick && $what =~ ^(two )?nics?\  ]]; then
    ((2 * passed >= planned)) || { printf '%s of %s cases passed' "$passed" "$planned"; return; }
  fi
  if [ -n "$text" ]; then
    findings_in "$file.json" | grep -qE "$text" || { printf 'no finding says: %s' "$text"; return; }
  fi
  wanted=$(list_of "$6") doubtful=$(list_of "$7")
  case ",$codes," in *,$code,*) ;; *) printf 'exit code %s, not %s' "$code" "$codes"; return ;; esac
  stray=$(within "$failed" "$wanted")
  [ -z "$stray" ] || { printf '%s accused' "$stray"; return; }
  if [[ $6 != any* ]]; then
    stray=$(within "$wanted" "$failed")
    [ -z "$stray" ] || { printf '%s not accused' "$stray"; return; }
  fi
  if [ "$6|$7|$codes" = '-|4|3' ]; then
    stray=$(within "$doubtful" "$failed,$open,$warned")
    [ -z "$stray" ] || { printf '%s not named' "$stray"; return; }
  fi
  if [ "$what" = healthy ]; then
    stray=$(within "$warned" '')
    [ -z "$stray" ] || { printf '%s warned of' "$stray"; return; }
  fi
  stray=$(within "$open" "$wanted,$doubtful")
  [ -z "$stray" ] || { printf '%s in doubt' "$stray"; return; }
  awk -v s="$seconds" -v l="$limit" 'BEGIN { exit !(s <= l) }' || { printf 'took %s s, not %s' "$seconds" "$limit"; return; }
  printf 'ok'
}

# What a machine that is busy with something else can cause: no time, a fault that strikes when all is over, no verdict about a host or all, or a link that
# is slow for once. Who is at fault is none of that.
may_be_noise() { case "$1" in 'nothing was measured' | took* | 'exit code 3, '* | 'exit code 0, not 3' | *' warned of' | *' in doubt' | *' cases passed') ;; *) return 1 ;; esac; }

# Processes of others that run or wait for a core, on average over half a second before a row is tried again.
others_running() {
  local n running total=0
  for n in 1 2 3 4 5 6 7 8 9 10; do
    read -r _ _ _ running _ </proc/loadavg
    total=$((total + ${running%/*} - 1))
    sleep 0.05
  done
  awk -v t="$total" 'BEGIN { printf "%.1f", t / 10 }'
}

bad=0 noise='' verdict='' others=''
# SUITES may end in options: six hosts share one machine's memory, each of which takes it all for its own.
one() {  # LEVEL SEED SUITES name before during fail open codes text
  local level=$1 seed=$2 suites=$3 what=$4 limit=17 code begin seconds file out failed open warned n background
  [ "$level" = quick ] && limit=132
  limit=$(awk -v l="$limit" -v s="$slack" 'BEGIN { printf "%.0f", l * s }')
  if [ -n "$nightly" ]; then vc heal leaf2; fi
  for n in 1 2 3 4 5 6; do vc heal "$(host $n)" >/dev/null; vc mend "$(host $n)" >/dev/null; signal_all $n KILL; done
  file=$dir/$(printf '%s-%s-%s' "$what" "$level" "$seed" | tr -c 'a-zA-Z0-9-' '_')
  eval "$5" >/dev/null
  begin=$(date +%s.%N)
  (eval "$6") >/dev/null 2>&1 &
  background=$!
  for n in first again; do  # mpirun that cannot start on the hosts ends at once, before any fault strikes
    # shellcheck disable=SC2086  # words of SUITES
    out=$(timeout -k 5 $((limit + 30)) "$assay" run --launcher "$(printf %q "$cluster") --name $name mpirun --without={exclude}" --suites $suites --level "$level" \
      --seed "$seed" --topology "$state/$name/topology.csv" --out "$file.h5" --force --nodes "$file.nodes" --json "$file.json" --progress always 2>"$file.err")
    code=$?
    seconds=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    if [ -e "$file.h5" ] || [ "${seconds%.*}" -ge 2 ]; then break; fi
    printf 'no start on the hosts (%s): %s\n' "$n" "$(tail -n 5 "$file.err" | tr '\n' ' ')"
    kill "$background" 2>/dev/null
    wait "$background" 2>/dev/null
    begin=$(date +%s.%N)
    (eval "$6") >/dev/null 2>&1 &
    background=$!
  done
  printf '%s\n' "$out" >"$file.out"
  kill "$background" 2>/dev/null
  wait "$background" 2>/dev/null
  failed=$(state_of "$file.nodes" FAIL) open=$(state_of "$file.nodes" INCONCLUSIVE) warned=$(state_of "$file.nodes" WARN)
  verdict=$(judge "$code" "$seconds" "$limit" "$failed" "$open" "$7" "$8" "$9" "$(eval "printf %s \"${10}\"")" "$file" "$what" "$warned" "$level")
  printf '| %-28s | %-5s | %s | %6s | %s | %-14s | %-14s | %-14s | %s |\n' "$what" "$level" "$seed" "$seconds" "$code" "${failed:--}" "${open:--}" "${warned:--}" "$verdict"
  if [ "$verdict" != ok ]; then
    tr '\r' '\n' <"$file.err" | grep -vE '^(\[[0-9]+/.*| *)$' | tail -n 8
    findings_in "$file.json"
  fi
}

said=$(vc up 6 ${nightly:+--leaves 3} 2>&1 >/dev/null) || {
  code=$?
  if [ "$code" -eq 77 ]; then printf 'SKIPPED %s\n' "${said#virtual-cluster: }"; else printf '%s\n' "$said" >&2; fi
  exit "$code"
}
is_up=yes
printf '| %-28s | level | seed | s | exit | FAIL | in doubt | WARN | as expected |\n|---|---|---|---|---|---|---|---|---|\n' 'what was done'
if [ -z "$nightly" ]; then levels=smoke seeds=1; fi
for level in $levels; do
  for seed in $seeds; do
    while IFS='|' read -r what before during fail open codes text; do
      if [ -n "$only" ]; then [[ $what =~ $only ]] || continue
      elif [ -z "$nightly" ]; then [[ $what =~ $by_day ]] || continue; fi
      if [ -n "$nightly" ]; then suites='inventory,gemm,memory,p2p,allreduce,train --memory.fraction 0.05'; else suites=p2p,allreduce; fi
      if [[ $what == *' in burn' ]]; then suites='inventory,burn --burn.duration 4s'; fi
      one "$level" "$seed" "$suites" "$what" "$before" "$during" "$fail" "$open" "$codes" "$text" </dev/null
      if [ -z "$nightly" ] && may_be_noise "$verdict"; then  # once more; the nights count each
        others=$(others_running)
        one "$level" "$((seed + 10))" "$suites" "$what" "$before" "$during" "$fail" "$open" "$codes" "$text" </dev/null
      fi
      [ "$verdict" != ok ] || continue
      if [ -z "$nightly" ] && may_be_noise "$verdict" && awk -v o="$others" -v c="$(nproc)" 'BEGIN { exit !(2 * o >= c) }'; then
        noise="$what: $verdict, while $others other processes wanted $(nproc) cores"
      else
        bad=$((bad + 1))
      fi
    done < <(rows)
  done
done
if [ "$bad" -eq 0 ] && [ -n "$noise" ]; then
  printf 'SKIPPED noise: %s\n' "$noise"
  exit 77
fi
exit $((bad > 0))
