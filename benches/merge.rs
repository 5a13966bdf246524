//! Time and peak memory of merging the results of very many client hosts.
//!
//! `cargo bench --bench merge [-- HOSTS [CLIENTS]]`; default: 4096 hosts with 20,000 clients each
//!
//! Each host's result is synthetic (with as many different times and counts as a real one), written as JSON, read and
//! merged: one at a time, as on the leading host. Only reading and merging are timed. The machine must be idle
//! otherwise.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("hosts are led on Linux only");
}

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::time::{Duration, Instant};

    use anyhow::Context as _;
    use throng::measure::cluster::{HostResult, Report};
    use throng::record::load_stats::{LoadStats, synthetic};

    pub(super) fn main() -> anyhow::Result<()> {
        let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
        let mut number = |usual: u32| match words.next() {
            Some(word) => word
                .parse()
                .with_context(|| format!("`{word}` is no number")),
            None => Ok(usual),
        };
        let (hosts, clients) = (number(4096)?, number(20_000)?);
        let mut whole = LoadStats::default();
        let (mut took, mut bytes) = (Duration::ZERO, 0);
        let before = peak_bytes()?;
        for host in 0..hosts {
            let result = HostResult {
                seen: synthetic(host, clients),
                side: None,
                rows: None,
            };
            let report = serde_json::to_vec(&Report::Finished(Box::new(result)))?;
            bytes += report.len();
            let began = Instant::now();
            let Report::Finished(read) = serde_json::from_slice(&report)? else {
                anyhow::bail!("another report came back");
            };
            whole.merge(&read.seen);
            took += began.elapsed();
        }
        let began = Instant::now();
        let load = whole.summary();
        took += began.elapsed();
        anyhow::ensure!(load.clients == hosts * clients, "clients are missing");
        println!("hosts {hosts}, clients {}", load.clients);
        println!("replies {}, of which times {}", load.window.replies, {
            load.service_time.map_or(0, |times| times.count)
        });
        println!("time {:.2} s, {:.2} ms a host", took.as_secs_f64(), {
            took.as_secs_f64() * 1e3 / f64::from(hosts.max(1))
        });
        println!("report of a host {} bytes", bytes / hosts.max(1) as usize);
        println!(
            "memory at its peak {:.1} MiB, before the first host {:.1} MiB",
            peak_bytes()? as f64 / f64::from(1 << 20),
            before as f64 / f64::from(1 << 20)
        );
        Ok(())
    }

    /// The most memory that this process has had.
    fn peak_bytes() -> anyhow::Result<u64> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        Ok(kib.context("/proc/self/status has no VmHWM")? * 1024)
    }
}
