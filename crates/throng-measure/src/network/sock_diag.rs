//! Lists sockets (`sock_diag(7)`): any in this network namespace, of any owner, as fast as they are read and no more
//! than requested.

use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

pub use super::message::{Info, Question, Socket, State};
use super::message::{Message, encode, named, next, socket};
use super::unix;
pub use super::unix::UnixListener;
use throng_spec::registry::Unsupported;

/// Maximum bytes that the kernel fills per read.
const ROOM: usize = 32 << 10;
/// The kernel answers immediately; longer means never.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A netlink socket.
#[derive(Debug)]
pub struct SockDiag {
    /// `None` if no socket is open, for example because the last answer was not read completely.
    socket: Option<OwnedFd>,
    buffer: Box<[u8]>,
    sequence: u32,
}

impl SockDiag {
    fn new() -> Self {
        Self {
            socket: None,
            buffer: vec![0; ROOM].into_boxed_slice(),
            sequence: 0,
        }
    }

    /// Checks whether the kernel answers about unix sockets.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn open_unix() -> Result<Self, Unsupported> {
        let mut diag = Self::new();
        let asked = diag.each_unix_listener(|_| ControlFlow::Continue(()));
        asked.map(|()| diag).map_err(|error| Unsupported {
            reason: format!("the kernel does not list unix sockets (sock_diag): {error}"),
            remedy: "as root: modprobe unix_diag; or use a kernel with CONFIG_UNIX_DIAG".to_owned(),
        })
    }

    /// Checks whether the kernel answers.
    ///
    /// # Errors
    /// Why not, and the remedy.
    pub fn open() -> Result<Self, Unsupported> {
        let mut diag = Self::new();
        let question = Question {
            states: State::Listen.bit(),
            local_port: 1,
            ..Question::default()
        };
        let asked = diag.each(&question, |_| ControlFlow::Continue(()));
        asked.map(|()| diag).map_err(|error| Unsupported {
            reason: format!("the kernel does not list sockets (sock_diag): {error}"),
            remedy: "as root: modprobe tcp_diag; or use a kernel with CONFIG_INET_TCP_DIAG"
                .to_owned(),
        })
    }

    /// Passes each matching socket to `take`, until `take` breaks.
    ///
    /// The kernel walks its table of connections, so this costs about as much for none as for a few hundred; each
    /// further socket costs about a microsecond.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn each(
        &mut self,
        question: &Question,
        take: impl FnMut(&Socket) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.dump(|sequence| encode(question, sequence), socket, take)
    }

    /// The inode and the address of each listening TCP socket: the kernel walks only those.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn tcp_listeners(&mut self) -> io::Result<Vec<(u64, SocketAddr)>> {
        let mut found = Vec::new();
        for ipv6 in [false, true] {
            let question = Question {
                ipv6,
                states: State::Listen.bit(),
                ..Question::default()
            };
            self.dump(
                |sequence| encode(&question, sequence),
                named,
                |listener| {
                    found.push(*listener);
                    ControlFlow::Continue(())
                },
            )?;
        }
        Ok(found)
    }

    /// Passes each listening unix socket to `take`, until `take` breaks.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn each_unix_listener(
        &mut self,
        take: impl FnMut(&UnixListener) -> ControlFlow<()>,
    ) -> io::Result<()> {
        self.dump(unix::encode, unix::listener, take)
    }

    fn dump<T>(
        &mut self,
        question: impl FnOnce(u32) -> Vec<u8>,
        read: fn(&[u8]) -> Option<T>,
        mut take: impl FnMut(&T) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => open()?,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = question(self.sequence);
        let kernel = SocketAddrNetlink::new(0, 0);
        retry(|| sendto(&socket, &bytes, SendFlags::empty(), &kernel))?;
        loop {
            let (count, _) = retry(|| recv(&socket, &mut *self.buffer, RecvFlags::empty()))?;
            let mut received = &self.buffer[..count];
            if received.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            while let Some(message) = next(&mut received, read)? {
                match message {
                    Message::Socket(found) if take(&found).is_break() => return Ok(()),
                    Message::Done => {
                        self.socket = Some(socket);
                        return Ok(());
                    }
                    Message::Socket(_) | Message::Other => {}
                }
            }
        }
    }
}

fn open() -> io::Result<OwnedFd> {
    let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::DGRAM, flags, Some(SOCK_DIAG))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(TIMEOUT))?;
    Ok(socket)
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> io::Result<T> {
    Ok(rustix::io::retry_on_intr(&mut call)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn all(diag: &mut SockDiag, question: &Question) -> Vec<Socket> {
        let mut sockets = Vec::new();
        diag.each(question, |socket| {
            sockets.push(*socket);
            ControlFlow::Continue(())
        })
        .unwrap();
        sockets
    }

    fn listener(address: &str) -> Option<(TcpListener, SocketAddr)> {
        let listener = TcpListener::bind(address);
        let Ok(listener) = listener else {
            println!("not tried: {address} cannot be bound here");
            return None;
        };
        let address = listener.local_addr().unwrap();
        Some((listener, address))
    }

    #[test]
    fn sockets_of_both_families_are_found_from_both_ends() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((listener, address)) = listener(address) else {
                continue;
            };
            let clients: Vec<TcpStream> = (0..100)
                .map(|_| TcpStream::connect(address).unwrap())
                .collect();
            let mut diag = SockDiag::open().unwrap();
            let server_side = Question {
                ipv6: address.is_ipv6(),
                states: State::Established.bit(),
                local_port: address.port(),
                ..Question::default()
            };
            assert_eq!(all(&mut diag, &server_side).len(), clients.len());
            let client_side = Question {
                local_port: 0,
                remote_port: address.port(),
                info: true,
                memory: true,
                ..server_side
            };
            let sockets = all(&mut diag, &client_side);
            assert_eq!(sockets.len(), clients.len());
            for socket in sockets {
                assert!(socket.info.unwrap().rtt_us > 0, "{socket:?}");
                assert!(socket.info.unwrap().window_segments > 0, "{socket:?}");
                assert!(socket.buffer_bytes.is_some());
            }
            // No connection was accepted, so all of them wait.
            let listening = Question {
                states: State::Listen.bit(),
                ..server_side
            };
            let sockets = all(&mut diag, &listening);
            assert_eq!(sockets.len(), 1);
            assert_eq!(sockets[0].receive_queue as usize, clients.len());
            assert!(sockets[0].send_queue >= sockets[0].receive_queue);
            drop(listener);
        }
    }

    #[test]
    fn listeners_are_those_of_proc() {
        let listeners = ["127.0.0.1:0", "[::1]:0"].map(listener);
        let found = SockDiag::new().tcp_listeners().unwrap();
        let tables = [procfs::net::tcp(), procfs::net::tcp6()];
        let entries: Vec<_> = tables.into_iter().flatten().flatten().collect();
        for (_listener, address) in listeners.into_iter().flatten() {
            let entry = entries.iter().find(|entry| entry.local_address == address);
            assert!(
                found.contains(&(entry.unwrap().inode, address)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn enough_is_enough_and_the_next_question_has_its_own_answer() {
        let (_listener, address) = listener("127.0.0.1:0").unwrap();
        let _clients: Vec<TcpStream> = (0..128)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        let mut diag = SockDiag::open().unwrap();
        let question = Question {
            states: State::Established.bit(),
            remote_port: address.port(),
            info: true,
            ..Question::default()
        };
        let mut seen = 0;
        diag.each(&question, |_| {
            seen += 1;
            if seen == 3 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .unwrap();
        assert_eq!(seen, 3);
        assert_eq!(all(&mut diag, &question).len(), 128);
    }
}
