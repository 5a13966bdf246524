//! The program under test.

use std::path::Path;
use std::process::{Command, Output};

/// Its path.
pub(crate) const THRONG: &str = env!("CARGO_BIN_EXE_throng");

/// The words of a command line. Each `{}` is replaced with the next value, which may contain spaces.
pub(crate) fn words<'a>(line: &'a str, values: &[&'a str]) -> Vec<&'a str> {
    let mut values = values.iter().copied();
    let mut value = || values.next().expect("there is a value for each");
    let words = line
        .split(' ')
        .map(|word| if word == "{}" { value() } else { word })
        .collect();
    assert_eq!(values.next(), None, "{line}");
    words
}

/// A path as such a word.
pub(crate) fn word(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

/// Runs the program to its end.
pub(crate) fn throng(arguments: &[&str]) -> Output {
    let output = Command::new(THRONG).args(arguments).output();
    output.expect("the program can be started")
}

/// Its standard error.
pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
