//! One client of a load: where it stands, what it has asked and may still ask.

use std::collections::VecDeque;

use super::client_stats::ClientStats;
use super::{Plan, Until};
use throng_protocol::Requester;
use throng_record::load_stats::{LoadStats, TENTHS};

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its turn to connect has not come.
    Unborn,
    /// It waits in the line of those who connect.
    InLine,
    /// connect() has not come back.
    Connecting,
    /// It has a connection.
    Open,
    /// It had its reply, after which the server is to close.
    Leaving,
    /// It has no connection, and will have another one.
    Apart,
    /// Its connection failed, and it waits before it tries again.
    Failed,
    /// It ended.
    Over,
}

/// When a request was due and when it was sent, on the clock of the load. In a closed loop it is due
/// when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) due: u64,
    pub(super) sent: u64,
}

/// No request is owed.
pub(super) const NOTHING_OWED: u64 = u64::MAX;

/// One client, over its life.
pub(super) struct Client {
    pub(super) requester: Box<dyn Requester>,
    pub(super) state: State,
    /// Its tenth of all clients, from 0, in the order in which they connect.
    pub(super) tenth: u8,
    /// What it has to send next.
    pub(super) unsent: &'static [u8],
    /// Requests that are out over this connection.
    pub(super) outstanding: u16,
    /// Its places in the line of clients that will ask when their time comes.
    pub(super) queued: u16,
    /// Failures since its last reply.
    pub(super) failures: u16,
    /// Requests begun over this connection.
    pub(super) made: u32,
    /// When its connection was begun, and then when it was there; after a failure, when it tries again.
    pub(super) since: u64,
    /// When the TLS handshake of this connection was begun; 0: it was not.
    pub(super) handshake_since: u64,
    /// Of the oldest request that is out.
    pub(super) oldest: Stamp,
    /// Of those after it.
    pub(super) later: VecDeque<Stamp>,
    /// When the request was due for which it connects now.
    pub(super) owed: u64,
    /// Requests it may still make.
    pub(super) budget: u64,
    /// Whether the server refused in the last reply, after which nothing has come yet.
    pub(super) was_refused: bool,
    pub(super) stats: ClientStats,
}

impl Client {
    /// Client `number` of a load, before its turn to connect.
    pub(super) fn new(plan: &Plan, number: u64) -> Self {
        let count = u64::from(plan.clients);
        Self {
            requester: plan.dialogue.requester(&plan.settings, number),
            state: State::Unborn,
            tenth: (number * TENTHS as u64 / count.max(1)) as u8,
            unsent: &[],
            outstanding: 0,
            queued: 0,
            failures: 0,
            made: 0,
            since: 0,
            handshake_since: 0,
            oldest: Stamp { due: 0, sent: 0 },
            later: VecDeque::new(),
            owed: NOTHING_OWED,
            budget: match (plan.until, plan.rate) {
                (Until::Requests(total), None) => total / count + u64::from(number < total % count),
                (Until::Each { requests, .. }, None) => requests.into(),
                // In an open loop, the worker has a budget for all of its clients.
                _ => u64::MAX,
            },
            was_refused: false,
            stats: ClientStats::default(),
        }
    }

    /// Whether it ever had an answer.
    pub(super) fn was_answered(&self) -> bool {
        self.stats.first_answer_at.is_some()
    }

    /// A request leaves.
    pub(super) fn begin(&mut self, stamp: Stamp) {
        if self.outstanding == 0 {
            self.oldest = stamp;
        } else {
            self.later.push_back(stamp);
        }
        self.outstanding += 1;
        self.made = self.made.saturating_add(1);
        self.stats.requests += 1;
        self.unsent = self.requester.begin();
    }

    /// Records how large the replies were since it was last asked for that.
    #[cold]
    pub(super) fn note_sizes(&mut self, stats: &mut LoadStats) {
        self.requester
            .sizes(&mut |bytes, count| stats.reply_bytes.record(bytes, count));
    }

    /// The oldest request that was out has its reply.
    pub(super) fn take_oldest(&mut self) -> Stamp {
        let stamp = self.oldest;
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding > 0
            && let Some(next) = self.later.pop_front()
        {
            self.oldest = next;
        }
        stamp
    }

    /// Forgets what is out; gives its stamps.
    pub(super) fn drop_outstanding(&mut self) -> impl Iterator<Item = Stamp> + use<> {
        let oldest = (self.outstanding > 0).then_some(self.oldest);
        self.outstanding = 0;
        oldest.into_iter().chain(std::mem::take(&mut self.later))
    }
}
