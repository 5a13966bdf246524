//! The record of a run: valid by the schemas, the same on both sides to the byte, and whole however the run ends.

mod at_load;
mod clock;
mod drawn;
mod failures;
mod interruption;
mod killed;
mod metrics;
mod network;
mod phases;
mod runs;
mod together;

use std::path::PathBuf;
use std::time::Duration;

use throng::measure::cluster::Origin;
use throng::measure::{self, RunSpec, probes};
use throng::record::{Run, ServerInfo, Settings, Store, StudyInfo, Trial};
use throng::spec::LoadSpec;
use throng::sys::signal::Stop;

use crate::support::program::THRONG;
use crate::support::runs::Unseen;

/// A short run of these servers, each of which prints where it listens.
fn plan(servers: Vec<ServerInfo>, clients: u32) -> RunSpec {
    RunSpec {
        probes: probes::choose(&["cpu".to_owned()]).expect("there is one"),
        study: StudyInfo {
            name: "failures".to_owned(),
            question: "does it go on?".to_owned(),
        },
        settings: Settings {
            load: LoadSpec {
                clients,
                protocol: Some("echo".to_owned()),
                duration: Some(Duration::from_millis(500)),
                warm_up: Duration::ZERO,
                connect_timeout: Duration::from_secs(2),
                first_reply_timeout: Duration::from_millis(500),
                ..LoadSpec::default()
            },
            clients: vec![clients],
            runs: 1,
            ready_timeout_s: 3.0,
            stop_timeout_s: 30.0,
            keep_going: true,
            hook_timeout_s: 1.0,
            backlog: 16,
            load_threads: 1,
            probes: vec!["cpu".to_owned()],
            profiled_runs: 1,
            ..Settings::default()
        },
        servers,
        program: PathBuf::from(THRONG),
        seed: 1,
        ..RunSpec::default()
    }
}

/// Runs it into a temporary directory.
fn carry_out(plan: &RunSpec) -> (Run, Vec<Trial>) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut store = Store::create(directory.path()).expect("a new record");
    let stop = Stop::install().expect("signals can be handled");
    let ran = measure::run(plan, &mut Origin::Here, &mut store, &mut Unseen, stop)
        .expect("the record is written");
    let written = throng::record::read_trials(directory.path()).expect("a record");
    assert_eq!(written, ran.1, "what was measured is what was written");
    ran
}
