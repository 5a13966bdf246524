//! The answer in words: which server is fastest, cheapest and fairest, and which differences are not significant.
//!
//! Never ranked: servers that did not serve every client, unusable runs (see [`crate::grade`]), and rates limited by the
//! load generator, except that they are higher than the rate of a slower server.

mod at_load;
mod caveats;
mod completion;
mod first;
mod measure;
mod paced;
mod scalability;

use std::fmt::Write as _;

use serde::Serialize;

use super::comparison::ranking::{AS_FAST, Ranking, from_best};
use super::comparison::size::percent;
use super::comparison::{Comparison, Pair};
use super::grade::Grade;
use super::limit::Limits;
use super::summary::{Row, Summary};
use caveats::{ceiling, control, held_back, nobody, not_ranked, notes, starved, unserved};
use completion::{connecting, failed};
pub(crate) use first::{Standings, standings};
use measure::{COMPLETION, COST, FAIRNESS, Measure, RATE, all_behind, too_few, value};
use throng_record::format::{capitalized_unless, counted, list, time};
use throng_record::metrics::Better;
use throng_stats::MARGIN;

/// The answer to a study's question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The answer in one short sentence.
    pub first: String,
    /// Sentences for the largest number of clients.
    pub headline: Vec<String>,
    /// Shorter sentences for the other numbers of clients.
    pub others: Vec<String>,
    /// Caveats about both.
    pub notes: Vec<String>,
    /// Whether `first` is a shorter form of the first sentence of `headline`.
    #[serde(skip)]
    is_short: bool,
}

impl Answer {
    /// Answers from the numbers of a run, as far as its grade allows.
    pub fn of(summary: &Summary, comparison: &Comparison, grade: &Grade) -> Self {
        let Some((&largest, others)) = summary.clients.split_last() else {
            let none = "No trial has finished yet.".to_owned();
            return Self {
                first: none.clone(),
                headline: vec![none],
                ..Self::default()
            };
        };
        if !grade.is_usable() {
            return Self::without_ranking(summary, comparison, grade);
        }
        let held_back = held_back(summary, largest);
        // A server by itself is judged by conditions alone.
        let is_paired = comparison.all_pairs().any(|pair| pair.clients == largest);
        let mut answer = if is_paired {
            Self::of_pairs(summary, comparison, largest)
        } else {
            Self::of_rankings(summary, comparison, largest, others)
        };
        answer.first = led_by(&answer.first, &held_back);
        let second = answer.headline.len().min(1);
        answer.headline.splice(second..second, held_back);
        answer
    }

    /// Answers which servers are best.
    fn of_rankings(
        summary: &Summary,
        comparison: &Comparison,
        largest: u32,
        others: &[u32],
    ) -> Self {
        let mut sentences = headline(summary, comparison, largest);
        sentences.extend(at_load::sentences(summary));
        sentences.extend(scalability::sentences(summary));
        sentences.extend(failed(summary, largest));
        sentences.extend(connecting(summary));
        let each = others.iter().rev();
        Self {
            first: first::of_run(summary, comparison, largest),
            headline: sentences,
            others: each
                .map(|clients| brief(summary, comparison, *clients))
                .collect(),
            notes: notes(summary),
            is_short: false,
        }
    }

    /// Answers how servers differ from what they are compared with.
    fn of_pairs(summary: &Summary, comparison: &Comparison, largest: u32) -> Self {
        let mut pairs: Vec<&Pair> = comparison.all_pairs().collect();
        // The largest difference first.
        pairs.sort_by(|one, other| {
            let by_clients = other.clients.cmp(&one.clients);
            by_clients.then(first::weight(other).total_cmp(&first::weight(one)))
        });
        let (most, fewer): (Vec<&Pair>, Vec<&Pair>) =
            pairs.into_iter().partition(|pair| pair.clients == largest);
        let sentences = |some: Vec<&Pair>| -> Vec<String> {
            some.iter().map(|pair| pair.sentence.clone()).collect()
        };
        let mut headline = sentences(most);
        headline.extend(at_load::sentences(summary));
        headline.extend(starved(&summary.rows_at(largest).collect::<Vec<_>>()));
        headline.extend(ceiling(summary, largest));
        let control = summary.checks_at(largest).and_then(control);
        Self {
            is_short: comparison.leading_pairs(largest).len() == 1,
            first: first::of_comparison(summary, comparison, largest),
            headline,
            others: sentences(fewer),
            notes: [
                control.into_iter().collect(),
                notes(summary),
                comparison.notes(),
            ]
            .concat(),
        }
    }

    /// For an unusable run: which clients were not served.
    fn without_ranking(summary: &Summary, comparison: &Comparison, grade: &Grade) -> Self {
        let largest = summary.clients.last().copied().unwrap_or(0);
        let cause = grade.cause().unwrap_or("nothing was measured");
        let with = format!("With {}", counted(largest, "client"));
        let none = match summary.servers.len() {
            1 => "no result",
            _ if comparison.requested().is_some() => "no verdict",
            _ => "no ranking",
        };
        let first = format!("{with}, {none}: the run is unusable");
        let mut headline = vec![format!("{first} ({cause}).")];
        // The fault of a server by itself is the cause.
        if summary.rows.len() != 1 || summary.rows[0].fault().is_none() {
            headline.extend(unserved(summary, largest));
        }
        headline.extend(failed(summary, largest));
        headline.extend(connecting(summary));
        Self {
            first: first + ".",
            headline,
            others: Vec::new(),
            notes: notes(summary),
            is_short: true,
        }
    }

    /// Answers what the limits of servers are.
    pub(super) fn of_limits(limits: &Limits) -> Self {
        let headline = limits.sentences();
        Self {
            first: headline.first().cloned().unwrap_or_default(),
            headline,
            ..Self::default()
        }
    }

    /// Whether its first sentence says more than the start of the headline.
    pub(crate) fn is_led(&self) -> bool {
        let follows = self.headline.first();
        !self.is_short && follows.is_some_and(|next| *next != self.first)
    }

    /// All sentences in reading order.
    pub fn sentences(&self) -> impl Iterator<Item = &str> {
        self.headline
            .iter()
            .chain(&self.others)
            .chain(&self.notes)
            .map(String::as_str)
    }
}

/// The first sentence, and the sentences without which it would mislead.
fn led_by(first: &str, held_back: &[String]) -> String {
    let sentences: Vec<&str> = std::iter::once(first)
        .chain(held_back.iter().map(String::as_str))
        .collect();
    sentences.join(" ")
}

fn headline(summary: &Summary, comparison: &Comparison, clients: u32) -> Vec<String> {
    let ranked = ranked_rows(summary, clients);
    let with = format!("With {}", counted(clients, "client"));
    let names: Vec<&str> = summary.servers.iter().map(String::as_str).collect();
    let mut sentences: Vec<String> = Vec::new();
    match ranked.as_slice() {
        [] => sentences.push(nobody(&with, summary, clients)),
        [only] => sentences.push(alone(&with, only, summary.rows_at(clients).count())),
        _ => {
            // Servers that keep up with the pace of the load are equally fast.
            let kept = paced::sentence(&ranked);
            let by_speed = of_speed(comparison, clients, &ranked);
            let by = |measure| Some((measure, of_several(comparison, clients, measure)?));
            let rankings = [
                by_speed.filter(|_| kept.is_none()),
                by(&COST),
                by(&FAIRNESS),
            ];
            // Rankings come before withheld ones.
            let is_withheld = kept.is_none() && by_speed.is_none();
            let withheld = rate_withheld(&ranked).filter(|_| is_withheld);
            sentences.extend(kept);
            for (measure, ranking) in rankings.into_iter().flatten() {
                // Only in the first sentence.
                let not_ranked_too = too_few(ranking).filter(|_| sentences.is_empty());
                let sentence_of_ranking = sentence(ranking, measure);
                sentences.push(sentence_of_ranking + &not_ranked_too.unwrap_or_default());
            }
            sentences.extend(withheld);
            for (index, text) in sentences.iter_mut().enumerate() {
                *text = match index {
                    0 => format!("{with}, {text}"),
                    _ => capitalized_unless(text, &names),
                };
            }
        }
    }
    sentences.extend(starved(&ranked));
    sentences.extend(ceiling(summary, clients));
    sentences.extend(summary.checks_at(clients).and_then(control));
    sentences.extend(summary.rows_at(clients).filter_map(not_ranked));
    sentences
}

/// One sentence for a number of clients that is not the largest.
fn brief(summary: &Summary, comparison: &Comparison, clients: u32) -> String {
    let ranked = ranked_rows(summary, clients);
    let with = format!("With {}", counted(clients, "client"));
    let mut parts = Vec::new();
    match ranked.as_slice() {
        [] => parts.push("no server served all of them".to_owned()),
        [only] => parts.push(format!("only {} served all of them", only.server)),
        _ => {
            if let Some(kept) = paced::short(&ranked) {
                parts.push(kept);
            } else if let Some((measure, ranking)) = of_speed(comparison, clients, &ranked) {
                parts.push(short(ranking, measure));
            } else if !limited(&ranked).is_empty() {
                let (what, _) = pace(&ranked).limited;
                parts.push(format!(
                    "the load generator was the limit, so {what} are not ranked"
                ));
            }
            parts.extend(of_several(comparison, clients, &COST).map(|r| short(r, &COST)));
        }
    }
    let mut text = format!("{with}, {}.", parts.join("; "));
    let left_out: Vec<String> = summary
        .rows_at(clients)
        .filter(|row| !row.is_ranked())
        .map(|row| {
            let why = row.served_in_words().or_else(|| row.not_comparable());
            format!("{} ({})", row.server, why.as_deref().unwrap_or("failed"))
        })
        .collect();
    if !left_out.is_empty() && !ranked.is_empty() {
        let _ = write!(text, " Not ranked: {}.", list(&left_out));
    }
    text
}

/// The measure of speed: completion time if each client has a job, else throughput.
fn pace(rows: &[&Row]) -> &'static Measure {
    if rows.iter().any(|row| row.completion.is_some()) {
        &COMPLETION
    } else {
        &RATE
    }
}

/// The fastest server with `clients` clients.
pub(crate) fn leader(summary: &Summary, clients: u32) -> Option<&str> {
    let rows = ranked_rows(summary, clients);
    let best = from_best(&rows, pace(&rows).metric());
    best.first().map(|best| best.server.as_str())
}

/// Rows that served every client as expected in every good trial.
fn ranked_rows(summary: &Summary, clients: u32) -> Vec<&Row> {
    summary
        .rows_at(clients)
        .filter(|row| row.is_ranked())
        .collect()
}

/// The ranking of at least two servers by a measure.
fn of_several<'a>(
    comparison: &'a Comparison,
    clients: u32,
    measure: &Measure,
) -> Option<&'a Ranking> {
    let found = comparison.ranking(clients, measure.metric);
    found.filter(|ranking| ranking.places.len() > 1)
}

/// The ranking by speed. If the load generator was the limit, only if a server is slower all the same.
fn of_speed<'a>(
    comparison: &'a Comparison,
    clients: u32,
    rows: &[&Row],
) -> Option<(&'static Measure, &'a Ranking)> {
    let measure = pace(rows);
    let ranking = of_several(comparison, clients, measure)?;
    let is_known = limited(rows).is_empty() || ranking.is_decided();
    is_known.then_some((measure, ranking))
}

/// "epoll is fastest", or "epoll and select are as fast as the load generator".
fn best_is(ranking: &Ranking, measure: &Measure) -> String {
    match ranking.limited().as_slice() {
        [] | [_] => format!("{} {}", ranking.best().server, measure.superlative),
        several => format!("{} are {AS_FAST}", list(several)),
    }
}

fn sentence(ranking: &Ranking, measure: &Measure) -> String {
    let best = measure.words(ranking.best().value);
    let name = &ranking.best().server;
    let mut text = if ranking.is_decided() {
        format!("{}: {best}", best_is(ranking, measure))
    } else {
        format!(
            "no significant difference in {} (best median: {name}, {best})",
            measure.noun
        )
    };
    // The second best and the worst, or the only server behind.
    let behind_best = ranking.behind();
    let next = behind_best.first();
    let worst = behind_best.last().filter(|_| behind_best.len() > 1);
    let named: Vec<_> = next.into_iter().chain(worst).copied().collect();
    if !named.is_empty() {
        let _ = write!(text, "; {}", all_behind(&named, measure));
    }
    text.push('.');
    if !ranking.equivalent().is_empty() {
        let within = percent_of_margin();
        let _ = write!(
            text,
            " Equivalent to {name} within {within}: {}.",
            list(&ranking.equivalent())
        );
    }
    if !ranking.inconclusive().is_empty() {
        let all: Vec<String> = ranking
            .inconclusive()
            .into_iter()
            .map(|(server, seen)| format!("{server} ({} or more would show)", percent(seen)))
            .collect();
        let _ = write!(
            text,
            " No significant difference from {name}: {}.",
            list(&all)
        );
    }
    text
}

fn percent_of_margin() -> String {
    format!("{:.0} %", 100.0 * MARGIN)
}

fn short(ranking: &Ranking, measure: &Measure) -> String {
    let best = measure.words(ranking.best().value);
    if !ranking.is_decided() {
        return format!(
            "no significant difference in {} (best median: {}, {best})",
            measure.noun,
            ranking.best().server
        );
    }
    let level = match ranking.equivalent().as_slice() {
        [] => String::new(),
        equivalent => format!(", equivalent: {}", list(equivalent)),
    };
    format!("{} ({best}{level})", best_is(ranking, measure))
}

fn alone(with: &str, row: &Row, servers: usize) -> String {
    let server = &row.server;
    let does = match (servers, &row.completion) {
        (0 | 1, None) => format!("{server} serves"),
        (0 | 1, Some(_)) => format!("{server} finishes in"),
        (_, None) => format!("only {server} served all of them:"),
        (_, Some(_)) => format!("only {server} finished all of them:"),
    };
    let measure = pace(&[row]);
    // The load generator was the limit.
    let bound = match measure.metric().better {
        _ if !row.client_limited() => "",
        Better::Higher => "at least ",
        _ => "at most ",
    };
    let mut text = format!("{with}, {does} {bound}{}", value(row, measure));
    if COST.of(row).is_some() {
        let _ = write!(text, " at {} of CPU per request", value(row, &COST));
    }
    if let Some(p99_us) = row.value("latency_p99_us") {
        let _ = write!(text, ", with a p99 latency of {}", time(p99_us));
    }
    text + "."
}

fn limited<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    rows.iter()
        .filter(|row| row.client_limited())
        .map(|row| row.server.as_str())
        .collect()
}

fn rate_withheld(rows: &[&Row]) -> Option<String> {
    let limited = limited(rows);
    if limited.is_empty() {
        return None;
    }
    let who = if limited.len() == rows.len() {
        "every server".to_owned()
    } else {
        list(&limited)
    };
    let (what, bound) = pace(rows).limited;
    Some(format!(
        "the load generator was the limit for {who}: the {what} are {bound} bounds and are not ranked."
    ))
}

#[cfg(test)]
mod tests {
    use crate::{Logs, Report, fixture};
    use throng_record::Trial;

    fn answer(change: impl Fn(&mut Trial)) -> String {
        let (run, mut trials) = fixture::record();
        trials.iter_mut().for_each(change);
        fixture::examine(&run, &mut trials);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        report.answer.sentences().collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn of_a_whole_record() {
        insta::assert_snapshot!(answer(|_| ()));
    }

    #[test]
    fn rates_are_withheld_when_the_load_generator_was_the_limit() {
        let text = answer(fixture::limit_by_clients);
        assert!(
            text.contains("The load generator was the limit for every server"),
            "{text}"
        );
        assert!(!text.contains("is fastest"), "{text}");
        assert!(text.contains("uses the least CPU"), "{text}");
    }

    #[test]
    fn servers_faster_than_the_load_generator_are_as_fast_as_it_and_others_slower() {
        let text = answer(|trial| {
            if ["epoll", "epoll-et", "io-uring"].contains(&trial.server.as_str()) {
                fixture::limit_by_clients(trial);
            }
        });
        let expected = "are as fast as the load generator";
        assert!(
            text.contains(expected) && text.contains("is at least"),
            "{text}"
        );
        assert!(!text.contains("are not ranked"), "{text}");
    }

    #[test]
    fn the_rate_of_a_full_server_is_its_own_even_if_the_clients_are_full_too() {
        let text = answer(|trial| {
            for side in [&mut trial.client_side, &mut trial.server_side] {
                let metrics = &mut side.as_mut().unwrap().metrics;
                metrics.insert("cpu_percent".to_owned(), 100.0);
            }
        });
        assert!(!text.contains("the load generator was the limit"), "{text}");
        assert!(text.contains("is fastest"), "{text}");
    }

    #[test]
    fn a_side_that_was_not_measured_limits_nothing_and_is_not_ranked() {
        let text = answer(|trial| {
            trial.server_side = None;
            trial.client_side = None;
        });
        assert!(
            text.contains("is fastest") && !text.contains("uses the least CPU"),
            "{text}"
        );
    }

    #[test]
    fn unusable_data_is_not_ranked_and_the_unserved_are_still_named() {
        let text = answer(|trial| {
            let network = trial.network.get_or_insert_default();
            network
                .metrics
                .insert("machine_busy_percent".to_owned(), 350.0);
        });
        let start = "With 1,000 clients, no ranking: the run is unusable (other processes used";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("iterative served 1 of 1,000"), "{text}");
        for ranking in ["is fastest", "least CPU", "is fairest", "grows as"] {
            assert!(!text.contains(ranking), "{text}");
        }
    }

    #[test]
    fn few_trials_rank_nothing() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.round < 5);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let text: String = report.answer.sentences().collect();
        assert!(
            text.contains("no significant difference in throughput")
                && text.contains("Not ranked (fewer than 6 trials): ")
                && !text.contains("is fastest"),
            "{text}"
        );
    }
}
