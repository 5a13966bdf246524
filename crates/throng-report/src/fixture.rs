//! A synthetic record for tests: nine servers, three loads, seven rounds.

mod at_load;
mod files;
mod purposes;
mod searched;
mod watched;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

pub(crate) use at_load::at_load;
use throng_record::findings::machine::LOOPBACK;
use throng_record::load_stats::{PARTS, Times, TimesByPart};
use throng_record::{
    Correlation, Ending, FailedStage, Failure, Fairness, Host, Latency, LifeFairness, Load,
    OtherProcess, Purpose, Run, SCHEMA_VERSION, ServerInfo, Settings, Side, StudyInfo,
    ThrongProgram, TimesOverWindow, Trial, Window,
};
use throng_spec::{LoadSpec, Sizes};

pub(super) use files::{logs, write};
pub(super) use purposes::captured;
pub(crate) use searched::searched;
pub(crate) use watched::{hold, own, profile, system_call, watched};

/// Name, CPU µs per reply at 10 clients, growth per tenfold increase in clients, client limit, bytes per client.
type Server = (&'static str, f64, f64, u32, f64);

const SERVERS: [Server; 9] = [
    ("iterative", 6.2, 1.0, 1, 100.0),
    ("fork", 11.0, 1.35, u32::MAX, 410_000.0),
    ("prefork", 8.4, 1.1, 64, 90_000.0),
    ("thread", 9.1, 1.12, u32::MAX, 33_000.0),
    ("select", 8.0, 1.9, u32::MAX, 1_300.0),
    ("poll", 7.6, 1.7, u32::MAX, 1_200.0),
    ("epoll", 6.6, 1.03, u32::MAX, 1_250.0),
    ("epoll-et", 6.4, 1.03, u32::MAX, 1_250.0),
    ("io-uring", 5.9, 1.01, u32::MAX, 2_700.0),
];

const LOADS: [u32; 3] = [10, 100, 1000];

/// A complete record, in which two trials of fork with 1000 clients failed.
pub(crate) fn record() -> (Run, Vec<Trial>) {
    let mut random = fastrand::Rng::with_seed(11);
    let mut trials = Vec::new();
    for round in 0..7 {
        for clients in LOADS {
            for server in &SERVERS {
                let index = trials.len() as u32;
                trials.push(trial(index, round, clients, server, &mut random));
            }
        }
    }
    for trial in trials
        .iter_mut()
        .filter(|t| t.server == "fork" && t.clients == 1000 && (1..3).contains(&t.round))
    {
        trial.failure = Some(failure());
        trial.load = None;
    }
    for clients in LOADS {
        for server in &SERVERS {
            let index = trials.len() as u32;
            trials.push(purposes::counted(trial(
                index,
                0,
                clients,
                server,
                &mut random,
            )));
        }
    }
    (run(&SERVERS), trials)
}

/// The same servers with enough different numbers of clients to see how they scale.
pub(crate) fn growing() -> (Run, Vec<Trial>) {
    let mut random = fastrand::Rng::with_seed(17);
    let mut run = run(&SERVERS);
    run.settings.clients = vec![1, 5, 20, 100, 300, 600, 900];
    run.trials_planned = 189;
    let mut trials = Vec::new();
    for round in 0..3 {
        for clients in run.settings.clients.clone() {
            for server in &SERVERS {
                let index = trials.len() as u32;
                let mut trial = trial(index, round, clients, server, &mut random);
                if let Some(load) = &mut trial.load {
                    // A few clients do not keep a server busy.
                    load.window
                        .replies_per_s
                        .iter_mut()
                        .for_each(|rate| *rate *= f64::from(clients) / f64::from(clients + 4));
                }
                trials.push(trial);
            }
        }
    }
    (run, trials)
}

/// Multiplies every rate of `server` by `factor`.
pub(crate) fn faster(trials: &mut [Trial], server: &str, factor: f64) {
    for trial in trials.iter_mut().filter(|trial| trial.server == server) {
        if let Some(load) = &mut trial.load {
            load.window
                .replies_per_s
                .iter_mut()
                .for_each(|rate| *rate *= factor);
        }
    }
}

/// A failure of the server.
pub(crate) fn failure() -> Failure {
    Failure {
        stage: FailedStage::Serve,
        reason: "the server ended by itself with exit code 1".to_owned(),
        output: "error: cannot fork: Resource temporarily unavailable (os error 11)\n".to_owned(),
        signal: None,
    }
}

/// A distribution of these times, given in nanoseconds. Each is computed only once, because that is slow in
/// unoptimised builds.
pub(crate) fn latency(nanoseconds: &[u64]) -> Latency {
    static MADE: Mutex<BTreeMap<Vec<u64>, Latency>> = Mutex::new(BTreeMap::new());
    let distribution = || {
        let mut times = Times::default();
        for time in nanoseconds {
            times.record(*time);
        }
        let histogram = times.histogram();
        Latency {
            p99_us: Some(histogram.value_at_quantile(0.99) as f64 / 1e3),
            p999_us: None,
            p9999_us: None,
            ..Latency::of(&histogram).unwrap()
        }
    };
    let mut made = MADE.lock().unwrap();
    made.entry(nanoseconds.to_vec())
        .or_insert_with(distribution)
        .clone()
}

fn run(servers: &[Server]) -> Run {
    Run {
        schema_version: SCHEMA_VERSION,
        throng_version: "0.1.0".to_owned(),
        throng_build: "release, x86_64-linux-gnu".to_owned(),
        throng_program: ThrongProgram {
            sha256: Some("cd".repeat(32)),
            commit: Some("1234567890abcdef".to_owned()),
            modified: Some(true),
            compiler: Some("rustc 1.95.0".to_owned()),
            flags: Some("release".to_owned()),
        },
        study: StudyInfo {
            name: "overview".to_owned(),
            question: "Which model is the cheapest on this machine?".to_owned(),
        },
        seed: 42,
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        finished_at: Some("2026-01-02T03:09:45Z".to_owned()),
        ending: Ending::Complete,
        arguments: ["throng", "run", "--clients", "10,100,1000", "--runs", "7"].map(str::to_owned).to_vec(),
        settings: Settings {
            load: LoadSpec {
                clients: 1000,
                protocol: Some("echo".to_owned()),
                size: Sizes::one(64),
                duration: Some(Duration::from_secs(2)),
                connect_timeout: Duration::from_secs(5),
                first_reply_timeout: Duration::from_secs(2),
                ..LoadSpec::default()
            },
            clients: LOADS.to_vec(),
            profiled_runs: 1,
            runs: 7,
            ready_timeout_s: 10.0,
            stop_timeout_s: 30.0,
            keep_going: false,
            hook_timeout_s: 60.0,
            dialogue: String::new(),
            link: None,
            backlog: 4096,
            server_cpus: vec![0],
            client_cpus: vec![1],
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
            ..Settings::default()
        },
        servers: servers
            .iter()
            .map(|(name, _, _, limit, _)| ServerInfo {
                name: (*name).to_owned(),
                summary: format!("the {name} server"),
                structural_limit: match limit {
                    1 => Some("it serves one client at a time".to_owned()),
                    64 => Some("it serves 64 clients at a time, one for each worker".to_owned()),
                    _ => None,
                },
                keeps_waiting: [1, 64].contains(limit),
                command: vec!["throng".to_owned(), "serve".to_owned(), (*name).to_owned()],
                ..ServerInfo::default()
            })
            .collect(),
        null_server: None,
        client_hosts: Vec::new(),
        host: host(),
        comparison: None,
        limit: None,
        unavailable: BTreeMap::new(),
        trials_planned: 216,
        findings: vec![LOOPBACK.found_with(
            "server and clients share one machine and talk over loopback, which is not a network".to_owned(),
            "read the results as CPU costs; use two machines for rates",
        )],
    }
}

/// A trial whose clients' CPUs were full, and its server's were not.
pub(crate) fn limit_by_clients(trial: &mut Trial) {
    for (side, percent) in [
        (&mut trial.client_side, 99.0),
        (&mut trial.server_side, 60.0),
    ] {
        if let Some(side) = side {
            side.metrics.insert("cpu_percent".to_owned(), percent);
        }
    }
}

/// Applies the rules about single trials again, after a change of what was measured.
pub(crate) fn examine(run: &Run, trials: &mut [Trial]) {
    for trial in trials {
        let mut servers = run.servers.iter();
        let server = servers
            .find(|server| server.name == trial.server)
            .cloned()
            .unwrap_or_default();
        trial.examine(&server, &run.settings, &run.host);
    }
}

fn host() -> Host {
    Host {
        kernel: "Linux 6.18.1".to_owned(),
        cpu_model: Some("Example CPU 3000".to_owned()),
        cpu: [("stepping", "8"), ("microcode", "0x1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cpu_mhz: Some(2600.0),
        cpus: 2,
        memory_bytes: Some(8 << 30),
        virtual_machine: Some("kvm".to_owned()),
        somaxconn: Some(4096),
        libc: Some("glibc 2.41".to_owned()),
        sysctls: [(
            "net.ipv4.tcp_rmem".to_owned(),
            "4096 131072 6291456".to_owned(),
        )]
        .into(),
        kernel_command_line: Some("ro mitigations=auto".to_owned()),
        other_processes: vec![OtherProcess {
            name: "cc".to_owned(),
            cpu_percent: 99.0,
        }],
        limits: [("nofile".to_owned(), "1024 soft, 1048576 hard".to_owned())].into(),
        mitigations: [("meltdown".to_owned(), "Not affected".to_owned())].into(),
        ..Host::default()
    }
}

/// These times, arriving evenly over a window.
fn over_window(times: &[u64]) -> Option<TimesOverWindow> {
    let mut by_part = TimesByPart::default();
    for (place, time) in times.iter().enumerate() {
        by_part.record(place % PARTS, *time);
    }
    by_part.recorded()
}

fn trial(
    index: u32,
    round: u32,
    clients: u32,
    server: &Server,
    random: &mut fastrand::Rng,
) -> Trial {
    let (name, base, growth, limit, bytes_a_client) = *server;
    let noise = 0.99 + 0.02 * random.f64();
    let cost = base * growth.powf(f64::from(clients).log10() - 1.0) * noise;
    let reached = clients.min(limit);
    let rate = (1e6 / cost).round();
    let replies = (rate * 2.0) as u64;
    let typical = f64::from(reached) * 1e9 / rate;
    let times: Vec<u64> = (0..400)
        .map(|_| (typical * (0.6 + random.f64() + 2.0 * random.f64().powi(12))) as u64)
        .collect();
    let most = replies / u64::from(reached);
    let uneven = if name == "thread" { 0.04 } else { 0.004 };
    Trial {
        index,
        round,
        server: name.to_owned(),
        clients,
        purpose: Purpose::Timed,
        attempt: None,
        started_at: "2026-01-02T03:04:06Z".to_owned(),
        took_s: 3.1,
        failure: None,
        load: Some(Load {
            clients,
            connected: clients,
            served: reached,
            never_served: clients - reached,
            connections: clients.into(),
            requests: replies * 5 / 4,
            verified: replies * 5 / 4,
            statuses: BTreeMap::new(),
            unexpected: BTreeMap::new(),
            window: Window {
                duration_s: 2.0,
                replies,
                replies_per_s: Some(rate),
                bytes_sent: replies * 64,
                bytes_received: replies * 64,
                intervals: vec![replies / 20; 20],
                intervals_by_tenth: by_tenth(
                    replies / 200,
                    if name == "thread" { 0.04 } else { 0.0 },
                ),
                times: over_window(&times),
            },
            service_time: Some(latency(&times)),
            connect_time: Some(latency(&[40_000, u64::from(clients) * 9_000])),
            first_reply: Some(latency(&[90_000, u64::from(clients) * 30_000])),
            fairness: Some(Fairness {
                early_bias: Some(correlation(if name == "thread" { 0.4 } else { 0.01 })),
                early_bias_life: Some(correlation(0.6)),
                early_over_late: Some(1.0 + 0.5625 * f64::from(u8::from(name == "thread"))),
                bias_absent: None,
                life: Some(LifeFairness {
                    mean: 1.1 * most as f64,
                    min: most * 8 / 10,
                    max: most * 13 / 10,
                    jain: 1.0 - 2.0 * uneven * noise,
                    early_over_late: Some(1.2),
                }),
                mean: most as f64,
                min: most * 9 / 10,
                max: most * 11 / 10,
                jain: 1.0 - uneven * noise,
                slowest_decile_share: 0.097,
                starved: u32::from(name == "thread" && clients == 1000) * 3,
            }),
            stopped_by: "duration".to_owned(),
            threads: 1,
            engine: "epoll".to_owned(),
            ..Load::default()
        }),
        server_side: Some(side(
            cost * replies as f64 / 1e3,
            99.0,
            f64::from(reached) * bytes_a_client,
        )),
        client_side: Some(side(4.0 * replies as f64 / 1e3, 70.0, 9e6)),
        ..Trial::default()
    }
}

fn correlation(coefficient: f64) -> Correlation {
    Correlation {
        coefficient,
        low: Some(coefficient - 0.06),
        high: Some(coefficient + 0.06),
    }
}

/// Replies of each tenth in each interval. Each later tenth gets fewer, by the share `less` of the first tenth's
/// replies.
fn by_tenth(replies: u64, less: f64) -> Vec<Vec<u64>> {
    let of = |tenth: u32| (replies as f64 * (1.0 - less * f64::from(tenth))) as u64;
    (0..10).map(|tenth| vec![of(tenth); 20]).collect()
}

fn side(cpu_ms: f64, cpu_percent: f64, memory: f64) -> Side {
    let metrics = [
        ("cpu_ms", cpu_ms),
        ("cpu_user_ms", cpu_ms * 0.2),
        ("cpu_system_ms", cpu_ms * 0.8),
        ("cpu_percent", cpu_percent),
        ("run_cpu_percent", cpu_percent),
        ("parent_cpu_percent", cpu_percent / 2.0),
        ("pss_bytes", 1_400_000.0 + memory),
        ("peak_bytes", 1_500_000.0 + memory),
        ("parent_rss_bytes", 2_600_000.0),
        ("peak_rss_bytes", 2_700_000.0),
        ("threads", 1.0),
        ("processes", 1.0),
        ("descriptors", 12.0),
        ("voluntary_switches_per_s", 1200.0),
        ("involuntary_switches_per_s", 90.0),
    ];
    Side {
        metrics: metrics.map(|(name, value)| (name.to_owned(), value)).into(),
        ..Side::default()
    }
}
