//! Where in a study file something stands, so that whoever is wrong can be shown the place.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::StudyError;

/// The file a study was read from.
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

    /// The error that something is wrong at these bytes of the file.
    pub fn wrong(&self, at: &Range<usize>, why: &str) -> StudyError {
        StudyError::Form {
            path: self.path.clone(),
            message: self.shown(at, why),
        }
    }

    /// The error that part of a string is wrong: `within` are bytes of the string, and `at` is where the
    /// string stands. Where it has escapes, the whole of it is shown.
    pub fn wrong_within(
        &self,
        at: &Range<usize>,
        string: &str,
        within: &Range<usize>,
        why: &str,
    ) -> StudyError {
        let written = self.text.get(at.clone()).unwrap_or_default();
        let Some(offset) = written.find(string) else {
            return self.wrong(at, why);
        };
        let from = at.start + offset;
        self.wrong(&(from + within.start..from + within.end), why)
    }

    /// Line, column, the line itself and a mark below it.
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

/// The end of the last whole character up to here.
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
        let shown = source
            .wrong_within(&(12..17), "c d", &(2..3), "odd")
            .to_string();
        assert!(shown.contains("line 2, column 9: odd"), "{shown}");
        assert!(shown.ends_with("|         ^"), "{shown}");
        for from in 0..25 {
            source.shown(&(from..from + 3), "anywhere");
        }
    }
}
