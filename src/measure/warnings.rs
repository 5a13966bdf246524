//! What a reader must know before trusting a figure: each warning names cause and remedy.

pub(super) mod network;

use crate::record::{Host, Load, Settings, Side, Trial, Warning};
use crate::stats::steadiness;

/// Share of its CPUs from which a side counts as full.
const FULL_PERCENT: f64 = 95.0;

fn warning(kind: &str, message: String, remedy: &str) -> Warning {
    Warning {
        kind: kind.to_owned(),
        message,
        remedy: remedy.to_owned(),
    }
}

/// About the machine and the settings, known before the first trial.
pub(super) fn of_run(host: &Host, settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if settings.repeats < 5 {
        warnings.push(warning(
            "few-repeats",
            format!(
                "each figure rests on {} trials, so intervals are rough",
                settings.repeats
            ),
            "take --repeats 5 or more before you decide anything on a small difference",
        ));
    }
    if settings.server_cpus.is_empty() {
        warnings.push(warning(
            "shared-cpus",
            "server and clients share one CPU and slow each other".to_owned(),
            "measure on a machine with at least two CPUs",
        ));
    }
    if let Some(load) = host.load_average_1min
        && load > 0.5
    {
        warnings.push(warning(
            "busy-machine",
            format!("the load average was {load:.2} when the run started"),
            "end what else runs here, and run again",
        ));
    }
    if let Some(name) = &host.virtual_machine {
        let name = if name == "yes" {
            String::new()
        } else {
            format!(" ({name})")
        };
        warnings.push(warning(
            "virtual-machine",
            format!("this is a virtual machine{name}: neighbours take time that it cannot see"),
            "trust ratios within this run more than absolute rates, or measure on bare metal",
        ));
    }
    warnings.push(warning(
        "loopback",
        "clients and server talk over loopback: no network card, and the receiver's protocol work \
         is charged to the sender's CPU"
            .to_owned(),
        "read the figures as the server's own cost, not as what a network would give",
    ));
    warnings
}

/// About one trial.
pub(super) fn of_trial(trial: &Trial, settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let Some(load) = &trial.load else {
        return warnings;
    };
    if load.served == 0 {
        warnings.push(warning(
            "nobody-served",
            format!("none of {} clients had an answer", load.clients),
            "see the errors by kind, and the server's output",
        ));
        return warnings;
    }
    warnings.extend(wrong_balance(load));
    warnings.extend(declined(load));
    let slices = &load.window.slices;
    if steadiness::is_unsteady(slices)
        && let Some(trend) = steadiness::trend(slices)
    {
        warnings.push(warning(
            "unsteady",
            format!(
                "the rate changed by {:+.0} % within the steady part (correlation with time {:.2})",
                trend.change * 100.0,
                trend.correlation
            ),
            "take a longer --warm-up and --duration",
        ));
    }
    warnings.extend(client_limited(trial, load, settings));
    warnings
}

/// Every request has its reply, but for clients that ended with an error or were never served.
fn wrong_balance(load: &Load) -> Option<Warning> {
    let failed: u64 = load.errors.values().sum();
    let missing = load.requests.saturating_sub(load.verified);
    let explained = failed + u64::from(load.never_served);
    (missing > explained).then(|| {
        warning(
            "unbalanced",
            format!("{missing} replies are missing and {explained} clients explain it"),
            "do not trust this trial; run it again",
        )
    })
}

/// A server that declines does less work than one that grants, and looks faster for it.
fn declined(load: &Load) -> Option<Warning> {
    let reasons: Vec<String> = load
        .declined
        .iter()
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    (!reasons.is_empty()).then(|| {
        warning(
            "declined",
            format!(
                "in {} of {} replies the server declined: {}",
                load.declined.values().sum::<u64>(),
                load.verified,
                reasons.join(", ")
            ),
            "ask for what the server grants: an upload within its --max-upload, a path that it has",
        )
    })
}

fn client_limited(trial: &Trial, load: &Load, settings: &Settings) -> Option<Warning> {
    let percent = |side: &Option<Side>| side.as_ref()?.metrics.get("cpu_percent").copied();
    let client = percent(&trial.client_side)?;
    let server = percent(&trial.server_side)?;
    let threads = f64::from(load.threads.max(1));
    let cpus = settings.server_cpus.len().max(1) as f64;
    (client >= FULL_PERCENT * threads && server < FULL_PERCENT * cpus).then(|| {
        warning(
            "client-limited",
            format!(
                "the clients' CPU was full ({client:.0} %) and the server's was not ({server:.0} %)"
            ),
            "read its rate as a lower bound; give the clients more CPUs (--client-cpus)",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn declined_replies_are_told_by_reason() {
        let mut load = Load {
            verified: 10,
            ..Load::default()
        };
        assert_eq!(declined(&load), None);
        load.declined = BTreeMap::from([("404".to_owned(), 3), ("over-limit".to_owned(), 2)]);
        let warning = declined(&load).unwrap();
        assert_eq!(warning.kind, "declined");
        assert_eq!(
            warning.message,
            "in 5 of 10 replies the server declined: 3 404, 2 over-limit"
        );
    }

    /// Settings of a run with too few repeats.
    pub(super) fn settings() -> Settings {
        Settings {
            protocol: "echo".to_owned(),
            size_bytes: 1000,
            clients: vec![1],
            repeats: 3,
            duration_s: 1.0,
            warm_up_s: 0.1,
            start_timeout_s: 1.0,
            connect_timeout_s: 1.0,
            patience_s: 1.0,
            backlog: 1,
            server_cpus: vec![0],
            client_cpus: vec![1],
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
        }
    }

    #[test]
    fn few_repeats_are_told() {
        let settings = settings();
        let kinds = |host: &Host| -> Vec<String> {
            of_run(host, &settings)
                .into_iter()
                .map(|warning| warning.kind)
                .collect()
        };
        let quiet = Host::default();
        assert_eq!(kinds(&quiet), ["few-repeats", "loopback"]);
        let busy = Host {
            load_average_1min: Some(1.5),
            virtual_machine: Some("yes".to_owned()),
            ..quiet
        };
        assert_eq!(
            kinds(&busy),
            ["few-repeats", "busy-machine", "virtual-machine", "loopback"]
        );
    }
}
