#!/usr/bin/env bash
# User-space memory of a server for each idle client, for every model.
#
#   benches/memory-per-client.sh [-c "100 2000"] [-m "epoll thread ..."] [-r REPEATS] > table.md
#
# The server's whole process tree is measured (proportional set size) while all clients are
# connected, have been served, and say nothing. The difference between few and many clients,
# divided by the clients between them, leaves out what a server needs without any. Memory that the
# kernel keeps for a socket, a thread or a process is not in these figures.
#
# Needs jq.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=benches/lib.sh
. benches/lib.sh

client_counts="100 2000"
models=
repeats=3
while getopts c:m:r: option; do
  case $option in
    c) client_counts=$OPTARG ;;
    m) models=$OPTARG ;;
    r) repeats=$OPTARG ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
need jq jq
build_throng
[ -n "$models" ] || models=$(supported_models)
in_work_directory

# commas WORD...: the words with commas between them.
commas() { local IFS=,; echo "$*"; }

# shellcheck disable=SC2086 # lists of words are meant to be split
"$throng" run --models "$(commas $models)" --clients "$(commas $client_counts)" \
  --runs "$repeats" --duration 200ms --warm-up 100ms -o "$work/run" --json > "$work/summary"

echo "| model | bytes for each idle client | all of it with few clients, MB | with many, MB | processes | threads |"
echo "|---|---:|---:|---:|---:|---:|"
jq -r '
  def mb: . / 1e6 * 100 | round / 100;
  .servers[] as $server
  | [.rows[] | select(.server == $server)] | sort_by(.clients) | [first, last] as [$few, $many]
  | ($many.clients - $few.clients) as $more
  | if $few.served_all and $many.served_all
    then (($many.metrics.server_pss_bytes.value - $few.metrics.server_pss_bytes.value) / $more | round)
    else "- (does not serve all at once)" end
  | "| `\($server)` | \(.) | \($few.metrics.server_pss_bytes.value | mb) | \($many.metrics.server_pss_bytes.value | mb)" +
    " | \($many.metrics.server_processes.value) | \($many.metrics.server_threads.value) |"
' "$work/summary"
