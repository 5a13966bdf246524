#!/usr/bin/env bash
# What dispatch through the protocol interface costs: user-space instructions of epoll-et for one
# echo, as it is and with `dispatch.patch`, which puts the session of echo into each connection by
# its type, so that the compiler may inline it.
#
#   benches/dispatch.sh [-c CLIENTS]
#
# Needs git, jq, valgrind and two CPUs; builds throng a second time.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh

clients=50
while getopts c: option; do
  case $option in
    c) clients=$OPTARG ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
need jq jq
need valgrind valgrind
build_throng
as_it_is=$PWD/$throng
in_work_directory
trap 'end_server; git worktree remove --force "$work/static"; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/static" HEAD
git -C "$work/static" apply benches/dispatch.patch
CARGO_TARGET_DIR="$work/target" cargo build --release --quiet --manifest-path "$work/static/Cargo.toml"

# user_instructions BINARY: of the server, for one request.
user_instructions() {
  throng=$1
  client_too=
  serve_model epoll-et "$clients"
  local few=$((clients * 20)) more=20000 few_counts many_counts
  few_counts=$(valgrind_counts epoll-et "$clients" $few)
  many_counts=$(valgrind_counts epoll-et "$clients" $((few + more)))
  differences "$few_counts" "$many_counts" $more
}

through=$(user_instructions "$as_it_is")
direct=$(user_instructions "$work/target/release/throng")
echo "$through $direct" | awk '{
  printf "through the interface %.0f, by type %.0f: dispatch costs %.0f instructions\n", $1, $3, $1 - $3 }'
