//! The answer in one short sentence, and the servers in the order and the groups that it speaks of.

use super::ranking::{COST, Measure, Ranking, Rankings, behind};
use super::{alone, pace, percent_of_margin, ranked_rows};
use crate::comparison::{Comparison, Measured, Pair};
use crate::grade::{Grade, Level};
use crate::limit::Limits;
use crate::summary::{Row, Summary};
use throng_record::format::{counted, list};
use throng_record::metrics::{Better, Metric};
use throng_stats::Verdict;

/// As many servers are named in one breath.
const MOST_NAMED: usize = 3;

/// Servers with a number of clients, by the measure that the first sentence is about.
#[derive(Debug)]
pub(crate) struct Standings<'a> {
    pub(crate) metric: &'static Metric,
    pub(crate) groups: Vec<Group<'a>>,
}

/// Servers of which the same can be said, the best first.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// What that is; empty where there is no other group.
    pub(crate) title: String,
    /// Whether none is shown to be better than another.
    pub(crate) tied: bool,
    pub(crate) rows: Vec<&'a Row>,
}

/// What servers are ranked by at first: what a request costs, or else how fast they are.
fn measure(rows: &[&Row]) -> &'static Measure {
    let jobs = rows.iter().any(|row| row.completion.is_some());
    let costs = rows.iter().filter(|row| COST.of(row).is_some()).count();
    if !jobs && costs > 1 {
        &COST
    } else {
        pace(rows)
    }
}

/// What stands for it where values are shown: requests per CPU time rather than the inverse.
fn shown(measure: &Measure) -> &'static Metric {
    let name = if measure.metric == COST.metric {
        "requests_per_server_cpu_s"
    } else {
        measure.metric
    };
    throng_record::metrics::named(name).expect("it is in the catalogue")
}

/// The servers with a number of clients in groups. Without a grade, or with an unusable one, nobody is tied or behind.
pub(crate) fn standings<'a>(
    summary: &'a Summary,
    clients: u32,
    grade: Option<&Grade>,
) -> Option<Standings<'a>> {
    let all: Vec<&Row> = summary.rows_at(clients).collect();
    let measured = |row: &&&Row| row.trials_ok > 0;
    all.iter().find(measured)?;
    let (mut ranked, mut others): (Vec<&Row>, Vec<&Row>) =
        all.iter().partition(|row| row.is_ranked());
    let metric = shown(measure(if ranked.is_empty() { &all } else { &ranked }));
    let by_value = |rows: &mut Vec<&'a Row>| {
        let value = |row: &Row| {
            let value = row.value(metric.name);
            match metric.better {
                Better::Higher => -value.unwrap_or(f64::NEG_INFINITY),
                _ => value.unwrap_or(f64::INFINITY),
            }
        };
        rows.sort_by(|one, other| value(one).total_cmp(&value(other)));
    };
    by_value(&mut ranked);
    by_value(&mut others);
    let mut groups = Vec::new();
    let usable = grade.is_some_and(|grade| grade.level != Level::Unusable);
    let rankings = Rankings::of(summary);
    let ranking = rankings.get(clients, measure(&ranked)).filter(|_| usable);
    let mut push = |title: String, tied, rows: Vec<&'a Row>| {
        if !rows.is_empty() {
            groups.push(Group { title, tied, rows });
        }
    };
    match ranking {
        Some(ranking) if ranking.is_decided() => {
            let is_behind = |row: &&Row| {
                ranking
                    .behind
                    .iter()
                    .any(|(other, _)| other.server == row.server)
            };
            let has_few = |row: &&Row| ranking.too_few.contains(&row.server.as_str());
            let (few, ranked): (Vec<&Row>, Vec<&Row>) = ranked.iter().partition(|row| has_few(row));
            let (behind, first): (Vec<&Row>, Vec<&Row>) =
                ranked.iter().partition(|row| is_behind(row));
            let title = match first.len() {
                1 => "Best".to_owned(),
                _ if ranking.inconclusive.is_empty() => {
                    format!("Equivalent within {}", percent_of_margin())
                }
                _ => "No significant difference".to_owned(),
            };
            push(title, first.len() > 1, first);
            push("Significantly worse".to_owned(), false, behind);
            push("Too few rounds to rank".to_owned(), false, few);
        }
        Some(ranking) if ranking.too_few.is_empty() => {
            push("No significant difference".to_owned(), true, ranked);
        }
        _ => push("Not ranked".to_owned(), false, ranked),
    }
    push(
        "Did not serve every client as expected".to_owned(),
        false,
        others,
    );
    if let [only] = groups.as_mut_slice()
        && !only.tied
    {
        only.title.clear();
    }
    Some(Standings { metric, groups })
}

/// "With 1,000 clients, 9 of 15 servers tie for the least CPU per request; fork needs 3.4x more."
pub(super) fn of_run(summary: &Summary, grade: &Grade) -> String {
    let Some(clients) = summary.clients.last().copied() else {
        return "No trial has finished, so there is no answer yet.".to_owned();
    };
    let with = format!("With {}", counted(clients, "client"));
    if grade.level == Level::Unusable {
        return format!("{with}, no ranking: the run is unusable.");
    }
    let ranked = ranked_rows(summary, clients);
    match ranked.as_slice() {
        [] => return format!("{with}, no server served all of them."),
        [only] => return alone(&with, only, summary.rows_at(clients).count()),
        _ => {}
    }
    let measure = measure(&ranked);
    let rankings = Rankings::of(summary);
    let Some(ranking) = rankings.get(clients, measure) else {
        return format!("{with}, {} servers served all of them.", ranked.len());
    };
    sentence(&with, ranking, measure, ranked.len())
}

fn sentence(with: &str, ranking: &Ranking<'_>, measure: &Measure, all: usize) -> String {
    let best = &ranking.best.server;
    let tied = ranking.equivalent.len() + ranking.inconclusive.len();
    let last = ranking.behind.last();
    let worst = last.map(|(row, ratio)| {
        let far = behind(row, *ratio, measure);
        let far = far.split(" (").next().unwrap_or_default();
        format!("{} {} {far}", row.server, measure.verb)
    });
    match (worst, tied) {
        (None, _) if !ranking.too_few.is_empty() => format!(
            "{with}, too few rounds to rank; {best} has the best median {}.",
            measure.noun
        ),
        (None, _) => format!("{with}, no significant difference in {}.", measure.noun),
        (Some(worst), 0) => format!("{with}, {best} {}; {worst}.", measure.superlative),
        (Some(worst), 1) => {
            let mut others = ranking.equivalent.iter().copied();
            let other = others
                .next()
                .or(ranking.inconclusive.first().map(|(name, _)| *name))
                .unwrap_or_default();
            format!(
                "{with}, {best} and {other} tie for best {}; {worst}.",
                measure.noun
            )
        }
        (Some(worst), tied) => format!(
            "{with}, {} of {all} servers tie for best {}; {worst}.",
            tied + 1,
            measure.noun
        ),
    }
}

/// Of the servers held against another one.
pub(super) fn of_comparison(comparison: &Comparison, clients: u32, grade: &Grade) -> String {
    let pairs = comparison.all_pairs();
    let pairs: Vec<&Pair> = pairs.filter(|pair| pair.clients == clients).collect();
    let with = format!("With {}", counted(clients, "client"));
    if grade.level == Level::Unusable {
        return format!("{with}, no verdict: the run is unusable.");
    }
    if let [only] = pairs.as_slice() {
        return without_intervals(&only.sentence);
    }
    let by = |name: &'static str| {
        let measured = pairs
            .iter()
            .filter_map(|pair| Some((*pair, pair.by(name)?)));
        let measured: Vec<(&Pair, &Measured)> = measured.collect();
        let compared = |(_, one): &(&Pair, &Measured)| one.verdict != Verdict::NotComparable;
        measured.iter().any(compared).then_some((name, measured))
    };
    let names = [
        "requests_per_s",
        "completion_s",
        "server_cpu_us_per_request",
    ];
    let known: Vec<_> = names.into_iter().filter_map(by).collect();
    // What differs says more than what does not.
    let differs = |(_, measured): &&(&str, Vec<(&Pair, &Measured)>)| {
        measured.iter().any(|(_, one)| one.verdict.is_difference())
    };
    let Some((name, measured)) = known.iter().find(differs).or(known.first()) else {
        return format!("{with}, nothing can be compared.");
    };
    let kinds = [
        (Verdict::Better, "better"),
        (Verdict::Equivalent, "equivalent"),
        (Verdict::Inconclusive, "undecided"),
        (Verdict::Worse, "worse"),
        (Verdict::NotComparable, "not comparable"),
    ];
    let parts = kinds.into_iter().filter_map(|(verdict, word)| {
        let own = measured.iter().filter(|(_, one)| one.verdict == verdict);
        let own: Vec<&str> = own.map(|(pair, _)| pair.server.as_str()).collect();
        match own.len() {
            0 => None,
            1..=MOST_NAMED => Some(format!("{} {word}", list(&own))),
            many => Some(format!("{many} servers {word}")),
        }
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    let noun = match *name {
        "server_cpu_us_per_request" => "CPU per request",
        "completion_s" => "completion time",
        _ => "throughput",
    };
    let against = if comparison.baseline.is_some() {
        "against the baseline".to_owned()
    } else {
        format!("against {}", comparison.reference)
    };
    format!("{with}, {noun} {against}: {parts}.")
}

/// Its first sentence, without what stands in parentheses.
fn without_intervals(text: &str) -> String {
    let first = text.split_inclusive(". ").next().unwrap_or(text).trim_end();
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in first.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
        .replace("  ", " ")
        .replace(" ,", ",")
        .replace(" .", ".")
}

/// Of a search.
pub(super) fn of_limits(limits: &Limits) -> String {
    limits.sentences().into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn one_short_sentence_says_who_ties_and_who_is_worse() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let grade = Grade::of_summary(&run, &trials, &summary);
        assert_eq!(
            of_run(&summary, &grade),
            "With 1,000 clients, io-uring needs the least CPU; select needs 4.81x more."
        );
        let standings = standings(&summary, 1000, Some(&grade)).unwrap();
        let titles: Vec<&str> = standings
            .groups
            .iter()
            .map(|group| group.title.as_str())
            .collect();
        let others = [
            "Significantly worse",
            "Too few rounds to rank",
            "Did not serve every client as expected",
        ];
        assert_eq!((titles[0], &titles[1..]), ("Best", &others[..]));
        let all: usize = standings.groups.iter().map(|group| group.rows.len()).sum();
        assert_eq!(all, summary.rows_at(1000).count());
    }

    #[test]
    fn intervals_are_left_to_those_who_want_them() {
        assert_eq!(
            without_intervals(
                "With 5, a is 1.6x faster than b (1.5–1.7x), and cheaper (2 %). Its time is 3."
            ),
            "With 5, a is 1.6x faster than b, and cheaper."
        );
    }
}
