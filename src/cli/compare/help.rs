//! The beginning and the end of `throng compare --help`.

use crate::cli::exit::all_codes;

const EXAMPLES: &str = "\
Examples:
  throng compare 'node server.js {port}' 'python3 app.py --port {port}'
  throng compare http://127.0.0.1:8080/users http://127.0.0.1:8081/users
  throng compare epoll thread --clients 10,200
  throng compare './old {port}' './new {port}' -n old -n new \\
      --fail-if-slower 5% --fail-if 'p99 > 10ms'
  throng compare './new {port}' -n server \\
      --baseline results/last-week --fail-if-slower 5%
  throng measure http://127.0.0.1:8080/users
  throng measure 'node server.js {port}' --path /users --fail-if 'p99 > 10ms'
  throng compare 'epoll-et --backlog 128' epoll-et --protocol echo --size 16kB
  throng compare 'redis-server --port {port}' 'valkey-server --port {port}' \\
      --send 'PING\\r\\n' --expect 'text:+PONG\\r\\n'
  throng compare 'nginx -c /tmp/nginx.conf' epoll --path /index.html --shell \\
      --prepare 'sed s/PORT/$PORT/ nginx.conf.in > /tmp/nginx.conf'";

// Terminals differ in width, so lines are wrapped at runtime.
const SERVERS: &str = "\
    A server is a model (`throng list models`), optionally with options of `throng serve`, or a command, or the address \
    of a running server. A command gets its port from {port} or {address} (127.0.0.1:PORT), or from the environment \
    variable PORT. {port2} to {port9} are further free ports; {socket} is the path of a unix socket to listen on. Write \
    ./epoll for a program with the name of a model.

\
    A command must stay in the foreground. It is ready when it accepts a connection, or as --ready says. It is stopped \
    with SIGTERM (--stop-signal), and killed after 30 s (--stop-timeout), with everything it started. Running servers \
    are not changed. With --method trials, each trial starts its server, and trials run in random order.";

const CONDITIONS: &str = "\
    Conditions of --fail-if: METRIC OPERATOR VALUE for every server, or NAME:METRIC OPERATOR VALUE for one. Operators are \
    > >= < <=. Times and sizes need units. The median over trials or slices counts, unless `throng list metrics` says sum \
    or worst.";

/// What the command does, and examples.
pub(in crate::cli) fn about() -> String {
    ["Compare servers under one load, or measure one", EXAMPLES].join("\n\n")
}

/// How servers are named, conditions, and exit codes.
pub(super) fn text() -> String {
    [SERVERS, CONDITIONS, &all_codes()].join("\n\n")
}
