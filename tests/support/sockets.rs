//! The TCP sockets of this machine on a port, over IPv4, as the kernel lists them: all at once, which tables of `/proc`
//! are not.

use std::ops::ControlFlow;

use throng::measure::network::sock_diag::{Question, SockDiag, Socket, State};

/// Those of which this is the own port. Clients that go to different servers may have the same one.
pub(crate) fn on(port: u16) -> anyhow::Result<Vec<Socket>> {
    between(port, 0)
}

/// Those of which this is the own port, and that the one of the other side; 0 is any.
pub(crate) fn between(own: u16, other: u16) -> anyhow::Result<Vec<Socket>> {
    let all = Question {
        states: u32::MAX,
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

/// Connections that any process has open. What the peer has reset is not among them, nor what nobody has accepted yet.
pub(crate) fn connections(port: u16) -> anyhow::Result<usize> {
    let is_open = |socket: &&Socket| socket.state != State::Listen as u8 && socket.is_held;
    Ok(on(port)?.iter().filter(is_open).count())
}
