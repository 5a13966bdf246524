//! The grade of a run: good, rough or unusable, with the cause in one line.
//!
//! To add a check, add a function to the list `CHECKS`.

use serde::{Deserialize, Serialize};

use super::comparison::size::percent;
use super::comparison::{Comparison, Pair, PairMetric};
use super::summary::{Row, Summary, worst};
use throng_record::findings::cpu::{
    BY_HOST, BY_OTHERS, CLIENT_LIMITED, CPU_QUOTA, MEMORY_HIGH, OTHERS,
};
use throng_record::findings::replies::{NOT_LEVEL, UNSTEADY};
use throng_record::findings::run::{
    CONTROL_DIFFERS, FAILED_TRIALS, FEW_TRIALS, INVALID_TRIALS, NOISE, NOTHING_MEASURED, WARMING_UP,
};
use throng_record::format::{counted, list};
use throng_record::metrics::METRICS;
use throng_record::{Finding, Purpose, Run, Severity, Trial, counting, set_aside};
use throng_stats::paired::FEWEST_PAIRS;
use throng_stats::steadiness::shared_trend;
use throng_stats::trend;

/// A control that differs from itself by more than this share makes a run unusable.
const CONTROL_UNUSABLE: f64 = 0.1;
/// A run is rough if other processes or the machine's host disturbed more than this share of its trials.
const OTHERS_ROUGH: f64 = 0.25;

/// The maximum number of servers named in a cause.
const MOST_NAMED: usize = 3;

/// A comparison is rough if it would have missed speed differences of this share.
const NOISY: f64 = 0.1;

/// The grade of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing speaks against it.
    Good,
    /// Its verdicts hold, with a caveat to keep in mind.
    Rough,
    /// No ranking.
    Unusable,
}

impl Level {
    /// The grade in one word.
    pub fn text(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Rough => "rough",
            Self::Unusable => "unusable",
        }
    }
}

/// A grade and its causes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grade {
    /// The worst of its causes.
    pub level: Level,
    /// The worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Finding>,
}

/// The input of a check.
pub(crate) struct GradeInput<'a> {
    pub(crate) run: &'a Run,
    pub(crate) trials: &'a [Trial],
    pub(crate) summary: &'a Summary,
    pub(crate) comparison: &'a Comparison,
}

/// A check for one cause.
type Check = fn(&GradeInput<'_>) -> Option<Finding>;

/// Every check. Causes of equal severity are shown in this order.
const CHECKS: &[Check] = &[
    nothing_measured,
    others,
    held_back,
    control,
    client_limited,
    warming_up,
    unsteady,
    failed_trials,
    invalid_trials,
    few_trials,
    noisy,
];

impl Grade {
    /// The grade of a run.
    pub(crate) fn of(seen: &GradeInput<'_>) -> Self {
        let found = CHECKS.iter().filter_map(|check| check(seen));
        let mut causes: Vec<Finding> = found.collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.severity));
        let level = match causes.first().map(|worst| worst.severity) {
            None | Some(Severity::Note) => Level::Good,
            Some(Severity::Rough) => Level::Rough,
            Some(Severity::Invalid | Severity::Unusable) => Level::Unusable,
        };
        Self { level, causes }
    }

    /// Whether servers may be ranked, and differences named.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.level != Level::Unusable
    }

    /// The worst cause.
    pub fn cause(&self) -> Option<&str> {
        self.causes.first().map(|cause| cause.text.as_str())
    }
}

/// No server answered its clients as expected: there is nothing whose speed could be reported.
fn nothing_measured(seen: &GradeInput<'_>) -> Option<Finding> {
    let rows = &seen.summary.rows;
    if seen.trials.is_empty() {
        return Some(NOTHING_MEASURED.unusable("no trial was recorded".to_owned()));
    }
    if !rows.is_empty() && rows.iter().all(|row| row.trials_ok == 0) {
        return Some(NOTHING_MEASURED.unusable("every trial failed".to_owned()));
    }
    // A study may be about how many clients get nothing.
    let counts = seen.run.settings.unserved_counts;
    let is_result = |row: &Row| counts && row.trials_ok > 0 && !row.served_all;
    let each: Option<Vec<String>> = rows
        .iter()
        .map(|row| row.fault().filter(|_| !is_result(row)))
        .collect();
    let faults = each.filter(|faults| !faults.is_empty())?;
    Some(NOTHING_MEASURED.unusable(match faults.as_slice() {
        [only] => only.clone(),
        _ => "no server answered all its clients as expected".to_owned(),
    }))
}

/// The control groups of server and clients held them back.
fn held_back(seen: &GradeInput<'_>) -> Option<Finding> {
    let of = |kind| worst(seen.summary.rows.iter(), kind).cloned();
    of(&CPU_QUOTA).or_else(|| of(&MEMORY_HIGH))
}

/// The server's rate was still rising or falling, in one long warm-up or in most windows.
fn warming_up(seen: &GradeInput<'_>) -> Option<Finding> {
    let cut_off = seen.summary.rows.iter().find_map(|row| {
        let fault = row.not_level()?;
        Some(format!("{}: {fault}", row.server))
    });
    // Those set aside because they drifted most count too.
    let is_own = |trial: &&Trial| {
        trial.purpose == Purpose::Timed
            && trial.slices.is_empty()
            && trial.invalid().is_none_or(|finding| finding.kind.of_server)
    };
    let shared = || {
        seen.summary.rows.iter().find_map(|row| {
            let of_row = seen
                .trials
                .iter()
                .filter(is_own)
                .filter(|trial| (&trial.server, trial.clients) == (&row.server, row.clients));
            let changes: Vec<f64> = of_row
                .filter_map(|trial| Some(trend(&trial.load.as_ref()?.window.intervals)?.change))
                .collect();
            let of_server = row.paced_by.is_none() && row.completion.is_none();
            let shared = shared_trend(&changes).filter(|_| of_server)?;
            let (verb, how) = if shared.change > 0.0 {
                ("rose", "still warming up")
            } else {
                ("fell", "slowing down")
            };
            Some(format!(
                "{} was {how}: its rate {verb} in {} of {} trials, typically by {:.0} %{}",
                row.server,
                shared.agree,
                changes.len(),
                100.0 * shared.change.abs(),
                if shared.change > 0.0 {
                    "; use a longer --warm-up"
                } else {
                    ""
                }
            ))
        })
    };
    cut_off
        .map(|text| NOT_LEVEL.found(text))
        .map(|finding| Finding {
            severity: Severity::Rough,
            ..finding
        })
        .or_else(|| shared().map(|text| WARMING_UP.found(text)))
}

/// Other processes or the machine's host took CPU time.
fn others(seen: &GradeInput<'_>) -> Option<Finding> {
    let timed = || {
        let trials = seen.trials.iter();
        trials.filter(|trial| trial.purpose == Purpose::Timed)
    };
    let found: Vec<&Finding> = timed().filter_map(|trial| trial.found(&OTHERS)).collect();
    let sum = |name: &str| -> f64 {
        let values = found.iter().filter_map(|finding| finding.values.get(name));
        values.sum()
    };
    let (disturbed, all) = (found.len(), timed().count());
    let invalid = found
        .iter()
        .filter(|finding| finding.severity == Severity::Invalid);
    let who = if sum(BY_HOST) > sum(BY_OTHERS) {
        "the machine's host took"
    } else {
        "other processes used"
    };
    if 2 * invalid.count() > all {
        let cpus = 100.0 * f64::from(seen.run.host.cpus.max(1)) * disturbed as f64;
        let percent = 100.0 * (sum(BY_HOST) + sum(BY_OTHERS)) / cpus;
        return Some(OTHERS.unusable(format!("{who} {percent:.0} % of the machine's CPUs")));
    }
    (disturbed as f64 > OTHERS_ROUGH * all as f64)
        .then(|| OTHERS.found(format!("{who} CPU time in {disturbed} of {all} trials")))
}

fn control(GradeInput { summary, .. }: &GradeInput<'_>) -> Option<Finding> {
    let off = summary.checks.iter().filter_map(|checks| {
        let control = checks.control.as_ref()?;
        let off = control.off?;
        let nearest = match (off.ratio.low?, off.ratio.high?) {
            (low, _) if low > 1.0 => low - 1.0,
            (_, high) => 1.0 / high - 1.0,
        };
        Some((nearest, &control.server, checks.clients, off))
    });
    let (nearest, server, clients, off) = off.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let text = format!(
        "the control differs: {server} with {}, measured twice, has a {} ratio of {}",
        counted(clients, "client"),
        off.what,
        off.ratio.as_ratio()
    );
    Some(if nearest > CONTROL_UNUSABLE {
        CONTROL_DIFFERS.unusable(text)
    } else {
        CONTROL_DIFFERS.found(text)
    })
}

fn client_limited(GradeInput { summary, .. }: &GradeInput<'_>) -> Option<Finding> {
    let servers = names(summary, Row::client_limited);
    let bound = if servers.len() == 1 {
        "rate is a lower bound"
    } else {
        "rates are lower bounds"
    };
    (!servers.is_empty()).then(|| {
        let named = named_or_counted(&servers, summary);
        CLIENT_LIMITED.found(format!(
            "the load generator was the limit for {named}, whose {bound}"
        ))
    })
}

fn unsteady(GradeInput { summary, .. }: &GradeInput<'_>) -> Option<Finding> {
    let servers = names(summary, |row| row.mostly(&UNSTEADY));
    (!servers.is_empty()).then(|| {
        let named = named_or_counted(&servers, summary);
        UNSTEADY.found(format!("the throughput of {named} was not steady"))
    })
}

/// Names up to [`MOST_NAMED`] servers and only counts more, since a cause is one line.
fn named_or_counted<T: AsRef<str>>(servers: &[T], summary: &Summary) -> String {
    if servers.len() > MOST_NAMED {
        return format!("{} of {} servers", servers.len(), summary.servers.len());
    }
    list(servers)
}

fn failed_trials(GradeInput { trials, .. }: &GradeInput<'_>) -> Option<Finding> {
    let failures = || trials.iter().filter_map(|trial| trial.failure.as_ref());
    let why = &failures().next()?.reason;
    let (failed, all) = (failures().count(), trials.len());
    Some(FAILED_TRIALS.found(format!("{failed} of {all} trials failed: {why}")))
}

/// Trials were invalid and were not replaced by valid ones.
fn invalid_trials(seen: &GradeInput<'_>) -> Option<Finding> {
    let (trials, summary) = (seen.trials, seen.summary);
    let left = || set_aside(trials).filter(|(.., replaced)| !replaced);
    let (first, invalid, _) = left().next()?;
    let text = format!(
        "{} of {} trials are invalid: {}",
        left().count(),
        summary.trials_run,
        invalid.text
    );
    // If no trial of a server is valid, there is nothing else to show for it.
    let mut all = std::iter::once(first).chain(left().map(|(trial, ..)| trial));
    let nothing_else = all.any(|trial| counting(trials).contains(trial));
    Some(if nothing_else {
        INVALID_TRIALS.unusable(text)
    } else {
        INVALID_TRIALS.found(text)
    })
}

fn few_trials(GradeInput { summary, .. }: &GradeInput<'_>) -> Option<Finding> {
    let few = |row: &Row| row.trials_ok > 0 && rounds_of(row) < FEWEST_PAIRS;
    let fewest = summary
        .rows
        .iter()
        .filter(|row| few(row))
        .map(rounds_of)
        .min()?;
    let servers = names(summary, few);
    let who = if servers.len() < summary.servers.len() {
        format!(" of {}", named_or_counted(&servers, summary))
    } else {
        String::new()
    };
    let trials = counted(fewest as u32, "trial");
    Some(FEW_TRIALS.found(format!(
        "{trials}{who}, fewer than the {FEWEST_PAIRS} that intervals need"
    )))
}

/// A comparison that would have missed even large differences in speed.
fn noisy(GradeInput { comparison, .. }: &GradeInput<'_>) -> Option<Finding> {
    let speed = |pair: &Pair| {
        let of = |measured: &&PairMetric| measured.metric.is_speed();
        let mut measures = pair.measures.iter().filter(of);
        measures.find_map(|measured| measured.smallest_difference)
    };
    let missed = comparison
        .pairs
        .iter()
        .filter_map(speed)
        .max_by(f64::total_cmp)?;
    (missed > NOISY).then(|| {
        let share = percent(missed);
        NOISE.found(format!("noise hides speed differences below {share}"))
    })
}

/// The number of rounds in which the server's speed was measured.
fn rounds_of(row: &Row) -> usize {
    // Short-lived clients may be done before a rate can be measured.
    let speeds = METRICS.iter().filter(|metric| metric.is_speed());
    let samples = speeds.filter_map(|metric| row.metrics.sample(metric.name));
    let most = samples.map(throng_stats::Sample::trials).max();
    most.unwrap_or(row.trials_ok as usize)
}

/// The servers for which `is` holds with any number of clients, each once.
fn names(summary: &Summary, is: impl Fn(&Row) -> bool) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in summary.rows.iter().filter(|row| is(row)) {
        if !names.contains(&row.server.as_str()) {
            names.push(&row.server);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// The grade of the fixture without the servers that fail, after `change`.
    fn grade(change: impl Fn(&mut Run, &mut Vec<Trial>)) -> Grade {
        let (mut run, mut trials) = fixture::record();
        trials.retain(|trial| trial.server != "fork");
        run.servers.retain(|server| server.name != "fork");
        change(&mut run, &mut trials);
        fixture::examine(&run, &mut trials);
        graded(&run, &trials)
    }

    fn graded(run: &Run, trials: &[Trial]) -> Grade {
        let summary = Summary::of(run, trials).unwrap();
        let comparison = Comparison::of(run, &summary, None).unwrap();
        Grade::of(&GradeInput {
            run,
            trials,
            summary: &summary,
            comparison: &comparison,
        })
    }

    fn texts(grade: &Grade) -> String {
        let texts: Vec<&str> = grade
            .causes
            .iter()
            .map(|cause| cause.text.as_str())
            .collect();
        texts.join("\n")
    }

    #[test]
    fn nothing_speaks_against_a_whole_record() {
        let good = grade(|_, _| ());
        assert_eq!(
            (good.level, good.causes.len()),
            (Level::Good, 0),
            "{good:?}"
        );
    }

    #[test]
    fn each_cause_is_found_and_the_worst_comes_first() {
        let few = grade(|_, trials| trials.retain(|trial| trial.round < 2));
        assert_eq!(
            texts(&few),
            "2 trials, fewer than the 6 that intervals need"
        );
        let (run, trials) = fixture::record();
        let failed = graded(&run, &trials);
        assert!(texts(&failed).contains("trials failed"), "{failed:?}");
        let limited = grade(|_, trials| {
            trials.iter_mut().for_each(fixture::limit_by_clients);
        });
        assert!(
            texts(&limited).contains("the load generator was the limit"),
            "{limited:?}"
        );
        let unsteady = grade(|_, trials| {
            for load in trials.iter_mut().filter_map(|trial| trial.load.as_mut()) {
                load.window.intervals = (1..=20).map(|place| 1000 - 20 * place).collect();
            }
        });
        assert!(texts(&unsteady).contains("was not steady"), "{unsteady:?}");
        let none = grade(|_, trials| {
            for trial in trials.iter_mut() {
                trial.failure = Some(fixture::failure());
                trial.load = None;
            }
        });
        assert_eq!(none.level, Level::Unusable);
        assert_eq!(none.cause(), Some("every trial failed"));
    }

    /// Regression: the windows of a JVM rose by up to 110 %, and each by itself passed.
    #[test]
    fn a_server_that_rose_in_most_trials_was_still_warming_up() {
        let rising = grade(|_, trials| {
            for trial in trials.iter_mut().filter(|trial| trial.server == "epoll") {
                let step = if trial.round == 1 { 0 } else { 40 };
                if let Some(load) = &mut trial.load {
                    load.window.intervals = (0..20)
                        .map(|place| 1000 + step * place + 700 * (place % 2))
                        .collect();
                }
            }
        });
        assert_eq!(rising.level, Level::Rough);
        assert!(
            texts(&rising).contains("epoll was still warming up: its rate rose in"),
            "{rising:?}"
        );
    }

    /// Regression: a server that only answered 503, and a record without trials, were graded good.
    #[test]
    fn wrong_replies_and_no_trials_are_unusable() {
        let none = grade(|_, trials| trials.clear());
        assert_eq!(none.level, Level::Unusable);
        let wrong = |both: bool| {
            grade(move |run, trials| {
                trials.retain(|trial| trial.clients == 100);
                run.settings.fail_if = vec!["p99 > 1s".to_owned()];
                for trial in trials {
                    if let Some(load) = &mut trial.load
                        && (both || trial.server == "epoll")
                    {
                        load.unexpected = [("503".to_owned(), load.window.replies)].into();
                    }
                }
            })
        };
        assert_ne!(
            wrong(false).level,
            Level::Unusable,
            "the others can be ranked"
        );
        assert_eq!(wrong(true).level, Level::Unusable);
        assert_eq!(
            wrong(true).cause(),
            Some("no server answered all its clients as expected")
        );
    }

    #[test]
    fn clients_without_a_reply_are_a_result_where_a_study_says_so() {
        let unserved = |counts: bool| {
            grade(move |run, trials| {
                run.settings.unserved_counts = counts;
                for load in trials.iter_mut().filter_map(|trial| trial.load.as_mut()) {
                    (load.served, load.never_served) = (load.clients - 1, 1);
                }
            })
        };
        assert_eq!(unserved(false).level, Level::Unusable);
        assert_ne!(unserved(true).level, Level::Unusable);
    }

    #[test]
    fn noise_that_hides_large_differences_makes_a_comparison_rough() {
        let noisy = grade(|run, trials| {
            run.comparison = Some(throng_record::Comparison {
                reference: "epoll".to_owned(),
                ..throng_record::Comparison::default()
            });
            for (place, trial) in trials.iter_mut().enumerate() {
                if let Some(load) = &mut trial.load {
                    load.window
                        .replies_per_s
                        .iter_mut()
                        .for_each(|rate| *rate *= 1.0 + (place % 7) as f64 / 5.0);
                }
            }
        });
        assert!(
            texts(&noisy).contains("noise hides speed differences below"),
            "{noisy:?}"
        );
    }

    #[test]
    fn a_machine_that_others_use_is_rough_and_one_that_they_fill_is_unusable() {
        let taken = |others: f64, steal: f64| {
            grade(move |_, trials| {
                for trial in trials.iter_mut() {
                    let metrics = &mut trial.network.get_or_insert_default().metrics;
                    // Server and clients use 169 % of 2 CPUs.
                    metrics.insert("machine_busy_percent".to_owned(), 169.0 + others);
                    metrics.insert("machine_steal_percent".to_owned(), steal);
                }
            })
        };
        let by_others = taken(40.0, 10.0);
        assert_eq!(by_others.level, Level::Rough);
        assert!(texts(&by_others).contains("other processes used CPU time in"));
        let by_host = taken(4.0, 20.0);
        assert_eq!(by_host.level, Level::Rough);
        assert!(texts(&by_host).contains("the machine's host took CPU time in"));
        assert_eq!(taken(130.0, 0.0).level, Level::Unusable);
        assert_eq!(taken(30.0, 100.0).level, Level::Unusable);
    }

    #[test]
    fn a_control_that_differs_is_rough_and_one_that_differs_much_is_unusable() {
        let control = |factor: f64| {
            grade(move |_, trials| {
                let of_epoll = trials
                    .iter()
                    .filter(|trial| trial.server == "epoll" && trial.purpose.is_timed());
                let mut again: Vec<Trial> = of_epoll.cloned().collect();
                for trial in &mut again {
                    trial.purpose = Purpose::Control;
                    if let Some(load) = &mut trial.load {
                        load.window
                            .replies_per_s
                            .iter_mut()
                            .for_each(|rate| *rate *= factor);
                    }
                }
                trials.extend(again);
            })
        };
        assert_eq!(control(1.0).level, Level::Good);
        assert_eq!(control(1.04).level, Level::Rough);
        assert_eq!(control(0.8).level, Level::Unusable);
        assert!(
            texts(&control(0.8)).contains("measured twice, has a throughput ratio of 0.80"),
            "{}",
            texts(&control(0.8))
        );
    }
}
