//! Servers that were already running: found, examined, and left unchanged. Nothing here signals, stops or binds
//! anything.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use procfs::process::Process;

use super::ports;
use super::stream::connect;
use crate::probes::Tree;
use crate::probes::cpu::total;
use crate::processes::all::{ENDED, all};
use crate::processes::control_group;
use crate::stage::{Halt, Stage, failed};
use throng_record::{FailedStage, Running, ServerInfo};
use throng_spec::registry::Unsupported;
use throng_spec::{Endpoint, Target, UnixPath};
use throng_sys::signal::Stop;

/// Time limit of one attempt to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between two attempts.
const REST: Duration = Duration::from_millis(20);

/// A running server, as far as it can be examined.
#[derive(Debug, Clone)]
pub(crate) struct RunningServer {
    pub(crate) address: Endpoint,
    /// Its processes, or why they are not known.
    pub(crate) processes: Result<Tree, Unsupported>,
}

impl RunningServer {
    /// Waits until it accepts connections, and finds its processes.
    pub(crate) fn find(
        running: &Running,
        allow_remote: bool,
        limit: Duration,
        stop: Stop,
    ) -> Stage<Self> {
        let address = address(running, allow_remote)
            .or_else(|why| failed(FailedStage::Start, why, String::new()))?;
        let deadline = Instant::now() + limit;
        while let Err(error) = connect(&address, CONNECT_TIMEOUT) {
            if stop.requested() {
                return Err(Halt::Interrupted);
            }
            if Instant::now() >= deadline {
                let what =
                    format!("nothing listens on {address} ({error}); start the server first");
                return failed(FailedStage::Start, what, String::new());
            }
            std::thread::sleep(REST);
        }
        let processes = processes(running, &address);
        if let (Err(why), Some(_)) = (&processes, &running.named_by) {
            return failed(FailedStage::Start, why.to_string(), String::new());
        }
        Ok(Self { address, processes })
    }

    /// The tree of its processes; empty if they are not known.
    pub(crate) fn tree(&self) -> Tree {
        let mut tree = match &self.processes {
            Ok(tree) => tree.clone(),
            Err(_) => Tree::of_all(Vec::new()),
        };
        tree.refresh();
        tree
    }

    /// Whether all of its known processes have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.processes.as_ref().is_ok_and(|tree| {
            let mut stats = tree.stats();
            stats.all(|(_, stat)| ENDED.contains(&stat.state))
        })
    }
}

/// The CPU time of servers, whose processes are found by their addresses.
#[derive(Debug)]
pub struct ServersCpu(Tree);

impl ServersCpu {
    /// `None` if the processes of one of them are not known.
    pub fn of<'a>(servers: impl Iterator<Item = &'a Endpoint>) -> Option<Self> {
        let mut pids = BTreeSet::new();
        for server in servers {
            pids.extend(by_address(server).ok()?.pids());
        }
        (!pids.is_empty()).then(|| Self(Tree::of_all(roots(pids))))
    }

    /// CPU time of their processes until now, with those that have ended; `None` if no process is left.
    pub fn used(&mut self) -> Option<Duration> {
        self.0.refresh();
        total(&self.0)
    }
}

/// The address of a server. Rejects other hosts unless they are allowed.
fn address(running: &Running, allow_remote: bool) -> Result<Endpoint, String> {
    let target: Target = running.address.parse()?;
    target.endpoint(allow_remote)
}

/// The processes of a server, or why they are not known.
fn processes(running: &Running, address: &Endpoint) -> Result<Tree, Unsupported> {
    let Some(named) = &running.named_by else {
        return by_address(address);
    };
    let (kind, name) = named.split_once(' ').unwrap_or((named, ""));
    let group = |found: Option<PathBuf>| {
        found.map(Tree::of_group).ok_or_else(|| Unsupported {
            reason: format!("no process in the {kind} {name}"),
            remedy: format!("start the server first, or correct --{kind}"),
        })
    };
    match kind {
        "unit" => group(control_group::of_unit(name)),
        "cgroup" => group(control_group::named(name)),
        _ => {
            let pid = name.parse().ok().filter(|pid| setups(*pid));
            pid.map(Tree::of).ok_or_else(|| Unsupported {
                reason: format!("process {name} does not exist"),
                remedy: "correct --pid".to_owned(),
            })
        }
    }
}

fn setups(pid: u32) -> bool {
    let stat = Process::new(pid.cast_signed()).and_then(|process| process.stat());
    stat.is_ok_and(|stat| !ENDED.contains(&stat.state))
}

/// The processes that listen on an address.
fn by_address(address: &Endpoint) -> Result<Tree, Unsupported> {
    match address {
        Endpoint::Tcp(address) => by_port(*address),
        Endpoint::Unix(path) => by_socket(path),
    }
}

/// The processes that own the listening socket of an address.
fn by_port(address: SocketAddr) -> Result<Tree, Unsupported> {
    let port = address.port();
    let unknown = |reason: String, remedy: &str| {
        Err(Unsupported {
            reason,
            remedy: remedy.to_owned(),
        })
    };
    if !is_local(address.ip()) {
        return unknown(
            format!("the server at {address} is on another host"),
            "run throng there to measure the server too",
        );
    }
    let sockets = ports::listening_on(address);
    if sockets.is_empty() {
        return unknown(
            format!(
                "no socket of this network namespace listens on port {port}; the server may be in a container"
            ),
            "set --pid, --unit or --cgroup",
        );
    }
    let owners = roots(ports::holders(&sockets));
    if owners.is_empty() {
        return unknown(
            format!("the process that listens on port {port} belongs to another user"),
            "run throng as root or as that user, or set --pid",
        );
    }
    Ok(Tree::of_all(owners))
}

/// The processes that own a unix socket of this path.
fn by_socket(path: &UnixPath) -> Result<Tree, Unsupported> {
    let owners = roots(ports::holders(&ports::unix_sockets(path)));
    if owners.is_empty() {
        return Err(Unsupported {
            reason: format!("the process that listens on {path} cannot be seen"),
            remedy: "run throng as root or as its user, or set --pid".to_owned(),
        });
    }
    Ok(Tree::of_all(owners))
}

/// Whether an address is one of this machine.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Processes without an ancestor among them. A process that only opened the socket for another, like systemd, is not
/// included.
fn roots(mut pids: BTreeSet<u32>) -> Vec<u32> {
    if pids.len() > 1 {
        pids.remove(&1);
    }
    let parents: HashMap<u32, u32> = all()
        .map(|process| (process.pid.cast_unsigned(), process.parent.cast_unsigned()))
        .collect();
    let descends = |pid: u32| {
        let mut above = parents.get(&pid);
        // No chain of parents is longer than the number of processes.
        for _ in 0..parents.len() {
            match above {
                Some(parent) if pids.contains(parent) => return true,
                Some(parent) if *parent > 1 => above = parents.get(parent),
                _ => return false,
            }
        }
        false
    };
    pids.iter().copied().filter(|pid| !descends(*pid)).collect()
}

/// A server as it is now: its address, and its processes.
///
/// # Errors
/// Why it cannot be measured.
pub fn examine(server: &ServerInfo) -> Result<Running, String> {
    let Some(running) = server.running() else {
        return Err(format!("{} is not already running", server.name));
    };
    let address = address(running, server.allows_remote())?;
    connect(&address, CONNECT_TIMEOUT).map_err(|error| {
        format!("nothing listens on {address} ({error}); start the server first")
    })?;
    let found = processes(running, &address);
    match (found, &running.named_by) {
        (Err(why), Some(_)) => Err(why.to_string()),
        (Err(why), None) => Ok(Running {
            unknown: Some(why),
            processes: Vec::new(),
            ..running.clone()
        }),
        (Ok(mut tree), _) => {
            tree.refresh();
            Ok(Running {
                processes: crate::provenance::of_processes(tree.pids()),
                unknown: None,
                ..running.clone()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn at(address: &str, named_by: Option<&str>) -> ServerInfo {
        ServerInfo {
            foreign: Some(throng_record::Foreign {
                running: Some(Running {
                    address: address.to_owned(),
                    named_by: named_by.map(str::to_owned),
                    ..Running::default()
                }),
                ..throng_record::Foreign::default()
            }),
            ..ServerInfo::default()
        }
    }

    #[test]
    fn a_server_is_found_by_its_port_or_by_what_names_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let own = std::process::id();
        let pids = |named_by: Option<&str>| -> Vec<u32> {
            let found = examine(&at(&address, named_by)).unwrap();
            found.processes.iter().map(|process| process.pid).collect()
        };
        assert!(pids(None).contains(&own));
        assert!(pids(Some(&format!("pid {own}"))).contains(&own));
        for (named_by, why) in [
            ("pid 999999999", "process 999999999 does not exist"),
            ("unit no-such-unit", "in the unit no-such-unit"),
            ("cgroup /no/such", "in the cgroup /no/such"),
        ] {
            let refused = examine(&at(&address, Some(named_by))).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        drop(listener);
        // Another test may start a process at this moment, which then has the socket a little longer.
        let deadline = Instant::now() + Duration::from_secs(20);
        while examine(&at(&address, None)).is_ok() {
            assert!(Instant::now() < deadline);
        }
    }

    #[test]
    fn another_host_must_be_allowed_and_is_not_seen() {
        let refused = address(at("192.0.2.1:80", None).running().unwrap(), false).unwrap_err();
        assert!(refused.contains("--allow-remote"), "{refused}");
        let unknown = by_port("192.0.2.1:80".parse().unwrap()).unwrap_err();
        assert!(unknown.reason.contains("on another host"), "{unknown}");
    }

    #[test]
    fn of_a_parent_and_its_child_the_parent_is_the_root() {
        let own = std::process::id();
        let parent = Process::myself()
            .unwrap()
            .stat()
            .unwrap()
            .ppid
            .cast_unsigned();
        assert_eq!(roots(BTreeSet::from([own])), [own]);
        if parent > 1 {
            assert_eq!(roots(BTreeSet::from([own, parent])), [parent]);
        }
    }
}
