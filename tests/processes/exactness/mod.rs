//! Short loads drawn at random, model by model: every protocol, shape and engine, and faults while they run. What
//! clients and server have counted must be the same to the byte, client by client; where a fault has cut a
//! connection, it is listed, and nothing may have come on it that was not sent.
//!
//! Some trials are drawn in every `cargo test`. More of them, and other ones:
//!
//!     THRONG_TRIALS=1000 THRONG_SEED=7 cargo test --test processes exactness -- --nocapture
//!
//! A trial is drawn from the seed and its number alone: `THRONG_SEED=7 THRONG_FIRST=812 THRONG_TRIALS=1` is that one
//! again, as far as clients and servers are drawn; when a fault strikes is the machine's luck.

mod draw;
mod fault;
mod stranger;
mod verdict;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;

use draw::Drawn;
use verdict::Verdict;

use crate::support::program::THRONG;
use crate::support::server::Server;
use crate::support::sockets::connections;
use crate::support::tries::pause;

/// Default number of trials: the same ones on each machine.
const TRIALS: u64 = 60;
const SEED: u64 = 1;
/// At a time.
const AT_ONCE: usize = 3;
/// A load that has not ended by then hangs.
const LIMIT: Duration = Duration::from_mins(4);

/// All of it so far.
#[derive(Default)]
struct Sum {
    trials: u64,
    connections: u64,
    requests: u64,
    bytes: u64,
    agreed: u64,
    /// Clients, by the fault that cut a connection of theirs.
    cut: BTreeMap<&'static str, u64>,
    strangers: u64,
    failures: Vec<String>,
}

#[test]
fn clients_and_servers_count_the_same() {
    let (seed, first) = (variable("THRONG_SEED", SEED), variable("THRONG_FIRST", 0));
    let lists = std::env::var("THRONG_TRIALS").is_ok();
    let trials = variable("THRONG_TRIALS", TRIALS);
    println!("THRONG_SEED={seed} THRONG_FIRST={first}");
    let (began, next, sum) = (
        Instant::now(),
        AtomicU64::new(0),
        Mutex::new(Sum::default()),
    );
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= trials || sum.lock().unwrap().failures.len() >= 5 {
                        return;
                    }
                    let drawn = Drawn::new(seed, first + number);
                    let outcome = carry_out(&drawn);
                    let mut sum = sum.lock().unwrap();
                    match outcome {
                        Ok(verdict) => sum.add(&drawn, &verdict, lists),
                        Err(error) => sum.failures.push(format!("{drawn}\n  {error:#}")),
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    println!(
        "{} trials: {} connections, {} requests, {} bytes both ways; {} clients agree to the byte, cut were {:?}; \
         {} connections of strangers; {:.0} s",
        sum.trials,
        sum.connections,
        sum.requests,
        sum.bytes,
        sum.agreed,
        sum.cut,
        sum.strangers,
        began.elapsed().as_secs_f64()
    );
    assert!(
        sum.failures.is_empty(),
        "with seed {seed}:\n{}",
        sum.failures.join("\n")
    );
}

impl Sum {
    fn add(&mut self, drawn: &Drawn, verdict: &Verdict, lists: bool) {
        self.trials += 1;
        self.connections += verdict.connections;
        self.requests += verdict.requests;
        self.bytes += verdict.bytes;
        self.agreed += verdict.agreed;
        self.strangers += verdict.strangers;
        if !verdict.cut.is_empty() {
            *self.cut.entry(drawn.fault.name()).or_default() += verdict.cut.len() as u64;
            if lists {
                println!("{drawn}");
                verdict.cut.iter().for_each(|cut| println!("  cut: {cut}"));
            }
        }
    }
}

fn variable(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => otherwise,
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")),
    }
}

/// Runs one, and returns its result.
fn carry_out(drawn: &Drawn) -> anyhow::Result<Verdict> {
    let directory = tempfile::tempdir()?;
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (server_csv, clients_csv) = (file("server.csv"), file("clients.csv"));
    let mut arguments: Vec<&str> = drawn.serve.iter().map(String::as_str).collect();
    arguments.extend(["--log", &server_csv]);
    let server = Server::start(&arguments)?;
    let mut load = Command::new(THRONG)
        .args([
            "load",
            &server.address().to_string(),
            "--json",
            "--clients-csv",
            &clients_csv,
        ])
        .args(&drawn.load)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let struck = drawn.fault.strike(drawn, &server, &load);
    let deadline = Instant::now() + LIMIT;
    while load.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            let _ = load.kill();
            let _ = load.wait();
            bail!("the load hangs");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = load.wait_with_output()?;
    let strangers = struck?;
    if !drawn.fault.stops_the_server() {
        // What the last clients have sent may still be on its way.
        until_all_have_left(server.address().port())?;
    }
    let counts = if drawn.fault.stops_the_server() {
        server.counts()
    } else {
        server.stop()
    };
    let counts = counts.context("the server")?;
    let printed = String::from_utf8_lossy(&output.stderr);
    let reported: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the load printed {printed}"))?;
    let text = |path: &str| std::fs::read_to_string(path);
    verdict::judge(
        drawn,
        &reported,
        &counts,
        (&text(&clients_csv)?, &text(&server_csv)?),
        &strangers,
    )
    .with_context(|| {
        format!(
            "the load ended with {} and {printed}\nload: {}\nserver: {counts}",
            output.status,
            verdict::brief(&reported)
        )
    })
}

/// Waits until a server on this port has closed every connection.
fn until_all_have_left(port: u16) -> anyhow::Result<()> {
    let began = Instant::now();
    while connections(port)? > 0 {
        ensure!(began.elapsed() < LIMIT, "the server keeps connections open");
        std::thread::sleep(pause(began));
    }
    Ok(())
}
