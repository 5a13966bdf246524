//! Positions in a study file, for showing where an error is.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::StudyError;

/// The file of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// An error at these bytes of the file.
    pub fn wrong(&self, at: &Range<usize>, why: &str) -> StudyError {
        StudyError::Form {
            path: self.path.clone(),
            message: self.shown(at, why),
        }
    }

    /// An error in the value at this path, like `claim.0.expect`. If there is no such value, shows its parent.
    pub fn wrong_at(&self, path: &str, why: &str) -> StudyError {
        self.wrong(&self.place(path).unwrap_or(0..0), why)
    }

    fn place(&self, path: &str) -> Option<Range<usize>> {
        let whole = DeTable::parse(&self.text).ok()?;
        let mut steps = path.split('.');
        let mut value = whole.get_ref().get(steps.next()?)?;
        for step in steps {
            let next = match value.get_ref() {
                DeValue::Table(table) => table.get(step),
                DeValue::Array(all) => step.parse().ok().and_then(|place: usize| all.get(place)),
                _ => None,
            };
            value = match next {
                Some(next) => next,
                None => break,
            };
        }
        Some(value.span())
    }

    /// The error with its line and column, the text of the line, and a mark below it.
    fn shown(&self, at: &Range<usize>, why: &str) -> String {
        let from = floor(&self.text, at.start);
        let start = self.text[..from].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[from..]
            .find('\n')
            .map_or(self.text.len(), |length| from + length);
        let to = floor(&self.text, at.end).clamp(from, end.max(from));
        let (line, before) = (&self.text[start..end], &self.text[start..from]);
        let number = self.text[..start].matches('\n').count() + 1;
        let column = before.chars().count() + 1;
        let marks = self.text[from..to].chars().count().max(1);
        let margin = " ".repeat(number.to_string().len());
        format!(
            "line {number}, column {column}: {why}\n{margin} |\n{number} | {line}\n{margin} | {}{}",
            " ".repeat(column - 1),
            "^".repeat(marks)
        )
    }
}

/// The largest character boundary that is at most `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_line_a_column_and_a_mark() {
        let source = Source::new(Path::new("x.toml"), "a = 1\nbé = \"c d\"\n");
        let shown = source.shown(&(12..17), "odd");
        assert_eq!(
            shown,
            "line 2, column 6: odd\n  |\n2 | bé = \"c d\"\n  |      ^^^^^"
        );
        for from in 0..25 {
            source.shown(&(from..from + 3), "anywhere");
        }
    }

    #[test]
    fn values_are_found_by_their_path() {
        let source = Source::new(
            Path::new("x.toml"),
            "a = 1\n[[b]]\nc = [5, { d = 7 }]\n[[b]]\n",
        );
        for (path, place) in [
            ("a", 4..5),
            ("b.0.c.0", 17..18),
            ("b.0.c.1.d", 26..27),
            ("b.0.c.1.e", 20..29),
            ("b.0.c.2", 16..30),
        ] {
            assert_eq!(source.place(path), Some(place), "{path}");
        }
        assert_eq!(source.place("e"), None);
    }
}
