//! Functions of a model's real source, with notes at their lines.
//!
//! Only names and beginnings of lines are written down; the text is that of the file that is compiled. Tests
//! see to it that each function is there and that each note is about one line.

use super::words::{CALL, DIM, columns, lines, styled};

/// A file of source.
#[derive(Debug)]
pub struct Source {
    /// From the root of the repository.
    pub path: &'static str,
    /// All of it.
    pub text: &'static str,
}

/// A function to show.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt {
    /// Where it is.
    pub source: &'static Source,
    /// What follows `fn` in its first line, as far as it takes to tell it from others: "run(mut self".
    pub function: &'static str,
    /// What to say about its lines, in their order.
    pub notes: &'static [Note],
}

/// What is said about a line.
#[derive(Debug, Clone, Copy)]
pub struct Note {
    /// A part of the line, found in no other line of the function.
    pub at: &'static str,
    /// What is said.
    pub says: &'static str,
}

/// A line of source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file.
    pub number: usize,
    /// The line, less what all lines of the function are indented by.
    pub text: String,
    /// What is said about it.
    pub note: Option<&'static str>,
}

impl Excerpt {
    /// The lines of the function with its notes; none where the source has no such function, or several.
    pub fn lines(&self) -> Option<Vec<Line>> {
        let all: Vec<&str> = self.source.text.lines().collect();
        let opening = format!("fn {}", self.function);
        let found = (0..all.len()).filter(|line| all[*line].contains(&opening));
        let [first] = found.collect::<Vec<usize>>()[..] else {
            return None;
        };
        let indent = all[first].len() - all[first].trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let last = first + all[first..].iter().position(|line| *line == end)?;
        let line = |number: usize| {
            let text = all[number].get(indent..).unwrap_or_default();
            let note = self.notes.iter().find(|note| text.contains(note.at));
            Line {
                number: number + 1,
                text: text.to_owned(),
                note: note.map(|note| note.says),
            }
        };
        Some((first..=last).map(line).collect())
    }

    /// Notes that are not about exactly one line.
    pub fn astray(&self) -> Vec<&'static str> {
        let lines = self.lines().unwrap_or_default();
        let notes = self.notes.iter().filter(|note| {
            let about = lines.iter().filter(|line| line.text.contains(note.at));
            about.count() != 1
        });
        notes.map(|note| note.at).collect()
    }

    /// For a terminal: each line with its number, each note below its line.
    pub(super) fn shown(&self, width: usize) -> Vec<String> {
        let room = width.saturating_sub(GUTTER).max(20);
        let mut shown = Vec::new();
        for line in self.lines().unwrap_or_default() {
            let mut number = line.number.to_string();
            for part in broken(&line.text, room) {
                let gutter = styled(DIM, &format!("{number:>4} │ "));
                shown.push(format!("{gutter}{part}").trim_end().to_owned());
                number.clear();
            }
            let Some(note) = line.note else { continue };
            let indent = line.text.len() - line.text.trim_start().len();
            let indent = indent.min(room / 2);
            for (row, part) in lines(note, room - indent - 2).into_iter().enumerate() {
                let sign = if row == 0 { "▲ " } else { "  " };
                let gutter = styled(DIM, "     │ ");
                let note = styled(CALL, &format!("{sign}{part}"));
                shown.push(format!("{gutter}{}{note}", " ".repeat(indent)));
            }
        }
        shown
    }
}

/// Columns before the text of a line.
const GUTTER: usize = 7;

/// A line of code in pieces of at most so many columns, the later ones indented further.
fn broken(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut rest = line.to_owned();
    let mut pieces = Vec::new();
    while columns(&rest) > width {
        let head: String = rest.chars().take(width).collect();
        let at = head.rfind(' ').filter(|at| *at > indent + 8);
        let at = at.unwrap_or(head.len());
        let tail = rest[at..].trim_start().to_owned();
        pieces.push(rest[..at].to_owned());
        rest = format!("{}{tail}", " ".repeat(indent + 8));
        if columns(&rest) <= width || pieces.len() > 8 {
            break;
        }
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
impl Loop {
    fn run(&self) {
        wait();
        serve();
    }

    fn wait(&self) {
        sleep();
    }
}
";

    const SOURCE: &Source = &Source {
        path: "loop.rs",
        text: TEXT,
    };

    #[test]
    fn a_function_is_found_with_its_notes() {
        let notes = &[Note {
            at: "wait()",
            says: "it waits",
        }];
        let excerpt = Excerpt {
            source: SOURCE,
            function: "run(",
            notes,
        };
        let lines = excerpt.lines().unwrap();
        assert_eq!(lines.len(), 4);
        assert_eq!(
            (lines[0].number, lines[0].text.as_str()),
            (2, "fn run(&self) {")
        );
        assert_eq!(lines[1].note, Some("it waits"));
        assert!(excerpt.astray().is_empty());
        let wrong = Excerpt {
            source: SOURCE,
            function: "wait(",
            notes,
        };
        assert_eq!(wrong.astray(), ["wait()"]);
        let missing = Excerpt {
            source: SOURCE,
            function: "swim(",
            notes,
        };
        assert_eq!(missing.lines(), None);
    }

    #[test]
    fn long_lines_of_code_are_broken() {
        let pieces = broken("    let value = first + second;", 24);
        assert_eq!(pieces, ["    let value = first +", "            second;"]);
        assert_eq!(broken("short", 24), ["short"]);
    }
}
