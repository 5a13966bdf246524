//! Names of runs in URLs, and access checks: a page from another site must not read ours, whatever name it uses for
//! this machine.

use std::net::{IpAddr, SocketAddr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Maximum length of a directory name.
const LONGEST: usize = 255;

/// Maximum depth of a record's directory; a part of a study is one level deeper.
pub(super) const MOST_DEEP: usize = 6;

/// What a URL shows otherwise than as itself.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');

/// Whether a name is a relative path of plain directory names, and nothing else: "capacity",
/// "2026-11-21-vm/capacity".
pub(super) fn is_below(name: &str) -> bool {
    name.split('/').all(is_entry) && name.split('/').count() <= MOST_DEEP + 1
}

/// Whether a name is a plain directory entry.
pub(super) fn is_entry(name: &str) -> bool {
    let elsewhere = [".", ".."].contains(&name) || name.contains(['/', '\0']);
    !name.is_empty() && !elsewhere && name.len() <= LONGEST
}

/// The URL of a page of a run, or of the run itself if `page` is empty.
pub(super) fn page_of(run: &str, page: &str) -> String {
    format!("/run/{}/{page}", encoded(run))
}

/// A name, percent-encoded for a URL.
pub(super) fn encoded(name: &str) -> String {
    utf8_percent_encode(name, ENCODED).to_string()
}

/// A part of a URL as text, if it is text.
pub(super) fn decoded(text: &str) -> Option<String> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

/// The values of a form field, in order; `None` if any of them is not text.
pub(super) fn values(query: &str, name: &str) -> Option<Vec<String>> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| decoded(&value.replace('+', " ")))
        .collect()
}

/// The first value of a form field; `None` if it is missing or empty.
pub(super) fn value(query: &str, name: &str) -> Option<String> {
    let found = values(query, name)?.into_iter().next();
    found.filter(|value| !value.is_empty())
}

/// The number in a form field.
pub(super) fn number(query: &str, name: &str) -> Option<u32> {
    value(query, name)?.parse().ok()
}

/// Whether a text contains all words of a form field, in any case and order.
pub(super) fn has_words(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let mut each = words.split_whitespace();
    each.all(|word| text.contains(&word.to_lowercase()))
}

/// Whether `host`, as sent by a browser, is one of our own names, and not a name that another site gave this machine.
pub(super) fn is_own(host: &str, listening: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        // Colons within the brackets belong to the address.
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = || {
        let address: Option<IpAddr> = bare.parse().ok();
        address.is_some_and(|address| address.is_loopback())
    };
    port == Some(listening.port()) && (name.eq_ignore_ascii_case("localhost") || is_loopback())
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["", ".", "..", "a/b", "../a", "a\0b", &"x".repeat(256)] {
            assert!(!is_entry(name), "{name:?}");
        }
        assert!(is_entry("20260101T120000Z-overview") && is_entry("my run \u{e4} %"));
        assert!(is_below("2026-11-21-vm/capacity/crowd"));
        let deep = ["x"; MOST_DEEP + 2].join("/");
        for name in ["", "/", "/a", "a/", "a//b", "a/../b", "./a", &deep] {
            assert!(!is_below(name), "{name:?}");
        }
    }

    #[test]
    fn names_come_back_as_they_were() {
        for name in ["a b+c&d=e", "\u{e4}\"<>%2e", "..", "\u{1f600}", "a/b c"] {
            let query = format!("x=1&run={}&run=2", encoded(name));
            let found = values(&query, "run").unwrap();
            assert_eq!(found, [name, "2"]);
        }
        for broken in ["run=%ff", "run=a%c3"] {
            assert_eq!(values(broken, "run"), None, "{broken}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_ours() {
        let listening: SocketAddr = "127.0.0.1:4000".parse().unwrap();
        for ours in [
            "127.0.0.1:4000",
            "localhost:4000",
            "LOCALHOST:4000",
            "[::1]:4000",
        ] {
            assert!(is_own(ours, listening), "{ours}");
        }
        for other in [
            "",
            "localhost",
            "127.0.0.1",
            "localhost:80",
            "evil.example:4000",
            "127.0.0.1.evil.example:4000",
            "evil.example",
            "10.0.0.1:4000",
            "[::1]",
            "[::2]:4000",
            "localhost:4000:4000",
            ":4000",
        ] {
            assert!(!is_own(other, listening), "{other}");
        }
        assert!(is_own("localhost", "127.0.0.1:80".parse().unwrap()));
    }
}
