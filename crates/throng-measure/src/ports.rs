//! Which port a server gets, and who listens where.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::Ipv4Addr;

use procfs::net::{TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process};
use socket2::{Domain, Socket, Type};

/// A port that nothing uses at this moment on any address.
///
/// Somebody else may take it before the server does; then the server is started again with another.
pub(super) fn free() -> io::Result<u16> {
    // Without SO_REUSEADDR, so that not even a connection that rests in TIME_WAIT has it.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&std::net::SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
    let address = socket.local_addr()?.as_socket();
    address
        .map(|address| address.port())
        .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// The ports on which these processes listen; none when that cannot be told of all of them.
pub(super) fn listened_by(pids: &[u32]) -> Option<BTreeSet<u16>> {
    let sockets: HashMap<u64, u16> = tcp()
        .ok()?
        .into_iter()
        .chain(tcp6().unwrap_or_default())
        .filter(|entry| entry.state == TcpState::Listen)
        .map(|entry| (entry.inode, entry.local_address.port()))
        .collect();
    let mut ports = BTreeSet::new();
    for pid in pids {
        let Ok(process) = Process::new(pid.cast_signed()) else {
            continue; // it has ended
        };
        for descriptor in process.fd().ok()?.flatten() {
            if let FDTarget::Socket(inode) = descriptor.target {
                ports.extend(sockets.get(&inode));
            }
        }
    }
    Some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_reported() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ports = listened_by(&[std::process::id()]).unwrap();
        assert!(ports.contains(&port), "{ports:?}");
        assert!(!listened_by(&[]).unwrap().contains(&port));
    }

    #[test]
    fn a_free_port_can_be_taken() {
        let port = free().unwrap();
        std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }
}
