//! What limits an answer: what held servers back, unserved clients, checks of the measurement, and missing trials.

use super::ranked_rows;
use crate::checks::Checks;
use crate::summary::{Row, Summary, worst};
use crate::warm_up;
use throng_record::delayed_ack;
use throng_record::findings::connections::DELAYED_ACK;
use throng_record::findings::cpu::{CPU_QUOTA, MEMORY_HIGH};
use throng_record::format::{capitalized, counted, list, number, whole};

/// The sentences about rows with `clients` clients.
pub(super) fn held_back(summary: &Summary, clients: u32) -> Vec<String> {
    let rows: Vec<&Row> = summary.rows_at(clients).collect();
    let of_machine = [&CPU_QUOTA, &MEMORY_HIGH].into_iter().filter_map(|kind| {
        let worst = worst(rows.iter().copied(), kind)?;
        Some(format!("{}: {}.", capitalized(&worst.text), worst.remedy))
    });
    of_machine.chain(delayed_acks(&rows)).collect()
}

/// Servers whose median is on a plateau of delayed acknowledgements.
fn delayed_acks(rows: &[&Row]) -> Option<String> {
    let waits_ms = |row: &&&Row| {
        let median = row
            .value("latency_p50_us")
            .filter(|_| row.mostly(&DELAYED_ACK))?;
        delayed_ack::plateau_of(median)
    };
    let ms = rows.iter().find_map(|row| waits_ms(&row))?;
    let waiting = rows.iter().filter(|row| waits_ms(row).is_some());
    let names: Vec<&str> = waiting.map(|row| row.server.as_str()).collect();
    Some(format!(
        "Most replies of {} waited {ms} ms for a delayed ACK (Nagle's algorithm): set TCP_NODELAY in the server.",
        list(&names)
    ))
}

pub(super) fn starved(rows: &[&Row]) -> Option<String> {
    let starving: Vec<String> = rows
        .iter()
        .filter(|row| row.paced_by.is_none())
        .filter_map(|row| Some((&row.server, row.value("clients_starved")?)))
        .filter(|(_, starved)| *starved > 0.0)
        .map(|(server, starved)| format!("up to {} with {server}", whole(starved)))
        .collect();
    (!starving.is_empty()).then(|| {
        format!(
            "Starved clients, with less than a tenth of the mean replies: {}.",
            list(&starving)
        )
    })
}

/// "iterative served 1 of 4,000 clients: it serves one client at a time."
pub(super) fn not_ranked(row: &Row) -> Option<String> {
    if row.served_all {
        let why = row.not_comparable()?;
        return Some(format!("{} is not ranked: {why}.", row.server));
    }
    if row.trials_ok == 0 {
        let reason = row
            .failures
            .first()
            .map_or("no measurements", String::as_str);
        return Some(format!("{} failed in every trial ({reason}).", row.server));
    }
    let reason = match (&row.unserved_because, row.why_not_all()) {
        (Some(limit), _) => format!(": {limit}"),
        (None, Some(errors)) => format!(" ({errors}) and is not ranked"),
        (None, None) => " and is not ranked".to_owned(),
    };
    let served = row.served_in_words()?;
    Some(format!("{} served {served}{reason}.", row.server))
}

/// Starved clients, and servers that did not serve all clients.
pub(super) fn unserved(summary: &Summary, clients: u32) -> Vec<String> {
    let ranked = ranked_rows(summary, clients);
    let mut sentences: Vec<String> = starved(&ranked).into_iter().collect();
    sentences.extend(summary.rows_at(clients).filter_map(not_ranked));
    sentences
}

/// Says that no server served all clients. If there is only one server, also says why.
pub(super) fn nobody(with: &str, summary: &Summary, clients: u32) -> String {
    let mut rows = summary.rows_at(clients);
    match (rows.next(), rows.next()) {
        (Some(only), None) if only.served_all => {
            let why = only.not_comparable().unwrap_or_default();
            format!("{with}, {} has no result: {why}.", only.server)
        }
        (Some(only), None) => {
            let why = only
                .why_not_all()
                .map_or_else(String::new, |why| format!(": {why}"));
            format!("{with}, {} did not serve all of them{why}.", only.server)
        }
        _ => format!("{with}, no server served all of them."),
    }
}

/// The maximum rate of the load generator.
pub(super) fn ceiling(summary: &Summary, clients: u32) -> Option<String> {
    // With think time the CPU is idle, and its use says nothing about the maximum.
    if summary.rows.iter().any(Row::thinks) {
        return None;
    }
    let ceiling = summary.checks_at(clients)?.ceiling.as_ref()?;
    Some(format!(
        "The load generator can reach {}/s: against {}, the cheapest server, it used {:.0} % of its CPU at {}/s.",
        number(ceiling.reachable_per_s),
        ceiling.server,
        ceiling.client_cpu_share * 100.0,
        number(ceiling.requests_per_s),
    ))
}

/// A server measured twice, compared with itself.
pub(super) fn control(checks: &Checks) -> Option<String> {
    let control = checks.control.as_ref()?;
    let server = &control.server;
    if let Some(off) = &control.off {
        return Some(format!(
            "Control ({server} measured twice): significant difference, {} ratio {}.",
            off.what,
            off.ratio.as_ratio()
        ));
    }
    let ratios: Vec<String> = [
        (control.rate_ratio, "throughput"),
        (control.cost_ratio, "CPU per request"),
    ]
    .iter()
    .filter_map(|(found, what)| Some((found.as_ref().filter(|ratio| ratio.low.is_some())?, what)))
    .map(|(found, what)| format!("{what} ratio {}", found.as_ratio()))
    .collect();
    (!ratios.is_empty()).then(|| {
        format!(
            "Control ({server} measured twice): no significant difference, {}.",
            list(&ratios)
        )
    })
}

/// Failed, invalid and missing trials.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let failed: u32 = summary.rows.iter().map(|row| row.trials_failed).sum();
    if failed > 0 {
        notes.push(format!(
            "{failed} of {} failed and {} excluded.",
            counted(summary.trials_run, "trial"),
            if failed == 1 { "is" } else { "are" }
        ));
    }
    notes.extend(summary.invalid());
    notes.extend(warm_up::reported(summary).map(|took| format!("Warm-up took {took}.")));
    let missing = summary.trials_planned.saturating_sub(summary.trials_run);
    if missing > 0 {
        notes.push(format!(
            "The run ended early: {missing} of {} did not run.",
            counted(summary.trials_planned, "trial")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use crate::grade::Level;
    use crate::{Logs, Report, fixture};
    use throng_record::findings::connections::DELAYED_ACK;
    use throng_record::{Latency, Run, Trial};

    /// The grade, its causes, and the first lines of the answer, after a change of every trial.
    fn answer(compared: bool, change: impl Fn(&mut Trial)) -> (Level, String) {
        let (mut run, mut trials): (Run, Vec<Trial>) = fixture::record();
        trials.retain(|trial| ["epoll", "thread"].contains(&trial.server.as_str()));
        run.servers
            .retain(|server| ["epoll", "thread"].contains(&server.name.as_str()));
        run.comparison = compared.then(|| throng_record::Comparison {
            reference: "thread".to_owned(),
            ..throng_record::Comparison::default()
        });
        trials.iter_mut().for_each(change);
        fixture::examine(&run, &mut trials);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let causes: Vec<&str> = report
            .grade
            .causes
            .iter()
            .map(|cause| cause.text.as_str())
            .collect();
        let lines = [
            vec![report.answer.first.as_str()],
            report
                .answer
                .headline
                .iter()
                .map(String::as_str)
                .take(2)
                .collect(),
            causes,
        ];
        (report.grade.level, lines.concat().join("\n"))
    }

    /// Regression: half a CPU by a quota, throttled in 319 of 341 periods, was graded good.
    #[test]
    fn a_quota_that_stopped_processes_is_in_the_grade_and_in_the_answer() {
        for compared in [false, true] {
            let with = |throttled: f64| {
                answer(compared, move |trial| {
                    let side = trial.server_side.get_or_insert_default();
                    let quota = [
                        ("cpu_quota_percent", 50.0),
                        ("quota_periods", 341.0),
                        ("throttled_periods", throttled),
                    ];
                    side.metrics
                        .extend(quota.map(|(name, value)| (name.to_owned(), value)));
                })
            };
            let (level, text) = with(319.0);
            assert_eq!(level, Level::Rough);
            let said = "CPU quota of 0.5 CPUs stopped processes in 94 % of its periods";
            assert_eq!(
                text.matches(said).count(),
                3,
                "first, headline and grade: {text}"
            );
            assert!(!with(0.0).1.contains("quota"), "{}", with(0.0).1);
        }
        let slowed = answer(false, |trial| {
            let side = trial.server_side.get_or_insert_default();
            side.metrics.insert("memory_high_hits".to_owned(), 5.0);
        });
        assert!(slowed.1.contains("memory.high"), "{}", slowed.1);
    }

    /// Regression: "4.1x faster" did not mention that the slower server waited for delayed acknowledgements.
    #[test]
    fn a_median_on_the_plateau_of_delayed_acknowledgements_is_named_with_the_remedy() {
        for compared in [false, true] {
            let with = |p50_us: f64| {
                answer(compared, move |trial| {
                    if trial.server != "epoll" {
                        return;
                    }
                    trial.findings.push(DELAYED_ACK.found(String::new()));
                    if let Some(load) = &mut trial.load {
                        load.service_time = Some(Latency {
                            p50_us,
                            ..load.service_time.clone().unwrap_or_default()
                        });
                    }
                })
                .1
            };
            let said = "Most replies of epoll waited 40 ms for a delayed ACK (Nagle's algorithm): set TCP_NODELAY in the server.";
            assert_eq!(
                with(40_500.0).matches(said).count(),
                2,
                "{}",
                with(40_500.0)
            );
            assert!(!with(4_000.0).contains("TCP_NODELAY"));
        }
    }
}
