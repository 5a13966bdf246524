#!/usr/bin/env bash
# Compares throng load with other load generators at the same work, one thread each.
#
#   benches/generators.sh check
#   benches/generators.sh rates        [-t "http-nginx http2x32-nginx ..."] [-c "50 500"] [-g "TOOL ..."]
#   benches/generators.sh instructions [-t "http-nginx echo"] [-c 50] [-g "TOOL ..."]
#   benches/generators.sh both-ends    [-t "echo http"] [-c "50 2000"] [-g "throng throng/io-uring"]
#   benches/generators.sh upload       [-c 50] [-g throng]
#   benches/generators.sh stall        [-c 50] [-R RATE] [-r ROUNDS] [-d 20s]
#   benches/generators.sh memory       [-c 50] [-n "100000 10000000"]
#
# check: which generators are here, their versions, and what to install for those that are not.
#
# rates: requests per second of the client's CPU, the server on CPU 0 and the generator on CPU 1,
# latencies recorded where the tool can. In each round all have their turn, in a random order, and
# ratios are taken within a round. Targets: http-nginx (one worker, 100 bytes), http and echo (both
# throng's epoll-et; redis's and neper's tools bring their own server to the echo of 1000 bytes).
#
# instructions: in user space and, where there are hardware counters, in the kernel, and system calls.
# both-ends: epoll and io_uring clients against epoll and io_uring servers.
# upload: GB/s of uploads of 10 MB.
# stall: response times and those of wrk2, against a server that stops for a while each second.
# memory: the most memory that throng load takes, by the number of requests.
#
# Over HTTP/2 without TLS, the targets http2, http2-nginx and http2-nghttpd have 1 stream per connection;
# http2x32, http2x32-nginx and http2x32-nghttpd have 32.
#
#   -c  numbers of clients       -r  rounds [7; stall 3]   -d  how long a trial lasts [2s; stall 20s]
#   -g  generators [all that are here]                     -t  targets [all]
#   -S  seed of the order [1]    -o  keep the trials as JSON lines in this file
#   -b  generator that the others are held against [throng; both-ends: throng on epoll]
#   -R  requests a second [2031] -n  numbers of requests
#   -l  lock file held during each trial, if others measure on this machine too
#
# Generators that are missing are left out, with the reason. They are looked for on the PATH.
# A small run: benches/generators.sh rates -t echo -c 50 -r 3 -g "throng c"
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,36s/^# \{0,1\}//p' "$0" >&2; exit 2; }

task=${1:-}
[ $# -gt 0 ] && shift
rounds=7 duration=2s seed=1 kept="" lock="" rate=2031 amounts="100000 10000000" base=throng
targets="http-nginx http echo" client_counts=50 generators=""
case $task in
  rates) client_counts="50 500" ;;
  instructions) targets="http-nginx echo" ;;
  both-ends) client_counts="50 2000" targets=echo generators="throng throng/io-uring" ;;
  upload) generators=throng ;;
  stall) rounds=3 duration=20s ;;
  memory | check) ;;
  *) usage ;;
esac
while getopts c:r:d:g:t:S:o:b:R:n:l: option; do
  case $option in
    c) client_counts=$OPTARG ;;
    r) rounds=$OPTARG ;;
    d) duration=$OPTARG ;;
    g) generators=$OPTARG ;;
    t) targets=$OPTARG ;;
    S) seed=$OPTARG ;;
    o) kept=$OPTARG ;;
    b) base=$OPTARG ;;
    R) rate=$OPTARG ;;
    n) amounts=$OPTARG ;;
    l) lock=$OPTARG ;;
    *) usage ;;
  esac
done
seconds=${duration%s}
[[ $seconds =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "a time is like 2s, not $duration" >&2; exit 2; }
# shellcheck source=benches/lib.sh
. benches/lib.sh
need python3 python3
need taskset util-linux
[ -z "$lock" ] || need flock util-linux
build_throng
in_work_directory
tools=benches/generators
make -k -s -C $tools/c > "$work/build" 2>&1 || cat "$work/build" >&2
make -s -C benches/peers/c load-io-uring > "$work/build" 2>&1 || true

# choose_generators TARGET: `chosen` are the generators for it that are here; the others are named
# with what they need.
choose_generators() {
  chosen=()
  # shellcheck disable=SC2086 # several names
  while IFS=$'\t' read -r name why; do
    if [ -z "$why" ]; then
      chosen+=("$name")
    else
      echo "$name is unavailable: $why" >&2
    fi
  done < <(python3 $tools/found.py choose "$1" "$throng" $generators)
}

check() {
  python3 $tools/found.py list "$throng"
}

# shuffled SEED NAME...: in an order that depends on the seed only.
shuffled() {
  python3 -c 'import random, sys
names = sys.argv[2:]
random.Random(sys.argv[1]).shuffle(names)
print(*names)' "$@"
}

# try ROUND CLIENTS TARGET TOOL SERVER NAME: one trial.
try() {
  locked python3 $tools/trial.py --round "$1" --clients "$2" --target "$3" --tool "$4" \
    --server "$5" --name "$6" --seconds "$seconds" "$throng" >> "$trials" ||
    echo "$6 with $2 clients failed: $(tail -n 1 "$trials")" >&2
}

# in_rounds TARGET CONTENDER...: a contender is a tool, or TOOL@MODEL with one of throng's servers.
in_rounds() {
  local target=$1
  shift
  for round in $(seq "$rounds"); do
    for clients in $client_counts; do
      echo "round $round of $rounds, $target, $clients clients" >&2
      for contender in $(shuffled "$seed.$target.$round.$clients" "$@"); do
        local model=${contender#*@}
        [ "$model" != "$contender" ] || model=epoll-et
        try "$round" "$clients" "$target" "${contender%@*}" "$model" "$contender"
      done
    done
  done
}

begin_trials() {
  trials=${kept:-$work/trials}
  : > "$trials"
}

rates() {
  begin_trials
  for target in $targets; do
    choose_generators "$target"
    in_rounds "$target" "${chosen[@]}"
  done
  python3 $tools/table.py "$trials" "$base"
}

both_ends() {
  begin_trials
  local contenders=()
  for target in $targets; do
    choose_generators "$target"
    contenders=()
    for client in "${chosen[@]}"; do
      for model in epoll-et io-uring; do
        contenders+=("$client@$model")
      done
    done
    in_rounds "$target" "${contenders[@]}"
  done
  [ "$base" != throng ] || base=${contenders[0]}
  python3 $tools/table.py "$trials" "$base"
}

upload() {
  begin_trials
  choose_generators upload
  in_rounds upload "${chosen[@]}"
  python3 $tools/table.py "$trials" "$base"
}

instructions() {
  need valgrind valgrind
  need perf linux-perf
  for target in $targets; do
    choose_generators "$target"
    echo "## $target"
    echo
    echo "| generator | clients | user instructions a request | readings of the clock | system calls | user + kernel instructions, hardware counters |"
    echo "|---|---:|---:|---:|---:|---:|"
    for clients in $client_counts; do
      for name in "${chosen[@]}"; do
        locked python3 $tools/count.py --target "$target" --clients "$clients" "$throng" "$name"
      done
    done
    echo
  done
}

case $task in
  check) check ;;
  rates) rates ;;
  instructions) instructions ;;
  both-ends) both_ends ;;
  upload) upload ;;
  stall)
    need wrk2 "none; build github.com/giltene/wrk2 and name its wrk wrk2"
    locked python3 $tools/stall.py --rate "$rate" --clients "$client_counts" --seconds "${seconds%.*}" \
      --rounds "$rounds" --seed "$seed" "$throng"
    ;;
  memory)
    # shellcheck disable=SC2086 # several numbers
    locked python3 $tools/memory.py --clients "$client_counts" "$throng" $amounts
    ;;
esac
exit
