//! Loads that come from several hosts: a cluster of threads on this machine, each a client host with an agent
//! that starts real loads.
//!
//! `cluster TROUBLE HOSTS SUBCOMMAND ...` is the program with such a cluster, for tests of whole subcommands.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests, though not marked as such"
)]

mod hosts;
mod subcommands;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use hosts::{Threads, Trouble};
use throng::measure::cluster::{Cluster, Origin};
use throng::measure::{self, RunSpec, probes};
use throng::record::{
    Ending, Find, Limit, Purpose, Run, ServerInfo, Settings, Store, StudyInfo, Trial,
};
use throng::spec::{LoadSpec, RateRange, Sizes, Until};
use throng::sys::signal::Stop;

use crate::support::program::{THRONG, words};
use crate::support::runs::Unseen;
use crate::support::schemas::Schemas;

/// Runs as throng with a cluster, if this program was started for that.
pub(crate) fn as_program() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().collect();
    match words.get(1)?.to_str()? {
        "serve" | "load" if words.len() > 2 => Some(throng::cli::main_with(words, None)),
        "cluster" if words.len() > 4 => Some(with_threads(&words)),
        _ => None,
    }
}

pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    let tests: [(&str, fn()); 11] = [
        (
            "the_sum_over_hosts_is_what_the_server_counted",
            the_sum_over_hosts_is_what_the_server_counted,
        ),
        (
            "an_open_loop_has_one_schedule_over_all_hosts",
            an_open_loop_has_one_schedule_over_all_hosts,
        ),
        (
            "jobs_are_divided_among_hosts_and_all_done",
            jobs_are_divided_among_hosts_and_all_done,
        ),
        (
            "more_hosts_than_clients_leave_some_at_rest",
            more_hosts_than_clients_leave_some_at_rest,
        ),
        (
            "a_host_whose_load_fails_is_named_and_the_run_goes_on",
            a_host_with_a_failed_load_is_named_and_the_run_continues,
        ),
        (
            "a_host_that_is_lost_ends_the_run_with_what_it_has",
            a_host_that_is_lost_ends_the_run_with_what_it_has,
        ),
        (
            "a_limit_is_searched_for_over_a_crew",
            a_limit_is_searched_for_over_a_crew,
        ),
        (
            "servers_are_compared_over_a_crew",
            subcommands::servers_are_compared_over_a_cluster,
        ),
        (
            "a_study_runs_over_a_crew",
            subcommands::a_study_runs_over_a_cluster,
        ),
        (
            "a_lost_host_is_reported_and_the_run_can_go_on",
            subcommands::a_lost_host_is_reported_and_the_run_can_go_on,
        ),
        (
            "what_client_hosts_could_not_do_is_refused",
            subcommands::what_client_hosts_could_not_do_is_refused,
        ),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        libtest_mimic::Trial::test(format!("cluster::{name}"), move || {
            test();
            Ok(())
        })
    });
    tests.collect()
}

/// The program with its clients on a cluster of threads.
fn with_threads(words: &[OsString]) -> ExitCode {
    let word = |place: usize| words[place].to_str().expect("it is a number");
    let trouble = match word(2) {
        "lost-in-second" => Trouble::LostIn(1),
        _ => Trouble::None,
    };
    let hosts = word(3).parse().expect("a number of hosts");
    let rest = words[..1].iter().chain(&words[4..]).cloned();
    throng::cli::main_with(rest, Some(Box::new(Threads::new(hosts, trouble))))
}

fn server() -> ServerInfo {
    let words = words(
        "{} serve epoll --listen 127.0.0.1:0 --size 100 --json",
        &[THRONG],
    );
    ServerInfo {
        name: "epoll".to_owned(),
        summary: "one loop".to_owned(),
        command: words.into_iter().map(str::to_owned).collect(),
        ..ServerInfo::default()
    }
}

/// A short load of so many clients.
fn load_of(clients: u32) -> LoadSpec {
    LoadSpec {
        clients,
        protocol: Some("echo".to_owned()),
        size: Sizes::one(100),
        duration: Some(Duration::from_millis(200)),
        warm_up: Duration::ZERO,
        connect_timeout: Duration::from_mins(1),
        first_reply_timeout: Duration::from_mins(1),
        ..LoadSpec::default()
    }
}

/// A short run with clients on these hosts.
fn plan(load: LoadSpec, cluster: &dyn Cluster) -> RunSpec {
    RunSpec {
        probes: probes::choose(&["cpu".to_owned()]).expect("there is one"),
        study: StudyInfo {
            name: "cluster".to_owned(),
            question: "is it one load?".to_owned(),
        },
        settings: Settings {
            clients: vec![load.clients],
            load,
            runs: 1,
            ready_timeout_s: 10.0,
            stop_timeout_s: 30.0,
            keep_going: true,
            backlog: 128,
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
            profiled_runs: 1,
            ..Settings::default()
        },
        servers: vec![server()],
        program: PathBuf::from(THRONG),
        seed: 1,
        host: measure::host::examine(),
        client_hosts: cluster.hosts().to_vec(),
        ..RunSpec::default()
    }
}

fn carry_out(plan: &RunSpec, cluster: Threads, directory: &Path) -> (Run, Vec<Trial>) {
    carry_out_from(plan, Origin::Cluster(Box::new(cluster)), directory)
}

fn carry_out_from(plan: &RunSpec, mut origin: Origin, directory: &Path) -> (Run, Vec<Trial>) {
    let mut store = Store::create(directory).expect("a new record");
    let stop = Stop::install().expect("signals can be handled");
    measure::run(plan, &mut origin, &mut store, &mut Unseen, stop).expect("the record is written")
}

/// Whether a record is as the schemas describe it.
fn check_schemas(directory: &Path) {
    let schemas = Schemas::read();
    let read = |name| std::fs::read_to_string(directory.join(name)).expect("a file");
    let check = |schema: &str, text: &str| {
        schemas.check(schema, &serde_json::from_str(text).expect("JSON"));
    };
    check("run", &read("run.json"));
    for line in read("trials.jsonl").lines() {
        check("trial", line);
    }
}

fn lines(directory: &Path, trial: &Trial) -> Vec<String> {
    let path = directory.join("clients").join(trial.file_stem() + ".csv");
    let text = std::fs::read_to_string(path).expect("rows of all clients");
    text.lines().map(str::to_owned).collect()
}

/// Connections and requests that the server counted and that are none of the load's: those with which it was
/// verified before.
fn of_others(trial: &Trial) -> (u64, u64) {
    let counts = trial.server_counts.as_ref().unwrap();
    let load = trial.load.as_ref().unwrap();
    let connections = counts.accepted - load.connections;
    (connections, counts.requests - load.verified)
}

fn the_sum_over_hosts_is_what_the_server_counted() {
    let cluster = Threads::new(3, Trouble::None);
    let directory = tempfile::tempdir().unwrap();
    let (run, trials) = carry_out(&plan(load_of(50), &cluster), cluster, directory.path());
    assert_eq!(run.ending, Ending::Complete);
    assert_eq!(run.client_hosts.len(), 3);
    let trial = &trials[0];
    assert_eq!(trial.failure, None);
    let load = trial.load.as_ref().unwrap();
    let alone = tempfile::tempdir().unwrap();
    let plan = plan(load_of(3), &Threads::new(0, Trouble::None));
    let (_, by_itself) = carry_out_from(&plan, Origin::Here, alone.path());
    assert_eq!(of_others(trial), of_others(&by_itself[0]));
    assert!(load.connections == 50 && load.verified > 50, "{load:?}");
    assert_eq!((load.clients, load.served), (50, 50));
    let clients: Vec<u32> = trial.hosts.iter().map(|host| host.clients).collect();
    assert_eq!(clients, [17, 17, 16]);
    let sum: u64 = trial.hosts.iter().filter_map(|host| host.replies).sum();
    assert_eq!(sum, load.window.replies);
    assert_eq!(load.service_time.as_ref().unwrap().count, sum);
    assert!(
        trial
            .hosts
            .iter()
            .all(|host| host.side.is_some() && host.failure.is_none())
    );
    let skew = trial.start_skew.expect("all have one clock");
    assert!(skew.skew_us >= 0.0 && skew.error_us >= 0.0);
    // A row for each client, with its host; together every client once.
    let lines = lines(directory.path(), trial);
    assert!(lines[0].starts_with("client,") && lines[0].ends_with(",rank,host"));
    let mut numbers: Vec<u32> = lines[1..]
        .iter()
        .map(|line| line.split(',').next().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    assert_eq!(
        throng::record::read_trials(directory.path()).unwrap(),
        trials
    );
    check_schemas(directory.path());
}

fn an_open_loop_has_one_schedule_over_all_hosts() {
    let cluster = Threads::new(2, Trouble::None);
    let directory = tempfile::tempdir().unwrap();
    let open = LoadSpec {
        rate: Some(RateRange::constant(1000.0)),
        probe_clients: Some(1),
        ..load_of(10)
    };
    let plan = plan(open, &cluster);
    let (_, trials) = carry_out(&plan, cluster, directory.path());
    let load = trials[0].load.as_ref().unwrap();
    let due = load.open_loop.as_ref().unwrap().due;
    // The schedule of 200 ms; windows do not begin at the same moment.
    assert!((198..=202).contains(&due), "{due}");
    assert_eq!(load.probe.as_ref().unwrap().clients, 1);
}

fn jobs_are_divided_among_hosts_and_all_done() {
    let cluster = Threads::new(2, Trouble::None);
    let directory = tempfile::tempdir().unwrap();
    let jobs = Until::Each {
        requests: Some(4),
        live: None,
        limit: None,
    };
    let load = LoadSpec {
        at_once: Some(7),
        ..load_of(31).ending(jobs)
    };
    let plan = plan(load, &cluster);
    let (_, trials) = carry_out(&plan, cluster, directory.path());
    let load = trials[0].load.as_ref().unwrap();
    let jobs = load.completion.as_ref().unwrap();
    assert_eq!((jobs.clients_done, jobs.failed, jobs.at_once), (31, 0, 7));
    assert_eq!(load.verified, 31 * 4);
    assert_eq!(load.stopped_by, "clients");
}

fn more_hosts_than_clients_leave_some_at_rest() {
    let cluster = Threads::new(3, Trouble::None);
    let directory = tempfile::tempdir().unwrap();
    let (_, trials) = carry_out(&plan(load_of(2), &cluster), cluster, directory.path());
    assert_eq!(trials[0].failure, None);
    assert_eq!(trials[0].hosts.len(), 2);
}

fn a_host_with_a_failed_load_is_named_and_the_run_continues() {
    let cluster = Threads::new(2, Trouble::FailsFirst(1));
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan(load_of(8), &cluster);
    plan.settings.runs = 2;
    let (run, trials) = carry_out(&plan, cluster, directory.path());
    assert_eq!((run.ending, trials.len()), (Ending::Complete, 2));
    let failure = trials[0].failure.as_ref().expect("its clients are missing");
    assert!(failure.reason.contains("(rank 2)"), "{failure:?}");
    assert!(trials[0].load.is_none());
    assert!(trials[0].hosts[1].failure.is_some());
    assert_eq!(trials[1].failure, None);
}

fn a_host_that_is_lost_ends_the_run_with_what_it_has() {
    let cluster = Threads::new(2, Trouble::LostIn(1));
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan(load_of(8), &cluster);
    plan.settings.runs = 3;
    let (run, trials) = carry_out(&plan, cluster, directory.path());
    assert_eq!((run.ending, trials.len()), (Ending::HostLost, 2));
    assert_eq!(trials[0].failure, None, "what was measured before is kept");
    let failure = trials[1].failure.as_ref().unwrap();
    assert!(
        failure.reason.contains("(rank 1): it was lost"),
        "{failure:?}"
    );
    let (_, again, done) = Store::resume(directory.path()).expect("it can go on");
    assert_eq!((again.ending, done.len()), (Ending::HostLost, 2));
}

fn a_limit_is_searched_for_over_a_crew() {
    let cluster = Threads::new(2, Trouble::None);
    let directory = tempfile::tempdir().unwrap();
    let mut plan = plan(load_of(8), &cluster);
    plan.settings.clients = Vec::new();
    plan.servers[0]
        .command
        .extend(["--max-clients", "20"].map(str::to_owned));
    plan.limit = Some(Limit {
        find: Find::Clients,
        from: 16,
        max: 64,
        max_reason: "it is enough".to_owned(),
        factor: 2.0,
        within_percent: 0.0,
        tries: 20,
        time_limit_s: 60.0,
        confirm: 1,
        until: Vec::new(),
        clients: None,
        found: Vec::new(),
    });
    let (run, trials) = carry_out(&plan, cluster, directory.path());
    let found = &run.limit.as_ref().unwrap().found[0];
    assert_eq!(
        found.passed.map(|passed| passed.value),
        Some(20),
        "{found:?}"
    );
    assert!(trials.iter().all(|trial| trial.purpose != Purpose::Timed));
    assert!(trials.iter().any(|trial| trial.hosts.len() == 2));
}
