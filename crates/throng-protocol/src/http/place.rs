//! Validates the target and host of a request (RFC 9112, section 3.2, and RFC 3986). Paths that climb above the root
//! are rejected like malformed ones.

/// Whether `target` is valid: `/path?query`, or the same after `http://host`.
pub(super) fn is_target(target: &str) -> bool {
    if target.starts_with('/') {
        return is_path(target);
    }
    let Some((scheme, rest)) = target.split_once("://") else {
        return false;
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    is_scheme(scheme) && is_host(host.as_bytes()) && !host.contains(['_', '%']) && is_path(path)
}

fn is_scheme(scheme: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_part)
}

/// Whether a path, with or without a query, is well-formed and stays below its root.
fn is_path(path: &str) -> bool {
    // Nearly every path has nothing that needs a closer check.
    if !path.bytes().any(|byte| matches!(byte, b'%' | b'.' | b'#')) {
        return true;
    }
    let without_query = path.split_once('?').map_or(path, |(before, _)| before);
    let plain = without_query.split('#').next().unwrap_or_default();
    let Some(bytes) = decoded(plain.as_bytes()) else {
        return false;
    };
    let mut depth = 0_u32;
    for part in bytes
        .split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
    {
        depth = match part {
            b"." => depth,
            b".." => match depth.checked_sub(1) {
                Some(above) => above,
                None => return false,
            },
            _ => depth + 1,
        };
    }
    true
}

/// Decodes percent-encoding; `None` if it is malformed or encodes a NUL.
fn decoded(path: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(*bytes.next()?).to_digit(16);
        let value = digit()? << 4 | digit()?;
        if value == 0 {
            return None;
        }
        decoded.push(value as u8);
    }
    Some(decoded)
}

/// Whether `host` is a host, with or without a port, as in a `Host` header.
pub(super) fn is_host(host: &[u8]) -> bool {
    let (name, port) = if let [b'[', rest @ ..] = host {
        let Some(end) = rest.iter().position(|byte| *byte == b']') else {
            return false;
        };
        let (address, port) = (&rest[..end], &rest[end + 1..]);
        let is_part = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
        if address.is_empty() || !address.iter().all(is_part) {
            return false;
        }
        (address, port)
    } else {
        let end = host.iter().position(|byte| *byte == b':');
        let (name, port) = host.split_at(end.unwrap_or(host.len()));
        if name.is_empty() || !is_name(name) {
            return false;
        }
        (name, port)
    };
    let is_port = |digits_of_port: &[u8]| match digits_of_port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    name != b"." && is_port(port)
}

/// Whether a host name has only valid characters.
fn is_name(name: &[u8]) -> bool {
    let mut before = 0;
    for &byte in name {
        let is_part = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&byte);
        if !is_part || (byte == b'.' && before == b'.') {
            return false;
        }
        before = byte;
    }
    !name.contains(&b'%') || decoded(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_paths_or_whole() {
        for right in [
            "/",
            "/a?b#c",
            "/a/../b",
            "/.../x",
            "/?..%zz",
            "/%2F",
            "/a.b",
            "//a",
            "http://a",
            "http://a:80/..a?x",
            "https://[::1]:8/",
            "ftp://a?x",
        ] {
            assert!(is_target(right), "{right}");
        }
        for wrong in [
            "foo",
            "*",
            "?",
            "#",
            "a:80",
            "/%",
            "/%0",
            "/%zz",
            "/%00",
            "/..",
            "/a/../..",
            "/%2e%2E",
            "/./..",
            "http://",
            "http:///",
            "http:a",
            "http:/a",
            "1http://a",
            "http://u@a/",
            "http://[::1/",
            "http://a:x/",
            "http://a_b/",
            "http://a%20b/",
            "http://a/..",
        ] {
            assert!(!is_target(wrong), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for right in [
            "a",
            "a:80",
            "a:",
            "a.",
            ".a",
            "a_b",
            "127.0.0.1:7777",
            "[::1]",
            "[::ffff:1.2.3.4]:80",
            "a%41",
        ] {
            assert!(is_host(right.as_bytes()), "{right}");
        }
        for wrong in [
            "", ":80", ".", "a..b", "a b", "a/b", "u@a", "a:x", "a:80:80", "[::1", "::1]", "[]",
            "[::1]a", "[g]", "a\"b", "a%", "a\x01", "a\u{e4}",
        ] {
            assert!(!is_host(wrong.as_bytes()), "{wrong}");
        }
    }
}
