//! Every model with every protocol through the same hard cases, against the real binary; every model for long
//! ([`soak`]); and loads that come from several hosts ([`cluster`]).
//!
//! The tests come from the tables: a new model or protocol is tested without a change here, under
//! the name `MODEL::PROTOCOL::CASE`. Which cases make sense for a model follows from its card.
#![expect(
    clippy::shadow_unrelated,
    reason = "a test looks at several cases in turn"
)]

mod client;
mod cluster;
mod endings;
mod exchanges;
mod http;
mod limits;
mod many_clients;
mod process;
mod shortage;
mod siege;
mod soak;
mod top;
mod trouble;
mod upload;

#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "other test programs use the rest")]
mod support;

use std::process::ExitCode;

use anyhow::ensure;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use throng::protocol::{PROTOCOLS, Protocol, Settings};
use throng::registry::Entry as _;
use throng::serve::Model;
use throng::serve::models::MODELS;

use client::Client;
use soak::Soak;

use crate::support::server::Server;

/// One hard case.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Whether it makes sense for a model and a protocol.
    applies: fn(&Subject) -> bool,
    run: fn(&Subject) -> anyhow::Result<()>,
}

/// The subject of a case.
#[derive(Clone, Copy)]
struct Subject {
    model: &'static Model,
    protocol: &'static dyn Protocol,
    /// Further options of the server.
    options: &'static [&'static str],
}

/// Variants of models, each with a name of its own; tested with one protocol.
const OTHER_WAYS: &[(&str, &str, &[&str])] = &[
    ("aio", "aio-thread", &["--aio-completion", "thread"]),
    ("aio", "aio-poll", &["--aio-completion", "poll"]),
    ("aio", "aio-busy", &["--aio-completion", "busy"]),
    ("epoll", "epoll-work", &["--work", "20us"]),
    ("reactors", "reactors-shared", &["--accept", "shared"]),
    ("thread", "thread-nice", &["--client-nice", "19"]),
];

fn always(_: &Subject) -> bool {
    true
}

/// Whether a second client has to wait until the first one has left.
fn serves_one_at_a_time(subject: &Subject) -> bool {
    subject.model.card.limit.contains("one client at a time")
}

fn serves_several(subject: &Subject) -> bool {
    !serves_one_at_a_time(subject)
}

/// Whether each client has a child process of its own.
fn forks_for_each_client(subject: &Subject) -> bool {
    subject.model.card.processes.contains("1 child a client")
}

/// Whether it has a fixed number of child processes.
fn has_worker_processes(subject: &Subject) -> bool {
    subject.model.card.processes.contains("--workers children")
}

/// Whether the descriptors of all clients are in one process. Elsewhere each child has one client,
/// and no number of clients can use its descriptors up.
fn holds_all_descriptors(subject: &Subject) -> bool {
    subject.model.card.processes.starts_with("1 process") && serves_several(subject)
}

/// Whether the loop that accepts clients also finds out which ones are gone. Elsewhere other threads or the kernel do, at
/// their own time.
fn accepts_where_it_serves(subject: &Subject) -> bool {
    let name = subject.model.info.name;
    let others = ["thread", "thread-pool", "tokio"];
    holds_all_descriptors(subject) && !others.contains(&name) && !name.starts_with("io-uring")
}

/// Whether its sets of descriptors have a fixed size.
fn has_fixed_sets(subject: &Subject) -> bool {
    subject.model.card.limit.contains("FD_SETSIZE")
}

/// Whether threads that it does not start itself have to be enough for all clients.
fn has_a_hidden_pool(subject: &Subject) -> bool {
    subject.model.card.limit.contains("--aio-threads")
}

/// Default bytes of a request.
const SIZE: usize = 1000;

impl Subject {
    /// Starts the server, for requests of `size` bytes. Models with a fixed number of workers get
    /// as many as the few clients of most cases need, since 256 processes take a while to start.
    fn start(&self, size: usize) -> anyhow::Result<Server> {
        self.start_with(size, &["--workers", "8"])
    }

    fn start_with(&self, size: usize, options: &[&str]) -> anyhow::Result<Server> {
        let size = size.to_string();
        Server::start(&[&self.arguments(&size)[..], options].concat())
    }

    fn arguments<'a>(&self, size: &'a str) -> Vec<&'a str> {
        let (model, protocol) = (self.model.info.name, self.protocol.name());
        let printed = [model, "--protocol", protocol, "--size", size];
        [&printed, self.options].concat()
    }

    /// Waits until a server [started](Self::start) with a fixed number of children has them all: it
    /// listens a moment before.
    fn wait_for_workers(&self, server: &Server) -> anyhow::Result<()> {
        if !has_worker_processes(self) {
            return Ok(());
        }
        process::eventually("it has its children", || {
            Ok(process::children(server.pid())?.len() == 8)
        })
    }

    fn client(&self, server: &Server, number: u64) -> anyhow::Result<Client> {
        self.client_asking(server, number, SIZE)
    }

    fn client_asking(&self, server: &Server, number: u64, size: usize) -> anyhow::Result<Client> {
        Client::connect(
            server.address(),
            self.protocol,
            Settings::of_size(size),
            number,
        )
    }

    /// A number of clients or requests, reduced if requests are expensive: for `top` the server reads every process of
    /// a machine on which concurrent cases start hundreds.
    fn some(&self, number: u64) -> u64 {
        if self.speaks("top") {
            number.div_ceil(10)
        } else {
            number
        }
    }

    /// Whether a protocol has this name.
    fn speaks(&self, protocol: &str) -> bool {
        self.protocol.name() == protocol
    }

    /// Connections over which so many clients make so many requests, each client at least one.
    fn connections(&self, clients: u64, requests: u64) -> u64 {
        if self.protocol.closes() {
            requests
        } else {
            clients
        }
    }

    /// Compares a server's counts with the requests that it answered whole, of clients that each sent some.
    fn check(&self, counts: &Value, clients: u64, requests: u64) -> anyhow::Result<()> {
        self.check_with_silent(counts, clients, requests, 0)
    }

    /// As [`Subject::check`], with this many connected clients that sent nothing.
    fn check_with_silent(
        &self,
        counts: &Value,
        clients: u64,
        requests: u64,
        silent: u64,
    ) -> anyhow::Result<()> {
        let connections = self.connections(clients, requests) + silent;
        ensure!(
            counts["accepted"] == connections,
            "{connections} connections, but it counted {counts}"
        );
        ensure!(
            counts["requests"] == requests,
            "{requests} requests, but it counted {counts}"
        );
        if self.speaks("echo") {
            ensure!(
                counts["bytes_in"] == counts["bytes_out"],
                "an echo, but it counted {counts}"
            );
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    if let Some(code) = cluster::as_program() {
        return code;
    }
    let (soak, rest) = match Soak::of_arguments(std::env::args().collect()) {
        Ok(read) => read,
        Err(error) => {
            eprintln!("{error:#}");
            return ExitCode::from(2);
        }
    };
    let mut arguments = Arguments::from_iter(rest);
    let mut trials = Vec::new();
    if soak.is_a_glance() {
        raise_descriptor_limit();
        // They wait more than they compute. The other test programs have as many, by .cargo/config.toml.
        arguments.test_threads = arguments.test_threads.or(Some(8));
        trials.extend(hard_cases());
        trials.extend(cluster::trials());
    } else {
        arguments.test_threads = arguments.test_threads.or(Some(1));
    }
    trials.extend(soak.trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Those of each model with each protocol.
fn hard_cases() -> Vec<Trial> {
    let cases = [
        exchanges::CASES,
        many_clients::CASES,
        trouble::CASES,
        endings::CASES,
        upload::CASES,
        top::CASES,
        http::CASES,
        limits::CASES,
        siege::CASES,
        shortage::CASES,
    ]
    .concat();
    let mut trials = Vec::new();
    for (name, subject) in subjects() {
        let (model, protocol) = (subject.model, subject.protocol);
        let printed = protocol.name();
        if let Err(unsupported) = model.supported().and_then(|()| protocol.supported()) {
            println!("not here: {name} with {printed}: {unsupported}");
            continue;
        }
        for &case in cases.iter().filter(|case| (case.applies)(&subject)) {
            trials.push(Trial::test(
                format!("{name}::{printed}::{}", case.name),
                move || {
                    let failed = |error| Failed::from(format!("{name}, {}: {error:#}", case.name));
                    (case.run)(&subject).map_err(failed)
                },
            ));
        }
    }
    trials
}

/// Every model with every protocol, and its other ways, each with the name it goes by.
fn subjects() -> Vec<(&'static str, Subject)> {
    let mut subjects = Vec::new();
    for &model in MODELS {
        for &protocol in PROTOCOLS {
            let subject = Subject {
                model,
                protocol,
                options: &[],
            };
            subjects.push((model.info.name, subject));
        }
        let ways = OTHER_WAYS.iter().filter(|way| way.0 == model.info.name);
        subjects.extend(ways.map(|&(_, name, options)| {
            let subject = Subject {
                model,
                protocol: PROTOCOLS[0],
                options,
            };
            (name, subject)
        }));
    }
    subjects
}

/// Some cases have more clients than the usual soft limit has descriptors.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    );
}
