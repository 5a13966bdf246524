//! Parsing a target.

use std::net::Ipv6Addr;
use std::str::FromStr;

use super::{Place, Scheme, Target, UnixPath};

/// Suffix of schemes for a unix socket.
const UNIX: &str = "+unix";

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        read(text)
    }
}

fn read(text: &str) -> Result<Target, String> {
    if let Some(start) = text.get(..5)
        && start.eq_ignore_ascii_case("unix:")
    {
        let path = format!("unix:{}", &text[5..]).parse()?;
        return Ok(plain(Place::Unix(path)));
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return bare(text);
    };
    let scheme = scheme.to_ascii_lowercase();
    let (name, is_unix) = match scheme.strip_suffix(UNIX) {
        Some(name) => (name, true),
        None => (scheme.as_str(), false),
    };
    let known = Scheme::NAMED.iter().find(|(known, _)| *known == name);
    let Some(&(_, own_scheme)) = known.filter(|(_, known)| !is_unix || *known != Scheme::Tcp)
    else {
        return Err(unknown(&scheme));
    };
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("spaces and characters beyond ASCII must be written as %XX".to_owned());
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    if own_scheme == Scheme::Tcp {
        if !["", "/"].contains(&path) {
            return Err("tcp:// has no path; write tcp://HOST:PORT".to_owned());
        }
        return bare(authority);
    }
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let place = if is_unix {
        unix(host, own_scheme)?
    } else {
        host_and_port(host, own_scheme)?
    };
    Ok(Target {
        scheme: own_scheme,
        place,
        user: user.map(read_user).transpose()?,
        path: if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        },
    })
}

fn plain(place: Place) -> Target {
    Target {
        scheme: Scheme::Tcp,
        place,
        user: None,
        path: String::new(),
    }
}

/// HOST:PORT.
fn bare(text: &str) -> Result<Target, String> {
    if text.contains('/') {
        if let Some((name, rest)) = without_colon_or_slash(text) {
            return Err(format!("a scheme ends with ://; write {name}://{rest}"));
        }
        return Err(format!("HOST:PORT has no path; write http://{text}"));
    }
    if text.contains('@') {
        return Err(format!("HOST:PORT has no user name; write http://{text}"));
    }
    if let Some((name, rest)) = text.split_once(':')
        && !name.is_empty()
        && !rest.is_empty()
        && !rest
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b':')
        && Scheme::NAMED
            .iter()
            .any(|(known, _)| name.eq_ignore_ascii_case(known))
    {
        return Err(format!("two slashes are missing; write {name}://{rest}"));
    }
    host_and_port(text, Scheme::Tcp).map(plain)
}

/// The scheme of a URL like `http:/host` or `http//host`, and what follows.
fn without_colon_or_slash(text: &str) -> Option<(&'static str, &str)> {
    let mut names = Scheme::NAMED.iter().map(|(name, _)| *name);
    names.find_map(|name| {
        let (first, rest) = text.split_at_checked(name.len())?;
        let bare = rest.trim_start_matches([':', '/']);
        let is_scheme = first.eq_ignore_ascii_case(name) && bare.len() < rest.len();
        (is_scheme && !bare.is_empty()).then_some((name, bare))
    })
}

fn unknown(scheme: &str) -> String {
    let names: Vec<&str> = Scheme::NAMED
        .iter()
        .map(|(name, _)| *name)
        .chain(["unix", "http+unix", "ws+unix"])
        .collect();
    format!(
        "unknown scheme {scheme}; expected one of: {}",
        names.join(", ")
    )
}

/// A socket's path whose slashes are written as %2F, as required between slashes in a URL.
fn unix(written: &str, scheme: Scheme) -> Result<Place, String> {
    if written.is_empty() {
        let scheme_name = scheme.name();
        return Err(format!(
            "the path of the unix socket is missing; write {scheme_name}+unix://%2Frun%2Fapp.sock/"
        ));
    }
    UnixPath::new(&decoded(written)?).map(Place::Unix)
}

/// An IPv6 address in brackets. Its last group counts as a port if both readings are valid.
fn bracketed(text: &str) -> String {
    let with_port = text
        .rsplit_once(':')
        .filter(|(address, port)| address.parse::<Ipv6Addr>().is_ok() && read_port(port).is_ok());
    match with_port {
        Some((address, port)) => format!("[{address}]:{port}"),
        None => format!("[{text}]:PORT"),
    }
}

fn host_and_port(text: &str, scheme: Scheme) -> Result<Place, String> {
    let (name, written) = if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest
            .split_once(']')
            .ok_or("the bracket of an IPv6 address is not closed")?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err("only :PORT may follow the bracket".to_owned()),
        };
        (of_v6(address)?, port)
    } else if text.matches(':').count() > 1 {
        return Err(match text.parse::<Ipv6Addr>() {
            Ok(_) => format!("an IPv6 address needs brackets; write {}", bracketed(text)),
            Err(_) => {
                "it has more than one colon; write an IPv6 address as [ADDRESS]:PORT".to_owned()
            }
        });
    } else {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        };
        check_name(name)?;
        (name.to_owned(), port)
    };
    let known_port = match (written.filter(|port| !port.is_empty()), scheme.usual_port()) {
        (Some(port), _) => Some(read_port(port)?),
        (None, usual) => usual,
    };
    if name.is_empty() && (scheme != Scheme::Tcp || known_port.is_none()) {
        return Err(format!("the host is missing; write {}", example(scheme)));
    }
    // A port alone means this machine.
    let name = if name.is_empty() {
        "localhost".to_owned()
    } else {
        name
    };
    let port = known_port.ok_or_else(|| {
        let host = super::written_host(&name, None);
        format!("the port is missing; write {host}:PORT, or http://{host}")
    })?;
    Ok(Place::Host { name, port })
}

fn example(scheme: Scheme) -> String {
    match scheme {
        Scheme::Tcp => "localhost:7777".to_owned(),
        scheme => format!("{}://localhost:8080", scheme.name()),
    }
}

/// An IPv6 address, perhaps with a zone.
fn of_v6(text: &str) -> Result<String, String> {
    let (address, device) = match text.split_once('%') {
        // In a URL the percent sign is written as %25.
        Some((address, device)) => (address, Some(device.strip_prefix("25").unwrap_or(device))),
        None => (text, None),
    };
    let ip: Ipv6Addr = address
        .parse()
        .map_err(|_| format!("{text} is not an IPv6 address"))?;
    let Some(device) = device else {
        return Ok(ip.to_string());
    };
    check_name(device)?;
    if device.is_empty() || device.starts_with("25") {
        return Err(format!("{text} has no zone after its %"));
    }
    Ok(format!("{ip}%{device}"))
}

fn read_port(text: &str) -> Result<u16, String> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{text} is not a port; expected a number from 1 to 65535"
        ));
    }
    match text.parse() {
        Ok(0) => Err("cannot connect to port 0; expected a port from 1 to 65535".to_owned()),
        Ok(port) => Ok(port),
        Err(_) => Err(format!(
            "port {text} is too large; expected a port from 1 to 65535"
        )),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if !name.is_ascii() {
        return Err(format!(
            "{name} has characters beyond ASCII; write it as xn--..."
        ));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match name.chars().find(|c| !is_part(*c)) {
        Some(wrong) => Err(format!("{wrong:?} cannot be part of a host name")),
        None => Ok(()),
    }
}

/// `name:password`; the password is empty if there is none.
fn read_user(text: &str) -> Result<String, String> {
    let user = decoded(text)?;
    if user.chars().any(char::is_control) {
        return Err("the user name has a control character".to_owned());
    }
    Ok(if text.contains(':') { user } else { user + ":" })
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("a % in {text} is not followed by two digits"))?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("{text} is not UTF-8"))
}

/// Writes everything that has a meaning in a URL as %XX.
pub(super) fn encoded(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(byte.into());
        } else {
            written += &format!("%{byte:02X}");
        }
    }
    written
}

/// The same for a user, but keeps the colon between name and password.
pub(super) fn encoded_user(user: &str) -> String {
    match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", encoded(name), encoded(password)),
        None => encoded(user),
    }
}
