//! The result of a load as blocks.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use hdrhistogram::Histogram;

use super::targets;
use super::watch::ServerUse;
use crate::load::Plan;
use crate::record::format;
use crate::record::{
    Ceiling, Completion, Finding, Latency, Load, OpenLoop, SessionStep, Sessions, TlsFigures,
    WarmUp, measurable,
};
use crate::report::document::{Block, Cell, Column, Role, Row, Table, Text, Tone};

/// The whole result.
pub(super) fn describe(
    plan: &Plan,
    load: &Load,
    server: Option<&ServerUse>,
    findings: &[Finding],
) -> Vec<Block> {
    let cpus = super::cpus(plan);
    let threads = match load.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let title = format!(
        "{} on {}, {}{}; the load generator: {threads}, {}",
        format::counted(load.clients, "client"),
        targets(plan),
        plan.dialogue.describe(&plan.settings),
        if plan.tls.is_some() { " over TLS" } else { "" },
        load.engine
    );
    let facts = lines(load, server, cpus)
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let mut blocks = vec![Block::paragraph(Role::Lead, answer(load))];
    blocks.extend(findings.iter().map(Block::of_finding));
    blocks.extend([Block::Heading(title.into()), Block::Facts(facts.collect())]);
    blocks.extend(distribution(load).map(Block::Table));
    blocks.extend(
        load.sessions
            .as_deref()
            .map(|sessions| Block::Table(steps(sessions))),
    );
    blocks
}

/// Edges of a distribution within a power of ten, from fine to coarse.
const EDGES: [&[f64]; 3] = [&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0]];
/// Maximum number of rows of a distribution, if edges can be so coarse.
const MOST_ROWS: usize = 12;

/// How many replies took how long: response times in an open loop, otherwise latencies.
fn distribution(load: &Load) -> Option<Table> {
    let (title, latency) = match &load.open_loop {
        Some(open) => ("Response time up to", open.response_time.as_ref()?),
        None => ("Latency up to", load.service_time.as_ref()?),
    };
    let times = latency.times().ok()?;
    let by_edges = EDGES.map(|edges| bins(&times, edges));
    let fits = by_edges.iter().find(|bins| bins.len() <= MOST_ROWS);
    let bins = fits.unwrap_or(&by_edges[2]);
    let most = bins
        .iter()
        .map(|bin| bin.1)
        .max()
        .filter(|most| *most > 0)? as f64;
    let row = |&(until_us, count): &(f64, u64)| {
        let share = format::valued(count as f64 / latency.count as f64 * 100.0, Some("%"));
        let cells = [
            Cell::plain(format::whole(count as f64)),
            Cell {
                text: share,
                bar: Some(count as f64 / most),
                ..Cell::default()
            },
        ];
        Row::of(format::time(until_us), cells.to_vec())
    };
    let columns = [title, "Replies", "Share"].map(Column::number);
    let rows = bins.iter().map(row).collect();
    Some(Table::of("Distribution of times", columns.to_vec(), rows))
}

/// The number of times up to each edge in microseconds, and above the one before.
fn bins(times: &Histogram<u64>, edges: &[f64]) -> Vec<(f64, u64)> {
    let mut bins: Vec<(f64, u64)> = Vec::new();
    let all = (0..).flat_map(|power| edges.iter().map(move |edge| edge * 10_f64.powi(power)));
    let mut next_edges = all.peekable();
    for step in times.iter_recorded() {
        let time = step.value_iterated_to() as f64 / 1e3;
        if bins.is_empty() {
            while next_edges.next_if(|edge| *edge < time).is_some() {}
        }
        while bins.last().is_none_or(|(edge, _)| *edge < time) {
            bins.extend(next_edges.next().map(|edge| (edge, 0)));
        }
        if let Some((_, count)) = bins.last_mut() {
            *count += step.count_since_last_iteration();
        }
    }
    bins
}

/// A row for each step of a session.
fn steps(sessions: &Sessions) -> Table {
    let values = ["Replies/s", "p50", "p99", "Failed"].map(Column::number);
    let columns = [Column::text("Step")].into_iter().chain(values).collect();
    let row = |step: &SessionStep| {
        let times = step.service_time.as_ref();
        let failed = match step.slow {
            0 => format::whole(step.failed as f64),
            slow => format!(
                "{} ({} too slow)",
                format::whole(step.failed as f64),
                format::whole(slow as f64)
            ),
        };
        let cells = [
            format::or_absent(step.per_s, format::number),
            format::or_absent(times.map(|times| times.p50_us), format::time),
            format::or_absent(times.and_then(|times| times.p99_us), format::time),
            failed,
        ];
        Row::of(step.name.clone(), cells.map(Cell::plain).to_vec())
    };
    let rows = sessions.steps.iter().map(row).collect();
    Table::of("Steps", columns, rows)
}

/// "1,200 complete, 120/s, 3 failed".
fn sessions(sessions: &Sessions) -> String {
    let whole = |count: u64| format::whole(count as f64);
    let rate = sessions
        .per_s
        .map(|rate| format!(", {}/s", format::number(rate)));
    format!(
        "{} complete{}, {} failed",
        whole(sessions.completed),
        rate.unwrap_or_default(),
        whole(sessions.failed)
    )
}

/// The result in one line: "82,500 requests/s from 50 of 50 clients, p50 302 µs, p99 6.51 ms, no errors".
fn answer(load: &Load) -> Text {
    let replies = match load.window.replies_per_s {
        Some(rate) => format!("{} requests/s", format::number(rate)),
        None => format!("{} replies", format::whole(load.window.replies as f64)),
    };
    let flow = load.sessions.as_ref().and_then(|sessions| sessions.per_s);
    let done = match flow {
        Some(rate) => format!("{} sessions/s, {replies}", format::number(rate)),
        None => replies,
    };
    let mut text = format!(
        "{done} from {} of {} clients",
        format::whole(load.served.into()),
        format::whole(load.clients.into())
    );
    let open = load.open_loop.as_ref();
    let latency = open.map_or(&load.service_time, |open| &open.response_time);
    if let Some(latency) = latency {
        let p99 = format::or_absent(latency.p99_us, format::time);
        let _ = write!(text, ", p50 {}, p99 {p99}", format::time(latency.p50_us));
    }
    let count: u64 = load.errors.values().sum();
    let mut errors = match count {
        0 => "no errors".to_owned(),
        1 => "1 error".to_owned(),
        count => format!("{} errors", format::whole(count as f64)),
    };
    if load.left > 0 {
        let [left, asked] =
            [load.left, load.asked()].map(|requests| format::whole(requests as f64));
        let _ = write!(errors, ", {left} of {asked} requests never sent");
    }
    let what = match load.sessions {
        Some(_) => "replies failed their step",
        None => "with an unexpected status",
    };
    let wrong = load.unexpected();
    if wrong > 0 {
        let _ = write!(errors, ", {} {what}", format::whole(wrong as f64));
    }
    let tone = if count + load.left + wrong == 0 {
        Tone::Good
    } else {
        Tone::Bad
    };
    Text::from(format!("{text}, ")).toned(errors, tone)
}

fn lines(load: &Load, server: Option<&ServerUse>, cpus: usize) -> Vec<(&'static str, String)> {
    let mut lines = vec![("clients", clients(load))];
    let flow = load.sessions.as_deref();
    lines.extend(flow.map(|flow| ("sessions", sessions(flow))));
    let jobs = load.completion.as_deref();
    lines.extend(jobs.into_iter().flat_map(|jobs| completion(load, jobs)));
    if !load.errors.is_empty() {
        lines.push(("errors", errors(load)));
    }
    lines.extend(load.warm_up.map(|took| ("warm-up", warm_up(took))));
    lines.extend(of_replies(load));
    let window = &load.window;
    if let Some(rate) = window.replies_per_s {
        lines.push(("rate", format!("{}/s", format::number(rate))));
        let megabytes = |bytes: u64| format::number(bytes as f64 / 1e6 / window.duration_s);
        let (sent, received) = (
            megabytes(window.bytes_sent),
            megabytes(window.bytes_received),
        );
        let text = format!("{sent} MB/s sent, {received} MB/s received");
        lines.push(("throughput", text));
    }
    if let Some(open) = &load.open_loop {
        lines.push(("due", due(open)));
    }
    let tls = load.tls.as_deref();
    lines.extend(tls.map(handshakes));
    // In a closed loop no other latency exists.
    let (of_service, response_time) = match &load.open_loop {
        Some(open) => ("service time", Some(&open.response_time)),
        None => ("latency", None),
    };
    let probe = load.probe.as_ref();
    for (name, latency) in [
        ("session time", flow.map_or(&None, |flow| &flow.time)),
        ("response time", response_time.unwrap_or(&None)),
        (of_service, &load.service_time),
        ("lateness", &load.lateness),
        ("connect time", &load.connect_time),
        ("handshake", tls.map_or(&None, |tls| &tls.handshake_time)),
        ("job time", jobs.map_or(&None, |jobs| &jobs.job_time)),
        ("first reply", &load.first_reply),
        (
            "probe clients",
            probe.map_or(&None, |probe| &probe.response_time),
        ),
    ] {
        if let Some(latency) = latency {
            lines.push((name, percentiles(latency)));
        }
    }
    if let Some(fairness) = &load.fairness {
        let [min, max] = [fairness.min, fairness.max].map(|count| format::whole(count as f64));
        let mut spread = format!("{min} to {max} replies each, ");
        spread += &if fairness.has_enough() {
            format!(
                "Jain's index {:.4}, {} starved",
                fairness.jain, fairness.starved
            )
        } else {
            "too few to judge (at least 20 on average)".to_owned()
        };
        lines.push(("fairness", spread));
    }
    if let Some(share) = cpu_share(load, cpus) {
        let of = match cpus {
            1 => "its CPU".to_owned(),
            _ => format!("its {cpus} CPUs"),
        };
        lines.push(("client", format!("{:.0} % of {of} used", share * 100.0)));
    }
    if let Some(server) = server {
        let mut used = format!("{:.0} % of a CPU used", server.cpus * 100.0);
        if let Some(time) = server.us_per_request {
            let _ = write!(used, ", {} per request", format::time(time));
        }
        lines.push(("server", used));
    }
    if let Some(ceiling) = &load.ceiling {
        lines.push(("ceiling", ceiling_line(ceiling)));
    }
    lines
}

/// Formats a number of bytes; a small one is shown exactly.
fn whole_bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        _ => format::bytes(bytes as f64),
    }
}

/// The number of replies, and their statuses and sizes.
fn of_replies(load: &Load) -> Vec<(&'static str, String)> {
    let mut lines = vec![("replies", replies(load))];
    if !load.statuses.is_empty() {
        lines.push(("status", list_by_kind(&load.statuses)));
    }
    if let Some(bytes) = load.reply_bytes.filter(|bytes| bytes.min < bytes.max) {
        let [min, p50, p99, max] = [bytes.min, bytes.p50, bytes.p99, bytes.max].map(whole_bytes);
        let sizes = format!("{min} to {max}, p50 {p50}, p99 {p99}");
        lines.push(("reply body", sizes));
    }
    for (name, counts) in [
        ("unexpected", &load.unexpected),
        ("rejected", &load.rejected),
    ] {
        if !counts.is_empty() {
            let count: u64 = counts.values().sum();
            lines.push((name, format!("{count} of them{}", by_kind(counts))));
        }
    }
    if !load.server_limits.is_empty() {
        let limits = load
            .server_limits
            .iter()
            .map(|(setting, value)| format!("{setting} {value}"));
        lines.push(("server allows", limits.collect::<Vec<_>>().join(", ")));
    }
    lines
}

/// The length of the warm-up, or what was not steady after it.
fn warm_up(warm_up: WarmUp) -> String {
    let took = format::time(warm_up.took_s * 1e6);
    warm_up.fault().unwrap_or(took)
}

fn clients(load: &Load) -> String {
    let [connected, served, never] =
        [load.connected, load.served, load.never_served].map(|count| format::whole(count.into()));
    let mut text = format!("{connected} connected, {served} served, {never} never served");
    if load.connections > u64::from(load.connected) {
        let [all, again] =
            [load.connections, load.reconnects].map(|count| format::whole(count as f64));
        let _ = write!(text, ", over {all} connections ({again} reconnects)");
    }
    text
}

/// The number of handshakes, and what they negotiated.
fn handshakes(tls: &TlsFigures) -> (&'static str, String) {
    let most = tls.negotiated.iter().max_by_key(|(_, count)| **count);
    let mut text = most.map_or_else(|| "no handshakes".to_owned(), |(what, _)| what.clone());
    if tls.negotiated.len() > 1 {
        text += " and others";
    }
    let _ = write!(text, "; {} handshakes", tls.handshakes);
    if tls.resumed > 0 {
        let _ = write!(text, ", {} resumed", tls.resumed);
    }
    if let Some(rate) = tls.handshakes_per_s.filter(|rate| *rate > 0.0) {
        let _ = write!(text, ", {}/s", format::number(rate));
    }
    ("TLS", text)
}

/// The outcome of short-lived clients.
fn completion(load: &Load, jobs: &Completion) -> Vec<(&'static str, String)> {
    let mut done = format!("{} of {} clients", jobs.clients_done, load.clients);
    if let (Some(seconds), Some(rate)) = (jobs.last_done_s, jobs.clients_per_s) {
        let (time, rate) = (format::time(seconds * 1e6), format::number(rate));
        let _ = write!(done, " in {time}, {rate} clients/s");
    }
    if jobs.at_once < load.clients {
        let _ = write!(done, "; at most {} at once", jobs.at_once);
    }
    for (count, what) in [(jobs.failed, "failed"), (jobs.unfinished, "not done")] {
        if count > 0 {
            let _ = write!(done, ", {count} {what}");
        }
    }
    let mut lines = vec![("done", done)];
    if let Some(first) = &jobs.first_failure {
        let how = if first.connected {
            "while connected"
        } else {
            "connecting"
        };
        let (client, time) = (first.client, format::time(first.at_s * 1e6));
        let kind = &first.kind;
        lines.push((
            "first failure",
            format!("client {client} after {time}, {how}: {kind}"),
        ));
    }
    if !jobs.connect_failures.is_empty() {
        let kinds = by_kind(&jobs.connect_failures);
        let count: u64 = jobs.connect_failures.values().sum();
        lines.push(("connecting", format!("{count} attempts failed{kinds}")));
    }
    if let Some(seconds) = jobs.think_s_mean {
        let time = format::time(seconds * 1e6);
        lines.push(("think time", format!("mean {time}")));
    }
    lines
}

fn errors(load: &Load) -> String {
    let kinds = load.errors.iter().map(|(kind, count)| {
        let began = load
            .errors_first_s
            .get(kind)
            .copied()
            .map_or(String::new(), |at| format!(" (since {at:.2} s)"));
        let detail = load
            .error_details
            .get(kind)
            .map_or(String::new(), |detail| format!(": {detail}"));
        format!("{count} {kind}{began}{detail}")
    });
    kinds.collect::<Vec<_>>().join(", ")
}

fn replies(load: &Load) -> String {
    let window = &load.window;
    let [correct, all, counted] =
        [load.verified, load.requests, window.replies].map(|count| format::whole(count as f64));
    format!(
        "{correct} correct of {all} requests; {counted} in {:.2} s",
        window.duration_s
    )
}

fn due(open: &OpenLoop) -> String {
    let whole = |count: u64| format::whole(count as f64);
    let mut text = format!("{} requests", whole(open.due));
    for (count, what) in [
        (open.waited, "waited for a free client"),
        (open.never_sent, "were never sent"),
        (open.unanswered, "had no reply"),
        (open.lost, "lost their connection"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {what}", whole(count));
        }
    }
    text
}

fn percentiles(latency: &Latency) -> String {
    let mut text = format!(
        "p50 {}, p90 {}",
        format::time(latency.p50_us),
        format::time(latency.p90_us)
    );
    for (name, value) in [("p99", latency.p99_us), ("p99.9", latency.p999_us)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {}", format::time(value));
        }
    }
    let _ = write!(text, ", max {}", format::time(latency.max_us));
    text
}

fn ceiling_line(ceiling: &Ceiling) -> String {
    format!(
        "{}/s with the built-in {}, {} µs of CPU per reply; {:.0} % of it reached",
        format::number(ceiling.replies_per_s),
        ceiling.model,
        format::number(ceiling.cpu_us_per_reply),
        ceiling.share * 100.0
    )
}

/// The share of its CPUs that the load's process used in the window.
fn cpu_share(load: &Load, cpus: usize) -> Option<f64> {
    let time_s = measurable(load.window.duration_s)?;
    Some(load.cpu_s? / (time_s * cpus as f64))
}

/// Why clients failed, like ": 3 refused, 1 reset"; empty if none did.
pub(super) fn reasons(load: &Load) -> String {
    let details: Vec<String> = load
        .error_details
        .values()
        .map(|detail| format!("; {detail}"))
        .collect();
    by_kind(&load.errors) + &details.concat()
}

/// Counts by kind, like ": 3 refused, 1 reset"; empty if there are none.
pub(super) fn by_kind(counts: &BTreeMap<String, impl Display>) -> String {
    if counts.is_empty() {
        String::new()
    } else {
        format!(": {}", list_by_kind(counts))
    }
}

/// Counts by kind, like "3 refused, 1 reset".
fn list_by_kind(counts: &BTreeMap<String, impl Display>) -> String {
    let kinds = counts
        .iter()
        .map(|(kind, count)| format!("{} {kind}", format::grouped(&count.to_string())));
    kinds.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of times in microseconds.
    fn histogram(times: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        for time in times {
            histogram.record(time * 1000).unwrap();
        }
        histogram
    }

    #[test]
    fn every_time_is_in_one_bin() {
        let found = bins(&histogram(&[120, 130, 480, 600, 2_900]), EDGES[0]);
        let counts: Vec<u64> = found.iter().map(|bin| bin.1).collect();
        assert_eq!(counts, [2, 0, 0, 1, 1, 0, 0, 0, 1]);
        assert!((found[0].0 - 150.0).abs() < 1e-9 && (found[8].0 - 3000.0).abs() < 1e-9);
        assert_eq!(bins(&histogram(&[]), EDGES[0]), []);
    }

    #[test]
    fn a_wide_distribution_has_coarse_bins() {
        let times = histogram(&[20, 20_000_000]);
        let load = Load {
            service_time: Latency::of(&times),
            ..Load::default()
        };
        let table = distribution(&load).unwrap();
        assert_eq!(table.groups[0].rows.len(), 7);
    }
}
