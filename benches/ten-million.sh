#!/usr/bin/env bash
# Ten million echoes from every model, every byte checked, none lost.
#
#   benches/ten-million.sh [-n REQUESTS] [-c CLIENTS] [-m "epoll thread ..."] > table.md
#
# A model passes when the load verified every request, saw no error, and the server's own count is
# the same. One client at a time for models that serve no more. Needs jq and two CPUs.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh

requests=10000000
crowd=50
models=
while getopts n:c:m: option; do
  case $option in
    n) requests=$OPTARG ;;
    c) crowd=$OPTARG ;;
    m) models=$OPTARG ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
need jq jq
build_throng
[ -n "$models" ] || models=$(supported_models)
in_work_directory

failed=
echo "| model | clients | requests | verified | counted by the server | errors | bytes each way |"
echo "|---|---:|---:|---:|---:|---:|---:|"
for model in $models; do
  clients=$crowd
  "$throng" list models "$model" --json | jq -e '.limit | test("one client at a time")' > /dev/null &&
    clients=1
  start_server "$work/out" "$throng" serve "$model" --listen 127.0.0.1:0 --cpus 0 --json
  "$throng" load "$address" --cpus 1 -c "$clients" -n "$requests" --json > "$work/load" || true
  kill -TERM "$server"
  wait "$server"
  server=
  tail -n 1 "$work/out" > "$work/counts"
  jq -r --slurpfile counts "$work/counts" --arg model "$model" '
    $counts[0] as $server
    | "| `\($model)` | \(.clients) | \(.requests) | \(.verified) | \($server.requests) |" +
      " \([.errors[]] | add // 0) | \($server.bytes_in) = \($server.bytes_out) |"' "$work/load"
  jq -e --slurpfile counts "$work/counts" --argjson n "$requests" '
    .verified == $n and .requests == $n and .errors == {} and $counts[0].requests == $n
      and $counts[0].bytes_in == $counts[0].bytes_out' "$work/load" > /dev/null || failed="$failed $model"
done
[ -z "$failed" ] || { echo "wrong or lost:$failed" >&2; exit 1; }
