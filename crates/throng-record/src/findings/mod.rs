//! The table of findings: everything that is wrong with a result or limits it, each under one name.
//!
//! A finding is one entry in the file of its subject, and its line in [`FINDINGS`]: name, severity, meaning, remedy and
//! the rule that finds it. Rules look at one trial, at a run before its first trial, or at all trials of a run. The
//! runner applies them once, and the record keeps what they found: reports, grades and causes of limits read it.

pub mod cause;
pub mod connections;
pub mod cpu;
pub mod generator;
pub mod machine;
pub mod replies;
pub mod run;
pub mod servers;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throng_spec::registry::{Entry, Info};

use crate::{
    Find, Foreign, GroupLimits, Host, Load, ServerInfo, Settings, Side, Trial, measurable,
};

/// How much a finding matters.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// The results hold, with a caveat.
    Rough,
    /// The trial must not be used.
    Invalid,
    /// The run ranks nothing.
    Unusable,
}

impl Severity {
    /// In one word.
    pub fn text(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Rough => "rough",
            Self::Invalid => "invalid",
            Self::Unusable => "unusable",
        }
    }
}

/// What was found in a trial or a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Its name; `throng list findings` has them all.
    #[schemars(with = "String")]
    pub kind: Kind,
    /// How much it matters here.
    pub severity: Severity,
    /// The evidence, with numbers.
    pub text: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Numbers of the evidence that other judgements need.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, f64>,
}

/// An entry of the table: a kind of finding.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FindingKind {
    /// Its only name everywhere.
    pub name: &'static str,
    /// How much it matters, unless the evidence weighs more or less.
    pub severity: Severity,
    /// What it means; lists show it as the summary.
    #[serde(skip)]
    pub meaning: &'static str,
    /// The usual remedy.
    pub remedy: &'static str,
    /// Whether the server may be the cause. If every trial has it, it is a property of the server.
    pub of_server: bool,
    #[serde(skip)]
    rule: Rule,
}

/// Who finds it.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// A rule about one trial with a load.
    Trial(fn(&Observed<'_>) -> Option<Evidence>),
    /// A rule about the machine and the settings, known before the first trial.
    Run(fn(&Planned<'_>) -> Option<Evidence>),
    /// The same, about the machine alone.
    MachineOfRun(fn(&Planned<'_>) -> Option<Evidence>),
    /// A rule about what the machine allows. Only `throng doctor` applies it, since few runs need so much.
    Machine(fn(&Machine<'_>) -> Option<Evidence>),
    /// A rule about all trials together.
    Trials(fn(&[Trial]) -> Option<Evidence>),
    /// A rule about why a server failed.
    Cause(fn(&cause::FailedTrial<'_>) -> Option<cause::Sign>),
    /// The code that meets it.
    Met,
}

/// What a rule saw.
#[derive(Debug, Default)]
pub struct Evidence {
    text: String,
    remedy: Option<String>,
    severity: Option<Severity>,
    values: BTreeMap<String, f64>,
}

impl From<String> for Evidence {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Evidence {
    fn remedy(mut self, remedy: &str) -> Self {
        self.remedy = Some(remedy.to_owned());
        self
    }

    /// With another severity, if `is_so`.
    fn severe(mut self, severity: Severity, is_so: bool) -> Self {
        self.severity = is_so.then_some(severity).or(self.severity);
        self
    }

    fn value(mut self, name: &str, value: f64) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }
}

/// What the trials had in common.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// Their server.
    pub server: &'a ServerInfo,
    /// Their settings.
    pub settings: &'a Settings,
    /// Their machine.
    pub host: &'a Host,
    /// What failed: to serve a number of clients, or to keep up with a rate.
    pub find: Find,
}

/// A trial with a load, as rules see it.
pub struct Observed<'a> {
    trial: &'a Trial,
    load: &'a Load,
    circumstances: Circumstances<'a>,
}

/// A run before its first trial, as rules see it.
pub struct Planned<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The settings.
    pub settings: &'a Settings,
    /// The servers.
    pub servers: &'a [ServerInfo],
    /// Whether it searches for a limit.
    pub seeks_limit: bool,
}

/// A machine by itself, as rules see it.
pub struct Machine<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The limits of throng's control groups.
    pub group: &'a GroupLimits,
}

/// Every finding. Of those that make a trial invalid, the first is given as the reason: problems of the load generator
/// come before those of the server, which they may cause.
pub static FINDINGS: &[&FindingKind] = &[
    &generator::STALLED,
    &generator::START_SKEW,
    &generator::SILENT_HOST,
    &generator::SLOW_HOST,
    &cpu::OTHERS,
    &generator::BEHIND_SCHEDULE,
    &replies::NO_REPLY,
    &replies::UNSERVED,
    &generator::SILENT_WORKER,
    &replies::UNEXPECTED_STATUS,
    &replies::NOT_LEVEL,
    &replies::UNSTEADY,
    &replies::UNBALANCED,
    &replies::REDIRECTED,
    &replies::REJECTED,
    &replies::FEW_STREAMS,
    &replies::OVERLOADED,
    &replies::RATE_NOT_KEPT,
    &cpu::CLIENT_LIMITED,
    &cpu::CLIENTS_FULL,
    &cpu::NO_CPU,
    &cpu::CPU_QUOTA,
    &cpu::MEMORY_HIGH,
    &cpu::PROBES,
    &cpu::LEFT_GROUP,
    &connections::FAILED_FLOWS,
    &connections::DROPPED_PACKETS,
    &connections::LATE_CONNECTIONS,
    &connections::DELAYED_ACK,
    &connections::RETRANSMISSIONS,
    &connections::FEW_PORTS,
    &servers::OUTPUT,
    &servers::STOPPED_LATE,
    &servers::SERVER_SAYS,
    &machine::FEW_RUNS,
    &machine::SHARED_CPUS,
    &machine::VIRTUAL_MACHINE,
    &machine::LOOPBACK,
    &machine::BUSY_MACHINE,
    &machine::SMALL_QUOTA,
    &machine::FEW_CPUS,
    &machine::FEW_DESCRIPTORS,
    &machine::NARROW_PORTS,
    &machine::SHORT_QUEUE,
    &machine::GOVERNOR,
    &machine::GROUP_LIMITS,
    &machine::NO_GROUPS,
    &machine::UNSUPPORTED,
    &servers::FILES_CHANGED,
    &servers::CLIENTS_SIDE_ONLY,
    &servers::RAN_BEFORE,
    &servers::SAME_PROCESSES,
    &machine::DISTURBED,
    &machine::NOISY,
    &servers::CLEANUP_FAILED,
    &run::NOTHING_MEASURED,
    &run::CONTROL_DIFFERS,
    &run::WARMING_UP,
    &run::FAILED_TRIALS,
    &run::INVALID_TRIALS,
    &run::FEW_TRIALS,
    &run::NOISE,
    &cause::direct::SERVER_MESSAGE,
    &cause::direct::MAX_CLIENTS,
    &cause::direct::SET_SIZE,
    &cause::direct::POOL_SIZE,
    &cause::direct::MAPPINGS,
    &cause::direct::MEMORY,
    &cause::direct::DESCRIPTORS,
    &cause::direct::THREADS,
    &cause::direct::SOURCE_PORTS,
    &cause::direct::CLIENT_DESCRIPTORS,
    &cause::direct::CRASH,
    &cause::indirect::DESIGN,
    &cause::indirect::ACCEPT_QUEUE,
    &cause::indirect::TCP_MEMORY,
    &cause::indirect::CLIENT,
    &cause::indirect::SERVER_CPU,
    &cause::indirect::SERVER_WAITS,
    &cause::UNKNOWN,
];

impl Entry for FindingKind {
    fn info(&self) -> Info {
        Info {
            name: self.name,
            summary: self.meaning,
        }
    }
}

impl FindingKind {
    const fn new(
        name: &'static str,
        severity: Severity,
        meaning: &'static str,
        remedy: &'static str,
        rule: Rule,
    ) -> Self {
        Self {
            name,
            severity,
            meaning,
            remedy,
            of_server: false,
            rule,
        }
    }

    /// A cause of failures.
    const fn cause(
        name: &'static str,
        meaning: &'static str,
        remedy: &'static str,
        rule: fn(&cause::FailedTrial<'_>) -> Option<cause::Sign>,
    ) -> Self {
        Self::new(name, Severity::Note, meaning, remedy, Rule::Cause(rule))
    }

    /// A reference to it.
    pub fn kind(&'static self) -> Kind {
        Kind(self)
    }

    /// Whether it can be the cause of a limit.
    pub fn is_cause(&self) -> bool {
        matches!(self.rule, Rule::Cause(_)) || self.name == cause::UNKNOWN.name
    }

    const fn of_server(mut self) -> Self {
        self.of_server = true;
        self
    }

    /// This finding, from its evidence.
    pub fn found(&'static self, evidence: impl Into<Evidence>) -> Finding {
        let found = evidence.into();
        Finding {
            kind: Kind(self),
            severity: found.severity.unwrap_or(self.severity),
            text: found.text,
            remedy: found.remedy.unwrap_or_else(|| self.remedy.to_owned()),
            values: found.values,
        }
    }

    /// The same, so bad that a run ranks nothing.
    pub fn unusable(&'static self, text: String) -> Finding {
        self.found(Evidence::from(text).severe(Severity::Unusable, true))
    }

    /// The same with another remedy.
    pub fn found_with(&'static self, text: String, remedy: &str) -> Finding {
        self.found(Evidence::from(text).remedy(remedy))
    }
}

/// A reference to an entry of the table, which a record stores by its name.
#[derive(Clone, Copy)]
pub struct Kind(&'static FindingKind);

impl std::ops::Deref for Kind {
    type Target = FindingKind;

    fn deref(&self) -> &FindingKind {
        self.0
    }
}

impl Eq for Kind {}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.name)
    }
}

impl Serialize for Kind {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let entry = FINDINGS.iter().find(|entry| entry.name == name);
        let unknown = || serde::de::Error::custom(format!("unknown finding {name:?}"));
        entry.map(|entry| Self(entry)).ok_or_else(unknown)
    }
}

impl Finding {
    /// Whether it has this entry.
    pub fn is(&self, entry: &FindingKind) -> bool {
        self.kind.name == entry.name
    }
}

impl Trial {
    /// Its finding with this entry.
    pub fn found(&self, entry: &FindingKind) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.is(entry))
    }

    /// Why its results must not be used; `None` if they can be.
    pub fn invalid(&self) -> Option<&Finding> {
        let mut findings = self.findings.iter();
        findings.find(|finding| finding.severity == Severity::Invalid)
    }

    /// Applies the rules about single trials. In a search for a limit, failures are results, and no trial is invalid.
    pub fn examine(&mut self, server: &ServerInfo, settings: &Settings, host: &Host) {
        let found = self.by_rules(server, settings, host);
        self.findings.extend(found);
        let messages = servers::messages(self);
        self.findings.extend(messages);
    }

    fn by_rules(&self, server: &ServerInfo, settings: &Settings, host: &Host) -> Vec<Finding> {
        let Some(load) = &self.load else {
            return Vec::new();
        };
        let circumstances = Circumstances {
            server,
            settings,
            host,
            find: Find::Clients,
        };
        let observed = Observed {
            trial: self,
            load,
            circumstances,
        };
        let mut found: Vec<Finding> = FINDINGS
            .iter()
            .filter_map(|entry| match entry.rule {
                Rule::Trial(rule) => Some(entry.found(rule(&observed)?)),
                _ => None,
            })
            .collect();
        if self.purpose.seeks_limit() || self.failure.is_some() {
            found.retain(|finding| finding.kind.severity != Severity::Invalid);
            for finding in &mut found {
                finding.severity = finding.severity.min(finding.kind.severity);
            }
        }
        found
    }
}

/// Findings about a load without a trial, whose clients had `cpus` CPUs; `queue` are the metrics of the accept queue, if
/// it was watched.
pub fn of_load(load: &Load, cpus: u32, queue: &BTreeMap<String, f64>) -> Vec<Finding> {
    let side = |metrics| Side {
        metrics,
        ..Side::default()
    };
    let seconds = measurable(load.window.duration_s);
    let used = load
        .cpu_s
        .zip(seconds)
        .map(|(cpu_s, seconds)| 100.0 * cpu_s / seconds)
        .map(|percent| ("cpu_percent".to_owned(), percent));
    let mut trial = Trial {
        clients: load.clients,
        load: Some(load.clone()),
        client_side: Some(side(used.into_iter().collect())),
        network: Some(side(queue.clone())),
        ..Trial::default()
    };
    let server = ServerInfo {
        foreign: Some(Foreign::default()),
        ..ServerInfo::default()
    };
    let host = Host {
        cpus,
        ..Host::default()
    };
    trial.examine(&server, &Settings::default(), &host);
    trial.findings
}

/// Findings about a run before its first trial.
pub fn of_run(planned: &Planned<'_>) -> Vec<Finding> {
    let found = FINDINGS.iter().filter_map(|entry| match entry.rule {
        Rule::Run(rule) | Rule::MachineOfRun(rule) => Some(entry.found(rule(planned)?)),
        _ => None,
    });
    let unknown = servers::clients_side_only(planned.servers);
    unknown.into_iter().chain(found).collect()
}

/// Findings about a machine on which any run is planned.
pub fn of_machine(planned: &Planned<'_>, group: &GroupLimits) -> Vec<Finding> {
    let host = planned.host;
    let found = FINDINGS.iter().filter_map(|entry| match entry.rule {
        Rule::MachineOfRun(rule) => Some(entry.found(rule(planned)?)),
        Rule::Machine(rule) => Some(entry.found(rule(&Machine { host, group })?)),
        _ => None,
    });
    found.collect()
}

/// Findings about all trials of a run together.
pub fn of_trials(trials: &[Trial]) -> Vec<Finding> {
    let found = FINDINGS.iter().filter_map(|entry| match entry.rule {
        Rule::Trials(rule) => Some(entry.found(rule(trials)?)),
        _ => None,
    });
    found.collect()
}

impl Observed<'_> {
    /// Whether it is timed and the server alone sets the pace.
    fn is_paced_by_server(&self) -> bool {
        let by_itself = self.trial.purpose.is_timed() && self.trial.slices.is_empty();
        by_itself
            && !self.has_rate()
            && self.load.open_loop.is_none()
            && self.load.completion.is_none()
    }

    /// Whether the load sets the rate.
    fn has_rate(&self) -> bool {
        self.circumstances.settings.load.sets_the_rate().is_some()
    }

    /// What was measured of the server and of the clients.
    fn sides(&self) -> impl Iterator<Item = &Side> {
        [&self.trial.server_side, &self.trial.client_side]
            .into_iter()
            .flatten()
    }

    fn server(&self, name: &str) -> Option<f64> {
        metric(self.trial.server_side.as_ref(), name)
    }

    fn client(&self, name: &str) -> Option<f64> {
        metric(self.trial.client_side.as_ref(), name)
    }

    fn network(&self, name: &str) -> Option<f64> {
        metric(self.trial.network.as_ref(), name)
    }

    /// A count of the network's probes, zero if absent.
    fn count(&self, name: &str) -> u64 {
        self.network(name).map_or(0, |value| value.round() as u64)
    }
}

fn metric(side: Option<&Side>, name: &str) -> Option<f64> {
    side?.metrics.get(name).copied()
}

#[cfg(test)]
mod tests;
