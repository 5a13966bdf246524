#!/usr/bin/env bash
# Instructions, system calls and context switches per request, on both sides, for each model.
#
#   benches/cost-per-request.sh [-c "1 100 1000"] [-m "epoll thread ..."] > table.md
#
# Each figure is a difference: the same load is run with few and with many requests, and what the
# many cost more is divided by how many more they are. So starting, connecting and ending, which
# both have, do not count. Counting slows both sides down, so nothing here is a time.
#
# Instructions come from the processor's counters where perf can read them. Where it cannot, as in
# many virtual machines, those in user space are counted by valgrind (callgrind) in runs of their
# own, and those in the kernel stay unknown ("-").
#
# Needs perf (Debian: linux-perf), jq, two CPUs, the right to count system calls (root, with
# tracefs mounted at /sys/kernel/tracing), and valgrind where there are no hardware counters.
set -euo pipefail
cd "$(dirname "$0")/.."

crowds="1 100 1000"
models=""
while getopts c:m: option; do
  case $option in
    c) crowds=$OPTARG ;;
    m) models=$OPTARG ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
for program in perf jq cargo; do
  command -v $program > /dev/null || { echo "$program is missing" >&2; exit 1; }
done
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
  command -v valgrind > /dev/null || { echo "valgrind is missing" >&2; exit 1; }
fi
cargo build --release --quiet
throng=target/release/throng
[ -n "$models" ] || models=$($throng list models --json | jq -r '.[] | select(.supported) | .name')
work=$(mktemp -d)
server=
trap 'if [ -n "$server" ]; then kill "$server" 2> /dev/null || true; fi; rm -rf "$work"' EXIT

# load_once MODEL CROWD REQUESTS: one load; "${on_server[@]}" and "${on_client[@]}" run each side.
load_once() {
  rm -f "$work"/{out,result}
  touch "$work/out"
  # No more workers than clients: idle ones all wake for each client that comes, which differs
  # from run to run by more than a request costs.
  "${on_server[@]}" $throng serve "$1" --listen 127.0.0.1:0 --cpus 0 --json --drain 30s \
    --workers $(($2 < 100 ? $2 : 100)) > "$work/out" &
  server=$!
  local address=
  for _ in $(seq 200); do
    address=$(sed -n 's/listening on \([^ ]*\).*/\1/p' "$work/out")
    [ -n "$address" ] && break
    sleep 0.05
  done
  "${on_client[@]}" $throng load "$address" --cpus 1 -c "$2" -n "$3" --patience 20s --json \
    > "$work/result" || true
  jq -e --argjson n "$3" '.verified == $n' "$work/result" > /dev/null || {
    echo "$1 with $2 clients did not answer all $3 requests" >&2
    exit 1
  }
  # perf runs the server as its child; valgrind becomes it.
  local child
  child=$(pgrep -o -P $server -f "serve $1" || true)
  if [ "${on_server[0]}" = perf ]; then kill -TERM "$child"; else kill -TERM $server; fi
  wait $server
  server=
}

# perf_counts MODEL CROWD REQUESTS: the events of the server, then those of the client.
perf_counts() {
  local on_server=(perf stat -x, -o "$work/server" -e $events --)
  local on_client=(perf stat -x, -o "$work/client" -e $events --)
  load_once "$@"
  awk -F, '/^[0-9]/ { printf "%s ", $1 }' "$work/server" "$work/client"
}

# valgrind_counts MODEL CROWD REQUESTS: instructions in user space, server and client.
valgrind_counts() {
  rm -f "$work"/callgrind.*
  local count=(valgrind --quiet --tool=callgrind --trace-children=yes)
  local on_server=("${count[@]}" --callgrind-out-file="$work/callgrind.server.%p")
  local on_client=("${count[@]}" --callgrind-out-file="$work/callgrind.client.%p")
  load_once "$@" 2> "$work/valgrind.err" || { cat "$work/valgrind.err" >&2; exit 1; }
  for side in server client; do
    cat "$work"/callgrind.$side.* | awk '/^totals:/ { sum += $2 } END { printf "%d ", sum }'
  done
}

# differences FEW MANY: (many - few) / number, place by place.
differences() {
  echo "$1 $2" | awk -v n="$3" '{ half = NF / 2
    for (i = 1; i <= half; i++) printf "%.3f ", ($(half + i) - $i) / n }'
}

echo "| model | clients | server: instructions in user space | in the kernel | system calls | context switches | client: instructions in user space | in the kernel | system calls | context switches |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for model in $models; do
  for crowd in $crowds; do
    few=$((crowd * 20))
    more=$((crowd == 1 ? 20000 : 200000))
    few_counts=$(perf_counts "$model" "$crowd" $few)
    many_counts=$(perf_counts "$model" "$crowd" $((few + more)))
    per_request=$(differences "$few_counts" "$many_counts" $more)
    if [ -z "$hardware" ]; then
      # Valgrind runs some fifty times slower, so fewer.
      more=20000
      few_counts=$(valgrind_counts "$model" "$crowd" $few)
      many_counts=$(valgrind_counts "$model" "$crowd" $((few + more)))
      user=$(differences "$few_counts" "$many_counts" $more)
      per_request=$(echo "$user $per_request" |
        awk '{ print $1, "-", $3, $4, $2, "-", $5, $6 }')
    fi
    echo "$per_request" | awk -v model="$model" -v crowd="$crowd" '
      function whole(value) { return value == "-" ? "-" : sprintf("%.0f", value) }
      { printf "| `%s` | %d | %s | %s | %.2f | %.2f | %s | %s | %.2f | %.2f |\n", model, crowd,
          whole($1), whole($2), $3, $4, whole($5), whole($6), $7, $8 }'
  done
done
