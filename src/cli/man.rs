//! `throng man DIR`: man pages, one per subcommand, from the same definitions as the help.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap_mangen::Man;
use roff::{Roff, bold, roman};

use super::exit::codes;
use super::{Exit, Usage, output, whole_command};
use crate::record::Draft;

/// The manual section for commands.
const SECTION: &str = "1";
/// The heading of the exit codes in the help.
const EXIT_CODES: &str = "Exit codes:";
/// Environment variables that every command uses.
const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "NO_COLOR",
        "Print no colours, unless --color always is given.",
    ),
    (
        "COLUMNS",
        "The width of reports [default: that of the terminal].",
    ),
    (
        "TERM",
        "If it is empty or \"dumb\", progress is printed as plain lines.",
    ),
    (
        "PORT",
        "Set by throng for servers and commands: the port to listen on.",
    ),
];
/// Files that every command uses.
const FILES: &[(&str, &str)] = &[
    (
        "throng-results/TIME-NAME/",
        "The record and the report of a run, unless --output names another directory.",
    ),
    (
        "run.json, trials.jsonl",
        "The record: settings and host, and one line per trial.",
    ),
    ("report.html, report.md, figures/", "The report."),
    (
        "summary.json, summary.csv",
        "All values of the report as JSON and CSV.",
    ),
];

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng man ~/.local/share/man/man1
  throng man . && man -l throng-run.1")]
pub(super) struct Arguments {
    /// Directory for the pages. It is created if necessary.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let directory = &arguments.directory;
    let cannot_write =
        |path: &Path, error: io::Error| Usage(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(directory).map_err(|error| cannot_write(directory, error))?;
    let mut written = String::new();
    for (name, page) in pages()? {
        let path = directory.join(format!("{name}.{SECTION}"));
        Draft::named(&path)
            .and_then(|mut file| file.write_all(&page).and_then(|()| file.finish()))
            .map_err(|error| cannot_write(&path, error))?;
        written += &format!("{}\n", path.display());
    }
    output::text(&written)?;
    Ok(Exit::Done)
}

/// Every page, by its name.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // The subcommand `help` needs no page.
    let mut whole = whole_command().disable_help_subcommand(true);
    whole.build();
    let subcommands: Vec<clap::Command> = whole.get_subcommands().cloned().collect();
    let shown = |command: &clap::Command| !command.is_hide_set();
    std::iter::once(whole)
        .chain(subcommands)
        .filter(shown)
        .map(|command| {
            let name = command.get_display_name().unwrap_or(command.get_name());
            Ok((name.to_owned(), page(&command)?))
        })
        .collect()
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .section(SECTION)
        .source(concat!("throng ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    let about = command.get_long_about().or(command.get_about());
    let description = about.map(ToString::to_string).unwrap_or_default();
    section(&description, "DESCRIPTION").to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let notes = command
        .get_after_long_help()
        .or(command.get_after_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    section(&notes, "NOTES").to_writer(&mut page)?;
    if !notes.contains(EXIT_CODES) {
        section(&codes(&[0, 1, 2]), "NOTES").to_writer(&mut page)?;
    }
    let mut see = Roff::new();
    table(&mut see, "ENVIRONMENT", ENVIRONMENT);
    table(&mut see, "FILES", FILES);
    see.control("SH", ["SEE ALSO"]);
    if command.has_subcommands() {
        let names: Vec<String> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        for (place, name) in names.iter().enumerate() {
            let end = if place + 1 < names.len() {
                "(1),"
            } else {
                "(1)"
            };
            see.control("BR", [&*format!("throng-{name}"), end]);
        }
    } else {
        see.control("BR", ["throng", "(1)"]);
    }
    see.to_writer(&mut page)?;
    Ok(page)
}

/// The usage without the options, which have their own section.
fn synopsis(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    for (number, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if number > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.trim())]);
    }
    roff
}

/// Adds a section of terms and definitions.
fn table(roff: &mut Roff, title: &str, rows: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (term, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*meaning)]);
    }
}

/// Converts the beginning or the end of the help, by paragraph: examples stay unchanged, exit codes become a table, and
/// the rest becomes text below a heading.
fn section(text: &str, heading: &str) -> Roff {
    let mut roff = Roff::new();
    let mut has_notes = false;
    for paragraph in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]);
            roff.control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
            continue;
        }
        if let Some(codes) = paragraph.strip_prefix(EXIT_CODES) {
            let rows: Vec<(&str, &str)> = codes
                .lines()
                .filter_map(|line| line.trim().split_once(' '))
                .map(|(code, what)| (code, what.trim()))
                .collect();
            table(&mut roff, "EXIT STATUS", &rows);
            continue;
        }
        if has_notes {
            roff.control("PP", []);
        } else {
            roff.control("SH", [heading]);
            has_notes = true;
        }
        roff.text([roman(paragraph.trim())]);
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page() {
        let pages = pages().unwrap();
        let whole = whole_command();
        let shown = |command: &&clap::Command| !command.is_hide_set();
        for subcommand in whole.get_subcommands().filter(shown) {
            let name = format!("throng-{}", subcommand.get_name());
            let page = pages.iter().find(|(page, _)| *page == name);
            let (_, page) = page.unwrap_or_else(|| panic!("{name} has no page"));
            let page = String::from_utf8_lossy(page);
            for section in [
                ".SH NAME",
                ".SH SYNOPSIS",
                ".SH OPTIONS",
                ".SH \"EXIT STATUS\"",
                ".SH ENVIRONMENT",
                ".SH FILES",
                ".SH \"SEE ALSO\"",
            ] {
                assert!(page.contains(section), "{name} has no {section}:\n{page}");
            }
        }
        let (first, page) = &pages[0];
        let page = String::from_utf8_lossy(page);
        assert_eq!(first, "throng");
        assert!(page.contains(".SH \"EXIT STATUS\"") && page.contains(".SH SUBCOMMANDS"));
    }

    #[test]
    fn examples_are_shown_as_they_are() {
        let notes = "Examples:\n  throng run\n  .dot 'quoted'\n\nMore of\nit.\n\nAnd more.";
        let page = section(notes, "NOTES").to_roff();
        assert!(page.contains(".nf\n  throng run\n"), "{page}");
        assert!(page.contains(".fi\n.SH NOTES\nMore of\nit."), "{page}");
    }
}
