//! A blocking connection to a server, over TCP or a unix socket.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use throng_spec::{Endpoint, UnixPath};

/// Pause before retrying a server with a full accept queue.
const REST: Duration = Duration::from_millis(1);

/// Connects. For a unix socket, this also returns a `TcpStream`: only operations that any socket supports are used.
///
/// # Errors
/// Errors of connect(2).
pub fn connect(to: &Endpoint, timeout: Duration) -> io::Result<TcpStream> {
    match to {
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, timeout)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        Endpoint::Unix(path) => {
            let stream = TcpStream::from(connect_unix(path, timeout)?);
            stream.set_nonblocking(false)?;
            Ok(stream)
        }
    }
}

/// Connecting to a unix socket does not wait for room in the accept queue: it fails with EAGAIN.
fn connect_unix(path: &UnixPath, timeout: Duration) -> io::Result<OwnedFd> {
    let address = path.address()?;
    let deadline = Instant::now() + timeout;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    loop {
        match net::connect(&socket, &address) {
            Ok(()) => return Ok(socket),
            Err(Errno::AGAIN | Errno::INTR) if Instant::now() < deadline => {
                std::thread::sleep(REST);
            }
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}
