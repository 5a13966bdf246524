//! Shared by the Rust servers: where they listen, and how they announce it.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use socket2::{Domain, Socket, Type};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Bytes per read; each connection keeps a buffer of this size for all its requests.
pub const BUFFER: usize = 16 * 1024;

/// Listens on the port given on the command line (0: the kernel chooses), without blocking.
pub fn listen() -> std::io::Result<TcpListener> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().and_then(|port| port.parse::<u16>().ok());
    let (Some(port), None) = (port, arguments.next()) else {
        eprintln!("usage: PROGRAM PORT");
        std::process::exit(2);
    };
    // A TcpListener of the standard library would let only 128 clients wait.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Prints the server's address.
pub fn announce(listener: &TcpListener) -> std::io::Result<()> {
    println!("listening on {}", listener.local_addr()?);
    std::io::stdout().flush()
}
