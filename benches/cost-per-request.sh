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

client_counts="1 100 1000"
models=""
while getopts c:m: option; do
  case $option in
    c) client_counts=$OPTARG ;;
    m) models=$OPTARG ;;
    *) sed -n '2,16s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
# shellcheck source=benches/lib.sh
. benches/lib.sh
need jq jq
choose_events
build_throng
[ -n "$models" ] || models=$(supported_models)
in_work_directory

echo "| model | clients | server: instructions in user space | in the kernel | system calls | context switches | client: instructions in user space | in the kernel | system calls | context switches |"
echo "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for model in $models; do
  for clients in $client_counts; do
    serve_model "$model" "$clients"
    counts=$(per_request "$model" "$clients")
    echo "$counts" | awk -v model="$model" -v clients="$clients" '
      function whole(value) { return value == "-" ? "-" : sprintf("%.0f", value) }
      { printf "| `%s` | %d | %s | %s | %.2f | %.2f | %s | %s | %.2f | %.2f |\n", model, clients,
          whole($1), whole($2), $3, $4, whole($5), whole($6), $7, $8 }'
  done
done
