//! The IPv4 TCP sockets of this machine on a port, as the kernel lists them: all at once, unlike the tables in
//! `/proc`.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;

use throng::measure::network::sock_diag::{Question, SockDiag, Socket, State};
use throng::measure::processes::all::{Brief, all};

/// All states except that of sockets that are only bound (`TCP_BOUND_INACTIVE`). For those, the kernel would walk
/// another table, which takes three times as long as all others.
const STATES: u32 = !(1 << 13);

/// The sockets with this local port. Clients of different servers may have the same port.
pub(crate) fn on(port: u16) -> anyhow::Result<Vec<Socket>> {
    between(port, 0)
}

/// The sockets with these local and remote ports; 0 means any.
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

/// Number of connections that any process has open, without unaccepted ones and those that the peer reset.
pub(crate) fn connections(port: u16) -> anyhow::Result<usize> {
    let is_open = |socket: &&Socket| socket.state != State::Listen as u8 && socket.is_held;
    Ok(on(port)?.iter().filter(is_open).count())
}

/// Whether a process or one of its descendants listens on this port. Another program may have taken it first.
pub(crate) fn is_listener(root: i32, port: u16) -> anyhow::Result<bool> {
    let listeners = SockDiag::open()?.tcp_listeners()?;
    let on_port = listeners
        .iter()
        .filter(|(_, address)| address.port() == port);
    let sockets: Vec<PathBuf> = on_port
        .map(|(inode, _)| format!("socket:[{inode}]").into())
        .collect();
    let processes: Vec<Brief> = all().collect();
    let mut tree = vec![root];
    let mut looked_at = 0;
    while let Some(&pid) = tree.get(looked_at) {
        let mut descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let is_held = |link: PathBuf| sockets.contains(&link);
        if descriptors.any(|one| fs::read_link(one.path()).is_ok_and(is_held)) {
            return Ok(true);
        }
        let children = processes.iter().filter(|process| process.parent == pid);
        tree.extend(children.map(|child| child.pid));
        looked_at += 1;
    }
    Ok(false)
}
