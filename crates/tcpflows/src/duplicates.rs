//! One packet that was captured twice.
//!
//! A capture on all devices sees a packet on each that it passes (a bridge and its port, both ends of
//! a veth pair, a loopback going out and coming in). Counted twice, it would double rates and make
//! every packet look retransmitted. A copy follows its original closely and is alike in all that does
//! not change on the way; a retransmission is a packet of its own, with a number of its own.

use super::packet::{Identity, Segment};

/// Copies are no further apart.
const MOST_NS: i64 = 20_000_000;
/// Nor are those of packets without a number, which could be retransmissions.
const MOST_UNNUMBERED_NS: i64 = 1_000_000;
/// Packets remembered at a time: those of a fast link in the longest time.
const REMEMBERED: usize = 1 << 16;

/// Packets seen a moment ago.
pub(super) struct Recent {
    seen: Vec<(Identity, i64)>,
    /// Whether a packet was certainly captured twice, and in one place.
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

    /// Whether this packet was seen already; else it is remembered.
    pub(super) fn has(&mut self, segment: &Segment) -> bool {
        let new = segment.identity;
        let slot = &mut self.seen[(new.hash >> 48) as usize % REMEMBERED];
        let (old, time_ns) = *slot;
        let apart_ns = segment.time_ns.abs_diff(time_ns);
        if old.hash == new.hash && apart_ns <= MOST_NS as u64 {
            // Nobody asks for the same connection again within so short a time, or repeats a number
            // within 65,536 packets. (A SYN may well be answered twice: on time, and when repeated.)
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
