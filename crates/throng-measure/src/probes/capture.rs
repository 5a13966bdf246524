//! Packet capture: `tcpdump` captures the headers of a separate trial, and the file is reduced to statistics of its
//! flows (`throng flows` reads it too).
//!
//! Many clients send more packets than a file should hold. Truncating a capture would leave no complete flow. So flows
//! are sampled by their clients' ports, which are independent of what happens to the flows, and sampled flows are
//! captured completely. Trials with capture are also short.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;

use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::processes::ending::SignalTarget;
use crate::processes::process::{OutputCapture, Process};
use tcpflows::flow::Ending;
use tcpflows::row::write_csv;
use tcpflows::summary::Percentiles;
use tcpflows::{Report, Settings, analyse};
use throng_record::{Draft, Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::process::usable_cpus;

/// Time limit for tcpdump to start, and to end.
const LIMIT: Duration = Duration::from_secs(10);
/// tcpdump receives packets once a block of them is full, or a second after the first packet of the block.
const BLOCK: Duration = Duration::from_millis(1100);
/// Buffer for packets that tcpdump has not processed yet, in KiB.
const BUFFER_KIB: &str = "65536";
/// Enough for all headers before the payload, with every option.
const HEADER_BYTES: &str = "128";

/// The clock was set if it is off by more than this; less may be the moment between the readings of two clocks.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// Maximum number of captured clients: if there are more, only a half, a quarter and so on is captured.
const MOST_CAPTURED: u32 = 1000;

/// The kind of probe `capture`.
pub(super) const CAPTURE: ProbeKind = ProbeKind {
    info: Info {
        name: "capture",
        summary: "packets and flows as tcpdump captures them, in trials of their own",
    },
    supported,
    metrics: metrics::capture::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Captured,
    by_default: false,
    make: || Box::new(Capturing::default()),
};

fn supported() -> Result<(), Unsupported> {
    // Listing what it could capture needs the rights to capture.
    let mut command = Command::new("tcpdump");
    command.args(["-i", "lo", "-L"]);
    let mut asked =
        Process::start("tcpdump", command, &[], OutputCapture::Both).map_err(|_| missing())?;
    let finished = asked.finish(LIMIT, None);
    asked.wait_for_output();
    match finished {
        Ok(status) if status.success() => Ok(()),
        _ => Err(forbidden(&asked.all_output())),
    }
}

fn missing() -> Unsupported {
    Unsupported {
        reason: "there is no tcpdump".to_owned(),
        remedy: "apt-get install tcpdump".to_owned(),
    }
}

fn forbidden(output: &str) -> Unsupported {
    let why = output.trim().lines().last().unwrap_or("no reason given");
    Unsupported {
        reason: format!("tcpdump cannot capture: {why}"),
        remedy: "run as root, or setcap cap_net_raw+ep \"$(command -v tcpdump)\"".to_owned(),
    }
}

#[derive(Default)]
struct Capturing {
    one_in: u32,
    tcpdump: Option<Process>,
    clock: Option<Clock>,
    report: Option<Report>,
    dropped: Option<u64>,
}

impl Probe for Capturing {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        let server = target.tcp()?;
        self.one_in = one_of_how_many(target.clients);
        let file = capture_file(target);
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory).map_err(|error| Unsupported {
                reason: format!("cannot create {}: {error}", directory.display()),
                remedy: "choose another directory for the record".to_owned(),
            })?;
        }
        let started = Process::start(
            "tcpdump",
            command(server, target.clients, &file),
            &usable_cpus(),
            OutputCapture::Both,
        );
        let tcpdump = self.tcpdump.insert(started.map_err(|_| missing())?);
        let deadline = Instant::now() + LIMIT;
        self.clock = Some(Clock::now());
        while let Ok(line) = tcpdump.line(deadline) {
            if line.contains("listening on") {
                return Ok(());
            }
        }
        Err(forbidden(&tcpdump.output()))
    }

    fn sample(
        &mut self,
        _: Moment,
        _: &Target,
        _: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        Ok(())
    }

    fn conclude(&mut self, target: &Target) -> anyhow::Result<()> {
        let Some(mut tcpdump) = self.tcpdump.take() else {
            return Ok(());
        };
        std::thread::sleep(BLOCK);
        tcpdump.stop(LIMIT, SignalTarget::Leader);
        while let Ok(line) = tcpdump.line(Instant::now() + LIMIT) {
            self.dropped = dropped(&line).or(self.dropped);
        }
        if self.clock.as_ref().is_some_and(Clock::was_set) {
            anyhow::bail!(
                "the machine's clock was set while packets were captured, so the times between them are wrong"
            );
        }
        let path = capture_file(target);
        let name = || path.display().to_string();
        let file = File::open(&path).with_context(name)?;
        let settings = Settings {
            port: target.server.tcp().map(|server| server.port()),
            ..Settings::default()
        };
        let report = analyse(file, settings).with_context(name)?;
        write_flows(&report, &flows_file(target))?;
        self.report = Some(report);
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let Some(report) = &self.report else { return };
        let (contents, summary) = (&report.contents, &report.summary);
        out("captured_share", 1.0 / f64::from(self.one_in.max(1)));
        let ended = |ending: Ending| summary.endings.get(ending.name()).copied().unwrap_or(0);
        for (name, value) in [
            ("flows", summary.flows),
            ("complete_flows", summary.complete_flows),
            ("refused_flows", ended(Ending::Refused)),
            ("unanswered_flows", ended(Ending::Unanswered)),
            ("flows_reset_by_client", ended(Ending::ResetByClient)),
            ("flows_reset_by_server", ended(Ending::ResetByServer)),
            ("packets", summary.packets),
            ("wire_bytes", summary.wire_bytes),
            ("payload_bytes", summary.payload_bytes),
            (
                "retransmissions_by_client",
                summary.retransmissions_by_client,
            ),
            (
                "retransmissions_by_server",
                summary.retransmissions_by_server,
            ),
            ("syn_retransmissions", summary.syn_retransmissions),
            ("out_of_order", summary.out_of_order),
            ("resets_by_client", summary.resets_by_client),
            ("resets_by_server", summary.resets_by_server),
            ("capture_duplicates", contents.duplicates),
        ] {
            out(name, value as f64);
        }
        let p50 = |figure: &Option<Percentiles>| figure.map(|one| one.p50);
        let p99 = |figure: &Option<Percentiles>| figure.and_then(|one| one.p99);
        for (name, value) in [
            (
                "flow_throughput_bytes_per_s",
                p50(&summary.flow_throughput_bytes_per_s),
            ),
            ("flow_latency_p50_s", p50(&summary.flow_duration_s)),
            ("flow_latency_p99_s", p99(&summary.flow_duration_s)),
            ("handshake_p50_us", p50(&summary.handshake_us)),
            ("handshake_p99_us", p99(&summary.handshake_us)),
            ("packets_per_flow", p50(&summary.packets_per_flow)),
            (
                "capture_dropped",
                self.dropped.map(|packets| packets as f64),
            ),
        ] {
            if let Some(value) = value {
                out(name, value);
            }
        }
    }
}

/// The command that captures the headers of all packets from and to the server. Addresses of this machine, the only
/// ones that a server of ours can have, are reached over loopback. Otherwise every device is watched, and a packet
/// seen on two of them counts once.
fn command(server: SocketAddr, clients: u32, file: &Path) -> Command {
    let local = std::net::UdpSocket::bind((server.ip(), 0)).is_ok();
    let mut command = Command::new("tcpdump");
    command.args([
        "-i",
        if local { "lo" } else { "any" },
        "-n",
        "-s",
        HEADER_BYTES,
    ]);
    command.args(["-B", BUFFER_KIB]);
    if rustix::process::geteuid().is_root() {
        // Otherwise tcpdump drops privileges to a user that may not write there.
        command.args(["-Z", "root"]);
    }
    command.arg("-w").arg(file);
    command.arg(filter(server, clients));
    command
}

/// The clock that timestamps packets, and one that cannot be set.
struct Clock {
    wall: SystemTime,
    monotonic: Instant,
}

impl Clock {
    fn now() -> Self {
        Self {
            wall: SystemTime::now(),
            monotonic: Instant::now(),
        }
    }

    /// Whether the clock was set since then. NTP moves it by half a millisecond per second.
    fn was_set(&self) -> bool {
        let passed = self.monotonic.elapsed();
        let off = match self.wall.elapsed() {
            Ok(shown) => shown.abs_diff(passed),
            Err(back) => back.duration() + passed,
        };
        off > CLOCK_STEP + passed / 1000
    }
}

/// One connection in this many is captured; a power of two.
fn one_of_how_many(clients: u32) -> u32 {
    clients.div_ceil(MOST_CAPTURED).next_power_of_two()
}

/// The capture filter. It ignores the last bit of a client's port: the kernel assigns even ports first.
fn filter(server: SocketAddr, clients: u32) -> String {
    let port = server.port();
    let others = one_of_how_many(clients) - 1;
    if others == 0 {
        return format!("tcp port {port}");
    }
    // pcap-filter(7) has no `tcp[]` for IPv6; without extension headers, TCP begins at byte 40.
    let (source, destination) = match server {
        SocketAddr::V4(_) => ("tcp[0:2]", "tcp[2:2]"),
        SocketAddr::V6(_) => ("ip6[40:2]", "ip6[42:2]"),
    };
    format!(
        "(tcp src port {port} and {destination} >> 1 & {others} = 0) or \
         (tcp dst port {port} and {source} >> 1 & {others} = 0)"
    )
}

fn capture_file(target: &Target) -> PathBuf {
    with_ending(&target.files, ".pcap")
}

/// `DIR/flows/STEM.csv` next to `DIR/captures/STEM.pcap`.
fn flows_file(target: &Target) -> PathBuf {
    let captures = target.files.parent().unwrap_or(Path::new("."));
    let stem = target.files.file_name().unwrap_or_default();
    with_ending(&captures.with_file_name("flows").join(stem), ".csv")
}

/// Appends an ending. It never replaces one, since a server's name may contain a full stop.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

fn write_flows(report: &Report, path: &Path) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut out = Draft::named(path).with_context(|| path.display().to_string())?;
    write_csv(report.rows(), &mut out)?;
    Ok(out.finish()?)
}

/// The number in "12 packets dropped by kernel".
fn dropped(line: &str) -> Option<u64> {
    let (number, what) = line.trim().split_once(' ')?;
    let dropped = what.starts_with("packet") && what.ends_with("dropped by kernel");
    number.parse().ok().filter(|_| dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_noticed_whichever_way() {
        let Clock {
            wall,
            monotonic: steady,
        } = Clock::now();
        let set = |wall| {
            Clock {
                wall,
                monotonic: steady,
            }
            .was_set()
        };
        let hour = Duration::from_hours(1);
        assert!(!set(wall) && set(wall + hour) && set(wall - hour));
    }

    #[test]
    fn drops_are_read_from_the_output_of_tcpdump() {
        assert_eq!(dropped("0 packets dropped by kernel"), Some(0));
        assert_eq!(dropped("1 packet dropped by kernel"), Some(1));
        assert_eq!(dropped("12 packets captured"), None);
        assert_eq!(dropped("tcpdump: listening on lo"), None);
    }

    #[test]
    fn of_many_clients_a_large_enough_part_is_captured() {
        for (clients, one) in [(1, 1), (1000, 1), (1001, 2), (3000, 4), (10_000, 16)] {
            assert_eq!(one_of_how_many(clients), one, "{clients}");
        }
        let filter = |server: &str, clients| filter(server.parse().unwrap(), clients);
        assert_eq!(filter("127.0.0.1:80", 100), "tcp port 80");
        for server in ["127.0.0.1:80", "[::1]:80"] {
            let filter = filter(server, 3000);
            assert!(filter.contains(">> 1 & 3 = 0"), "{filter}");
            // Compiling a filter requires no right to capture.
            let compiled = Command::new("tcpdump")
                .args(["-y", "EN10MB", "-d", &filter])
                .output();
            match compiled {
                Ok(output) if String::from_utf8_lossy(&output.stderr).contains("syntax") => {
                    panic!("{filter}: {output:?}")
                }
                Ok(_) => {}
                Err(error) => println!("skipped: no tcpdump: {error}"),
            }
        }
    }

    #[test]
    fn flows_are_in_a_directory_next_to_the_captures() {
        let stem = Path::new("run/captures/0001-my.server-10-r1");
        let target = Target {
            tree: crate::probes::Tree::of(std::process::id()),
            server: SocketAddr::from(([127, 0, 0, 1], 7)).into(),
            clients: 1,
            files: stem.to_owned(),
            presence: crate::probes::ClientPresence::default(),
        };
        let flows = Path::new("run/flows/0001-my.server-10-r1.csv");
        assert_eq!(flows_file(&target), flows);
        let capture = Path::new("run/captures/0001-my.server-10-r1.pcap");
        assert_eq!(capture_file(&target), capture);
    }
}
