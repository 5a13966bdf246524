//! Printing: errors with their causes, JSON, and text that respects `NO_COLOR` and pipes.

use std::io::{self, Write as _};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error and what caused it on one line.
pub(super) fn error(error: &anyhow::Error) {
    let mut message = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        // A cause that its context already tells is not told twice.
        if message.ends_with(&cause) {
            continue;
        }
        if !message.is_empty() {
            message.push_str(": ");
        }
        message.push_str(&cause);
    }
    anstream::eprintln!("{ERROR}error:{ERROR:#} {message}");
}

/// Prints what the user should know beside the result.
pub(super) fn warning(message: &str) {
    anstream::eprintln!("{WARNING}warning:{WARNING:#} {message}");
}

/// Prints a value as JSON, indented, on standard output.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    written(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// Prints a value as JSON on one line of standard output, at once.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    ignore_broken_pipe(out.write_all(&line).and_then(|()| out.flush()))
}

/// Prints text on standard output, without colours when it is not a terminal.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    ignore_broken_pipe(writeln!(out, "{}", text.trim_end()))
}

/// Lets something write itself on standard output.
pub(super) fn written(
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    ignore_broken_pipe(write(&mut out).and_then(|()| out.flush()))
}

/// A reader that has seen enough (`| head`) is no error.
fn ignore_broken_pipe(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Columns of the terminal; 80 where there is none, or `COLUMNS` says otherwise.
pub(super) fn width() -> usize {
    let told = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    told.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
        .unwrap_or(80)
}
