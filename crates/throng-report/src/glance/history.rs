//! The results of one server across runs, and where they changed.
//!
//! A change needs an interval that shows it. Runs are compared like any two runs
//! ([`throng_stats::Sample::unpaired_ratio`]), with one correction for all comparisons of a history, and only if
//! load and machine are the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Report;
use crate::comparison::compared_by;
use crate::facts::started;
use crate::provenance::{files, program_of, throng};
use throng_record::Run;
use throng_record::metrics::{Quantity, named};
use throng_stats::{LogRatio, RatioTest, Sample, Verdict, verdicts};

/// The metrics of a history, by their names in the catalogue.
pub const OF_HISTORY: [&str; 3] = [
    "requests_per_s",
    "server_cpu_us_per_request",
    "latency_p99_us",
];

/// The maximum number of values kept per measure of a run. If there are more, means of neighbours are kept instead.
const MOST_VALUES: usize = 32;

/// A measurement: its servers, load, machine and programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Occasion {
    /// The part, if it belongs to a study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Start time, in UTC.
    pub started_at: String,
    /// The load, except for the number of clients.
    pub load: String,
    /// The machine.
    pub machine: String,
    /// The build of throng that measured.
    pub throng: String,
    /// The command of each server, and its program.
    pub programs: BTreeMap<String, String>,
    pub courses: Vec<ServerMeasures>,
}

/// The results of a server with `clients` clients.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMeasures {
    pub server: String,
    pub clients: u32,
    /// Each metric of [`OF_HISTORY`] that was measured.
    pub measures: BTreeMap<String, PastMeasure>,
}

/// One measure of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PastMeasure {
    /// The median of its trials or slices.
    pub value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The value of each round, or of each slice of a single start.
    pub rounds: Vec<f64>,
    /// Whether `rounds` holds slices.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_slices: bool,
}

impl Occasion {
    pub(crate) fn of(report: &Report<'_>, part: Option<&str>) -> Self {
        let run = report.run;
        let rows = report.summary.rows.iter();
        let courses = rows.filter(|row| row.is_ranked()).map(|row| {
            let measures = OF_HISTORY.iter().filter_map(|name| {
                let (quantity, sample) = (row.quantity(name)?, row.metrics.sample(name)?);
                let rounds: Vec<f64> = sample.by_round().iter().map(|(_, value)| *value).collect();
                let then = PastMeasure {
                    value: short(quantity.value),
                    low: quantity.low.map(short),
                    high: quantity.high.map(short),
                    rounds: few(&rounds),
                    is_of_slices: quantity.is_of_slices,
                };
                Some(((*name).to_owned(), then))
            });
            ServerMeasures {
                server: row.server.clone(),
                clients: row.clients,
                measures: measures.collect(),
            }
        });
        let programs = run.servers.iter().map(|server| {
            let mut words = started(server);
            if let Some(program) = program_of(server) {
                words += &format!("; {}", files(program));
            }
            (server.name.clone(), words)
        });
        Self {
            part: part.map(str::to_owned),
            started_at: run.started_at.clone(),
            load: load(run),
            machine: machine(run),
            throng: throng(run),
            programs: programs.collect(),
            courses: courses.collect(),
        }
    }
}

/// Rounds a value to the digits that its interval needs.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// Reduces the values to at most [`MOST_VALUES`], as means of neighbours.
fn few(values: &[f64]) -> Vec<f64> {
    let size = values.len().div_ceil(MOST_VALUES).max(1);
    let means = values
        .chunks(size)
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64);
    means.map(short).collect()
}

/// The load of a run, except for its number of clients.
fn load(run: &Run) -> String {
    let settings = &run.settings;
    let mut words = settings.load.flags_without(&["clients"]);
    words.push(format!(
        "backlog {}, server CPUs {:?}, client CPUs {:?}, {} load threads",
        settings.backlog, settings.server_cpus, settings.client_cpus, settings.load_threads
    ));
    if !run.client_hosts.is_empty() {
        words.push(format!("{} client hosts", run.client_hosts.len()));
    }
    words.join(" ")
}

/// "AMD EPYC 7B13, 4 CPUs, Linux 6.18.1".
pub fn machine(run: &Run) -> String {
    let host = &run.host;
    let cpu = host.cpu_model.clone();
    let cpus = throng_record::format::counted(host.cpus, "CPU");
    let words = [cpu, Some(cpus), Some(host.kernel.clone())];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A run in the history of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPoint<'a> {
    /// Index among the given runs.
    pub place: usize,
    pub occasion: &'a Occasion,
    pub course: &'a ServerMeasures,
    /// Index of the earlier point that it is compared with: the last one with the same load and machine.
    pub before: Option<usize>,
    /// What changed since that run, or since the previous run if there is no such run: "the program".
    pub new: Vec<&'static str>,
    /// The ratio and verdict of each metric of [`OF_HISTORY`], compared with that run.
    pub changes: BTreeMap<&'static str, (Quantity, Verdict)>,
}

/// The history of `server` with `clients` clients, from `occasions` in chronological order.
pub fn server_history<'a>(
    occasions: &[&'a Occasion],
    server: &str,
    clients: u32,
) -> Vec<HistoryPoint<'a>> {
    let found = occasions
        .iter()
        .enumerate()
        .filter_map(|(place, occasion)| {
            let mut courses = occasion.courses.iter();
            let course = courses.find(|one| one.server == server && one.clients == clients)?;
            Some((place, *occasion, course))
        });
    let mut turns: Vec<HistoryPoint<'a>> = Vec::new();
    let mut compared: Vec<(usize, &'static str, LogRatio)> = Vec::new();
    for (place, occasion, course) in found {
        let alike = |turn: &&HistoryPoint<'_>| {
            (&turn.occasion.load, &turn.occasion.machine) == (&occasion.load, &occasion.machine)
        };
        let before = turns.iter().rposition(|turn| alike(&turn));
        let last = before.or(turns.len().checked_sub(1));
        let new = last.map_or_else(Vec::new, |last| {
            differing(turns[last].occasion, occasion, server)
        });
        if let Some(before) = before {
            let then = &turns[before].course.measures;
            for name in OF_HISTORY {
                let ratio = then
                    .get(name)
                    .zip(course.measures.get(name))
                    .and_then(|(then, now)| now.over(then));
                compared.extend(ratio.map(|ratio| (turns.len(), name, ratio)));
            }
        }
        turns.push(HistoryPoint {
            place,
            occasion,
            course,
            before,
            new,
            changes: BTreeMap::new(),
        });
    }
    let judged: Vec<RatioTest> = compared
        .iter()
        .filter_map(|(_, name, ratio)| Some(compared_by(named(name)?, Some(*ratio))))
        .collect();
    for ((turn, name, ratio), verdict) in compared.iter().zip(verdicts(&judged)) {
        let change = (Quantity::of_ratio(*ratio), verdict);
        turns[*turn].changes.insert(name, change);
    }
    turns
}

impl PastMeasure {
    /// The ratio of this measure to an earlier one, if both have enough rounds for an interval.
    fn over(&self, then: &Self) -> Option<LogRatio> {
        self.sample().unpaired_ratio(&then.sample())
    }

    fn sample(&self) -> Sample {
        let rounds = (0..).zip(self.rounds.iter().copied()).collect();
        if self.is_of_slices {
            Sample::of_slices(rounds)
        } else {
            Sample::of_values(rounds)
        }
    }
}

/// Differences in how two runs were made.
fn differing(then: &Occasion, now: &Occasion, server: &str) -> Vec<&'static str> {
    let program = |of: &Occasion| of.programs.get(server).cloned();
    let all = [
        ("machine", then.machine != now.machine),
        ("load", then.load != now.load),
        ("command or program", program(then) != program(now)),
        ("throng", then.throng != now.throng),
    ];
    let differ = all.into_iter().filter(|(_, differs)| *differs);
    differ.map(|(what, _)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An occasion in which `epoll` had these rates with 10 clients.
    fn occasion(rates: &[f64]) -> Occasion {
        let then = PastMeasure {
            value: rates[0],
            rounds: rates.to_vec(),
            ..PastMeasure::default()
        };
        Occasion {
            courses: vec![ServerMeasures {
                server: "epoll".to_owned(),
                clients: 10,
                measures: BTreeMap::from([("requests_per_s".to_owned(), then)]),
            }],
            ..Occasion::default()
        }
    }

    fn around(rate: f64) -> Vec<f64> {
        let spread = [-0.01, 0.004, 0.0, -0.006, 0.01, 0.007, -0.003, 0.002];
        spread.iter().map(|part| rate * (1.0 + part)).collect()
    }

    fn verdicts_of(occasions: &[Occasion]) -> Vec<Option<Verdict>> {
        let all: Vec<&Occasion> = occasions.iter().collect();
        let turns = server_history(&all, "epoll", 10);
        let verdict = |turn: &HistoryPoint<'_>| Some(turn.changes.get("requests_per_s")?.1);
        turns.iter().map(verdict).collect()
    }

    #[test]
    fn a_change_is_one_only_where_its_interval_says_so() {
        let few = occasion(&[100.0, 50.0]);
        let runs = [
            occasion(&around(100.0)),
            occasion(&around(100.2)),
            occasion(&around(80.0)),
            few,
            occasion(&around(120.0)),
        ];
        let found = verdicts_of(&runs);
        assert_eq!(found[0], None, "nothing comes before it");
        assert!(!found[1].unwrap().is_difference());
        assert_eq!(found[2], Some(Verdict::Worse));
        assert_eq!(found[3..], [None, None], "two rounds have no interval");
    }

    #[test]
    fn only_runs_with_the_same_load_and_machine_are_compared() {
        let mut other = occasion(&around(50.0));
        other.machine = "another".to_owned();
        let runs = [occasion(&around(100.0)), other, occasion(&around(100.1))];
        let all: Vec<&Occasion> = runs.iter().collect();
        let turns = server_history(&all, "epoll", 10);
        let before: Vec<Option<usize>> = turns.iter().map(|turn| turn.before).collect();
        assert_eq!(before, [None, None, Some(0)]);
        assert_eq!(turns[1].new, ["machine"]);
        assert!(turns[1].changes.is_empty() && turns[2].new.is_empty());
        assert!(server_history(&all, "poll", 10).is_empty());
    }

    #[test]
    fn slices_of_one_start_are_no_starts() {
        let mut runs = [occasion(&around(100.0)), occasion(&around(100.4))];
        let error = |runs: &[Occasion]| {
            let [now, then] =
                [1, 0].map(|run: usize| &runs[run].courses[0].measures["requests_per_s"]);
            now.over(then).unwrap().error
        };
        let apart = error(&runs);
        for run in &mut runs {
            let then = run.courses[0].measures.get_mut("requests_per_s");
            then.unwrap().is_of_slices = true;
        }
        assert!(error(&runs) > apart.hypot(0.0029));
    }

    #[test]
    fn many_values_become_means_of_neighbours() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let few = few(&values);
        assert!(few.len() <= MOST_VALUES && few.len() > MOST_VALUES / 2);
        assert!((few[0] - 1.5).abs() < 1e-9);
    }
}
