//! Servers that run already: where they are, what is asked of them, and which processes are theirs.

use std::path::Path;

use super::servers::{Kind, each};
use super::{Usage, output, values};
use crate::measure;
use crate::record::format::list;
use crate::record::spec::{LoadSpec, Target, TlsSpec};
use crate::record::{Running, ServerInfo};

/// What names the processes of servers that run already.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Servers that run already")]
pub(super) struct RunningFlags {
    /// The process of a server that runs already, with its children [default: whoever has the listening port]. Once for
    /// all such servers, or once for each, as the next two.
    #[arg(long, value_name = "N", conflicts_with_all = ["unit", "cgroup"], value_parser = pid)]
    pid: Vec<String>,
    /// The unit of systemd whose processes it is, like nginx.service.
    #[arg(long, value_name = "NAME", conflicts_with = "cgroup", value_parser = unit)]
    unit: Vec<String>,
    /// The control group whose processes it is, like /system.slice/nginx.service.
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<String>,
}

impl RunningFlags {
    /// What names the processes of each server that runs already.
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
                "--{name} names the processes of a server that runs already, and none of these does; name its \
                 address, like http://127.0.0.1:8080"
            ))),
            Some((name, given)) => {
                let each = each(name, given, there)?.into_iter();
                Ok(each.map(|one| Some(format!("{name} {}", one?))).collect())
            }
        }
    }
}

/// Whether there is one that runs already.
pub(super) fn some(kinds: &[Kind]) -> bool {
    !kinds.iter().all(Kind::is_started)
}

/// Those that are named by a URL.
fn urls(kinds: &[Kind]) -> impl Iterator<Item = &Target> {
    kinds.iter().filter_map(|kind| match kind {
        Kind::Running(to) if to.is_url() => Some(to),
        _ => None,
    })
}

/// Their paths.
fn paths(kinds: &[Kind]) -> Vec<&str> {
    urls(kinds).map(|to| to.path.as_str()).collect()
}

/// Has a load encrypt as URLs of servers say: all clients of a comparison are alike.
fn encrypt(load: &mut LoadSpec, kinds: &[Kind]) -> Result<(), Usage> {
    if urls(kinds).any(|to| to.scheme.is_encrypted()) {
        load.tls.get_or_insert_with(TlsSpec::default);
    }
    match urls(kinds).find(|to| !to.scheme.is_encrypted()) {
        Some(to) if load.tls.is_some() => Err(Usage(format!(
            "{to} is not encrypted, but this comparison is (https://, or a flag for TLS); write https:// \
             everywhere, or compare without TLS"
        ))),
        _ => Ok(()),
    }
}

/// Whether each of them is to be asked for its own.
fn differ(paths: &[&str]) -> bool {
    paths.windows(2).any(|two| two[0] != two[1])
}

/// Has a load ask for what URLs of servers name, where all name the same; refuses loads that are not for URLs.
pub(super) fn ask_for(load: &mut LoadSpec, kinds: &[Kind]) -> Result<(), Usage> {
    let paths = paths(kinds);
    let Some(first) = paths.first() else {
        return Ok(());
    };
    encrypt(load, kinds)?;
    let named = paths.iter().find(|path| **path != "/");
    if let (Some(path), true) = (named, load.request_file.is_some()) {
        return Err(Usage(format!(
            "{path} stands behind an address and --request-file names others; leave it out"
        )));
    }
    if let (Some(path), true) = (named, load.path.is_some()) {
        return Err(Usage(format!(
            "{path} stands behind an address and --path names others; write all of them with --path"
        )));
    }
    let mut urls = urls(kinds);
    let Some(url) = urls.next() else {
        return Ok(());
    };
    let asks_otherwise = |other: &&Target| (other.scheme, &other.user) != (url.scheme, &url.user);
    if let Some(other) = urls.find(asks_otherwise) {
        return Err(Usage(format!(
            "{other} is asked in another way than {url}; write the same scheme and user for all"
        )));
    }
    let had = load.path.clone();
    load.ask_for(url)?;
    if differ(&paths) || *first == "/" {
        load.path = had;
    }
    Ok(())
}

/// Has each server be asked for what its own URL names, where these differ.
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

/// Looks whether the servers that are to run already do, and says which processes are theirs, or that nobody knows.
/// Those that are set up or prepared for may come to run then.
pub(super) fn look_at(servers: &[ServerInfo]) -> anyhow::Result<()> {
    for server in servers {
        let Some(running) = server.running() else {
            continue;
        };
        values::target(&running.address, running.allow_remote)?;
        match measure::running::look(server) {
            Ok(now) => output::note(&processes(&server.name, &now)),
            Err(_) if !server.setup.is_empty() || !server.prepare.is_empty() => {}
            Err(why) => anyhow::bail!("{}: {why}", server.name),
        }
    }
    Ok(())
}

/// Which processes a server has, in a line.
fn processes(name: &str, running: &Running) -> String {
    if let Some(why) = &running.unknown {
        return format!("{name}: only the clients' side will be known: {why}");
    }
    let processes = running.processes.iter();
    let named: Vec<String> = processes
        .map(|process| format!("{} {}", process.name, process.pid))
        .collect();
    let by = running.named_by.as_deref().unwrap_or("its port");
    format!("{name}: {}, found by {by}", list(&named))
}

/// The number of a process that there is.
fn pid(text: &str) -> Result<String, String> {
    let number: u32 = text
        .parse()
        .map_err(|_| format!("`{text}` is not the number of a process"))?;
    if number > 1 && Path::new(&format!("/proc/{number}")).exists() {
        Ok(number.to_string())
    } else {
        Err(format!("there is no process {number}"))
    }
}

/// The name of a unit.
fn unit(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains('/') {
        return Err(format!("`{text}` is not the name of a unit"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::spec::Paths;

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
        assert!(
            refused.contains("write all of them with --path"),
            "{refused}"
        );
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
