//! TCP between clients and server: round-trip times, retransmissions, delayed acknowledgements, and kernel memory of
//! sockets.
//!
//! The kernel keeps the round-trip time as long as a socket lives, so sockets are sampled when the clients are
//! connected and idle, outside the measured time. Counters cover the whole network namespace and are read over the
//! measurement.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::network::counters::{
    Counters, KernelCounter, Values, connection_slab_pages, differences, named, socket_slab_pages,
    value,
};
use crate::network::proc_file::ProcFile;
use crate::network::sock_diag::{Question, SockDiag, Socket, State};
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_stats::median;

/// Counters over the measured phase.
const KERNEL_COUNTERS: &[KernelCounter] = &[
    KernelCounter("Tcp", "OutSegs", "segments_sent"),
    KernelCounter("Tcp", "RetransSegs", "segments_retransmitted"),
    KernelCounter("TcpExt", "TCPTimeouts", "retransmit_timeouts"),
    KernelCounter("TcpExt", "DelayedACKs", "delayed_acks"),
    KernelCounter("TcpExt", "TCPMemoryPressures", "memory_pressures"),
    KernelCounter("TcpExt", "PruneCalled", "receive_queue_prunes"),
    KernelCounter("TcpExt", "TCPBacklogDrop", "backlog_drops"),
];

/// The kind of probe `tcp`.
pub(super) const TCP: ProbeKind = ProbeKind {
    info: Info {
        name: "tcp",
        summary: "round-trip times, retransmissions, delayed acknowledgements, socket memory",
    },
    supported: || ProcFile::open("/proc/net/netstat").map(drop),
    metrics: metrics::tcp::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(TcpProbe::default()),
};

/// Minimum time between two readings of memory.
const INTERVAL: Duration = Duration::from_millis(500);
/// Number of sampled sockets.
const SAMPLE: usize = 1000;

struct TcpProbe {
    sources: Option<Sources>,
    pace: Pace,
    start: Option<Values>,
    end: Option<Values>,
    most: Memory,
    /// Pages of slabs before the clients connected, and with all of them connected.
    slab_before: Option<Slabs>,
    slab_after: Option<Slabs>,
    sockets: Vec<Socket>,
    missing: Vec<(&'static str, Unsupported)>,
}

struct Sources {
    counters: Counters,
    sockstat: ProcFile,
    diag: Option<SockDiag>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Memory {
    pages: i64,
    orphans: i64,
}

impl Default for TcpProbe {
    fn default() -> Self {
        Self {
            sources: None,
            pace: Pace::new(INTERVAL),
            start: None,
            end: None,
            most: Memory::default(),
            slab_before: None,
            slab_after: None,
            sockets: Vec::new(),
            missing: Vec::new(),
        }
    }
}

fn memory(sockstat: &mut ProcFile) -> std::io::Result<Memory> {
    let text = sockstat.read()?;
    let of = |name| value(named(text), "TCP", name).unwrap_or(0);
    Ok(Memory {
        pages: of("mem"),
        orphans: of("orphan"),
    })
}

/// Pages of slabs.
#[derive(Debug, Clone, Copy)]
struct Slabs {
    /// For sockets.
    sockets: u64,
    /// For everything that the kernel keeps per connection.
    connections: u64,
}

/// Metrics of slabs.
const SLAB_METRICS: [&str; 2] = ["socket_slab_bytes", "connection_slab_bytes"];

/// Pages of slabs now. On most systems, only root may read them.
fn slab_pages() -> Result<Slabs, Unsupported> {
    const PATH: &str = "/proc/slabinfo";
    let mut file = ProcFile::open(PATH)?;
    let slabs = |text| {
        Some(Slabs {
            sockets: socket_slab_pages(text)?,
            connections: connection_slab_pages(text)?,
        })
    };
    let found = file.read().ok().and_then(slabs);
    found.ok_or_else(|| Unsupported {
        reason: format!("{PATH} does not list the slabs of sockets"),
        remedy: "run a kernel that lists TCP sockets, open files and epoll sets there".to_owned(),
    })
}

fn page_bytes() -> f64 {
    rustix::param::page_size() as f64
}

/// Some of the clients' sockets: the first in the kernel's table, whose order is random.
fn sample_of_sockets(diag: &mut SockDiag, server: SocketAddr) -> std::io::Result<Vec<Socket>> {
    let question = Question {
        ipv6: server.is_ipv6(),
        states: State::Established.bit(),
        remote_port: server.port(),
        info: true,
        memory: true,
        ..Question::default()
    };
    let mut sockets = Vec::new();
    diag.each(&question, |socket| {
        sockets.push(*socket);
        if sockets.len() < SAMPLE {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(sockets)
}

impl Probe for TcpProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        target.tcp()?;
        self.sources = Some(Sources {
            counters: Counters::open()?,
            sockstat: ProcFile::open("/proc/net/sockstat")?,
            diag: SockDiag::open().ok(),
        });
        match slab_pages() {
            Ok(slabs) => self.slab_before = Some(slabs),
            Err(why) => {
                self.missing
                    .extend(SLAB_METRICS.map(|name| (name, why.clone())));
            }
        }
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        target: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let Some(sources) = &mut self.sources else {
            return Ok(());
        };
        match moment {
            Moment::Start => self.start = Some(sources.counters.read(KERNEL_COUNTERS)?),
            Moment::End => self.end = Some(sources.counters.read(KERNEL_COUNTERS)?),
            Moment::After => {
                self.slab_after = slab_pages().ok();
                if let (Some(diag), Some(server)) = (&mut sources.diag, target.server.tcp()) {
                    self.sockets = sample_of_sockets(diag, server)?;
                }
            }
            Moment::Connect | Moment::Before | Moment::Tick => {}
        }
        if moment != Moment::After && self.pace.is_due(at) {
            let now = self.pace.sample(at, || memory(&mut sources.sockstat))?;
            self.most.pages = self.most.pages.max(now.pages);
            self.most.orphans = self.most.orphans.max(now.orphans);
            out.push(Sample {
                metric: "socket_memory_bytes",
                value: now.pages as f64 * page_bytes(),
            });
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let (Some(start), Some(end)) = (&self.start, &self.end) {
            differences(KERNEL_COUNTERS, start, end, out);
            out("orphans_max", self.most.orphans as f64);
            out("socket_memory_bytes", self.most.pages as f64 * page_bytes());
        }
        if let (Some(before), Some(after)) = (self.slab_before, self.slab_after) {
            let [sockets, connections] = SLAB_METRICS;
            let mut added = |name, old, new: u64| {
                out(name, new.saturating_sub(old) as f64 * page_bytes());
            };
            added(sockets, before.sockets, after.sockets);
            added(connections, before.connections, after.connections);
        }
        of_sockets(&self.sockets, out);
    }

    fn missing(&self) -> &[(&'static str, Unsupported)] {
        &self.missing
    }
}

/// Summary values of the sampled sockets.
fn of_sockets(sockets: &[Socket], out: &mut dyn FnMut(&'static str, f64)) {
    if sockets.is_empty() {
        return;
    }
    out("sampled_sockets", sockets.len() as f64);
    let infos: Vec<_> = sockets.iter().filter_map(|socket| socket.info).collect();
    let mut middle = |name, values: Vec<f64>| {
        if let Some(value) = median(&values) {
            out(name, value);
        }
    };
    let each = |value: fn(&crate::network::sock_diag::Info) -> f64| {
        infos.iter().map(value).collect::<Vec<f64>>()
    };
    middle("rtt_us", each(|info| info.rtt_us.into()));
    middle(
        "rtt_variation_us",
        each(|info| info.rtt_variation_us.into()),
    );
    middle(
        "congestion_window_segments",
        each(|info| info.window_segments.into()),
    );
    let rates = infos
        .iter()
        .filter_map(|info| info.delivery_rate_bytes_per_s);
    middle(
        "delivery_rate_bytes_per_s",
        rates.map(|rate| rate as f64).collect(),
    );
    if !infos.is_empty() {
        let again: u64 = infos.iter().map(|info| u64::from(info.retransmits)).sum();
        out("socket_retransmits", again as f64);
    }
    let buffers: Vec<u64> = sockets
        .iter()
        .filter_map(|socket| socket.buffer_bytes)
        .collect();
    if !buffers.is_empty() {
        let sum: u64 = buffers.iter().sum();
        out("buffer_bytes_per_socket", sum as f64 / buffers.len() as f64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::network::sock_diag::Info;

    #[test]
    fn sockets_are_boiled_down_and_what_is_missing_stays_away() {
        let socket = |rtt_us, rate| Socket {
            info: Some(Info {
                rtt_us,
                rtt_variation_us: 5,
                window_segments: 10,
                retransmits: 2,
                delivery_rate_bytes_per_s: rate,
            }),
            buffer_bytes: rate,
            ..Socket::default()
        };
        let sockets = [
            socket(10, Some(100)),
            socket(30, None),
            socket(70, Some(300)),
        ];
        let mut figures = BTreeMap::new();
        of_sockets(&sockets, &mut |name, value| {
            figures.insert(name, value as u64);
        });
        assert_eq!(figures["sampled_sockets"], 3);
        assert_eq!(figures["rtt_us"], 30);
        assert_eq!(figures["socket_retransmits"], 6);
        assert_eq!(figures["delivery_rate_bytes_per_s"], 200);
        assert_eq!(figures["buffer_bytes_per_socket"], 200);
        let mut none = 0;
        of_sockets(&[], &mut |_, _| none += 1);
        assert_eq!(none, 0);
    }

    #[test]
    fn memory_of_this_machine_is_read() {
        let mut file = ProcFile::open("/proc/net/sockstat").unwrap();
        assert!(memory(&mut file).unwrap().pages >= 0);
    }
}
