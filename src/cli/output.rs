//! Printing: errors with their causes, JSON, and text that respects `--color`, `NO_COLOR` and pipes.

use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde::Serialize;
use terminal_size::Height;

use crate::record::format::{shortened, shown};
use crate::sys::signal::Stop;

/// How long the exit may be delayed by a terminal that accepts no output, once a signal asked to stop.
const STALL_LIMIT: Duration = Duration::from_secs(5);
/// Whether a terminal stalled for that long. If so, nothing more is written to it.
static STALLED: AtomicBool = AtomicBool::new(false);

/// The verbosity of every command.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct Detail {
    /// Print results and errors only: no progress, no notes, no warnings.
    #[arg(
        short,
        long,
        global = true,
        hide_short_help = true,
        conflicts_with = "verbose"
    )]
    quiet: bool,
    /// Print the whole report, even if it is taller than the terminal.
    #[arg(short, long, global = true, hide_short_help = true)]
    verbose: bool,
    /// Use colours: auto, always or never.
    #[arg(
        long,
        alias = "colour",
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        hide_short_help = true
    )]
    color: Colour,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// These are set once, before anything is printed.
static QUIET: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);

impl Detail {
    /// Applies the flags to everything that is printed.
    pub(super) fn apply(self) {
        QUIET.store(self.quiet, Relaxed);
        VERBOSE.store(self.verbose, Relaxed);
        let colour = match self.color {
            Colour::Auto => ColorChoice::Auto,
            Colour::Always => ColorChoice::Always,
            Colour::Never => ColorChoice::Never,
        };
        colour.write_global();
    }
}

/// Whether only results and errors are printed.
pub(super) fn is_quiet() -> bool {
    QUIET.load(Relaxed)
}

/// Whether reports are printed in full.
pub(super) fn is_verbose() -> bool {
    VERBOSE.load(Relaxed)
}

/// Maximum characters of a message.
const LONGEST: usize = 2000;
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Prints an error and its causes on one line.
pub(super) fn error(error: &anyhow::Error) {
    let mut causes = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // A context may already contain its cause.
        if causes.ends_with(&text) {
            continue;
        }
        if !causes.is_empty() {
            causes.push_str(": ");
        }
        causes.push_str(&text);
    }
    let message = harmless(&shortened(&without_numbers(&causes), LONGEST));
    to_stderr(&format!("{ERROR}error:{ERROR:#} {message}"));
}

/// Prints wrong usage, in which a value may have any length. If standard error is closed, nothing reads this.
pub(super) fn usage(error: &clap::Error) {
    let text = error.render();
    let is_long = |line: &str| line.chars().count() > LONGEST;
    if text.to_string().lines().any(is_long) {
        let ansi = text.ansi().to_string();
        ansi.lines()
            .for_each(|line| to_stderr(&shortened(line, LONGEST)));
    } else {
        let _ = error.print();
    }
}

/// Prints a warning.
pub(super) fn warning(message: &str) {
    if !is_quiet() {
        let message = harmless(&shortened(message, LONGEST));
        to_stderr(&format!("{WARNING}warning:{WARNING:#} {message}"));
    }
}

/// Prints a progress line on standard error, broken at spaces if that is a terminal.
#[cfg(target_os = "linux")]
pub(super) fn note(message: &str) {
    if is_quiet() {
        return;
    }
    let line = harmless(message);
    if io::stderr().is_terminal() {
        to_stderr(&broken(&line).join("\n"));
    } else {
        to_stderr(&line);
    }
}

/// A line for a terminal, broken at spaces where it does not fit; further lines are indented.
#[cfg(target_os = "linux")]
pub(super) fn broken(line: &str) -> Vec<String> {
    use crate::report::document::terminal::in_lines;

    const INDENT: &str = "  ";
    let mut lines = in_lines(line, width().saturating_sub(INDENT.len()));
    for more in lines.iter_mut().skip(1) {
        more.insert_str(0, INDENT);
    }
    lines
}

/// A message without the numbers that Rust appends to system errors, like "(os error 2)".
fn without_numbers(message: &str) -> String {
    const BEGIN: &str = " (os error ";
    let mut text = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        text += before;
        match after.split_once(')') {
            Some((number, after)) if number.parse::<i32>().is_ok() => rest = after,
            _ => {
                text += BEGIN;
                rest = after;
            }
        }
    }
    text + rest
}

/// Writes a line to standard error. A closed terminal or a full disk must not end the program.
fn to_stderr(line: &str) {
    let line = format!("{line}\n");
    let _ = write_within_limit(io::stderr().is_terminal(), move || {
        anstream::stderr().lock().write_all(line.as_bytes())
    });
}

/// Writes to what may be a terminal. A write to a stalled terminal (Ctrl-S, a frozen window, a lost connection)
/// blocks, and a signal that asks to stop does not end it. So a separate thread writes, and the process does not wait
/// for it when exiting.
fn write_within_limit(
    is_terminal: bool,
    write: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    if !is_terminal || !Stop::is_installed() {
        return write();
    }
    if STALLED.load(Relaxed) {
        return Ok(());
    }
    let writer = Builder::new().name("output".to_owned()).spawn(write)?;
    join_writer(writer).unwrap_or(Ok(()))
}

/// Waits for a thread that writes to a terminal, but no longer than [`STALL_LIMIT`] after a signal to stop.
pub(super) fn join_writer<T>(writer: JoinHandle<T>) -> Option<T> {
    let mut deadline = None;
    while !writer.is_finished() {
        let now = Instant::now();
        if Stop::is_requested() && now >= *deadline.get_or_insert(now + STALL_LIMIT) {
            STALLED.store(true, Relaxed);
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    // If it panicked, that was already reported.
    writer.join().ok()
}

/// Replaces control characters in a text, except for throng's own colours: it may contain output of servers, or text
/// from files.
pub(super) fn harmless(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = colour(rest).unwrap_or(0);
        if length > 0 {
            harmless.push_str(&rest[..length]);
        } else {
            harmless.push(shown(c));
        }
        rest = &rest[length.max(c.len_utf8())..];
    }
    harmless
}

/// The length of a leading escape sequence for bold, dim, a colour, or the end of these.
fn colour(text: &str) -> Option<usize> {
    let (numbers, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let plain = |digits: &str| {
        let parsed = digits.parse::<u8>();
        parsed.is_ok_and(|number| matches!(number, 0..=2 | 22 | 30..=37 | 39 | 90..=97))
    };
    let is_ours = numbers.split(';').all(plain);
    is_ours.then_some("\u{1b}[".len() + numbers.len() + 1)
}

/// Prints a value as indented JSON on standard output.
pub(super) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    written(|out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        writeln!(out)
    })
}

/// Prints a value as JSON on one line of standard output, immediately.
pub(super) fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    ignore_reader_gone(out.write_all(&line).and_then(|()| out.flush()))
}

/// Prints text on standard output, without colours unless that is a terminal.
pub(super) fn text(text: &str) -> anyhow::Result<()> {
    let text = harmless(text.trim_end());
    ignore_reader_gone(write_within_limit(io::stdout().is_terminal(), move || {
        writeln!(anstream::stdout().lock(), "{text}")
    }))
}

/// Lets a function write to standard output.
pub(super) fn written(
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        let mut text = Vec::new();
        write(&mut text)?;
        let bounded = move || io::stdout().lock().write_all(&text);
        return ignore_reader_gone(write_within_limit(true, bounded));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    ignore_reader_gone(write(&mut out).and_then(|()| out.flush()))
}

/// Ignores a reader that closed its end (`| head`), or a closed terminal: neither is an error.
fn ignore_reader_gone(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) && is_terminal() => Ok(()),
        other => Ok(other?),
    }
}

/// Whether standard output is a terminal, even a closed one.
fn is_terminal() -> bool {
    let found = rustix::fs::fstat(io::stdout().as_fd());
    let kind = found.map(|found| FileType::from_raw_mode(found.st_mode));
    kind.is_ok_and(FileType::is_char_device)
}

/// Width of the terminal in columns: the value of `COLUMNS` if set, or 80 without a terminal.
pub(super) fn width() -> usize {
    let reported = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    reported
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into()))
        .unwrap_or(80)
}

/// Minimum number of rows, regardless of how small the terminal is.
const FEWEST_ROWS: usize = 24;

/// Height of the terminal on standard output in rows; `None` if it is not a terminal, and so has no limit.
pub(super) fn rows() -> Option<usize> {
    let (_, Height(rows)) = terminal_size::terminal_size_of(io::stdout())?;
    (rows > 0).then(|| usize::from(rows).max(FEWEST_ROWS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_system_errors_are_left_out() {
        let error = io::Error::from_raw_os_error(2);
        let message = format!("cannot read a (os error x): {error}; try again");
        let plain = "cannot read a (os error x): No such file or directory; try again";
        assert_eq!(without_numbers(&message), plain);
    }

    #[test]
    fn a_terminal_obeys_nothing_from_outside() {
        let style = AnsiColor::Cyan.on_default().bold();
        let ours = format!("{ERROR}error:{ERROR:#} {style}x{style:#}\n\ty \u{e4}");
        assert_eq!(harmless(&ours), ours);
        for evil in [
            "\u{1b}[2J",             // clears the screen
            "\u{1b}]0;title\u{7}",   // sets the window title
            "\u{1b}]52;c;eA==\u{7}", // writes to the clipboard
            "\u{1b}[8m",             // hides what follows
            "\u{1b}[31;5m",          // blinks
            "\u{9b}2J",              // clears the screen without an escape character
            "\r\u{8}",               // overwrites existing text
            "\u{202e}",              // reverses the text direction
            "\u{1b}",
            "\u{1b}[",
        ] {
            let shown = harmless(evil);
            assert!(
                !shown.contains(|c: char| c.is_control() || c == '\u{202e}'),
                "{shown:?}"
            );
        }
    }
}
