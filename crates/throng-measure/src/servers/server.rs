//! The server of a trial: a built-in or foreign one, started until it accepts clients; or found running.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::announced::{listening_address, reports_taken_port};
use super::hooks::{self, Place};
use super::live_server::{LiveServer, Processes, signalled};
use super::logs::Log;
use super::named::{LIMITS, STOP_SIGNALS};
use super::ports;
use super::ready::{NotReady, Ready};
use super::running::RunningServer;
use super::stream::connect;
use crate::probes::Tree;
use crate::processes::all::{Brief, in_words};
use crate::processes::known_messages::ServerMessages;
use crate::processes::orphans;
use crate::processes::process::{OutputCapture, Process, StopOrder};
use crate::processes::queue::LineError;
use crate::stage::{Halt, Stage, failed};
use throng_record::{FailedStage, Foreign, Running, ServerInfo};
use throng_spec::{Endpoint, TlsSpec};
use throng_sys::signal::Stop;
use throng_sys::spawn;

/// Time limit of one readiness check.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum restarts of a server with other ports when one was taken.
const PORTS_TRIED: u32 = 3;

/// SIGKILL, which a process does not send itself by mistake.
const KILLED: i32 = Signal::KILL.as_raw();

/// What to do about a server that becomes a daemon.
const STAY: &str = "keep the server in the foreground, not as a daemon";

/// How a server is started.
pub(crate) struct Launch<'a> {
    pub(crate) info: &'a ServerInfo,
    /// Where a built-in server logs its clients.
    pub(crate) log: PathBuf,
    /// Time limit until it is ready.
    pub(crate) limit: Duration,
    /// Time limit for a foreign server to stop.
    pub(crate) stop_limit: Duration,
    /// Time limit of the commands before and after the trial.
    pub(crate) hook_limit: Duration,
    pub(crate) cpus: &'a [u32],
    /// TLS of the load, for the readiness check.
    pub(crate) tls: Option<&'a TlsSpec>,
    /// The address for a foreign server to listen on.
    pub(crate) address: IpAddr,
    pub(crate) state: State,
}

/// State of a launch.
#[derive(Default)]
pub(crate) struct State {
    /// Where a foreign server listens, or should listen.
    place: RefCell<Option<Place>>,
    /// Whether the command before the trial was started, so that the one after it is due.
    prepared: Cell<bool>,
    /// Whether another program took the port first: a server that ended had reported it, or the other program answers.
    port_taken: Cell<bool>,
    /// Processes that the command before the trial deliberately left running.
    helpers: RefCell<Vec<u32>>,
    /// Number of OOM kills before the server was started.
    memory_ran_out: Cell<u64>,
    /// Its log files at that time.
    logs: RefCell<Vec<Log>>,
}

impl Launch<'_> {
    /// Starts the server and waits until it is ready. `before` is called after all preparations, on the thread that
    /// then starts the server. It is not called for a running server.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        before: impl FnOnce() -> T + Clone + Send + 'static,
        stop: Stop,
    ) -> Stage<(Option<T>, LiveServer)> {
        self.state.memory_ran_out.set(memory_ran_out());
        let logs = self.info.logs.iter().map(|path| Log::open(path));
        self.state.logs.replace(logs.collect());
        let Some(foreign) = &self.info.foreign else {
            self.prepare(stop)?;
            return self.start_ours(before, stop);
        };
        if let Some(running) = &foreign.running {
            return Ok((None, self.attach(running, stop)?));
        }
        let mut tries = 1;
        loop {
            let place = Place::free(self.info, self.address)
                .or_else(|why| failed(FailedStage::Start, why, String::new()))?;
            let ready = ready_sign(foreign, &place)?;
            self.state.place.replace(Some(place));
            self.state.port_taken.set(false);
            self.prepare(stop)?;
            match self.start_foreign(&ready, before.clone(), stop) {
                Err(Halt::Failed(_)) if tries < PORTS_TRIED && self.state.port_taken.get() => {
                    tries += 1;
                }
                started => return started,
            }
        }
    }

    /// Finds a running server.
    fn attach(&self, running: &Running, stop: Stop) -> Stage<LiveServer> {
        self.state.place.replace(Some(Place::of(&running.address)));
        self.prepare(stop)?;
        let attached = RunningServer::find(running, self.info.allows_remote(), self.limit, stop)?;
        Ok(LiveServer {
            address: attached.address.clone(),
            processes: Processes::Running(attached),
        })
    }

    /// Whether it is a built-in server, which prints its counts at the end.
    pub(crate) fn is_built_in(&self) -> bool {
        self.info.foreign.is_none()
    }

    /// How it is stopped, with its time limit.
    pub(crate) fn stop_order(&self, grace: Duration, stop: Stop) -> StopOrder {
        StopOrder {
            signal: self.stop_signal().1,
            signalled: signalled(self.is_built_in()),
            grace,
            hurried: Some(stop),
        }
    }

    /// The signal that stops it, with its name.
    pub(crate) fn stop_signal(&self) -> (&'static str, Signal) {
        let foreign = self.info.foreign.as_ref();
        let named = foreign.and_then(|foreign| foreign.stop_signal.as_deref());
        let mut known = STOP_SIGNALS.into_iter();
        let found = known.find(|(name, _)| Some(*name) == named);
        found.unwrap_or(STOP_SIGNALS[0])
    }

    /// The known messages in the server's log files since the trial began.
    pub(crate) fn messages_in_logs(&self) -> ServerMessages {
        let mut messages = ServerMessages::default();
        for log in &*self.state.logs.borrow() {
            messages.add(log.messages());
        }
        messages
    }

    /// Checks that the whole foreign server was still in its process tree, and so was measured.
    pub(crate) fn check_tree(&self) -> Result<(), String> {
        if self.is_built_in() || self.info.running().is_some() {
            return Ok(());
        }
        let orphans = self.orphans();
        if orphans.is_empty() {
            return Ok(());
        }
        Err(left_the_tree(&orphans))
    }

    fn orphans(&self) -> Vec<Brief> {
        orphans::living(&self.state.helpers.borrow())
    }

    /// Runs the command before the trial.
    fn prepare(&self, stop: Stop) -> Stage<()> {
        if self.info.prepare.is_empty() {
            return Ok(());
        }
        self.state.prepared.set(true);
        self.hook(FailedStage::Prepare, &self.info.prepare, Some(stop))?;
        let helpers = orphans::living(&[]);
        let pids = helpers.iter().map(|helper| helper.pid.cast_unsigned());
        self.state.helpers.replace(pids.collect());
        Ok(())
    }

    /// Runs the command after the trial, if the command before it was started or there is none. A signal does not
    /// prevent this cleanup.
    pub(crate) fn conclude(&self) -> Stage<()> {
        let due = self.state.prepared.get() || self.info.prepare.is_empty();
        if self.info.conclude.is_empty() || !due {
            return Ok(());
        }
        self.hook(FailedStage::Conclude, &self.info.conclude, None)
    }

    fn hook(&self, stage: FailedStage, words: &[String], heed: Option<Stop>) -> Stage<()> {
        hooks::run(stage, self.command(words), self.hook_limit, heed)
    }

    fn command(&self, words: &[String]) -> Command {
        hooks::command(self.info, words, self.state.place.borrow().as_ref())
    }

    fn start_ours<T: Send + 'static>(
        &self,
        before: impl FnOnce() -> T + Send + 'static,
        stop: Stop,
    ) -> Stage<(Option<T>, LiveServer)> {
        let mut command = self.command(&self.info.command);
        command.arg("--log").arg(&self.log);
        let (process, first) = self.spawn(command, OutputCapture::Output, before)?;
        Ok((Some(first), self.wait_for_address(process, stop)?))
    }

    fn spawn<T: Send + 'static>(
        &self,
        mut command: Command,
        captured: OutputCapture,
        before: impl FnOnce() -> T + Send + 'static,
    ) -> Stage<(Process, T)> {
        let limits: Vec<_> = LIMITS
            .iter()
            .filter_map(|(name, resource)| {
                let value = self.info.limits.get(*name)?;
                Some((*resource, *value))
            })
            .collect();
        if !limits.is_empty() {
            spawn::limit(&mut command, limits);
        }
        let started = Process::start_prepared("the server", command, self.cpus, captured, before);
        started.or_else(|error| failed(FailedStage::Start, format!("{error:#}"), String::new()))
    }

    /// Waits for the line with the address on which the server listens.
    fn wait_for_address(&self, mut process: Process, stop: Stop) -> Stage<LiveServer> {
        let limit = self.limit;
        let deadline = Instant::now() + limit;
        loop {
            match process.line(deadline.min(Instant::now() + POLL_INTERVAL)) {
                Ok(line) => {
                    if let Some(address) = listening_address(&line) {
                        return Ok(served(process, address));
                    }
                }
                Err(LineError::Ended) => {
                    return failed(FailedStage::Start, process.ending(), process.output());
                }
                Err(LineError::Late) => {}
            }
            // Checked even if the server prints without pause.
            if stop.requested() {
                return Err(Halt::Interrupted);
            }
            if Instant::now() >= deadline {
                let reason = format!("the server did not listen within {limit:?}");
                return failed(
                    FailedStage::Start,
                    reason + &still(&process),
                    process.output(),
                );
            }
        }
    }

    fn start_foreign<T: Send + 'static>(
        &self,
        ready: &Ready,
        before: impl FnOnce() -> T + Send + 'static,
        stop: Stop,
    ) -> Stage<(Option<T>, LiveServer)> {
        let command = self.command(&self.info.command);
        let (mut process, first) = self.spawn(command, OutputCapture::Both, before)?;
        let deadline = Instant::now() + self.limit;
        let place = self.state.place.borrow();
        let places = place.as_ref().map(Place::endpoints).unwrap_or_default();
        drop(place);
        let allow_remote = self.info.allows_remote();
        let mut unreachable = None;
        let mut found = None;
        let (mut missing, mut tls) = (Missing::Connection, None);
        match ready {
            Ready::Output(_) => missing = Missing::Word,
            Ready::Tcp => {}
            Ready::Url(url) => match url.client(self.tls) {
                Ok(client) => tls = client,
                Err(error) => {
                    let reason = format!("--ready: {error:#}");
                    return failed(FailedStage::Start, reason, String::new());
                }
            },
        }
        let mut rest = Duration::from_millis(1);
        loop {
            if process.has_ended() {
                let ending = self.ending(&mut process);
                self.state
                    .port_taken
                    .set(reports_taken_port(&process.all_output()));
                return failed(FailedStage::Start, ending, process.output());
            }
            if stop.requested() {
                return Err(Halt::Interrupted);
            }
            if let (Ready::Output(pattern), Missing::Word) = (ready, &missing) {
                let line = process.line(deadline.min(Instant::now() + POLL_INTERVAL));
                if line.is_ok_and(|line| pattern.matches(line.as_bytes())) {
                    missing = Missing::Connection;
                }
            }
            let waits_for_word = matches!(missing, Missing::Word);
            let mut answers = |endpoint: &&Endpoint| {
                let connected = connect(endpoint, POLL_INTERVAL).map(drop);
                if Some(*endpoint) == places.first() {
                    unreachable = connected.as_ref().err().map(io::Error::kind);
                }
                connected.is_ok()
            };
            if !waits_for_word && let Some(answering) = places.iter().find(&mut answers) {
                found = Some(answering.clone());
                missing = match ready {
                    Ready::Url(url) => match url.answers(tls.as_ref(), allow_remote) {
                        Ok(()) => Missing::Nothing,
                        Err(NotReady::Yet(why)) => Missing::Answer(why),
                        Err(NotReady::Ever(why)) => {
                            let reason = format!("the URL of --ready cannot be requested: {why}");
                            return failed(FailedStage::Start, reason, process.output());
                        }
                    },
                    Ready::Tcp | Ready::Output(_) => Missing::Nothing,
                };
            }
            if let (Missing::Nothing, Some(address)) = (&missing, &found) {
                let owns = self.check_owner(&process, address);
                // A process that went to the background in the meantime owns no ports.
                if process.has_ended() {
                    continue;
                }
                return match owns {
                    Ok(()) => Ok((Some(first), served(process, address.clone()))),
                    Err(why) => failed(FailedStage::Start, why, process.output()),
                };
            }
            if Instant::now() >= deadline {
                return self.never_ready(&process, &missing, unreachable);
            }
            if !waits_for_word {
                std::thread::sleep(rest);
                rest = (rest * 2).min(POLL_INTERVAL);
            }
        }
    }

    /// Checks that the server answers at its address, or else says who does. That it is the server is assumed where the
    /// kernel does not show it.
    fn check_owner(&self, process: &Process, address: &Endpoint) -> Result<(), String> {
        self.state.port_taken.set(false);
        // Other users cannot access the directory of a socket.
        let Some(address) = address.tcp() else {
            return Ok(());
        };
        let has_port = |found: BTreeSet<SocketAddr>| {
            let mut ports = found.iter().map(SocketAddr::port);
            ports.any(|port| port == address.port())
        };
        if listened_by(process).is_none_or(has_port) {
            return Ok(());
        }
        let orphans = self.orphans();
        let pids: Vec<u32> = orphans.iter().map(|it| it.pid.cast_unsigned()).collect();
        if ports::listened_by(&pids).is_some_and(has_port) {
            return Err(left_the_tree(&orphans));
        }
        self.state.port_taken.set(true);
        Err(format!(
            "another program listens on {address}, not the server that was started"
        ))
    }

    /// How a server ended unexpectedly, for a message.
    pub(crate) fn ending(&self, process: &mut Process) -> String {
        let orphans = if self.is_built_in() {
            Vec::new()
        } else {
            self.orphans()
        };
        let ending = process.ending();
        if process.signal() == Some(KILLED) && memory_ran_out() > self.state.memory_ran_out.get() {
            return format!("{ending}: the kernel killed processes because memory ran out");
        }
        if orphans.is_empty() {
            return ending;
        }
        let orphans_in_words = in_words(&orphans);
        format!("{ending} and left {orphans_in_words} in the background; {STAY}")
    }

    /// The error for a server that is not ready in time. `unreachable` is why nobody could connect to it.
    fn never_ready<T>(
        &self,
        process: &Process,
        missing: &Missing,
        unreachable: Option<ErrorKind>,
    ) -> Stage<T> {
        let limit = self.limit;
        let place = self.state.place.borrow();
        let place_in_words = place.as_ref().map(Place::in_words).unwrap_or_default();
        let mut reason = match missing {
            Missing::Word => format!("the server's output did not match --ready within {limit:?}"),
            Missing::Answer(why) => format!(
                "the URL of --ready did not return 2xx or 3xx within {limit:?}; the last reply: {why}"
            ),
            Missing::Connection | Missing::Nothing => {
                format!("the server accepted no connection on {place_in_words} within {limit:?}")
            }
        };
        if let (Missing::Connection, Some(place)) = (missing, &*place) {
            let wanted: Vec<SocketAddr> =
                place.endpoints().iter().filter_map(Endpoint::tcp).collect();
            let tree = listened_by(process).unwrap_or_default();
            reason += &listens_elsewhere(&tree, &wanted, unreachable);
        }
        failed(
            FailedStage::Start,
            reason + &still(process),
            process.output(),
        )
    }
}

/// Where a server listens to which nobody could connect, and what to do about it, to append to an error.
fn listens_elsewhere(
    found: &BTreeSet<SocketAddr>,
    wanted: &[SocketAddr],
    unreachable: Option<ErrorKind>,
) -> String {
    let has_port = |own: &&SocketAddr| wanted.iter().any(|wanted| wanted.port() == own.port());
    let is_wanted = |own: &SocketAddr| own.ip().is_unspecified() || wanted.contains(own);
    match (found.iter().find(has_port), found.first()) {
        (Some(own), _) if is_wanted(own) && unreachable == Some(ErrorKind::NetworkUnreachable) => {
            format!(
                "; it listens on {own}, but the network interface lo is down: ip link set lo up"
            )
        }
        (Some(own), _) if is_wanted(own) => String::new(),
        (Some(own), _) => {
            format!(
                "; it listens on {own} instead: write {{address}} for the address in its command"
            )
        }
        (None, Some(first)) => {
            let all: Vec<String> = found.iter().map(ToString::to_string).collect();
            format!(
                "; it listens on {} instead: write {{port}} for the port in its command, let it read PORT from its \
                 environment, or start it yourself and write 127.0.0.1:{} instead of its command",
                all.join(", "),
                first.port()
            )
        }
        (None, None) => String::new(),
    }
}

/// The error for processes that are no longer descendants of a server.
fn left_the_tree(orphans: &[Brief]) -> String {
    format!(
        "{} left the server's process tree and cannot be measured; {STAY}",
        in_words(orphans)
    )
}

/// Why a server is not ready yet.
enum Missing {
    /// No output matched.
    Word,
    /// It accepts no connection.
    Connection,
    /// Its URL gave this reply, which is not the required one.
    Answer(String),
    Nothing,
}

fn served(process: Process, address: Endpoint) -> LiveServer {
    LiveServer {
        address,
        processes: Processes::Started(Box::new(process)),
    }
}

/// A note that a process of the server was stopped by a signal, to append to an error; otherwise empty.
pub(crate) fn still(process: &Process) -> String {
    let mut tree = Tree::of(process.pid());
    tree.refresh();
    let stopped = tree.stats().find(|(_, stat)| stat.state == 'T');
    stopped.map_or(String::new(), |(_, stat)| {
        format!(
            "; {} {} is stopped by a signal (SIGSTOP)",
            stat.comm, stat.pid
        )
    })
}

/// Number of OOM kills, in a control group or on the whole machine.
fn memory_ran_out() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// How to tell that a server at this address is ready.
fn ready_sign(foreign: &Foreign, place: &Place) -> Stage<Ready> {
    let text = foreign.ready.as_deref().unwrap_or("tcp");
    match Ready::read(text) {
        Ok(Ready::Url(mut url)) => {
            url.host = place.substitute(&url.host);
            url.path = place.substitute(&url.path);
            Ok(Ready::Url(url))
        }
        Ok(ready) => Ok(ready),
        Err(why) => failed(FailedStage::Start, format!("--ready: {why}"), String::new()),
    }
}

/// The addresses at which a process or a descendant listens.
fn listened_by(process: &Process) -> Option<BTreeSet<SocketAddr>> {
    let mut tree = Tree::of(process.pid());
    tree.refresh();
    ports::listened_by(tree.pids())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_server_listens_instead_is_named_with_its_address() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        let wanted = addresses(&["127.0.0.1:7", "[::1]:7"]);
        for (found, unreachable, says) in [
            (
                "127.0.0.2:7",
                ErrorKind::ConnectionRefused,
                "on 127.0.0.2:7 instead: write {address}",
            ),
            (
                "127.0.0.1:8",
                ErrorKind::ConnectionRefused,
                "on 127.0.0.1:8 instead: write {port}",
            ),
            (
                "127.0.0.1:7",
                ErrorKind::NetworkUnreachable,
                "the network interface lo is down",
            ),
            (
                "0.0.0.0:7",
                ErrorKind::NetworkUnreachable,
                "the network interface lo is down",
            ),
            ("127.0.0.1:7", ErrorKind::TimedOut, ""),
        ] {
            let found = addresses(&[found]).into_iter().collect();
            let said = listens_elsewhere(&found, &wanted, Some(unreachable));
            assert!(said.contains(says), "{said}");
            assert_eq!(said.is_empty(), says.is_empty());
        }
    }
}
