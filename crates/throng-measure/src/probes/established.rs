//! Connections by state, from the first client's SYN to the last one's FIN.
//!
//! The sockets on the server's port are listed (sock_diag) as often as that stays cheap, since the kernel walks all
//! connections. Between two lists, its count of established connections in the whole network namespace (`CurrEstab`)
//! is used. The value before the first client is subtracted, and the result is halved because both ends of each
//! connection are on this machine. It is capped at the number of clients, since other programs may have connections
//! too.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::network::counters::{named, paired, value};
use crate::network::proc_file::ProcFile;
use crate::network::sock_diag::{Question, SockDiag, State};
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};

/// The kind of probe `established`.
pub(super) const ESTABLISHED: ProbeKind = ProbeKind {
    info: Info {
        name: "established",
        summary: "connections of the server by state, over time",
    },
    supported: || ProcFile::open("/proc/net/snmp").map(drop),
    metrics: metrics::established::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(EstablishedProbe::default()),
};

/// Minimum time between two readings of the counters.
const INTERVAL: Duration = Duration::from_millis(200);
/// If lists of all sockets are further apart than this, the counters are read in between.
const GAP: Duration = Duration::from_secs(1);

struct EstablishedProbe {
    files: Option<Files>,
    diag: Option<SockDiag>,
    /// Intervals between readings of the counters, and of all sockets.
    glance: Pace,
    pace: Pace,
    most: States,
    end: Option<u64>,
}

impl Default for EstablishedProbe {
    fn default() -> Self {
        Self {
            files: None,
            diag: None,
            glance: Pace::new(INTERVAL),
            pace: Pace::new(INTERVAL),
            most: States::default(),
            end: None,
        }
    }
}

/// Counters of the namespace, and their values before the clients connected.
struct Files {
    snmp: ProcFile,
    sockstat: ProcFile,
    before: Counts,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    established: i64,
    time_wait: i64,
}

/// Connections by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct States {
    established: u64,
    syn_received: u64,
    close_wait: u64,
    closing: u64,
    time_wait: u64,
}

impl Files {
    fn open() -> Result<Self, Unsupported> {
        let mut files = Self {
            snmp: ProcFile::open("/proc/net/snmp")?,
            sockstat: ProcFile::open("/proc/net/sockstat")?,
            before: Counts::default(),
        };
        files.before = files.counts().map_err(|error| Unsupported {
            reason: format!("the kernel's counters of connections cannot be read: {error}"),
            remedy: "see what /proc/net/snmp says".to_owned(),
        })?;
        Ok(files)
    }

    fn counts(&mut self) -> std::io::Result<Counts> {
        let established = value(paired(self.snmp.read()?), "Tcp", "CurrEstab");
        let time_wait = value(named(self.sockstat.read()?), "TCP", "tw");
        match (established, time_wait) {
            (Some(established), Some(time_wait)) => Ok(Counts {
                established,
                time_wait,
            }),
            _ => Err(std::io::Error::other("there is no CurrEstab or no tw")),
        }
    }

    /// Established connections, by the counter, and connections in TIME_WAIT.
    fn read_counters(&mut self, clients: u32) -> std::io::Result<States> {
        let now = self.counts()?;
        let grown = |later: i64, before: i64| later.saturating_sub(before).max(0).cast_unsigned();
        Ok(States {
            established: grown(now.established, self.before.established)
                .div_ceil(2)
                .min(clients.into()),
            time_wait: grown(now.time_wait, self.before.time_wait),
            ..States::default()
        })
    }
}

/// All sockets on the server's port, by state.
fn read_states(diag: &mut SockDiag, server: SocketAddr) -> std::io::Result<States> {
    let asked = [
        State::Established,
        State::SynReceived,
        State::CloseWait,
        State::FinWait1,
        State::FinWait2,
        State::LastAck,
        State::Closing,
    ];
    let question = Question {
        ipv6: server.is_ipv6(),
        states: asked.iter().fold(0, |states, state| states | state.bit()),
        local_port: server.port(),
        ..Question::default()
    };
    let mut states = States::default();
    diag.each(&question, |socket| {
        let count = match asked.iter().find(|state| **state as u8 == socket.state) {
            Some(State::Established) => &mut states.established,
            Some(State::SynReceived) => &mut states.syn_received,
            Some(State::CloseWait) => &mut states.close_wait,
            _ => &mut states.closing,
        };
        *count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(states)
}

impl States {
    fn each(&self) -> [(&'static str, &'static str, u64); 5] {
        [
            ("established", "established_max", self.established),
            ("syn_received", "syn_received_max", self.syn_received),
            ("close_wait", "close_wait_max", self.close_wait),
            ("closing", "closing_max", self.closing),
            ("time_wait", "time_wait_max", self.time_wait),
        ]
    }

    fn or_more(self, other: Self) -> Self {
        Self {
            established: self.established.max(other.established),
            syn_received: self.syn_received.max(other.syn_received),
            close_wait: self.close_wait.max(other.close_wait),
            closing: self.closing.max(other.closing),
            time_wait: self.time_wait.max(other.time_wait),
        }
    }
}

impl Probe for EstablishedProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        target.tcp()?;
        self.files = Some(Files::open()?);
        // The counters are less precise, but sufficient.
        self.diag = SockDiag::open().ok();
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        target: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let (Some(files), Some(server)) = (&mut self.files, target.server.tcp()) else {
            return Ok(());
        };
        let patient = matches!(moment, Moment::Before | Moment::After);
        if !patient && moment != Moment::Start && !self.glance.is_due(at) {
            return Ok(());
        }
        let looks = patient || self.pace.is_due(at);
        if !looks && self.diag.is_some() && self.pace.pause() <= GAP {
            return Ok(());
        }
        let mut seen = self
            .glance
            .sample(at, || files.read_counters(target.clients))?;
        if let Some(diag) = self.diag.as_mut().filter(|_| looks) {
            let states = self.pace.sample(at, || read_states(diag, server))?;
            seen = States {
                time_wait: seen.time_wait,
                ..states
            };
        }
        self.most = self.most.or_more(seen);
        if moment == Moment::After {
            self.end = Some(seen.established);
        }
        let reported = if looks { 5 } else { 1 };
        for (metric, _, count) in seen.each().into_iter().take(reported) {
            out.push(Sample {
                metric,
                value: count as f64,
            });
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if self.files.is_none() {
            return;
        }
        for (_, metric, most) in self.most.each() {
            let by_socket = !matches!(metric, "established_max" | "time_wait_max");
            if self.diag.is_some() || !by_socket {
                out(metric, most as f64);
            }
        }
        if let Some(end) = self.end {
            out("established_end", end as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::probes::{Tree, becomes_true};

    #[test]
    fn connections_are_counted_by_what_became_of_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let mut diag = SockDiag::open().unwrap();
        assert_eq!(read_states(&mut diag, server).unwrap(), States::default());
        let clients: Vec<TcpStream> = (0..20)
            .map(|_| TcpStream::connect(server).unwrap())
            .collect();
        let mut accepted: Vec<TcpStream> = listener.incoming().take(20).flatten().collect();
        assert_eq!(read_states(&mut diag, server).unwrap().established, 20);
        drop(clients);
        assert!(becomes_true(|| {
            let seen = read_states(&mut diag, server).unwrap();
            (seen.established, seen.close_wait) == (0, 20)
        }));
        accepted.truncate(5);
        assert!(becomes_true(|| read_states(&mut diag, server)
            .unwrap()
            .close_wait
            == 5));
    }

    #[test]
    fn figures_are_the_most_and_the_last_that_were_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let target = Target {
            tree: Tree::of(std::process::id()),
            server: server.into(),
            clients: 8,
            files: std::path::PathBuf::new(),
            presence: crate::probes::ClientPresence::default(),
        };
        let mut probe = EstablishedProbe::default();
        probe.attach(&target).unwrap();
        let mut out = Vec::new();
        let mut clients: Vec<TcpStream> = (0..8)
            .map(|_| TcpStream::connect(server).unwrap())
            .collect();
        let mut sample = |moment| {
            let now = Instant::now();
            probe.sample(moment, &target, now, &mut out).unwrap();
        };
        sample(Moment::Before);
        clients.truncate(3);
        let mut diag = SockDiag::open().unwrap();
        assert!(becomes_true(|| read_states(&mut diag, server)
            .unwrap()
            .close_wait
            == 5));
        sample(Moment::After);
        let mut figures = std::collections::BTreeMap::new();
        probe.figures(&mut |name, value| {
            figures.insert(name, value as u64);
        });
        assert!(figures["established_max"] >= 8, "{figures:?}");
        assert_eq!(figures["established_end"], 3, "{figures:?}");
        assert_eq!(figures["close_wait_max"], 5, "{figures:?}");
        let series: Vec<f64> = out
            .iter()
            .filter(|sample| sample.metric == "established")
            .map(|sample| sample.value)
            .collect();
        assert_eq!(series, [8.0, 3.0]);
    }
}
