#!/usr/bin/env bash
# What the probes of timed trials cost: replies a second with all of them, over replies without any.
#
#   benches/probes.sh [-c "1 50 2000"] [-m epoll] [-n ROUNDS] [-d 2s] > table.md
#
# `throng run` is run in turn with `--probes none` and with the timed probes, one trial each, the first
# of a pair by turns, so that a machine that grows slower meanwhile does so for both. A ratio below 1
# is what measuring takes. The interval is that of the median over pairs: the ranks that a fair coin
# gives at 95 %, so it needs 6 rounds or more.
#
# Needs jq, python3 and two CPUs. Nothing else may load the machine.
set -euo pipefail
cd "$(dirname "$0")/.."

crowds="1 50 2000"
model=epoll
rounds=10
duration=2s
while getopts c:m:n:d: option; do
  case $option in
    c) crowds=$OPTARG ;;
    m) model=$OPTARG ;;
    n) rounds=$OPTARG ;;
    d) duration=$OPTARG ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
# shellcheck source=benches/lib.sh
. benches/lib.sh
need jq jq
need python3 python3
build_throng
in_work_directory
timed=cpu,memory,switches,established,accept-queue,tcp,machine

# rate PROBES CROWD: replies a second, and milliseconds of CPU that the probes took in the window.
rate() {
  rm -rf "$work/record"
  "$throng" run --models "$model" --clients "$2" --repeats 1 --duration "$duration" \
    --control none --no-ceiling --probes "$1" -o "$work/record" --json > "$work/summary" 2> "$work/err" || { cat "$work/err" >&2; exit 1; }
  jq -r 'select((.purpose // "timed") == "timed")
    | [.load.window.replies_per_s,
       ([.server_side, .client_side, .network | .probe_cost_ms? // 0] | add)
         / .load.window.duration_s / 10]
    | @tsv' "$work/record/trials.jsonl"
}

echo "| clients | pairs | replies/s without | replies/s with | ratio, median (95 %) | probes' own CPU, % of one |"
echo "|---:|---:|---:|---:|---:|---:|"
for crowd in $crowds; do
  : > "$work/pairs"
  for round in $(seq "$rounds"); do
    if [ $((round % 2)) = 0 ]; then
      without=$(rate none "$crowd"); with=$(rate "$timed" "$crowd")
    else
      with=$(rate "$timed" "$crowd"); without=$(rate none "$crowd")
    fi
    echo "$without $with" >> "$work/pairs"
  done
  python3 - "$crowd" "$work/pairs" <<'PYTHON'
import math, statistics, sys
pairs = [list(map(float, line.split())) for line in open(sys.argv[2])]
without = [pair[0] for pair in pairs]
with_ = [pair[2] for pair in pairs]
ratios = sorted(b / a for a, b in zip(without, with_))
count = len(ratios)
# The lowest rank whose tail of a fair coin is no more than 2.5 %.
rank, tail = 0, 0.0
while rank < count // 2:
    tail += math.comb(count, rank) / 2**count
    if tail > 0.025:
        break
    rank += 1
told = f"{ratios[rank - 1]:.3f}–{ratios[count - rank]:.3f}" if rank else "too few pairs"
print(f"| {int(sys.argv[1]):,} | {count} | {statistics.median(without):,.0f} | {statistics.median(with_):,.0f} "
      f"| {statistics.median(ratios):.3f} ({told}) | {statistics.median(pair[3] for pair in pairs):.2f} |")
PYTHON
done
