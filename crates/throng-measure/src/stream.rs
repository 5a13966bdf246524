//! A connection to a server by whatever way it is reached, for those who wait in their calls.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};
use throng_record::spec::{Endpoint, UnixPath};

/// How long to wait before a server is tried again whose accept queue is full.
const REST: Duration = Duration::from_millis(1);

/// Connects. Of a unix socket it gives a stream of TCP all the same: what is asked of one here goes for any socket.
///
/// # Errors
/// As connect(2) gives them.
pub fn connect(to: &Endpoint, patience: Duration) -> io::Result<TcpStream> {
    match to {
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, patience)?;
            stream.set_nodelay(true)?;
            Ok(stream)
        }
        Endpoint::Unix(path) => {
            let stream = TcpStream::from(connect_unix(path, patience)?);
            stream.set_nonblocking(false)?;
            Ok(stream)
        }
    }
}

/// A unix socket does not wait by itself for room in the accept queue: it gives EAGAIN.
fn connect_unix(path: &UnixPath, patience: Duration) -> io::Result<OwnedFd> {
    let address = path.address()?;
    let deadline = Instant::now() + patience;
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
