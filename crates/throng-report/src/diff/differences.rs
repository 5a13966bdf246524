//! Differences in settings, programs and machines of two runs, and what they mean for the results.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::comparison::of_machines;
use crate::facts::{self, command_line};
use crate::provenance::{self, program_of, same_files};
use throng_record::format::{ABSENT, bytes, counted, first_of, list};
use throng_record::{Run, ServerInfo};

/// Facts that differ between any two runs and do not matter by themselves.
const OF_EACH: [&str; 6] = [
    "Seed",
    "Started",
    "Finished",
    "Load average at the start",
    "CPU frequency at the start",
    "Other processes at the start",
];

/// The maximum number of names listed; the rest are only counted.
const NAMED: usize = 4;

/// A fact about both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value in A.
    pub a: String,
    /// Its value in B.
    pub b: String,
    /// Whether this is a difference in how the runs were made.
    pub differs: bool,
}

impl Fact {
    /// A fact in which runs may differ.
    pub(super) fn new(name: &str, a: String, b: String) -> Self {
        let differs = a != b && !OF_EACH.contains(&name);
        let name = name.to_owned();
        Self {
            name,
            a,
            b,
            differs,
        }
    }

    /// A fact in which runs always differ, or that does not depend on how they were made.
    pub(super) fn plain(name: &str, a: String, b: String) -> Self {
        Self {
            name: name.to_owned(),
            a,
            b,
            differs: false,
        }
    }

    /// The difference in a word.
    pub fn word(&self) -> &'static str {
        if self.differs { "differs" } else { "" }
    }
}

/// Settings and machines side by side. For long lists, only the differences.
pub(super) fn facts_of(a: &Run, b: &Run) -> Vec<Fact> {
    let clients = |run: &Run| {
        let clients: Vec<String> = run.settings.clients.iter().map(u32::to_string).collect();
        list(&clients)
    };
    let mut all = vec![Fact::new("Clients", clients(a), clients(b))];
    let (of_a, of_b) = (facts::of_run(a), facts::of_run(b));
    let mut names: Vec<&str> = of_a.iter().map(|(name, _)| *name).collect();
    names.extend(of_b.iter().map(|(name, _)| *name));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    for name in names {
        let value = |facts: &[(&'static str, String)]| {
            let found = facts.iter().find(|(fact, _)| *fact == name);
            found.map_or_else(|| ABSENT.to_owned(), |(_, value)| value.clone())
        };
        all.push(Fact::new(name, value(&of_a), value(&of_b)));
    }
    let probes = |run: &Run| run.settings.probes.join(", ");
    all.push(Fact::new("Probes", probes(a), probes(b)));
    let hosts = |run: &Run| run.client_hosts.len().max(1).to_string();
    all.push(Fact::new("Client hosts", hosts(a), hosts(b)));
    for name in of_machine(a, b) {
        let value = |run: &Run| values(run).get(&name).cloned();
        let text = |run: &Run| value(run).unwrap_or_else(|| ABSENT.to_owned());
        all.push(Fact::new(&name, text(a), text(b)));
    }
    for (server, then) in servers_that_differ(a, b) {
        let name = format!("Start of {}", server.name);
        all.push(Fact::new(&name, started(then), started(server)));
    }
    for (server, then) in servers_with_other_files(a, b) {
        let files = |info| program_of(info).map_or_else(String::new, provenance::files);
        let name = format!("Files of {}", server.name);
        all.push(Fact::new(&name, files(then), files(server)));
    }
    all
}

/// Settings and machine facts in which two runs differ, as far as both record them.
pub(crate) fn differing(a: &Run, b: &Run) -> Vec<Fact> {
    let mut facts = facts_of(a, b);
    facts.retain(|fact| fact.differs && ![&fact.a, &fact.b].iter().any(|value| *value == ABSENT));
    facts
}

/// Limits of what the ratios show, the most important first.
pub(super) fn caveats(a: &Run, b: &Run) -> Vec<String> {
    let mut caveats = Vec::new();
    let load: Vec<String> = b
        .settings
        .differing(&a.settings)
        .into_iter()
        // Only what both have is compared.
        .filter(|(what, ..)| *what != "clients")
        .map(|(what, in_b, in_a)| format!("{what} {in_a} in A and {in_b} in B"))
        .collect();
    if !load.is_empty() {
        caveats.push(format!(
            "The loads differ: {}. The results are not comparable.",
            load.join("; ")
        ));
    }
    let (versions, mut machines): (Vec<_>, Vec<_>) = of_machines(b, a)
        .into_iter()
        .partition(|(what, ..)| *what == "throng version");
    let memory = |run: &Run| run.host.memory_bytes.map(|size| bytes(size as f64));
    if let (Some(in_a), Some(in_b)) = (memory(a), memory(b))
        && in_a != in_b
    {
        machines.push(("memory", in_a, in_b));
    }
    if !machines.is_empty() {
        let machines: Vec<String> = machines
            .into_iter()
            .map(|(what, in_a, in_b)| format!("{what} {in_a} in A and {in_b} in B"))
            .collect();
        caveats.push(format!(
            "The machines differ: {}. The ratios compare machines as well as servers.",
            machines.join("; ")
        ));
    }
    if a.client_hosts.len() != b.client_hosts.len() {
        let hosts = |run: &Run| counted(run.client_hosts.len().max(1) as u32, "host");
        caveats.push(format!("A had clients on {}, B on {}.", hosts(a), hosts(b)));
    }
    let kernel = of_machine(a, b);
    if !kernel.is_empty() {
        caveats.push(format!(
            "Machine settings differ: {}.",
            first_of(&kernel, NAMED)
        ));
    }
    for (_, in_a, in_b) in versions {
        caveats.push(format!(
            "A was measured with throng {in_a} and B with throng {in_b}: throng's own servers and measurements may differ."
        ));
    }
    let servers: Vec<String> = servers_that_differ(a, b)
        .map(|(server, _)| server.name.clone())
        .collect();
    if !servers.is_empty() {
        caveats.push(format!(
            "Started differently in A and B, so these may be different programs: {}.",
            first_of(&servers, NAMED)
        ));
    }
    let changed = servers_with_other_files(a, b).map(|(server, _)| server.name.clone());
    let changed: Vec<String> = changed.collect();
    if !changed.is_empty() {
        caveats.push(format!(
            "The program or script differs between A and B: {}.",
            first_of(&changed, NAMED)
        ));
    }
    caveats
}

/// Kernel settings, limits and mitigations that both runs record with different values.
fn of_machine(a: &Run, b: &Run) -> Vec<String> {
    let (a, b) = (values(a), values(b));
    a.into_iter()
        .filter(|(name, value)| b.get(name).is_some_and(|other| other != value))
        .map(|(name, _)| name)
        .collect()
}

/// Kernel settings, limits and mitigations, by name.
fn values(run: &Run) -> BTreeMap<String, String> {
    let host = &run.host;
    let named = |kind: &str, values: &BTreeMap<String, String>| -> Vec<(String, String)> {
        let values = values.iter();
        let named = values.map(|(name, value)| (format!("{kind}{name}"), value.clone()));
        named.collect()
    };
    let line = host.kernel_command_line.iter();
    let line = line.map(|line| ("kernel command line".to_owned(), line.clone()));
    let all = [
        line.collect(),
        named("", &host.sysctls),
        named("limit of ", &host.limits),
        named("mitigation of ", &host.mitigations),
    ];
    all.into_iter().flatten().collect()
}

/// Servers of both runs that are started differently: first as in B, then as in A.
fn servers_that_differ<'a>(
    a: &'a Run,
    b: &'a Run,
) -> impl Iterator<Item = (&'a ServerInfo, &'a ServerInfo)> {
    servers_of_both(a, b).filter(|(server, then)| started(then) != started(server))
}

/// Servers of both runs whose program or script differs: first as in B, then as in A.
fn servers_with_other_files<'a>(
    a: &'a Run,
    b: &'a Run,
) -> impl Iterator<Item = (&'a ServerInfo, &'a ServerInfo)> {
    servers_of_both(a, b).filter(|(server, then)| {
        let programs = program_of(then).zip(program_of(server));
        programs.is_some_and(|(in_a, in_b)| !same_files(in_a, in_b))
    })
}

/// Servers of the same name: first as in B, then as in A.
fn servers_of_both<'a>(
    a: &'a Run,
    b: &'a Run,
) -> impl Iterator<Item = (&'a ServerInfo, &'a ServerInfo)> {
    b.servers.iter().filter_map(|server| {
        let then = a.servers.iter().find(|then| then.name == server.name)?;
        Some((server, then))
    })
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
    for (when, command) in [
        ("before all trials", &server.setup),
        ("before each trial", &server.prepare),
        ("after each trial", &server.conclude),
        ("after all trials", &server.cleanup),
    ] {
        if !command.is_empty() {
            text += &format!("; {when} {}", command_line(command));
        }
    }
    if let Some(cwd) = &server.cwd {
        text += &format!("; in {cwd}");
    }
    text
}
