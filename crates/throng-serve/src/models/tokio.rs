//! One task per client on the tokio runtime: what people write if they do not want to think about I/O models.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use ::tokio::net::unix::pipe;
use ::tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use ::tokio::runtime::{Builder, Runtime};
use ::tokio::sync::{mpsc, watch};
use ::tokio::time::timeout;
use anyhow::Context as _;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use crate::close_reason::Refusal;
use crate::conn::{Conn, Interest, Wait};
use crate::listen::{Client, Mode};
use crate::{Card, Model, Server, WorkerLayout};
use throng_spec::registry::Info;

/// Bytes per read of a task, into its own buffer as is customary.
const INPUT_BYTES: usize = 16 * 1024;

/// The model `tokio`.
pub(super) const MODEL: Model = Model {
    info: Info {
        name: "tokio",
        summary: "a task per client on the tokio runtime, for comparison",
    },
    card: Card {
        idea: "Sequential code per client, as with threads, but suspended in user space while it \
               waits. The runtime asks one edge-triggered epoll which tasks can continue, and runs \
               them on a thread per CPU. It is here for comparison.",
        waits_in: "epoll_wait() in one of the runtime's threads",
        system_calls: "recv, send, and a share of epoll_wait; now and then a wake-up of another \
                       thread",
        processes: "1 process, 1 thread per CPU (--workers) and the main one",
        good_at: "plain code per client at the cost of an event loop; uses every CPU",
        breaks_when: "each task keeps a buffer, so idle clients cost memory; tasks move between threads",
        source: "docs.rs/tokio, \"tokio::net\" and \"tokio::task\"",
        limit: "",
        waits: false,
        page: page!("tokio"),
    },
    worker_layout: WorkerLayout::PerCpu,
    knobs: &[],
    supported: || Ok(()),
    run,
};

fn run(server: Server) -> anyhow::Result<()> {
    check_threads(server.workers).context("cannot start the threads of the runtime")?;
    let runtime = runtime(server.workers).context("cannot start the runtime")?;
    runtime.block_on(async {
        let listener = server.listener.as_fd().try_clone_to_owned()?;
        if server.listener.address().tcp().is_some() {
            accept(server, TcpListener::from_std(listener.into())?).await
        } else {
            accept(server, UnixListener::from_std(listener.into())?).await
        }
    })?;
    // This cancels tasks that did not end in time.
    runtime.shutdown_timeout(Duration::ZERO);
    Ok(())
}

/// Checks that this many threads can be started: the runtime panics if it cannot start one.
fn check_threads(threads: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock();
    std::thread::scope(|scope| {
        let start = |_| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
            thread.map(drop)
        };
        let started = (0..threads).try_for_each(start);
        drop(closed);
        started
    })
}

/// Creates the runtime. With one thread there is nothing to share, so the simpler scheduler is enough.
fn runtime(threads: usize) -> std::io::Result<Runtime> {
    match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build(),
    }
}

/// The runtime's types for one kind of listening socket, and its connections.
trait Accept {
    type Stream: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static;

    async fn accept(&self) -> io::Result<(Self::Stream, SocketAddr)>;

    /// Wraps a connection that other code accepted.
    fn adopt(socket: OwnedFd) -> io::Result<Self::Stream>;
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        Self::accept(self).await
    }

    fn adopt(socket: OwnedFd) -> io::Result<TcpStream> {
        TcpStream::from_std(socket.into())
    }
}

impl Accept for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let (socket, _) = Self::accept(self).await?;
        Ok((socket, (Ipv4Addr::UNSPECIFIED, 0).into()))
    }

    fn adopt(socket: OwnedFd) -> io::Result<UnixStream> {
        UnixStream::from_std(socket.into())
    }
}

async fn accept<L: Accept>(server: Server, listener: L) -> anyhow::Result<()> {
    let stop = pipe::Receiver::from_owned_fd(server.stop.fd().try_clone_to_owned()?)?;
    let (stopping, stopped) = watch::channel(false);
    // Every task holds a sender but sends nothing: the channel closes when the last task ends.
    let (task, mut last_task) = mpsc::channel::<()>(1);
    let start = |client: Client<L::Stream>| {
        let (task, stopped) = (task.clone(), stopped.clone());
        ::tokio::spawn(async move {
            serve(Conn::open(client, &server), &server, stopped).await;
            drop(task);
        });
    };
    loop {
        let accepted = ::tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.readable() => break,
        };
        if let Ok((socket, peer)) = accepted {
            if let Some(client) = Client::admit(socket, peer, server.stats) {
                start(client);
            }
            continue;
        }
        // Most likely there is no free descriptor: the listening path shared by all models rejects the client.
        for client in server.listener.arrivals(server.stats, Mode::NonBlocking) {
            let Client { socket, id } = client;
            match L::adopt(socket) {
                Ok(socket) => start(Client { socket, id }),
                Err(_) => server.stats.give_up(id, Refusal::Descriptors),
            }
        }
    }
    server.listener.close();
    let _ = stopping.send(true);
    drop(task);
    let _ = timeout(server.drain, last_task.recv()).await;
    Ok(())
}

async fn serve<S: AsyncRead + AsyncWrite + AsFd + Unpin>(
    mut conn: Conn<S>,
    server: &Server,
    mut stopped: watch::Receiver<bool>,
) {
    let mut input = vec![0; INPUT_BYTES];
    let stop = stopped.wait_for(|stopped| *stopped);
    ::tokio::pin!(stop);
    let mut stopping = false;
    let mut wait = Wait::of(server);
    loop {
        let (limit, reason) = wait.next(&conn);
        let (socket, answers) = conn.parts();
        let moved = if answers.is_empty() {
            ::tokio::select! {
                biased;
                read = within(limit, socket.read(&mut input)) => match read {
                    Ok(0) => {
                        conn.finish();
                        Ok(())
                    }
                    Ok(count) => {
                        conn.feed(&input[..count]);
                        Ok(())
                    }
                    Err(error) => Err(error),
                },
                _ = &mut stop, if !stopping => {
                    // What has arrived is still read and answered; then comes the end of the stream.
                    stopping = true;
                    let _ = shutdown(conn.as_fd(), Shutdown::Read);
                    conn.drain();
                    Ok(())
                }
            }
        } else {
            // Written piece by piece: a client that accepts some bytes, however slowly, is not idle, and each piece
            // counts as soon as it is sent.
            let written = within(server.idle_timeout, socket.write(answers)).await;
            written.map(|count| conn.advance(count))
        };
        match moved {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::TimedOut => return conn.times_out(reason),
            Err(error) => conn.broken(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
        if conn.next_interest() == Interest::Close {
            return;
        }
    }
}

/// Waits for a read or write to complete, within the limit if there is one.
async fn within<T>(
    limit: Option<Duration>,
    moving: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match limit {
        None => moving.await,
        Some(limit) => timeout(limit, moving)
            .await
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into())),
    }
}
