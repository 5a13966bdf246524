//! Bytes from a server that encrypts, or should: the sessions of `throng-tls`, which have no socket.

use std::io::Write as _;
use std::iter;
use std::sync::{Arc, OnceLock};

use throng::spec::TlsSpec;
use throng::tls::fixture::{
    Authority, ServerConfig, ServerConnection, TlsServerSettings, Valid, server_config, version,
};
use throng::tls::{Client, Kind, Session, SessionEvent, Sessions};

use super::bytes::{Choices, Cuts, edit};

/// Maximum bytes that a session sends on its own: handshake messages, alerts.
const MOST_OUT: usize = 16 * 1024;
/// Bytes of a reply: none, few, a full record, and more.
const REPLIES: [usize; 5] = [0, 1, 100, 16_384, 17_000];
/// Number of turns of each side. The handshake takes two.
const TURNS: usize = 4;
const REQUEST: &[u8] = b"a request";

/// The clients of a load, and a server that they trust for each version.
struct Sides {
    client: Client,
    servers: [Arc<ServerConfig>; 2],
}

fn sides() -> &'static Sides {
    static SIDES: OnceLock<Sides> = OnceLock::new();
    SIDES.get_or_init(|| {
        let authority = Authority::new();
        let certified = authority.issue(&["localhost"], Valid::Now);
        let tls = TlsSpec {
            cacert: Some(authority.cacert()),
            sni: Some("localhost".to_owned()),
            resume: true,
            ..TlsSpec::default()
        };
        let client = Client::new(&tls, Some("http/1.1"), &["localhost:1".to_owned()]);
        let servers = [&version::TLS13, &version::TLS12].map(|version| {
            let speaks = TlsServerSettings {
                version: Some(version),
                alpn: vec![b"http/1.1".to_vec()],
                ..TlsServerSettings::default()
            };
            server_config(&certified, &speaks)
        });
        Sides {
            client: client.expect("its files are there"),
            servers,
        }
    })
}

/// The events of a session.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    opened: u32,
    plaintext: Vec<u8>,
    has_ended: bool,
    fault: Option<Kind>,
}

/// Passes these pieces to a session.
fn receive_all<'a>(session: &mut Session, pieces: impl Iterator<Item = &'a [u8]>, seen: &mut Seen) {
    for piece in pieces {
        // They are decrypted in place.
        let mut piece = piece.to_vec();
        let Seen {
            opened, plaintext, ..
        } = seen;
        let received = session.receive(&mut piece, &mut |event| {
            match event {
                SessionEvent::Opened(agreed) => {
                    *opened += 1;
                    let _ = agreed.is_resumed();
                    assert!(agreed.text().starts_with("TLS 1."), "{}", agreed.text());
                }
                SessionEvent::Plaintext(bytes) => plaintext.extend_from_slice(bytes),
            }
            true
        });
        if let Err(fault) = received {
            assert!(seen.fault.is_none(), "it fails twice");
            assert!(!fault.detail.is_empty() && fault.detail.len() < 2000);
            seen.fault = Some(fault.kind);
        }
        assert!(session.outgoing().len() <= MOST_OUT, "it sends too much");
    }
    seen.has_ended = session.has_ended();
    assert!(seen.opened <= 1, "it is opened twice");
}

fn begin(sessions: &Sessions) -> Session {
    sessions.begin(0, 0).expect("it can be begun")
}

/// Whatever bytes a server sends instead of a handshake, they never open a connection, and cuts make no difference.
pub fn tls_handshake(data: &[u8]) {
    let mut choices = Choices::new(data);
    let cuts = Cuts::choose(&mut choices);
    let wire = choices.rest();
    let sessions = sides().client.sessions(1);
    let (mut whole, mut cut) = (Seen::default(), Seen::default());
    let at_once = iter::once(wire).filter(|wire| !wire.is_empty());
    receive_all(&mut begin(&sessions), at_once, &mut whole);
    receive_all(&mut begin(&sessions), cuts.pieces(wire), &mut cut);
    for seen in [&whole, &cut] {
        assert!(seen.opened == 0 && seen.plaintext.is_empty(), "{seen:?}");
    }
    assert_eq!(
        whole.fault.is_some(),
        cut.fault.is_some(),
        "{whole:?} {cut:?}"
    );
}

/// A connection with its own server, one of whose turns is changed: the session yields a prefix of what the server
/// sent, and all of it if nothing was changed.
pub fn tls_session(data: &[u8]) {
    let mut choices = Choices::new(data);
    let sides = sides();
    let config = &sides.servers[choices.below(2)];
    let sessions = sides.client.sessions(1);
    if choices.below(2) == 1 {
        // The session under test resumes this one.
        let plain = Plan {
            changed: TURNS,
            reply: 1,
            closes: true,
            cuts: Cuts::choose(&mut Choices::new(&[])),
        };
        exchange(&sessions, config, &plain, &mut Choices::new(&[]));
    }
    let plan = Plan {
        changed: choices.below(TURNS + 1),
        reply: REPLIES[choices.below(REPLIES.len())],
        closes: choices.byte() < 128,
        cuts: Cuts::choose(&mut choices),
    };
    exchange(&sessions, config, &plan, &mut choices);
}

struct Plan<'a> {
    /// The turn of the server that is changed; no turn if it is [`TURNS`].
    changed: usize,
    reply: usize,
    closes: bool,
    cuts: Cuts<'a>,
}

fn exchange(
    sessions: &Sessions,
    config: &Arc<ServerConfig>,
    plan: &Plan<'_>,
    choices: &mut Choices<'_>,
) {
    let mut session = begin(sessions);
    let mut server = ServerConnection::new(Arc::clone(config)).expect("it fits");
    let reply: Vec<u8> = (0..plan.reply).map(|place| (place % 251) as u8).collect();
    let (mut seen, mut sent) = (Seen::default(), Vec::new());
    let (mut is_intact, mut is_understood) = (true, true);
    for turn in 0..TURNS {
        let mut wire = Vec::new();
        if session.is_open() && seen.fault.is_none() && !seen.has_ended {
            session.seal(REQUEST, &mut wire).expect("it is open");
        } else {
            wire.append(session.outgoing());
        }
        let mut rest = &wire[..];
        while !rest.is_empty() && server.read_tls(&mut rest).is_ok_and(|count| count > 0) {
            if server.process_new_packets().is_err() {
                assert!(!is_intact, "a server does not understand its client");
                is_understood = false;
                break;
            }
        }
        if is_understood && !server.is_handshaking() {
            server.writer().write_all(&reply).expect("there is room");
            sent.extend_from_slice(&reply);
        }
        if plan.closes && turn + 1 == TURNS {
            server.send_close_notify();
        }
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).expect("there is room");
        }
        if turn == plan.changed {
            let whole = wire.clone();
            edit(&mut wire, choices);
            wire.extend_from_slice(choices.clone().rest());
            is_intact &= wire == whole;
        }
        receive_all(&mut session, plan.cuts.pieces(&wire), &mut seen);
        assert!(sent.starts_with(&seen.plaintext), "nobody said that");
    }
    if is_intact {
        assert_eq!(seen.fault, None);
        assert!(
            seen.opened == 1 && seen.plaintext == sent,
            "some of it is lost"
        );
        assert_eq!(seen.has_ended, plan.closes);
    }
    let mut last = Vec::new();
    session.close(&mut last);
    assert!(last.len() <= MOST_OUT);
}
