//! Messages to and from other ranks, without blocking in MPI.

use std::collections::VecDeque;

use mpi::datatype::Equivalence as _;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, Source as _};

use crate::sys::Transfer;

/// Maximum number of concurrent incoming messages; further messages wait at their sender.
const MOST_ARRIVING: usize = 64;

/// The purpose of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message between workers.
    Worker,
    /// A heartbeat. The leading rank's contains the silence limit, in milliseconds.
    Heartbeat,
    /// Requests the time.
    Ping,
    /// The times when the request arrived and when the reply was sent.
    Pong,
    /// The sender cannot continue, with the reason.
    Lost,
    /// The launcher asked the sender to end.
    Reported,
    /// The run is over. One byte: whether all ranks can call `MPI_Finalize`.
    Exit,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Worker,
        Self::Heartbeat,
        Self::Ping,
        Self::Pong,
        Self::Lost,
        Self::Reported,
        Self::Exit,
    ];

    fn of(tag: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i32 == tag)
    }
}

/// A message that has arrived.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) from: usize,
    pub(super) kind: Kind,
    pub(super) body: Vec<u8>,
}

struct IncomingMessage {
    from: usize,
    tag: i32,
    transfer: Transfer,
}

/// This rank's messages.
pub(super) struct Exchange {
    world: SimpleCommunicator,
    leaving: Vec<(usize, Transfer)>,
    arriving: VecDeque<IncomingMessage>,
}

impl Exchange {
    pub(super) fn new(world: SimpleCommunicator) -> Self {
        Self {
            world,
            leaving: Vec::new(),
            arriving: VecDeque::new(),
        }
    }

    /// Starts to send a message.
    pub(super) fn send(&mut self, to: usize, kind: Kind, body: Vec<u8>) {
        let process = self.world.process_at_rank(to as i32);
        let transfer = Transfer::send(&process, body, kind as i32);
        self.leaving.push((to, transfer));
    }

    /// Whether messages are in transit.
    pub(super) fn is_busy(&self) -> bool {
        !(self.leaving.is_empty() && self.arriving.is_empty())
    }

    /// Whether all messages were sent.
    pub(super) fn has_left(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Advances all transfers, and returns the next message. Messages of one rank keep their order.
    pub(super) fn turn(&mut self) -> Option<Message> {
        self.leaving
            .retain_mut(|(_, transfer)| transfer.finish().is_none());
        while self.arriving.len() < MOST_ARRIVING {
            let Some((message, status)) = self.world.any_process().immediate_matched_probe() else {
                break;
            };
            let length = status.count(u8::equivalent_datatype()) as usize;
            self.arriving.push_back(IncomingMessage {
                from: status.source_rank() as usize,
                tag: status.tag(),
                transfer: Transfer::receive(message, length),
            });
        }
        // A rank that stops in the middle of a message does not block the others.
        let mut behind: Vec<usize> = Vec::new();
        for at in 0..self.arriving.len() {
            let arriving = &mut self.arriving[at];
            let from = arriving.from;
            if behind.contains(&from) {
                continue;
            }
            let Some(body) = arriving.transfer.finish() else {
                behind.push(from);
                continue;
            };
            let kind = Kind::of(arriving.tag);
            self.arriving.remove(at);
            // A foreign message has no kind.
            return kind.map(|kind| Message { from, kind, body });
        }
        None
    }

    /// Makes the launcher end the whole job, including this process.
    pub(super) fn abort(&self, code: i32) -> ! {
        self.world.abort(code)
    }

    /// Drops messages in transit to and from a lost rank.
    pub(super) fn remove(&mut self, rank: usize) {
        self.leaving.retain(|(to, _)| *to != rank);
        self.arriving.retain(|arriving| arriving.from != rank);
    }
}
