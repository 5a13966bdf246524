//! One connection, as far as it was captured, in constant memory.

use serde::Serialize;

use super::packet::{Endpoint, Segment, flag};
use super::sequence::{Kind, SequenceState, analyse};

/// How the client was identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKnownBy {
    /// It sent the SYN.
    Syn,
    /// The other end answered a SYN that was not captured.
    SynAck,
    /// Guessed: the server's port is the lower one.
    LowerPort,
    /// Guessed: both ports are equal, and it sent the first captured packet.
    FirstPacket,
}

impl ClientKnownBy {
    /// Whether this is a guess.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::LowerPort | Self::FirstPacket)
    }

    /// Name in CSV and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syn => "syn",
            Self::SynAck => "syn-ack",
            Self::LowerPort => "lower-port",
            Self::FirstPacket => "first-packet",
        }
    }
}

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Both sides sent FIN.
    Closed,
    /// Only one side sent FIN.
    HalfClosed,
    /// The client sent a reset before both sides had closed.
    ResetByClient,
    /// The server sent a reset before both sides had closed.
    ResetByServer,
    /// The server answered the SYN with a reset.
    Refused,
    /// The client's SYN was never answered.
    Unanswered,
    /// The capture stopped before the end.
    Open,
}

impl Ending {
    /// Name in CSV and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfClosed => "half-closed",
            Self::ResetByClient => "reset-by-client",
            Self::ResetByServer => "reset-by-server",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
            Self::Open => "open",
        }
    }
}

/// Totals for one side.
#[derive(Debug, Default, Clone)]
pub(super) struct SideTotals {
    pub(super) packets: u64,
    pub(super) payload_bytes: u64,
    pub(super) wire_bytes: u64,
    pub(super) retransmissions: u64,
    pub(super) out_of_order: u32,
    pub(super) resets: u32,
    pub(super) syns: u32,
    pub(super) keep_alives: u32,
    fin: bool,
    sent: SequenceState,
}

/// A connection. Index 0 of its sides is the client.
pub(super) struct Flow {
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    pub(super) known_by: ClientKnownBy,
    pub(super) sides: [SideTotals; 2],
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    /// Time of the first SYN.
    syn_ns: Option<i64>,
    /// Time of the latest SYN, and the duration of the handshake from it.
    last_syn_ns: Option<i64>,
    round_trip_ns: Option<u64>,
    /// The acknowledgement number that acknowledges the server's SYN.
    awaited: Option<u32>,
    pub(super) handshake_ns: Option<u64>,
    reset: Option<Ending>,
}

impl Flow {
    /// A flow that begins with this segment.
    pub(super) fn new(segment: &Segment) -> Self {
        let (from, to) = (segment.source, segment.destination);
        let (is_client, known_by) = if segment.has(flag::SYN) {
            if segment.has(flag::ACK) {
                (false, ClientKnownBy::SynAck)
            } else {
                (true, ClientKnownBy::Syn)
            }
        } else if from.port == to.port {
            (true, ClientKnownBy::FirstPacket)
        } else {
            (from.port > to.port, ClientKnownBy::LowerPort)
        };
        let (client, server) = if is_client { (from, to) } else { (to, from) };
        Self {
            client,
            server,
            known_by,
            sides: Default::default(),
            first_ns: segment.time_ns,
            last_ns: segment.time_ns,
            syn_ns: None,
            last_syn_ns: None,
            round_trip_ns: None,
            awaited: None,
            handshake_ns: None,
            reset: None,
        }
    }

    /// Whether `segment` begins a new connection on the same ports.
    pub(super) fn is_over_for(&self, segment: &Segment) -> bool {
        let first = self.sides[self.side_of(segment)].sent.first;
        segment.is_first_syn() && first.is_some_and(|first| first != segment.sequence)
    }

    fn side_of(&self, segment: &Segment) -> usize {
        usize::from(segment.source != self.client)
    }

    /// Adds the next segment.
    pub(super) fn take(&mut self, segment: &Segment) -> Kind {
        let side = self.side_of(segment);
        let [client, server] = &mut self.sides;
        let (from, to) = match side {
            0 => (client, server),
            _ => (server, client),
        };
        let kind = analyse(segment, &mut from.sent, &mut to.sent, self.round_trip_ns);
        from.packets += 1;
        from.payload_bytes += u64::from(segment.payload_bytes);
        from.wire_bytes += u64::from(segment.wire_bytes);
        from.retransmissions += u64::from(kind.is_retransmission());
        from.out_of_order += u32::from(kind == Kind::OutOfOrder);
        from.keep_alives += u32::from(kind == Kind::KeepAlive);
        from.syns += u32::from(segment.has(flag::SYN));
        self.first_ns = self.first_ns.min(segment.time_ns);
        self.last_ns = self.last_ns.max(segment.time_ns);
        self.shake_hands(segment, side);
        self.end(segment, side);
        kind
    }

    fn shake_hands(&mut self, segment: &Segment, side: usize) {
        let elapsed = |from: i64| segment.time_ns.saturating_sub(from).max(0) as u64;
        if segment.is_first_syn() {
            self.syn_ns.get_or_insert(segment.time_ns);
            self.last_syn_ns = Some(segment.time_ns);
            return;
        }
        if segment.has(flag::SYN) {
            if side == 1 {
                self.awaited = Some(segment.sequence.wrapping_add(1));
            }
            return;
        }
        if !segment.has(flag::ACK) {
            return;
        }
        if let (Some(syn_ns), None) = (self.last_syn_ns, self.round_trip_ns) {
            self.round_trip_ns = Some(elapsed(syn_ns)).filter(|time| *time > 0);
        }
        if let (Some(syn_ns), Some(awaited), None) = (self.syn_ns, self.awaited, self.handshake_ns)
            && side == 0
            && !segment.has(flag::RST)
            && segment.acknowledged.wrapping_sub(awaited) as i32 >= 0
        {
            self.handshake_ns = Some(elapsed(syn_ns));
        }
    }

    fn end(&mut self, segment: &Segment, side: usize) {
        let closed = self.sides.iter().all(|each| each.fin);
        let tally = &mut self.sides[side];
        tally.fin |= segment.has(flag::FIN);
        if !segment.has(flag::RST) {
            return;
        }
        tally.resets = tally.resets.saturating_add(1);
        if !closed {
            self.reset.get_or_insert(match side {
                0 => Ending::ResetByClient,
                _ if self.sides[1].syns == 0 && self.syn_ns.is_some() => Ending::Refused,
                _ => Ending::ResetByServer,
            });
        }
    }

    pub(super) fn ending(&self) -> Ending {
        let [client, server] = &self.sides;
        match (self.reset, client.fin, server.fin) {
            (Some(reset), _, _) => reset,
            (None, true, true) => Ending::Closed,
            (None, false, false) if server.packets == 0 && self.syn_ns.is_some() => {
                Ending::Unanswered
            }
            (None, false, false) => Ending::Open,
            (None, _, _) => Ending::HalfClosed,
        }
    }

    /// Whether the connection was captured from its SYN to its end.
    pub(super) fn is_complete(&self) -> bool {
        use Ending::{Closed, Refused, ResetByClient, ResetByServer};
        let ended = [Closed, Refused, ResetByClient, ResetByServer].contains(&self.ending());
        ended && self.syn_ns.is_some()
    }

    /// Number of SYNs that the client sent after the first.
    pub(super) fn repeated_syns(&self) -> u32 {
        self.sides[0].syns.saturating_sub(1)
    }

    /// Whether client and server sent FIN.
    pub(super) fn fins(&self) -> [bool; 2] {
        [self.sides[0].fin, self.sides[1].fin]
    }
}
