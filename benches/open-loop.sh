#!/usr/bin/env bash
# How late an open loop sends at half of what its clients can do.
#
#   benches/open-loop.sh [-m "epoll ..."] [-c "50 1000"] [-a "constant poisson"] [-s SHARE]
#                        [-d TIME] [-r ROUNDS] [-l LOCK] > table.md
#
# In each round the ceiling is measured first, in a closed loop of as many clients. Then requests
# come due at a share of that rate. Lateness is the time from when a request was due to when it was
# sent: the generator's own error, unless there was no free client ("waited"). The server runs on CPU
# 0, the clients on CPU 1.
#
#   -m  models of throng [epoll]      -c  numbers of clients [50 1000]
#   -a  arrivals [constant poisson]   -s  share of the ceiling in percent [50]
#   -d  how long replies count [5s]   -r  rounds [3]
#   -l  lock file held during each load, if others measure on this machine too
#
# A small run: benches/open-loop.sh -c 50 -r 1 -d 1s -a poisson
#
# Needs jq and two CPUs. A p99.9 needs 10,000 requests; with fewer there is none ("-").
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,19s/^# \{0,1\}//p' "$0" >&2; exit 2; }

models=epoll client_counts="50 1000" arrivals="constant poisson" share=50 duration=5s rounds=3 lock=""
while getopts m:c:a:s:d:r:l: option; do
  case $option in
    m) models=$OPTARG ;;
    c) client_counts=$OPTARG ;;
    a) arrivals=$OPTARG ;;
    s) share=$OPTARG ;;
    d) duration=$OPTARG ;;
    r) rounds=$OPTARG ;;
    l) lock=$OPTARG ;;
    *) usage ;;
  esac
done
# shellcheck source=benches/lib.sh
. benches/lib.sh
need jq jq
[ -z "$lock" ] || need flock util-linux
build_throng
in_work_directory

# load_on MODEL CLIENTS RESULT OPTION...: one load on a server of its own.
load_on() {
  local model=$1 clients=$2 result=$3
  shift 3
  start_server "$work/out" "$throng" serve "$model" --listen 127.0.0.1:0 --cpus 0 --json
  [ -n "$address" ] || { echo "the server $model does not listen" >&2; exit 1; }
  locked "$throng" load "$address" --cpus 1 -c "$clients" -d "$duration" --json "$@" > "$result"
  kill -TERM "$server"
  wait "$server"
  server=
  jq -e '.errors == {} and .verified == .requests' "$result" > /dev/null || {
    echo "$model with $clients clients: not every request was answered:" >&2
    jq -c '{requests, verified, errors}' "$result" >&2
    exit 1
  }
}

echo "| model | clients | arrivals | round | ceiling, requests/s | asked for | answered | lateness p50, µs | p90 | p99 | p99.9 | longest | waited | never sent |"
echo "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for round in $(seq "$rounds"); do
  for model in $models; do
    for clients in $client_counts; do
      load_on "$model" "$clients" "$work/closed"
      ceiling=$(jq '.window.replies_per_s | floor' "$work/closed")
      rate=$((ceiling * share / 100))
      for arrival in $arrivals; do
        load_on "$model" "$clients" "$work/open" --rate "$rate" --arrival "$arrival"
        jq -r --arg model "$model" --arg arrival "$arrival" --argjson round "$round" \
          --argjson ceiling "$ceiling" --argjson rate "$rate" '
          def tenths: if . == null then "-" else . * 10 | round / 10 end;
          .lateness as $late
          | "| `\($model)` | \(.clients) | \($arrival) | \($round) | \($ceiling) | \($rate) |" +
            " \(.window.replies_per_s | round) | \($late.p50_us | tenths) |" +
            " \($late.p90_us | tenths) | \($late.p99_us | tenths) | \($late.p999_us | tenths) |" +
            " \($late.max_us | tenths) | \(.open_loop.waited) |" +
            " \(.open_loop.never_sent) |"' "$work/open"
      done
    done
  done
done
