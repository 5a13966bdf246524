//! Lines of a stream, bounded in length.

use std::io::{BufRead as _, BufReader, Read};

/// Passes each line to `take`, until the end of the stream or an error. A line longer than `most_bytes` is passed in
/// parts.
pub(crate) fn each_line(stream: impl Read, most_bytes: u64, mut take: impl FnMut(&[u8])) {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    while let Ok(1..) = (reader.by_ref().take(most_bytes)).read_until(b'\n', &mut line) {
        take(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_or_in_parts() {
        let mut lines = Vec::new();
        each_line(&b"one\n\nlonger\nend"[..], 4, |line| {
            lines.push(line.to_vec());
        });
        assert_eq!(lines, [&b"one\n"[..], b"\n", b"long", b"er\n", b"end"]);
    }
}
