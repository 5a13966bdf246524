//! Sessions against a rustls server, with and without sockets.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};
use throng_spec::TlsSpec;
use throng_tls::fixture::{Authority, Server, TlsServerSettings, Valid, server_config};
use throng_tls::{Client, Kind, Session, SessionEvent, Stream, speaks_tls};

const TIMEOUT: Duration = Duration::from_mins(1);

fn trusting(authority: &Authority) -> TlsSpec {
    TlsSpec {
        cacert: Some(authority.cacert()),
        sni: Some("localhost".to_owned()),
        ..TlsSpec::default()
    }
}

fn client(tls: &TlsSpec) -> Client {
    Client::new(tls, None, &["127.0.0.1:1".to_owned()]).expect("it goes on")
}

fn config(authority: &Authority, speaks: &TlsServerSettings) -> Arc<ServerConfig> {
    server_config(&authority.issue(&["localhost"], Valid::Now), speaks)
}

/// Passes a server's bytes to a session, in pieces of `piece` bytes, and collects the plaintext.
fn feed(
    session: &mut Session,
    server: &mut ServerConnection,
    piece: usize,
    plaintext: &mut Vec<u8>,
) {
    let mut wire = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut wire).expect("it goes on");
    }
    for piece in wire.chunks_mut(piece) {
        let result = session.receive(piece, &mut |event| {
            if let SessionEvent::Plaintext(bytes) = event {
                plaintext.extend_from_slice(bytes);
            }
            true
        });
        result.expect("it goes on");
    }
}

fn ask(session: &mut Session, server: &mut ServerConnection, plaintext: &[u8]) {
    let mut wire = Vec::new();
    if plaintext.is_empty() {
        wire.append(session.outgoing());
    } else {
        session.seal(plaintext, &mut wire).expect("it goes on");
    }
    let mut rest = &wire[..];
    while !rest.is_empty() {
        server.read_tls(&mut rest).expect("it goes on");
        server.process_new_packets().expect("it goes on");
    }
}

#[test]
fn records_may_be_cut_anywhere() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let speaks = TlsServerSettings {
            version: Some(version),
            ..TlsServerSettings::default()
        };
        let config = config(&authority, &speaks);
        for piece in [1, 2, 3, 5, 7, 100, 1000, 16_000, 17_000, 1_000_000] {
            let mut session = client(&trusting(&authority))
                .sessions(1)
                .begin(0, 0)
                .unwrap();
            let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut plaintext = Vec::new();
            while !session.is_open() {
                ask(&mut session, &mut server, b"");
                feed(&mut session, &mut server, piece, &mut plaintext);
            }
            let body: Vec<u8> = (0..50_000_u32).map(|number| (number % 251) as u8).collect();
            for _ in 0..2 {
                ask(&mut session, &mut server, b"a request");
                let mut request = [0; 9];
                server.reader().read_exact(&mut request).unwrap();
                assert_eq!(&request, b"a request");
                server.writer().write_all(&body).unwrap();
                feed(&mut session, &mut server, piece, &mut plaintext);
                assert!(plaintext == body, "in pieces of {piece} bytes");
                plaintext.clear();
            }
            server.send_close_notify();
            feed(&mut session, &mut server, piece, &mut plaintext);
            assert!(session.has_ended());
            let mut last = Vec::new();
            session.close(&mut last);
            server.read_tls(&mut &last[..]).unwrap();
            assert!(server.process_new_packets().unwrap().peer_has_closed());
        }
    }
}

/// The fault of a handshake with a server, if it has one.
fn fault(server: &Server, tls: &TlsSpec) -> Option<(Kind, String)> {
    let client = Client::new(tls, None, &[server.address.to_string()]).expect("it goes on");
    let socket = TcpStream::connect(server.address).expect("it goes on");
    let failed = Stream::handshake(&client, 0, socket, TIMEOUT).err();
    failed.map(|fault| (fault.kind, fault.detail))
}

#[test]
fn certificates_are_checked() {
    let (authority, other) = (Authority::new(), Authority::new());
    let echo = |certified| Server::echo(server_config(&certified, &TlsServerSettings::default()));
    let good = echo(authority.issue(&["localhost"], Valid::Now));
    let expired = echo(authority.issue(&["localhost"], Valid::Before));
    let elsewhere = echo(authority.issue(&["a.example"], Valid::Now));
    let by_address = echo(authority.issue(&["127.0.0.1"], Valid::Now));
    let [own, own_ca] = [false, true].map(|is_ca| authority.self_signed(&["localhost"], is_ca));
    let (self_signed, self_signed_ca) = (echo(own.clone()), echo(own_ca.clone()));
    let trusted = trusting(&authority);
    let by_host = TlsSpec {
        sni: None,
        ..trusted.clone()
    };
    let insecure = TlsSpec {
        insecure: true,
        ..TlsSpec::default()
    };
    let trusting_file = |file: &PathBuf| TlsSpec {
        cacert: Some(file.clone()),
        ..trusted.clone()
    };
    for (server, tls, expected) in [
        (&good, &trusted, None),
        (&by_address, &by_host, None),
        (&expired, &insecure, None),
        (&self_signed, &trusting_file(&own.cert), None),
        (&self_signed_ca, &trusting_file(&own_ca.cert), None),
        (&good, &by_host, Some((Kind::WrongHost, "--sni"))),
        (&elsewhere, &trusted, Some((Kind::WrongHost, "a.example"))),
        (&expired, &trusted, Some((Kind::Expired, "expired"))),
        (
            &good,
            &trusting(&other),
            Some((Kind::UnknownIssuer, "--cacert")),
        ),
        (
            &self_signed,
            &trusted,
            Some((Kind::UnknownIssuer, "self-signed")),
        ),
        (
            &self_signed_ca,
            &trusted,
            Some((Kind::UnknownIssuer, "self-signed")),
        ),
    ] {
        let found = fault(server, tls);
        let kind = found.as_ref().map(|(kind, _)| *kind);
        assert_eq!(kind, expected.map(|(kind, _)| kind), "{found:?}");
        if let (Some((_, detail)), Some((_, words))) = (found, expected) {
            assert!(detail.contains(words), "`{words}` is not in `{detail}`");
        }
    }
}

#[test]
fn a_stream_says_when_it_ends() {
    let authority = Authority::new();
    let server = Server::echo(config(&authority, &TlsServerSettings::default()));
    let socket = TcpStream::connect(server.address).unwrap();
    let client = client(&trusting(&authority));
    let mut stream = Stream::handshake(&client, 0, socket, TIMEOUT).unwrap();
    let body = vec![7; 300_000];
    let mut other = stream.try_clone().unwrap();
    let sent = body.clone();
    let sending = std::thread::spawn(move || other.write_all(&sent).unwrap());
    let mut plaintext = vec![0; body.len()];
    stream.read_exact(&mut plaintext).unwrap();
    sending.join().unwrap();
    assert!(plaintext == body);
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(stream.read(&mut plaintext).unwrap(), 0);
}

#[test]
fn a_stream_that_is_cut_has_no_end() {
    let authority = Authority::new();
    let server = Server::start(
        config(&authority, &TlsServerSettings::default()),
        |stream| {
            let _ = stream.write_all(b"part").and_then(|()| stream.flush());
            stream.sock.shutdown(Shutdown::Write).is_ok()
        },
    );
    let socket = TcpStream::connect(server.address).unwrap();
    let client = client(&trusting(&authority));
    let mut stream = Stream::handshake(&client, 0, socket, TIMEOUT).unwrap();
    let mut plaintext = Vec::new();
    let error = stream.read_to_end(&mut plaintext).unwrap_err();
    assert_eq!(plaintext, b"part");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
}

/// A key, and a certificate of X.509 version 1 for it, by openssl(1).
const VERSION_1: [&str; 2] = [
    "\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgPufJ4jGDC+E3Lulc
lT7y4+6gYuYs/IHbZaRaTXIXWsyhRANCAASI0vSSiacVAmiIGjhxX2EUIFoaV3+s
POSguh2KeOdjSAzeQNQW/rq1I5gYarxEngUHUGPAOBodRRsLZ98YRmFo
-----END PRIVATE KEY-----
",
    "\
-----BEGIN CERTIFICATE-----
MIIBEzCBuwIUERN6pub9P0T8c8U5C+g55lhTo9owCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCdjEwHhcNMjYxMTI1MjMwMTExWhcNMzYxMTIyMjMwMTExWjANMQswCQYD
VQQDDAJ2MTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIjS9JKJpxUCaIgaOHFf
YRQgWhpXf6w85KC6HYp452NIDN5A1Bb+urUjmBhqvESeBQdQY8A4Gh1FGwtn3xhG
YWgwCgYIKoZIzj0EAwIDRwAwRAIgF0ro9Zr8Mr9GAO9rhrT8bi3nPI/Z2gS2BAx7
oLw+FpQCICsw4JOq0j7gGbflLGR/KjpPPUn723Yzoyxh5iecTQ+V
-----END CERTIFICATE-----
",
];

/// Regression test: certificate and key were said not to match.
#[test]
fn a_client_may_have_an_old_certificate() {
    let authority = Authority::new();
    let place = tempfile::tempdir().unwrap();
    let [key, cert] = ["key", "cert"].map(|name| place.path().join(name));
    std::fs::write(&key, VERSION_1[0]).unwrap();
    std::fs::write(&cert, VERSION_1[1]).unwrap();
    let tls = |cert: &PathBuf| TlsSpec {
        cert: Some(cert.clone()),
        key: Some(key.clone()),
        ..trusting(&authority)
    };
    assert!(Client::new(&tls(&cert), None, &[]).is_ok());
    let other = authority.issue(&["client"], Valid::Now).cert;
    let error = Client::new(&tls(&other), None, &[]).unwrap_err();
    assert!(error.to_string().ends_with("do not match"), "{error}");
}

#[test]
fn a_server_without_tls_is_found_out() {
    let authority = Authority::new();
    let server = Server::echo(config(&authority, &TlsServerSettings::default()));
    assert!(speaks_tls(server.address, TIMEOUT));
    let demanding = Server::echo(config(
        &authority,
        &TlsServerSettings {
            clients_of: Some(authority.cacert()),
            ..TlsServerSettings::default()
        },
    ));
    assert!(speaks_tls(demanding.address, TIMEOUT));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            let _ = socket.read(&mut [0; 1]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    assert!(!speaks_tls(plain, TIMEOUT));
}

#[test]
fn files_that_are_wrong_are_named() {
    let authority = Authority::new();
    let certified = authority.issue(&["localhost"], Valid::Now);
    let other = authority.issue(&["localhost"], Valid::Now);
    let none = PathBuf::from("/nonexistent/ca.pem");
    for (tls, words) in [
        (
            TlsSpec {
                cacert: Some(none.clone()),
                ..TlsSpec::default()
            },
            "/nonexistent/ca.pem",
        ),
        (
            TlsSpec {
                cacert: Some(certified.key.clone()),
                ..TlsSpec::default()
            },
            "no certificate",
        ),
        (
            TlsSpec {
                cert: Some(certified.cert.clone()),
                key: Some(none),
                ..trusting(&authority)
            },
            "private key",
        ),
        (
            TlsSpec {
                cert: Some(certified.cert),
                key: Some(other.key),
                ..trusting(&authority)
            },
            "do not match",
        ),
        (
            TlsSpec {
                sni: Some("not a name".to_owned()),
                ..trusting(&authority)
            },
            "not a name",
        ),
    ] {
        let refused = Client::new(&tls, None, &["localhost:1".to_owned()]);
        let text = format!("{:#}", refused.unwrap_err());
        assert!(text.contains(words), "`{words}` is not in `{text}`");
    }
}
