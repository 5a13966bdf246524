#!/usr/bin/env bash
# Clients that come, ask once and go: how many a second each engine of throng load gets through, and
# what a client costs it.
#
#   benches/jobs.sh [-n CLIENTS] [-a AT-ONCE] [-r ROUNDS] [-m MODEL]
#
# The server is on CPU 0 and the clients, one thread of them, on CPU 1. In each round both engines have
# their turn, in a random order, and ratios are taken within a round; printed are their medians, with the
# least and the greatest.
#
#   -n  clients of a load [20000]       -a  of them at once [500]
#   -r  rounds [7]                      -m  model that serves [epoll]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh

usage() { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }

clients=20000 at_once=500 rounds=7 model=epoll
while getopts n:a:r:m: option; do
  case $option in
    n) clients=$OPTARG ;;
    a) at_once=$OPTARG ;;
    r) rounds=$OPTARG ;;
    m) model=$OPTARG ;;
    *) usage ;;
  esac
done
need jq jq
build_throng
in_work_directory

# jobs ENGINE: clients a second, CPU time of the load for each in microseconds.
jobs() {
  start_server "$work/server" "$throng" serve "$model" --listen 127.0.0.1:0 --cpus 0 --json 2> "$work/err"
  "$throng" load "$address" --each 1 --clients "$clients" --at-once "$at_once" --engine "$1" \
    --cpus 1 --threads 1 --json > "$work/$1.json"
  kill "$server"
  wait "$server" || true
  server=
  jq -r '[.completion.clients_per_s, .cpu_s * 1e6 / .clients] | @tsv' "$work/$1.json"
}

for round in $(seq "$rounds"); do
  for engine in $(printf 'epoll\nio-uring\n' | shuf); do
    printf '%s\t%s\t%s\n' "$round" "$engine" "$(jobs "$engine")"
  done
done | tee "$work/trials" >&2

# summary NAME COLUMN: the median of a column for both engines, and of their ratio.
summary() {
  awk -v name="$1" -v column="$2" '
    function median(values, count,   i, j, kept) {
      for (i = 2; i <= count; i++) {
        kept = values[i]
        for (j = i - 1; j > 0 && values[j] > kept; j--) values[j + 1] = values[j]
        values[j + 1] = kept
      }
      return count % 2 ? values[(count + 1) / 2] : (values[count / 2] + values[count / 2 + 1]) / 2
    }
    { value[$1, $2] = $column; if ($1 > rounds) rounds = $1 }
    END {
      for (r = 1; r <= rounds; r++) {
        one[r] = value[r, "epoll"]; two[r] = value[r, "io-uring"]; ratio[r] = two[r] / one[r]
      }
      middle = median(ratio, rounds)
      printf "%s: epoll %.4g, io-uring %.4g, io-uring over epoll %.3f (%.3f to %.3f)\n", name,
        median(one, rounds), median(two, rounds), middle, ratio[1], ratio[rounds]
    }' "$work/trials"
}
summary "clients a second" 3
summary "CPU time of the load for a client, µs" 4
