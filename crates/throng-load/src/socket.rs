//! How a client's connection begins.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
use throng_spec::{Endpoint, UnixPath};

use super::route::{Route, Routes};
use throng_sys::socket::{leave_port_to_connect, set_syn_retries};

/// Options of every socket of a load.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Send small requests immediately (TCP_NODELAY, no Nagle's algorithm).
    pub nodelay: bool,
    /// Number of SYN retries before connecting fails; `None` for the system's default.
    pub syn_retries: Option<u8>,
}

/// Begins to connect, without blocking.
///
/// Register the socket for events afterwards. Otherwise, the first event would be the hang-up of an unconnected
/// socket.
///
/// # Errors
/// `ADDRNOTAVAIL` if no port is free, `AGAIN` if a unix socket's accept queue is full, and other errors of the calls.
pub(super) fn open(route: &Route<'_>, options: Options) -> Result<OwnedFd, Errno> {
    let target = match route.target {
        Endpoint::Tcp(address) => address,
        Endpoint::Unix(path) => return open_unix(path),
    };
    let socket = unconnected(target.is_ipv4())?;
    if options.nodelay {
        sockopt::set_tcp_nodelay(&socket, true)?;
    }
    if let Some(retries) = options.syn_retries {
        set_syn_retries(&socket, retries)?;
    }
    if let Some(source) = route.source {
        take_source(&socket, source)?;
    }
    match net::connect(&socket, target) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn open_unix(path: &UnixPath) -> Result<OwnedFd, Errno> {
    let address = path.address().map_err(|_| Errno::AFNOSUPPORT)?;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match net::connect(&socket, &address) {
        Ok(()) => Ok(socket),
        // Nothing listens there: the file is missing, or its server has ended.
        Err(Errno::NOENT | Errno::NOTSOCK) => Err(Errno::CONNREFUSED),
        Err(error) => Err(error),
    }
}

/// The first source address of a load that this machine does not have, and the error.
pub fn unusable_source(routes: &Routes) -> Option<(IpAddr, Errno)> {
    routes.sources().find_map(|source| {
        let taken = unconnected(source.is_ipv4()).and_then(|socket| take_source(&socket, source));
        taken.err().map(|error| (source, error))
    })
}

fn unconnected(is_ipv4: bool) -> Result<OwnedFd, Errno> {
    let family = if is_ipv4 {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    net::socket_with(family, SocketType::STREAM, flags, Some(net::ipproto::TCP))
}

fn take_source(socket: &OwnedFd, source: IpAddr) -> Result<(), Errno> {
    // If this fails (before Linux 4.2), a port is taken for all targets at once, so ports run out sooner.
    let _ = leave_port_to_connect(socket);
    net::bind(socket, &SocketAddr::new(source, 0))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn connects_from_the_source_of_its_route() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let route = Route {
            target: &listener.local_addr().unwrap().into(),
            source: Some([127, 9, 8, 7].into()),
        };
        let options = Options {
            nodelay: true,
            syn_retries: Some(2),
        };
        let socket = open(&route, options).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer.ip().to_string(), "127.9.8.7");
        assert_eq!(sockopt::tcp_nodelay(&socket), Ok(true));
    }

    #[test]
    fn a_unix_socket_is_full_or_away_at_once() {
        let options = Options {
            nodelay: true,
            syn_retries: Some(2),
        };
        let name = format!("throng-test-away-{}", std::process::id());
        let path = UnixPath::new(&format!("@{name}")).unwrap();
        let target = Endpoint::Unix(path.clone());
        let route = Route {
            target: &target,
            source: None,
        };
        assert_eq!(open(&route, options).unwrap_err(), Errno::CONNREFUSED);
        let socket = net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        net::bind(&socket, &path.address().unwrap()).unwrap();
        net::listen(&socket, 1).unwrap();
        let waiting: Vec<_> = (0..2).map(|_| open(&route, options).unwrap()).collect();
        assert_eq!(open(&route, options).unwrap_err(), Errno::AGAIN);
        drop(net::accept(&socket).unwrap());
        assert!(open(&route, options).is_ok());
        drop(waiting);
    }

    #[test]
    fn an_address_of_another_machine_is_no_source() {
        let target = ["127.0.0.1:7".parse().unwrap()];
        let networks = ["127.0.0.4", "192.0.2.1"].map(|name| name.parse().unwrap());
        let routes = Routes::new(&target, &networks, 10, None).unwrap();
        let unusable = unusable_source(&routes);
        assert_eq!(unusable, Some(([192, 0, 2, 1].into(), Errno::ADDRNOTAVAIL)));
    }
}
