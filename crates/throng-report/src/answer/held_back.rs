//! What held servers back that is not their own speed, in words.

use crate::hindrance::Hindrance;
use crate::summary::{Row, Summary};

/// A sentence for each hindrance with `clients` clients, the heaviest of its kind, with its servers.
pub(super) fn sentences(summary: &Summary, clients: u32) -> Vec<String> {
    let rows: Vec<&Row> = summary.rows_at(clients).collect();
    let of_row = |row: &&Row| row.hindrances.clone();
    let mut all: Vec<Hindrance> = rows.iter().flat_map(of_row).collect();
    all.sort_by(|one, other| other.weight().total_cmp(&one.weight()));
    all.dedup_by_key(|hindrance| std::mem::discriminant(hindrance));
    let sentence = |hindrance: &Hindrance| {
        let is_same =
            |other: &Hindrance| std::mem::discriminant(other) == std::mem::discriminant(hindrance);
        let servers = rows.iter().filter(|row| row.hindrances.iter().any(is_same));
        let names: Vec<&str> = servers.map(|row| row.server.as_str()).collect();
        hindrance.sentence(&names)
    };
    all.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use crate::grade::Level;
    use crate::hindrance::DELAYED_ACK;
    use crate::{Logs, Report, fixture};
    use throng_record::{Latency, Run, Trial, Warning};

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
                    trial.warnings.push(Warning {
                        kind: DELAYED_ACK.to_owned(),
                        message: String::new(),
                        remedy: String::new(),
                    });
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
