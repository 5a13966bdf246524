//! The versions of well-known interpreters and servers.
//!
//! No other programs are run for this, since their effects are unknown. Time and length of the output are bounded.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::processes::process::{OutputCapture, Process};

/// Names of programs, and their option that prints the version.
const KNOWN: [(&str, &str); 20] = [
    ("apache2", "-v"),
    ("bun", "--version"),
    ("caddy", "version"),
    ("deno", "--version"),
    ("envoy", "--version"),
    ("go", "version"),
    ("h2o", "--version"),
    ("haproxy", "-v"),
    ("httpd", "-v"),
    ("java", "-version"),
    ("lighttpd", "-v"),
    ("memcached", "--version"),
    ("nginx", "-v"),
    ("node", "--version"),
    ("perl", "--version"),
    ("php", "--version"),
    ("python", "--version"),
    ("redis-server", "--version"),
    ("ruby", "--version"),
    ("valkey-server", "--version"),
];

/// Time limit of the output.
const LIMIT: Duration = Duration::from_secs(3);
/// Maximum characters kept of the first line.
const MOST_CHARS: usize = 200;

/// The version of the program at `path`, if `word` is a known name.
pub(super) fn of(word: &str, path: &Path) -> Option<String> {
    let question = version_option(word)?;
    // A script of that name may do anything.
    is_binary(path).then(|| ask(path, word, question))?
}

/// The option of a program of this name.
fn version_option(word: &str) -> Option<&'static str> {
    let file_name = word.rsplit('/').next()?;
    // "python3.12", "php8.2"
    let version = |c: char| c.is_ascii_digit() || c == '.';
    let name = file_name.trim_end_matches(version);
    let found = KNOWN
        .iter()
        .find(|(known, _)| known.trim_end_matches(version) == name)?;
    Some(found.1)
}

/// Whether it is a native executable.
fn is_binary(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == *b"\x7fELF"
}

fn ask(path: &Path, word: &str, question: &str) -> Option<String> {
    let mut command = Command::new(path);
    command.arg0(word).arg(question).env_clear();
    // Environment variables may change the output, and some are printed in it.
    for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    let mut asked = Process::start(word, command, &[], OutputCapture::Both).ok()?;
    let status = asked.finish(LIMIT, None).ok()?;
    asked.wait_for_output();
    first_line(&asked.all_output()).filter(|_| status.success())
}

/// The first non-empty line.
fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let shown = line.chars().filter(|c| !c.is_control());
    Some(shown.take(MOST_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_programs_are_asked() {
        assert_eq!(version_option("node"), Some("--version"));
        assert_eq!(version_option("/usr/bin/python3.12"), Some("--version"));
        assert_eq!(version_option("python3"), Some("--version"));
        assert_eq!(version_option("nginx"), Some("-v"));
        for unknown in ["", "rm", "nodemon", "my-nginx", "node.sh", "3.12"] {
            assert_eq!(version_option(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_script_with_a_known_name_is_not_run() {
        let place = tempfile::tempdir().unwrap();
        let (fake, proof) = (place.path().join("node"), place.path().join("ran"));
        let script = format!("#!/bin/sh\ntouch {}\necho v1\n", proof.display());
        std::fs::write(&fake, script).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&fake, mode).unwrap();
        assert_eq!(of(&fake.to_string_lossy(), &fake), None);
        assert!(!proof.exists());
    }

    #[test]
    fn an_answer_is_one_line_of_bounded_length() {
        assert_eq!(
            first_line("\n  v22.1.0\nmore\n").as_deref(),
            Some("v22.1.0")
        );
        assert_eq!(first_line(" \n"), None);
        let long = first_line(&"x\u{1b}".repeat(1000)).unwrap();
        assert_eq!(long, "x".repeat(MOST_CHARS));
    }

    #[test]
    fn a_program_that_answers_is_received_and_one_that_fails_is_not() {
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        let echo = std::fs::canonicalize("/bin/echo").unwrap();
        assert_eq!(ask(&echo, "echo", "hello").as_deref(), Some("hello"));
        assert_eq!(ask(&shell, "sh", "/no/such/script"), None);
    }
}
