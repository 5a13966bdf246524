//! What lies between the bytes of a socket and those of a client: nothing, or TLS.
//!
//! An engine is made for one of them, so that clients without TLS pay nothing for those with it.

use rustix::io::Errno;

use super::super::pool::{Action, ClientPool};
use super::super::{Close, Plan};

/// Most bytes of a client that are lent at once: a few records of TLS.
pub(super) const PIECE: usize = 64 * 1024;

/// What the connections of a worker's clients are.
pub(super) trait Transport {
    /// Whether what leaves is not what the client says, byte for byte, but made for each connection.
    const SEALS: bool;

    /// That of so many clients.
    fn new(plan: &Plan, clients: usize) -> Self;

    /// A client has a connection at the other end of which somebody is.
    fn stands(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action;

    /// Whether it has one that does not count yet, since both sides have to agree on keys.
    fn is_agreeing(&self, slot: usize) -> bool;

    /// Sends what there is to send with `put`, until that takes nothing more.
    ///
    /// # Errors
    /// As `put` gives them, but for those that say to try again.
    fn send(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno>;

    /// Adds what there is to send next to a buffer, for whoever sends it later; gives how many bytes of the client that
    /// is, which count as sent.
    ///
    /// # Errors
    /// When there can be nothing any more.
    fn lend(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<usize, Errno>;

    /// Something could not be sent.
    fn not_sent(&mut self, pool: &mut ClientPool, slot: usize, error: Errno, now: u64) -> Action;

    /// Bytes have come, which may be changed where they lie.
    fn received(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        bytes: &mut [u8],
        now: u64,
    ) -> Action;

    /// The server closed its side.
    fn ended(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action;

    /// A connection is closed. What the server is told before, as far as there is room for it.
    fn close(&mut self, slot: usize, how: Close) -> Vec<u8>;
}

/// Bytes go over the wire as they are.
pub(super) struct Plain;

impl Transport for Plain {
    const SEALS: bool = false;

    fn new(_: &Plan, _: usize) -> Self {
        Self
    }

    #[inline]
    fn stands(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        pool.connected(slot, now)
    }

    #[inline]
    fn is_agreeing(&self, _: usize) -> bool {
        false
    }

    #[inline]
    fn send(
        &mut self,
        pool: &mut ClientPool,
        slot: usize,
        mut put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<(), Errno> {
        while !pool.pending(slot).is_empty() {
            match put(pool.pending(slot)) {
                Ok(count) if pool.sent(slot, count) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
    fn ended(&mut self, pool: &mut ClientPool, slot: usize, now: u64) -> Action {
        pool.ended(slot, now)
    }

    #[inline]
    fn close(&mut self, _: usize, _: Close) -> Vec<u8> {
        Vec::new()
    }
}
