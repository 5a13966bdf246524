# shellcheck shell=bash
# What the scripts here share; sourced by them. All counts are differences: the same load is run
# with few and with many requests, and what the many cost more is divided by how many more they
# are. So starting, connecting and ending, which both have, do not count.

shopt -s inherit_errexit # what fails in $(...) fails here

# need PROGRAM PACKAGE: ends when a program is missing, and names the Debian package that has it.
need() {
  command -v "$1" > /dev/null || { echo "$1 is missing (Debian: $2)" >&2; exit 1; }
}

# build_throng: builds it; `throng` is its path.
build_throng() {
  need cargo cargo
  cargo build --release --quiet
  throng=${CARGO_TARGET_DIR:-target}/release/throng
}

# supported_models: the names of the models that this machine supports.
supported_models() {
  "$throng" list models --json | jq -r '.[] | select(.supported) | .name'
}

# choose_events: `events` are those that perf counts here, `hardware` is set if it has hardware
# counters.
choose_events() {
  need perf linux-perf
  events=raw_syscalls:sys_enter,context-switches
  perf stat -e $events true > /dev/null 2>&1 || {
    echo "perf cannot count $events here; as root: mount -t tracefs nodev /sys/kernel/tracing" >&2
    exit 1
  }
  if perf stat -x, -e instructions:k true 2>&1 | grep -q '^[0-9]'; then
    hardware=1
    events=instructions:u,instructions:k,$events
  else
    hardware=
    need valgrind valgrind
  fi
}

# in_work_directory: `work` is a directory for files of this run; it and a server still running
# go when the script ends.
in_work_directory() {
  work=$(mktemp -d)
  server=
  trap 'end_server; rm -rf "$work"' EXIT
}

end_server() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  server=
}

# serve_model MODEL CLIENTS: `server_command` starts a model of throng for this many clients.
serve_model() {
  # No more workers than clients: idle ones all wake for each client that comes, which differs
  # from run to run by more than a request costs.
  server_command=("$throng" serve "$1" --listen 127.0.0.1:0 --cpus 0 --json --drain 30s
    --workers $(($2 < 100 ? $2 : 100)))
}

# start_server FILE COMMAND...: starts a server that writes to this file; `server` is its process, `address` where it
# listens, empty if it does not.
start_server() {
  local out=$1
  shift
  : > "$out"
  "$@" > "$out" &
  server=$!
  for _ in $(seq 200); do
    address=$(sed -n 's/listening on \([^ ]*\).*/\1/p' "$out")
    [ -n "$address" ] && return
    sleep 0.05
  done
}

# locked COMMAND...: runs it while nobody else has the file `lock`, if that is set.
locked() { if [ -n "$lock" ]; then flock "$lock" "$@"; else "$@"; fi; }

# load_once NAME CLIENTS REQUESTS: one load on "${server_command[@]}"; "${on_server[@]}" and "${on_client[@]}" run each
# side.
load_once() {
  rm -f "$work/result"
  start_server "$work/out" "${on_server[@]}" "${server_command[@]}" 2> "$work/err"
  "${on_client[@]}" "$throng" load "$address" --cpus 1 -c "$2" -n "$3" --first-reply-timeout 20s --json \
    > "$work/result" || true
  jq -e --argjson n "$3" '.verified == $n' "$work/result" > /dev/null || {
    echo "$1 with $2 clients did not answer all $3 requests" >&2
    cat "$work/err" >&2
    end_server
    exit 1
  }
  # perf runs the server as its child; valgrind becomes it.
  if [ "${on_server[0]}" = perf ]; then
    kill -TERM "$(pgrep -o -P "$server")"
  else
    kill -TERM "$server"
  fi
  wait_until_ended 2> /dev/null # the shell would say that it was terminated
}

# wait_until_ended: for at most 60 s; then the server is killed.
wait_until_ended() {
  for try in $(seq 600); do
    kill -0 "$server" 2> /dev/null || break
    # Valgrind delivers no signal to a server that waits in io_uring_enter().
    if [ "$try" -gt 10 ] && [ "$(cat "/proc/$server/wchan" 2> /dev/null)" = io_cqring_wait ]; then
      callgrind_control -d "$server" > /dev/null 2>&1 || true
      break
    fi
    sleep 0.1
  done
  kill -KILL "$server" 2> /dev/null || true
  wait "$server" 2> /dev/null || true # a server without a handler ends by the signal
  server=
}

# perf_counts NAME CLIENTS REQUESTS: the events of the server, then those of the client.
perf_counts() {
  local on_server=(perf stat -x ';' -o "$work/server" -e "$events" --)
  local on_client=(perf stat -x ';' -o "$work/client" -e "$events" --)
  load_once "$@"
  awk -F ';' '/^[0-9]/ { printf "%s ", $1 }' "$work/server" "$work/client"
}

# valgrind_counts NAME CLIENTS REQUESTS: instructions in user space, server and client; the client's are 0 if
# `client_too` is empty, which is quicker.
valgrind_counts() {
  rm -f "$work"/callgrind.*
  local count=(valgrind --quiet --tool=callgrind --trace-children=yes)
  local on_server=("${count[@]}" --callgrind-out-file="$work/callgrind.server.%p")
  local on_client=("${count[@]}" --callgrind-out-file="$work/callgrind.client.%p")
  if [ -z "${client_too-1}" ]; then
    on_client=(env)
    echo "totals: 0" > "$work/callgrind.client.0"
  fi
  load_once "$@" 2> "$work/valgrind.err" || { cat "$work/valgrind.err" >&2; exit 1; }
  for side in server client; do
    cat "$work"/callgrind.$side.* | awk '/^totals:/ { sum += $2 } END { printf "%d ", sum }'
  done
}

# differences FEW MANY NUMBER: (many - few) / number, place by place.
differences() {
  echo "$1 $2" | awk -v n="$3" '{ half = NF / 2
    for (i = 1; i <= half; i++) printf "%.3f ", ($(half + i) - $i) / n }'
}

# per_request NAME CLIENTS: eight counts per request, "-" if unknown: instructions in user space, in the kernel, system
# calls, context switches of the server, and the same of the client.
per_request() {
  local few=$(($2 * 20)) more=$(($2 == 1 ? 20000 : 200000))
  local few_counts many_counts counts user
  few_counts=$(perf_counts "$1" "$2" $few)
  many_counts=$(perf_counts "$1" "$2" $((few + more)))
  counts=$(differences "$few_counts" "$many_counts" $more)
  if [ -z "$hardware" ]; then
    # Valgrind runs some fifty times slower, so fewer.
    more=20000
    few_counts=$(valgrind_counts "$1" "$2" $few)
    many_counts=$(valgrind_counts "$1" "$2" $((few + more)))
    user=$(differences "$few_counts" "$many_counts" $more)
    counts=$(echo "$user $counts" | awk '{ print $1, "-", $3, $4, $2, "-", $5, $6 }')
  fi
  echo "$counts"
}
