//! `throng limit` with servers that have a limit of their own: each is found, and its cause is named.

mod planted;
mod searches;
mod server_messages;

use std::time::Duration;

use throng::record::{self, LimitResult, Run};

use super::compare::{Ran, record_in, server};
use crate::support::program::THRONG;

/// Searches for the limit of a foreign server that echoes requests of 100 bytes, with these options.
fn limit_of_echo(server: &str, options: &str) -> Ran {
    let mut arguments = vec![server, "--protocol", "echo", "--size", "100"];
    arguments.extend(options.split_whitespace());
    limit(&arguments)
}

/// Searches with short trials, in which every client has a reply on a busy machine too.
fn limit(arguments: &[&str]) -> Ran {
    let directory = tempfile::tempdir().expect("a directory");
    let record = record_in(&directory);
    let mut options = vec!["--probes", "none", "--confirm", "1", "-o"];
    let record = record.to_string_lossy().into_owned();
    options.push(&record);
    options.extend(["--warm-up", "0ms"]);
    if !arguments.contains(&"--duration") {
        options.extend(["--duration", "200ms", "--think", "20ms"]);
    }
    let mut command = assert_cmd::Command::new(THRONG);
    command.arg("limit").args(arguments).args(options);
    command.timeout(Duration::from_mins(10)); // only if it hangs
    Ran::by(&mut command, directory)
}

impl Ran {
    fn run(&self) -> Run {
        assert_eq!(self.code, 0, "{} {}", self.out, self.err);
        record::read(&record_in(&self.directory)).expect("a record")
    }

    /// The limit of the only server.
    fn found(&self) -> LimitResult {
        let found = self.run().limit.expect("it was a search").found;
        let [found] = found.as_slice() else {
            panic!("{found:?}");
        };
        found.clone()
    }

    /// The kind of the cause, and its whole text.
    fn cause(&self) -> (&'static str, String) {
        let found = self.found();
        let cause = found.cause.unwrap_or_else(|| panic!("{}", self.out));
        let printed = format!("{} ({})", cause.sentence, cause.evidence.join("; "));
        (cause.kind.name, printed)
    }

    /// The values that passed and that failed.
    fn ends(&self) -> (u64, u64) {
        let found = self.found();
        match (found.passed, found.failed) {
            (Some(passed), Some(failed)) => (passed.value, failed.value),
            _ => panic!("{}", self.out),
        }
    }
}

/// The command line of the server in this directory; none if Python is not installed.
fn python(its_limit: &str) -> Option<String> {
    server("python3", "../limit/server.py", its_limit)
}
