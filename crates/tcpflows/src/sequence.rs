//! The kind of a segment in its flow: new, retransmitted, or out of order.
//!
//! The definition is the one of Wireshark 4.0's analysis (`tcp.analysis.retransmission`, which includes fast and
//! spurious ones) in default settings, so that totals agree with `tshark`. A segment with data, SYN or FIN that begins
//! before the highest sequence number seen is
//!
//! - a keep-alive, and no retransmission, if it has at most one byte, just before the next expected byte;
//! - spurious, if the peer has acknowledged all of it;
//! - fast, if it follows the second or a later duplicate acknowledgement for it within 20 ms;
//! - out of order, if it follows the newest data within a round-trip time, and does not end where that data ends;
//! - otherwise, a retransmission after a time-out.
//!
//! As in Wireshark, a number of exactly 0 counts as unknown. Not implemented: window scales, and the limit of 10,000
//! unacknowledged segments.

use super::packet::{Segment, flag};

/// Maximum time between duplicate acknowledgements and a fast retransmission.
const FAST_NS: u64 = 20_000_000;
/// Assumed round-trip time if the handshake was not captured.
const GUESSED_ROUND_TRIP_NS: u64 = 3_000_000;

/// The kind of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// New data, or no data.
    New,
    KeepAlive,
    ZeroWindowProbe,
    Retransmission,
    FastRetransmission,
    SpuriousRetransmission,
    OutOfOrder,
}

impl Kind {
    pub(super) fn is_retransmission(self) -> bool {
        matches!(
            self,
            Self::Retransmission | Self::FastRetransmission | Self::SpuriousRetransmission
        )
    }
}

/// Sequence state of one side.
#[derive(Debug, Clone)]
pub(super) struct SequenceState {
    /// Initial sequence number; `None` before its first segment.
    pub(super) first: Option<u32>,
    /// The number after the highest captured one, and when the latter was captured.
    next: u32,
    next_ns: i64,
    /// The number after those captured without a gap.
    unbroken: u32,
    acknowledged: u32,
    acknowledged_ns: i64,
    window: u32,
    /// Number of duplicate acknowledgements in a row; below 0 if it acknowledged data that was not captured.
    repeated_acknowledgements: i32,
    last_was_keep_alive: bool,
}

impl Default for SequenceState {
    fn default() -> Self {
        Self {
            first: None,
            next: 0,
            next_ns: 0,
            unbroken: 0,
            acknowledged: 0,
            acknowledged_ns: 0,
            window: u32::MAX,
            repeated_acknowledgements: 0,
            last_was_keep_alive: false,
        }
    }
}

/// Whether `a` precedes `b`, modulo 2^32.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Nanoseconds since `then_ns`; very long if time went backwards.
fn since(now_ns: i64, then_ns: i64) -> u64 {
    now_ns.wrapping_sub(then_ns) as u64
}

/// Classifies a segment, and remembers it. `round_trip_ns` is the round-trip time of the handshake.
pub(super) fn analyse(
    segment: &Segment,
    sender: &mut SequenceState,
    other: &mut SequenceState,
    round_trip_ns: Option<u64>,
) -> Kind {
    let control = segment.has(flag::SYN | flag::FIN | flag::RST);
    learn_first(segment, sender, other);
    let (sequence, bytes) = (segment.sequence, segment.payload_bytes);
    let zero_window_probe = bytes == 1 && sequence == sender.next && other.window == 0;
    let keep_alive =
        !zero_window_probe && bytes <= 1 && sequence == sender.next.wrapping_sub(1) && !control;
    if !zero_window_probe && !control && bytes == 0 {
        count_repetition(segment, sender, other);
    }
    if segment.acknowledged != sender.acknowledged {
        sender.repeated_acknowledgements = 0;
    }
    notice_unseen(segment, other);
    let occupies = bytes > 0 || segment.has(flag::SYN | flag::FIN);
    let kind = if zero_window_probe {
        Kind::ZeroWindowProbe
    } else if keep_alive {
        Kind::KeepAlive
    } else if occupies {
        kind_of_data(segment, sender, other, round_trip_ns)
    } else {
        Kind::New
    };
    remember(segment, sender, kind);
    kind
}

fn learn_first(segment: &Segment, sender: &mut SequenceState, other: &mut SequenceState) {
    let syn = u32::from(segment.has(flag::SYN));
    let first = segment.sequence.wrapping_sub(1 - syn);
    sender.first.get_or_insert(first);
    if segment.has(flag::ACK) {
        other
            .first
            .get_or_insert(segment.acknowledged.wrapping_sub(1));
    }
}

/// Counts a duplicate acknowledgement.
fn count_repetition(segment: &Segment, sender: &mut SequenceState, other: &SequenceState) {
    let alike = u32::from(segment.window) == sender.window
        && segment.sequence == sender.next
        && segment.acknowledged == sender.acknowledged;
    if alike && segment.window > 0 && !other.last_was_keep_alive {
        sender.repeated_acknowledgements = match sender.repeated_acknowledgements {
            ..0 => 1,
            count => count.saturating_add(1),
        };
    }
}

/// Notes if the sender acknowledges data of the other side that was not captured.
fn notice_unseen(segment: &Segment, other: &mut SequenceState) {
    let beyond = other.unbroken != 0 && before(other.unbroken, segment.acknowledged);
    if !beyond || !segment.has(flag::ACK) {
        return;
    }
    if other.unbroken > other.next {
        other.unbroken = other.next;
    } else {
        other.repeated_acknowledgements = -1;
    }
}

fn kind_of_data(
    segment: &Segment,
    sender: &SequenceState,
    other: &SequenceState,
    round_trip_ns: Option<u64>,
) -> Kind {
    let (sequence, bytes) = (segment.sequence, segment.payload_bytes);
    // The segment after a zero-window probe begins with the probe's byte again.
    let after_probe = bytes > 1 && sequence == sender.next.wrapping_sub(1);
    let advances = sender.next == 0 || !before(sequence, sender.next) || after_probe;
    let end = sequence.wrapping_add(bytes);
    if bytes > 0 && other.acknowledged != 0 && !before(other.acknowledged, end) {
        return Kind::SpuriousRetransmission;
    }
    if advances {
        return Kind::New;
    }
    if other.repeated_acknowledgements >= 2
        && other.acknowledged == sequence
        && since(segment.time_ns, other.acknowledged_ns) < FAST_NS
    {
        return Kind::FastRetransmission;
    }
    let soon =
        since(segment.time_ns, sender.next_ns) < round_trip_ns.unwrap_or(GUESSED_ROUND_TRIP_NS);
    if soon && behind(segment) != sender.next {
        return Kind::OutOfOrder;
    }
    Kind::Retransmission
}

/// The sequence number after a segment: SYN and FIN use one each.
fn behind(segment: &Segment) -> u32 {
    let control = u32::from(segment.has(flag::SYN | flag::FIN));
    segment
        .sequence
        .wrapping_add(segment.payload_bytes)
        .wrapping_add(control)
}

fn remember(segment: &Segment, sender: &mut SequenceState, kind: Kind) {
    let probe = kind == Kind::ZeroWindowProbe;
    let next = behind(segment);
    if !probe && (sender.next == 0 || before(sender.next, next)) {
        sender.next = next;
        sender.next_ns = segment.time_ns;
    }
    if !probe && (sender.unbroken == 0 || sender.unbroken == segment.sequence) {
        sender.unbroken = sender.next;
    }
    sender.window = segment.window.into();
    sender.acknowledged = segment.acknowledged;
    sender.acknowledged_ns = segment.time_ns;
    sender.last_was_keep_alive = kind == Kind::KeepAlive;
}

#[cfg(test)]
mod tests;
