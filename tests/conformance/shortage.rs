//! More clients than the machine has resources for: accepted ones are served on, and the others are counted.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::client::{Client, FULL};
use super::many_clients::too_many_clients;
use super::process::eventually;
use super::{Case, SIZE, Subject, has_a_hidden_pool, holds_all_descriptors};
use crate::support::group::SmallGroup;
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

pub(crate) const CASES: &[&Case] = &[
    &Case {
        name: "more_clients_than_descriptors",
        applies: is_plain,
        run: more_clients_than_descriptors,
    },
    &Case {
        name: "threads_or_processes_run_out",
        applies: starts_one_a_client,
        run: threads_or_processes_run_out,
    },
    &Case {
        name: "watches_run_out",
        applies: waits_in_epoll,
        run: watches_run_out,
    },
    &Case {
        name: "pool_that_cannot_be_started_says_so",
        applies: has_a_cluster,
        run: pool_that_cannot_be_started_says_so,
    },
];

/// Once a model is enough where the protocol does not matter.
fn is_plain(subject: &Subject) -> bool {
    subject.speaks("echo")
}

/// Whether each client has a thread or a process of its own. Excludes libraries that need another thread for each
/// completion: an accepted client may lose its own to that.
fn starts_one_a_client(subject: &Subject) -> bool {
    is_plain(subject)
        && !subject.options.contains(&"thread")
        && ["thread", "fork", "aio"].contains(&subject.model.info.name)
}

/// Whether it adds each client to an epoll set itself.
fn waits_in_epoll(subject: &Subject) -> bool {
    is_plain(subject) && ["epoll", "epoll-et", "reactors"].contains(&subject.model.info.name)
}

/// Whether it starts a fixed number of threads or processes in advance.
fn has_a_cluster(subject: &Subject) -> bool {
    is_plain(subject) && subject.model.card.processes.contains("--workers")
}

/// Clients of this case; `THRONG_CLIENTS=20000 cargo test --test conformance -- more_clients_than` has more.
const DEFAULT_CLIENTS: u64 = 1500;
const DESCRIPTORS: u64 = 300;

/// 300 descriptors, and far more clients. With a process per client, that many processes are allowed.
///
/// On a busy machine clients may leave before the server has looked at all of them: then again, with more time.
fn more_clients_than_descriptors(subject: &Subject) -> anyhow::Result<()> {
    let clients = std::env::var("THRONG_CLIENTS")
        .ok()
        .map(|clients| clients.parse().context("THRONG_CLIENTS is a number"))
        .transpose()?
        .unwrap_or(DEFAULT_CLIENTS);
    for milliseconds in [200, 2_000] {
        let (load, counts) = crowd(subject, clients, milliseconds)?;
        if load["verified"] != 0 && (!holds_all_descriptors(subject) || was_full(&counts)) {
            return check_crowd(subject, clients, &load, &counts);
        }
    }
    let (load, counts) = crowd(subject, clients, 20_000)?;
    check_crowd(subject, clients, &load, &counts)
}

/// Whether so many were open at once that few descriptors were left.
fn was_full(counts: &Value) -> bool {
    let all_but_its_own = DESCRIPTORS - 50..DESCRIPTORS;
    counts["peak_open"]
        .as_u64()
        .is_some_and(|open| all_but_its_own.contains(&open))
}

/// What the load says of its clients, and the server of them and of a newcomer after them.
fn crowd(subject: &Subject, clients: u64, milliseconds: u64) -> anyhow::Result<(Value, Value)> {
    let size = SIZE.to_string();
    let mut command = Command::new("sh");
    let limited = format!("ulimit -n {DESCRIPTORS}; exec \"$@\"");
    command.args(["-c", &limited, "sh", THRONG, "serve"]);
    command
        .args(subject.arguments(&size))
        .args(["--workers", "8"]);
    if subject.model.info.name == "fork" {
        command.args(["--max-clients", &DESCRIPTORS.to_string()]);
    }
    let server = Server::spawn(command)?;
    let load = load(&server, clients, milliseconds)?;
    // It is behind all who wait in the accept queue.
    subject
        .client(&server, 0)?
        .converse(1, FULL)
        .context("a newcomer after them")?;
    Ok((load, server.stop()?))
}

fn check_crowd(
    subject: &Subject,
    clients: u64,
    load: &Value,
    counts: &Value,
) -> anyhow::Result<()> {
    let number = |value: &Value| {
        value
            .as_u64()
            .with_context(|| format!("a count, not {value}"))
    };
    ensure!(
        number(&load["verified"])? > 0,
        "none of those inside was served"
    );
    let refused: u64 = counts["refused"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|why| why.1.as_u64())
        .sum();
    let (accepted, connected) = (number(&counts["accepted"])?, number(&load["connections"])?);
    // A client reset before it noticed its connection does not count it. And beyond the accept queue, a connection may
    // exist for its client only, and an abandoned one may still arrive.
    let least = if clients < 4000 { connected + 1 } else { 1 };
    let came = accepted + refused;
    ensure!(
        (least..=clients + 1).contains(&came),
        "{connected} say that they came, and it counted {counts}"
    );
    if holds_all_descriptors(subject) {
        // More come in when the load has ended before the last of its clients were accepted.
        ensure!(
            was_full(counts) && counts["refused"]["descriptors"] == refused,
            "it counted {counts}"
        );
    }
    // If some wait inside, or in the accept queue, the server may have answered clients that had gone; the load has no
    // request counts of clients that it gave up while they connected.
    let (verified, requests) = (number(&load["verified"])?, number(&counts["requests"])?);
    let (least, most) = (verified + 1, number(&load["requests"])? + 1);
    ensure!(
        (least..=most).contains(&requests),
        "{verified} answers came, and it counted {counts}"
    );
    println!(
        "{}: {came} came, {accepted} were let in, {refused} were turned away",
        subject.model.info.name
    );
    Ok(())
}

/// A load of this many clients at once, each of which continues as soon as it is accepted, for this time.
fn load(server: &Server, clients: u64, milliseconds: u64) -> anyhow::Result<Value> {
    let mut command = Command::new(THRONG);
    command.args([
        "load",
        &server.address().to_string(),
        "--json",
        "--size",
        &SIZE.to_string(),
    ]);
    command.args(words(
        "-c {} --eager -d {} --first-reply-timeout {}",
        &[
            &clients.to_string(),
            &format!("{milliseconds}ms"),
            &format!("{}ms", milliseconds * 5 / 2),
        ],
    ));
    command.args(["--warm-up", "0s", "--connect-timeout", "2s"]);
    let reported = command.stdin(Stdio::null()).output()?;
    let printed = String::from_utf8_lossy(&reported.stderr);
    serde_json::from_slice(&reported.stdout).with_context(|| printed.into_owned())
}

/// Clients without one are rejected; the others are served on, and the slot of one that leaves is free as soon as its
/// thread or process has ended.
///
/// With aio a client has its thread for one operation. Between two of its operations the C library may give the thread
/// to a newcomer, who is served, and then the other one is rejected.
fn threads_or_processes_run_out(subject: &Subject) -> anyhow::Result<()> {
    const CLIENTS: u64 = 45;
    const THREADS: u32 = 30;
    let Some(group) = SmallGroup::make(THREADS) else {
        return Ok(());
    };
    let size = SIZE.to_string();
    let mut command = inside(&group);
    command.arg("serve").args(subject.arguments(&size));
    let server = Server::spawn(command)?;
    let connect = |number| subject.client(&server, number);
    let connections = (0..CLIENTS)
        .map(connect)
        .collect::<anyhow::Result<Vec<Client>>>()?;
    let mut inside: Vec<Client> = Vec::new();
    for mut client in connections {
        if client.converse(1, FULL).is_ok() {
            inside.push(client);
        }
    }
    let mut answered = inside.len() as u64;
    let may_change = subject.model.info.name == "aio";
    loop {
        let before = inside.len();
        inside.retain_mut(|client| client.converse(1, FULL).is_ok());
        answered += inside.len() as u64;
        ensure!(
            may_change || inside.len() == before,
            "{before} were inside, and {} stayed",
            inside.len()
        );
        if inside.len() < THREADS as usize || !may_change {
            break;
        }
    }
    let admitted = inside.len() as u64;
    ensure!(
        (20..u64::from(THREADS)).contains(&admitted),
        "{admitted} of {CLIENTS} came in"
    );
    drop(inside.swap_remove(0));
    let mut tries = 0;
    eventually("a newcomer is served once there is a place", || {
        tries += 1;
        Ok(connect(CLIENTS)?.converse(1, FULL).is_ok())
    })?;
    drop(inside);
    let counts = server.stop()?;
    let turned_away = CLIENTS - admitted + tries - 1;
    let why = if subject.model.info.name == "fork" {
        "processes"
    } else {
        "threads"
    };
    ensure!(
        counts["refused"][why] == turned_away && counts["accepted"] == admitted + 1,
        "{admitted} and 1 came in, {turned_away} did not, and it counted {counts}"
    );
    // An answer for which the C library finds no thread has been made, and never leaves.
    answered += 1;
    let most = answered
        + if has_a_hidden_pool(subject) {
            turned_away
        } else {
            0
        };
    let requests = counts["requests"].as_u64().unwrap_or(0);
    ensure!(
        (answered..=most).contains(&requests),
        "{answered} answers, and it counted {counts}"
    );
    Ok(())
}

/// The program in a control group, to be given arguments.
fn inside(group: &SmallGroup) -> Command {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("{} && exec \"$@\"", group.enter()),
        "sh",
        THRONG,
    ]);
    command
}

/// Traces only the calls that register interest in events.
fn tracing_watches() -> Command {
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-qq", "-o", "/dev/null"]);
    command.args(["-e", "trace=epoll_ctl"]);
    command
}

/// The kernel has a limit of watched sockets per user. It is the whole machine's, so the error is injected: into the
/// 8th to 20th call, where the first two are for the server itself.
fn watches_run_out(subject: &Subject) -> anyhow::Result<()> {
    let tried = tracing_watches().arg("true").status();
    if !tried.is_ok_and(|status| status.success()) {
        println!("not tried: strace is not there, or may not trace");
        return Ok(());
    }
    let size = SIZE.to_string();
    let mut command = tracing_watches();
    command.args([
        "-e",
        "inject=epoll_ctl:error=ENOSPC:when=8..20",
        THRONG,
        "serve",
    ]);
    command
        .args(subject.arguments(&size))
        .args(["--workers", "1"]);
    let counts = too_many_clients(subject, Server::spawn(command)?, 20)?;
    ensure!(
        counts["turned away"] == 13 && counts["refused"]["watches"] == 13,
        "it counted {counts}"
    );
    Ok(())
}

/// It ends with an error that names what could not be started, and leaves nothing behind.
fn pool_that_cannot_be_started_says_so(subject: &Subject) -> anyhow::Result<()> {
    let Some(group) = SmallGroup::make(10) else {
        return Ok(());
    };
    let model = subject.model.info.name;
    let mut command = Command::new("sh");
    // One that does not end would keep the test from it.
    let script = format!("{} && exec timeout -s KILL 120 \"$@\"", group.enter());
    command.args(["-c", &script, "sh", THRONG, "serve", model]);
    command.args(["--workers", "20", "--listen", "127.0.0.1:0"]);
    let reported = command.stdin(Stdio::null()).output()?;
    let printed = String::from_utf8_lossy(&reported.stderr);
    ensure!(
        reported.status.code() == Some(1) && printed.contains("error: cannot start"),
        "it ended with {} and printed: {printed}",
        reported.status
    );
    Ok(())
}
