//! Servers under a load that sets the pace: which keep up, and which do not.

use super::measure::{COMPLETION, Measure, RATE, value};
use crate::pace::Pacer;
use crate::summary::Row;
use throng_record::format::list;

/// "think time sets the pace and all servers keep up: 4,980 requests per second." `None` if the load
/// sets no pace, or no server keeps up.
pub(super) fn sentence(rows: &[&Row]) -> Option<String> {
    let (pacer, kept, slower) = parted(rows)?;
    let who = if slower.is_empty() {
        "all servers keep up".to_owned()
    } else {
        let names: Vec<&str> = kept.iter().map(|row| row.server.as_str()).collect();
        let verb = if names.len() == 1 { "keeps" } else { "keep" };
        format!("{} {verb} up", list(&names))
    };
    let slow: Vec<String> = slower
        .iter()
        .map(|row| format!("{} reaches only {}", row.server, value(row, &RATE)))
        .collect();
    let behind = match slow.as_slice() {
        [] => String::new(),
        slow => format!("; {}", list(slow)),
    };
    Some(format!(
        "{} sets the pace and {who}: {}{behind}.",
        pacer.name(),
        reached(&kept)
    ))
}

/// A shorter form, for use within a sentence.
pub(super) fn short(rows: &[&Row]) -> Option<String> {
    let (pacer, kept, slower) = parted(rows)?;
    let names: Vec<&str> = slower.iter().map(|row| row.server.as_str()).collect();
    let but = if names.is_empty() {
        String::new()
    } else {
        format!(" but {}", list(&names))
    };
    let (pacer, reached) = (pacer.name(), reached(&kept));
    Some(format!(
        "{pacer} sets the pace and all{but} keep up ({reached})"
    ))
}

/// What sets the pace, which servers keep up, and which do not. If each client has a job, that is known only if all
/// keep up.
fn parted<'a>(rows: &[&'a Row]) -> Option<(Pacer, Vec<&'a Row>, Vec<&'a Row>)> {
    let (kept, slower): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.paced_by.is_some());
    let pacer = kept.first()?.paced_by?;
    let has_jobs = rows.iter().any(|row| row.completion.is_some());
    (slower.is_empty() || !has_jobs).then_some((pacer, kept, slower))
}

/// Their results: one value, or the least and the greatest.
fn reached(rows: &[&Row]) -> String {
    if rows.iter().any(|row| row.completion.is_some()) {
        format!("done after {}", range(rows, &COMPLETION))
    } else {
        format!("{} requests per second", range(rows, &RATE))
    }
}

fn range(rows: &[&Row], measure: &Measure) -> String {
    let mut values: Vec<f64> = rows.iter().filter_map(|row| measure.of(row)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let ends = [values.first(), values.last()].into_iter().flatten();
    let mut texts: Vec<String> = ends.map(|value| measure.metric().text(*value)).collect();
    texts.dedup();
    texts.join(" to ")
}

#[cfg(test)]
mod tests {
    use crate::{Logs, Report, fixture};
    use throng_record::{Completion, Trial};

    fn answer(change: impl Fn(&mut Trial)) -> String {
        let (run, mut trials) = fixture::record();
        trials.retain(|trial| trial.clients <= 100);
        trials.iter_mut().for_each(change);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        report.answer.sentences().collect::<Vec<_>>().join("\n")
    }

    /// Clients that think, and get their replies at once.
    fn think(trial: &mut Trial) {
        let Some(load) = &mut trial.load else { return };
        load.lateness = Some(fixture::latency(&[1000]));
        load.service_time = Some(fixture::latency(&[1000]));
        load.window.replies_per_s = Some(f64::from(load.clients) * 10.0);
    }

    #[test]
    fn servers_that_keep_up_with_think_time_are_not_ranked() {
        let text = answer(think);
        let all = "With 100 clients, think time sets the pace and all servers keep up: 1,000 requests per second.";
        assert!(text.contains(all), "{text}");
        let brief = "With 10 clients, think time sets the pace and all keep up (100 requests";
        assert!(text.contains(brief), "{text}");
        assert!(!text.contains("is fastest"), "{text}");
        assert!(text.contains("uses the least CPU"), "{text}");
    }

    #[test]
    fn servers_that_miss_the_pace_are_reported() {
        let text = answer(|trial| {
            think(trial);
            if let ("select", Some(load)) = (trial.server.as_str(), &mut trial.load) {
                load.service_time = Some(fixture::latency(&[100_000_000]));
                load.window.replies_per_s = Some(500.0);
            }
        });
        assert!(!text.contains("all servers keep up:"), "{text}");
        assert!(
            text.contains("; select reaches only 500 requests per second."),
            "{text}"
        );
        assert!(text.contains("all but select keep up"), "{text}");
    }

    #[test]
    fn jobs_that_were_mostly_thinking_are_not_ranked_by_their_time() {
        let text = answer(|trial| {
            let Some(load) = &mut trial.load else { return };
            load.fairness = None;
            load.completion = Some(Box::new(Completion {
                requests_each: Some(1),
                clients_done: load.clients,
                last_done_s: Some(if trial.server == "epoll" { 9.02 } else { 9.0 }),
                think_s_mean: Some(9.0),
                ..Completion::default()
            }));
        });
        assert!(
            text.contains("and all servers keep up: done after 9.00 s to 9.02 s."),
            "{text}"
        );
        assert!(!text.contains("finishes first"), "{text}");
    }
}
