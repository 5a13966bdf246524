//! Warnings about a result: each names the cause and the remedy.

mod across;
mod capture;
mod load;
pub(super) mod network;
mod servers;

pub(super) use across::of_trials;
pub use load::of_load;
pub use network::of_queue;
pub(super) use servers::{of_cleanup, of_messages, of_running, of_stopping};
use throng_record::format;
use throng_record::{Host, HostPart, Load, Settings, Side, Trial, Warning};
use throng_stats::paired::FEWEST_PAIRS;

/// Share of its CPUs from which a side counts as full.
const FULL_PERCENT: f64 = 95.0;
/// CPU time of other processes above which it is reported.
const OTHERS_PERCENT: f64 = 10.0;
/// A control group that counted less than this part of the CPU time, and this much less, does not hold all processes.
const LEFT_GROUP: f64 = 1.1;
const UNCOUNTED_MS: f64 = 20.0;
/// Steal time above which it is reported.
const STEAL_PERCENT: f64 = 2.0;
/// Share of a CPU that probes may take in the measured phase.
const PROBES_SHARE: f64 = 0.02;
/// Output of a server during one load above which it is reported.
const MUCH_OUTPUT: u64 = 1 << 20;
/// Duration of one sample of all probes beyond which the next one may be late.
const PROBES_SAMPLE_MS: f64 = 50.0;

fn warning(kind: &str, message: String, remedy: &str) -> Warning {
    Warning {
        kind: kind.to_owned(),
        message,
        remedy: remedy.to_owned(),
    }
}

/// CPU time that other processes may use when a run starts, in percent of one CPU.
const MOST_OTHERS_PERCENT: f64 = 30.0;

/// A warning about the other processes that used CPU time when the run started.
pub(super) fn of_others(host: &Host) -> Option<Warning> {
    let others = &host.other_processes;
    let sum: f64 = others.iter().map(|process| process.cpu_percent).sum();
    let names: Vec<&str> = others.iter().map(|process| process.name.as_str()).collect();
    (sum >= MOST_OTHERS_PERCENT).then(|| {
        warning(
            "busy-machine",
            format!(
                "other processes used {sum:.0} % of a CPU when the run started: {}",
                names.join(", ")
            ),
            "stop other processes, and run again",
        )
    })
}

/// Warnings about the machine and the settings, known before the first trial.
pub(super) fn of_run(host: &Host, settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if settings.runs < FEWEST_PAIRS as u32 {
        warnings.push(warning(
            "few-runs",
            format!(
                "only {} per server, too few for a confidence interval or a ranking",
                format::counted(settings.runs, "trial")
            ),
            "use --runs 6 or more",
        ));
    }
    let clients_run_on = |cpu: &u32| settings.client_cpus.contains(cpu);
    if settings.server_cpus.is_empty() || settings.server_cpus.iter().any(clients_run_on) {
        warnings.push(warning(
            "shared-cpus",
            "server and clients share a CPU and slow each other down".to_owned(),
            "use a machine with at least two CPUs, and separate --server-cpus and --client-cpus",
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
            format!("this is a virtual machine{name}: other virtual machines take CPU time unseen"),
            "trust ratios within this run more than absolute rates, or use bare metal",
        ));
    }
    if settings
        .server_address
        .is_none_or(|address| address.is_loopback())
    {
        warnings.push(warning(
            "loopback",
            "clients and server use loopback: there is no network card, and the receiver's protocol work \
             counts as the sender's CPU time"
                .to_owned(),
            "read the results as the server's own cost, not as that of a network",
        ));
    }
    warnings
}

/// A warning about a server's output during measurement.
pub(super) fn of_output(bytes: u64) -> Option<Warning> {
    (bytes > MUCH_OUTPUT).then(|| {
        warning(
            "output",
            format!(
                "the server wrote {} of output under load, which takes CPU time of both sides",
                format::bytes(bytes as f64)
            ),
            "lower its log level, or redirect its output to /dev/null",
        )
    })
}

/// Warnings about one trial.
pub(super) fn of_trial(trial: &Trial, settings: &Settings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let Some(load) = &trial.load else {
        return warnings;
    };
    if load.served == 0 {
        warnings.push(warning(
            "nobody-served",
            format!("none of {} clients got a reply", load.clients),
            "see the errors and the server's output",
        ));
        return warnings;
    }
    warnings.extend(match &trial.at_load {
        Some(at_load) => load::of_load_at(load, at_load),
        None => of_load(load),
    });
    if trial.purpose.is_timed() {
        // Below the maximum the schedule sets the work, and lateness has its own warning.
        if trial.at_load.is_none() {
            warnings.extend(client_limited(trial, load, settings));
        }
        warnings.extend(struggling(trial, load));
        warnings.extend(others(trial, load));
        warnings.extend(left_group(trial));
    }
    warnings.extend(capture::of_trial(trial, settings));
    warnings
}

/// Probes that used so much CPU time, or took so long for one sample, that they may have affected the result.
fn struggling(trial: &Trial, load: &Load) -> Option<Warning> {
    let sides = || {
        let sides = [&trial.server_side, &trial.client_side, &trial.network];
        sides.into_iter().flatten()
    };
    let cost_ms: f64 = sides().map(|side| side.probe_cost_ms).sum();
    let slowest_ms: f64 = sides().map(|side| side.slowest_sample_ms).sum();
    // A load of short-lived clients may be so short that a single sample is much of it.
    let shortest_s = if load.completion.is_some() { 1.0 } else { 1e-9 };
    let share = cost_ms / 1e3 / load.window.duration_s.max(shortest_s);
    (share > PROBES_SHARE || slowest_ms > PROBES_SAMPLE_MS).then(|| {
        warning(
            "probes",
            format!(
                "the probes took {:.1} % of a CPU, and {} for their slowest sample",
                share * 100.0,
                format::time(slowest_ms * 1e3)
            ),
            "expect higher costs; use fewer --probes, or a longer --duration",
        )
    })
}

/// CPU time that other processes used, on this machine or on its host.
fn others(trial: &Trial, load: &Load) -> Option<Warning> {
    let metric = |side: &Option<Side>, name: &str| side.as_ref()?.metrics.get(name).copied();
    let steal = metric(&trial.network, "machine_steal_percent")?;
    let busy = metric(&trial.network, "machine_busy_percent")?;
    let server = metric(&trial.server_side, "cpu_percent")?;
    let client = metric(&trial.client_side, "cpu_percent")?;
    let others = (busy - server - client).max(0.0);
    // The error of two readings in ticks of 10 ms.
    let rough = 100.0 * 0.04 / load.window.duration_s.max(1e-9);
    let (most_others, most_steal) = (OTHERS_PERCENT + rough, STEAL_PERCENT + rough);
    (others > most_others || steal > most_steal).then(|| {
        warning(
            "others",
            format!(
                "other processes took {others:.0} % of a CPU, and the machine's host {steal:.0} % (steal)"
            ),
            if steal > others {
                "run again while the host's other virtual machines are less busy"
            } else {
                "stop other processes, and run again"
            },
        )
    })
}

/// A server with processes outside its control group: the group counted less CPU time than the processes themselves.
fn left_group(trial: &Trial) -> Option<Warning> {
    let metrics = &trial.server_side.as_ref()?.metrics;
    let (used, counted) = (metrics.get("cpu_ms")?, metrics.get("counted_cpu_ms")?);
    (*used > LEFT_GROUP * counted + UNCOUNTED_MS).then(|| {
        warning(
            "left-group",
            format!(
                "the server's processes used {} of CPU time, of which its control group counted {}: some left the group",
                format::time(used * 1e3),
                format::time(counted * 1e3)
            ),
            "start the server without a tool that moves it to another control group",
        )
    })
}

fn client_limited(trial: &Trial, load: &Load, settings: &Settings) -> Option<Warning> {
    let percent = |side: &Option<Side>| side.as_ref()?.metrics.get("cpu_percent").copied();
    let server = percent(&trial.server_side)?;
    let cpus = settings.server_cpus.len().max(1) as f64;
    if !trial.hosts.is_empty() {
        return host_limited(trial).filter(|_| server < FULL_PERCENT * cpus);
    }
    let client = percent(&trial.client_side)?;
    let threads = f64::from(load.threads.max(1));
    (client >= FULL_PERCENT * threads && server < FULL_PERCENT * cpus).then(|| {
        warning(
            "client-limited",
            format!(
                "the clients' CPUs were full ({client:.0} %), and the server's were not ({server:.0} %)"
            ),
            "read the rate as a lower bound; give the clients more CPUs (--client-cpus)",
        )
    })
}

/// The same with clients on several hosts, one of which may have been overloaded.
fn host_limited(trial: &Trial) -> Option<Warning> {
    let full = |host: &&HostPart| {
        host.cpu_share
            .is_some_and(|share| share * 100.0 >= FULL_PERCENT)
    };
    let first = trial.hosts.iter().find(full)?;
    Some(warning(
        "client-limited",
        format!(
            "on {} of {} client hosts the clients' CPUs were full ({} first), and the server's were not",
            trial.hosts.iter().filter(full).count(),
            trial.hosts.len(),
            first.name
        ),
        "read the rate as a lower bound; start more client hosts, or give them more CPUs",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_record::OtherProcess;

    #[test]
    fn loopback_is_reported_where_it_is_used() {
        let warned = |address: Option<&str>| {
            let settings = Settings {
                server_address: address.map(|address| address.parse().unwrap()),
                ..Settings::default()
            };
            let warnings = of_run(&Host::default(), &settings);
            warnings.iter().any(|warning| warning.kind == "loopback")
        };
        assert!(warned(None) && warned(Some("127.0.0.2")));
        assert!(!warned(Some("10.213.0.1")));
    }

    #[test]
    fn probes_that_struggle_are_reported() {
        let mut load = Load {
            served: 1,
            ..Load::default()
        };
        load.window.duration_s = 1.0;
        let side = |cost, slowest| {
            Some(Side {
                probe_cost_ms: cost,
                slowest_sample_ms: slowest,
                ..Side::default()
            })
        };
        let with = |server_side| {
            let trial = Trial {
                server_side,
                client_side: side(1.0, 0.2),
                ..Trial::default()
            };
            struggling(&trial, &load)
        };
        assert_eq!(with(side(2.0, 0.3)), None);
        assert_eq!(with(side(40.0, 0.3)).unwrap().kind, "probes");
        let slow = with(side(2.0, 160.0)).unwrap();
        assert!(slow.message.contains("160 ms"), "{slow:?}");
    }

    #[test]
    fn processes_outside_the_control_group_are_reported() {
        let with = |used_ms: f64, counted_ms: f64| {
            let metrics = [("cpu_ms", used_ms), ("counted_cpu_ms", counted_ms)];
            let metrics = metrics.map(|(name, value)| (name.to_owned(), value));
            left_group(&Trial {
                server_side: Some(Side {
                    metrics: metrics.into(),
                    ..Side::default()
                }),
                ..Trial::default()
            })
        };
        assert_eq!(with(2451.0, 2440.0), None);
        assert_eq!(with(100.0, 900.0), None, "of a slice");
        assert_eq!(with(2451.0, 186.0).unwrap().kind, "left-group");
    }

    #[test]
    fn cpu_time_of_other_processes_is_reported() {
        let side = |metrics: &[(&str, f64)]| {
            let metrics = metrics
                .iter()
                .map(|&(name, value)| (name.to_owned(), value));
            Some(Side {
                metrics: metrics.collect(),
                ..Side::default()
            })
        };
        let with = |busy, steal| {
            let mut load = Load::default();
            load.window.duration_s = 2.0;
            let trial = Trial {
                server_side: side(&[("cpu_percent", 99.0)]),
                client_side: side(&[("cpu_percent", 90.0)]),
                network: side(&[
                    ("machine_busy_percent", busy),
                    ("machine_steal_percent", steal),
                ]),
                ..Trial::default()
            };
            others(&trial, &load)
        };
        assert_eq!(with(196.0, 0.0), None);
        assert!(with(230.0, 0.0).unwrap().message.contains("41 % of a CPU"));
        assert!(with(190.0, 20.0).unwrap().message.contains("host 20 %"));
    }

    /// Settings of a run with too few repeats.
    pub(super) fn settings() -> Settings {
        Settings {
            clients: vec![1],
            runs: 3,
            ready_timeout_s: 1.0,
            hook_timeout_s: 1.0,
            dialogue: String::new(),
            backlog: 1,
            server_cpus: vec![0],
            client_cpus: vec![1],
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
            ..Settings::default()
        }
    }

    #[test]
    fn known_problems_are_reported_before_the_first_trial() {
        let mut settings = settings();
        let kinds = |host: &Host, settings: &Settings| -> Vec<String> {
            of_run(host, settings)
                .into_iter()
                .map(|warning| warning.kind)
                .collect()
        };
        let quiet = Host::default();
        assert_eq!(kinds(&quiet, &settings), ["few-runs", "loopback"]);
        let busy = Host {
            other_processes: vec![OtherProcess {
                name: "cc1plus".to_owned(),
                cpu_percent: 90.0,
            }],
            virtual_machine: Some("yes".to_owned()),
            ..Host::default()
        };
        assert_eq!(
            kinds(&busy, &settings),
            ["few-runs", "virtual-machine", "loopback"]
        );
        assert_eq!(of_others(&quiet), None);
        assert_eq!(
            of_others(&busy).unwrap().message,
            "other processes used 90 % of a CPU when the run started: cc1plus"
        );
        settings.runs = 6;
        settings.client_cpus = vec![0, 1];
        assert_eq!(
            kinds(&Host::default(), &settings),
            ["shared-cpus", "loopback"]
        );
    }
}
