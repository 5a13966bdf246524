//! Loads over TLS, against a rustls server.

use throng_protocol::Offer;
use throng_spec::TlsSpec;
use throng_tls::Client;
use throng_tls::fixture::{
    Authority, Served, Server as TlsServer, TlsServerSettings, Valid, server_config,
};

use super::*;

fn trusting(authority: &Authority) -> TlsSpec {
    TlsSpec {
        cacert: Some(authority.cacert()),
        ..TlsSpec::default()
    }
}

/// A load over TLS.
fn encrypted(tls: &TlsSpec, plan: Plan) -> Plan {
    let servers: Vec<String> = plan.routes.targets().map(ToString::to_string).collect();
    let client = Client::new(tls, plan.dialogue.alpn(), &servers).unwrap();
    Plan {
        tls: Some(Arc::new(client)),
        ..plan
    }
}

fn good(authority: &Authority, speaks: &TlsServerSettings) -> Arc<rustls::ServerConfig> {
    server_config(&authority.issue(&["127.0.0.1"], Valid::Now), speaks)
}

/// The kinds of errors of a load, and the first message of the expected kind.
fn only_error<'a>(load: &'a Load, kind: &str, clients: u64) -> &'a str {
    assert_eq!(load.errors, [(kind.to_owned(), clients)].into());
    load.error_details.get(kind).map_or("", String::as_str)
}

#[test]
fn every_echo_is_verified() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let speaks = TlsServerSettings {
            version: Some(version),
            ..TlsServerSettings::default()
        };
        let server = TlsServer::echo(good(&authority, &speaks));
        for (size, total) in [(1, 500), (1000, 500), (200_000, 50), (3_000_000, 10)] {
            let plan = plan(server.address, "echo", size, 5, Until::Requests(total));
            on_each(&encrypted(&trusting(&authority), plan), |engine, load| {
                all_verified(total)(engine, load);
                assert_eq!(load.window.bytes_received, total * size as u64);
                assert_eq!(load.window.bytes_sent, total * size as u64);
                let tls = load.tls.as_ref().unwrap();
                assert_eq!((tls.handshakes, tls.resumed), (5, 0));
                assert_eq!(tls.handshake_time.as_ref().unwrap().count, 5);
                assert_eq!(tls.negotiated.values().sum::<u64>(), 5);
            });
        }
    }
}

#[test]
fn pipelines_are_echoed() {
    let authority = Authority::new();
    let server = TlsServer::echo(good(&authority, &TlsServerSettings::default()));
    for (size, total) in [(100, 3000), (100_000, 100)] {
        let plan = Plan {
            pipeline: 16,
            ..plan(server.address, "echo", size, 3, Until::Requests(total))
        };
        on_each(&encrypted(&trusting(&authority), plan), all_verified(total));
    }
}

#[test]
fn websockets_are_encrypted() {
    let authority = Authority::new();
    let server = TlsServer::start(good(&authority, &TlsServerSettings::default()), |stream| {
        let mut session = protocol("websocket").session(&Offer::default());
        let mut bytes = vec![0; 100_000];
        let mut input = Vec::new();
        loop {
            match stream.read(&mut bytes) {
                Ok(0) => return true,
                Ok(count) => input.extend_from_slice(&bytes[..count]),
                Err(_) => return false,
            }
            let mut out = Vec::new();
            while let Ok(step) = session.receive(&input, &mut out)
                && step.consumed > 0
            {
                out.extend_from_slice(&input[..step.reflected]);
                input.drain(..step.consumed);
            }
            if stream.write_all(&out).is_err() || stream.flush().is_err() {
                return false;
            }
        }
    });
    for (pipeline, size, total) in [(1, 100, 500), (8, 3000, 500)] {
        let plan = Plan {
            pipeline,
            ..plan(server.address, "websocket", size, 5, Until::Requests(total))
        };
        on_each(&encrypted(&trusting(&authority), plan), all_verified(total));
    }
}

#[test]
fn http_is_agreed_on_and_answered() {
    let authority = Authority::new();
    let speaks = TlsServerSettings {
        alpn: vec![b"http/1.1".to_vec()],
        ..TlsServerSettings::default()
    };
    for (body, total) in [(5, 500), (150_000, 60)] {
        let server = TlsServer::http(good(&authority, &speaks), body);
        let plan = plan(server.address, "http", 1, 4, Until::Requests(total));
        on_each(&encrypted(&trusting(&authority), plan), |engine, load| {
            all_verified(total)(engine, load);
            let tls = load.tls.as_ref().unwrap();
            let (what, count) = tls.negotiated.iter().next().unwrap();
            assert!(what.starts_with("TLS 1.3, TLS13_"), "{what}");
            assert!(what.ends_with(", http/1.1"), "{what}");
            assert_eq!(*count, 4);
        });
    }
}

#[test]
fn connections_end_in_order_and_sessions_are_resumed() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for resume in [false, true] {
            let speaks = TlsServerSettings {
                version: Some(version),
                ..TlsServerSettings::default()
            };
            let server = TlsServer::echo(good(&authority, &speaks));
            let plan = Plan {
                requests_per_connection: Some(5),
                ..plan(server.address, "echo", 100, 4, Until::Requests(200))
            };
            let tls = TlsSpec {
                resume,
                ..trusting(&authority)
            };
            let engines = engines().len();
            on_each(&encrypted(&tls, plan), |engine, load| {
                all_verified(200)(engine, load);
                let tls = load.tls.as_ref().unwrap();
                // The first session of each client has nothing to resume.
                let resumed = if resume { 36 } else { 0 };
                assert_eq!((tls.handshakes, tls.resumed), (40, resumed));
                assert_eq!(load.connections, 40);
            });
            let closed = until_counted(&server.closed_in_order, engines as u64 * 40);
            assert_eq!(closed, engines as u64 * 40, "resume: {resume}");
            assert_eq!(server.accepted.load(Relaxed), engines * 40);
        }
    }
}

#[test]
fn a_server_may_want_a_certificate_of_clients() {
    let authority = Authority::new();
    let speaks = TlsServerSettings {
        clients_of: Some(authority.cacert()),
        ..TlsServerSettings::default()
    };
    let server = TlsServer::echo(good(&authority, &speaks));
    let client = authority.issue(&["client"], Valid::Now);
    let tls = TlsSpec {
        cert: Some(client.cert),
        key: Some(client.key),
        ..trusting(&authority)
    };
    let plan = plan(server.address, "echo", 100, 3, Until::Requests(30));
    on_each(&encrypted(&tls, plan.clone()), all_verified(30));
    on_each(&encrypted(&trusting(&authority), plan), |_, load| {
        let detail = only_error(load, "tls-alert", 3);
        assert!(detail.contains("--cert FILE"), "{detail}");
    });
}

#[test]
fn certificates_that_are_not_accepted_have_kinds_of_their_own() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (certified, kind) in [
        (
            authority.issue(&["127.0.0.1"], Valid::Before),
            "tls-expired",
        ),
        (
            authority.issue(&["a.example"], Valid::Now),
            "tls-wrong-host",
        ),
        (
            other.issue(&["127.0.0.1"], Valid::Now),
            "tls-unknown-issuer",
        ),
        (
            authority.self_signed(&["127.0.0.1"], true),
            "tls-unknown-issuer",
        ),
    ] {
        let server = TlsServer::echo(server_config(&certified, &TlsServerSettings::default()));
        let plan = plan(server.address, "echo", 100, 3, Until::Requests(300));
        on_each(&encrypted(&trusting(&authority), plan), |_, load| {
            let detail = only_error(load, kind, 3);
            assert!(detail.contains("-k"), "{detail}");
            assert_eq!(load.connected, 0);
            assert_eq!(load.stopped_by, "no-clients-left");
        });
    }
}

type Peer = fn(TcpStream);

/// Peers that make no handshake, and the resulting errors.
#[test]
fn a_reply_that_is_no_handshake_is_named() {
    let authority = Authority::new();
    let stops: Peer = |mut stream| {
        swallow(&mut stream, 100);
        // Part of a record, and then nothing.
        let _ = stream.write_all(&[22, 3, 3, 0, 100, 2]);
        swallow(&mut stream, u64::MAX >> 1);
    };
    let closes: Peer = drop;
    let of_http: Peer = |mut stream| {
        swallow(&mut stream, 1);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        swallow(&mut stream, u64::MAX >> 1);
    };
    let garbage: Peer = |mut stream| {
        swallow(&mut stream, 1);
        let _ = stream.write_all(&[0x99; 5000]);
        swallow(&mut stream, u64::MAX >> 1);
    };
    let refuses: Peer = |mut stream| {
        swallow(&mut stream, 1);
        // Alert, fatal, handshake_failure.
        let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]);
        swallow(&mut stream, u64::MAX >> 1);
    };
    for (peer, kinds, words) in [
        (stops, &["tls-timeout"][..], "no TLS handshake within"),
        // The reset may overtake the close.
        (closes, &["tls-closed", "reset"], ""),
        (of_http, &["tls-not-spoken"], "http://"),
        (garbage, &["tls-not-spoken"], "does not speak TLS"),
        (echo, &["tls-not-spoken"], "echoes"),
        (refuses, &["tls-alert"], "HandshakeFailure"),
    ] {
        let server = server(move |stream, _| peer(stream));
        let plan = Plan {
            connect_timeout: Duration::from_millis(500),
            ..plan(server.address, "echo", 100, 3, Until::Requests(300))
        };
        on_each(&encrypted(&trusting(&authority), plan), |engine, load| {
            let name = engine.name();
            assert_eq!(load.errors.values().sum::<u64>(), 3, "{name}");
            for kind in load.errors.keys() {
                assert!(kinds.contains(&kind.as_str()), "{name}: {kind}");
                let detail = load.error_details.get(kind).map_or("", String::as_str);
                assert!(kind == "reset" || detail.contains(words), "{detail}");
            }
            assert_eq!(load.connected, 0, "{name}");
            assert_eq!(load.stopped_by, "no-clients-left", "{name}");
        });
    }
}

/// Serves `echoes` echoes, and then calls `then`.
fn after(echoes: usize, then: fn(&mut Served)) -> impl Fn(&mut Served) -> bool + Send + Sync {
    move |stream| {
        let mut bytes = [0; 100];
        for _ in 0..echoes {
            if stream.read_exact(&mut bytes).is_err() || stream.write_all(&bytes).is_err() {
                return false;
            }
        }
        let _ = stream.read_exact(&mut bytes);
        then(stream);
        false
    }
}

#[test]
fn later_failures_differ_from_failed_handshakes() {
    let authority = Authority::new();
    let garbage: fn(&mut Served) = |stream| {
        let _ = stream.sock.write_all(&[23, 3, 3, 0, 30]);
        let _ = stream.sock.write_all(&[0x55; 30]);
        swallow(&mut stream.sock, u64::MAX >> 1);
    };
    let half_a_reply: fn(&mut Served) = |stream| {
        let _ = stream.write_all(&[0; 0]);
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        swallow(&mut stream.sock, u64::MAX >> 1);
    };
    let orderly: fn(&mut Served) = |stream| {
        stream.conn.send_close_notify();
        let _ = stream.flush();
        swallow(&mut stream.sock, u64::MAX >> 1);
    };
    for (then, kind) in [
        (garbage, "tls-bad-record"),
        (half_a_reply, "closed-early"),
        (orderly, "closed-early"),
    ] {
        let config = good(&authority, &TlsServerSettings::default());
        let server = TlsServer::start(config, after(3, then));
        let plan = plan(server.address, "echo", 100, 3, Until::Requests(300));
        on_each(&encrypted(&trusting(&authority), plan), |engine, load| {
            only_error(load, kind, 3);
            assert_eq!(load.verified, 9, "{}: {kind}", engine.name());
        });
    }
}

/// Regression test: the end of a connection completed a reply without a length, although anybody could have cut it.
#[test]
fn only_an_orderly_end_completes_a_reply_without_a_length() {
    let authority = Authority::new();
    let reply = |stream: &mut Served| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello");
        let _ = stream.flush();
    };
    let config = good(&authority, &TlsServerSettings::default());
    let cut = TlsServer::start(Arc::clone(&config), move |stream| {
        reply(stream);
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        stream.read(&mut [0; 100]).is_ok()
    });
    let whole = TlsServer::start(config, move |stream| {
        reply(stream);
        stream.conn.send_close_notify();
        let _ = stream.flush();
        stream.read(&mut [0; 100]).is_ok()
    });
    let load = |server: &TlsServer| {
        let plan = plan(server.address, "http", 1, 3, Until::Requests(30));
        encrypted(&trusting(&authority), plan)
    };
    on_each(&load(&cut), |_, load| {
        let detail = only_error(load, "tls-truncated", 3);
        assert!(detail.contains("close_notify"), "{detail}");
        assert_eq!(load.verified, 0);
    });
    on_each(&load(&whole), all_verified(30));
}

#[test]
fn a_server_may_read_slowly() {
    let authority = Authority::new();
    // The server reads a large request slowly, so that the socket accepts it in small pieces.
    let server = TlsServer::start(good(&authority, &TlsServerSettings::default()), |stream| {
        let mut bytes = vec![0; 3000];
        let mut received = Vec::new();
        while received.len() < 4_000_000 {
            match stream.read(&mut bytes) {
                Ok(count @ 1..) => received.extend_from_slice(&bytes[..count]),
                _ => return false,
            }
        }
        stream.write_all(&received).is_ok() && stream.flush().is_ok()
    });
    let plan = Plan {
        requests_per_connection: Some(1),
        ..plan(server.address, "echo", 4_000_000, 3, Until::Requests(6))
    };
    on_each(&encrypted(&trusting(&authority), plan), all_verified(6));
}
