//! The target of a load, as users write it: `localhost:7777`, `http://[::1]:8080/path`, `unix:/run/app.sock`.

mod endpoint;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use endpoint::{Endpoint, UnixPath};

use super::text::as_text;
use super::{LoadSpec, Paths, SpecError, TlsSpec};

/// The scheme before `://`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Any protocol; also without a scheme.
    Tcp,
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// HTTP/2 without TLS.
    H2c,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Scheme {
    /// All variants, by name.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("tcp", Self::Tcp),
        ("http", Self::Http),
        ("https", Self::Https),
        ("h2c", Self::H2c),
        ("ws", Self::Ws),
        ("wss", Self::Wss),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMED[self as usize].0
    }

    /// The default port.
    pub fn usual_port(self) -> Option<u16> {
        match self {
            Self::Tcp => None,
            Self::Http | Self::H2c | Self::Ws => Some(80),
            Self::Https | Self::Wss => Some(443),
        }
    }

    /// Its protocol; `None` for any.
    pub fn protocol(self) -> Option<&'static str> {
        match self {
            Self::Tcp => None,
            Self::Http | Self::Https => Some("http"),
            Self::H2c => Some("http2"),
            Self::Ws | Self::Wss => Some("websocket"),
        }
    }

    /// Whether it can be used with this protocol: URLs of HTTP are for all its versions.
    fn is_for(self, protocol: &str) -> bool {
        self.protocol() == Some(protocol)
            || (matches!(self, Self::Http | Self::Https) && ["http2", "grpc"].contains(&protocol))
            || (self, protocol) == (Self::H2c, "grpc")
    }

    /// Whether it uses TLS.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }
}

/// The place of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A host and its port.
    Host {
        /// A name or an address; IPv6 without brackets.
        name: String,
        /// The port.
        port: u16,
    },
    /// A unix socket on this machine.
    Unix(UnixPath),
}

/// The target of a load, and what it requests there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As written.
    pub scheme: Scheme,
    /// Its place.
    pub place: Place,
    /// `name:password`, if a URL has them.
    pub user: Option<String>,
    /// The path of a URL, from the first slash, including the query; empty without a URL.
    pub path: String,
}

impl Target {
    /// Whether it is a URL, which determines its protocol.
    pub fn is_url(&self) -> bool {
        self.scheme.protocol().is_some()
    }

    /// The name of the server as sent in requests: with its port, unless that is the default.
    pub fn host(&self) -> String {
        match &self.place {
            Place::Host { name, port } => {
                let usual = self.scheme.usual_port();
                written_host(name, (Some(*port) != usual).then_some(*port))
            }
            Place::Unix(_) => "localhost".to_owned(),
        }
    }

    /// HOST:PORT; for a unix socket, a substitute that can be used as a name.
    pub fn authority(&self) -> String {
        match &self.place {
            Place::Host { name, port } => written_host(name, Some(*port)),
            Place::Unix(_) => format!("localhost:{}", self.scheme.usual_port().unwrap_or(80)),
        }
    }

    /// Its place only.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self {
            scheme: Scheme::Tcp,
            place: self.place.clone(),
            user: None,
            path: String::new(),
        }
    }

    /// The same, via a unix socket.
    #[must_use]
    pub fn over(self, socket: UnixPath) -> Self {
        Self {
            place: Place::Unix(socket),
            ..self
        }
    }

    /// Whether another target requests the same.
    pub fn asks_the_same(&self, other: &Self) -> bool {
        let asked = |target: &Self| (target.scheme, target.path.clone(), target.user.clone());
        asked(self) == asked(other)
    }
}

impl From<Endpoint> for Target {
    fn from(endpoint: Endpoint) -> Self {
        let place = match endpoint {
            Endpoint::Tcp(address) => Place::Host {
                name: endpoint::host_of(address),
                port: address.port(),
            },
            Endpoint::Unix(path) => Place::Unix(path),
        };
        Self {
            scheme: Scheme::Tcp,
            place,
            user: None,
            path: String::new(),
        }
    }
}

/// A host as written before a path.
fn written_host(name: &str, port: Option<u16>) -> String {
    let name = if name.contains(':') {
        format!("[{name}]")
    } else {
        name.to_owned()
    };
    match port {
        Some(port) => format!("{name}:{port}"),
        None => name,
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.scheme.name();
        let user = self
            .user
            .as_deref()
            .map(parse::encoded_user)
            .map_or(String::new(), |user| user + "@");
        match (&self.place, self.is_url()) {
            (Place::Unix(path), false) => write!(f, "{path}"),
            (Place::Unix(path), true) => {
                let socket = parse::encoded(&path.written());
                write!(f, "{scheme}+unix://{user}{socket}{}", self.path)
            }
            (Place::Host { name, port }, false) => f.write_str(&written_host(name, Some(*port))),
            (Place::Host { .. }, true) => {
                write!(f, "{scheme}://{user}{}{}", self.host(), self.path)
            }
        }
    }
}

as_text!(
    Target,
    "an address, like \"localhost:7777\", \"http://localhost:8080/path\" or \"unix:/run/app.sock\""
);

impl LoadSpec {
    /// Applies a target to this load: its protocol, path and user.
    ///
    /// # Errors
    /// When the load contradicts it.
    pub fn ask_for(&mut self, target: &Target) -> Result<(), SpecError> {
        let Some(of_url) = target.scheme.protocol() else {
            if self.send.is_none() {
                self.protocol.get_or_insert_with(|| "echo".to_owned());
            }
            return Ok(());
        };
        let scheme = target.scheme.name();
        if self.send.is_some() {
            let why = format!("`send` needs HOST:PORT, not a URL; leave out {scheme}://");
            return Err(SpecError::key("send", why));
        }
        if target.scheme.is_encrypted() {
            self.tls.get_or_insert_with(TlsSpec::default);
        } else if self.tls.is_some() {
            let why = format!(
                "{target} is not encrypted, but TLS flags are given; write {scheme}s://, or leave them out"
            );
            return Err(SpecError::key("tls", why));
        }
        let protocol = self.protocol.get_or_insert_with(|| of_url.to_owned());
        if !target.scheme.is_for(protocol) {
            let why = format!(
                "{scheme}:// is for {of_url}, not for {protocol}; leave out {scheme}:// or `protocol`"
            );
            return Err(SpecError::value("protocol", why));
        }
        if self.request_file.is_some() {
            if target.path != "/" {
                let why = format!(
                    "the URL already has the path {}, and `request-file` has its own; leave out one of them",
                    target.path
                );
                return Err(SpecError::key("request-file", why));
            }
        } else if self.path.is_none() {
            self.path = Some(Paths::one(target.path.clone()));
        } else if target.path != "/" {
            let why = format!(
                "the URL already has the path {}; give all paths with `path`",
                target.path
            );
            return Err(SpecError::key("path", why));
        }
        let has = |name: &str, header: &String| {
            let own = header.split(':').next().unwrap_or_default();
            own.eq_ignore_ascii_case(name)
        };
        if let Some(user) = &target.user {
            if self
                .header
                .iter()
                .any(|header| has("authorization", header))
            {
                let why = "the URL has a user name, and so has `user` or a header Authorization; leave out one of them";
                return Err(SpecError::key("header", why));
            }
            let encoded = STANDARD.encode(user);
            self.header.push(format!("Authorization: Basic {encoded}"));
        }
        Ok(())
    }
}
