#!/usr/bin/env bash
# Compares throng's models with the same designs in plain C ("twins") and with runtimes ("peers").
#
#   benches/peers.sh check        [-s "..."]
#   benches/peers.sh rates        [-c "50 500 2000"] [-b BUDGET] [-m "MODEL ..."] [-s "SERVER ..."]
#                                 [-l LOCK] > table.md
#   benches/peers.sh instructions [-c "50"] [-m "MODEL ..."] [-l LOCK] > table.md
#
# check: half-close, slow readers, resets, many clients and the end, of every twin and peer.
#
# rates: `throng compare` of each model with its twin, and of each peer with the model epoll-et: both
# servers side by side, until the ratios are within 1 % or the budget is spent.
#
# instructions: in user space, and system calls, of a model and of its twin. Counted, not timed.
#
#   -c  numbers of clients       -b  time for each comparison [30s]
#   -m  models of throng [epoll epoll-et io-uring poll select thread fork, where supported]
#   -s  twins (c/epoll-et ...) and peers (tokio ...) [all]; "" for none
#   -l  lock file held during each measurement, if others measure on this machine too
#
# A small run: benches/peers.sh rates -c 50 -b 10s -s "c/epoll-et tokio"
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,21s/^# \{0,1\}//p' "$0" >&2; exit 2; }

twins="epoll epoll-et io-uring poll select thread fork" # of the models with these names
all_servers="c/${twins// / c/} libuv tokio monoio compio go node"
task=${1:-}
[ $# -gt 0 ] && shift
case $task in
  rates) client_counts="50 500 2000" ;;
  instructions) client_counts=50 ;;
  check) client_counts="50 2000 10000" ;;
  *) usage ;;
esac
budget=30s lock=""
models="epoll epoll-et io-uring poll select thread fork"
servers=$all_servers
while getopts c:b:m:s:l: option; do
  case $option in
    c) client_counts=$OPTARG ;;
    b) budget=$OPTARG ;;
    m) models=$OPTARG ;;
    s) servers=$OPTARG ;;
    l) lock=$OPTARG ;;
    *) usage ;;
  esac
done
# shellcheck source=benches/lib.sh
. benches/lib.sh
need jq jq
need python3 python3
need taskset util-linux
build_throng
in_work_directory
[ -z "$lock" ] || need flock util-linux

for name in $servers; do
  case " $all_servers " in
    *" $name "*) ;;
    *) echo "no server is called $name; there are: $all_servers" >&2; exit 2 ;;
  esac
done

# command_of SERVER: `server_command` starts a twin or a peer on a port of the kernel's choice.
command_of() {
  case $1 in
    c/*) server_command=("benches/peers/$1" 0) ;;
    libuv) server_command=(benches/peers/c/libuv 0) ;;
    tokio | monoio | compio) server_command=("benches/peers/rust/target/release/$1" 0) ;;
    go) server_command=(benches/peers/go/echo 0) ;;
    node) server_command=(node benches/peers/node/echo.mjs 0) ;;
  esac
}

# build_one SERVER: quietly; what goes wrong is in $work/build.
build_one() {
  case $1 in
    c/*) make -s -C benches/peers/c "${1#c/}" ;;
    libuv) make -s -C benches/peers/c libuv ;;
    tokio | monoio | compio)
      (cd benches/peers/rust && cargo build --release --quiet --target-dir target --bin "$1")
      ;;
    go) (cd benches/peers/go && go build -o echo .) ;;
    node) node --version > /dev/null ;;
  esac > "$work/build" 2>&1
}

needs() {
  case $1 in
    c/io-uring) echo "gcc, make and liburing-dev" ;;
    c/*) echo "gcc and make" ;;
    libuv) echo "gcc, make and libuv1-dev" ;;
    go) echo "golang" ;;
    node) echo "nodejs" ;;
    *) echo "cargo, and its registry for the first build" ;;
  esac
}

# build_servers: builds what can be built; `built` are the names of these.
build_servers() {
  built=()
  for name in $servers; do
    command_of "$name"
    if build_one "$name"; then
      built+=("$name")
    else
      echo "$name is left out: it cannot be built here; it needs $(needs "$name"):" >&2
      tail -n 3 "$work/build" >&2
    fi
  done
}

# choose_models: `chosen` are those of `models` that this machine supports.
choose_models() {
  local supported
  supported=$(supported_models)
  chosen=()
  for model in $models; do
    if grep -qx -e "$model" <<< "$supported"; then
      chosen+=("$model")
    else
      echo "the model $model is left out: throng does not support it here" >&2
    fi
  done
}

# fits NAME CLIENTS: select() takes no descriptor from 1024 on.
fits() {
  case $1 in
    */select) [ "$2" -le 1000 ] ;;
  esac
}

check() {
  local failed=0
  build_servers
  for name in "${built[@]}"; do
    command_of "$name"
    local sizes=""
    for clients in $client_counts; do
      if fits "$name" "$clients"; then sizes+=,$clients; fi
    done
    echo "$name"
    locked python3 benches/peers/check.py "$throng" "${sizes#,}" "${server_command[@]}" || failed=1
  done
  return "$failed"
}

# compare_one NAME COMMAND MODEL CLIENTS: a twin or peer with a model of throng, as rows of the table.
compare_one() {
  local name=$1 command=$2 model=$3 clients=$4
  rm -rf "$work/record"
  locked "$throng" compare "$command" "$model" -n "$name" -n "throng/$model" --protocol echo --clients "$clients" \
    --budget "$budget" --probes cpu --allow-rough -o "$work/record" > "$work/output" 2>&1 || {
    echo "$name against $model with $clients clients failed: $(tail -n 1 "$work/output")" >&2
    return 0
  }
  jq -r --arg clients "$clients" --arg name "$name" --arg model "$model" '
    def ratio($metric): .comparison.pairs[0].measures[] | select(.name == $metric)
      | if .ratio == null then "-" else
          (.ratio | "\(.value * 1000 | round / 1000) (\(.low * 1000 | round / 1000)-\(.high * 1000 | round / 1000))")
          + " " + .word end;
    "| `throng/\($model)` | `\($name)` | \($clients) | \(ratio("requests_per_s")) | \(ratio("server_cpu_us_per_request")) | \(.grade.level) |"
  ' "$work/record/summary.json"
}

rates() {
  choose_models
  build_servers
  echo "| server | against | clients | requests/s | server CPU per request | grade |"
  echo "|---|---|---:|---|---|---|"
  for name in "${built[@]}"; do
    local model=${name#c/}
    [ "$model" = "$name" ] && model=epoll-et
    case " ${chosen[*]} " in *" $model "*) ;; *) continue ;; esac
    command_of "$name"
    for clients in $client_counts; do
      fits "$name" "$clients" || continue
      compare_one "$name" "${server_command[*]::${#server_command[@]}-1} {port}" "$model" "$clients"
    done
  done
}

# count_one NAME CLIENTS: instructions in user space and system calls per request, of the server.
count_one() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  locked bash -c '
    set -euo pipefail
    . benches/lib.sh
    throng=$1 name=$2 clients=$3 client_too=
    shift 3
    server_command=("$@")
    choose_events
    in_work_directory
    per_request "$name" "$clients"' count "$throng" "$1" "$2" "${server_command[@]}" |
    awk '{ print $1, $3 }'
}

instructions() {
  choose_models
  choose_events
  local model_counts twin_counts
  servers=""
  for model in "${chosen[@]}"; do
    case " $twins " in *" $model "*) servers+=" c/$model" ;; esac
  done
  build_servers
  echo "| design | clients | user instructions: throng | C | difference | of a whole request | system calls: throng | C |"
  echo "|---|---:|---:|---:|---:|---:|---:|---:|"
  for name in "${built[@]}"; do
    for clients in $client_counts; do
      fits "$name" "$clients" || continue
      serve_model "${name#c/}" "$clients"
      model_counts=$(count_one "throng/${name#c/}" "$clients")
      command_of "$name"
      server_command=(taskset -c 0 "${server_command[@]}")
      twin_counts=$(count_one "$name" "$clients")
      echo "$model_counts $twin_counts" | awk -v name="${name#c/}" -v clients="$clients" '
        { printf "| `%s` | %d | %.0f | %.0f | %+.0f | %+.1f %% | %.2f | %.2f |\n", name, clients,
            $1, $3, $1 - $3, ($1 - $3) / 130, $2, $4 }'
    done
  done
  echo
  echo "\"Of a whole request\": of the 13,000 instructions, kernel included, that epoll-et in C takes for"
  echo "one, measured with hardware counters on another machine of the same kind."
}

case $task in
  check) check ;;
  rates) rates ;;
  instructions) instructions ;;
esac
exit
