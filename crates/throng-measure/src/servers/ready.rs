//! How to tell that a server is ready: it accepts a connection, prints a line, or replies to a URL.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::hooks::Place;
use throng_protocol::Pattern;
use throng_record::ServerInfo;
use throng_spec::{Endpoint, Target, TlsSpec};
use throng_tls::{Client, Fault, Stream};

/// Time limit of a single check.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum bytes of a status line.
const MOST_BYTES: usize = 1024;

/// How to tell that a server is ready.
pub enum Ready {
    /// It accepts a connection.
    Tcp,
    /// A line of its output matches.
    Output(Box<Pattern>),
    /// A URL returns 2xx or 3xx.
    Url(Url),
}

/// An http or https URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    is_encrypted: bool,
    /// HOST:PORT.
    pub(crate) host: String,
    pub(crate) path: String,
}

impl Ready {
    /// Parses `tcp`, `http://HOST:PORT/PATH` or `https://`, or a regular expression.
    ///
    /// # Errors
    /// If the URL or the regular expression is invalid.
    pub fn read(text: &str) -> Result<Self, String> {
        if text == "tcp" {
            return Ok(Self::Tcp);
        }
        let schemes = [("http://", false, 80), ("https://", true, 443)];
        let found = schemes
            .into_iter()
            .find_map(|(scheme, is_encrypted, port)| {
                let start = text.get(..scheme.len())?;
                let is_it = start.eq_ignore_ascii_case(scheme);
                is_it.then(|| (&text[scheme.len()..], is_encrypted, port))
            });
        let Some((rest, is_encrypted, usual_port)) = found else {
            return Ok(Self::Output(Box::new(Pattern::new(text)?)));
        };
        let start = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(start);
        if host.is_empty() || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "`{text}` is not a URL like http://{{address}}/health"
            ));
        }
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
        let host = if has_port || host == "{address}" {
            host.to_owned()
        } else {
            format!("{host}:{usual_port}")
        };
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Self::Url(Url {
            is_encrypted,
            host,
            path,
        }))
    }
}

/// Checks that throng may contact the addresses of a server: its own if it is already running, and that of `ready`.
/// No other place may skip this.
///
/// # Errors
/// Which address is not of this machine's loopback.
pub fn check_addresses(server: &ServerInfo, allow_remote: bool) -> Result<(), String> {
    let check = |address: &str| -> Result<(), String> {
        address.parse::<Target>()?.endpoints(allow_remote).map(drop)
    };
    if let Some(running) = server.running() {
        check(&running.address)?;
    }
    let ready = server
        .foreign
        .as_ref()
        .and_then(|foreign| foreign.ready.as_deref());
    match ready.map(Ready::read) {
        Some(Ok(Ready::Url(url))) => {
            check(&Place::example().substitute(&url.host)).map_err(|why| format!("--ready: {why}"))
        }
        _ => Ok(()),
    }
}

/// Why a URL did not show that its server is ready.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// It may be ready later; this was the reply.
    Yet(String),
    /// It never will.
    Ever(String),
}

impl Url {
    /// The TLS client for the URL, if it is encrypted.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(crate) fn client(&self, tls: Option<&TlsSpec>) -> anyhow::Result<Option<Client>> {
        if !self.is_encrypted {
            return Ok(None);
        }
        let usual = TlsSpec::default();
        let host = std::slice::from_ref(&self.host);
        Client::new(tls.unwrap_or(&usual), Some("http/1.1"), host).map(Some)
    }

    /// Whether it returns 2xx or 3xx.
    pub(crate) fn answers(&self, tls: Option<&Client>, allow_remote: bool) -> Result<(), NotReady> {
        let target = self.host.parse().map_err(NotReady::Ever)?;
        let socket = connect(&target, allow_remote)?;
        let status = match tls {
            None => self.ask(socket),
            Some(client) => {
                let stream =
                    Stream::handshake(client, 0, socket, TIMEOUT).map_err(|fault: Fault| {
                        if fault.kind.is_lasting() {
                            NotReady::Ever(fault.to_string())
                        } else {
                            NotReady::Yet(fault.to_string())
                        }
                    })?;
                self.ask(stream)
            }
        };
        match status.map_err(|error| yet(&error))? {
            200..=399 => Ok(()),
            status => Err(NotReady::Yet(format!("status {status}"))),
        }
    }

    fn ask(&self, mut stream: impl Read + Write) -> std::io::Result<u16> {
        let Self { host, path, .. } = self;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut bytes = Vec::new();
        let mut byte = [0];
        while bytes.len() < MOST_BYTES && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
            bytes.push(byte[0]);
        }
        let line = String::from_utf8_lossy(&bytes);
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|word| word.trim().parse().ok());
        let is_http = line.starts_with("HTTP/1.");
        status
            .filter(|_| is_http)
            .ok_or_else(|| std::io::Error::other("the reply was not HTTP"))
    }
}

fn connect(target: &Target, allow_remote: bool) -> Result<TcpStream, NotReady> {
    let endpoints = target.endpoints(allow_remote).map_err(NotReady::Ever)?;
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in endpoints.iter().filter_map(Endpoint::tcp) {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => {
                let both = stream
                    .set_read_timeout(Some(TIMEOUT))
                    .and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
                return both.map(|()| stream).map_err(|error| yet(&error));
            }
            Err(error) => last = error,
        }
    }
    Err(yet(&last))
}

fn yet(error: &std::io::Error) -> NotReady {
    NotReady::Yet(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use throng_tls::fixture::{Authority, Server, TlsServerSettings, Valid, server_config};

    use super::*;

    fn url(text: &str) -> Url {
        match Ready::read(text) {
            Ok(Ready::Url(url)) => url,
            _ => panic!("{text} is no URL"),
        }
    }

    #[test]
    fn ready_is_a_url_an_expression_or_tcp() {
        for (text, host, path) in [
            ("http://{address}/health", "{address}", "/health"),
            ("HTTP://localhost:{port}", "localhost:{port}", "/"),
            ("http://localhost?x", "localhost:80", "/?x"),
            ("http://[::1]/", "[::1]:80", "/"),
            ("Https://localhost", "localhost:443", "/"),
        ] {
            let url = url(text);
            assert_eq!((&*url.host, &*url.path), (host, path), "{text}");
            assert_eq!(
                url.is_encrypted,
                text.contains("https") || text.contains("Https")
            );
        }
        assert!(matches!(Ready::read("tcp"), Ok(Ready::Tcp)));
        for pattern in ["^ready", "ready on http://"] {
            assert!(matches!(Ready::read(pattern), Ok(Ready::Output(_))));
        }
        for wrong in ["http://", "https://", "http:///a", "("] {
            assert!(Ready::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_server_is_ready_by_its_status() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = url(&format!("http://{}/health", listener.local_addr().unwrap()));
        let server = std::thread::spawn(move || {
            for reply in [
                "HTTP/1.1 503 Wait\r\n\r\n",
                "HTTP/1.0 301\r\n\r\n",
                "SSH-2.0\r\n",
                "",
            ] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = vec![0; 1024];
                let length = stream.read(&mut request).unwrap();
                assert!(request[..length].starts_with(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:"));
                stream.write_all(reply.as_bytes()).unwrap();
            }
        });
        let status = NotReady::Yet("status 503".to_owned());
        assert_eq!(url.answers(None, false), Err(status));
        assert_eq!(url.answers(None, false), Ok(()));
        let not_http = NotReady::Yet("the reply was not HTTP".to_owned());
        assert_eq!(url.answers(None, false), Err(not_http));
        assert!(url.answers(None, false).is_err());
        server.join().unwrap();
        assert!(
            matches!(url.answers(None, false), Err(NotReady::Yet(_))),
            "nobody listens"
        );
    }

    #[test]
    fn a_certificate_is_checked_as_that_of_the_load_is() {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let certified = authority.issue(&["127.0.0.1"], Valid::Now);
        let server = Server::http(server_config(&certified, &TlsServerSettings::default()), 5);
        let url = url(&format!("https://{}/", server.address));
        let ask = |tls: &TlsSpec| url.answers(url.client(Some(tls)).unwrap().as_ref(), false);
        let trusting = TlsSpec {
            cacert: Some(authority.cacert()),
            ..TlsSpec::default()
        };
        assert_eq!(ask(&trusting), Ok(()));
        let insecure = TlsSpec {
            insecure: true,
            ..TlsSpec::default()
        };
        assert_eq!(ask(&insecure), Ok(()));
        let other = TlsSpec {
            cacert: Some(stranger.cacert()),
            ..TlsSpec::default()
        };
        assert!(
            matches!(ask(&other), Err(NotReady::Ever(why)) if why.contains("--cacert FILE")),
            "it will not have another one"
        );
        let missing = TlsSpec {
            cacert: Some("/nowhere/ca.pem".into()),
            ..TlsSpec::default()
        };
        assert!(url.client(Some(&missing)).is_err());
    }
}
