//! One client of a load: where it stands, what it may still ask, and how its connection begins.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use super::tally::ClientTally;
use super::{Plan, Until, socket};
use crate::protocol::Requester;

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Its turn to connect has not come.
    Unborn,
    /// connect() has not come back.
    Connecting,
    /// A request is out.
    Asking,
    /// It has nothing to ask.
    Resting,
    /// It had its reply, after which the server is to close.
    Leaving,
    /// It ended.
    Over,
}

/// One client, over its life.
pub(super) struct Client {
    pub(super) socket: Option<OwnedFd>,
    pub(super) requester: Box<dyn Requester>,
    pub(super) state: State,
    /// When it gives up connecting.
    pub(super) connect_by: u64,
    /// Requests it may still make.
    pub(super) budget: u64,
    pub(super) sent_at: u64,
    pub(super) tally: ClientTally,
}

impl Client {
    /// Client `number` of a load, before its turn to connect.
    pub(super) fn new(plan: &Plan, number: u64) -> Self {
        let count = u64::from(plan.clients);
        Self {
            socket: None,
            requester: plan.protocol.requester(&plan.settings, number),
            state: State::Unborn,
            connect_by: 0,
            budget: match plan.until {
                Until::Duration(_) => u64::MAX,
                Until::Requests(total) => total / count + u64::from(number < total % count),
            },
            sent_at: 0,
            tally: ClientTally::default(),
        }
    }
}

/// The server closed its side, or the connection broke: no further edge will come.
pub(super) const LAST: epoll::EventFlags = epoll::EventFlags::RDHUP
    .union(epoll::EventFlags::HUP)
    .union(epoll::EventFlags::ERR);

/// What a socket is registered for, once and for good.
const EDGES: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::OUT)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Begins to connect client `number`, which is at `place` among its worker's; the answer comes from
/// `queue`.
pub(super) fn begin_connection(
    plan: &Plan,
    number: u64,
    queue: impl AsFd,
    place: usize,
) -> Result<OwnedFd, Errno> {
    let socket = socket::open(&plan.routes.route(number), plan.socket)?;
    // Registered after connect(), or the hang-up of an unconnected socket would be the first edge.
    epoll::add(
        queue,
        &socket,
        epoll::EventData::new_u64(place as u64),
        EDGES,
    )?;
    Ok(socket)
}
