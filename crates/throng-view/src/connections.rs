//! The open connections, bounded in number and in unread response bytes. Beyond a bound, the connection that has kept
//! us waiting longest is closed, so that neither idle connections nor slow readers lock out others.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

/// Maximum concurrent connections.
pub(super) const MOST_CONNECTIONS: usize = 512;
/// Maximum total bytes of unread responses.
pub(super) const MOST_UNREAD: u64 = 128 << 20;
/// Timeout of a connection that neither sends a request nor reads its response.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between checks for these timeouts.
pub(super) const CHECK_EVERY: Duration = Duration::from_secs(1);

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    most_unread: u64,
    /// Connections by ID, in order of acceptance.
    all: Mutex<BTreeMap<u64, Connection>>,
    began: Instant,
}

#[derive(Debug)]
struct Connection {
    peer: Arc<Peer>,
    task: AbortHandle,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Peer {
    began: Instant,
    /// Requests in progress.
    working: AtomicU64,
    /// Unread bytes of responses.
    unread: AtomicU64,
    /// Since when it has kept us waiting, in milliseconds since the start: since its last response began, or since it
    /// was accepted.
    waiting_since: AtomicU64,
    /// When bytes were last transferred, in milliseconds since the start.
    moved: AtomicU64,
}

impl Connections {
    pub(super) fn new(most: usize, most_unread: u64) -> Self {
        Self {
            most,
            most_unread,
            all: Mutex::default(),
            began: Instant::now(),
        }
    }

    /// An accepted connection, before its task begins.
    pub(super) fn peer(&self) -> Arc<Peer> {
        let now = self.now();
        Arc::new(Peer {
            began: self.began,
            working: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            waiting_since: AtomicU64::new(now),
            moved: AtomicU64::new(now),
        })
    }

    /// Adds a connection with its task. If there are too many, closes the one that has kept us waiting longest.
    pub(super) fn enter(&self, peer: Arc<Peer>, task: AbortHandle) {
        let mut all = self.all();
        all.retain(|_, connection| !connection.task.is_finished());
        while all.len() >= self.most && send_away(&mut all, |_| true) {}
        let number = all.last_key_value().map_or(0, |(number, _)| number + 1);
        all.insert(number, Connection { peer, task });
    }

    /// Makes room for one connection, if there are too few file descriptors for all.
    pub(super) fn send_one_away(&self) {
        send_away(&mut self.all(), |_| true);
    }

    /// Closes connections that have kept us waiting too long and, if too much is unread, those with the oldest unread
    /// responses.
    pub(super) fn check(&self) {
        let timeout = u64::try_from(IDLE_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let now = self.now();
        let mut all = self.all();
        all.retain(|_, connection| {
            let peer = &connection.peer;
            let idle = now.saturating_sub(peer.moved.load(Ordering::Relaxed));
            let is_overdue = !peer.is_served() && idle > timeout;
            if is_overdue {
                connection.task.abort();
            }
            !is_overdue && !connection.task.is_finished()
        });
        self.make_room(&mut all);
    }

    /// Records that a response of `bytes` bytes begins.
    pub(super) fn answers(&self, peer: &Peer, bytes: u64) {
        peer.unread.fetch_add(bytes, Ordering::Relaxed);
        let now = self.now();
        peer.waiting_since.store(now, Ordering::Relaxed);
        peer.moved.store(now, Ordering::Relaxed);
        if bytes > 0 {
            self.make_room(&mut self.all());
        }
    }

    fn make_room(&self, all: &mut BTreeMap<u64, Connection>) {
        let unread = |connection: &Connection| connection.peer.unread.load(Ordering::Relaxed);
        while all.values().map(unread).sum::<u64>() > self.most_unread
            && send_away(all, |connection| unread(connection) > 0)
        {}
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the matching connection that has kept us waiting longest; connections that we are serving only if there are
/// no others. Returns whether a connection matched.
fn send_away(all: &mut BTreeMap<u64, Connection>, is_meant: impl Fn(&Connection) -> bool) -> bool {
    let longest = all
        .iter()
        .filter(|(_, connection)| is_meant(connection))
        .min_by_key(|(number, Connection { peer, .. })| {
            let since = peer.waiting_since.load(Ordering::Relaxed);
            (peer.is_served(), since, **number)
        });
    let Some(number) = longest.map(|(number, _)| *number) else {
        return false;
    };
    if let Some(connection) = all.remove(&number) {
        connection.task.abort();
    }
    true
}

impl Peer {
    /// Marks a request as in progress until the returned value is dropped.
    pub(super) fn work(self: &Arc<Self>) -> RequestGuard {
        self.working.fetch_add(1, Ordering::Relaxed);
        RequestGuard(Arc::clone(self))
    }

    /// Whether it is waiting for us.
    fn is_served(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    fn moves(&self, taken: usize) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
        let taken = taken as u64;
        let less = |unread: u64| Some(unread.saturating_sub(taken));
        // The update always succeeds.
        let _ = self
            .unread
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct RequestGuard(Arc<Peer>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A connection that records its activity.
#[derive(Debug)]
pub(super) struct TrackedStream<S> {
    pub(super) stream: S,
    pub(super) peer: Arc<Peer>,
}

impl<S: AsyncRead + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = to.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, to);
        if to.filled().len() > before {
            self.peer.moves(0);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S> TrackedStream<S> {
    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(taken)) = polled {
            self.peer.moves(taken);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds a connection.
    fn enter(connections: &Connections) -> (Arc<Peer>, tokio::task::JoinHandle<()>) {
        let task = tokio::spawn(std::future::pending());
        let peer = connections.peer();
        connections.enter(Arc::clone(&peer), task.abort_handle());
        (peer, task)
    }

    async fn is_gone(task: tokio::task::JoinHandle<()>) -> bool {
        tokio::task::yield_now().await;
        let is_gone = task.is_finished();
        task.abort();
        is_gone
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    }

    #[test]
    fn the_connection_that_keeps_us_waiting_longest_makes_room() {
        runtime().block_on(async {
            let connections = Connections::new(3, 1000);
            let (first, one) = enter(&connections);
            let (_, two) = enter(&connections);
            let (_, three) = enter(&connections);
            // The first connection is waiting for us, so the second one is closed.
            let work = first.work();
            let (_, four) = enter(&connections);
            drop(work);
            assert!(is_gone(two).await);
            for task in [one, three, four] {
                assert!(!is_gone(task).await);
            }
        });
    }

    #[test]
    fn a_slow_reader_holds_bounded_memory() {
        runtime().block_on(async {
            let connections = Connections::new(10, 1000);
            let (slow, one) = enter(&connections);
            let (quick, two) = enter(&connections);
            let (_, idle) = enter(&connections);
            connections.answers(&slow, 600);
            connections.answers(&quick, 300);
            quick.moves(300);
            connections.answers(&quick, 600);
            assert!(is_gone(one).await, "it holds 600 of 1200 for longest");
            connections.check();
            for task in [two, idle] {
                assert!(!is_gone(task).await);
            }
        });
    }
}
