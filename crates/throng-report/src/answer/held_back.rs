//! What held servers back that is not their own speed, in words.

use crate::summary::{Row, Summary, worst};
use throng_record::delayed_ack;
use throng_record::findings::connections::DELAYED_ACK;
use throng_record::findings::cpu::{CPU_QUOTA, MEMORY_HIGH};
use throng_record::format::list;

/// The sentences about rows with `clients` clients.
pub(super) fn sentences(summary: &Summary, clients: u32) -> Vec<String> {
    let rows: Vec<&Row> = summary.rows_at(clients).collect();
    let of_machine = [&CPU_QUOTA, &MEMORY_HIGH].into_iter();
    let of_machine = of_machine.filter_map(|kind| {
        let worst = worst(rows.iter().copied(), kind)?;
        Some(format!("{}: {}.", capital(&worst.text), worst.remedy))
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

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
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
