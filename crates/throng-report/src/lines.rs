//! Reads lines from the CSV files of a record, with bounds against hostile files.

use std::io::{self, BufRead, Read as _};

use anyhow::{Context as _, bail};

/// The maximum number of lines read from one file. No trial has more clients, and an hour-long trial has fewer
/// samples.
const MOST_LINES: usize = 2_000_000;
/// The maximum length of a line in bytes. The longest known line is a quarter of that.
const MOST_BYTES: u64 = 4096;

/// The lines of a file, numbered from 1.
pub(super) struct Lines<R> {
    reader: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn of(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// The first line, which has the names of the columns.
    pub(super) fn header(&mut self) -> anyhow::Result<String> {
        let (_, line) = self.next_line()?.context("it is empty")?;
        Ok(line)
    }

    /// The next line with its number; `None` at the end of the file.
    ///
    /// # Errors
    /// When there are too many lines, or a line is too long or not text.
    pub(super) fn next_line(&mut self) -> anyhow::Result<Option<(usize, String)>> {
        let mut bytes = Vec::new();
        self.number += 1;
        let number = self.number;
        let mut rest = self.reader.by_ref().take(MOST_BYTES);
        let read: io::Result<usize> = rest.read_until(b'\n', &mut bytes);
        if read.with_context(|| format!("line {number}"))? == 0 {
            return Ok(None);
        }
        if number > MOST_LINES + 1 {
            bail!("it has more than {MOST_LINES} lines");
        }
        if bytes.ends_with(b"\n") {
            bytes.pop();
            bytes.pop_if(|byte| *byte == b'\r');
        } else if bytes.len() as u64 == MOST_BYTES {
            bail!("line {number} has more than {MOST_BYTES} bytes");
        }
        let text = String::from_utf8(bytes);
        let text = text
            .ok()
            .with_context(|| format!("line {number} is not UTF-8 text"))?;
        Ok(Some((number, text)))
    }
}

/// A field as a number. Only a finite number can have been measured.
pub(super) fn number(text: &str, line: usize, column: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => bail!(
            "line {line}, column {column}: `{}` is not a number",
            shown(text)
        ),
    }
}

/// The part of an invalid field that an error message shows.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_bounded() {
        let mut lines = Lines::of(&b"a\nb"[..]);
        assert_eq!(lines.header().unwrap(), "a");
        assert_eq!(lines.next_line().unwrap(), Some((2, "b".to_owned())));
        assert_eq!(lines.next_line().unwrap(), None);
        let wrong = |bytes: &[u8]| Lines::of(bytes).header().unwrap_err().to_string();
        assert_eq!(wrong(b""), "it is empty");
        assert_eq!(wrong(b"\xff\n"), "line 1 is not UTF-8 text");
        assert!(wrong(&vec![b'x'; 1 << 20]).contains("more than 4096 bytes"));
        let mut many = Lines::of(io::BufReader::new(io::repeat(b'\n')));
        let error = loop {
            match many.next_line() {
                Ok(line) => assert!(line.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(error, "it has more than 2000000 lines");
    }

    #[test]
    fn infinite_and_missing_values_are_rejected() {
        assert!((number("-1.5e3", 7, "value").unwrap() + 1500.0).abs() < 1e-9);
        for text in ["NaN", "inf", "-infinity", "1e999", "", "0x1"] {
            let error = number(text, 7, "value").unwrap_err().to_string();
            assert!(error.starts_with("line 7, column value: "), "{error}");
        }
    }
}
