//! The conditions of a run: its settings, machine, programs and servers, as names and values. Two runs are put side by
//! side by them, and what differs is a [`Fact`] whose [`Kind`] tells what that means for the results.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::provenance;
use throng_record::format::{ABSENT, bytes, first_of, list, whole};
use throng_record::{Host, Run, ServerInfo, Settings};
use throng_spec::RequestFile;

/// What a condition belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The load: with another one, results are not comparable.
    Load,
    /// What the machine is: with another one, ratios compare machines.
    Machine,
    /// A setting of the machine.
    MachineSetting,
    /// The build of throng that measured.
    Throng,
    /// How the server of this name was started.
    Start,
    /// The program and scripts of the server of this name.
    Files,
    /// How much was measured, and how.
    Method,
    /// What differs between any two runs and does not matter by itself.
    Moment,
}

/// A condition of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub kind: Kind,
    /// Its name; for [`Kind::Start`] and [`Kind::Files`], the server.
    pub name: String,
    /// Its value, empty if it is known to be nothing; `None` if it is not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Condition {
    pub(crate) fn new(
        kind: Kind,
        name: impl Into<String>,
        value: impl Into<Option<String>>,
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            value: value.into(),
        }
    }

    /// Its value as shown.
    pub fn text(&self) -> &str {
        self.value.as_deref().unwrap_or(ABSENT)
    }
}

/// The same condition in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub kind: Kind,
    pub name: String,
    /// Its value in the earlier run, if recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then: Option<String>,
    /// Its value in the later run, if recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

impl Fact {
    /// Whether this is a difference in how the runs were made. What one of them does not record is none.
    pub fn differs(&self) -> bool {
        let both = self.then.as_ref().zip(self.now.as_ref());
        self.kind != Kind::Moment && both.is_some_and(|(then, now)| then != now)
    }

    /// Its name in tables and lists.
    pub fn title(&self) -> String {
        match self.kind {
            Kind::Start => format!("Start of {}", self.name),
            Kind::Files => format!("Files of {}", self.name),
            _ => self.name.clone(),
        }
    }

    /// Both values as shown.
    pub fn texts(&self) -> [String; 2] {
        [&self.then, &self.now].map(|value| match value.as_deref() {
            Some("") => "none".to_owned(),
            other => other.unwrap_or(ABSENT).to_owned(),
        })
    }
}

/// Every condition that two runs record, side by side.
pub(crate) fn side_by_side(then: &[Condition], now: &[Condition]) -> Vec<Fact> {
    let values = |conditions: &[Condition]| -> BTreeMap<(Kind, String), Option<String>> {
        let all = conditions.iter().cloned();
        all.map(|one| ((one.kind, one.name), one.value)).collect()
    };
    let (in_then, in_now) = (values(then), values(now));
    let is_nothing = |fact: &Fact| {
        [&fact.then, &fact.now]
            .iter()
            .all(|one| one.as_deref() == Some(""))
    };
    let mut seen = BTreeSet::new();
    let all = then.iter().chain(now).filter_map(|one| {
        let key = (one.kind, one.name.clone());
        let value = |of: &BTreeMap<_, Option<String>>| of.get(&key).cloned().flatten();
        let (before, after) = (value(&in_then), value(&in_now));
        seen.insert(key.clone()).then_some(Fact {
            kind: key.0,
            name: key.1,
            then: before,
            now: after,
        })
    });
    all.filter(|fact| !is_nothing(fact)).collect()
}

/// Differences of each kind in words: the beginning, whether values follow or names, and the end.
const CAVEATS: [(Kind, &str, bool, &str); 6] = [
    (
        Kind::Load,
        "The loads differ: ",
        true,
        " The results are not comparable.",
    ),
    (
        Kind::Machine,
        "The machines differ: ",
        true,
        " The ratios compare machines as well as servers.",
    ),
    (Kind::MachineSetting, "Machine settings differ: ", false, ""),
    (
        Kind::Throng,
        "throng itself differs, and so may its servers and measurements: ",
        false,
        "",
    ),
    (
        Kind::Start,
        "Started differently, so these may be different programs: ",
        false,
        "",
    ),
    (
        Kind::Files,
        "The program or script of these servers differs: ",
        false,
        "",
    ),
];

/// The maximum number of names listed; the rest are only counted.
pub(crate) const NAMED: usize = 6;

/// What these differences mean for the results, the most important first. `called` are the names of both runs.
pub(crate) fn caveats(differences: &[Fact], called: [&str; 2]) -> Vec<String> {
    let all = CAVEATS.iter().filter_map(|(kind, begin, has_values, end)| {
        let own: Vec<&Fact> = differences
            .iter()
            .filter(|fact| fact.kind == *kind)
            .collect();
        let with_values = |fact: &&Fact| {
            let ([then, now], [earlier, later]) = (fact.texts(), called);
            format!("{} {then} in {earlier} and {now} in {later}", fact.name)
        };
        let words = if *has_values {
            own.iter().map(with_values).collect::<Vec<_>>().join("; ")
        } else {
            let names: Vec<&str> = own.iter().map(|fact| fact.name.as_str()).collect();
            first_of(&names, NAMED)
        };
        (!own.is_empty()).then(|| format!("{begin}{words}.{end}"))
    });
    all.collect()
}

/// All conditions: those that reports show one by one, and details.
pub(crate) fn conditions(run: &Run) -> Vec<Condition> {
    let mut all = of_run(run, None);
    all.extend(details(run));
    all
}

/// The conditions that are only worth showing where they differ: the clients, probes and hosts of the run, kernel
/// settings, limits and mitigations, and what each server is started from.
pub(crate) fn details(run: &Run) -> Vec<Condition> {
    let (host, load) = (&run.host, &run.settings.load);
    let clients: Vec<String> = run.settings.clients.iter().map(u32::to_string).collect();
    let hosts = run.client_hosts.len().max(1).to_string();
    let listed = |kind, prefix: &'static str, values: &BTreeMap<String, String>| {
        let pairs = values.clone().into_iter();
        let named =
            pairs.map(move |(name, value)| Condition::new(kind, format!("{prefix}{name}"), value));
        named.collect::<Vec<_>>()
    };
    let line = ("kernel command line", host.kernel_command_line.clone());
    let request_file = load.request_file.as_ref().and_then(RequestFile::sha256);
    let mut all = vec![
        Condition::new(Kind::Method, "Clients", list(&clients)),
        Condition::new(Kind::Method, "Probes", run.settings.probes.join(", ")),
        Condition::new(Kind::Load, "Client hosts", hosts),
        Condition::new(
            Kind::Load,
            "SHA-256 of the request file",
            request_file.map(str::to_owned),
        ),
        Condition::new(Kind::MachineSetting, line.0, line.1),
    ];
    all.extend(listed(Kind::Load, "SHA-256 of ", &load.files));
    all.extend(listed(Kind::MachineSetting, "", &host.sysctls));
    all.extend(listed(Kind::MachineSetting, "limit of ", &host.limits));
    all.extend(listed(
        Kind::MachineSetting,
        "mitigation of ",
        &host.mitigations,
    ));
    for server in &run.servers {
        let files = provenance::program_of(server).map(provenance::identity);
        all.push(Condition::new(Kind::Start, &server.name, started(server)));
        all.push(Condition::new(Kind::Files, &server.name, files));
    }
    all
}

/// Everything that a server is started with, in words.
pub(crate) fn started(server: &ServerInfo) -> String {
    let environment = server
        .environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let limits = server
        .limits
        .iter()
        .map(|(name, value)| format!("limit {name}={value}"));
    let more: Vec<String> = environment.chain(limits).collect();
    let mut command = server.command.clone();
    if let Some(running) = server.running() {
        let path = running.path.clone().unwrap_or_default();
        command = vec![format!("running at {}{path}", running.address)];
    }
    if let (None, Some(program)) = (&server.foreign, command.first_mut()) {
        // The path of throng is not a property of its servers.
        "throng".clone_into(program);
    }
    let mut text = command_line(&command);
    if !more.is_empty() {
        text += &format!(" ({})", more.join(", "));
    }
    for (when, hook) in [
        ("before all trials", &server.setup),
        ("before each trial", &server.prepare),
        ("after each trial", &server.conclude),
        ("after all trials", &server.cleanup),
    ] {
        if !hook.is_empty() {
            text += &format!("; {when} {}", command_line(hook));
        }
    }
    if let Some(cwd) = &server.cwd {
        text += &format!("; in {cwd}");
    }
    text
}

/// The settings and the machine, with a note on how the warm-up went.
pub(crate) fn of_run(run: &Run, warm_up: Option<String>) -> Vec<Condition> {
    let mut facts = of_settings(run, warm_up);
    facts.extend(of_host(run));
    facts
}

fn of_settings(run: &Run, warm_up: Option<String>) -> Vec<Condition> {
    use Kind::{Load, Method, Moment};
    let settings = &run.settings;
    let cpus = |cpus: &[u32]| {
        if cpus.is_empty() {
            "not bound".to_owned()
        } else {
            list(&cpus.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
    };
    let link = settings.link.map(|link| link.words()).unwrap_or_default();
    let facts = [
        (Load, "Protocol", dialogue(run)),
        (Load, "Load", options(settings)),
        (Method, "Runs", settings.runs.to_string()),
        (Load, "Measurement", measurement(settings)),
        (Moment, "Warm-up until level", warm_up.unwrap_or_default()),
        (
            Load,
            "Connect timeout",
            seconds(settings.load.connect_timeout),
        ),
        (
            Load,
            "First-reply timeout",
            seconds(settings.load.first_reply_timeout) + " without a new first reply",
        ),
        (Load, "listen() backlog", whole(f64::from(settings.backlog))),
        (Load, "Server CPUs", cpus(&settings.server_cpus)),
        (Load, "Client CPUs", cpus(&settings.client_cpus)),
        (Load, "Simulated link", link),
        (Load, "Load threads", settings.load_threads.to_string()),
        (Moment, "Seed", run.seed.to_string()),
    ]
    .into_iter();
    facts
        .map(|(kind, name, value)| Condition::new(kind, name, value))
        .collect()
}

/// When replies are counted.
fn measurement(settings: &Settings) -> String {
    if settings.load.has_jobs() {
        return "the whole load, until all clients finish".to_owned();
    }
    format!(
        "{}, after {} of warm-up",
        seconds(settings.load.duration.unwrap_or_default()),
        seconds(settings.load.warm_up)
    )
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The requests of the clients, in words.
pub(crate) fn dialogue(run: &Run) -> String {
    let settings = &run.settings;
    if settings.dialogue.is_empty() {
        let load = &settings.load;
        return format!(
            "{}, {} bytes per request",
            load.protocol.as_deref().unwrap_or("custom"),
            whole(load.size.largest() as f64)
        );
    }
    settings.dialogue.clone()
}

/// The other options of the load.
fn options(settings: &Settings) -> String {
    let shown_by_itself = [
        "clients",
        "protocol",
        "size",
        "path",
        "send",
        "expect",
        "duration",
        "warm-up",
        "connect-timeout",
        "first-reply-timeout",
    ];
    settings.load.flags_without(&shown_by_itself).join(" ")
}

fn of_host(run: &Run) -> Vec<Condition> {
    let host = &run.host;
    let load = host.load_average_1min.map(|load| format!("{load:.2}"));
    let of_moment = [
        ("Load average at the start", load),
        ("Started", Some(run.started_at.clone())),
        ("Finished", run.finished_at.clone()),
        (
            "Other processes at the start",
            Some(provenance::others(host)),
        ),
    ]
    .into_iter();
    let of_throng = provenance::of_throng(run).into_iter();
    let mut facts = of_machine(host);
    facts.extend(of_moment.map(|(name, value)| Condition::new(Kind::Moment, name, value)));
    facts.extend(of_throng.map(|(name, value)| Condition::new(Kind::Throng, name, value)));
    facts
}

/// The settings of a machine, and what it is.
pub fn of_machine(host: &Host) -> Vec<Condition> {
    use Kind::{Machine, MachineSetting, Moment};
    let count =
        |value: Option<u64>| value.map_or_else(|| ABSENT.to_owned(), |value| whole(value as f64));
    let quota = host.cpu_quota.map_or_else(String::new, |quota| {
        let cpus = throng_record::format::cpus(quota);
        format!(", of which a quota allows {cpus}")
    });
    let model = host.cpu_model.as_deref().unwrap_or(ABSENT);
    let cpu = format!("{model}, {} usable{quota}", host.cpus);
    let virtual_machine = host
        .virtual_machine
        .clone()
        .unwrap_or_else(|| "none detected".to_owned());
    let (soft, hard) = (count(host.descriptors_soft), count(host.descriptors_hard));
    let ports = host.ephemeral_ports;
    let memory = host.memory_bytes.map(|value| bytes(value as f64));
    let mut facts = vec![
        (Machine, "Kernel", Some(host.kernel.clone())),
        (Machine, "CPU", Some(cpu)),
    ];
    let of_cpu = provenance::of_cpu(host).into_iter();
    facts.extend(of_cpu.map(|(name, value)| (MachineSetting, name, Some(value))));
    facts.extend([
        (
            Moment,
            "CPU frequency at the start",
            host.cpu_mhz.map(|mhz| format!("{mhz:.0} MHz")),
        ),
        (Machine, "Memory", memory),
        (Machine, "Virtual machine", Some(virtual_machine)),
        (MachineSetting, "Governor", host.governor.clone()),
        (
            MachineSetting,
            "Simultaneous multithreading",
            host.simultaneous_threads.clone(),
        ),
        (MachineSetting, "Clock source", host.clock_source.clone()),
        (MachineSetting, "Huge pages", host.huge_pages.clone()),
        (MachineSetting, "C library", host.libc.clone()),
        (
            MachineSetting,
            "somaxconn",
            host.somaxconn.map(|value| whole(f64::from(value))),
        ),
        (
            MachineSetting,
            "Descriptor limits, soft and hard",
            Some(format!("{soft} and {hard}")),
        ),
        (
            MachineSetting,
            "Ephemeral ports",
            ports.map(|(first, last)| format!("{first} to {last}")),
        ),
    ]);
    let all = facts.into_iter();
    all.map(|(kind, name, value)| Condition::new(kind, name, value))
        .collect()
}

/// The command line that repeats the run, quoted for a shell.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
    quoted.join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let arguments = ["throng", "compare", "node server.js {port}", "it's"].map(str::to_owned);
        assert_eq!(
            command_line(&arguments),
            r"throng compare 'node server.js {port}' 'it'\''s'"
        );
    }
}
