//! Where a reply ends, and which bytes are correct.

use std::fmt;

use super::super::ProtocolError;
use super::escapes::unescape;
use super::pattern::Pattern;
use super::search::Needle;

/// Maximum length of a reply in bytes if an end is searched for.
const MOST_BYTES: u64 = 1024 * 1024;

/// Which replies are correct, and where they end.
///
/// A connection without any reply cannot be checked, so there is no variant for it.
#[derive(Debug)]
pub struct Expectation {
    /// As written by the user.
    spec: String,
    end: End,
}

#[derive(Debug)]
enum End {
    /// After this many bytes of any content.
    Bytes(u64),
    /// Exactly these bytes.
    Text(Vec<u8>),
    /// At the first occurrence of these bytes.
    Until(Box<Needle>),
    /// As soon as this matches.
    Pattern(Box<Pattern>),
    /// When the server closes.
    Close,
}

/// The received part of a reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    bytes: u64,
    /// State of a search.
    state: usize,
}

impl Progress {
    pub(super) fn has_begun(&self) -> bool {
        self.bytes > 0
    }
}

impl Expectation {
    /// Parses `bytes:N`, `text:STRING`, `until:STRING`, `regex:RE` or `close`.
    ///
    /// # Errors
    /// If `spec` has another form, or its value is invalid.
    pub fn parse(spec: &str) -> Result<Self, String> {
        let (kind, rest) = match spec.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (spec, None),
        };
        let end = match (kind, rest) {
            ("bytes", Some(number)) => match number.parse() {
                Ok(bytes) if bytes > 0 => End::Bytes(bytes),
                _ => {
                    return Err(format!(
                        "`{number}` is not a number of bytes; must be at least 1"
                    ));
                }
            },
            ("text", Some(text)) => End::Text(not_empty(unescape(text)?, kind)?),
            ("until", Some(text)) => {
                let text = not_empty(unescape(text)?, kind)?;
                End::Until(Box::new(Needle::new(&text)))
            }
            ("regex", Some(expression)) => End::Pattern(Box::new(Pattern::new(expression)?)),
            ("close", None) => End::Close,
            _ => {
                return Err(format!(
                    "`{spec}` is not an expectation; write bytes:N, text:STRING, \
                     until:STRING, regex:RE or close"
                ));
            }
        };
        Ok(Self {
            spec: spec.to_owned(),
            end,
        })
    }

    /// Whether a reply ends with its connection.
    pub(super) fn is_close(&self) -> bool {
        matches!(self.end, End::Close)
    }

    /// The progress before the first byte of a reply.
    pub(super) fn begin(&self) -> Progress {
        Progress {
            bytes: 0,
            state: match &self.end {
                End::Pattern(pattern) => pattern.start(),
                _ => 0,
            },
        }
    }

    /// Returns how many bytes of `input` belong to the reply, if it ends there.
    pub(super) fn take(
        &self,
        progress: &mut Progress,
        input: &[u8],
    ) -> Result<Option<usize>, ProtocolError> {
        let end = match &self.end {
            End::Bytes(bytes) => {
                let left = bytes - progress.bytes;
                (left <= input.len() as u64).then_some(left as usize)
            }
            End::Text(text) => {
                let expected = &text[progress.bytes as usize..];
                let count = expected.len().min(input.len());
                if input[..count] != expected[..count] {
                    return Err(mismatch(progress.bytes, input, expected));
                }
                (count == expected.len()).then_some(count)
            }
            End::Until(needle) => needle.find(&mut progress.state, input),
            End::Pattern(pattern) => pattern.find(&mut progress.state, input)?,
            End::Close => None,
        };
        if let Some(count) = end {
            return Ok(Some(count));
        }
        progress.bytes += input.len() as u64;
        if matches!(self.end, End::Until(_) | End::Pattern(_)) && progress.bytes > MOST_BYTES {
            let what = format!("a reply has no end within {MOST_BYTES} bytes");
            return Err(ProtocolError { what });
        }
        Ok(None)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

fn not_empty(text: Vec<u8>, kind: &str) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        Err(format!("`{kind}:` needs a text"))
    } else {
        Ok(text)
    }
}

#[cold]
fn mismatch(before: u64, got: &[u8], expected: &[u8]) -> ProtocolError {
    let at = got
        .iter()
        .zip(expected)
        .position(|(a, b)| a != b)
        .expect("the slices differ");
    ProtocolError {
        what: format!(
            "byte {} of the reply is {:#04x} instead of {:#04x}",
            before + at as u64,
            got[at],
            expected[at]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_expectations_are_named() {
        for (spec, why) in [
            ("", "`` is not an expectation"),
            ("bytes", "is not an expectation; write bytes:N"),
            ("close:1", "`close:1` is not an expectation"),
            ("none", "`none` is not an expectation"),
            (
                "bytes:0",
                "`0` is not a number of bytes; must be at least 1",
            ),
            ("bytes:x", "`x` is not a number"),
            ("bytes:18446744073709551616", "is not a number"),
            ("text:", "`text:` needs a text"),
            ("until:", "`until:` needs a text"),
            ("until:\\q", "`\\q` in `\\q` is not an escape"),
            ("regex:(", "`(` cannot be used as a regular expression"),
            ("regex:a*", "matches no bytes"),
            ("regex:", "matches no bytes"),
        ] {
            let error = Expectation::parse(spec).unwrap_err();
            assert!(error.contains(why), "{spec}: {error}");
        }
    }

    #[test]
    fn colons_may_follow() {
        assert_eq!(
            Expectation::parse("until:a:b").unwrap().to_string(),
            "until:a:b"
        );
    }
}
