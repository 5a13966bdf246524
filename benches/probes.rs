//! The cost of the probes of timed trials: replies of one load in slices of time with all of them, relative to slices
//! without any.
//!
//! `cargo bench --bench probes [-- SECONDS [CLIENTS...]]`
//!
//! One server and one load run all the time, each on a CPU of its own, with the probes on the clients' CPU as in a
//! trial. Slices come in pairs, with and without in random order, so that other changes of the rate affect both.
//! Replies are counted by the kernel as sent segments, two per reply. Slow samples have the pace of a trial but fall
//! only into slices with probes, so these have twice their share of them. The machine must be idle otherwise.

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("probes measure on Linux only");
}

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    linux::main()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{BufRead as _, BufReader};
    use std::net::SocketAddr;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use anyhow::{Context as _, bail};
    use throng::measure::host::bind_to;
    use throng::measure::probes::{Moment, Panel, Subject, Target, Tree, by_default};
    use throng::record::Purpose;
    use throng::stats::{median, median_interval};

    const THRONG: &str = env!("CARGO_BIN_EXE_throng");
    /// As in a trial.
    const TICK: Duration = Duration::from_millis(100);
    const TICKS_A_SLICE: u32 = 5;
    /// Until all clients are connected and send requests.
    const WARM_UP: Duration = Duration::from_secs(3);

    pub(super) fn main() -> anyhow::Result<()> {
        // cargo adds --bench.
        let words = std::env::args().skip(1).filter(|word| word != "--bench");
        let mut numbers = Vec::new();
        for word in words {
            let number = word.parse::<u32>();
            numbers.push(number.with_context(|| format!("`{word}` is no number"))?);
        }
        let (seconds, client_counts) = match numbers.split_first() {
            Some((seconds, [])) => (*seconds, &[1, 50, 2000][..]),
            Some((seconds, client_counts)) => (*seconds, client_counts),
            None => (60, &[1, 50, 2000][..]),
        };
        println!(
            "| clients | pairs | requests/s without | with, over without: median (95 %) | probes' own CPU, % of one |"
        );
        println!("|---:|---:|---:|---:|---:|");
        for clients in client_counts {
            presence(*clients, Duration::from_secs(seconds.into()))?;
        }
        Ok(())
    }

    /// A process that ends with this one.
    struct Ours(Child);

    impl Drop for Ours {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn start(cpu: u32, words: &[&str]) -> anyhow::Result<Ours> {
        bind_to(&[cpu])?; // is inherited
        let mut command = Command::new(THRONG);
        let child = command.args(words).stdout(Stdio::piped()).spawn();
        Ok(Ours(
            child.with_context(|| format!("cannot start {THRONG}"))?,
        ))
    }

    fn presence(clients: u32, time: Duration) -> anyhow::Result<()> {
        let mut server = start(0, &["serve", "epoll", "--listen", "127.0.0.1:0"])?;
        let output = server.0.stdout.take().context("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let Some(address) = line.split(' ').nth(2) else {
            bail!("the server says {line:?}");
        };
        let parsed: SocketAddr = address.parse().with_context(|| line.clone())?;
        let whole = format!("{}s", (2 * WARM_UP + time).as_secs());
        let load = start(
            1,
            &[
                "load",
                &parsed.to_string(),
                "--clients",
                &clients.to_string(),
                "--duration",
                &whole,
                "--threads",
                "1",
                "--json",
            ],
        )?;
        std::thread::sleep(WARM_UP);
        let panel = |subject, process: &Ours| {
            let mut panel = Panel::prepare(&by_default(), subject, Purpose::Timed);
            panel.attach(Target {
                tree: Tree::of(process.0.id()),
                server: parsed.into(),
                clients,
                files: std::path::PathBuf::new(),
                presence: throng::measure::probes::ClientPresence::default(),
            });
            Panel::sample_all(std::slice::from_mut(&mut panel), Moment::Start);
            panel
        };
        let mut panels = [
            panel(Subject::Processes, &server),
            panel(Subject::Processes, &load),
            panel(Subject::Network, &server),
        ];
        let (mut ratios, mut rates) = (Vec::new(), Vec::new());
        let began = Instant::now();
        let mut random = fastrand::Rng::with_seed(1);
        while began.elapsed() < time {
            let first = random.bool();
            let one = slice(first.then_some(&mut panels[..]))?;
            let other = slice((!first).then_some(&mut panels[..]))?;
            let (with, without) = if first { (one, other) } else { (other, one) };
            ratios.push(with / without);
            rates.push(without / 2.0);
        }
        let measured = began.elapsed().as_secs_f64() / 2.0;
        let cost: f64 = panels.map(|one| one.finish().0.probe_cost_ms).iter().sum();
        let (Some(middle), Some(usual)) = (median(&ratios), median(&rates)) else {
            bail!("there was no time for a slice");
        };
        let interval = median_interval(&ratios)
            .map(|interval| format!(" ({:.4}–{:.4})", interval.low, interval.high));
        println!(
            "| {clients} | {} | {usual:.0} | {middle:.4}{} | {:.2} |",
            ratios.len(),
            interval.unwrap_or_default(),
            cost / measured / 10.0
        );
        Ok(())
    }

    /// Segments sent a second.
    fn slice(mut panels: Option<&mut [Panel]>) -> anyhow::Result<f64> {
        let (began, before) = (Instant::now(), segments()?);
        for _ in 0..TICKS_A_SLICE {
            std::thread::sleep(TICK);
            Panel::sample_all(panels.as_deref_mut().unwrap_or_default(), Moment::Tick);
        }
        Ok((segments()? - before) / began.elapsed().as_secs_f64())
    }

    /// Segments that the kernel has sent, over all connections.
    fn segments() -> anyhow::Result<f64> {
        let text = std::fs::read_to_string("/proc/net/snmp")?;
        let mut lines = text.lines().filter(|line| line.starts_with("Tcp: "));
        let (names, values) = lines.next().zip(lines.next()).context("no Tcp line")?;
        let mut pairs = names.split(' ').zip(values.split(' '));
        let sent = pairs.find(|(name, _)| *name == "OutSegs");
        Ok(sent.context("no OutSegs")?.1.parse()?)
    }
}
