//! Every metric is measured in a real run, or it is said why it is not.

use std::collections::BTreeSet;

use throng::measure::probes::{PROBES, Subject};
use throng::record;
use throng::registry::find;
use throng::report::metrics::{METRICS, Subject as Whom};

use super::{finish, throng_run};

/// What a closed loop of a few clients in a short time does not have.
fn not_expected(name: &str) -> bool {
    // Clients that all got the same have no order; nobody may have had a second slice.
    let by_chance = ["early_bias", "early_bias_life", "early_over_late"];
    // Of loads in which each client has a job.
    let of_jobs = [
        "completion",
        "clients_per_s",
        "job_p50",
        "job_p99",
        "service_sample",
        "failed_clients",
        "not_done",
    ];
    name.starts_with("response_")
        || name == "p99.9"
        || by_chance.contains(&name)
        || of_jobs.contains(&name)
}

#[test]
fn every_figure_that_a_metric_needs_is_one_of_its_probe() {
    for metric in METRICS {
        let Some((probe, figure)) = metric.measured_by() else {
            continue;
        };
        let (kind, name) = (find("probe", PROBES, probe).unwrap(), metric.name);
        assert!(kind.purpose() == metric.purpose, "{name}");
        let of_network = kind.subject() == Subject::Network;
        assert_eq!(metric.subject == Whom::Network, of_network, "{name}");
        let has = kind.metrics().iter().any(|one| one.name == figure);
        assert!(has || figure.is_empty(), "{name}: {figure}");
    }
}

#[test]
fn every_metric_is_measured_or_has_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = throng_run(directory.path(), "200ms");
    command.args(["--models", "fork", "--clients", "12", "--repeats", "1"]);
    command.args(["--probes", "all", "--json"]);
    finish(command);
    let run = record::read(directory.path()).unwrap();
    let mut trials = record::read_trials(directory.path()).unwrap();
    trials.retain(|trial| trial.server == "fork");
    let mut missing = BTreeSet::new();
    for metric in METRICS {
        match metric.over(&trials, run.seed) {
            Some(value) => assert!(value.median.is_finite(), "{}", metric.name),
            None if not_expected(metric.name) => {}
            None => match metric.why_absent(&run, &trials) {
                Some(why) => drop(missing.insert(why.reason.clone())),
                None => panic!("{} was not measured, and nobody says why", metric.name),
            },
        }
    }
    for reason in missing {
        println!("skipped: {reason}");
    }
    let value = |name: &str| {
        let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
        metric.over(&trials, run.seed).unwrap().median
    };
    // A parent that only accepts leaves the work, and most of the memory, to its children.
    assert_eq!(value("processes") as u64, 13);
    assert!(value("parent_cpu_percent") < value("server_cpu_percent"));
    assert!(value("peak_memory") >= value("memory"));
    assert!(value("parent_peak_memory") >= value("parent_memory"));
}
