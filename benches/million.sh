#!/usr/bin/env bash
# A million clients of one load process, connected at once to one server on this machine, each
# served: how long it takes, and what each costs both sides in memory.
#
#   benches/million.sh [-n CLIENTS] [-m MODEL] [-d SECONDS] [-s BYTES] [-p PROTOCOL] [-l "LOAD FLAGS"] > table.md
#
# Both run in a network namespace of this script's own, so that what it sets there is gone with it.
# All clients rest after a first verified reply; then memory is read; then all send requests for some
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
protocol=echo
buckets=4194304
while getopts n:m:d:s:b:l:p: option; do
  case $option in
    n) clients=$OPTARG ;;
    m) model=$OPTARG ;;
    d) held=$OPTARG ;;
    s) size=$OPTARG ;;
    b) buckets=$OPTARG ;;
    l) load_flags=$OPTARG ;;
    p) protocol=$OPTARG ;;
    *) sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
need jq jq
need unshare util-linux
if [ -z "${own_namespace-}" ]; then
  build_throng
  # The table in which the kernel finds a connection has 262,144 places here; of the namespaces made
  # from another one it can be larger.
  export own_namespace=1 buckets
  # shellcheck disable=SC2016 # expanded in the namespace
  exec unshare --net -- sh -c '[ "$buckets" = 0 ] ||
    echo "$buckets" > /proc/sys/net/ipv4/tcp_child_ehash_entries
    exec unshare --net -- benches/million.sh "$@"' sh "$@"
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
slabs+='anon_vma_chain|ep_head|io_kiocb|tcp_bind_bucket|tcp_bind2_bucket|skbuff.*|kmalloc-.*) '

# look NAME: what the slabs, the sockets and both processes take now, and what they have used.
look() {
  awk -v slabs="$slabs" '$0 ~ slabs { print $1, $3 * $4 }' /proc/slabinfo > "$work/$1.slabs"
  awk '$1 == "TCP:" { print $11 * 4096 }' /proc/net/sockstat > "$work/$1.buffers"
  [ -z "$server" ] || side "$server" > "$work/$1.server"
  [ -z "$load" ] || side "$load" > "$work/$1.load"
  troubles > "$work/$1.troubles"
}

# side PROCESS: its proportional set size in bytes and its CPU time in microseconds.
side() {
  awk '/^Pss:/ { print $2 * 1024 }' "/proc/$1/smaps_rollup"
  awk -v tick="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1e6 / tick }' "/proc/$1/stat"
}

count_threads() { awk '/^Threads:/ { print $2 }' "/proc/$1/status"; }

# troubles: what TCP counted in this namespace that should not be.
troubles() {
  cat /proc/net/snmp /proc/net/netstat | awk '
    $1 != kind { kind = $1; split($0, names); next }
    { for (i = 2; i <= NF; i++)
        if (names[i] ~ /^(RetransSegs|AttemptFails|ListenOverflows|ListenDrops|TCPTimeouts|TCPMemoryPressures|TCPRcvQDrop|TCPReqQFullDrop)$/ && $i > 0)
          printf "%s%s %s", comma, names[i], $i, comma = ", " }
    END { print comma ? "" : "none" }'
}

# await PHASE SECONDS: until the load reports that phase.
await() {
  for _ in $(seq $(($2 * 10))); do
    ! grep -q "\"phase\":\"$1\"" "$work/events" || return 0
    kill -0 "$load" 2> /dev/null || break
    sleep 0.1
  done
  echo "the load did not come to $1:" >&2
  cat "$work/events" "$work/load.err" "$work/server.err" >&2
  exit 1
}

seconds() { date +%s.%N; }

look before
table=$(($(ulimit -Hn) - 32))
loops=$((clients * 13 / 12 / table + 1))
[ "$loops" -gt 2 ] || loops=2
start_server "$work/server.out" "$throng" serve "$model" --own-descriptors --workers "$loops" --backlog 65535 \
  --protocol "$protocol" --size "$size" --cpus 0 --listen 127.0.0.1:0 --drain 10s --json 2> "$work/server.err"
mkfifo "$work/word"
began=$(seconds)
sent=()
[ "$protocol" != echo ] || sent=(--size "$size")
# shellcheck disable=SC2086 # several flags
"$throng" load "$address" --protocol "$protocol" --clients "$clients" "${sent[@]}" --duration "${held}s" --cpus 1 \
  --controlled $load_flags < "$work/word" > "$work/events" 2> "$work/load.err" &
load=$!
exec 9> "$work/word"
await warm-up $((60 + clients / 5000))
settled=$(seconds)
threads="$(count_threads "$server") and $(count_threads "$load")"
sleep 1
look idle
echo >&9
await idle $((60 + held + clients / 5000))
look held
echo >&9
exec 9>&-
wait "$load" || { cat "$work/load.err" >&2; exit 1; }
load=
kill -TERM "$server"
wait "$server" || { cat "$work/server.err" >&2; exit 1; }
server=
tail -n 1 "$work/server.out" > "$work/counts"
tail -n 1 "$work/events" | jq .result > "$work/result"

# figure MOMENT SIDE LINE: the memory (1) or the CPU time (2) of a side at a moment.
figure() { sed -n "$3p" "$work/$1.$2"; }
# a_client VALUE: the value per client.
a_client() { awk -v sum="$1" -v n="$clients" 'BEGIN { printf "%.0f", sum / n }'; }
# cpu_a_reply SIDE: CPU time from the moment at which all rested to that at which all were done.
cpu_a_reply() {
  awk -v from="$(figure idle "$1" 2)" -v to="$(figure held "$1" 2)" -v n="$clients" \
    -v replies="$(jq .verified "$work/result")" 'BEGIN { printf "%.1f", (to - from) / (replies - n) }'
}
kernel() {
  awk -v n="$clients" 'NR == FNR { was[$1] = $2; next } { sum += $2 - was[$1] }
    END { printf "%.0f", sum / n / 2 }' "$work/before.slabs" "$work/$1.slabs"
}
megabytes() { awk '{ printf "%.1f", $1 / 1e6 }' "$1"; }

echo "$clients clients of one \`throng load\` on one \`throng serve $model\` of $loops loops" \
  "($threads threads), $protocol of $size bytes:"
echo
echo "| for each client | server | load |"
echo "|---|---:|---:|"
for moment in idle held; do
  echo "| user memory, bytes, $moment | $(a_client "$(figure $moment server 1)")" \
    "| $(a_client "$(figure $moment load 1)") |"
  echo "| kernel memory, bytes, mean of both ends, $moment | $(kernel $moment) | $(kernel $moment) |"
done
echo "| CPU time until served, us | $(a_client "$(figure idle server 2)")" \
  "| $(a_client "$(figure idle load 2)") |"
echo "| CPU time a reply from then on, us | $(cpu_a_reply server) | $(cpu_a_reply load) |"
echo
awk -v from="$began" -v to="$settled" -v n="$clients" \
  'BEGIN { printf "- all served after %.1f s: %.0f clients a second\n", to - from, n / (to - from) }'
echo "- socket buffers: $(megabytes "$work/idle.buffers") MB idle, $(megabytes "$work/held.buffers") MB held"
echo "- troubles of TCP until all were served: $(cat "$work/idle.troubles"); until the end of the" \
  "hold: $(cat "$work/held.troubles")"
jq -r --slurpfile counts "$work/counts" '
  ((.span.until_ns - .span.from_ns) / 1e9) as $held
  | $counts[0] as $server
  | "- \(.connected) connected, \(.served) served, errors \(.errors)",
    "- server: \($server.accepted) accepted, \($server.peak_open) at most at once, refused \($server.refused)",
    "- requests: \(.requests), verified \(.verified), counted by the server \($server.requests)",
    "- while held: \(.window_replies / $held | round) requests/s over \($held) s",
    "- clients of a loop: \([$server.workers[].clients] | "\(min) to \(max)")"
' "$work/result"
jq -e --slurpfile counts "$work/counts" --argjson n "$clients" '
  .served == $n and .errors == {} and .verified == .requests and $counts[0].requests == .requests
    and $counts[0].peak_open == $n' "$work/result" > /dev/null || {
  echo "not all were served as they should be" >&2
  exit 1
}
