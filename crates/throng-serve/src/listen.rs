//! The one listening path of all models: address, backlog, options, and accepting until there is
//! nobody left to accept, also when descriptors run out.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SocketAddrAny, getpeername};
use rustix::process::{Resource, getrlimit};
use socket2::{Domain, Protocol, Socket, Type};

use super::close_reason::Refusal;
use super::server_stats::{ConnectionId, ServerStats};
use super::unix_socket::SocketFile;
use throng_record::spec::Endpoint;
use throng_sys::flags::accept;

/// Most clients accepted before those already here are looked after again.
pub const ACCEPT_BATCH: usize = 1024;

/// The last descriptors, kept from clients for what a request may need: to look at processes, a
/// directory and a file in it.
const FOR_REQUESTS: RawFd = 2;

/// Whether calls on an accepted socket wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// recv() and send() wait for the peer.
    Blocking,
    /// They return EAGAIN instead.
    NonBlocking,
}

/// How to listen.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where; port 0 lets the kernel choose.
    pub address: Endpoint,
    /// Accept-queue length asked for; the kernel caps it at net.core.somaxconn.
    pub backlog: u32,
    /// Let several sockets listen on the same port, the kernel dividing the clients among them.
    pub reuse_port: bool,
    /// Send small answers at once instead of gathering them (Nagle's algorithm off).
    pub nodelay: bool,
}

/// A listening socket, never blocking itself.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    options: Options,
    /// What is to be removed at the end.
    file: Option<SocketFile>,
    /// A descriptor kept back: given up for a moment to accept, and turn away, a client for whom
    /// there is no other.
    spare: Mutex<Option<OwnedFd>>,
    /// Held for writing while the spare descriptor is given up, so that no other thread that
    /// accepts in this process takes it.
    accepting: Arc<RwLock<()>>,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// As bind(2) and listen(2) give them.
    pub fn bind(options: &Options) -> io::Result<Self> {
        Self::bind_among(options, Arc::default())
    }

    /// Listens with another socket on the same port, which needs [`Options::reuse_port`]. Of a unix socket there is
    /// only one, which both share.
    ///
    /// # Errors
    /// As bind(2) and listen(2) give them.
    pub fn sibling(&self) -> io::Result<Self> {
        let accepting = Arc::clone(&self.accepting);
        if self.options.address.tcp().is_some() {
            return Self::bind_among(&self.options, accepting);
        }
        Ok(Self {
            socket: self.socket.try_clone()?,
            options: self.options.clone(),
            file: None,
            spare: Mutex::new(reserve()),
            accepting,
        })
    }

    fn bind_among(options: &Options, accepting: Arc<RwLock<()>>) -> io::Result<Self> {
        let address = match &options.address {
            Endpoint::Tcp(address) => *address,
            Endpoint::Unix(path) => {
                let (socket, file) = SocketFile::listen(path, options.backlog)?;
                return Ok(Self {
                    socket,
                    options: options.clone(),
                    file,
                    spare: Mutex::new(reserve()),
                    accepting,
                });
            }
        };
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if options.reuse_port {
            share_port(&socket)?;
        }
        socket.set_nonblocking(true)?;
        if options.nodelay {
            socket.set_tcp_nodelay(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(i32::try_from(options.backlog).unwrap_or(i32::MAX))?;
        let address = socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("the socket has no internet address"))?;
        Ok(Self {
            socket,
            options: Options {
                address: address.into(), // with the port that the kernel chose
                ..options.clone()
            },
            file: None,
            spare: Mutex::new(reserve()),
            accepting,
        })
    }

    /// Where it listens, with the port the kernel chose.
    pub fn address(&self) -> &Endpoint {
        &self.options.address
    }

    /// Removes the file of a unix socket. Only for the process that began to listen.
    pub fn remove_file(&self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }

    /// Clients waiting to be accepted, in order, until there are none or [`ACCEPT_BATCH`] came.
    pub fn arrivals<'a>(&'a self, stats: &'a ServerStats, mode: Mode) -> Arrivals<'a> {
        Arrivals {
            listener: self,
            stats,
            mode,
            left: ACCEPT_BATCH,
        }
    }

    /// A client that the kernel accepted by itself; none when there are as many as may be.
    pub fn welcome(&self, stats: &ServerStats, socket: OwnedFd) -> Option<Client> {
        // One that has gone already has no address any more.
        let peer = getpeername(&socket).ok().flatten();
        Client::admit(socket, address_of(peer), stats)
    }

    /// Stops listening: the kernel resets who still waits to be accepted.
    pub fn close(&self) {
        // Shutting it down also wakes and ends what other processes wait for on this socket.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    fn accept(&self, mode: Mode) -> Result<(OwnedFd, SocketAddr), Errno> {
        let (socket, peer) = accept(&self.socket, mode == Mode::NonBlocking)?;
        // Linux hands TCP_NODELAY down from the listening socket; POSIX does not promise it.
        let is_tcp = self.options.address.tcp().is_some();
        if self.options.nodelay && is_tcp && !cfg!(target_os = "linux") {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok((socket, address_of(peer)))
    }

    /// Out of descriptors: gives up the spare one for as long as it takes to accept a client and
    /// close its connection, so that it learns at once and those inside are served on. A client for
    /// whom a descriptor became free meanwhile is accepted like any other.
    fn accept_with_spare(&self, mode: Mode, stats: &ServerStats) -> Result<Accepted, Errno> {
        let _alone = self.accepting.write();
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let had_spare = spare.take().is_some();
        let accepted = self.accept(mode);
        *spare = reserve();
        match accepted {
            Ok((socket, peer)) if spare.is_some() => Ok(Some((socket, peer))),
            Ok((socket, _)) => {
                drop(socket);
                *spare = reserve();
                stats.refused(Refusal::Descriptors);
                Ok(None)
            }
            Err(Errno::MFILE | Errno::NFILE) => {
                // Somebody else took the descriptor that was set free. Waiting a moment keeps a
                // readiness loop from spinning; the clients stay in the accept queue.
                if !had_spare {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::AGAIN)
            }
            Err(error) => Err(error),
        }
    }
}

/// A socket and where its client is; none when the client was turned away.
type Accepted = Option<(OwnedFd, SocketAddr)>;

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(not(any(target_os = "illumos", target_os = "solaris")))]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(any(target_os = "illumos", target_os = "solaris"))]
fn share_port(_: &Socket) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "this system has no SO_REUSEPORT",
    ))
}

/// The address of a peer, all zeros where there is none.
fn address_of(peer: Option<SocketAddrAny>) -> SocketAddr {
    let peer = peer.and_then(|peer| peer.try_into().ok());
    peer.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// Clients get descriptors below this one: those above are for what their requests need.
fn ceiling() -> RawFd {
    static CEILING: OnceLock<RawFd> = OnceLock::new();
    *CEILING.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = RawFd::try_from(limit).unwrap_or(RawFd::MAX);
        limit - FOR_REQUESTS
    })
}

/// A descriptor to give up; none of those that requests need.
fn reserve() -> Option<OwnedFd> {
    let descriptor = OwnedFd::from(std::fs::File::open("/dev/null").ok()?);
    (descriptor.as_raw_fd() < ceiling()).then_some(descriptor)
}

/// An accepted connection.
#[derive(Debug)]
pub struct Client<S = OwnedFd> {
    pub socket: S,
    /// Its place among all clients.
    pub id: ConnectionId,
}

impl<S: AsFd> Client<S> {
    /// Takes in a client that was accepted; none when there are as many as may be, or as there are
    /// descriptors for, and then its connection is closed.
    pub fn admit(socket: S, peer: SocketAddr, stats: &ServerStats) -> Option<Self> {
        if socket.as_fd().as_raw_fd() >= ceiling() {
            stats.refused(Refusal::Descriptors);
            return None;
        }
        let id = stats.admit(peer)?;
        Some(Self { socket, id })
    }
}

/// See [`Listener::arrivals`].
#[derive(Debug)]
pub struct Arrivals<'a> {
    listener: &'a Listener,
    stats: &'a ServerStats,
    mode: Mode,
    left: usize,
}

impl Iterator for Arrivals<'_> {
    type Item = Client;

    fn next(&mut self) -> Option<Client> {
        while self.left > 0 {
            self.left -= 1;
            let accepting = self.listener.accepting.read();
            let accepted = self.listener.accept(self.mode).map(Some);
            drop(accepting);
            let accepted = match accepted {
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.listener.accept_with_spare(self.mode, self.stats)
                }
                accepted => accepted,
            };
            match accepted {
                Ok(Some((socket, peer))) => {
                    let client = Client::admit(socket, peer, self.stats);
                    if client.is_some() {
                        return client;
                    }
                }
                // It was turned away; it left before it was accepted; a signal came.
                Ok(None) | Err(Errno::CONNABORTED | Errno::INTR) => {}
                // Nobody is left; or listening has ended, in this process or in its parent.
                Err(Errno::AGAIN | Errno::INVAL) => return None,
                Err(_) => {
                    self.stats.accept_failed();
                    return None;
                }
            }
        }
        None
    }
}
