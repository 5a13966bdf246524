//! Servers that are already running: their addresses, what clients request, and their processes.

use std::path::Path;

use super::servers::{Kind, each};
use super::{Usage, output};
use crate::measure;
use crate::record::format::list;
use crate::record::{Running, ServerInfo};
use crate::spec::{LoadSpec, Target, TlsSpec};

/// The processes of running servers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Running servers")]
pub(super) struct RunningFlags {
    /// Process ID of a running server, whose children count too [default: the process that listens on its port]. Give
    /// this flag, --unit or --cgroup once, or once per running server.
    #[arg(long, value_name = "PID", conflicts_with_all = ["unit", "cgroup"], value_parser = pid)]
    pid: Vec<String>,
    /// systemd unit of a running server, like nginx.service.
    #[arg(long, value_name = "NAME", conflicts_with = "cgroup", value_parser = unit)]
    unit: Vec<String>,
    /// Control group of a running server, like /system.slice/nginx.service.
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<String>,
}

impl RunningFlags {
    /// How to find the processes of each running server.
    pub(super) fn named_by(&self, kinds: &[Kind]) -> Result<Vec<Option<String>>, Usage> {
        let there = kinds.iter().filter(|kind| !kind.is_started()).count();
        let all = [
            ("pid", &self.pid),
            ("unit", &self.unit),
            ("cgroup", &self.cgroup),
        ];
        let given = all.into_iter().find(|(_, given)| !given.is_empty());
        match given {
            None => Ok(vec![None; there]),
            Some((name, _)) if there == 0 => Err(Usage(format!(
                "--{name} is for a running server, but throng starts all of these; write the address of a running \
                 server, like http://127.0.0.1:8080"
            ))),
            Some((name, given)) => {
                let each = each(name, given, there)?.into_iter();
                Ok(each.map(|one| Some(format!("{name} {}", one?))).collect())
            }
        }
    }
}

/// Whether one of these servers is already running.
pub(super) fn some(kinds: &[Kind]) -> bool {
    !kinds.iter().all(Kind::is_started)
}

/// The servers that are named by a URL.
fn urls(kinds: &[Kind]) -> impl Iterator<Item = &Target> {
    kinds.iter().filter_map(|kind| match kind {
        Kind::Running(to) if to.is_url() => Some(to),
        _ => None,
    })
}

/// The paths of these URLs.
fn paths(kinds: &[Kind]) -> Vec<&str> {
    urls(kinds).map(|to| to.path.as_str()).collect()
}

/// Enables TLS if the servers' URLs say so, for all clients of a comparison alike.
fn encrypt(load: &mut LoadSpec, kinds: &[Kind]) -> Result<(), Usage> {
    if urls(kinds).any(|to| to.scheme.is_encrypted()) {
        load.tls.get_or_insert_with(TlsSpec::default);
    }
    match urls(kinds).find(|to| !to.scheme.is_encrypted()) {
        Some(to) if load.tls.is_some() => Err(Usage(format!(
            "{to} is not encrypted, but the other servers or the TLS flags are; use https:// for every server, or for \
             none"
        ))),
        _ => Ok(()),
    }
}

/// Whether the paths differ.
fn differ(paths: &[&str]) -> bool {
    paths.windows(2).any(|two| two[0] != two[1])
}

/// Makes a load request what the servers' URLs name, if they all name the same. Rejects loads that do not fit URLs.
pub(super) fn ask_for(load: &mut LoadSpec, kinds: &[Kind]) -> Result<(), Usage> {
    let paths = paths(kinds);
    let Some(first) = paths.first() else {
        return Ok(());
    };
    encrypt(load, kinds)?;
    let named = paths.iter().find(|path| **path != "/");
    if let (Some(path), true) = (named, load.request_file.is_some()) {
        return Err(Usage(format!(
            "the URL already has the path {path}, and --request-file has its own; leave out one of them"
        )));
    }
    if let (Some(path), true) = (named, load.path.is_some()) {
        return Err(Usage(format!(
            "the URL already has the path {path}; give all paths with --path"
        )));
    }
    let mut urls = urls(kinds);
    let Some(url) = urls.next() else {
        return Ok(());
    };
    let asks_otherwise = |other: &&Target| (other.scheme, &other.user) != (url.scheme, &url.user);
    if let Some(other) = urls.find(asks_otherwise) {
        return Err(Usage(format!(
            "{other} and {url} differ in scheme or user; use the same for every server"
        )));
    }
    let had = load.path.clone();
    load.ask_for(url)?;
    if differ(&paths) || *first == "/" {
        load.path = had;
    }
    Ok(())
}

/// Sets the path of each server from its own URL, if these differ.
pub(super) fn give_paths(servers: &mut [ServerInfo], kinds: &[Kind]) {
    if !differ(&paths(kinds)) {
        return;
    }
    for (server, kind) in servers.iter_mut().zip(kinds) {
        let running = server.foreign.as_mut().and_then(|it| it.running.as_mut());
        if let (Some(running), Kind::Running(to)) = (running, kind) {
            running.path = Some(to.path.clone());
        }
    }
}

/// Checks that running servers accept connections, and prints which processes belong to them. Servers with --setup or
/// --prepare may start later.
pub(super) fn examine(servers: &[ServerInfo]) -> anyhow::Result<()> {
    for server in servers {
        if server.running().is_none() {
            continue;
        }
        match measure::servers::running::examine(server) {
            Ok(now) => output::note(&processes(&server.name, &now)),
            Err(_) if !server.setup.is_empty() || !server.prepare.is_empty() => {}
            Err(why) => anyhow::bail!("{}: {why}", server.name),
        }
    }
    Ok(())
}

/// A line that names the processes of a server.
fn processes(name: &str, running: &Running) -> String {
    if let Some(why) = &running.unknown {
        return format!("{name}: only the clients are measured: {why}");
    }
    let processes = running.processes.iter();
    let named: Vec<String> = processes
        .map(|process| format!("{} {}", process.name, process.pid))
        .collect();
    let is_unix = running.address.starts_with("unix:");
    let own = if is_unix { "its socket" } else { "its port" };
    let by = running.named_by.as_deref().unwrap_or(own);
    format!("{name}: {}, found by {by}", list(&named))
}

/// Parses the ID of an existing process.
fn pid(text: &str) -> Result<String, String> {
    let number: u32 = text
        .parse()
        .map_err(|_| "expected a process ID, a number".to_owned())?;
    match number {
        0 | 1 => Err("expected the process ID of a server".to_owned()),
        _ if Path::new(&format!("/proc/{number}")).exists() => Ok(number.to_string()),
        _ => Err(format!("process {number} does not exist")),
    }
}

/// Checks the name of a unit.
fn unit(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('/') {
        return Err("expected the name of a systemd unit, like nginx.service".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Paths;

    fn url(path: &str) -> Kind {
        Kind::Running(format!("http://127.0.0.1:1{path}").parse().unwrap())
    }

    #[test]
    fn one_path_is_for_all_and_several_are_each_for_its_own() {
        let own = Kind::Foreign(vec!["a".to_owned()]);
        let mut load = LoadSpec::default();
        ask_for(&mut load, &[url("/a"), own.clone(), url("/a")]).unwrap();
        assert_eq!(load.path, Some(Paths::one("/a".to_owned())));
        let mut load = LoadSpec::default();
        ask_for(&mut load, &[url("/a"), url("/")]).unwrap();
        assert_eq!(load.path, None);
        ask_for(&mut load, &[own]).unwrap();
        let with = |change: fn(&mut LoadSpec)| {
            let mut load = LoadSpec::default();
            change(&mut load);
            ask_for(&mut load, &[url("/a")]).unwrap_err().to_string()
        };
        let refused = with(|load| load.protocol = Some("echo".to_owned()));
        assert!(refused.contains("is for http, not for echo"), "{refused}");
        let refused = with(|load| load.path = Some(Paths::one("/b".to_owned())));
        assert!(refused.contains("give all paths with --path"), "{refused}");
    }

    #[test]
    fn processes_are_named_once_for_all_or_once_for_each_that_runs() {
        let flags = |pid: &[&str]| RunningFlags {
            pid: pid.iter().map(ToString::to_string).collect(),
            unit: Vec::new(),
            cgroup: Vec::new(),
        };
        let own = || Kind::Foreign(vec!["a".to_owned()]);
        let named = |pid: &[&str], kinds: &[Kind]| flags(pid).named_by(kinds);
        let both = named(&["7"], &[url("/"), own(), url("/")]).unwrap();
        assert_eq!(both, [Some("pid 7".to_owned()), Some("pid 7".to_owned())]);
        assert_eq!(named(&[], &[own()]).unwrap(), []);
        assert!(named(&["7"], &[own()]).is_err());
        assert!(named(&["7", "8"], &[url("/")]).is_err());
    }
}
