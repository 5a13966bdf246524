//! `throng man DIR`: manual pages, one for each subcommand, from the definitions that also make the help.

use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;
use roff::{Roff, roman};

use super::{Exit, Usage, command, output};

/// The section of commands.
const SECTION: &str = "1";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  throng man ~/.local/share/man/man1
  throng man . && man -l throng-run.1")]
pub(super) struct Arguments {
    /// Where the pages go; it is made if it is not there.
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
        std::fs::write(&path, page).map_err(|error| cannot_write(&path, error))?;
        written += &format!("{}\n", path.display());
    }
    output::text(&written)?;
    Ok(Exit::Done)
}

/// Every page, by its name.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    // Nothing is to be said about a command that says what is said here.
    let mut whole = command().disable_help_subcommand(true);
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
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let notes = command.get_after_long_help();
    let notes = notes.or(command.get_after_help()).map(ToString::to_string);
    notes_section(&notes.unwrap_or_default()).to_writer(&mut page)?;
    if !command.has_subcommands() {
        let mut see = Roff::new();
        see.control("SH", ["SEE ALSO"]);
        see.control("BR", ["throng", "(1)"]);
        see.to_writer(&mut page)?;
    }
    Ok(page)
}

/// What stands below the help, in paragraphs: examples are shown as they are, and the others as text.
fn notes_section(notes: &str) -> Roff {
    let mut roff = Roff::new();
    let mut has_notes = false;
    for paragraph in notes.split("\n\n").filter(|text| !text.trim().is_empty()) {
        if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
            roff.control("SH", ["EXAMPLES"]);
            roff.control("nf", []);
            for line in examples.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
            continue;
        }
        if let Some(codes) = paragraph.strip_prefix("Exit codes:") {
            roff.control("SH", ["EXIT STATUS"]);
            roff.text([roman(codes.trim())]);
            continue;
        }
        if has_notes {
            roff.control("PP", []);
        } else {
            roff.control("SH", ["NOTES"]);
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
        let whole = command();
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
        let page = notes_section(notes).to_roff();
        assert!(page.contains(".nf\n  throng run\n"), "{page}");
        assert!(page.contains(".fi\n.SH NOTES\nMore of\nit."), "{page}");
    }
}
