//! Every metric is measured in a real run, or has a reason for its absence.

use std::collections::BTreeSet;

use throng::record;
use throng::record::metrics::{METRICS, Values};

use crate::support::runs::{checked_run, finish};

/// Metrics that a closed loop of a few clients in a short time lacks.
fn not_expected(name: &str) -> bool {
    // Equal clients have no order; perhaps no client had a second slice.
    let by_chance = [
        "early_bias",
        "early_bias_life",
        "early_over_late",
        "latency_p999_us",
        "latency_p999_all_us",
    ];
    // Of loads in which each client has a job.
    let of_jobs = [
        "completion_s",
        "clients_per_s",
        "job_p50_us",
        "job_p99_us",
        "think_mean_s",
        "clients_failed",
        "clients_unfinished",
        "clients_done",
        "server_connection_mean_us",
    ];
    // Replies of http have a status and a body.
    let of_http = [
        "redirects",
        "reply_p50_bytes",
        "reply_min_bytes",
        "reply_max_bytes",
    ];
    // Of models that wait for many clients at once.
    let of_loops = name == "server_notifications_per_request";
    let of_others = of_loops
        || name.starts_with("response_")
        || name.starts_with("status_")
        || name.starts_with("tls_")
        || name.starts_with("session")
        || of_http.contains(&name);
    of_others || by_chance.contains(&name) || of_jobs.contains(&name)
}

/// Metrics that a probe may lack without a reason: an unused call, an absent limit, a percentile of too few flows.
fn is_optional(name: &str) -> bool {
    name.contains("syscalls_")
        || name.contains("limit")
        || name.contains("pids_")
        || name.contains("memory_peak")
        || name.contains("memory_limit")
        || name.contains("memory_high")
        || name.contains("quota")
        || name.contains("throttled")
        || name.contains("oom_kills")
        || name.contains("cpu_user")
        || name.contains("cpu_system")
        || name.contains("in_kernel")
        || name.ends_with("_p99_us")
        || name.ends_with("_p99_s")
        || name.starts_with("socket_")
        || name == "overflow_aborts"
}

#[test]
fn every_metric_is_measured_or_has_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = checked_run(directory.path(), "500ms");
    command.args(["--control", "none", "--no-ceiling"]);
    command.args(["--models", "fork", "--clients", "12", "--runs", "1"]);
    command.args(["--probes", "all", "--json"]);
    finish(command);
    let run = record::read(directory.path()).unwrap();
    let mut trials = record::read_trials(directory.path()).unwrap();
    trials.retain(|trial| trial.server == "fork");
    let values = Values::of(&trials).unwrap();
    let (mut missing, mut unexplained) = (BTreeSet::new(), Vec::new());
    for metric in METRICS.iter().filter(|metric| !metric.is_over_clients()) {
        match values.value(metric.name) {
            Some(value) => assert!(value.is_finite(), "{}", metric.name),
            None if not_expected(metric.name) => {}
            // On a busy machine.
            None if metric.lacks_replies(&trials) => {
                missing.insert("too few replies".to_owned());
            }
            None => match metric.why_absent(&run, &trials) {
                Some(why) => drop(missing.insert(why.reason.clone())),
                None if is_optional(metric.name) => {}
                None => unexplained.push(metric.name),
            },
        }
    }
    assert!(
        unexplained.is_empty(),
        "nobody says why these were not measured: {unexplained:?}"
    );
    for reason in missing {
        println!("skipped: {reason}");
    }
    // And no side has a value that the catalogue does not know.
    for trial in &trials {
        for side in [&trial.server_side, &trial.client_side, &trial.network]
            .into_iter()
            .flatten()
        {
            for name in side.metrics.keys() {
                let known = METRICS
                    .iter()
                    .any(|metric| metric.recorded_as() == Some(name));
                assert!(known, "{name} is in no line of the catalogue");
            }
        }
    }
    let value = |name: &str| values.value(name).unwrap();
    // A parent that only accepts leaves the work, and most of the memory, to its children.
    assert_eq!(value("server_processes") as u64, 13);
    assert!(value("server_parent_cpu_percent") < value("server_cpu_percent"));
    assert!(value("server_peak_bytes") >= value("server_pss_bytes"));
    assert!(value("server_peak_rss_bytes") >= value("server_parent_rss_bytes"));
}
