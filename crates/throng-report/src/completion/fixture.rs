//! A synthetic record with a job per client.

use std::collections::BTreeMap;

use crate::fixture;
use throng_record::{Completion, Run, Side, Trial};

/// Three servers, one of which turns clients away from 1000 clients on.
pub(crate) fn record() -> (Run, Vec<Trial>) {
    let (mut run, mut trials) = fixture::record();
    let there = ["epoll", "select", "fork"];
    run.servers
        .retain(|server| there.contains(&server.name.as_str()));
    run.settings.load.requests_per_client = Some(1);
    trials.retain(|trial| trial.purpose.is_timed() && there.contains(&trial.server.as_str()));
    trials.iter_mut().for_each(give_jobs);
    (run, trials)
}

fn give_jobs(trial: &mut Trial) {
    let clients = trial.clients;
    let turned_away = if trial.server == "fork" && clients >= 1000 {
        5
    } else {
        0
    };
    let slowness = match trial.server.as_str() {
        "epoll" => 1.0,
        "select" => 1.3,
        _ => 2.0,
    };
    let seconds = f64::from(clients) * slowness / 1e4 + f64::from(trial.round) / 1e5;
    let side = Side {
        metrics: BTreeMap::from([
            ("accept_backlog".to_owned(), 5.0),
            ("listen_overflows".to_owned(), f64::from(turned_away) * 7.0),
        ]),
        ..Side::default()
    };
    trial.network = Some(side);
    trial.failure = None;
    let mut load = trial.load.take().unwrap_or_default();
    load.fairness = None;
    load.clients = clients;
    load.connected = clients - 2 * turned_away;
    load.served = clients - 3 * turned_away;
    load.never_served = turned_away;
    load.errors.clear();
    let mut connect_failures = BTreeMap::new();
    if turned_away > 0 {
        let failed = u64::from(2 * turned_away);
        load.errors.insert("connect-timeout".to_owned(), failed);
        connect_failures.insert("connect-timeout".to_owned(), failed);
    }
    let done = clients - 3 * turned_away;
    load.completion = Some(Box::new(Completion {
        requests_each: Some(1),
        at_once: clients,
        clients_done: done,
        failed: 2 * turned_away,
        unfinished: turned_away,
        last_done_s: Some(seconds),
        clients_per_s: Some(f64::from(done) / seconds),
        think_s_mean: None,
        job_time: Some(fixture::latency(&[1_000_000, 2_000_000])),
        connect_failures,
        first_failure: None,
    }));
    trial.load = Some(load);
}
