//! The TCP sockets of this machine on a port, over IPv4, as the kernel lists them: all at once, which tables of `/proc`
//! are not.

use std::ops::ControlFlow;

use throng::measure::network::sock_diag::{Question, SockDiag, Socket, State};

/// All states but that of sockets which are only bound (`TCP_BOUND_INACTIVE`): for them the kernel would walk another
/// table, which takes three times as long as all others.
const STATES: u32 = !(1 << 13);

/// Those with this local port. Clients of different servers may have the same one.
pub(crate) fn on(port: u16) -> anyhow::Result<Vec<Socket>> {
    between(port, 0)
}

/// Those with these local and remote ports; 0 is any.
pub(crate) fn between(own: u16, other: u16) -> anyhow::Result<Vec<Socket>> {
    let all = Question {
        states: STATES,
        local_port: own,
        remote_port: other,
        ..Question::default()
    };
    let mut found = Vec::new();
    SockDiag::open()?.each(&all, |socket| {
        found.push(*socket);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Connections that any process has open. Those reset by the peer are not among them, nor unaccepted ones.
pub(crate) fn connections(port: u16) -> anyhow::Result<usize> {
    let is_open = |socket: &&Socket| socket.state != State::Listen as u8 && socket.is_held;
    Ok(on(port)?.iter().filter(is_open).count())
}
