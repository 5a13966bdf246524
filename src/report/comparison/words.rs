//! A pair in a sentence.

use super::pair::{Measured, Pair, Word};
use crate::report::format::{counted, list};
use crate::stats::Interval;

/// "With 50 clients, node serves 0.42 (0.40–0.45) times the requests a second of nginx ..."
pub(super) fn sentence(pair: &Pair) -> String {
    let (server, reference) = (&pair.server, &pair.reference);
    let with = format!("With {}", counted(pair.clients, "client"));
    if let Some(why) = &pair.not_compared {
        return format!("{with}, {server} and {reference} are not compared: {why}.");
    }
    let mut clauses = clauses(pair);
    let level: Vec<String> = names(pair, Word::NotDistinguishable);
    let mut text = match (clauses.as_slice(), level.as_slice()) {
        ([], []) => format!("{with}, nothing of {server} and {reference} can be compared"),
        ([], level) => format!(
            "{with}, {server} and {reference} cannot be told apart: neither in {}",
            list(level).replace(" and ", " nor in ")
        ),
        (_, level) => {
            if !level.is_empty() {
                clauses.push(format!("{} cannot be told apart", list(level)));
            }
            format!("{with}, {}", clauses.join("; "))
        }
    };
    text.push('.');
    let withheld = pair.measures.iter();
    let withheld = withheld.filter(|m| m.verdict == Word::Withheld && m.name != "clients_per_s");
    for measured in withheld {
        if let (Some(why), Some(_), Some(_)) = (&measured.why, measured.value, measured.reference) {
            let mut noun = noun(measured);
            noun[..1].make_ascii_uppercase();
            text += &format!(" {noun} {} not compared: {why}.", is_or_are(measured));
        }
    }
    text
}

/// What can be told apart, one clause for each kind of measure.
fn clauses(pair: &Pair) -> Vec<String> {
    let told = |name: &str| {
        let told_apart = |m: &&Measured| matches!(m.verdict, Word::Better | Word::Worse);
        pair.measures
            .iter()
            .find(|m| m.name == name)
            .filter(told_apart)
    };
    let mut clauses = Vec::new();
    let server = &pair.server;
    let reference = &pair.reference;
    let mut named = false;
    if let Some(times) = told("completion").and_then(|m| m.ratio) {
        let times = ratio(&times);
        clauses.push(format!(
            "{server} takes {times} times as long as {reference} until all clients are done"
        ));
        named = true;
    }
    let rates: Vec<String> = [
        ("replies_per_s", "the requests a second"),
        ("replies_per_cpu_s", "the requests per CPU-second"),
    ]
    .into_iter()
    .filter_map(|(name, what)| Some(format!("{} times {what}", ratio(&told(name)?.ratio?))))
    .collect();
    if !rates.is_empty() {
        let who = if named { "it" } else { server.as_str() };
        let of = of(&clauses, reference);
        clauses.push(format!("{who} serves {}{of}", list(&rates)));
        named = true;
    }
    for (kind, percentiles) in [
        ("service", ["p50", "p99"]),
        ("response", ["response_p50", "response_p99"]),
        ("job", ["job_p50", "job_p99"]),
    ] {
        let times: Vec<String> = percentiles
            .into_iter()
            .filter_map(|name| {
                let at = name.rsplit('_').next().unwrap_or(name);
                Some(format!(
                    "{} times as long at {at}",
                    ratio(&told(name)?.ratio?)
                ))
            })
            .collect();
        if !times.is_empty() {
            let whose = whose(server, &mut named);
            let of = if clauses.is_empty() {
                format!(" as that of {reference}")
            } else {
                String::new()
            };
            clauses.push(format!("{whose} {kind} time is {}{of}", list(&times)));
        }
    }
    if let Some(ratio_of_memory) = told("memory").and_then(|m| m.ratio) {
        let who = if named { "it" } else { server.as_str() };
        let of = of(&clauses, reference);
        let times = ratio(&ratio_of_memory);
        clauses.push(format!("{who} uses {times} times the memory{of}"));
        named = true;
    }
    if let Some(jain) = told("jain") {
        let [before, now, ..] = jain.cells();
        let whose = whose(server, &mut named);
        clauses.push(format!(
            "{whose} clients are served {} evenly (Jain's index {now}, and {before} of {reference})",
            if jain.verdict == Word::Better { "more" } else { "less" }
        ));
    }
    clauses
}

/// Of whom a first clause has so many times as much; those after it need not say it again.
fn of(clauses: &[String], reference: &str) -> String {
    if clauses.is_empty() {
        format!(" of {reference}")
    } else {
        String::new()
    }
}

fn whose(server: &str, named: &mut bool) -> String {
    if std::mem::replace(named, true) {
        "its".to_owned()
    } else {
        format!("{server}'s")
    }
}

/// The measures with this verdict: "service time (p50, p99)".
fn names(pair: &Pair, word: Word) -> Vec<String> {
    let of = |m: &&Measured| m.verdict == word;
    let mut names: Vec<String> = Vec::new();
    for (kind, prefix) in [
        ("service time", "p"),
        ("response time", "response_p"),
        ("job time", "job_p"),
    ] {
        let percentiles: Vec<&str> = pair
            .measures
            .iter()
            .filter(of)
            .filter_map(|m| m.name.strip_prefix(prefix))
            .collect();
        if !percentiles.is_empty() {
            names.push(format!("{kind} (p{})", percentiles.join(", p")));
        }
    }
    let others = pair
        .measures
        .iter()
        .filter(of)
        .filter(|m| !m.name.contains("p50") && !m.name.contains("p99"));
    // What tells of speed comes first, as in the tables. Fairness that is alike need not be told, and
    // clients a second are told by their time, the mean of some requests by that of all.
    let untold = ["jain", "clients_per_s", "service_sample"];
    let (first, last): (Vec<&Measured>, Vec<&Measured>) = others
        .filter(|m| !untold.contains(&m.name))
        .partition(|m| m.name.starts_with("replies") || m.name == "completion");
    let nouns = |all: Vec<&Measured>| all.into_iter().map(noun).collect::<Vec<_>>();
    [nouns(first), names, nouns(last)].concat()
}

/// A measure in a sentence.
pub(super) fn noun(measured: &Measured) -> String {
    match measured.name {
        "replies_per_s" => "requests a second".to_owned(),
        "replies_per_cpu_s" => "requests per CPU-second".to_owned(),
        "memory" => "memory".to_owned(),
        "jain" => "fairness".to_owned(),
        "completion" => "completion time".to_owned(),
        "clients_per_s" => "clients done a second".to_owned(),
        "service_sample" => "mean service time of 50 requests".to_owned(),
        name => match name.split_once('_') {
            Some((kind, at)) => format!("{kind} time at {at}"),
            None => format!("service time at {name}"),
        },
    }
}

fn is_or_are(measured: &Measured) -> &'static str {
    if measured.name.starts_with("replies") {
        "are"
    } else {
        "is"
    }
}

/// "1.52 (1.47–1.58)".
pub(super) fn ratio(ratio: &Interval) -> String {
    // As many as tell a narrow interval's ends from 1.
    let narrow = ratio.high - ratio.low < 0.05;
    let decimals = match ratio.estimate {
        ..0.01 => 4,
        ..0.1 => 3,
        0.98..1.02 if narrow => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!(
        "{:.decimals$} ({:.decimals$}–{:.decimals$})",
        ratio.estimate, ratio.low, ratio.high
    )
}
