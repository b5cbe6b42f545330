# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What nightly.sh and the batch scripts share; sourced, never run. Reads the site's settings (site.conf says what there is).

# shellcheck source=scripts/safe.sh
. "$(dirname "${BASH_SOURCE[0]}")/safe.sh"
# shellcheck source=scripts/launch.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

# One line that names what is wrong, and the exit code for wrong use.
site_wrong() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 4; }

site_number() {  # NAME: a setting that must be a whole number
  [[ ${!1} =~ ^[0-9]{1,9}$ ]] || site_wrong "$site_file: $1 is a whole number, not '${!1}'"
  printf -v "$1" %s "$((10#${!1}))"  # 08 is no octal number
}

# Settings: ASSAY_SITE, or /etc/assay/site.conf where that exists, or the defaults.
site_settings() {
  # Prologs, health checks and nights of cron are root's, which Open MPI refuses without these.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  umask go-w  # directories that others can write are refused by the next step of the same night
  ASSAY=assay ASSAY_RESULTS=/var/lib/assay ASSAY_LAUNCH=mpirun ASSAY_RANKS=auto ASSAY_LEVEL=standard ASSAY_OPTIONS=''
  ASSAY_PROM='' ASSAY_NOTIFY='' ASSAY_KEEP_NIGHTS=30 ASSAY_KEEP_WEEKS=52 ASSAY_LOCK_HOURS=24
  ASSAY_DRAIN=print ASSAY_DRAIN_MOST=4 ASSAY_PROLOG_EVERY=3600 ASSAY_STATE=/run/assay
  ASSAY_SOAK_SEGMENTS=16 ASSAY_SOAK_MINUTES=30
  # Installed below one prefix, the program beside these scripts is the one.
  local beside
  beside=$(dirname "${BASH_SOURCE[0]}")/../../../bin/assay
  if [ -x "$beside" ]; then ASSAY=$(realpath "$beside"); fi
  site_file=${ASSAY_SITE:-/etc/assay/site.conf}
  if [ -r "$site_file" ] && [ -f "$site_file" ]; then
    # It is run as a program; a link may lead to it, as configuration management does. A bare name bash would look for in PATH.
    local why file
    file=$(realpath -- "$site_file")
    why=$(unsafe_why "$file")
    # In a directory that others can write the file can be replaced after this look.
    if [ -z "$why" ] && [ "$(id -u)" -eq 0 ]; then why=$(unsafe_directory_why "$(dirname -- "$file")"); fi
    [ -z "$why" ] || site_wrong "settings are not read: $why"
    # shellcheck source=scripts/site.conf
    . "$file" || site_wrong "$site_file: cannot be read by bash"
  elif [ -n "${ASSAY_SITE:-}" ]; then
    site_wrong "ASSAY_SITE: cannot read '$ASSAY_SITE'"
  fi
  for name in ASSAY_KEEP_NIGHTS ASSAY_KEEP_WEEKS ASSAY_LOCK_HOURS ASSAY_DRAIN_MOST ASSAY_PROLOG_EVERY \
    ASSAY_SOAK_SEGMENTS ASSAY_SOAK_MINUTES; do site_number "$name"; done
  if [ "$ASSAY_KEEP_WEEKS" -gt 5200 ]; then ASSAY_KEEP_WEEKS=5200; fi  # `date` fails before the year 0
  [[ $ASSAY_RANKS =~ ^(auto|[1-9][0-9]{0,3})$ ]] || site_wrong "$site_file: ASSAY_RANKS is auto or a number of ranks per node, not '$ASSAY_RANKS'"
  case "$ASSAY_DRAIN" in no | print | apply) ;; *) site_wrong "$site_file: ASSAY_DRAIN is no, print or apply, not '$ASSAY_DRAIN'" ;; esac
  case "$ASSAY_RESULTS" in /*) ;; *) site_wrong "$site_file: ASSAY_RESULTS must begin with /, not '$ASSAY_RESULTS'" ;; esac
}

# The settings, on a machine where the program is.
site_load() {
  site_settings
  command -v "$ASSAY" >/dev/null || site_wrong "no program '$ASSAY': set ASSAY to its path in $site_file"
}

# Whether a name can be that of one node: ALL, NODELIST, lists and ranges stand for many, and a path for what is in a file.
site_node() {  # NAME
  [[ $1 =~ ^[A-Za-z0-9_][A-Za-z0-9._-]*$ ]] && [ "${1^^}" != ALL ] && [ "${1^^}" != NODELIST ]
}

# The nodes that FAIL in NODES (of --nodes), one a line: "NODE own TEXT" where a FAIL finding of VERDICT (of --json) names the node or
# a part of it; "NODE other REASON" where findings name a link of it, a switch or the cluster only.
site_failed() {  # NODES VERDICT
  # A finding has its own line, and its text comes last: quotes inside of texts are escaped.
  sed 's/{"severity":/\n&/g' "$2" |
    LC_ALL=C sed -nE 's/^\{"severity":"FAIL",.*"text":"(([^"\]|\\.)*)"\}.*/\1/; T; s/\\(["\])/\1/g; p' |
    awk '
      # A text begins with what is slow or missing: node07, node07/gpu3, node07 (node07/eth0) for its only NIC, the link
      # node07/gpu3>node09/gpu1, switch:L3.
      of == "finding" { name = $0; sub(/: .*/, "", name); if (name ~ />/) next
        sub(/(\/| \().*/, "", name); if (!(name in own)) own[name] = $0 }
      of == "node" && $2 == "FAIL" { name = $1
        if (name in own) { print name " own " own[name]; next }
        $1 = $2 = ""; sub(/^ */, ""); print name " other " $0 }' of=finding - of=node "$1"
}

# Drains the nodes that fail in FILE or DIR, as ASSAY_DRAIN says.
site_drain() {  # FILE|DIR [OPTIONS OF drain.sh...]
  local options=("${@:2}")
  if [ "$ASSAY_DRAIN" = no ]; then return 0; fi
  if [ "$ASSAY_DRAIN" = apply ]; then options+=(--apply); fi
  "$(dirname "${BASH_SOURCE[0]}")/slurm/drain.sh" "${options[@]}" "$1" 2>&1 || printf 'drain.sh left with %s\n' "$?"
}

# The directory of one job: RESULTS/DATE/KIND-JOB, made here, with a number behind it from the second of the same name on. Prints it.
site_directory() {  # KIND
  local directory made number=1 job=${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-$(date -u +%H%M%SZ)}}}}
  safe_directory ASSAY_RESULTS "$ASSAY_RESULTS" || exit 4
  directory=$ASSAY_RESULTS/$(date -u +%Y-%m-%d)/$1-${job//[^A-Za-z0-9._-]/-}
  made=$directory
  mkdir -p "${directory%/*}" 2>/dev/null || site_wrong "cannot make $directory"
  until mkdir "$made" 2>/dev/null; do
    [ -e "$made" ] || site_wrong "cannot make $made"
    made=$directory-$((++number))
  done
  printf '%s\n' "$made"
}

# One line about one job, in one write.
site_log() {  # KIND CODE TEXT
  safe_directory ASSAY_RESULTS "$ASSAY_RESULTS" || return 1
  printf '%s %s job=%s exit=%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" "${SLURM_JOB_ID:--}" "$2" "$3" >>"$ASSAY_RESULTS/log"
}

# The same, to the system's log where that cannot be written.
site_record() {  # KIND CODE TEXT
  site_log "$@" || site_syslog "$@"
}

site_syslog() {  # KIND CODE TEXT
  logger -t assay "$1 exit=$2 $3" 2>/dev/null || true
}

# Runs a command and passes on what the batch system sends ahead of its limit (USR1, USR2) and an end on request (TERM,
# INT), so that the run ends in order. Returns its exit code; `site_signalled` is USR1 or TERM once one came. The caller's own traps
# are back after it.
site_forward() {  # COMMAND...
  local child code=0 traps
  traps=$(trap -p USR1 USR2 TERM INT)
  "$@" </dev/null &
  child=$!
  # The launcher's own process: it hands the signal to the ranks. shellcheck cannot see that traps run later.
  # shellcheck disable=SC2064
  trap "site_signalled=USR1; kill -USR1 $child 2>/dev/null || true" USR1 USR2
  # shellcheck disable=SC2064
  trap "site_signalled=TERM; kill -TERM $child 2>/dev/null || true" TERM INT
  # A signal ends `wait` early, with a code over 128: ask again until the child itself has ended.
  while :; do
    code=0
    wait "$child" || code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap - USR1 USR2 TERM INT
  eval "$traps"
  return "$code"
}

# Makes DIRECTORY/run.h5 of what a killed run left there; fails where there is nothing, or where it can be recovered later.
# Where cases cannot be read the command writes the others and exits with 3. Until a launch has taken over what the one
# before measured, that is in run.launchN.h5 or its partial directory, which has no cases where these are on a lost host.
site_recover() {  # DIRECTORY
  local left='' before
  before=$(find "$1" -maxdepth 1 -regex '.*/run\.launch[0-9]+\.h5\(\.partial\)?' | sort -V | tail -n 1)
  if [ -d "$1/run.h5.partial" ]; then left=$1/run.h5.partial; fi
  if [ -f "$before" ] || compgen -G "$before/cases*/*.h5" >/dev/null; then
    if [ -z "$left" ] || ! grep -qs ' were taken over ' "$left/events.jsonl"; then left=$before; fi
  fi
  if [ -d "$left" ]; then "$ASSAY" recover "$left" -o "$1/run.h5" >>"$1/run.log" 2>&1 || [ -f "$1/run.h5" ]
  elif [ -f "$left" ]; then mv -T -- "$left" "$1/run.h5"
  else return 1; fi
}

# Where workers have told the names of their nodes (batch.sh kubernetes): writes pods.txt beside nodes.txt, "POD NODE" a line.
site_pods() {  # DIRECTORY
  local pod node
  if [ ! -d "$ASSAY_RESULTS/pods" ] || [ ! -s "$1/nodes.txt" ]; then return 0; fi
  while read -r pod _; do
    if site_node "$pod" && read -r node _ 2>/dev/null <"$ASSAY_RESULTS/pods/$pod"; then printf '%s %s\n' "$pod" "$node"; fi
  done <"$1/nodes.txt" >"$1/pods.txt"
}

# Judges DIRECTORY/run.h5 and writes what is read of it there. Returns the code of the verdict.
site_judge() {  # DIRECTORY VERDICT-OPTIONS...
  local directory=$1 code=0
  shift
  "$ASSAY" verdict "$directory/run.h5" "$@" --no-color --json "$directory/verdict.json" --junit "$directory/junit.xml" \
    --nodes "$directory/nodes.txt" --prometheus "$directory/assay.prom" --report "$directory/report.html" >"$directory/verdict.txt" 2>&1 || code=$?
  site_pods "$directory"
  return "$code"
}

# Names of the options among WORDS, in one line with spaces around each.
site_names() {  # WORD...
  local word
  printf ' '
  for word in "$@"; do
    case "$word" in --*) printf '%s ' "${word%%=*}" ;; esac
  done
}

# Sets `kept` to the WORDS without the options that NAMES names, and without their values. What is required adds up.
site_without() {  # NAMES WORD...
  local names=$1 word keep=yes
  shift
  kept=()
  for word in "$@"; do
    case "$word" in
      --require | --require=*) keep=yes ;;
      --*) case "$names" in *" ${word%%=*} "*) keep='' ;; *) keep=yes ;; esac ;;
    esac
    if [ -n "$keep" ]; then kept+=("$word"); fi
  done
}

# Sets `site_options` to the words of ASSAY_OPTIONS.
site_option_words() {
  # All of its lines; at the end of the text read fails.
  read -r -d '' -a site_options <<<"$ASSAY_OPTIONS" || true
}

# The metrics of a run without a verdict, as --prometheus names them.
site_metrics_without_verdict() {  # CODE STARTED
  local state
  printf '# HELP assay_exit_code 0 PASS, 1 WARN with --strict, 2 FAIL, 3 INCONCLUSIVE.\n# TYPE assay_exit_code gauge\nassay_exit_code %s\n' "$1"
  printf '# HELP assay_run_started_timestamp_seconds Start of the run.\n# TYPE assay_run_started_timestamp_seconds gauge\n'
  printf 'assay_run_started_timestamp_seconds %s\n' "$2"
  printf '# HELP assay_verdict 1 for the state of the run, 0 for the others.\n# TYPE assay_verdict gauge\n'
  for state in FAIL=0 INCONCLUSIVE=1 PASS=0 WARN=0; do printf 'assay_verdict{state="%s"} %s\n' "${state%=*}" "${state#*=}"; done
}

# Puts the metrics of DIRECTORY in ASSAY_PROM. Without a verdict those of the run before must not stay there.
site_metrics() {  # DIRECTORY CODE STARTED
  if [ ! -s "$1/assay.prom" ] && [ "$2" -gt 2 ]; then site_metrics_without_verdict "$2" "$3" >"$1/assay.prom" || true; fi
  if [ -n "$ASSAY_PROM" ] && [ -s "$1/assay.prom" ]; then
    # A reader must never see half of it, and renaming works only inside one file system. node_exporter is another user.
    # An existing symbolic link is replaced, not followed.
    { rm -f "$ASSAY_PROM.new" && (umask 022; set -C; cat "$1/assay.prom" >"$ASSAY_PROM.new") && mv -T "$ASSAY_PROM.new" "$ASSAY_PROM"; } ||
      printf '%s: cannot write %s\n' "${0##*/}" "$ASSAY_PROM" >&2
  fi
}

# Leaves in DIRECTORY why there is nothing to judge, as run.log has it. Returns CODE.
site_no_results() {  # DIRECTORY CODE STARTED [TEXT]
  { printf 'no results%s\n' "${4:-}"; tail -n 5 "$1/run.log"; } >"$1/verdict.txt"
  site_metrics "$1" "$2" "$3"
  return "$2"
}

# Measures into DIRECTORY/run.h5, recovers what a killed run left, judges it and writes what others read. Returns the code of
# the verdict, which counts where the launcher has one of its own; 3 when there is nothing to judge. An option of RUN-OPTIONS
# takes the place of the same one of ASSAY_OPTIONS, and both that of the script's own: given twice, most are refused.
site_measure() {  # DIRECTORY HISTORY OWN-OPTIONS... -- RUN-OPTIONS...
  local directory=$1 history=$2 launched=0 code=0 nodes begun past=() launch=() launcher=() own=() options=() kept=() site_options=()
  shift 2
  begun=$(date +%s)
  while [ "$1" != -- ]; do own+=("$1"); shift; done
  shift
  launch_words 2>"$directory/run.log" || { site_no_results "$directory" 3 "$begun"; return; }
  launch_options
  site_option_words
  # An empty directory is no history yet.
  if [ -n "$history" ] && compgen -G "$history/*.h5" >/dev/null; then past=(--history "$history"); fi
  site_without "$(site_names "$@")" "${site_options[@]}"
  options=("${kept[@]}")
  # A node of the job that no rank runs on is missing, unless nodes are left out on purpose.
  nodes=$(launch_job_nodes "${launch[@]}")
  case "$(site_names "$@" "${options[@]}")" in *' --only '* | *' --exclude '*) ;; *) own+=(${nodes:+--expect-nodes "$nodes"}) ;; esac
  site_without "$(site_names "$@" "${options[@]}")" "${launcher[@]}" --require coverage "${own[@]}" "${past[@]}"
  site_forward "$ASSAY" run "${kept[@]}" "$@" "${options[@]}" --out "$directory/run.h5" \
    >>"$directory/run.log" 2>&1 || launched=$?
  # The signal ahead of a time limit ends no verdict; before the run it ends the script, which has nothing yet.
  [ -n "$(trap -p USR1)" ] || trap : USR1 USR2
  if [ ! -f "$directory/run.h5" ] && ! site_recover "$directory"; then
    # Wrong options fail every night: exit code 4.
    if [ "$launched" -eq 4 ]; then code=4; else code=3; fi
    site_no_results "$directory" "$code" "$begun" ": the launcher left with $launched"
    return
  fi
  site_judge "$directory" "${past[@]}" || code=$?
  site_metrics "$directory" "$code" "$begun"
  return "$code"
}

# Writes TEXT to FILE, whole or not at all. Where that fails it says so and returns 0: a full disk keeps nobody from being told.
site_write() {  # FILE TEXT
  { printf '%s\n' "$2" >"$1.new" && mv -T "$1.new" "$1"; } 2>/dev/null ||
    { rm -f "$1.new"; printf '%s: cannot write %s\n' "${0##*/}" "$1" >&2; }
}

# Runs the command ASSAY_NOTIFY with the summary on its input.
site_notify() {  # TEXT
  local notify=()
  [ -n "$ASSAY_NOTIFY" ] || return 0
  read -r -d '' -a notify <<<"$ASSAY_NOTIFY" || true
  "${notify[@]}" < <(printf '%s\n' "$1") || printf '%s: ASSAY_NOTIFY left with %s\n' "${0##*/}" "$?" >&2
}

# The summary as text: the state in one line, then the verdict; made from what `site_measure` left. Of a verdict with more than LINES
# lines its begin and its end, where reasons and state are.
site_summary() {  # KIND CODE DIRECTORY [LINES]
  local state
  case "$2" in 0) state=PASS ;; 1) state=WARN ;; 2) state=FAIL ;; 3) state=INCONCLUSIVE ;; *) state=ERROR ;; esac
  # A warning leaves the exit code at 0.
  if [ "$2" -eq 0 ] && grep -q '^WARN (exit 0)$' "$3/verdict.txt" 2>/dev/null; then state=WARN; fi
  printf 'assay %s %s: %s (exit %s)' "$1" "$(date -u +%Y-%m-%d)" "$state" "$2"
  if [ -s "$3/nodes.txt" ]; then
    awk '{ n[$2]++; if ($2 == "FAIL") bad = bad " " $1 } END { for (s in n) out = out ", " n[s] " " s
      printf "%s%s", out, bad == "" ? "" : ":" bad }' "$3/nodes.txt"
  fi
  if [ -e "$3/run.h5" ]; then printf '\n%s\n' "$3/run.h5"
  elif compgen -G "$3/segments/*.h5" >/dev/null; then printf '\n%s\n' "$3/segments"
  else printf '\nno results file\n'; fi
  if [ -s "$3/report.html" ]; then printf '%s\n' "$3/report.html"; fi
  if [ -s "$3/pods.txt" ]; then
    awk 'NR == FNR { node[$1] = $2; next } $2 != "PASS" && $1 in node { print $1 " was a pod on node " node[$1] }' "$3/pods.txt" "$3/nodes.txt"
  fi
  [ -s "$3/verdict.txt" ] || return 0
  awk -v most="${4:-0}" -v file="$3/verdict.txt" '!/^simulated: / { line[++n] = $0 }
    END { for (i = 1; i <= n; ++i)
      if (most == 0 || n <= most || i <= most / 2 || i > n - most / 2) print line[i]
      else if (!told++) printf "... %d more lines: %s\n", n - most, file }' "$3/verdict.txt"
}
