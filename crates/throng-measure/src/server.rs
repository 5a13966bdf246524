//! The server of a trial: started, ours or anybody's, until it takes clients.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Resource;

use super::orphans;
use super::ports;
use super::probes::Tree;
use super::process::{Captured, Process, Signalled};
use super::queue::NoLine;
use super::stage::{Halt, Stage, failed};
use throng_protocol::Pattern;
use throng_record::{Foreign, ServerInfo};
use throng_sys::signal::Stop;
use throng_sys::spawn;

/// How long one look for a sign of being ready takes at most.
const LOOK: Duration = Duration::from_millis(100);
/// How often a server is started with another port when somebody took its.
const PORTS_TRIED: u32 = 3;

/// Limits that a server can be started under, by the names of `prlimit(1)`.
pub const LIMITS: [(&str, Resource); 3] = [
    ("nofile", Resource::Nofile),
    ("nproc", Resource::Nproc),
    ("as", Resource::As),
];

/// SIGKILL, which a process cannot send itself by mistake.
const KILLED: i32 = rustix::process::Signal::KILL.as_raw();

/// What to do about a server that becomes a daemon.
const STAY: &str = "keep the server in the foreground, without any option to become a daemon";

/// How a server is started.
pub(super) struct Launch<'a> {
    pub(super) info: &'a ServerInfo,
    /// Where one of ours logs its clients.
    pub(super) log: PathBuf,
    /// How long it may take until it is ready.
    pub(super) limit: Duration,
    /// How long the commands before and after may take.
    pub(super) hook_limit: Duration,
    pub(super) cpus: &'a [u32],
    /// Where one that is not ours is asked to listen, and expected to.
    pub(super) address: IpAddr,
    pub(super) state: State,
}

/// What a launch remembers.
#[derive(Default)]
pub(super) struct State {
    /// The port that a foreign server was asked to take.
    port: Cell<Option<u16>>,
    /// Whether the command before was begun, so that the one after is due.
    prepared: Cell<bool>,
    /// What the command before left running, on purpose.
    helpers: RefCell<Vec<u32>>,
    /// How often memory had run out before the server was started.
    memory_ran_out: Cell<u64>,
}

/// A server that takes clients.
pub(super) struct Server {
    pub(super) process: Process,
    pub(super) address: SocketAddr,
}

impl Launch<'_> {
    /// Starts the server and waits until it is ready. `before` is called after all that prepares, on
    /// the thread that starts the server next.
    pub(super) fn start<T: Send + 'static>(
        &self,
        before: impl FnOnce() -> T + Clone + Send + 'static,
        stop: Stop,
    ) -> Stage<(T, Server)> {
        self.state.memory_ran_out.set(memory_ran_out());
        let Some(foreign) = &self.info.foreign else {
            self.prepare(stop)?;
            return self.start_ours(before, stop);
        };
        let pattern = ready_pattern(foreign)?;
        let mut tries = 1;
        loop {
            let port = ports::free().or_else(|error| {
                let reason = format!("there is no free port: {error}");
                failed("start", reason, String::new())
            })?;
            self.state.port.set(Some(port));
            self.prepare(stop)?;
            match self.start_foreign(port, pattern.as_ref(), before.clone(), stop) {
                Err(Halt::Failed(failure))
                    if tries < PORTS_TRIED && says_taken(&failure.output) =>
                {
                    tries += 1;
                }
                started => return started,
            }
        }
    }

    /// Whether it is one of ours, which prints its counts at the end.
    pub(super) fn is_ours(&self) -> bool {
        self.info.foreign.is_none()
    }

    /// Who is asked to stop it.
    pub(super) fn signalled(&self) -> Signalled {
        if self.is_ours() {
            Signalled::Leader
        } else {
            Signalled::Group
        }
    }

    /// Whether all of a foreign server was still in its process tree, and so was measured.
    pub(super) fn check_tree(&self) -> Result<(), String> {
        if self.is_ours() {
            return Ok(());
        }
        let orphans = self.orphans();
        if orphans.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{} left the server's process tree, where nothing is measured; {STAY}",
            orphans::in_words(&orphans)
        ))
    }

    fn orphans(&self) -> Vec<orphans::Orphan> {
        orphans::living(&self.state.helpers.borrow())
    }

    /// Runs the command before the trial.
    fn prepare(&self, stop: Stop) -> Stage<()> {
        if self.info.prepare.is_empty() {
            return Ok(());
        }
        self.state.prepared.set(true);
        self.hook("prepare", &self.info.prepare, Some(stop))?;
        let helpers = orphans::living(&[]);
        let helpers = helpers.into_iter().map(|orphan| orphan.pid).collect();
        self.state.helpers.replace(helpers);
        Ok(())
    }

    /// Runs the command after the trial, if the one before was begun or there is none. A signal does
    /// not keep it from clearing away what the other made.
    pub(super) fn conclude(&self) -> Stage<()> {
        let due = self.state.prepared.get() || self.info.prepare.is_empty();
        if self.info.conclude.is_empty() || !due {
            return Ok(());
        }
        self.hook("conclude", &self.info.conclude, None)
    }

    fn hook(&self, stage: &str, words: &[String], heed: Option<Stop>) -> Stage<()> {
        let what = format!("the command of --{stage}");
        let limit = self.hook_limit;
        let started = Process::start(&what, self.command(words), &[], Captured::Output);
        let mut process =
            started.or_else(|error| failed(stage, format!("{error:#}"), String::new()))?;
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = process.reap() {
                if status.success() {
                    return Ok(());
                }
                return failed(stage, process.ending(), process.output());
            }
            if heed.is_some_and(Stop::requested) {
                return Err(Halt::Interrupted);
            }
            if Instant::now() >= deadline {
                return failed(
                    stage,
                    format!("{what} did not end within {limit:?} (--hook-timeout)"),
                    process.output(),
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn at(&self, port: u16) -> SocketAddr {
        (self.address, port).into()
    }

    /// A command line with the environment of the server, and what it is told about its place.
    fn command(&self, words: &[String]) -> Command {
        let port = self.state.port.get();
        let put_in = |word: &String| match port {
            Some(port) => word
                .replace("{port}", &port.to_string())
                .replace("{address}", &self.at(port).to_string()),
            None => word.clone(),
        };
        let mut words = words.iter().map(put_in);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.envs(&self.info.environment);
        if let Some(port) = port {
            command.env("PORT", port.to_string());
        }
        command
    }

    fn start_ours<T: Send + 'static>(
        &self,
        before: impl FnOnce() -> T + Send + 'static,
        stop: Stop,
    ) -> Stage<(T, Server)> {
        let mut command = self.command(&self.info.command);
        command.arg("--log").arg(&self.log);
        let (process, first) = self.spawn(command, Captured::Output, before)?;
        Ok((first, self.wait_for_word(process, stop)?))
    }

    fn spawn<T: Send + 'static>(
        &self,
        mut command: Command,
        captured: Captured,
        before: impl FnOnce() -> T + Send + 'static,
    ) -> Stage<(Process, T)> {
        let limits = LIMITS.iter().filter_map(|(name, resource)| {
            let value = self.info.limits.get(*name)?;
            Some((*resource, *value))
        });
        let limits: Vec<_> = limits.collect();
        if !limits.is_empty() {
            spawn::limit(&mut command, limits);
        }
        let started = Process::start_prepared("the server", command, self.cpus, captured, before);
        started.or_else(|error| failed("start", format!("{error:#}"), String::new()))
    }

    /// Waits for the line that says where the server listens.
    fn wait_for_word(&self, mut process: Process, stop: Stop) -> Stage<Server> {
        let limit = self.limit;
        let deadline = Instant::now() + limit;
        loop {
            match process.line(deadline.min(Instant::now() + LOOK)) {
                Ok(line) => {
                    if let Some(address) = listening_address(&line) {
                        return Ok(Server { process, address });
                    }
                }
                Err(NoLine::Ended) => return failed("start", process.ending(), process.output()),
                Err(NoLine::Late) => {}
            }
            // However much it says.
            if stop.requested() {
                return Err(Halt::Interrupted);
            }
            if Instant::now() >= deadline {
                let reason = format!("the server did not listen within {limit:?}");
                return failed("start", reason + &still(&process), process.output());
            }
        }
    }

    fn start_foreign<T: Send + 'static>(
        &self,
        port: u16,
        pattern: Option<&Pattern>,
        before: impl FnOnce() -> T + Send + 'static,
        stop: Stop,
    ) -> Stage<(T, Server)> {
        let command = self.command(&self.info.command);
        let (mut process, first) = self.spawn(command, Captured::Both, before)?;
        let deadline = Instant::now() + self.limit;
        let address = self.at(port);
        let mut said_so = pattern.is_none();
        let mut rest = Duration::from_millis(1);
        loop {
            if process.has_ended() {
                return failed("start", self.ending(&mut process), process.output());
            }
            if stop.requested() {
                return Err(Halt::Interrupted);
            }
            if let Some(pattern) = pattern.filter(|_| !said_so) {
                let line = process.line(deadline.min(Instant::now() + LOOK));
                said_so = line.is_ok_and(|line| pattern.matches(line.as_bytes()));
            }
            if said_so && TcpStream::connect_timeout(&address, LOOK).is_ok() {
                let owns = check_owner(&process, port);
                // Who has gone to the background meanwhile owns nothing any more.
                if !process.has_ended() {
                    return owns.map(|()| (first, Server { process, address }));
                }
                continue;
            }
            if Instant::now() >= deadline {
                return self.never_ready(&process, port, said_so);
            }
            if said_so {
                std::thread::sleep(rest);
                rest = (rest * 2).min(LOOK);
            }
        }
    }

    /// How a server ended that should not have, for a message.
    pub(super) fn ending(&self, process: &mut Process) -> String {
        let orphans = if self.is_ours() {
            Vec::new()
        } else {
            self.orphans()
        };
        let ending = process.ending();
        let killed = process.reap().and_then(|status| status.signal()) == Some(KILLED);
        if killed && memory_ran_out() > self.state.memory_ran_out.get() {
            return format!(
                "{ending}: the kernel kills where memory runs out, and did so meanwhile"
            );
        }
        if orphans.is_empty() {
            return ending;
        }
        let orphans = orphans::in_words(&orphans);
        format!("{ending} and left {orphans} in the background; {STAY}")
    }

    fn never_ready<T>(&self, process: &Process, port: u16, said_so: bool) -> Stage<T> {
        let limit = self.limit;
        let mut reason = if said_so {
            format!("the server accepted no connection on port {port} within {limit:?}")
        } else {
            format!("the server's output did not match --ready within {limit:?}")
        };
        let elsewhere = ports_of(process).unwrap_or_default();
        if said_so && !elsewhere.is_empty() {
            let ports: Vec<String> = elsewhere.iter().map(ToString::to_string).collect();
            reason += &format!(
                "; it listens on {}: write {{port}} where its command line names the port, or let it \
                 read PORT from its environment",
                ports.join(", ")
            );
        }
        failed("start", reason + &still(process), process.output())
    }
}

/// That somebody of a server was stopped by a signal and so does nothing, to be added to what it did not
/// do; else nothing.
pub(super) fn still(process: &Process) -> String {
    let mut tree = Tree::of(process.pid());
    tree.look();
    let stopped = tree.stats().find(|(_, stat)| stat.state == 'T');
    stopped.map_or(String::new(), |(_, stat)| {
        format!(
            "; {} {} stands still, stopped by a signal (SIGSTOP)",
            stat.comm, stat.pid
        )
    })
}

/// How often the kernel has killed a process for want of memory, in a control group or on the whole machine.
fn memory_ran_out() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// The pattern in the server's output that says it is ready.
fn ready_pattern(foreign: &Foreign) -> Stage<Option<Pattern>> {
    let pattern = foreign.ready.as_deref().map(Pattern::new).transpose();
    pattern.or_else(|why| failed("start", format!("--ready: {why}"), String::new()))
}

/// Makes sure that what answered is the server and nobody else who was quicker to take its port.
fn check_owner(process: &Process, port: u16) -> Stage<()> {
    match ports_of(process) {
        Some(ports) if !ports.contains(&port) => failed(
            "start",
            format!("something answers on port {port}, but it is not the server that was started"),
            process.output(),
        ),
        _ => Ok(()),
    }
}

/// The ports on which a process or a descendant listens.
fn ports_of(process: &Process) -> Option<std::collections::BTreeSet<u16>> {
    let mut tree = Tree::of(process.pid());
    tree.look();
    ports::listened_by(tree.pids())
}

/// Whether a server said that its port was not to be had.
pub(super) fn says_taken(output: &str) -> bool {
    let output = output.to_lowercase();
    output.contains("eaddrinuse") || output.contains("address already in use")
}

/// The address in "listening on ADDRESS ...".
pub(super) fn listening_address(line: &str) -> Option<SocketAddr> {
    let (_, after) = line.split_once("listening on ")?;
    after
        .split_whitespace()
        .next()?
        .trim_end_matches(',')
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_where_a_server_listens() {
        let address = |line| listening_address(line).map(|address| address.to_string());
        assert_eq!(
            address("listening on 127.0.0.1:80 (epoll)").unwrap(),
            "127.0.0.1:80"
        );
        assert_eq!(
            address("now listening on [::1]:8080, ok").unwrap(),
            "[::1]:8080"
        );
        assert_eq!(address("listening on all ports"), None);
        assert_eq!(address("hello"), None);
    }

    #[test]
    fn servers_say_in_their_ways_that_a_port_is_taken() {
        assert!(says_taken(
            "Error: listen EADDRINUSE: address already in use :::80"
        ));
        assert!(says_taken("OSError: [Errno 98] Address already in use"));
        assert!(!says_taken("permission denied"));
    }
}
