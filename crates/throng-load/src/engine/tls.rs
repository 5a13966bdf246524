//! Connections with TLS: sessions of `throng-tls`, driven by an engine.
//!
//! Bytes are encrypted when they can be sent, into memory that all clients of a worker share. A connection keeps only
//! what its socket did not accept, so an idle connection has no buffer.

use rustix::io::Errno;
use throng_tls::{Fault, Session, SessionEvent, Sessions};

use super::super::pool::{Action, ClientPool};
use super::super::{Close, Plan};
use super::transport::{PIECE, Transport};

/// Reports that no more can be encrypted, after more records than the keys of TLS 1.2 allow.
const KEYS_EXHAUSTED: Errno = Errno::PROTO;

/// The TLS connections of a worker's clients.
pub(super) struct Tls {
    sessions: Sessions,
    links: Vec<Option<Box<Link>>>,
    /// The bytes being sent.
    sealed: Vec<u8>,
}

/// One connection.
struct Link {
    session: Session,
    /// Encrypted bytes that have not been sent, from `from`.
    out: Vec<u8>,
    from: usize,
    /// The number of the client's bytes in `out`, which count as sent when all of `out` has been sent.
    plain: usize,
}

impl Link {
    fn has_rest(&self) -> bool {
        self.from < self.out.len()
    }

    /// Appends the next encrypted bytes to `to`, and returns how many of the client's bytes they hold.
    fn seal(&mut self, pool: &ClientPool, slot: usize, to: &mut Vec<u8>) -> Result<usize, Errno> {
        if !self.session.is_open() {
            to.append(self.session.outgoing());
            return Ok(0);
        }
        let pending = pool.pending(slot);
        let piece = &pending[..pending.len().min(PIECE)];
        if piece.is_empty() {
            to.append(self.session.outgoing());
        } else {
            self.session.seal(piece, to).map_err(|_| KEYS_EXHAUSTED)?;
        }
        Ok(piece.len())
    }

    /// Counts sent bytes of `out`.
    fn left(&mut self, pool: &mut ClientPool, slot: usize, count: usize) {
        self.from += count;
        if !self.has_rest() {
            self.out = Vec::new();
            self.from = 0;
            let plain = std::mem::take(&mut self.plain);
            if plain > 0 {
                pool.sent(slot, plain);
            }
        }
    }
}

impl Transport for Tls {
    const SEALS: bool = true;

    fn new(plan: &Plan, clients: usize) -> Self {
        let client = plan.tls.as_ref().expect("it is made for plans with TLS");
        Self {
            sessions: client.sessions(clients),
            links: std::iter::repeat_with(|| None).take(clients).collect(),
            sealed: Vec::new(),
        }
    }

    fn connected(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        pool.begin_handshake(slot, now);
        match self.sessions.begin(slot, pool.route_number(slot)) {
            Ok(session) => {
                self.links[slot] = Some(Box::new(Link {
                    session,
                    out: Vec::new(),
                    from: 0,
                    plain: 0,
                }));
                Action::Send
            }
            Err(fault) => pool.tls_failed(slot, &fault, now),
        }
    }

    fn is_handshaking(&self, slot: usize) -> bool {
        let link = self.links[slot].as_ref();
        link.is_some_and(|link| !link.session.is_open())
    }

    fn send(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        mut put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno> {
        let Some(link) = &mut self.links[slot] else {
            return Ok(());
        };
        loop {
            if link.has_rest() {
                match put(&link.out[link.from..]) {
                    Ok(count) => link.left(pool, slot, count),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Ok(()),
                    Err(error) => return Err(error),
                }
                continue;
            }
            self.sealed.clear();
            let plain = link.seal(pool, slot, &mut self.sealed)?;
            if self.sealed.is_empty() {
                return Ok(());
            }
            let sent = match put(&self.sealed) {
                Ok(count) if count == self.sealed.len() => {
                    pool.sent(slot, plain);
                    continue;
                }
                Ok(count) => Ok(count),
                Err(Errno::INTR | Errno::AGAIN) => Ok(0),
                Err(error) => Err(error),
            };
            link.out.extend_from_slice(&self.sealed[sent?..]);
            link.plain = plain;
        }
    }

    fn lend(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Errno> {
        let Some(link) = &mut self.links[slot] else {
            return Ok(0);
        };
        let count = link.seal(pool, slot, buffer)?;
        if count > 0 {
            pool.sent(slot, count);
        }
        Ok(count)
    }

    fn not_sent(&mut self, pool: &mut ClientPool, slot: usize, error: Errno, now: u64) -> Action {
        if error == KEYS_EXHAUSTED {
            return pool.tls_failed(slot, &Fault::worn_out(), now);
        }
        // A server that closes may have sent an alert: it is read before the failure counts.
        Action::Keep
    }

    fn received(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        bytes: &mut [u8],
        now: u64,
    ) -> Action {
        let Some(link) = &mut self.links[slot] else {
            return Action::Keep;
        };
        self.sessions.turn_to(slot);
        let mut action = Action::Keep;
        let received = link.session.receive(bytes, &mut |event| {
            let next = match event {
                SessionEvent::Opened(agreed) => pool.handshake_completed(slot, &agreed, now),
                SessionEvent::Plaintext(plain) => pool.received(slot, plain, now),
            };
            if next != Action::Keep {
                action = next;
            }
            !matches!(next, Action::Close(_))
        });
        if let Action::Close(_) = action {
            return action;
        }
        if let Err(fault) = received {
            return pool.tls_failed(slot, &fault, now);
        }
        if link.session.has_ended() {
            return self.peer_closed(pool, slot, now);
        }
        if link.session.outgoing().is_empty() {
            action
        } else {
            Action::Send
        }
    }

    fn peer_closed(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        match &self.links[slot] {
            Some(link) if !link.session.is_open() => pool.tls_failed(slot, &Fault::closed(), now),
            Some(link) if !link.session.has_ended() => pool.peer_vanished(slot, now),
            _ => pool.peer_closed(slot, now),
        }
    }

    fn close(&mut self, slot: usize, how: Close) -> Vec<u8> {
        let mut last = Vec::new();
        // After a partially sent record, no alert can be sent.
        if let Some(mut link) = self.links[slot].take()
            && how == Close::Orderly
            && !link.has_rest()
        {
            link.session.close(&mut last);
        }
        last
    }
}
