//! The accept queue, and clients rejected because it was full.
//!
//! The listen(2) backlog is capped at somaxconn; the listening socket shows the result. When the queue is full, the
//! kernel drops SYNs or the last part of the handshake, and clients retry after 1 s and more. The kernel's counters
//! show how often. Most of them cover the whole network namespace, but a listening socket has a counter of its own for
//! all handshakes that it dropped, so other servers' overflows are not attributed to this one. Growth is measured from
//! before the first client until after the last.
//!
//! A unix socket has such a queue too. While the queue is full, the socket refuses clients (EAGAIN), and the kernel
//! counts nothing.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::network::counters::{Counters, KernelCounter, Values, differences};
use crate::network::sock_diag::{Question, SockDiag, State};
use throng_record::{Purpose, metrics};
use throng_spec::Endpoint;
use throng_spec::registry::{Info, Unsupported};

const OVERFLOWS: &str = "listen_overflows";
const DROPS: &str = "listen_drops";

/// Counters that grow when clients are turned away.
const KERNEL_COUNTERS: &[KernelCounter] = &[
    KernelCounter("TcpExt", "ListenOverflows", OVERFLOWS),
    KernelCounter("TcpExt", "ListenDrops", DROPS),
    KernelCounter("TcpExt", "TCPReqQFullDrop", "syn_queue_drops"),
    KernelCounter("TcpExt", "TCPReqQFullDoCookies", "syn_queue_cookies"),
    KernelCounter("TcpExt", "TCPSynRetrans", "syn_retransmits"),
    KernelCounter("TcpExt", "TCPAbortOnOverflow", "overflow_aborts"),
];

/// The kind of probe `accept-queue`.
pub(super) const ACCEPT_QUEUE: ProbeKind = ProbeKind {
    info: Info {
        name: "accept-queue",
        summary: "connections waiting in the accept queue, and rejected ones",
    },
    supported: || SockDiag::open().map(drop),
    metrics: metrics::accept_queue::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(AcceptQueueProbe::default()),
};

#[derive(Default)]
struct AcceptQueueProbe {
    sources: Option<Sources>,
    pace: Pace,
    /// The counters before the clients connected, and after.
    grown: Option<(Values, Values)>,
    /// Handshakes that the listening sockets had dropped before the clients connected.
    dropped_before: Option<u64>,
    /// The last sample.
    queue: Option<Queue>,
    samples: u64,
    /// Waiting connections: the sum over all samples, and the most in one sample.
    waiting: u64,
    most: u64,
}

struct Sources {
    diag: SockDiag,
    /// Only for TCP.
    counters: Option<Counters>,
}

impl Sources {
    fn open(server: &Endpoint) -> Result<Self, Unsupported> {
        Ok(match server {
            Endpoint::Tcp(_) => Self {
                diag: SockDiag::open()?,
                counters: Some(Counters::open()?),
            },
            Endpoint::Unix(_) => Self {
                diag: SockDiag::open_unix()?,
                counters: None,
            },
        })
    }

    fn count(&mut self) -> std::io::Result<Option<Values>> {
        let counters = self.counters.as_mut();
        counters
            .map(|counters| counters.read(KERNEL_COUNTERS))
            .transpose()
    }
}

/// The listening sockets of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Queue {
    listeners: u64,
    /// Sum over all of them.
    waiting: u64,
    /// The smallest of all.
    backlog: u32,
    /// Handshakes dropped by all of them; `None` if the kernel does not report it.
    dropped: Option<u64>,
}

impl Queue {
    /// Adds one more listening socket.
    fn with(known: Option<Self>, waiting: u32, backlog: u32, dropped: Option<u32>) -> Self {
        let known = known.unwrap_or(Self {
            backlog: u32::MAX,
            dropped: Some(0),
            ..Self::default()
        });
        let sum = |(all, one)| all + u64::from(one);
        Self {
            listeners: known.listeners + 1,
            waiting: known.waiting + u64::from(waiting),
            backlog: known.backlog.min(backlog),
            dropped: known.dropped.zip(dropped).map(sum),
        }
    }
}

fn read_queue(diag: &mut SockDiag, server: &Endpoint) -> std::io::Result<Option<Queue>> {
    let mut queue: Option<Queue> = None;
    let written = match server {
        Endpoint::Tcp(server) => server,
        Endpoint::Unix(path) => {
            diag.each_unix_listener(|socket| {
                if socket.is_at(path) {
                    queue = Some(Queue::with(queue, socket.waiting, socket.backlog, None));
                }
                ControlFlow::Continue(())
            })?;
            return Ok(queue);
        }
    };
    // A server on [::] may accept IPv4 clients too; a server on an IPv4 address has a socket of that family.
    let question = Question {
        ipv6: written.is_ipv6(),
        states: State::Listen.bit(),
        local_port: written.port(),
        memory: true,
        ..Question::default()
    };
    diag.each(&question, |socket| {
        let (waiting, backlog) = (socket.receive_queue, socket.send_queue);
        queue = Some(Queue::with(queue, waiting, backlog, socket.dropped));
        ControlFlow::Continue(())
    })?;
    Ok(queue)
}

impl AcceptQueueProbe {
    fn begin(&mut self, server: &Endpoint) -> Result<(), Unsupported> {
        let mut sources = Sources::open(server)?;
        let unsupported = |error: std::io::Error| Unsupported {
            reason: format!("the listening socket cannot be looked at: {error}"),
            remedy: "see whether `ss -ltn`, or `ss -lx`, shows it".to_owned(),
        };
        self.queue = read_queue(&mut sources.diag, server).map_err(unsupported)?;
        if self.queue.is_none() {
            return Err(unsupported(std::io::ErrorKind::NotFound.into()));
        }
        self.dropped_before = self.queue.and_then(|queue| queue.dropped);
        let before = sources.count().map_err(unsupported)?;
        self.grown = before.map(|before| (before.clone(), before));
        self.sources = Some(sources);
        Ok(())
    }

    fn sample_queue(
        &mut self,
        moment: Moment,
        server: &Endpoint,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let Some(sources) = &mut self.sources else {
            return Ok(());
        };
        if moment == Moment::After
            && let Some((_, after)) = &mut self.grown
            && let Some(counted) = sources.count()?
        {
            *after = counted;
        }
        if moment != Moment::After && !self.pace.is_due(at) {
            return Ok(());
        }
        let seen = self
            .pace
            .sample(at, || read_queue(&mut sources.diag, server));
        // A server may close its listening socket when it accepts no more clients.
        let Some(queue) = seen? else {
            return Ok(());
        };
        self.samples += 1;
        self.waiting += queue.waiting;
        self.most = self.most.max(queue.waiting);
        self.queue = Some(queue);
        out.push(Sample {
            metric: "accept_queue",
            value: queue.waiting as f64,
        });
        Ok(())
    }
}

impl Probe for AcceptQueueProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        self.begin(&target.server)
    }

    fn sample(
        &mut self,
        moment: Moment,
        target: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        self.sample_queue(moment, &target.server, at, out)
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let Some(queue) = self.queue {
            out("accept_backlog", f64::from(queue.backlog));
            out("listeners", queue.listeners as f64);
        }
        if self.samples > 0 {
            out("accept_queue_max", self.most as f64);
            out(
                "accept_queue_mean",
                self.waiting as f64 / self.samples as f64,
            );
        }
        if let Some((before, after)) = &self.grown {
            let dropped = self.queue.and_then(|queue| queue.dropped);
            let own = dropped
                .zip(self.dropped_before)
                .map(|(new, old)| new.saturating_sub(old) as f64);
            let mut limited = |metric, count: f64| match (metric, own) {
                (DROPS, Some(own)) => out(metric, own),
                (OVERFLOWS, Some(own)) => out(metric, count.min(own)),
                _ => out(metric, count),
            };
            differences(KERNEL_COUNTERS, before, after, &mut limited);
        }
    }
}

/// The accept queue of a server on this machine, observed before and after a load.
pub struct QueueWatch {
    probe: AcceptQueueProbe,
    server: Endpoint,
}

impl QueueWatch {
    /// Starts counting; `None` if no server listens there on this machine, or the kernel does not show it.
    pub fn begin(server: &Endpoint) -> Option<Self> {
        let is_here = server
            .tcp()
            .is_none_or(|address| address.ip().is_loopback());
        let mut probe = AcceptQueueProbe::default();
        (is_here && probe.begin(server).is_ok()).then(|| Self {
            probe,
            server: server.clone(),
        })
    }

    /// The metrics of the probe `accept-queue`, as far as they can be read.
    pub fn end(mut self) -> BTreeMap<String, f64> {
        let mut metrics = BTreeMap::new();
        let (now, mut samples) = (Instant::now(), Vec::new());
        let looked = self
            .probe
            .sample_queue(Moment::After, &self.server, now, &mut samples);
        if looked.is_ok() {
            self.probe.figures(&mut |name, value| {
                metrics.insert(name.to_owned(), value);
            });
        }
        metrics
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    use socket2::{Domain, Socket, Type};

    use super::*;
    use crate::probes::becomes_true;

    #[test]
    fn a_queue_is_seen_with_its_true_length_and_its_waiting_clients() {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        listener.bind(&any.into()).unwrap();
        listener.listen(i32::MAX).unwrap();
        let server = listener.local_addr().unwrap().as_socket().unwrap();
        let _clients: Vec<TcpStream> = (0..3)
            .map(|_| TcpStream::connect(server).unwrap())
            .collect();
        let (mut diag, server) = (SockDiag::open().unwrap(), &Endpoint::Tcp(server));
        let queue = read_queue(&mut diag, server).unwrap().unwrap();
        let somaxconn = crate::host::sysctl("net/core/somaxconn").unwrap();
        assert_eq!(queue.backlog.to_string(), somaxconn);
        assert_eq!((queue.listeners, queue.waiting), (1, 3));
        assert_eq!(queue.dropped, Some(0));
        // The queue has 3 clients already, so the next one is dropped.
        listener.listen(1).unwrap();
        let late = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        late.set_nonblocking(true).unwrap();
        late.connect(&listener.local_addr().unwrap()).unwrap_err();
        let queue = read_queue(&mut diag, server).unwrap().unwrap();
        assert_eq!(queue.backlog, 1);
        assert!(queue.dropped > Some(0), "{queue:?}");
        drop(listener);
        assert!(becomes_true(|| read_queue(&mut diag, server)
            .unwrap()
            .is_none()));
    }

    #[test]
    fn that_of_a_unix_socket_is_seen_too() {
        let Ok(mut diag) = SockDiag::open_unix() else {
            println!("not tried: this kernel does not list unix sockets");
            return;
        };
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let abstract_name = format!("@throng-test-queue-{}", std::process::id());
        let path = path.to_str().unwrap();
        for written in [path, &abstract_name] {
            let server = Endpoint::Unix(written.parse().unwrap());
            if written == path {
                let _clients: Vec<UnixStream> =
                    (0..3).map(|_| UnixStream::connect(path).unwrap()).collect();
                let queue = read_queue(&mut diag, &server).unwrap().unwrap();
                assert_eq!((queue.listeners, queue.waiting), (1, 3));
                assert!(queue.backlog >= 3, "{queue:?}");
            } else {
                assert_eq!(read_queue(&mut diag, &server).unwrap(), None);
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
                let Endpoint::Unix(name) = &server else {
                    panic!("it is a unix socket");
                };
                rustix::net::bind(&socket, &name.address().unwrap()).unwrap();
                socket.listen(7).unwrap();
                let queue = read_queue(&mut diag, &server).unwrap().unwrap();
                assert_eq!((queue.listeners, queue.waiting, queue.backlog), (1, 0, 7));
            }
        }
        drop(listener);
    }
}
