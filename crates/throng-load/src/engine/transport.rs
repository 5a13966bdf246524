//! The layer between the bytes of a socket and the bytes of a client: none, or TLS.
//!
//! Engines are generic over it, so that clients without TLS have no overhead.

use rustix::io::Errno;

use super::super::pool::{Action, ClientPool};
use super::super::{Close, Plan};

/// Maximum bytes of a client per loan: a few records of TLS.
pub(super) const PIECE: usize = 64 * 1024;

/// The transport of a worker's clients.
pub(super) trait Transport {
    /// Whether sent bytes differ from the client's own, and are generated for each connection.
    const SEALS: bool;

    /// The transport of `clients` clients.
    fn new(plan: &Plan, clients: usize) -> Self;

    /// A client's connection is established.
    fn connected(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action;

    /// Whether a client has a connection that does not count yet, because of the handshake.
    fn is_handshaking(&self, slot: usize) -> bool;

    /// Sends pending bytes with `put`, until `put` accepts no more.
    ///
    /// # Errors
    /// Errors of `put`, except those that mean to try again.
    fn send(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno>;

    /// Appends pending bytes to a buffer, to be sent later. Returns how many of the client's bytes the buffer holds;
    /// they count as sent.
    ///
    /// # Errors
    /// If nothing more can be encrypted.
    fn lend(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Errno>;

    /// Something could not be sent.
    fn not_sent(&mut self, pool: &mut ClientPool, slot: usize, error: Errno, now: u64) -> Action;

    /// Bytes have arrived. They may be changed in place.
    fn received(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        bytes: &mut [u8],
        now: u64,
    ) -> Action;

    /// The server closed its side.
    fn peer_closed(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action;

    /// A connection closes. Returns the last bytes for the server, as far as they fit.
    fn close(&mut self, slot: usize, how: Close) -> Vec<u8>;
}

/// Bytes are sent unchanged.
pub(super) struct Plain;

impl Transport for Plain {
    const SEALS: bool = false;

    fn new(_: &Plan, _: usize) -> Self {
        Self
    }

    #[inline]
    fn connected(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        pool.connected(slot, now)
    }

    #[inline]
    fn is_handshaking(&self, _: usize) -> bool {
        false
    }

    #[inline]
    fn send(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        mut put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno> {
        loop {
            let pending = pool.pending(slot);
            if pending.is_empty() {
                return Ok(());
            }
            match put(pending) {
                Ok(count) if pool.sent(slot, count) => return Ok(()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn lend(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Errno> {
        let pending = pool.pending(slot);
        let count = pending.len().min(PIECE);
        buffer.extend_from_slice(&pending[..count]);
        pool.sent(slot, count);
        Ok(count)
    }

    #[inline]
    fn not_sent(&mut self, pool: &mut ClientPool, slot: usize, error: Errno, now: u64) -> Action {
        pool.not_sent(slot, error, now)
    }

    #[inline]
    fn received(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        bytes: &mut [u8],
        now: u64,
    ) -> Action {
        pool.received(slot, bytes, now)
    }

    #[inline]
    fn peer_closed(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        pool.peer_closed(slot, now)
    }

    #[inline]
    fn close(&mut self, _: usize, _: Close) -> Vec<u8> {
        Vec::new()
    }
}
