//! Messages of servers that fail or reject clients, and what they mean: one line of [`KNOWN`] each.
//!
//! They are searched in a server's output, in its log files, and in its replies to clients that it rejects.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use throng_protocol::Pattern;
use throng_record::ServerMessage;

/// Maximum bytes examined per line.
const MOST_BYTES: usize = 2000;
/// Maximum characters kept per line.
const MOST_CHARS: usize = 300;

/// A known message.
struct KnownMessage {
    /// The regular expression that its lines match.
    pattern: &'static str,
    /// The program that prints it.
    program: &'static str,
    /// Its subject. It is evidence for a sign of this kind.
    kind: &'static str,
    /// Its meaning, which calls the program "it". `{}` stands for the number in the line in front of `number_by`.
    cause: &'static str,
    number_by: &'static str,
    /// What to change.
    remedy: &'static str,
}

const fn known(
    program: &'static str,
    pattern: &'static str,
    kind: &'static str,
    (cause, number_by): (&'static str, &'static str),
    remedy: &'static str,
) -> KnownMessage {
    KnownMessage {
        pattern,
        program,
        kind,
        cause,
        number_by,
        remedy,
    }
}

/// A configured limit of connections; file descriptors (RLIMIT_NOFILE); the heap of a runtime; blocked workers.
const CONNECTIONS: &str = "connections";
const DESCRIPTORS: &str = ServerMessage::DESCRIPTORS;
const HEAP: &str = "heap";
const WORKERS: &str = "workers";

/// The known messages. The first match counts, so specific ones come before general ones.
#[rustfmt::skip]
const KNOWN: &[KnownMessage] = &[
    known("nginx", r"worker_connections are not enough", CONNECTIONS, ("each of its workers is limited to {} connections (worker_connections)", " worker_connections are"), "raise worker_connections in the events block of nginx.conf, and worker_rlimit_nofile with it"),
    known("nginx", r"accept4?\(\) failed \(24: ", DESCRIPTORS, ("it ran out of file descriptors", ""), "raise worker_rlimit_nofile in nginx.conf, or ulimit -n"),
    known("HAProxy", r"reached process FD limit", DESCRIPTORS, ("it ran out of file descriptors", ""), "raise ulimit-n, or the global maxconn, of haproxy.cfg"),
    known("HAProxy", r"reached [a-z ]*maxconn|maxconn [0-9()]* ?reached", CONNECTIONS, ("its connection limit was reached (maxconn)", ""), "raise maxconn in the section of haproxy.cfg that the line names"),
    known("Apache", r"server reached MaxRequestWorkers setting|scoreboard is full, not at MaxRequestWorkers", CONNECTIONS, ("all of its workers are busy (MaxRequestWorkers)", ""), "raise MaxRequestWorkers, and ServerLimit with it, or close idle connections earlier (KeepAliveTimeout)"),
    known("Java", r"OutOfMemoryError: unable to create (new )?native thread", "threads", ("it could not start another thread", ""), "raise the limits of threads (ulimit -u, pids.max), or use fewer threads"),
    known("Java", r"java\.lang\.OutOfMemoryError", HEAP, ("its Java heap is full", ""), "raise -Xmx"),
    known("Node", r"JavaScript heap out of memory", HEAP, ("its JavaScript heap is full", ""), "raise --max-old-space-size (NODE_OPTIONS), or look for a leak"),
    known("gunicorn", r"WORKER TIMEOUT \(pid:", WORKERS, ("its workers took too long and were ended (gunicorn's --timeout)", ""), "use more workers or threads (--workers, --threads), or raise --timeout"),
    known("PostgreSQL", r"sorry, too many clients already|remaining connection slots are reserved", CONNECTIONS, ("its connection limit was reached (max_connections)", ""), "raise max_connections in postgresql.conf, or put a pool in front"),
    known("MySQL", r"Too many connections", CONNECTIONS, ("its connection limit was reached (max_connections)", ""), "raise max_connections"),
    known("redis", r"max number of clients (\+ cluster connections )?reached", CONNECTIONS, ("its client limit was reached (maxclients)", ""), "raise maxclients, and ulimit -n with it"),
    known("redis", r"maxclients has been reduced to", CONNECTIONS, ("it lowered its maxclients to {}, because of too few descriptors", " to compensate"), "raise ulimit -n"),
    known("memcached", r"Too many open connections", CONNECTIONS, ("its connection limit was reached (-c)", ""), "start it with a larger -c"),
    known("Go", r"accept4?: too many open files", DESCRIPTORS, ("it ran out of file descriptors", ""), "raise ulimit -n"),
    known("Node", r"EMFILE", DESCRIPTORS, ("it ran out of file descriptors", ""), "raise ulimit -n"),
    known("any program", r"(?i:too many open files)", DESCRIPTORS, ("it ran out of file descriptors", ""), "raise ulimit -n"),
];

/// All patterns, and one that matches if any of them does: most lines match none.
static PATTERNS: LazyLock<(Option<Pattern>, Vec<Option<Pattern>>)> = LazyLock::new(|| {
    // Matches bytes: Unicode tables would be most of the work.
    let each = KNOWN.iter().map(|known| format!("(?-u:{})", known.pattern));
    let any: Vec<String> = each.clone().collect();
    // A test compiles each expression.
    let compiled = each.map(|pattern| Pattern::new(&pattern).ok());
    (Pattern::new(&any.join("|")).ok(), compiled.collect())
});

/// Compiles the patterns, which takes some milliseconds the first time.
pub(crate) fn prepare() {
    LazyLock::force(&PATTERNS);
}

/// Messages found so far: how often, and the first line.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerMessages(BTreeMap<usize, (u64, String, &'static str)>);

impl ServerMessages {
    /// Scans a line; `found_in` names its source.
    pub(crate) fn scan(&mut self, line: &str, found_in: &'static str) {
        let start = &line.as_bytes()[..line.len().min(MOST_BYTES)];
        let (any, each) = &*PATTERNS;
        if !any.as_ref().is_some_and(|any| any.matches(start)) {
            return;
        }
        let says = |pattern: &Option<Pattern>| pattern.as_ref().is_some_and(|it| it.matches(start));
        if let Some(place) = each.iter().position(says) {
            let kept = || line.trim().chars().take(MOST_CHARS).collect();
            let known = self.0.entry(place);
            known.or_insert_with(|| (0, kept(), found_in)).0 += 1;
        }
    }

    /// Adds messages found elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        for (place, (times, line, found_in)) in other.0 {
            self.0.entry(place).or_insert((0, line, found_in)).0 += times;
        }
    }

    /// All messages, as in a record; `found_in` is "log" for lines of log files.
    pub(crate) fn found(&self) -> Vec<ServerMessage> {
        let messages = self.0.iter();
        let found = messages.map(|(place, (times, line, found_in))| {
            let known = &KNOWN[*place];
            ServerMessage {
                kind: known.kind.to_owned(),
                program: known.program.to_owned(),
                cause: known.cause_in(line),
                remedy: known.remedy.to_owned(),
                times: *times,
                line: line.clone(),
                found_in: (*found_in).to_owned(),
            }
        });
        found.collect()
    }
}

impl KnownMessage {
    /// The meaning of a line, with its number.
    fn cause_in(&self, line: &str) -> String {
        let before = line.split(self.number_by).next().unwrap_or_default();
        let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let number = &before[before.len() - digits..];
        if number.is_empty() {
            return self.cause.replace("{} ", "so many ");
        }
        self.cause.replace("{}", number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Genuine lines: their program, their subject, and a part of their meaning.
    #[rustfmt::skip]
    const GENUINE: &[(&str, &str, &str, &str)] = &[
        ("nginx", CONNECTIONS, "limited to 64 connections", "2026/01/02 03:04:05 [alert] 4242#4242: 64 worker_connections are not enough"),
        ("nginx", CONNECTIONS, "limited to 512 connections", "2026/01/02 03:04:05 [warn] 7#7: 512 worker_connections are not enough, reusing connections"),
        ("nginx", DESCRIPTORS, "file descriptors", "2026/01/02 03:04:05 [crit] 4242#4242: accept4() failed (24: Too many open files)"),
        ("HAProxy", DESCRIPTORS, "file descriptors", "[ALERT] 001/030405 (4242) : Proxy web reached process FD limit (maxsock=4013). Please check 'ulimit-n' and restart."),
        ("HAProxy", CONNECTIONS, "(maxconn)", "Proxy web reached its configured maxconn (100)"),
        ("Apache", CONNECTIONS, "(MaxRequestWorkers)", "[Fri Jan 02 03:04:05.678901 2026] [mpm_prefork:error] [pid 4242] AH00161: server reached MaxRequestWorkers setting, consider raising the MaxRequestWorkers setting"),
        ("Apache", CONNECTIONS, "(MaxRequestWorkers)", "[mpm_event:error] [pid 4242:tid 1] AH00484: server reached MaxRequestWorkers setting, consider raising the MaxRequestWorkers setting"),
        ("Java", HEAP, "Java heap", "Exception in thread \"HTTP-Dispatcher\" java.lang.OutOfMemoryError: Java heap space"),
        ("Java", "threads", "another thread", "java.lang.OutOfMemoryError: unable to create native thread: possibly out of memory or process/resource limits reached"),
        ("Node", HEAP, "JavaScript heap", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"),
        ("Node", DESCRIPTORS, "file descriptors", "Error: accept EMFILE"),
        ("gunicorn", WORKERS, "--timeout", "[2026-01-02 03:04:05 +0000] [4242] [CRITICAL] WORKER TIMEOUT (pid:4250)"),
        ("PostgreSQL", CONNECTIONS, "(max_connections)", "2026-01-02 03:04:05.678 UTC [4242] FATAL:  sorry, too many clients already"),
        ("PostgreSQL", CONNECTIONS, "(max_connections)", r"the server closed before its reply was what is expected; it began with `E\x00\x00\x00PSFATAL\x00VFATAL\x00C53300\x00Msorry, too many clients already\x00F...`"),
        ("redis", CONNECTIONS, "(maxclients)", "-ERR max number of clients reached"),
        ("redis", CONNECTIONS, "maxclients to 60", "4242:M 02 Jan 2026 03:04:05.678 # Current maximum open files is 92. maxclients has been reduced to 60 to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'."),
        ("memcached", CONNECTIONS, "(-c)", "ERROR Too many open connections"),
        ("Go", DESCRIPTORS, "file descriptors", "2026/01/02 03:04:05 http: Accept error: accept tcp 127.0.0.1:8080: accept4: too many open files; retrying in 5ms"),
        ("any program", DESCRIPTORS, "file descriptors", "OSError: [Errno 24] Too many open files"),
    ];

    #[test]
    fn known_messages_are_recognised() {
        assert!(PATTERNS.0.is_some() && PATTERNS.1.iter().all(Option::is_some));
        for (program, kind, cause, line) in GENUINE {
            let mut messages = ServerMessages::default();
            messages.scan(line, "output");
            messages.scan(line, "output");
            let found = messages.found();
            assert_eq!(found.len(), 1, "{line}");
            assert_eq!(
                (found[0].program.as_str(), found[0].kind.as_str()),
                (*program, *kind),
                "{line}"
            );
            assert!(found[0].cause.contains(cause), "{:?}", found[0]);
            assert_eq!(found[0].times, 2);
        }
    }

    #[test]
    fn ordinary_lines_match_nothing() {
        let mut messages = ServerMessages::default();
        for line in [
            "",
            "GET /index.html 200",
            "nginx: [notice] using the \"epoll\" event method",
            "worker_connections 64;",
            "listening on 127.0.0.1:80 with maxconn 100",
            &"x".repeat(100_000),
            "\u{1b}[31mred\u{1b}[0m \u{fffd}",
        ] {
            messages.scan(line, "output");
        }
        assert_eq!(messages.found(), []);
    }

    #[test]
    fn matches_from_two_places_are_added() {
        let line = "accept: too many open files";
        let (mut one, mut other) = (ServerMessages::default(), ServerMessages::default());
        one.scan(line, "output");
        other.scan(line, "log");
        one.add(other);
        assert_eq!(one.found()[0].times, 2);
        assert_eq!(one.found()[0].found_in, "output");
    }
}
