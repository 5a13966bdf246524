//! A connection driven in any order of operations: it sends what a session answers to its input, and no buffer grows
//! without bound.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::io::Errno;
use throng::protocol::{OUTPUT_LIMIT, PROTOCOLS};
use throng::serve::Server;
use throng::serve::buffer_pool::BufferPool;
use throng::serve::conn::{Conn, Interest, WorkerBuffers};
use throng::serve::listen::{Client, Listener, Options};
use throng::serve::server_stats::{Retention, ServerStats};
use throng::serve::tuning::Tuning;
use throng::serve::worker::Worker;
use throng::sys::signal::Stop;

use super::bytes::Choices;
use super::halves::{Answered, MOST_REPLY, answer_all, offer};

/// Rounds after which an ending connection must have ended.
const MOST_ROUNDS: usize = 10_000;

/// Sizes of requests and replies; the last one is larger than the limit of the output.
const SIZES: [usize; 4] = [20, 1, 1000, OUTPUT_LIMIT + 1];

/// A server of each protocol and size.
fn server(protocol: usize, size: usize) -> &'static Server {
    static SERVERS: OnceLock<Vec<Server>> = OnceLock::new();
    let servers = SERVERS.get_or_init(|| {
        let bound = Listener::bind(&Options {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into(),
            backlog: 1,
            reuse_port: false,
            batch: 1024,
            nodelay: false,
        });
        let listener: &Listener = Box::leak(Box::new(bound.expect("loopback is there")));
        let stats: &ServerStats = Box::leak(Box::new(
            ServerStats::open(None, 1, Retention::Totals).expect("there is memory"),
        ));
        let stop = Stop::install().expect("signals can be handled");
        let of = |protocol, size| Server {
            listener,
            listeners: std::slice::from_ref(listener),
            stop,
            protocol,
            offer: offer(size),
            stats,
            worker: Worker::ANY,
            workers: 1,
            tuning: Tuning::default(),
            drain: Duration::ZERO,
            idle_timeout: None,
            request_timeout: None,
        };
        let protocols = PROTOCOLS.iter();
        protocols
            .flat_map(|protocol| SIZES.map(|size| of(*protocol, size)))
            .collect()
    });
    &servers[protocol * SIZES.len() + size]
}

/// The operation that drains a connection, and the one that breaks it.
const DRAIN: u8 = 255;
const BREAK: u8 = 127;

/// The protocol, the client's bytes, and the expected answers.
struct Case<'a> {
    server: &'static Server,
    operations: &'a [u8],
    wire: &'a [u8],
    expected: Answered,
}

impl<'a> Case<'a> {
    fn choose(data: &'a [u8]) -> Self {
        let mut choices = Choices::new(data);
        let protocol = choices.below(PROTOCOLS.len());
        let size = choices.below(SIZES.len());
        let count = usize::from(choices.byte());
        let operations = choices.take(count);
        let mut wire = choices.rest();
        if SIZES[size] > OUTPUT_LIMIT {
            wire = &wire[..wire.len().min(100)]; // a few replies of that size are enough
        }
        let server = server(protocol, size);
        let expected = answer_all(&mut *server.session(), std::iter::once(wire), 0);
        Self {
            server,
            operations,
            wire,
            expected,
        }
    }

    fn open<S: std::os::fd::AsFd>(&self, socket: S) -> Conn<S> {
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let client = Client::admit(socket, peer, self.server.stats).expect("anybody may come");
        Conn::open(client, self.server)
    }
}

/// How many bytes an operation moves.
fn amount(operation: u8) -> usize {
    match operation >> 3 {
        31 => usize::MAX,
        30 => 5000,
        29 => 300,
        few => usize::from(few) + 1,
    }
}

/// A connection whose answers are lent to the kernel, or taken piece by piece, without a socket.
struct Lending<'a, S: std::os::fd::AsFd> {
    conn: Conn<S>,
    /// The client's bytes that were not sent yet.
    unsaid: &'a [u8],
    /// Whether answers are lent; otherwise they are taken.
    lends: bool,
    lent: Option<(Vec<u8>, usize)>,
    buffer_pool: BufferPool,
    /// The bytes sent.
    left: Vec<u8>,
    over: bool,
}

impl<S: std::os::fd::AsFd> Lending<'_, S> {
    fn feed(&mut self, count: usize) {
        if self.conn.is_full() {
            return;
        }
        let (piece, unsaid) = self.unsaid.split_at(count.min(self.unsaid.len()));
        self.unsaid = unsaid;
        if !piece.is_empty() {
            let mut room = self.buffer_pool.take().unwrap_or_default();
            self.conn.take_buffer(&mut room);
            self.conn.feed(piece);
        }
        let owed = self.conn.pending().len() + self.lent.as_ref().map_or(0, |(lent, _)| lent.len());
        assert!(
            owed < 2 * (OUTPUT_LIMIT + MOST_REPLY),
            "{owed} bytes are owed"
        );
    }

    fn next_interest(&mut self) {
        match self.conn.next_interest() {
            Interest::Close => self.over = true,
            Interest::Write => assert!(
                self.lent.is_some() || !self.conn.pending().is_empty(),
                "there is nothing to write"
            ),
            Interest::Read => assert!(self.conn.pending().is_empty(), "something is kept"),
            Interest::MoreRead => panic!("it has not read itself"),
        }
    }

    /// Sends at most `count` bytes.
    fn leave(&mut self, count: usize) {
        if !self.lends {
            let pending = self.conn.pending();
            let count = count.min(pending.len());
            self.left.extend_from_slice(&pending[..count]);
            if count > 0 {
                self.conn.advance(count);
            }
            return;
        }
        if let Some((lent, sent)) = &mut self.lent {
            let count = count.min(lent.len() - *sent);
            self.left.extend_from_slice(&lent[*sent..*sent + count]);
            *sent += count;
            assert_eq!(self.conn.sent_of_lent(count), *sent);
        } else {
            self.lent = self.conn.lend().map(|lent| (lent, 0));
        }
    }

    fn reclaim(&mut self) {
        let Some((lent, sent)) = self.lent.take() else {
            return;
        };
        let all = sent == lent.len();
        let emptied = self.conn.reclaim(lent, 0);
        assert_eq!(
            emptied.is_some(),
            all,
            "a buffer comes back when it is empty"
        );
        if let Some(emptied) = emptied {
            self.buffer_pool.keep(emptied);
        }
        self.conn.return_buffer(&mut self.buffer_pool);
    }
}

/// [`Conn`] as used by models that submit whole operations to the kernel.
pub fn lending(data: &[u8]) {
    static SOCKET: OnceLock<UnixStream> = OnceLock::new();
    let socket = SOCKET.get_or_init(|| UnixStream::pair().expect("there are sockets").0);
    let case = Case::choose(data);
    let mut on = Lending {
        conn: case.open(socket),
        unsaid: case.wire,
        lends: data.len().is_multiple_of(2),
        lent: None,
        buffer_pool: BufferPool::default(),
        left: Vec::new(),
        over: false,
    };
    for &operation in case.operations {
        match operation & 7 {
            0..=2 => on.feed(amount(operation)),
            3 | 4 => on.leave(amount(operation)),
            5 => on.reclaim(),
            6 => on.next_interest(),
            _ if operation == DRAIN => on.conn.drain(),
            _ if operation == BREAK => on.conn.broken(Errno::CONNRESET),
            _ => assert!(on.lent.is_none() || !on.conn.is_idle()),
        }
        let expected = &case.expected.answers;
        assert!(expected.starts_with(&on.left), "something else leaves");
        if on.over || operation == BREAK {
            break;
        }
    }
    // Drives it to its end. Unless it was broken, everything is sent.
    let mut rounds = 0;
    while !on.over {
        on.feed(usize::MAX);
        on.leave(usize::MAX);
        on.leave(usize::MAX);
        on.reclaim();
        on.next_interest();
        if on.unsaid.is_empty() && on.lent.is_none() && on.conn.pending().is_empty() {
            on.conn.finish();
        }
        rounds += 1;
        assert!(rounds < MOST_ROUNDS, "it never ends");
    }
    let all = on.left == case.expected.answers;
    assert!(all || case.operations.contains(&BREAK), "not all has left");
}

/// [`Conn`] as used by models that wait until a socket is ready.
pub fn turns(data: &[u8]) {
    thread_local! {
        static SCRATCH: RefCell<WorkerBuffers> = RefCell::new(WorkerBuffers::for_one());
    }
    SCRATCH.with(|buffers| take_turns(&mut buffers.borrow_mut(), &Case::choose(data)));
}

fn take_turns(buffers: &mut WorkerBuffers, case: &Case<'_>) {
    let (mut peer, socket) = UnixStream::pair().expect("there are sockets");
    for socket in [&peer, &socket] {
        socket.set_nonblocking(true).expect("it is a socket");
    }
    let mut conn = Some(case.open(socket));
    let mut unsaid = case.wire;
    let mut left = Vec::new();
    let mut room = vec![0; 100_000];
    let mut operations = case.operations.iter();
    let mut over = false;
    for round in 0.. {
        assert!(round < MOST_ROUNDS, "it never ends");
        // Once there are no more choices, each round does all operations in turn.
        let operation = operations.next().copied();
        let done = |kind: u8| operation.is_none_or(|operation| operation & 3 == kind);
        let count = operation.map_or(usize::MAX, amount);
        if done(0) && !unsaid.is_empty() {
            match peer.write(&unsaid[..count.min(unsaid.len())]) {
                Ok(count) => unsaid = &unsaid[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => unsaid = &[], // it has closed
            }
        }
        if done(1)
            && let Some(open) = &mut conn
            && open.on_ready(buffers, false) == Interest::Close
        {
            conn = None;
        }
        if done(2) {
            let count = count.min(room.len());
            match peer.read(&mut room[..count]) {
                Ok(0) => {
                    over = true;
                    let _ = peer.shutdown(Shutdown::Write);
                }
                Ok(count) => left.extend_from_slice(&room[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if operation.is_none() && unsaid.is_empty() {
                        let _ = peer.shutdown(Shutdown::Write);
                    }
                }
                Err(_) => over = true, // it closed with something unread
            }
        }
        if operation == Some(DRAIN)
            && let Some(open) = &mut conn
        {
            open.drain();
        }
        assert!(
            case.expected.answers.starts_with(&left),
            "something else comes"
        );
        if over && conn.is_none() {
            break;
        }
    }
    let all = left.len() == case.expected.answers.len();
    assert!(all || case.operations.contains(&DRAIN), "not all came");
}
