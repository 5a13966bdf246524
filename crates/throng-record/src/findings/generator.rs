//! The load generator: stalls, lateness, threads and hosts without replies.

use super::{Evidence, FindingKind, Observed, Rule, Severity};
use crate::HostPart;
use crate::format::{self, list};

/// A stall counts if it is longer than this, and than this share of the window.
const STALL_S: f64 = 0.25;
const STALL_SHARE: f64 = 0.1;
/// Largest difference between the starts of client hosts, as a share of the window.
const SKEW: f64 = 0.1;
/// Each client of a slow host gets less than this share of the replies that a client of the median host gets. This is
/// checked only if the median host got at least `SLOW_HOST_REPLIES` replies.
const SLOW: f64 = 0.25;
const SLOW_HOST_REPLIES: u64 = 200;
/// Share of the requests of an open loop that may wait for a client before that is due to the server.
pub(super) const WAITED: f64 = 0.01;
/// A schedule is kept if 90 % of the requests leave within the mean interval between two, and no timer is more precise
/// than this.
const LATE_US: f64 = 1000.0;
/// A trial is invalid if half of its requests are later than this, and than that many intervals.
const MOST_LATE_US: f64 = 10_000.0;
const MOST_LATE_GAPS: f64 = 10.0;

/// The load generator stood still.
pub static STALLED: FindingKind = FindingKind::new(
    "generator-stopped",
    Severity::Invalid,
    "The load generator stood still for a part of the measurement.",
    "stop other processes, and run again",
    Rule::Trial(stalled),
);

/// Client hosts did not start to measure at the same time.
pub static START_SKEW: FindingKind = FindingKind::new(
    "start-skew",
    Severity::Invalid,
    "Client hosts did not start to measure at the same time.",
    "use a longer --duration, or hosts with a faster network",
    Rule::Trial(start_skew),
);

/// A client host got no reply.
pub static SILENT_HOST: FindingKind = FindingKind::new(
    "silent-host",
    Severity::Invalid,
    "The clients of one host got no reply, although others did.",
    "check the network between that host and the server",
    Rule::Trial(silent_host),
);

/// The clients of one host had far fewer replies than those of the others.
pub static SLOW_HOST: FindingKind = FindingKind::new(
    "slow-host",
    Severity::Invalid,
    "Each client of one host got far fewer replies than those of the others: its CPUs or its network limit their pace.",
    "leave that host out, or give it fewer clients",
    Rule::Trial(slow_host),
);

/// Requests were sent late.
pub static BEHIND_SCHEDULE: FindingKind = FindingKind::new(
    "behind-schedule",
    Severity::Rough,
    "Requests of an open loop were sent late although clients were idle. If half of them are much too late, the trial \
     is invalid.",
    "the load generator is the bottleneck: lower --rate, or give it more CPUs and --threads",
    Rule::Trial(behind_schedule),
);

/// A thread of the load got no reply.
pub static SILENT_WORKER: FindingKind = FindingKind::new(
    "silent-worker",
    Severity::Invalid,
    "A thread of the load got no reply, although others did.",
    "use more --clients, or fewer --threads",
    Rule::Trial(silent_worker),
)
.of_server();

fn stalled(seen: &Observed<'_>) -> Option<Evidence> {
    let gap_s = seen.load.longest_gap_s?;
    let most = STALL_S.max(STALL_SHARE * seen.load.window.duration_s);
    (seen.trial.purpose.is_timed() && gap_s > most).then(|| {
        let text = format!(
            "the load generator stalled for {} of {}",
            format::time(gap_s * 1e6),
            format::time(seen.load.window.duration_s * 1e6)
        );
        text.into()
    })
}

fn start_skew(seen: &Observed<'_>) -> Option<Evidence> {
    let skew_us = seen.trial.start_skew?.skew_us;
    let window_us = seen.load.window.duration_s * 1e6;
    let hosts = seen.trial.hosts.iter();
    let last = hosts
        .max_by(|one, other| {
            let began = |host: &HostPart| host.start_offset_us.unwrap_or(0.0);
            began(one).total_cmp(&began(other))
        })
        .map_or_else(String::new, |host| format!(", {} last", host.label()));
    (skew_us > SKEW * window_us).then(|| {
        let text = format!(
            "client hosts began to measure {} apart{last}, in a window of {}",
            format::time(skew_us),
            format::time(window_us)
        );
        text.into()
    })
}

fn silent_host(seen: &Observed<'_>) -> Option<Evidence> {
    let is_silent = seen.load.window.replies > 0 && seen.load.open_loop.is_none();
    let hosts = seen.trial.hosts.iter();
    let silent = hosts.filter(|host| host.clients > 0 && host.replies == Some(0));
    let names: Vec<String> = silent.map(HostPart::label).collect();
    (is_silent && !names.is_empty())
        .then(|| format!("the clients on {} got no reply", list(&names)).into())
}

fn slow_host(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    if load.open_loop.is_some() || load.completion.is_some() {
        return None;
    }
    let mut rates: Vec<(f64, &HostPart)> = Vec::new();
    for host in seen.trial.hosts.iter().filter(|host| host.clients > 0) {
        rates.push((host.replies? as f64 / f64::from(host.clients), host));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (slowest, host) = *rates.first()?;
    let (usual, other) = *rates.get(rates.len() / 2).filter(|_| rates.len() > 1)?;
    let is_slow = host.served == Some(host.clients)
        && other.replies >= Some(SLOW_HOST_REPLIES)
        && slowest < SLOW * usual;
    is_slow.then(|| {
        let text = format!(
            "each client on {} had {:.0} % of the replies of one on {}",
            host.label(),
            slowest / usual * 100.0,
            other.label()
        );
        text.into()
    })
}

fn behind_schedule(seen: &Observed<'_>) -> Option<Evidence> {
    let open = seen.load.open_loop.as_ref()?;
    let late = seen.load.lateness.as_ref()?;
    let gap_us = seen.load.window.duration_s * 1e6 / open.due.max(1) as f64;
    // A request that waited for a client is late because of the server.
    let by_generator = open.waited as f64 <= open.due as f64 * WAITED;
    (by_generator && late.p90_us > LATE_US.max(gap_us)).then(|| {
        let text = format!(
            "requests were sent late although clients were idle: p50 {}, p90 {}",
            format::time(late.p50_us),
            format::time(late.p90_us)
        );
        let is_much = late.p50_us > MOST_LATE_US.max(MOST_LATE_GAPS * gap_us);
        Evidence::from(text).severe(Severity::Invalid, is_much)
    })
}

fn silent_worker(seen: &Observed<'_>) -> Option<Evidence> {
    let silent = seen.load.silent_threads;
    (seen.is_paced_by_server() && silent > 0).then(|| {
        let text = format!(
            "{silent} of {} load threads got no reply",
            seen.load.threads
        );
        text.into()
    })
}
