//! Bytes written as text.

/// Replaces `\r`, `\n`, `\t`, `\0`, `\\` and `\xNN` with their bytes.
///
/// # Errors
/// If an escape is invalid.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let (byte, length) = match after.as_bytes() {
            [b'r', ..] => (b'\r', 1),
            [b'n', ..] => (b'\n', 1),
            [b't', ..] => (b'\t', 1),
            [b'0', ..] => (0, 1),
            [b'\\', ..] => (b'\\', 1),
            [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or(0) as u8;
                (digit(high) << 4 | digit(low), 3)
            }
            _ => {
                let shown: String = after.chars().take(1).collect();
                return Err(format!(
                    "`\\{shown}` in `{text}` is not an escape; expected \\r \\n \\t \\0 \\xNN or \\\\"
                ));
            }
        };
        bytes.push(byte);
        rest = &after[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_stand_for_bytes() {
        assert_eq!(unescape("").unwrap(), b"");
        assert_eq!(unescape("PING\\r\\n").unwrap(), b"PING\r\n");
        assert_eq!(unescape("\\t\\0\\\\n").unwrap(), b"\t\0\\n");
        assert_eq!(unescape("\\x00\\xfF\\x410").unwrap(), b"\0\xffA0");
        assert_eq!(unescape("\u{e4}\\x41").unwrap(), "\u{e4}A".as_bytes());
    }

    #[test]
    fn unknown_escapes_are_named() {
        for (text, named) in [
            ("a\\", "`\\` in"),
            ("\\q", "`\\q` in"),
            ("\\x4", "`\\x` in"),
            ("\\xg0", "`\\x` in"),
            ("\\x0\u{e4}", "`\\x` in"),
            ("\\\u{e4}", "`\\\u{e4}` in"),
        ] {
            let error = unescape(text).unwrap_err();
            assert!(error.starts_with(named), "{error}");
        }
    }

    proptest! {
        #[test]
        fn escapes_are_reversible(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let text: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            prop_assert_eq!(unescape(&text).unwrap(), bytes);
        }

        #[test]
        fn any_text_is_taken_or_refused(text in any::<String>()) {
            let _ = unescape(&text);
        }
    }
}
