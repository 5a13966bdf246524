//! A pair in a sentence.

use super::pair::{Measured, Pair, Word, noun, percentile, ratio};
use throng_record::format::{counted, list};

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
    if let Some(times) = told("completion_s").and_then(|m| m.ratio) {
        let times = ratio(&times);
        clauses.push(format!(
            "{server} takes {times} times as long as {reference} until all clients are done"
        ));
        named = true;
    }
    let rates: Vec<String> = [
        ("requests_per_s", "the requests a second"),
        ("requests_per_server_cpu_s", "the requests per CPU-second"),
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
        ("latency", ["latency_p50_us", "latency_p99_us"]),
        ("response time", ["response_p50_us", "response_p99_us"]),
        ("job time", ["job_p50_us", "job_p99_us"]),
    ] {
        let times: Vec<String> = percentiles
            .into_iter()
            .filter_map(|name| {
                let at = percentile(name);
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
            clauses.push(format!("{whose} {kind} is {}{of}", list(&times)));
        }
    }
    if let Some(ratio_of_memory) = told("server_pss_bytes").and_then(|m| m.ratio) {
        let who = if named { "it" } else { server.as_str() };
        let of = of(&clauses, reference);
        let times = ratio(&ratio_of_memory);
        clauses.push(format!("{who} uses {times} times the memory{of}"));
        named = true;
    }
    if let Some(jain) = told("fairness_jain") {
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

/// The measures with this verdict: "latency (p50, p99)".
fn names(pair: &Pair, word: Word) -> Vec<String> {
    let of = |m: &&Measured| m.verdict == word;
    let mut names: Vec<String> = Vec::new();
    for (kind, prefix) in [
        ("latency", "latency_p"),
        ("response time", "response_p"),
        ("job time", "job_p"),
    ] {
        let percentiles: Vec<&str> = pair
            .measures
            .iter()
            .filter(of)
            .filter(|m| m.name.starts_with(prefix))
            .map(|m| percentile(m.name))
            .collect();
        if !percentiles.is_empty() {
            names.push(format!("{kind} ({})", percentiles.join(", ")));
        }
    }
    let others = pair
        .measures
        .iter()
        .filter(of)
        .filter(|m| !is_percentile(m.name));
    // What tells of speed comes first, as in the tables. Fairness that is alike need not be told, and
    // clients a second are told by their time, the mean of some requests by that of all.
    let untold = ["fairness_jain", "clients_per_s", "latency_sample_us"];
    let (first, last): (Vec<&Measured>, Vec<&Measured>) = others
        .filter(|m| !untold.contains(&m.name))
        .partition(|m| m.name.starts_with("requests") || m.name == "completion_s");
    let nouns = |all: Vec<&Measured>| all.into_iter().map(noun).collect::<Vec<_>>();
    [nouns(first), names, nouns(last)].concat()
}

fn is_percentile(name: &str) -> bool {
    name.ends_with("_p50_us") || name.ends_with("_p99_us")
}

fn is_or_are(measured: &Measured) -> &'static str {
    if measured.name.starts_with("requests") {
        "are"
    } else {
        "is"
    }
}
