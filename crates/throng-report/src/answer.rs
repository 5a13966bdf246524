//! The answer in words: who served most, who costs least, who is fairest, and what cannot be said.
//!
//! What is never done: ranking a server that did not serve every client, ranking rates that the
//! load generator limited, or calling one of two better when the trials do not tell them apart.

mod below;
mod completion;
mod paced;
mod ranking;
mod scalability;
mod unserved;

use std::fmt::Write as _;

use serde::Serialize;

use super::checks::Checks;
use super::comparison::{Comparison, Pair};
use super::limit::Limits;
use super::summary::{Row, Summary};
use completion::{connecting, failed};
use ranking::{COMPLETION, COST, FAIRNESS, Measure, RATE, Ranking, rank, value, with_best};
use throng_record::format::{counted, list, number};
use throng_stats::Interval;
use throng_stats::interval::{ENOUGH_TRIALS, false_alarm_rate};
use unserved::{not_ranked, served_of, starved};

/// The answer to a study's question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// For the largest number of clients.
    pub headline: Vec<String>,
    /// Shorter, for the other numbers of clients.
    pub others: Vec<String>,
    /// What limits the trust in both.
    pub notes: Vec<String>,
}

impl Answer {
    /// Answers from the numbers of a run.
    pub fn of(summary: &Summary) -> Self {
        let mut answer = Self {
            headline: Vec::new(),
            others: Vec::new(),
            notes: Vec::new(),
        };
        let Some((largest, others)) = summary.clients.split_last() else {
            answer
                .headline
                .push("No trial has finished, so there is no answer yet.".to_owned());
            return answer;
        };
        answer.headline = headline(summary, *largest);
        answer.headline.extend(below::sentences(summary));
        answer.headline.extend(scalability::sentences(summary));
        answer.headline.extend(failed(summary, *largest));
        answer.headline.extend(connecting(summary));
        answer.others = others
            .iter()
            .rev()
            .map(|clients| brief(summary, *clients))
            .collect();
        answer.notes = notes(summary);
        answer
    }

    /// Answers how servers differ from the one that they are compared with.
    pub(super) fn of_comparison(summary: &Summary, comparison: &Comparison) -> Self {
        let largest = summary.clients.last().copied().unwrap_or(0);
        let (most, fewer): (Vec<&Pair>, Vec<&Pair>) = comparison
            .all_pairs()
            .partition(|pair| pair.clients == largest);
        let sentences = |pairs: Vec<&Pair>| -> Vec<String> {
            pairs.iter().map(|pair| pair.sentence.clone()).collect()
        };
        if most.is_empty() {
            return Self::of(summary); // a server by itself, judged by conditions alone
        }
        let mut headline = sentences(most);
        headline.extend(below::sentences(summary));
        headline.extend(starved(&summary.rows_at(largest).collect::<Vec<_>>()));
        headline.extend(ceiling(summary, largest));
        let noise = summary.checks_at(largest).and_then(noise_floor);
        Self {
            headline,
            others: sentences(fewer),
            notes: [
                noise.into_iter().collect(),
                notes(summary),
                comparison.notes(summary),
            ]
            .concat(),
        }
    }

    /// Answers how much servers hold.
    pub(super) fn of_limits(limits: &Limits) -> Self {
        Self {
            headline: limits.sentences(),
            others: Vec::new(),
            notes: Vec::new(),
        }
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

fn headline(summary: &Summary, clients: u32) -> Vec<String> {
    let ranked = ranked_rows(summary, clients);
    let with = format!("With {}", counted(clients, "client"));
    let mut sentences = Vec::new();
    match ranked.as_slice() {
        [] => sentences.push(format!("{with}, no server served all of them.")),
        [only] => sentences.push(alone(&with, only, summary.rows_at(clients).count())),
        _ => {
            // Who keeps the pace of the load is not faster than others who do.
            let kept = paced::sentence(&with, &ranked);
            // What can be said comes before what cannot.
            let withheld = rate_withheld(&with, &ranked).filter(|_| kept.is_none());
            let rate = (kept.is_none() && withheld.is_none()).then(|| pace(&ranked));
            sentences.extend(kept);
            for measure in rate.into_iter().chain([&COST, &FAIRNESS]) {
                if let Some(ranking) = rank(&ranked, measure, summary) {
                    sentences.push(sentence(&with, &ranking, measure));
                }
            }
            sentences.extend(withheld);
        }
    }
    sentences.extend(starved(&ranked));
    sentences.extend(ceiling(summary, clients));
    sentences.extend(summary.checks_at(clients).and_then(noise_floor));
    sentences.extend(summary.rows_at(clients).filter_map(not_ranked));
    sentences
}

/// One sentence for a number of clients that is not the largest.
fn brief(summary: &Summary, clients: u32) -> String {
    let ranked = ranked_rows(summary, clients);
    let with = format!("With {}", counted(clients, "client"));
    let mut parts = Vec::new();
    match ranked.as_slice() {
        [] => parts.push("no server served all of them".to_owned()),
        [only] => parts.push(format!("only {} served all of them", only.server)),
        _ => {
            let pace = pace(&ranked);
            if let Some(kept) = paced::short(&ranked) {
                parts.push(kept);
            } else if limited(&ranked).is_empty() {
                parts.extend(rank(&ranked, pace, summary).map(|r| short(&r, pace)));
            } else {
                let (what, _) = pace.limited;
                parts.push(format!(
                    "the load generator was the limit, so {what} are not ranked"
                ));
            }
            parts.extend(rank(&ranked, &COST, summary).map(|r| short(&r, &COST)));
        }
    }
    let mut text = format!("{with}, {}.", parts.join("; "));
    let left_out: Vec<String> = summary
        .rows_at(clients)
        .filter(|row| !row.served_all)
        .map(|row| format!("{} ({})", row.server, served_of(row)))
        .collect();
    if !left_out.is_empty() && !ranked.is_empty() {
        let _ = write!(text, " Not ranked: {}.", list(&left_out));
    }
    text
}

/// What tells who is fastest: where each client has a job, when all were done.
fn pace(rows: &[&Row]) -> &'static Measure {
    if rows.iter().any(|row| row.completion.is_some()) {
        &COMPLETION
    } else {
        &RATE
    }
}

/// Rows that served every client in every good trial.
fn ranked_rows(summary: &Summary, clients: u32) -> Vec<&Row> {
    summary
        .rows_at(clients)
        .filter(|row| row.served_all)
        .collect()
}

fn sentence(with: &str, ranking: &Ranking<'_>, measure: &Measure) -> String {
    let best = value(ranking.best, measure);
    let name = &ranking.best.server;
    if ranking.behind.is_empty() {
        return format!(
            "{with}, {} cannot be told apart in {}; the best median is {name}'s: {best}.",
            list(&with_best(ranking)),
            measure.alike
        ) + &not_compared(ranking);
    }
    let mut text = format!("{with}, {name} {}: {best}", measure.superlative);
    // The next best and the last, or the only one behind.
    let next = ranking.behind.first();
    let worst = ranking.behind.last().filter(|_| ranking.behind.len() > 1);
    if let Some((row, ratio)) = next {
        let _ = write!(text, "; {} {} ", row.server, measure.verb);
        text += &match told_by_itself(row, measure) {
            Some(own) => own,
            None => format!("{} times that", ratio_text(ratio)),
        };
    }
    if let Some((row, ratio)) = worst {
        let told = told_by_itself(row, measure).unwrap_or_else(|| ratio_text(ratio));
        let _ = write!(text, ", {} {told}", row.server);
    }
    text.push('.');
    if !ranking.level.is_empty() {
        let _ = write!(
            text,
            " {} cannot be told apart from it.",
            list(&ranking.level)
        );
    }
    text + &not_compared(ranking)
}

/// " fork has one trial only and is not compared."
fn not_compared(ranking: &Ranking<'_>) -> String {
    match ranking.single.as_slice() {
        [] => String::new(),
        [one] => format!(" {one} has one trial only and is not compared."),
        several => format!(
            " {} have one trial only and are not compared.",
            list(several)
        ),
    }
}

fn short(ranking: &Ranking<'_>, measure: &Measure) -> String {
    let best = value(ranking.best, measure);
    if ranking.behind.is_empty() {
        return format!(
            "no server stands out in {} (best median: {}, {best})",
            measure.alike, ranking.best.server
        );
    }
    let level = match ranking.level.as_slice() {
        [] => String::new(),
        level => format!(", level with {}", list(level)),
    };
    format!(
        "{} {} ({best}{level})",
        ranking.best.server, measure.superlative
    )
}

/// The row's own value, for a measure of which no multiples are told.
fn told_by_itself(row: &Row, measure: &Measure) -> Option<String> {
    Some(measure.own?(measure.of(row)?))
}

/// "1.52 (1.47–1.58)".
fn ratio_text(ratio: &Interval) -> String {
    format!("{:.2} ({:.2}–{:.2})", ratio.estimate, ratio.low, ratio.high)
}

fn alone(with: &str, row: &Row, servers: usize) -> String {
    let only = if servers > 1 { "only " } else { "" };
    let mut text = format!(
        "{with}, {only}{} {} all of them{}: {}",
        row.server,
        if row.completion.is_some() {
            "had"
        } else {
            "served"
        },
        if row.completion.is_some() {
            " done"
        } else {
            ""
        },
        value(row, pace(&[row]))
    );
    if COST.of(row).is_some() {
        let _ = write!(text, " at {}", value(row, &COST));
    }
    text.push('.');
    if row.client_limited() {
        let (what, bound) = pace(&[row]).limited;
        let _ = write!(
            text,
            " The load generator was the limit, so {what} are {bound} bounds."
        );
    }
    text
}

fn limited<'a>(rows: &[&'a Row]) -> Vec<&'a str> {
    rows.iter()
        .filter(|row| row.client_limited())
        .map(|row| row.server.as_str())
        .collect()
}

fn rate_withheld(with: &str, rows: &[&Row]) -> Option<String> {
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
        "{with}, the load generator was the limit for {who}: the {what} are {bound} bounds and are not ranked."
    ))
}

/// What the clients can reach, which the rates are to be read against.
fn ceiling(summary: &Summary, clients: u32) -> Option<String> {
    // Who thinks leaves the CPU idle, and what it uses tells nothing.
    if summary.rows.iter().any(Row::thinks) {
        return None;
    }
    let ceiling = summary.checks_at(clients)?.ceiling.as_ref()?;
    Some(format!(
        "Against {}, which costs them least, the same clients reach {}/s with {:.0} % of their CPU, \
         so they could reach {}/s.",
        ceiling.server,
        number(ceiling.requests_per_s),
        ceiling.client_cpu_share * 100.0,
        number(ceiling.reachable_per_s),
    ))
}

/// How far apart two equal servers came out.
fn noise_floor(checks: &Checks) -> Option<String> {
    let control = checks.control.as_ref()?;
    let told: Vec<String> = [
        (control.rate_ratio, "rate"),
        (control.cost_ratio, "CPU cost"),
    ]
    .iter()
    .filter_map(|(ratio, what)| Some(format!("{} of its {what}", ratio_text(ratio.as_ref()?))))
    .collect();
    (!told.is_empty()).then(|| {
        format!(
            "Measured a second time as its own control, {} came out at {}: what is nearer to 1 than \
             that is not called a difference.",
            control.server,
            told.join(" and ")
        )
    })
}

fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let counts = || summary.rows.iter().map(|row| row.trials_ok);
    match counts().filter(|trials| *trials > 1).min() {
        None if counts().any(|trials| trials == 1) => notes.push(
            "Each server has one trial only, and one trial tells nothing apart: use at least 5 runs."
                .to_owned(),
        ),
        Some(trials) if (trials as usize) < ENOUGH_TRIALS => notes.push(format!(
            "Intervals are rough: with {trials} trials they span the whole range seen, and two equal servers would be told apart by chance in {:.0} of 100 comparisons. Use at least 5 runs to be surer.",
            100.0 * false_alarm_rate(trials as usize)
        )),
        _ => {}
    }
    let failed: u32 = summary.rows.iter().map(|row| row.trials_failed).sum();
    if failed > 0 {
        notes.push(format!(
            "{} of {} failed and are left out.",
            counted(failed, "trial"),
            summary.trials_run
        ));
    }
    let missing = summary.trials_planned.saturating_sub(summary.trials_run);
    if missing > 0 {
        notes.push(format!(
            "The run ended early: {} of {} did not take place.",
            counted(missing, "trial"),
            summary.trials_planned
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::Trial;

    fn answer(change: impl Fn(&mut Trial)) -> String {
        let (run, mut trials) = fixture::record();
        trials.iter_mut().for_each(change);
        let summary = Summary::of(&run, &trials).unwrap();
        let sentences: Vec<String> = Answer::of(&summary)
            .sentences()
            .map(str::to_owned)
            .collect();
        sentences.join("\n")
    }

    fn client_cpu(trial: &mut Trial, percent: f64) {
        let side = trial.client_side.as_mut().unwrap();
        side.metrics.insert("cpu_percent".to_owned(), percent);
    }

    #[test]
    fn of_a_whole_record() {
        insta::assert_snapshot!(answer(|_| ()));
    }

    #[test]
    fn rates_are_withheld_when_the_load_generator_was_the_limit() {
        let text = answer(|trial| {
            client_cpu(trial, 99.0);
            let side = trial.server_side.as_mut().unwrap();
            side.metrics.insert("cpu_percent".to_owned(), 60.0);
        });
        assert!(
            text.contains("the load generator was the limit for every server"),
            "{text}"
        );
        assert!(!text.contains("served most"), "{text}");
        assert!(text.contains("costs least"), "{text}");
    }

    #[test]
    fn rates_are_withheld_when_both_sides_are_full() {
        let text = answer(|trial| client_cpu(trial, 99.0));
        assert!(text.contains("the load generator was the limit"), "{text}");
        assert!(!text.contains("served most"), "{text}");
    }

    #[test]
    fn a_side_that_was_not_measured_limits_nothing_and_is_not_ranked() {
        let text = answer(|trial| {
            trial.server_side = None;
            trial.client_side = None;
        });
        assert!(
            text.contains("served most") && !text.contains("costs least"),
            "{text}"
        );
    }

    #[test]
    fn one_trial_tells_nothing_apart() {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.round == 0);
        let text: String = Answer::of(&Summary::of(&run, &trials).unwrap())
            .sentences()
            .collect();
        assert!(
            text.contains("cannot be told apart in rate") && !text.contains("served most"),
            "{text}"
        );
    }
}
