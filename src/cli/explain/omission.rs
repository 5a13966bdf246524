//! `throng explain omission`: what a closed loop does not see while a server stands still.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context as _;

use crate::cli::output;
use crate::load::arrival::Think;
use crate::load::phase::Progress;
use crate::load::route::Routes;
use crate::load::{self, Plan, Watcher};
use crate::measure::host;
use crate::measure::servers::own_server::OwnServer;
use crate::record::format::{number, time, whole};
use crate::record::{Draft, Latency, Phase};
use crate::report::document::{Block, Cell, Column, Role, Row, Table, terminal};
use crate::report::figures::of_latencies;
use crate::report::render::still;
use crate::spec::{LoadSpec, RateRange};
use crate::sys::signal::Stop;

/// How long each load measures, when the server stops in it, and for how long.
const DURATION: Duration = Duration::from_secs(3);
const STOPS_AFTER: Duration = Duration::from_secs(1);
const STOPPED: Duration = Duration::from_millis(300);
/// Requests per second that users send.
const RATE: u64 = 1000;
/// Clients of the open loop: enough for all requests that are due while the server stands still.
const CLIENTS: u32 = 400;

/// Runs the lesson; the figure goes to `svg`, if it is given.
pub(super) fn run(svg: Option<&Path>, stop: Stop) -> anyhow::Result<()> {
    let closed = measured(
        LoadSpec {
            clients: 1,
            think: Think::Fixed(Duration::from_secs(1) / RATE as u32),
            ..LoadSpec::default()
        },
        stop,
    )?;
    let open = measured(
        LoadSpec {
            clients: CLIENTS,
            rate: Some(RateRange::constant(RATE as f64)),
            ..LoadSpec::default()
        },
        stop,
    )?;
    let interval_ns = 1_000_000_000 / RATE;
    let with_missing = closed.times()?.clone_correct(interval_ns);
    let corrected = Latency::of(&with_missing).context("the closed loop had no reply")?;
    let kinds = [
        ("closed loop", &closed),
        ("corrected", &corrected),
        ("open loop", &open),
    ];
    let figure = of_latencies(
        "omission",
        "Response times while a server stood still for 300 ms",
        &kinds,
    );
    let blocks = lesson(&kinds)?;
    output::text(&terminal::blocks(&blocks, output::width()))?;
    if let (Some(path), Some(figure)) = (svg, figure) {
        let mut file = Draft::named(path)?;
        std::io::Write::write_all(&mut file, still::svg(&figure).as_bytes())?;
        file.finish()
            .with_context(|| format!("cannot write {}", path.display()))?;
        output::text(&format!("Figure: {}", path.display()))?;
    }
    Ok(())
}

/// The times of a load during which its server stops once.
fn measured(load: LoadSpec, stop: Stop) -> anyhow::Result<Latency> {
    let load = LoadSpec {
        duration: Some(DURATION),
        ..load
    };
    let server = OwnServer::start("the server of the lesson", "epoll", &[], &[], stop)?;
    let ports = host::load_resources().ports;
    let routes = Routes::new(&[server.address().into()], &[], load.clients, ports)?;
    let (dialogue, settings) = load.dialogue("127.0.0.1")?;
    let plan = Plan::new(&load, routes, dialogue, settings);
    let (begins, began) = mpsc::channel();
    let mut watcher = StopsOnce { stop, begins };
    let result = std::thread::scope(|scope| {
        let stopping = scope.spawn(move || -> anyhow::Result<OwnServer> {
            if began.recv().is_ok() {
                std::thread::sleep(STOPS_AFTER);
                server.freeze(true)?;
                std::thread::sleep(STOPPED);
                server.freeze(false)?;
            }
            Ok(server)
        });
        let result = load::run(&plan, &mut watcher);
        drop(watcher);
        let stopped = stopping
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("a thread panicked")));
        stopped.context("cannot stop the server of the lesson")?;
        result
    })?;
    anyhow::ensure!(!stop.requested(), "interrupted");
    let seen = result.stats.summary();
    let open = seen.open_loop.and_then(|open| open.response_time);
    open.or(seen.service_time).context("no reply arrived")
}

/// Says when the measured phase begins.
struct StopsOnce {
    stop: Stop,
    begins: mpsc::Sender<()>,
}

impl Watcher for StopsOnce {
    fn enter(&mut self, phase: Phase, _: &Progress) -> anyhow::Result<()> {
        if phase == Phase::Measure {
            // The receiver has gone only if stopping failed, which is reported by itself.
            let _ = self.begins.send(());
        }
        Ok(())
    }

    fn watch(&mut self, _: Phase, _: &Progress, _: f64) {}

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }
}

fn lesson(kinds: &[(&str, &Latency); 3]) -> anyhow::Result<Vec<Block>> {
    let slow_ns = STOPPED.as_nanos() as u64 / 10;
    let slow = |latency: &Latency| -> anyhow::Result<f64> {
        let times = latency.times()?;
        Ok(times.len() as f64 - times.count_between(0, slow_ns) as f64)
    };
    let mut rows = Vec::new();
    for (name, latency) in kinds {
        let count = slow(latency)?;
        let longest = kinds.iter().map(|(_, one)| one.max_us).fold(0.0, f64::max);
        let at = |percentile: f64| -> anyhow::Result<Cell> {
            let us = latency.times()?.value_at_percentile(percentile) as f64 / 1e3;
            let mut cell = Cell::plain(time(us));
            cell.bar = (percentile > 98.0).then_some(us / longest);
            Ok(cell)
        };
        let share = 100.0 * count / latency.count as f64;
        let cells = vec![
            Cell::plain(whole(latency.count as f64)),
            Cell::plain(format!("{} ({} %)", whole(count), number(share))),
            at(50.0)?,
            at(90.0)?,
            at(99.0)?,
            Cell::plain(time(latency.max_us)),
        ];
        rows.push(Row::of((*name).to_owned(), cells));
    }
    let values = ["Requests", "Over 30 ms", "p50", "p90", "p99", "Longest"].map(Column::number);
    let columns = std::iter::once(Column::text("")).chain(values).collect();
    let [closed, _, open] = kinds.map(|(_, latency)| latency);
    let lead = format!(
        "A server stood still for 300 ms. A closed loop calls its p99 {}; users who do not wait for each other had {}.",
        p99(closed)?,
        p99(open)?
    );
    let paragraphs = [
        "Closed loop: one client sends its next request 1 ms after the reply to the last. While the server stood still it \
         sent nothing, so a single request was slow. This is coordinated omission: the load waited together with the server.",
        "Corrected: for a request that took long, the requests that should have been sent meanwhile are added, each shorter \
         by 1 ms. It is right only if the client would have sent them, and if none of them would have made the others wait.",
        "Open loop: 1,000 requests per second are due whatever the server does, and each counts from when it was due. \
         `throng load --rate` measures this way.",
    ];
    let mut blocks = vec![Block::paragraph(Role::Lead, lead)];
    blocks.push(Block::Table(Table::of(
        "Three ways to measure",
        columns,
        rows,
    )));
    blocks.extend(paragraphs.map(|text| Block::paragraph(Role::Body, text)));
    Ok(blocks)
}

fn p99(latency: &Latency) -> anyhow::Result<String> {
    let times = latency.times()?;
    Ok(time(times.value_at_percentile(99.0) as f64 / 1e3))
}
