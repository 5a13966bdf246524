//! What says that a server is ready: it accepts a connection, a line of its output, or a URL.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use throng_protocol::Pattern;

/// How long a server may take to answer one question whether it is ready.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a URL begins with.
const SCHEME: &str = "http://";
/// A status line is no longer.
const MOST_BYTES: usize = 1024;

/// What says that a server is ready.
pub enum Ready {
    /// It accepts a connection.
    Tcp,
    /// A line of its output matches.
    Output(Box<Pattern>),
    /// What is at HOST:PORT answers to a request for this path with 2xx or 3xx.
    Url(String, String),
}

impl Ready {
    /// Reads it from what was written: `tcp`, `http://HOST:PORT/PATH`, or a regular expression.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        if text == "tcp" {
            return Ok(Self::Tcp);
        }
        let is_url = text
            .get(..SCHEME.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
        if !is_url {
            return Ok(Self::Output(Box::new(Pattern::new(text)?)));
        }
        let rest = &text[SCHEME.len()..];
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
        let has_port = has_port || host == "{address}";
        let port = if has_port { "" } else { ":80" };
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Ok(Self::Url(format!("{host}{port}"), path))
    }
}

/// Whether a URL answers with 2xx or 3xx; else what came instead.
pub(super) fn answers(host: &str, path: &str) -> Result<(), String> {
    let status = status(host, path).map_err(|error| error.to_string())?;
    match status {
        200..=399 => Ok(()),
        status => Err(format!("the status {status}")),
    }
}

fn status(host: &str, path: &str) -> std::io::Result<u16> {
    let addresses: Vec<SocketAddr> = host.to_socket_addrs()?.collect();
    let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return ask(stream, host, path),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask(mut stream: TcpStream, host: &str, path: &str) -> std::io::Result<u16> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MOST_BYTES && stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&line);
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|word| word.trim().parse().ok());
    let is_http = line.starts_with("HTTP/1.");
    status
        .filter(|_| is_http)
        .ok_or_else(|| std::io::Error::other("the answer was not HTTP"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_written_is_a_url_an_expression_or_tcp() {
        let url = |text: &str| match Ready::read(text) {
            Ok(Ready::Url(host, path)) => format!("{host} {path}"),
            _ => "no URL".to_owned(),
        };
        assert_eq!(url("http://{address}/health"), "{address} /health");
        assert_eq!(url("HTTP://localhost:{port}"), "localhost:{port} /");
        assert_eq!(url("http://localhost?x"), "localhost:80 /?x");
        assert_eq!(url("http://[::1]/"), "[::1]:80 /");
        assert_eq!(url("ready on http://"), "no URL");
        assert!(matches!(Ready::read("tcp"), Ok(Ready::Tcp)));
        assert!(matches!(Ready::read("^ready"), Ok(Ready::Output(_))));
        assert!(Ready::read("http://").is_err() && Ready::read("(").is_err());
    }

    #[test]
    fn a_server_is_ready_by_its_status() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
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
        assert_eq!(answers(&host, "/health"), Err("the status 503".to_owned()));
        assert_eq!(answers(&host, "/health"), Ok(()));
        assert!(answers(&host, "/health").unwrap_err().contains("not HTTP"));
        assert!(answers(&host, "/health").is_err());
        server.join().unwrap();
        assert!(answers(&host, "/").is_err(), "nobody listens");
    }
}
