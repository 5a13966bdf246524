//! A soak test of every model: clients connect, send several requests, leave and return, while nothing may grow, and at
//! the end clients, server and record have counted the same, client by client and byte by byte.
//!
//!     cargo test --test conformance soak                            a short run, a moment per model
//!     cargo test --test conformance -- --length 60m                 an hour over all models, and nothing else
//!     cargo test --test conformance -- --length 4m soak::epoll-et   all of it for one
//!
//! A short run has few clients, so that it fits between other tests; any other has 1000 (`--clients N`). The first
//! third of the samples is the warm-up, in which buffers, stacks and tables reach their size. Half of the samples in
//! the last third must stay below the maximum of the first third plus the bounds in [`growth`], which explains them.

mod balance;
mod growth;
mod look;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use libtest_mimic::{Arguments, Failed, Trial};
use throng::registry::Entry as _;
use throng::serve::Model;
use throng::serve::models::MODELS;

use look::Look;

use crate::support::program::THRONG;

/// Default time of one model.
const GLANCE: Duration = Duration::from_millis(150);
const GLANCING_CLIENTS: u32 = 40;
const CLIENTS: u32 = 1000;
/// Requests of a connection, after which its client closes it and makes the next one.
const REQUESTS_A_CONNECTION: u32 = 20;
/// Looks in the time that counts.
const LOOKS: u32 = 200;
/// Longest pause between two.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Additional time of a run: to start 1000 processes, to settle, and to write its record.
const NEIGHBOURS: Duration = Duration::from_mins(4);

/// Duration and clients of the load on each model.
#[derive(Clone, Copy)]
pub(crate) struct Soak {
    length: Duration,
    clients: u32,
}

impl Soak {
    /// From the test program's arguments, together with those of any test program. The time is divided among the models
    /// selected by these.
    pub(crate) fn of_arguments(arguments: Vec<String>) -> anyhow::Result<(Self, Vec<String>)> {
        let mut arguments = arguments.into_iter();
        let (mut length, mut clients, mut rest) = (None, None, Vec::new());
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .with_context(|| format!("{argument} takes a value"))
            };
            match argument.as_str() {
                "--length" => length = Some(time(&value()?)?),
                "--clients" => {
                    let text = value()?;
                    let number = text.parse().ok().filter(|&number| number > 0);
                    clients =
                        Some(number.with_context(|| format!("`{text}` is no number of clients"))?);
                }
                _ => rest.push(argument),
            }
        }
        let few = if length.is_some() {
            CLIENTS
        } else {
            GLANCING_CLIENTS
        };
        let chosen = Arguments::from_iter(rest.clone());
        let models = MODELS
            .iter()
            .filter(|model| {
                let name = name(model);
                let filter = chosen.filter.as_deref();
                filter.is_none_or(|filter| {
                    if chosen.exact {
                        name == filter
                    } else {
                        name.contains(filter)
                    }
                })
            })
            .count()
            .max(1) as u32;
        let soak = Self {
            length: length.map_or(GLANCE, |length| length / models),
            clients: clients.unwrap_or(few),
        };
        Ok((soak, rest))
    }

    /// Whether the length is the default.
    pub(crate) fn is_a_glance(self) -> bool {
        self.length == GLANCE
    }

    /// One a model.
    pub(crate) fn trials(self) -> Vec<Trial> {
        let mut trials = Vec::new();
        for model in MODELS {
            let (trial, name) = (name(model), model.info.name);
            if let Err(unsupported) = model.supported() {
                println!("not here: {trial}: {unsupported}");
                continue;
            }
            trials.push(Trial::test(trial, move || {
                soak_one(name, self).map_err(|error| Failed::from(format!("{name}: {error:#}")))
            }));
        }
        trials
    }
}

fn name(model: &Model) -> String {
    format!("soak::{}", model.info.name)
}

/// A time like 90s or 60m.
fn time(text: &str) -> anyhow::Result<Duration> {
    let says = || format!("`{text}` is no time; write it like 500ms, 90s, 60m or 1h");
    let unit = text
        .find(|c: char| !c.is_ascii_digit())
        .with_context(says)?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok().with_context(says)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => bail!(says()),
    };
    ensure!(number > 0, says());
    Ok(Duration::from_millis(number * milliseconds))
}

fn soak_one(model: &'static str, soak: Soak) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let study = directory.path().join("soak.toml");
    std::fs::write(&study, study_of(model, soak))?;
    let record = directory.path().join("record");
    let mut command = Command::new(THRONG);
    command.args(["run", "--allow-rough", "--retries", "0"]);
    command.arg(&study).arg("-o").arg(&record);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut run = Run(command.spawn().context("cannot start throng run")?);
    let mut looks = run.watch(soak)?;
    // They come one after the other; what a server has then grows as it should.
    let all_are_there = |look: &Look| look.load.descriptors >= soak.clients.into();
    let coming = looks.iter().position(all_are_there).unwrap_or(looks.len());
    looks.drain(..coming);
    let printed = run.end()?;
    let balance = balance::check(&record, model, soak).with_context(|| printed.clone())?;
    if !growth::shows_after(soak.length) {
        println!("{model}: {balance}; too short to see anything grow");
        return Ok(());
    }
    println!("{model}: {balance}; {}", in_words(&looks));
    growth::check(&looks, &balance).with_context(|| reported(&looks))
}

/// A study of one model, with room for all clients if the model needs an explicit size.
fn study_of(model: &str, soak: Soak) -> String {
    let room = soak.clients + 24;
    let options = match model {
        "prefork" | "thread-pool" => format!("workers = {room}"),
        // A client that has just left still has a descriptor while the next one connects.
        "select" => format!("fd-setsize = {}", 4 * room.max(1024)),
        _ => String::new(),
    };
    // From source addresses of their own, so that all connections of a client are known.
    format!(
        "name = \"soak\"\nquestion = \"Does anything grow?\"\nprotocol = \"echo\"\nsize = 1000\n\
         clients = [{}]\nruns = 1\nduration = \"{}ms\"\nwarm-up = \"20ms\"\ncontrol = \"none\"\n\
         ceiling = false\nprobes = [\"cpu\"]\nservers = [{{ model = \"{model}\", options = {{ {options} }} }}]\n\
         load = {{ source = [\"127.20.0.0/16\"], requests-per-connection = {REQUESTS_A_CONNECTION}, eager = true }}\n",
        soak.clients,
        soak.length.as_millis(),
    )
}

/// A `throng run`, always ended.
struct Run(Child);

impl Run {
    /// Looks at its processes until it has ended.
    fn watch(&mut self, soak: Soak) -> anyhow::Result<Vec<Look>> {
        let pause = (soak.length / LOOKS).clamp(Duration::from_millis(2), LONGEST_PAUSE);
        let deadline = Instant::now() + soak.length + NEIGHBOURS;
        let mut looks = Vec::new();
        while self.0.try_wait()?.is_none() {
            ensure!(
                Instant::now() < deadline,
                "the run has not ended {} s after its time",
                NEIGHBOURS.as_secs()
            );
            looks.extend(Look::at(self.0.id()));
            // No event marks the time of a sample.
            std::thread::sleep(pause);
        }
        Ok(looks)
    }

    /// Its output, after its end.
    fn end(mut self) -> anyhow::Result<String> {
        let mut printed = String::new();
        if let Some(mut stderr) = self.0.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut printed)?;
        }
        let status = self.0.wait()?;
        ensure!(status.success(), "it ended with {status}: {printed}");
        Ok(printed)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // After `end` it is reaped already, and this does nothing. Its own children end with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The last third of the looks compared with the first.
fn in_words(looks: &[Look]) -> String {
    let parts = growth::METRICS.iter().map(|metric| {
        let grown = growth::grown(looks, metric);
        format!(
            "{} {} then {}",
            metric.name, grown.most_first, grown.median_last
        )
    });
    format!(
        "{} looks; {}",
        looks.len(),
        parts.collect::<Vec<_>>().join(", ")
    )
}

/// All samples, to find out what grew.
fn reported(looks: &[Look]) -> String {
    let mut text = String::from("what was seen:\n");
    for look in looks.iter().step_by((looks.len() / 12).max(1)) {
        let _ = writeln!(text, "{look:?}");
    }
    text
}

/// A file of the record.
fn read(record: &Path, name: &str) -> anyhow::Result<String> {
    let path = record.join(name);
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}
