//! Bytes to send without a protocol.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::text::as_text;
use throng_protocol::unescape;

/// Text with escapes, or `@` and the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Text.
    Text(Vec<u8>),
    /// The content of this file.
    File(PathBuf),
}

impl FromStr for Payload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('@') {
            Some("") => Err("the name of a file has to follow the @".to_owned()),
            Some(path) => Ok(Self::File(path.into())),
            None => unescape(text).map(Self::Text),
        }
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match self {
            Self::File(path) => return write!(f, "@{}", path.display()),
            Self::Text(bytes) => bytes,
        };
        for (place, byte) in bytes.iter().enumerate() {
            match byte {
                b'\r' => f.write_str("\\r")?,
                b'\n' => f.write_str("\\n")?,
                b'\t' => f.write_str("\\t")?,
                b'\\' => f.write_str("\\\\")?,
                b'@' if place == 0 => f.write_str("\\x40")?,
                b' '..=b'~' => write!(f, "{}", char::from(*byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

as_text!(Payload, "text, or @ and the name of a file");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_text_or_a_file() {
        for (text, sent, written) in [
            (
                "PING\\r\\n",
                Payload::Text(b"PING\r\n".to_vec()),
                "PING\\r\\n",
            ),
            ("\\x40a", Payload::Text(b"@a".to_vec()), "\\x40a"),
            (
                "\\x41\\0\u{e4}",
                Payload::Text(b"A\0\xc3\xa4".to_vec()),
                "A\\x00\\xc3\\xa4",
            ),
            ("@a/b", Payload::File("a/b".into()), "@a/b"),
        ] {
            assert_eq!(text.parse(), Ok(sent.clone()));
            assert_eq!(sent.to_string(), written);
        }
        assert!("@".parse::<Payload>().is_err());
        assert!("\\q".parse::<Payload>().is_err());
    }
}
