#!/usr/bin/env bash
# How fast captures are read: `throng flows`, `tshark -q -z conv,tcp` and `capinfos`, on the same file.
# What counts is CPU time, for each runs in one thread (nearly: tshark), and others may use the machine.
# Usage: benches/flows.sh FILE.pcap [RUNS]; without a file, one of a load over loopback is made (needs tcpdump
# and the right to capture).
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${2:-3}
cargo build --release --locked --quiet
throng=${CARGO_TARGET_DIR:-target}/release/throng
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

file=${1:-}
if [ -z "$file" ]; then
  "$throng" run --models epoll --clients 100 --runs 1 --duration 15s --control none --no-ceiling \
    --probes capture -o "$work/run" > /dev/null
  file=$(echo "$work"/run/captures/*.pcap)
fi
packets=$("$throng" flows "$file" --json --limit 0 | python3 -c 'import json, sys; print(json.load(sys.stdin)["capture"]["packets"])')
cat "$file" > /dev/null # so that it is in the page cache
echo "$packets packets, $(stat -c %s "$file") bytes; best of $runs"

measure() { # NAME COMMAND...
  name=$1
  shift
  command -v "$1" > /dev/null || { echo "$name: not installed"; return; }
  for _ in $(seq "$runs"); do
    python3 - "$@" << 'PYTHON'
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
assert status == 0, sys.argv
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
PYTHON
  done | sort -n | head -1 | awk -v name="$name" -v packets="$packets" \
    '{ printf "%-28s %7.2f CPU s %12.0f packets/CPU s %8.1f MiB\n", name, $1, packets / $1, $2 / 1024 }'
}

measure "throng flows" "$throng" flows "$file"
measure "throng flows --csv" "$throng" flows "$file" --csv
measure "capinfos (headers of packets)" capinfos "$file"
measure "tcptrace" tcptrace -l "$file"
measure "tshark -q -z conv,tcp" tshark -q -r "$file" -z conv,tcp
