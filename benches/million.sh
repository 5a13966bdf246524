#!/usr/bin/env bash
# A million clients of one load process, connected at once to one server on this machine, each
# served: how long it takes, and what each costs both sides in memory.
#
#   benches/million.sh [-n CLIENTS] [-m MODEL] [-d SECONDS] [-s BYTES] [-l "LOAD FLAGS"] > table.md
#
# Both run in a network namespace of this script's own, so that what it sets there is gone with it.
# Everybody rests after a first verified echo; then the memory is looked at; then all ask for some
# seconds; then it is looked at again. A descriptor table holds `ulimit -Hn` descriptors at most, so
# the server has as many loops, each with its own, as hold all clients with a twelfth to spare: the
# kernel deals clients out by a hash, and not evenly. Kernel memory is that of the slabs that grow
# with sockets, so other work on the machine blurs it a little; it is the same for both ends of a
# connection, since each has a socket, a file and a place in an epoll set.
#
# Needs root, jq, two CPUs, and about 9 GB of memory for a million.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh

clients=1000000
model=reactors
held=10
size=1000
load_flags=
while getopts n:m:d:s:l: option; do
  case $option in
    n) clients=$OPTARG ;;
    m) model=$OPTARG ;;
    d) held=$OPTARG ;;
    s) size=$OPTARG ;;
    l) load_flags=$OPTARG ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
need jq jq
need unshare util-linux
if [ -z "${own_namespace-}" ]; then
  build_throng
  own_namespace=1 exec unshare --net -- "benches/million.sh" "$@"
fi
throng=${CARGO_TARGET_DIR:-target}/release/throng
ip link set lo up
# Clients come faster than the server takes them in for moments, and a SYN that finds the queue full
# is sent again only after a second.
echo 65535 > /proc/sys/net/core/somaxconn

work=$(mktemp -d)
server=
load=
end_all() {
  for child in $load $server; do kill "$child" 2> /dev/null || true; done
  for child in $load $server; do wait "$child" 2> /dev/null || true; done
  rm -rf "$work"
}
trap end_all EXIT

# The slabs that grow with connections. The kernel puts kinds of the same size together under the
# name of one of them, so here are also kinds that have nothing to do with sockets.
slabs='^(TCP|sock_inode_cache|dentry|filp|lsm_file_cache|lsm_inode_cache|eventpoll_epi|eventpoll_pwq|'
slabs+='anon_vma_chain|ep_head|tcp_bind_bucket|tcp_bind2_bucket|skbuff.*|kmalloc-.*) '

# look NAME: what the slabs, the sockets, and both processes take now.
look() {
  awk -v slabs="$slabs" '$0 ~ slabs { print $1, $3 * $4 }' /proc/slabinfo > "$work/$1.slabs"
  awk '$1 == "TCP:" { print $11 * 4096 }' /proc/net/sockstat > "$work/$1.buffers"
  # Files and their numbers in tables: what a descriptor costs beside its slab objects.
  [ -z "$server" ] || pss "$server" > "$work/$1.server"
  [ -z "$load" ] || pss "$load" > "$work/$1.load"
}

pss() { awk '/^Pss:/ { print $2 * 1024 }' "/proc/$1/smaps_rollup"; }

# await PHASE SECONDS: until the load says that it is in that phase.
await() {
  for _ in $(seq $(($2 * 10))); do
    ! grep -q "\"phase\":\"$1\"" "$work/told" || return 0
    kill -0 "$load" 2> /dev/null || break
    sleep 0.1
  done
  echo "the load did not come to $1:" >&2
  cat "$work/told" "$work/load.err" "$work/server.err" >&2
  exit 1
}

seconds() { date +%s.%N; }

look before
table=$(($(ulimit -Hn) - 32))
loops=$((clients * 13 / 12 / table + 1))
[ "$loops" -gt 2 ] || loops=2
"$throng" serve "$model" --own-descriptors --workers "$loops" --backlog 65535 --size "$size" --cpus 0 --listen 127.0.0.1:0 \
  --drain 10s --json > "$work/server.out" 2> "$work/server.err" &
server=$!
address=
for _ in $(seq 200); do
  address=$(sed -n 's/listening on \([^ ]*\).*/\1/p' "$work/server.out")
  [ -n "$address" ] && break
  sleep 0.05
done
mkfifo "$work/word"
began=$(seconds)
# shellcheck disable=SC2086 # several flags
"$throng" load "$address" --clients "$clients" --size "$size" --duration "${held}s" --cpus 1 \
  --controlled $load_flags < "$work/word" > "$work/told" 2> "$work/load.err" &
load=$!
exec 9> "$work/word"
await warm-up $((60 + clients / 5000))
settled=$(seconds)
threads="$(ls "/proc/$server/task" | wc -l) and $(ls "/proc/$load/task" | wc -l)"
sleep 1
look idle
echo >&9
await hold $((60 + held + clients / 5000))
look held
echo >&9
exec 9>&-
wait "$load" || { cat "$work/load.err" >&2; exit 1; }
load=
kill -TERM "$server"
wait "$server" || { cat "$work/server.err" >&2; exit 1; }
server=
tail -n 1 "$work/server.out" > "$work/counts"
tail -n 1 "$work/told" > "$work/result"

# per_client FROM TO: bytes a client that a file of single figures grew by.
per_client() {
  awk -v n="$clients" 'NR == FNR { was = $1; next } { printf "%.0f", ($1 - was) / n }' "$1" "$2"
}
kernel() {
  awk -v n="$clients" 'NR == FNR { was[$1] = $2; next } { sum += $2 - was[$1] }
    END { printf "%.0f", sum / n / 2 }' "$work/before.slabs" "$work/$1.slabs"
}
echo 0 > "$work/nothing"
echo "$clients clients of \`throng load\`, $model with $loops loops ($threads threads), echo of $size bytes"
echo
echo "| | server | load |"
echo "|---|---:|---:|"
for moment in idle held; do
  echo "| user memory a client, bytes, $moment | $(per_client "$work/nothing" "$work/$moment.server") |" \
    "$(per_client "$work/nothing" "$work/$moment.load") |"
  echo "| kernel memory a client, bytes, $moment | $(kernel $moment) | $(kernel $moment) |"
  echo "| socket buffers of both, MB, $moment | $(awk '{ printf "%.1f", $1 / 1e6 }' "$work/$moment.buffers") | |"
done
echo
awk -v from="$began" -v to="$settled" -v n="$clients" \
  'BEGIN { printf "All connected and served after %.1f s: %.0f clients a second.\n", to - from, n / (to - from) }'
jq -r --slurpfile counts "$work/counts" '
  def s: . / 1e6 * 1000 | round / 1000;
  $counts[0] as $server
  | "Clients: \(.connected) connected, \(.served) served, \(.never_served) never served; errors \(.errors).",
    "Server: \($server.accepted) accepted, \($server.peak_open) at most at once, refused \($server.refused).",
    "Requests: \(.requests), verified \(.verified), counted by the server \($server.requests).",
    "Connect time: median \(.connect_time.p50_us | s) s, 99 % \(.connect_time.p99_us | s) s, longest \(.connect_time.max_us | s) s.",
    "First answer: median \(.first_answer.p50_us | s) s, 99 % \(.first_answer.p99_us | s) s, longest \(.first_answer.max_us | s) s.",
    "While held: \(.window.replies_per_s | round) replies/s over \(.window.duration_s) s, slices \(.window.slices).",
    "Clients in the fullest and the emptiest loop: \([$server.workers[].clients] | max), \([$server.workers[].clients] | min).",
    "TCP buffers, drops and retransmissions, from the namespace: \($netstat)"
' --arg netstat "$(awk '/^Tcp:/ { if (!names) names = $0; else { split(names, n); split($0, v);
    for (i in n) if (n[i] == "RetransSegs") printf "RetransSegs %s ", v[i] } }' /proc/net/snmp
    awk '/^TcpExt:/ { if (!m) { m = split($0, n); next } split($0, v); for (i = 2; i <= m; i++)
      if (n[i] ~ /^(ListenOverflows|ListenDrops|TCPTimeouts|TCPRcvQDrop|TCPMemoryPressures|PruneCalled|TCPTimeWaitOverflow|TCPReqQFullDrop)$/) printf "%s %s ", n[i], v[i] }' /proc/net/netstat)" "$work/result"
jq -e --slurpfile counts "$work/counts" --argjson n "$clients" '
  .served == $n and .errors == {} and $counts[0].requests == .requests' "$work/result" > /dev/null
