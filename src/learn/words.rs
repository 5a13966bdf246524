//! Breaks text into lines, and styles it for a terminal.

use anstyle::{AnsiColor, Style};

/// Headings and names.
pub(super) const BOLD: Style = Style::new().bold();
/// Less important text.
pub(super) const DIM: Style = Style::new().dimmed();
/// Blocking calls, and notes.
pub(super) const CALL: Style = AnsiColor::Cyan.on_default();
pub(super) const COMMAND: Style = AnsiColor::Green.on_default();

/// Text in a style.
pub(super) fn styled(style: Style, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{style}{text}{style:#}")
}

/// Breaks a text at spaces into lines of at most `width` columns. A longer word gets its own line.
pub(super) fn lines(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// The width of a text on a terminal, in columns.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Pads a text with spaces to `width` columns.
pub(super) fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(lines("one two  three", 7), ["one two", "three"]);
        assert_eq!(lines("extraordinary a b", 5), ["extraordinary", "a b"]);
        assert_eq!(lines("", 5), [""]);
    }
}
