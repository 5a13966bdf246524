//! Small servers that do what a test wants. Each ends with its owner; a connection ends when its
//! client does, or after a limit.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};

/// Longest wait for a silent client.
const SILENCE: Duration = Duration::from_mins(3);
/// Default bytes of an echo.
pub(crate) const ECHO: usize = 1000;

/// A socket bound to a free port, which does not listen.
pub(crate) fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&any.into()).expect("a free port");
    let address = socket.local_addr().expect("it is bound");
    (socket, address.as_socket().expect("it is of IPv4"))
}

/// A listening socket that is not accepted from.
pub(crate) fn listening(backlog: i32) -> (Socket, SocketAddr) {
    let (socket, address) = bound();
    socket.listen(backlog).expect("it is bound");
    (socket, address)
}

/// A server that handles each connection on a thread of its own.
pub(crate) struct Hostile {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Hostile {
    /// `serve` has the connection's number, in the order of accepting.
    pub(crate) fn start<S>(serve: S) -> Self
    where
        S: Fn(u64, TcpStream) -> io::Result<()> + Send + Sync + 'static,
    {
        let serve = Arc::new(serve);
        Self::accept_with(move |number, stream| {
            let serve = Arc::clone(&serve);
            let thread = std::thread::Builder::new().stack_size(256 * 1024);
            let handled = thread.spawn(move || {
                // What goes wrong here is the client's leaving.
                let _ = serve(number, stream);
            });
            handled.expect("a thread can be started");
        })
    }

    /// Handles one connection after the other on one thread.
    pub(crate) fn one_by_one(serve: impl Fn(TcpStream) -> io::Result<()> + Send + 'static) -> Self {
        Self::accept_with(move |_, stream| {
            let _ = serve(stream);
        })
    }

    fn accept_with(mut take: impl FnMut(u64, TcpStream) + Send + 'static) -> Self {
        let (listener, address) = listening(4096);
        let listener = TcpListener::from(listener);
        let over = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&over);
        let accepting = std::thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().flatten()) {
                if reported.load(Relaxed) {
                    return;
                }
                stream
                    .set_read_timeout(Some(SILENCE))
                    .expect("it is no zero");
                stream
                    .set_write_timeout(Some(SILENCE))
                    .expect("it is no zero");
                stream.set_nodelay(true).expect("it is TCP");
                take(number, stream);
            }
        });
        Self {
            address,
            over,
            accepting: Some(accepting),
        }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        let woken = TcpStream::connect_timeout(&self.address, SILENCE);
        if let (Ok(_), Some(accepting)) = (woken, self.accepting.take()) {
            let _ = accepting.join();
        }
    }
}

/// Receives one echo request and answers it.
pub(crate) fn echo_once(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = [0; ECHO];
    stream.read_exact(&mut request)?;
    stream.write_all(&request)
}

/// Answers until the client has gone.
pub(crate) fn echo_on(mut stream: TcpStream) -> io::Result<()> {
    loop {
        echo_once(&mut stream)?;
    }
}

/// Reads until the client has gone, and sends nothing any more.
pub(crate) fn only_receive(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Sends bytes to every client, then nothing.
pub(crate) fn send(mut stream: TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(text)?;
    only_receive(stream)
}

/// Sends the same forever: so much as fast as it is read that nobody may keep it, then slowly, to leave other tests the
/// CPU.
pub(crate) fn keep_sending(mut stream: TcpStream, first: &[u8], again: &[u8]) -> io::Result<()> {
    const FAST_BYTES: usize = 32 << 20;
    stream.write_all(first)?;
    let again = again.repeat(1 + 16 * 1024 / again.len());
    for _ in 0..FAST_BYTES / again.len() {
        stream.write_all(&again)?;
    }
    loop {
        stream.write_all(&again)?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Closes so that the client gets a reset.
pub(crate) fn reset(stream: TcpStream) -> io::Result<()> {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
    drop(stream);
    Ok(())
}
