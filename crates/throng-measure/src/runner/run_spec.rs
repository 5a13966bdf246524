//! The specification of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use super::observer::TrialStart;
use super::plan::{Rounds, ServerUnderTest, TrialSpec, interleave};
use crate::cluster::live_snapshot::TimeEstimate;
use crate::probes::{ProbeKind, other_purposes};
use crate::provenance;
use crate::servers::running;
use throng_record::findings::{self, Planned};
use throng_record::{
    Attempt, ClientHost, Comparison, Ending, Host, Limit, OtherProcess, Purpose, Run,
    SCHEMA_VERSION, ServerInfo, Settings, StudyInfo, ThrongProgram, Trial,
};
use throng_spec::Until;
use throng_spec::registry::{Entry as _, Unsupported};

/// A run, resolved and ready to begin.
#[derive(Default)]
pub struct RunSpec {
    /// Its name.
    pub study: StudyInfo,
    /// The settings in force.
    pub settings: Settings,
    /// The comparison between the servers, if requested.
    pub comparison: Option<Comparison>,
    /// The search for a limit, if the run is one. Each trial then depends on the results before it.
    pub limit: Option<Limit>,
    /// The servers.
    pub servers: Vec<ServerInfo>,
    /// The server that runs twice, as a control.
    pub control: Option<usize>,
    /// The minimal server, for the ceiling of the clients.
    pub null_server: Option<ServerInfo>,
    /// The probes.
    pub probes: Vec<&'static ProbeKind>,
    /// The program that generates the load: this one.
    pub program: PathBuf,
    /// Its build.
    pub built: ThrongProgram,
    /// The seed of the order.
    pub seed: u64,
    /// The command line that started the run.
    pub arguments: Vec<String>,
    /// The machine.
    pub host: Host,
    /// The client hosts, if there are several.
    pub client_hosts: Vec<ClientHost>,
    /// Trials that an earlier invocation of the same run finished.
    pub done: Vec<Trial>,
    /// Whether to repeat the invalid ones among them, whatever the reason.
    pub retry_invalid: bool,
}

impl RunSpec {
    /// The indexes of planned trials to repeat because those of an earlier invocation were invalid.
    pub(crate) fn to_retry(&self) -> Vec<u32> {
        let has_valid = |place: u32| {
            let mut done = self.done.iter();
            done.any(|trial| trial.planned_index() == place && trial.invalid().is_none())
        };
        let mut places: Vec<u32> = self.done.iter().map(Trial::planned_index).collect();
        places.sort_unstable();
        places.dedup();
        places.retain(|place| self.retry_invalid && !has_valid(*place));
        places
    }

    pub(crate) fn server(&self, planned: &TrialSpec) -> &ServerInfo {
        let null = || {
            self.null_server
                .as_ref()
                .expect("one is planned only if there")
        };
        self.servers.get(planned.server).unwrap_or_else(null)
    }

    /// Describes the start of a trial.
    pub(crate) fn starts(
        &self,
        planned: &TrialSpec,
        index: usize,
        estimate: &[f64],
    ) -> TrialStart<'_> {
        TrialStart {
            index,
            total: estimate.len(),
            estimate: Some(TimeEstimate::of(
                estimate,
                index,
                !self.settings.load.has_jobs(),
            )),
            server: &self.server(planned).name,
            clients: planned.clients,
            rate_per_s: None,
            round: planned.round,
            purpose: planned.purpose,
            percent: planned.percent,
        }
    }

    /// Requests per second, if the trial tries a rate.
    pub(crate) fn rate_of(&self, attempt: Option<&Attempt>) -> Option<u64> {
        let searched = self.limit.as_ref()?;
        searched.find.is_rate().then_some(attempt?.value)
    }

    /// All trials in their order.
    pub(crate) fn order(&self) -> Vec<TrialSpec> {
        let mut order = interleave(&self.settings.clients, &self.rounds(), self.seed);
        order.retain(|planned| {
            let server = self.servers.get(planned.server);
            let most = server.and_then(|server| self.settings.max_clients.get(&server.name));
            most.is_none_or(|most| planned.clients <= *most)
        });
        order
    }

    /// Whether a trial is measured side by side with others.
    pub(crate) fn is_in_slices(&self, planned: &TrialSpec) -> bool {
        let timed = [Purpose::Timed, Purpose::Control, Purpose::Ceiling];
        !self.settings.method.is_trials() && timed.contains(&planned.purpose)
    }

    /// The timed rounds, with control and ceiling; then one round per percentage of the rates reached; then, for each
    /// other purpose of a probe that can measure here, as many rounds as requested.
    fn rounds(&self) -> Vec<Rounds> {
        let of = |server, purpose| ServerUnderTest {
            server,
            purpose,
            percent: None,
        };
        let all = |purpose| -> Vec<ServerUnderTest> {
            // Probes that count from a process's birth cannot be used for a server that was already running.
            let can = |server: &usize| {
                purpose != Purpose::Profiled || self.servers[*server].running().is_none()
            };
            (0..self.servers.len())
                .filter(can)
                .map(|server| of(server, purpose))
                .collect()
        };
        let mut timed = all(Purpose::Timed);
        timed.extend(self.control.map(|server| of(server, Purpose::Control)));
        let null_server = self.null_server.iter();
        timed.extend(null_server.map(|_| of(self.servers.len(), Purpose::Ceiling)));
        let at = |percent: &u32| {
            let percent = Some(*percent);
            all(Purpose::AtLoad)
                .into_iter()
                .map(move |server| ServerUnderTest { percent, ..server })
        };
        let at_load: Vec<ServerUnderTest> = self
            .settings
            .latency_at_percent
            .iter()
            .flat_map(at)
            .collect();
        let rounds = |runs, servers_under_test| Rounds {
            runs,
            servers_under_test,
        };
        let of_other = |purpose| rounds(self.settings.profiled_runs, all(purpose));
        // Side by side, rounds are made of slices.
        let runs = if self.settings.method.is_trials() {
            self.settings.runs
        } else {
            1
        };
        let mut others = other_purposes(&self.probes);
        if is_watched(&self.settings, Purpose::Profiled) {
            others.insert(Purpose::Profiled);
        }
        [rounds(runs, timed), rounds(1, at_load)]
            .into_iter()
            .chain(others.into_iter().map(of_other))
            .collect()
    }
}

/// Whether the server of a trial is watched. Side by side, it is watched between slices.
pub(crate) fn is_watched(settings: &Settings, purpose: Purpose) -> bool {
    let has_window = matches!(settings.load.until(), Until::Duration(_));
    purpose == Purpose::Profiled
        && has_window
        && settings.method.is_trials()
        && !settings.why.is_off()
}

/// A run before its first new trial.
pub fn begun(plan: &RunSpec, other_processes: Vec<OtherProcess>) -> Run {
    let settings = &plan.settings;
    let host = Host {
        other_processes,
        ..plan.host.clone()
    };
    let servers: Vec<ServerInfo> = plan.servers.iter().map(with_current_files).collect();
    let mut findings = findings::of_run(&Planned {
        host: &host,
        settings,
        servers: &servers,
        seeks_limit: plan.limit.is_some(),
    });
    findings.extend(provenance::changed(&plan.servers));
    Run {
        schema_version: SCHEMA_VERSION,
        throng_version: env!("CARGO_PKG_VERSION").to_owned(),
        throng_build: build(),
        throng_program: provenance::of_throng(&plan.built, &plan.program),
        study: plan.study.clone(),
        seed: plan.seed,
        started_at: plan
            .done
            .first()
            .map_or_else(utc_now, |trial| trial.started_at.clone()),
        finished_at: None,
        ending: Ending::Unfinished,
        arguments: plan.arguments.clone(),
        settings: settings.clone(),
        servers,
        null_server: plan.null_server.clone(),
        host,
        client_hosts: plan.client_hosts.clone(),
        comparison: plan.comparison.clone(),
        limit: plan.limit.clone(),
        unavailable: unavailable(&plan.probes),
        trials_planned: plan.order().len() as u32,
        findings,
    }
}

/// A server with its current program and files, or its processes.
fn with_current_files(server: &ServerInfo) -> ServerInfo {
    let mut known = provenance::of_server(server);
    // If the server cannot be found now, its trials fail with the reason.
    if let Ok(now) = running::examine(&known)
        && let Some(foreign) = &mut known.foreign
    {
        foreign.running = Some(now);
    }
    known
}

/// The build of this program.
fn build() -> String {
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let environment = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    let (arch, system) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{profile}, {arch}-{system}-{environment}")
}

/// The chosen probes that cannot measure here.
fn unavailable(probes: &[&'static ProbeKind]) -> BTreeMap<String, Unsupported> {
    let why_not = |kind: &&ProbeKind| {
        let unsupported = kind.supported().err()?;
        Some((kind.info.name.to_owned(), unsupported))
    };
    probes.iter().filter_map(why_not).collect()
}

/// The current time in UTC, in RFC 3339 format, to the second; for a clock beyond the year 9999, the end of that year.
pub fn utc_now() -> String {
    jiff::Timestamp::try_from(SystemTime::now())
        .unwrap_or(jiff::Timestamp::MAX)
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
