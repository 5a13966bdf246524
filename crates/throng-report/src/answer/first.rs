//! The answer in one short sentence, and the order and groups of its servers.

use super::measure::{COST, Measure, all_behind};
use super::{alone, best_is, nobody, of_several, of_speed, pace, percent_of_margin, ranked_rows};
use crate::comparison::ranking::{AS_FAST, Ranking, Standing};
use crate::comparison::{Comparison, Pair, PairMetric};
use crate::summary::{Row, Summary};
use throng_record::format::{capitalized, counted, list};
use throng_record::metrics::{Better, Metric};
use throng_stats::Verdict;

/// The most servers named in one list.
const MOST_NAMED: usize = 3;

/// The servers with one number of clients, by the measure that the first sentence is about.
#[derive(Debug)]
pub(crate) struct Standings<'a> {
    pub(crate) metric: &'static Metric,
    pub(crate) groups: Vec<Group<'a>>,
}

/// Servers with the same verdict, the best first.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// The verdict; empty if there is no other group.
    pub(crate) title: String,
    /// Whether none is shown to be better than another.
    pub(crate) tied: bool,
    pub(crate) rows: Vec<&'a Row>,
}

/// The metric that ranks servers first: cost per request, or else speed.
fn measure(rows: &[&Row]) -> &'static Measure {
    let jobs = rows.iter().any(|row| row.completion.is_some());
    let costs = rows.iter().filter(|row| COST.of(row).is_some()).count();
    if !jobs && costs > 1 {
        &COST
    } else {
        pace(rows)
    }
}

/// The metric whose values are shown: requests per CPU time instead of the inverse.
fn shown(measure: &Measure) -> &'static Metric {
    let name = if measure.metric == COST.metric {
        "requests_per_server_cpu_s"
    } else {
        measure.metric
    };
    throng_record::metrics::named(name).expect("it is in the catalogue")
}

/// The servers with `clients` clients, in groups. Without a comparison, no server ties or is behind.
pub(crate) fn standings<'a>(
    summary: &'a Summary,
    comparison: Option<&Comparison>,
    clients: u32,
) -> Option<Standings<'a>> {
    let all: Vec<&Row> = summary.rows_at(clients).collect();
    let measured = |row: &&&Row| row.trials_ok > 0;
    all.iter().find(measured)?;
    let (mut ranked, mut others): (Vec<&Row>, Vec<&Row>) =
        all.iter().partition(|row| row.is_ranked());
    let deciding = measure(if ranked.is_empty() { &all } else { &ranked });
    let metric = shown(deciding);
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
    let ranking = comparison.and_then(|comparison| of_several(comparison, clients, deciding));
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut push = |title: &str, tied, rows: Vec<&'a Row>| {
        if !rows.is_empty() {
            groups.push(Group {
                title: title.to_owned(),
                tied,
                rows,
            });
        }
    };
    let few = ranking.map_or_else(Vec::new, Ranking::too_few);
    let standing = |row: &Row| {
        let mut places = ranking.iter().flat_map(|ranking| &ranking.places);
        let place = places.find(|place| place.server == row.server);
        // Single trials tie or differ by value only, which is no verdict.
        match place.map_or(Standing::Unknown, |place| place.standing) {
            _ if few.contains(&row.server.as_str()) => Standing::Unknown,
            standing => standing,
        }
    };
    let with = |wanted: Standing| -> Vec<&'a Row> {
        let own = ranked.iter().copied();
        own.filter(|row| standing(row) == wanted).collect()
    };
    let best = with(Standing::Best);
    let is_decided = ranking.is_some_and(Ranking::is_decided);
    let is_open = ranking.is_some_and(|ranking| !ranking.inconclusive().is_empty());
    let (few_rows, unknown): (Vec<&Row>, Vec<&Row>) = with(Standing::Unknown)
        .into_iter()
        .partition(|row| is_decided && few.contains(&row.server.as_str()));
    let (title, tied) = match best.len() {
        1 if is_decided => ("Best".to_owned(), false),
        1 if !with(Standing::Unclear).is_empty() => ("Best median".to_owned(), false),
        _ if !is_decided && !few.is_empty() => ("Not ranked".to_owned(), false),
        _ if ranking.is_some_and(|ranking| !ranking.limited().is_empty()) => {
            (capitalized(AS_FAST), true)
        }
        _ if is_decided && !is_open => (format!("Equivalent within {}", percent_of_margin()), true),
        _ => ("No significant difference".to_owned(), true),
    };
    if title == "Not ranked" {
        push(&title, false, ranked);
    } else {
        push(&title, tied, best);
        push("Undecided", false, with(Standing::Unclear));
        push("Significantly worse", false, with(Standing::Worse));
        push("Too few trials to rank", false, few_rows);
        push("Not ranked", false, unknown);
    }
    let (odd, unserved) = others.into_iter().partition(|row| row.served_all);
    push("Not comparable", false, odd);
    push("Did not serve every client as expected", false, unserved);
    if let [only] = groups.as_mut_slice()
        && !only.tied
    {
        only.title.clear();
    }
    Some(Standings { metric, groups })
}

/// "With 1,000 clients, 9 of 15 servers tie for the best CPU per request; fork uses 3.4x more (3.1–3.7x)."
pub(super) fn of_run(summary: &Summary, comparison: &Comparison, clients: u32) -> String {
    let with = format!("With {}", counted(clients, "client"));
    let ranked = ranked_rows(summary, clients);
    match ranked.as_slice() {
        [] => return nobody(&with, summary, clients),
        [only] => return alone(&with, only, summary.rows_at(clients).count()),
        _ => {}
    }
    let Some((measure, ranking)) = leading(comparison, clients, &ranked) else {
        return format!("{with}, {} servers served all of them.", ranked.len());
    };
    sentence(&with, ranking, measure, ranked.len())
}

/// The ranking that the first sentence is about: by cost, or by speed if cost is unknown or shows no significant
/// difference. Speed is not used if the load set it.
fn leading<'a>(
    comparison: &'a Comparison,
    clients: u32,
    ranked: &[&Row],
) -> Option<(&'static Measure, &'a Ranking)> {
    let by_cost = of_several(comparison, clients, &COST).map(|ranking| (&COST, ranking));
    let is_paced = ranked.iter().any(|row| row.paced_by.is_some());
    let by_speed = of_speed(comparison, clients, ranked).filter(|_| !is_paced);
    let mut in_order = [by_speed, by_cost];
    if measure(ranked).metric == COST.metric {
        in_order.reverse();
    }
    let known: Vec<_> = in_order.into_iter().flatten().collect();
    let decided = known.iter().find(|(_, ranking)| ranking.is_decided());
    decided.or(known.first()).copied()
}

/// The best server, or the servers that tie for it, then the largest significant difference.
fn sentence(with: &str, ranking: &Ranking, measure: &Measure, all: usize) -> String {
    let noun = measure.noun;
    let best = ranking.best().server.as_str();
    let standing = |wanted: Standing| -> Vec<&str> {
        let places = ranking.places.iter();
        let own = places.filter(|place| place.standing == wanted);
        own.map(|place| place.server.as_str()).collect()
    };
    let mut tied = standing(Standing::Best);
    if tied.is_empty() {
        tied.push(best);
    }
    let noisy = match standing(Standing::Unclear).as_slice() {
        [] => String::new(),
        names => format!("; undecided: {}", list(names)),
    };
    let behind_best = ranking.behind();
    let Some(last) = behind_best.last() else {
        return if ranking.too_few().is_empty() {
            format!(
                "{with}, no significant difference in {noun} between {}{noisy}.",
                named_or_counted(&tied)
            )
        } else {
            format!("{with}, too few trials to rank; {best} has the best median {noun}.")
        };
    };
    // Of many, only the worst.
    let worst = match behind_best.as_slice() {
        [_, _] => all_behind(&behind_best, measure),
        _ => all_behind(&[*last], measure),
    };
    let limited = ranking.limited();
    if limited.len() > 1 {
        let places = ranking.places.iter();
        let ours = places.filter(|place| limited.contains(&place.server.as_str()));
        let mut values: Vec<String> = ours
            .map(|place| measure.metric().text(place.value))
            .collect();
        values.drain(1..values.len() - 1);
        values.dedup();
        let (is, range) = (best_is(ranking, measure), values.join(" to "));
        return format!("{with}, {is} ({range}); {worst}{noisy}.");
    }
    if tied.len() == 1 {
        return format!("{with}, {}; {worst}{noisy}.", best_is(ranking, measure));
    }
    if tied.len() > MOST_NAMED {
        let count = tied.len();
        return format!(
            "{with}, {count} of {all} servers tie for the best {noun}; {worst}{noisy}."
        );
    }
    let how = if ranking.inconclusive().is_empty() {
        format!("equivalent within {}", percent_of_margin())
    } else {
        "no significant difference".to_owned()
    };
    format!(
        "{with}, {} tie for the best {noun} ({how}); {worst}{noisy}.",
        list(&tied)
    )
}

/// "epoll and poll", or "5 servers".
fn named_or_counted(names: &[&str]) -> String {
    if names.len() > MOST_NAMED {
        format!("{} servers", names.len())
    } else {
        list(names)
    }
}

/// The first sentence for servers compared with a reference or a baseline.
pub(super) fn of_comparison(summary: &Summary, comparison: &Comparison, clients: u32) -> String {
    let with = format!("With {}", counted(clients, "client"));
    let pairs = comparison.leading_pairs(clients);
    match (pairs.as_slice(), &comparison.baseline) {
        ([only], _) => only.first_sentences(),
        (_, Some(_)) => of_baseline(&with, &pairs),
        (_, None) => of_run(summary, comparison, clients),
    }
}

/// The first sentence for several servers compared with their baselines.
fn of_baseline(with: &str, pairs: &[&Pair]) -> String {
    let by = |name: &'static str| {
        let measured: Vec<(&Pair, &PairMetric)> = pairs
            .iter()
            .filter_map(|pair| Some((*pair, pair.by(name)?)))
            .collect();
        let compared = |(_, one): &(&Pair, &PairMetric)| one.verdict != Verdict::NotComparable;
        measured.iter().any(compared).then_some((name, measured))
    };
    let names = [
        "requests_per_s",
        "completion_s",
        "server_cpu_us_per_request",
    ];
    let known: Vec<_> = names.into_iter().filter_map(by).collect();
    let differs = |(_, measured): &&(&str, Vec<(&Pair, &PairMetric)>)| {
        measured.iter().any(|(_, one)| one.verdict.is_difference())
    };
    let Some((_, measured)) = known.iter().find(differs).or(known.first()) else {
        return format!("{with}, no measurement can be compared with the baseline.");
    };
    let kinds = [
        (Verdict::Worse, "worse"),
        (Verdict::Better, "better"),
        (Verdict::Inconclusive, "no significant difference"),
        (Verdict::Equivalent, "equivalent"),
        (Verdict::NotComparable, "not comparable"),
    ];
    let parts = kinds
        .into_iter()
        .filter_map(|(verdict, word)| {
            let own: Vec<&str> = measured
                .iter()
                .filter(|(_, one)| one.verdict == verdict)
                .map(|(pair, _)| pair.server.as_str())
                .collect();
            (!own.is_empty()).then(|| format!("{word} for {}", named_or_counted(&own)))
        })
        .collect::<Vec<_>>()
        .join("; ");
    let noun = measured[0].1.metric.noun();
    format!("{with}, {noun} compared with the baseline: {parts}.")
}

/// The difference of a pair in speed or cost: the logarithm of its largest significant ratio; below 0 if it is not
/// compared.
pub(super) fn weight(pair: &Pair) -> f64 {
    if pair.not_compared.is_some() {
        return -1.0;
    }
    let names = [
        "requests_per_s",
        "completion_s",
        "server_cpu_us_per_request",
    ];
    let differing = names
        .into_iter()
        .filter_map(|name| pair.by(name))
        .filter(|one| one.verdict.is_difference());
    let ratios = differing.filter_map(|one| one.ratio);
    ratios
        .map(|ratio| ratio.value.ln().abs())
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, Report, fixture};
    use throng_record::Trial;

    #[test]
    fn one_short_sentence_says_who_ties_and_who_is_worse() {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let summary = &report.summary;
        assert_eq!(
            report.answer.first,
            "With 1,000 clients, io-uring uses the least CPU per request; select uses 4.81x as much (4.78–4.84x)."
        );
        let standings = standings(summary, Some(&report.comparison), 1000).unwrap();
        let titles: Vec<&str> = standings
            .groups
            .iter()
            .map(|group| group.title.as_str())
            .collect();
        let others = [
            "Significantly worse",
            "Too few trials to rank",
            "Did not serve every client as expected",
        ];
        assert_eq!((titles[0], &titles[1..]), ("Best", &others[..]));
        let all: usize = standings.groups.iter().map(|group| group.rows.len()).sum();
        assert_eq!(all, summary.rows_at(1000).count());
    }

    /// The first sentence and the pairs of `epoll-et` and `select` compared with `epoll`, after `change` to each trial.
    fn compared(change: impl Fn(&mut Trial)) -> (String, Vec<String>) {
        let (mut run, mut trials) = fixture::record();
        let shown = ["epoll", "epoll-et", "select"];
        run.servers.retain(|one| shown.contains(&one.name.as_str()));
        trials.retain(|trial| shown.contains(&trial.server.as_str()));
        trials.iter_mut().for_each(change);
        run.comparison = Some(throng_record::Comparison {
            reference: "epoll".to_owned(),
            ..throng_record::Comparison::default()
        });
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        (report.answer.first.clone(), report.answer.headline)
    }

    #[test]
    fn a_comparison_of_several_names_the_best_and_the_largest_difference() {
        let (first, pairs) = compared(|_| ());
        let expected = "With 1,000 clients, epoll-et uses the least CPU per request; epoll uses 3.4 % more (2.4–4.5 %), select 4.";
        assert!(first.starts_with(expected), "{first}");
        assert!(pairs[0].contains("select is 4."), "{pairs:#?}");
        let (first, _) = compared(|trial| {
            let is_close = trial.server == "epoll-et";
            let side = trial.server_side.as_mut().filter(|_| is_close);
            if let Some(side) = side {
                side.metrics.entry("cpu_ms".to_owned()).and_modify(|ms| {
                    *ms *= if trial.round % 2 == 0 { 1.4 } else { 0.8 };
                });
            }
        });
        let expected = "tie for the best CPU per request (no significant difference); select uses";
        assert!(first.contains(expected), "{first}");
    }
}
