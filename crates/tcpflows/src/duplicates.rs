//! Packets that were captured twice.
//!
//! A capture on all devices sees a packet on each device that it passes (a bridge and its port, both ends of a veth
//! pair, loopback out and in). Counted twice, the packet would double rates, and every packet would look
//! retransmitted. A copy follows its original closely and equals it in all fields that do not change on the way; a
//! retransmission is a packet with a number of its own.

use super::packet::{Identity, Segment};

/// Maximum time between copies.
const MOST_NS: i64 = 20_000_000;
/// The same for packets without an IP identification, since those could be retransmissions.
const MOST_UNNUMBERED_NS: i64 = 1_000_000;
/// Number of packets remembered at a time, enough for a fast link over the longest time.
const REMEMBERED: usize = 1 << 16;

/// Recently captured packets.
pub(super) struct Recent {
    seen: Vec<(Identity, i64)>,
    /// Whether any packet was certainly captured twice in the same place.
    doubled: bool,
}

impl Recent {
    pub(super) fn new() -> Self {
        let nothing = Identity {
            hash: 0,
            numbered: false,
            place: 0,
        };
        Self {
            seen: vec![(nothing, i64::MIN / 2); REMEMBERED],
            doubled: false,
        }
    }

    /// Whether this packet is a copy of a recent one. If not, it is remembered.
    pub(super) fn has(&mut self, segment: &Segment) -> bool {
        let new = segment.identity;
        let slot = &mut self.seen[(new.hash >> 48) as usize % REMEMBERED];
        let (old, time_ns) = *slot;
        let apart_ns = segment.time_ns.abs_diff(time_ns);
        if old.hash == new.hash && apart_ns <= MOST_NS as u64 {
            // No client reconnects from the same port, or repeats a packet number, within so short a time. (A SYN may
            // well be answered twice: once on time, and once when it is repeated.)
            let same_place = old.place == new.place;
            if new.numbered || segment.is_first_syn() || !same_place {
                self.doubled |= same_place;
                return true;
            }
            if self.doubled && apart_ns <= MOST_UNNUMBERED_NS as u64 {
                return true;
            }
        }
        *slot = (new, segment.time_ns);
        false
    }
}
