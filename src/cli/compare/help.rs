//! What `throng compare --help` says at its end.

use crate::cli::exit::all_codes;
use crate::record::Purpose;
use crate::record::format::list;
use crate::record::metrics::{Combine, METRICS, Metric};

const EXAMPLES: &str = "\
Examples:
  throng compare epoll thread
  throng measure http://127.0.0.1:8080/users
  throng measure 'node server.js {port}' --path /users --fail-if 'p99 > 10ms'
  throng compare 'node server.js {port}' 'python3 app.py --port {port}' --clients 10,200
  throng compare 'epoll-et --backlog 128' epoll-et --protocol echo --size 16kB
  throng compare --shell --prepare 'sed s/PORT/$PORT/ nginx.conf.in > /tmp/nginx.conf' \\
      'nginx -c /tmp/nginx.conf' epoll --path /index.html
  throng compare './old {port}' './new {port}' -n old -n new --fail-if-slower 5% --fail-if 'p99 > 10ms'
  throng compare './new {port}' -n server --baseline results/last-week --fail-if-slower 5%
  throng compare 'redis-server --port {port}' 'valkey-server --port {port}' \\
      --send 'PING\\r\\n' --expect 'text:+PONG\\r\\n'";

// Terminals differ in width, so lines are broken when it is known.
const SERVERS: &str = "\
    A server is a model (`throng list models`), a model with options of `throng serve`, or a command \
    line that takes its port from {port} or {address} (127.0.0.1:PORT) in it, or from PORT in its \
    environment; {port2} to {port9} are further free ports, and {socket} is the path of a unix socket to listen on instead. A command that is called like a model needs its \
    path: ./epoll. It stays in the foreground, is ready when it accepts a connection (or when --ready says \
    so), and is ended with all it started by SIGTERM (--stop-signal), after 30 s (--stop-timeout) by SIGKILL. A \
    server that runs already is named by its address, and left as it is. With --method trials each trial starts it afresh, \
    and trials of all servers are mixed in a random order.";

/// Examples, what a server is, and what a condition may name.
pub(super) fn text() -> String {
    [EXAMPLES, SERVERS, &conditions(), &all_codes()].join("\n\n")
}

fn conditions() -> String {
    let names = |wanted: &dyn Fn(&Metric) -> bool| -> Vec<&str> {
        let metrics = METRICS.iter().filter(|metric| wanted(metric));
        metrics.map(|metric| metric.name).collect()
    };
    let timed = names(&|metric| metric.purpose == Purpose::Timed);
    let summed = names(&|metric| metric.combine == Combine::Sum);
    let greatest = names(&|metric| metric.combine == Combine::Greatest);
    format!(
        "Conditions of --fail-if: METRIC OPERATOR VALUE, of every server or NAME:METRIC ... Metrics are \
         {}, and those of profiled and captured trials; `throng list metrics` explains them all. \
         Operators are > >= < <=; times and sizes have units. The median over trials is judged; {} are \
         added up, and of {} the worst trial is judged.",
        timed.join(", "),
        list(&summed),
        list(&greatest),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_names_every_metric_of_timed_trials() {
        let text = text();
        for metric in METRICS.iter().filter(|metric| metric.purpose.is_timed()) {
            assert!(text.contains(metric.name), "{}", metric.name);
        }
    }
}
