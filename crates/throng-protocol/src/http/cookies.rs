//! Cookies of one client (RFC 6265), by name. Their domains are ignored: all requests of a load go to one server.

/// Maximum number of cookies per client, and maximum bytes of one. Others are dropped.
const MOST_COOKIES: usize = 50;
const LONGEST_COOKIE: usize = 4096;

/// The cookies of one client.
#[derive(Debug, Default)]
pub(super) struct Jar(Vec<Cookie>);

#[derive(Debug)]
struct Cookie {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Jar {
    pub(super) const EMPTY: Self = Self(Vec::new());

    /// Stores the cookies in the head of a reply.
    pub(super) fn take(&mut self, head: &[u8]) {
        for line in lines(head).skip(1) {
            if let Some(value) = field(line, "set-cookie") {
                self.set(value);
            }
        }
    }

    /// Stores the value of a Set-Cookie header.
    pub(super) fn set(&mut self, cookie: &[u8]) {
        let mut parts = cookie.split(|&byte| byte == b';');
        let pair = parts.next().unwrap_or_default();
        let Some(equals) = memchr::memchr(b'=', pair) else {
            return;
        };
        let (name, value) = (pair[..equals].trim_ascii(), pair[equals + 1..].trim_ascii());
        let is_plain = |byte: &u8| !byte.is_ascii_control();
        if name.is_empty() || pair.len() > LONGEST_COOKIE || !pair.iter().all(is_plain) {
            return;
        }
        let known = self.0.iter().position(|one| *one.name == *name);
        match (known, parts.any(ends)) {
            (Some(place), true) => drop(self.0.remove(place)),
            (Some(place), false) => self.0[place].value = value.into(),
            (None, false) if self.0.len() < MOST_COOKIES => self.0.push(Cookie {
                name: name.into(),
                value: value.into(),
            }),
            (None, _) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends a Cookie header, unless there are none.
    pub(super) fn push_header(&self, out: &mut Vec<u8>) {
        if !self.is_empty() {
            out.extend_from_slice(b"Cookie: ");
            self.push_value(out);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends all cookies, as in the value of a Cookie header.
    pub(super) fn push_value(&self, out: &mut Vec<u8>) {
        for (place, cookie) in self.0.iter().enumerate() {
            out.extend_from_slice(if place == 0 { &b""[..] } else { b"; " });
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
    }
}

/// Whether an attribute deletes its cookie: servers write a lifetime of 0, or an expiry before the year 2000. Any
/// other expiry is later than the end of a load.
fn ends(attribute: &[u8]) -> bool {
    let text = String::from_utf8_lossy(attribute);
    let Some((name, value)) = text.split_once('=') else {
        return false;
    };
    let (name, value) = (name.trim(), value.trim());
    if name.eq_ignore_ascii_case("max-age") {
        return value.parse::<i64>().is_ok_and(|seconds| seconds <= 0);
    }
    let mut numbers = value.split(|c: char| !c.is_ascii_digit());
    name.eq_ignore_ascii_case("expires")
        && numbers.any(|number| number.len() == 4 && number < "2000")
}

/// The value of a cookie that a head sets.
pub(super) fn set_value<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let set = lines(head)
        .skip(1)
        .filter_map(|line| field(line, "set-cookie"));
    set.filter_map(|cookie| {
        let pair = cookie.split(|byte| *byte == b';').next()?;
        let equals = memchr::memchr(b'=', pair)?;
        (pair[..equals].trim_ascii() == name).then(|| pair[equals + 1..].trim_ascii())
    })
    .last()
}

/// The lines of a head. A header may be folded over several (RFC 9112, section 5.2).
pub(super) fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.chunk_by(|byte, next| *byte != b'\n' || matches!(next, b' ' | b'\t'))
}

/// The value of a header line, if the header has this name.
pub(super) fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (found, rest) = line.split_at_checked(name.len())?;
    let value = rest.strip_prefix(b":")?;
    found
        .eq_ignore_ascii_case(name.as_bytes())
        .then(|| value.trim_ascii())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cookies_are_kept_by_name_until_they_end() {
        let mut jar = Jar::default();
        let mut cookies = |head: &str| {
            jar.take(head.as_bytes());
            let mut out = Vec::new();
            jar.push_header(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(cookies("HTTP/1.1 200 OK\r\nX: a=b\r\n\r\n"), "");
        assert_eq!(
            cookies(
                "HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/; HttpOnly\r\nset-cookie:b = x=y \r\n\r\n"
            ),
            "Cookie: a=1; b=x=y\r\n"
        );
        let later = "Expires=Wed, 21 Oct 2065 07:28:00 GMT; Max-Age=5";
        assert_eq!(
            cookies(&format!(
                "HTTP/1.1 200 OK\r\nSET-COOKIE: a=2; {later}\r\n\r\n"
            )),
            "Cookie: a=2; b=x=y\r\n"
        );
        for nothing in ["novalue", "=x", "c\u{1}=d", ""] {
            let head = format!("HTTP/1.1 200 OK\r\nSet-Cookie: {nothing}\r\n\r\n");
            assert_eq!(cookies(&head), "Cookie: a=2; b=x=y\r\n", "{nothing}");
        }
        let gone = "HTTP/1.1 200 OK\r\nSet-Cookie: a=; Max-Age=0\r\n\
                    Set-Cookie: c=; expires=Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n";
        assert_eq!(cookies(gone), "Cookie: b=x=y\r\n");
        let gone =
            "HTTP/1.1 200 OK\r\nSet-Cookie: b=; Expires=Thu, 01-Jan-1970 00:00:00 GMT\r\n\r\n";
        assert_eq!(cookies(gone), "");
    }

    #[test]
    fn cookies_have_a_bound() {
        let mut jar = Jar::default();
        for number in 0..1000 {
            jar.set(format!("c{number}={}", "x".repeat(number * 10)).as_bytes());
        }
        assert_eq!(jar.0.len(), MOST_COOKIES);
        jar.set(format!("c1={}", "x".repeat(LONGEST_COOKIE)).as_bytes());
        assert_eq!(jar.0[1].value.len(), 10);
    }

    proptest! {
        #[test]
        fn any_head_is_taken(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\n:;=a-cSetCoki-]{0,80}") {
            let mut jar = Jar::default();
            jar.take(&bytes);
            jar.take(text.as_bytes());
            let mut out = Vec::new();
            jar.push_header(&mut out);
            prop_assert!(memchr::memchr_iter(b'\n', &out).count() <= 1);
        }
    }
}
