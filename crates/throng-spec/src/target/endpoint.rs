//! A server's address, after name resolution.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

use rustix::net::SocketAddrUnix;

use super::super::text::as_text;

/// Maximum bytes of a unix socket's path: `sun_path` without its terminator.
const LONGEST_PATH: usize = 107;

/// The address of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnixPath {
    name: String,
    /// Whether it is abstract: a name without a file, on Linux only.
    is_abstract: bool,
}

impl UnixPath {
    /// The socket at this path, or with a leading `@` the abstract socket of this name.
    ///
    /// # Errors
    /// When no socket can have this path.
    pub fn new(written: &str) -> Result<Self, String> {
        let (name, is_abstract) = match written.strip_prefix('@') {
            Some(name) => (name, true),
            None => (written, false),
        };
        if name.is_empty() {
            return Err("the path of the unix socket is missing".to_owned());
        }
        if name.contains('\0') {
            return Err("the path of a unix socket cannot have a zero byte".to_owned());
        }
        if name.len() > LONGEST_PATH {
            return Err(format!(
                "the path of a unix socket has at most {LONGEST_PATH} bytes, not {}",
                name.len()
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            is_abstract,
        })
    }

    /// As written: `/run/app.sock`, `@name`.
    pub fn written(&self) -> String {
        let mark = if self.is_abstract { "@" } else { "" };
        format!("{mark}{}", self.name)
    }

    /// Its file; `None` for an abstract socket.
    pub fn file(&self) -> Option<PathBuf> {
        (!self.is_abstract).then(|| PathBuf::from(&self.name))
    }

    /// For system calls.
    ///
    /// # Errors
    /// When this system does not support such sockets.
    pub fn address(&self) -> io::Result<SocketAddrUnix> {
        if !self.is_abstract {
            return Ok(SocketAddrUnix::new(self.name.as_str())?);
        }
        #[cfg(target_os = "linux")]
        return Ok(SocketAddrUnix::new_abstract_name(self.name.as_bytes())?);
        #[cfg(not(target_os = "linux"))]
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "abstract unix sockets exist only on Linux",
        ))
    }
}

impl fmt::Display for UnixPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix:{}", self.written())
    }
}

impl FromStr for UnixPath {
    type Err = String;

    /// Parses `unix:/path`, `unix:@name` or the path alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        // As a URL: unix:///path.
        Self::new(path.strip_prefix("//").unwrap_or(path))
    }
}

/// A server's address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// At an address and a port.
    Tcp(SocketAddr),
    /// At a unix socket.
    Unix(UnixPath),
}

impl Endpoint {
    /// Where a server should listen: an address or a name with a port (or 0), `:PORT` for this machine, or a unix
    /// socket.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn to_listen_on(text: &str) -> Result<Self, String> {
        let (name, port) = match (text.parse::<Self>(), text.rsplit_once(':')) {
            (Ok(endpoint), _) => return Ok(endpoint),
            (Err(why), _) if text.starts_with("unix:") => return Err(why),
            (Err(_), Some((name, port))) if !name.contains([':', '/', '[']) => (name, port),
            (Err(why), _) => return Err(why),
        };
        let number: u16 = port
            .parse()
            .map_err(|_| format!("{port} is not a port; expected a number from 0 to 65535"))?;
        if name.is_empty() {
            return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, number)).into());
        }
        let found: Vec<SocketAddr> = (name, number)
            .to_socket_addrs()
            .map_err(|error| format!("cannot look up {name}: {}", super::resolve::plainly(&error)))?
            .collect();
        let address = found
            .iter()
            .find(|address| address.is_ipv4())
            .or(found.first())
            .ok_or_else(|| format!("{name} has no address"))?;
        Ok((*address).into())
    }

    /// Its TCP address, if it has one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// Its name in HTTP requests.
    pub fn host(&self) -> String {
        super::Target::from(self.clone()).host()
    }

    /// Whether it is on this machine only.
    pub fn is_local(&self) -> bool {
        self.tcp()
            .is_none_or(|address| address.ip().to_canonical().is_loopback())
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.fmt(f),
        }
    }
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("unix:") {
            return text.parse().map(Self::Unix);
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            format!("`{text}` is not an address; write it like 127.0.0.1:7777 or [::1]:7777")
        })
    }
}

as_text!(
    Endpoint,
    "an address and a port, like \"127.0.0.1:7777\", or a unix socket, like \"unix:/run/app.sock\""
);

/// An address without its port, as written in a target.
pub(super) fn host_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(of_v6) if of_v6.scope_id() != 0 => {
            format!("{}%{}", of_v6.ip(), of_v6.scope_id())
        }
        address => IpAddr::to_string(&address.ip()),
    }
}
