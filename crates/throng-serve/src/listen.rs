//! The listening path of all models: address, backlog, options, and accepting until the queue is empty, even without
//! free file descriptors.

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
use throng_spec::Endpoint;
use throng_sys::flags::accept;

/// Maximum number of clients accepted before existing ones are served.
pub const ACCEPT_BATCH: usize = 1024;

/// The same once half of the descriptors are in use. Some clients may be gone already, and the model finds that out before
/// it would have to reject another one.
const SMALL_BATCH: usize = 16;

/// Number of file descriptors at the upper end that are reserved for requests: reading processes needs a directory and
/// a file in it.
const FOR_REQUESTS: RawFd = 2;

/// Whether calls on an accepted socket block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They block.
    Blocking,
    /// They return EAGAIN instead.
    NonBlocking,
}

/// Options of a listener.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address; if its port is 0, the kernel chooses one.
    pub address: Endpoint,
    /// Requested accept queue length, which the kernel caps at net.core.somaxconn.
    pub backlog: u32,
    /// Whether several sockets may listen on the same port. The kernel divides the clients among them.
    pub reuse_port: bool,
    /// Maximum number of clients accepted at a time, at most [`ACCEPT_BATCH`].
    pub batch: usize,
    /// Whether to send small answers immediately (TCP_NODELAY, without Nagle's algorithm).
    pub nodelay: bool,
}

/// A listening socket, which is itself non-blocking.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    options: Options,
    /// The file to remove at the end.
    file: Option<SocketFile>,
    /// A spare descriptor. When no other is free, it is closed briefly to accept and reject a client.
    spare: Mutex<Option<OwnedFd>>,
    /// Locked for writing while the spare descriptor is closed, so that no other accepting thread of this process
    /// takes the free slot.
    accepting: Arc<RwLock<()>>,
}

impl Listener {
    /// Listens.
    ///
    /// # Errors
    /// Those of bind(2) and listen(2).
    pub fn bind(options: &Options) -> io::Result<Self> {
        Self::bind_among(options, Arc::default())
    }

    /// Listens with another socket on the same port, with [`Options::reuse_port`]. Without it, and for a unix socket, both
    /// share one socket and its queue.
    ///
    /// # Errors
    /// Those of bind(2) and listen(2).
    pub fn sibling(&self) -> io::Result<Self> {
        let accepting = Arc::clone(&self.accepting);
        if self.options.reuse_port && self.options.address.tcp().is_some() {
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
        let bound = socket
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("the socket has no internet address"))?;
        Ok(Self {
            socket,
            options: Options {
                address: bound.into(), // with the port that the kernel chose
                ..options.clone()
            },
            file: None,
            spare: Mutex::new(reserve()),
            accepting,
        })
    }

    /// Its address, including the port if the kernel chose it.
    pub fn address(&self) -> &Endpoint {
        &self.options.address
    }

    /// Removes the file of a unix socket. Only the process that created it may call this.
    pub fn remove_file(&self) {
        if let Some(file) = &self.file {
            file.remove();
        }
    }

    /// Waiting clients, in order, until there are none or a batch was returned.
    pub fn arrivals<'a>(&'a self, stats: &'a ServerStats, mode: Mode) -> Arrivals<'a> {
        Arrivals {
            listener: self,
            stats,
            mode,
            left: self.options.batch,
        }
    }

    /// A client that the kernel accepted; `None` if there are too many.
    pub fn admit(&self, stats: &ServerStats, socket: OwnedFd) -> Option<Client> {
        // A client that has already disconnected no longer has an address.
        let peer = getpeername(&socket).ok().flatten();
        Client::admit(socket, address_of(peer), stats)
    }

    /// Stops listening: the kernel resets clients in the accept queue.
    pub fn close(&self) {
        // shutdown() also wakes other processes that wait on this socket.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    fn accept(&self, mode: Mode) -> Result<(OwnedFd, SocketAddr), Errno> {
        let (socket, peer) = accept(&self.socket, mode == Mode::NonBlocking)?;
        // On Linux, accepted sockets inherit TCP_NODELAY. POSIX does not guarantee that.
        let is_tcp = self.options.address.tcp().is_some();
        if self.options.nodelay && is_tcp && !cfg!(target_os = "linux") {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok((socket, address_of(peer)))
    }

    /// Handles running out of descriptors: closes the spare one for as long as it takes to accept a client and close
    /// its connection. So the client finds out immediately, and existing clients are still served. If a descriptor
    /// became free in the meantime, accepts the client normally.
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
                // Another thread took the spare descriptor. Clients stay in the accept queue; a short wait keeps a
                // readiness loop from spinning.
                if !had_spare {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::AGAIN)
            }
            Err(error) => Err(error),
        }
    }
}

/// A socket and its client's address; `None` if the client was rejected.
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

/// The address of a peer, all zeros if it has none.
fn address_of(peer: Option<SocketAddrAny>) -> SocketAddr {
    let ip = peer.and_then(|peer| peer.try_into().ok());
    ip.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)))
}

/// Clients get descriptors below this one. The ones above are reserved for requests.
pub fn ceiling() -> RawFd {
    static CEILING: OnceLock<RawFd> = OnceLock::new();
    *CEILING.get_or_init(|| {
        let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let limit = RawFd::try_from(current).unwrap_or(RawFd::MAX);
        limit - FOR_REQUESTS
    })
}

/// A spare descriptor that is not one of those reserved for requests.
fn reserve() -> Option<OwnedFd> {
    let descriptor = OwnedFd::from(std::fs::File::open("/dev/null").ok()?);
    (descriptor.as_raw_fd() < ceiling()).then_some(descriptor)
}

/// An accepted client.
#[derive(Debug)]
pub struct Client<S = OwnedFd> {
    pub socket: S,
    /// Its ID among all clients.
    pub id: ConnectionId,
}

impl<S: AsFd> Client<S> {
    /// Registers an accepted client. If there are too many clients or too few descriptors, closes the connection and
    /// returns `None`.
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
            let result = self.listener.accept(self.mode).map(Some);
            drop(accepting);
            let accepted = match result {
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.listener.accept_with_spare(self.mode, self.stats)
                }
                result => result,
            };
            match accepted {
                Ok(Some((socket, peer))) => {
                    if socket.as_raw_fd() > ceiling() / 2 {
                        self.left = self.left.min(SMALL_BATCH);
                    }
                    let client = Client::admit(socket, peer, self.stats);
                    if client.is_some() {
                        return client;
                    }
                }
                // The client was rejected or disconnected before it was accepted, or a signal arrived.
                Ok(None) | Err(Errno::CONNABORTED | Errno::INTR) => {}
                // The queue is empty, or listening has ended in this process or its parent.
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
