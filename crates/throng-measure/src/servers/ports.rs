//! Free ports for servers, and which process listens where.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use procfs::net::{TcpState, tcp, tcp6};
use procfs::process::{FDTarget, Process, all_processes};
use socket2::{Domain, Socket, Type};
use throng_spec::{Endpoint, UnixPath};

use crate::network::sock_diag::SockDiag;

/// Number of ports to try among those that the kernel never chooses, and then among those that it chooses.
const PORTS_TRIED: u32 = 100;

/// The lowest port for a server. Well-known services are mostly below.
const FIRST: u16 = 10_000;

/// A port that is free on every address now.
///
/// Another process may take it before the server does. Then the server is restarted with another port. That is rare:
/// the port is one that the kernel never chooses, if there are such ports.
pub(crate) fn free() -> io::Result<u16> {
    let chosen = chosen_by_the_kernel().unwrap_or(FIRST);
    let others = (0..PORTS_TRIED)
        .filter(|_| chosen > FIRST)
        .map(|_| fastrand::u16(FIRST..chosen));
    let any = (0..PORTS_TRIED).map(|_| 0);
    let found = others.chain(any).find_map(bindable);
    found.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// The lowest port that the kernel chooses for sockets without one.
fn chosen_by_the_kernel() -> Option<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    range.split_whitespace().next()?.parse().ok()
}

/// This port, or one that the kernel chooses for 0, if it is free on every address.
fn bindable(port: u16) -> Option<u16> {
    // Without SO_REUSEADDR, so that not even a connection in TIME_WAIT uses it.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    socket.bind(&address.into()).ok()?;
    let given = socket.local_addr().ok()?.as_socket()?.port();
    is_free_in_v6(given).then_some(given)
}

/// Whether a port is free on every IPv6 address, if there is IPv6.
fn is_free_in_v6(port: u16) -> bool {
    let taken = Socket::new(Domain::IPV6, Type::STREAM, None).and_then(|socket| {
        socket.set_only_v6(true)?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())
    });
    !matches!(taken, Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

/// The addresses at which these processes listen; `None` if that is unknown for one of them.
pub(crate) fn listened_by(pids: &[u32]) -> Option<BTreeSet<SocketAddr>> {
    let sockets: HashMap<u64, SocketAddr> = listening()?.into_iter().collect();
    let mut addresses = BTreeSet::new();
    for pid in pids {
        let Ok(process) = Process::new(pid.cast_signed()) else {
            continue; // it has ended
        };
        for inode in sockets_of(&process)? {
            addresses.extend(sockets.get(&inode));
        }
    }
    Some(addresses)
}

/// The listening sockets that accept connections to this address.
pub(crate) fn listening_on(address: SocketAddr) -> BTreeSet<u64> {
    let is_it = |listener: SocketAddr| {
        let (own, asked) = (listener.ip().to_canonical(), address.ip().to_canonical());
        listener.port() == address.port() && (own.is_unspecified() || own == asked)
    };
    let all = listening().into_iter().flatten();
    all.filter(|(_, listener)| is_it(*listener))
        .map(|(inode, _)| inode)
        .collect()
}

/// The sockets of this network namespace with this path, including connections.
pub(crate) fn unix_sockets(path: &UnixPath) -> BTreeSet<u64> {
    let is_it = |found: &std::path::Path| found.to_str() == Some(&path.written());
    let all = procfs::net::unix().into_iter().flatten();
    let named = all.filter(|entry| entry.path.as_deref().is_some_and(is_it));
    named.map(|entry| entry.inode).collect()
}

/// The sockets that accept connections to this address.
pub(crate) fn accepting(address: &Endpoint) -> BTreeSet<u64> {
    match address {
        Endpoint::Tcp(address) => listening_on(*address),
        Endpoint::Unix(path) => unix_sockets(path),
    }
}

/// Whether a process has one of these sockets open, as far as it can be examined.
pub(crate) fn holds(pid: u32, sockets: &BTreeSet<u64>) -> bool {
    Process::new(pid.cast_signed()).is_ok_and(|process| has_one(&process, sockets))
}

fn has_one(process: &Process, sockets: &BTreeSet<u64>) -> bool {
    let own = sockets_of(process).unwrap_or_default();
    own.iter().any(|inode| sockets.contains(inode))
}

/// The processes that have one of these sockets open, as far as they can be examined.
pub(crate) fn holders(sockets: &BTreeSet<u64>) -> BTreeSet<u32> {
    let Ok(processes) = all_processes() else {
        return BTreeSet::new();
    };
    let holders = processes
        .flatten()
        .filter(|process| has_one(process, sockets));
    holders.map(|process| process.pid.cast_unsigned()).collect()
}

/// Every listening socket of this network namespace, by its inode.
fn listening() -> Option<Vec<(u64, SocketAddr)>> {
    // For the tables in /proc, the kernel would walk all connections too.
    if let Ok(mut diag) = SockDiag::open()
        && let Ok(listeners) = diag.tcp_listeners()
    {
        return Some(listeners);
    }
    let all = tcp().ok()?.into_iter().chain(tcp6().unwrap_or_default());
    let listening = all
        .filter(|entry| entry.state == TcpState::Listen)
        .map(|entry| (entry.inode, entry.local_address));
    Some(listening.collect())
}

/// The open sockets of a process; `None` if unknown.
fn sockets_of(process: &Process) -> Option<Vec<u64>> {
    let descriptors = process.fd().ok()?.flatten();
    let sockets = descriptors.filter_map(|descriptor| match descriptor.target {
        FDTarget::Socket(inode) => Some(inode),
        _ => None,
    });
    Some(sockets.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_addresses_are_reported() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let found = listened_by(&[std::process::id()]).unwrap();
        assert!(found.contains(&address), "{found:?}");
        assert!(!listened_by(&[]).unwrap().contains(&address));
        let sockets = listening_on(listener.local_addr().unwrap());
        assert_eq!(sockets.len(), 1);
        assert!(holders(&sockets).contains(&std::process::id()));
    }

    #[test]
    fn a_free_port_can_be_taken() {
        let port = free().unwrap();
        std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[test]
    fn a_free_port_is_not_one_that_the_kernel_chooses() {
        let chosen = chosen_by_the_kernel().unwrap();
        if chosen > FIRST {
            let ports: BTreeSet<u16> = (0..50).map(|_| free().unwrap()).collect();
            assert!(ports.iter().all(|port| (FIRST..chosen).contains(port)));
            assert!(ports.len() > 1, "they are random");
        }
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(bindable(port), None);
    }
}
