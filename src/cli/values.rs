//! Values on the command line, and the words users know for them.

#[cfg(target_os = "linux")]
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;
use std::time::Duration;

#[cfg(target_os = "linux")]
use super::Usage;
#[cfg(target_os = "linux")]
pub(super) use crate::record::spec::bytes;
#[cfg(target_os = "linux")]
pub(super) use crate::record::spec::count;
pub(super) use crate::record::spec::{at_least_one, read_time as duration, request_size};
use crate::sys::process::usable_cpus;

/// A time that is more than none.
pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".to_owned()),
        time => Ok(time),
    }
}

/// Descriptors that a set of select() holds.
pub(super) fn fd_setsize(text: &str) -> Result<usize, String> {
    let least = crate::sys::select::FD_SETSIZE;
    match text.parse() {
        Ok(size) if (least..=1 << 20).contains(&size) => Ok(size),
        _ => Err(format!("it must be a number from {least} to {}", 1 << 20)),
    }
}

/// A value parser for one of several that have names.
#[cfg(target_os = "linux")]
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    named: &'static [(&'static str, T)],
) -> impl clap::builder::TypedValueParser<Value = T> {
    use clap::builder::TypedValueParser as _;
    let all = named.iter().map(|(name, _)| *name);
    clap::builder::PossibleValuesParser::new(all).map(move |typed| {
        let found = named.iter().find(|(name, _)| *name == typed);
        found.expect("it is one of the possible values").1
    })
}

/// CPUs as the kernel writes them: `0`, `0,2`, `0-3,6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CpuList(pub(super) Vec<u32>);

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no list of CPUs; write it like 0 or 0,2-3");
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| wrong());
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last || last >= 1024 {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        let usable = usable_cpus();
        match cpus.iter().find(|cpu| !usable.contains(cpu)) {
            Some(cpu) => Err(format!(
                "there is no CPU {cpu}; this process may use {usable:?}"
            )),
            None => Ok(Self(cpus)),
        }
    }
}

/// Parts of a maximum in percent, rising: `50,80`; `none` for none.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Percents(pub(super) Vec<u32>);

#[cfg(target_os = "linux")]
impl FromStr for Percents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "none" {
            return Ok(Self(Vec::new()));
        }
        let percent = |part: &str| match part.trim().trim_end_matches('%').trim_end().parse() {
            Ok(percent) if (1..100).contains(&percent) => Ok(percent),
            _ => Err(format!(
                "`{part}` is no part of a maximum; write percentages from 1 to 99 like 50,80, or none"
            )),
        };
        let mut percents = text
            .split(',')
            .map(percent)
            .collect::<Result<Vec<u32>, _>>()?;
        percents.sort_unstable();
        percents.dedup();
        Ok(Self(percents))
    }
}

/// Where a load goes.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Destination {
    /// HOST:PORT.
    pub(super) address: String,
    /// Whether it was a URL, and so speaks http.
    pub(super) is_url: bool,
    /// Whether it is encrypted: https.
    pub(super) is_tls: bool,
    /// What to ask for there, if it was a URL.
    pub(super) path: String,
}

/// The text behind a scheme, in any case: whether that is https, and the rest.
#[cfg(target_os = "linux")]
fn after_scheme(text: &str) -> Option<(bool, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is = |name: &str| scheme.eq_ignore_ascii_case(name);
    (is("http") || is("https")).then(|| (is("https"), rest))
}

/// Takes HOST:PORT or http://HOST:PORT/PATH apart.
#[cfg(target_os = "linux")]
pub(super) fn destination(text: &str) -> Result<Destination, Usage> {
    let refused = |why: &str| Usage(format!("`{text}` {why}"));
    let after_scheme = after_scheme(text);
    let is_tls = after_scheme.is_some_and(|(is_tls, _)| is_tls);
    let rest = after_scheme.map_or(text, |(_, rest)| rest);
    let rest = rest.split('#').next().unwrap_or_default();
    let start = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, path) = match after_scheme {
        Some(_) => rest.split_at(start),
        None => (rest, ""),
    };
    if host.contains('@') {
        return Err(refused("has a user name, which throng does not send"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refused("has characters that must be written as %XX"));
    }
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && !port.ends_with(']'));
    Ok(Destination {
        address: if after_scheme.is_some() && !has_port {
            let port = if is_tls { 443 } else { 80 };
            format!("{}:{port}", host.trim_end_matches(':'))
        } else {
            host.to_owned()
        },
        is_url: after_scheme.is_some(),
        is_tls,
        path,
    })
}

/// The address to connect to. Beyond this machine only when that was allowed on purpose.
#[cfg(target_os = "linux")]
pub(super) fn target(text: &str, allow_remote: bool) -> anyhow::Result<SocketAddr> {
    let mut addresses = text
        .to_socket_addrs()
        .map_err(|error| Usage(format!("`{text}` is no address (HOST:PORT): {error}")))?;
    let address = addresses
        .next()
        .ok_or_else(|| Usage(format!("`{text}` has no address")))?;
    if address.port() == 0 {
        return Err(Usage(format!("`{text}` has no port to connect to")).into());
    }
    if !address.ip().is_loopback() && !allow_remote {
        return Err(Usage(format!(
            "{} is not on this machine's loopback; a load can do harm there, so say \
             --allow-remote if the server is yours",
            address.ip()
        ))
        .into());
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_of_cpus_there_are() {
        assert_eq!(CpuList::from_str("0"), Ok(CpuList(vec![0])));
        assert!(CpuList::from_str("1-0").is_err());
        assert!(CpuList::from_str("").is_err());
        assert!(
            CpuList::from_str("1023")
                .unwrap_err()
                .contains("there is no CPU")
        );
    }

    #[test]
    fn a_url_says_where_and_what() {
        for (text, address, path) in [
            ("127.0.0.1:80", "127.0.0.1:80", "/"),
            ("http://localhost:8080", "localhost:8080", "/"),
            ("http://localhost/a/b?c=d#e", "localhost:80", "/a/b?c=d"),
            ("http://[::1]", "[::1]:80", "/"),
            ("http://[::1]:81?x", "[::1]:81", "/?x"),
            ("HTTPS://localhost", "localhost:443", "/"),
            ("https://localhost:8443/a", "localhost:8443", "/a"),
        ] {
            let destination = destination(text).unwrap();
            assert_eq!(destination.address, address);
            let scheme = text.to_ascii_lowercase();
            assert_eq!(destination.is_url, scheme.starts_with("http"));
            assert_eq!(destination.is_tls, scheme.starts_with("https"));
            assert_eq!(destination.path, path);
        }
        for wrong in [
            "https://me@localhost",
            "http://me@localhost",
            "http://localhost/a b",
        ] {
            assert!(destination(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn other_machines_need_permission() {
        assert!(target("127.0.0.1:80", false).is_ok());
        assert!(
            target("192.0.2.1:80", false)
                .unwrap_err()
                .to_string()
                .contains("--allow-remote")
        );
        assert!(target("192.0.2.1:80", true).is_ok());
        assert!(target("127.0.0.1:0", false).is_err());
        assert!(target("nonsense", false).is_err());
    }
}
