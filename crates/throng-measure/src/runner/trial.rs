//! One trial: start the server, verify it, load it, measure both sides, end both.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::loading::Loading;
use super::observer::Audience;
use super::verify::{Strictness, verify};
use super::wire;
use crate::cluster::follow::Follower;
use crate::cluster::{self, Gathering, LoadNews, Origin};
use crate::host;
use crate::network::loss::Loss;
use crate::probes::cpu;
use crate::probes::{ClientPresence, Panel, ProbeKind, Sample, Subject, Target, Tree};
use crate::processes::ending;
use crate::processes::known_messages::ServerMessages;
use crate::processes::orphans;
use crate::processes::process::{Process, Stopped};
use crate::profile::{self, Profiling};
use crate::servers::live_server::{LiveServer, Processes};
use crate::servers::server::{Launch, still};
use crate::stage::{Halt, Stage, failed};
use throng_record::{
    Draft, FailedStage, Failure, HostPart, Load, Phase, Profile, Purpose, Side, Slice, StartSkew,
    StoppedBy, Why,
};
use throng_spec::ServerCounts;
use throng_spec::{Assignment, Endpoint, Target as Named};
use throng_sys::priority::Raised;
use throng_sys::signal::Stop;

/// Time limit for a dying server, from the end of all its connections until it ends itself.
const DYING_LIMIT: Duration = Duration::from_secs(2);
/// Time limit for a built-in server to stop, for any server in a failed trial, and for the load generator.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Additional time limit for a built-in server per client: it first answers what has arrived, and some answers take a
/// millisecond.
const STOP_PER_CLIENT: Duration = Duration::from_millis(2);
/// Time beyond its phases after which a load counts as hung.
const SLACK: Duration = Duration::from_secs(30);

/// The index of the clients' panel.
const CLIENTS: usize = 1;

/// Everything that one trial needs.
pub(crate) struct Setup<'a> {
    /// Starts the server.
    pub(crate) launch: Launch<'a>,
    /// The program of the load generator.
    pub(crate) program: &'a Path,
    /// Its assignment, without the server's address.
    pub(crate) load: Assignment,
    pub(crate) client_cpus: &'a [u32],
    /// Percentage of packets to drop.
    pub(crate) loss_percent: Option<f64>,
    /// The tests that a server must pass before it is timed.
    pub(crate) rigour: Strictness,
    /// Maximum duration of connecting, warm-up and measured phase together.
    pub(crate) load_limit: Duration,
    pub(crate) purpose: Purpose,
    /// How closely the server is watched during the window.
    pub(crate) why: Why,
    pub(crate) probes: Vec<&'static ProbeKind>,
    /// Path for files of probes, without extension.
    pub(crate) files: PathBuf,
}

impl Setup<'_> {
    /// Name of the server.
    pub(super) fn name(&self) -> &str {
        &self.launch.info.name
    }

    /// The server's address, as given to the clients and to the server.
    fn named(&self, address: &Endpoint) -> Named {
        let running = self.launch.info.running();
        let named = running.and_then(|running| running.address.parse().ok());
        named.unwrap_or_else(|| address.clone().into())
    }
}

/// The result of a trial.
#[derive(Default)]
pub(crate) struct Result {
    pub(crate) failure: Option<Failure>,
    pub(crate) load: Option<Load>,
    pub(crate) server_side: Option<Side>,
    pub(crate) client_side: Option<Side>,
    pub(crate) network: Option<Side>,
    pub(crate) server_counts: Option<ServerCounts>,
    /// What was seen of the server while it was watched, and its stacks with their counts.
    pub(crate) profile: Option<Profile>,
    pub(crate) stacks: Vec<(String, u64)>,
    /// The known messages of the server.
    pub(crate) messages: ServerMessages,
    /// Which part did not stop in time, if any.
    pub(crate) stopped_late: Option<String>,
    /// Side, and seconds since the measurement began.
    pub(crate) samples: Vec<(&'static str, f64, Sample)>,
    /// The server's output during the load.
    pub(crate) written_bytes: u64,
    pub(crate) hosts: Vec<HostPart>,
    pub(crate) start_skew: Option<StartSkew>,
    /// One of these hosts was lost.
    pub(crate) host_lost: bool,
    /// A stop was requested; the rest is partial.
    pub(crate) interrupted: bool,
}

/// Runs a trial. Failures are part of the result; no process is left behind.
pub(crate) fn run(setup: &Setup<'_>, origin: &mut Origin, audience: &mut Audience<'_>) -> Result {
    let mut result = Result::default();
    let attempted = attempt(setup, origin, audience, &mut result);
    result.set_end(setup, attempted, audience);
    end_orphans();
    result.fail_for_survivors();
    result
}

/// How a server ended, in words.
pub(crate) fn how_it_ended(launch: &Launch<'_>, server: &mut LiveServer) -> String {
    match server.started() {
        Some(process) => launch.ending(process),
        None => "the server ended: all of its processes have exited".to_owned(),
    }
}

/// Ends processes that left the trees of servers and loads, after these have ended.
pub(crate) fn end_orphans() {
    orphans::end_all(STOP_LIMIT);
}

fn attempt(
    setup: &Setup<'_>,
    origin: &mut Origin,
    audience: &mut Audience<'_>,
    result: &mut Result,
) -> Stage<()> {
    let mut live = Live::begin(setup, origin, audience.stop)?;
    let watched = live.watch(audience);
    live.end(watched, result)
}

/// A trial whose server runs and is verified, and whose load has begun.
pub(crate) struct Live<'a> {
    setup: &'a Setup<'a>,
    pub(crate) server: LiveServer,
    pub(crate) load: Loading<'a>,
    _priority: Option<Raised>,
    /// Packet loss during the trial.
    _loss: Option<Loss>,
    /// The panels of the server, the clients and the network.
    pub(crate) panels: [Panel; 3],
    pub(crate) follower: Follower,
    /// What is seen of the server.
    pub(crate) watching: Profiling,
    /// What was seen of it, once the functions have their names.
    seen: (Option<Profile>, Vec<(String, u64)>),
    /// When the load counts as hung.
    deadline: Instant,
    /// Length of the server's output before the load.
    written_before: u64,
    stop: Stop,
}

impl<'a> Live<'a> {
    pub(crate) fn begin(
        setup: &'a Setup<'_>,
        origin: &'a mut Origin,
        stop: Stop,
    ) -> Stage<Live<'a>> {
        let priority = Raised::new();
        let prepare = |subject| {
            let (probes, purpose) = (setup.probes.clone(), setup.purpose);
            move || Panel::prepare(&probes, subject, purpose)
        };
        let launch = &setup.launch;
        let (prepared, mut server) = launch.start(prepare(Subject::Processes), stop)?;
        let mut server_side = prepared
            .unwrap_or_else(|| Panel::of_running(&setup.probes, setup.purpose, server.unknown()));
        let address = server.address.clone();
        let parsed = setup.load.load.dialogue(&setup.named(&address).host());
        let (dialogue, settings) = parsed
            .or_else(|error| failed(FailedStage::Verify, error.to_string(), String::new()))?;
        let tls = wire::client(&setup.load.load, &setup.named(&address));
        let rigour = setup.rigour;
        if let Err(error) =
            tls.and_then(|tls| verify(&address, tls.as_ref(), dialogue, settings, rigour))
        {
            let (ended, still) = match server.started() {
                Some(process) if process.has_ended() => {
                    (launch.ending(process) + "; ", still(process))
                }
                Some(process) => (String::new(), still(process)),
                None => (String::new(), String::new()),
            };
            let wire_protocol = wire::other_protocol(&setup.load.load, &address);
            return failed(
                FailedStage::Verify,
                format!("{ended}{error:#}{wire_protocol}{still}"),
                server.output(),
            );
        }
        let tree = server.tree();
        let target = || Target {
            tree: tree.clone(),
            server: address.clone(),
            clients: setup.load.load.clients,
            files: setup.files.clone(),
            presence: ClientPresence::of(&setup.load.load),
        };
        server_side.attach(target());
        let mut network = prepare(Subject::Network)();
        network.attach(target());
        let loss = Loss::wanted(setup.loss_percent, address.tcp())
            .or_else(|error| failed(FailedStage::Load, error.to_string(), String::new()))?;
        let (load, client_side) = begin_load(setup, origin, address)?;
        Ok(Self {
            _priority: priority,
            _loss: loss,
            setup,
            written_before: server.written_bytes(),
            server,
            load,
            panels: [server_side, client_side, network],
            follower: Follower::new(CLIENTS),
            watching: Profiling::default(),
            seen: (None, Vec::new()),
            deadline: Instant::now() + setup.load_limit + SLACK,
            stop,
        })
    }

    /// Follows the load through its phases, sampling with all panels, until its result.
    fn watch(&mut self, audience: &mut Audience<'_>) -> Stage<Load> {
        loop {
            match self.step(audience)? {
                LoadNews::Phase { phase, waits, .. } => {
                    if waits {
                        self.proceed()?;
                    }
                    if phase == Phase::Measure && !self.setup.why.is_off() {
                        self.have_watched_turns(audience)?;
                        self.name_stacks();
                    }
                }
                LoadNews::Result(load) => return Ok(*load),
                _ => {}
            }
        }
    }

    /// Watches the server in turns of the window, each from one report of the clients to a later one.
    fn have_watched_turns(&mut self, audience: &mut Audience<'_>) -> Stage<()> {
        let window = self.setup.load.load.duration.unwrap_or_default();
        let turns = profile::turns(self.setup.why);
        let number: u32 = turns.iter().map(|(_, number)| number).sum();
        let cpus = self.cpus();
        let mut ends = Instant::now();
        for (open, number_of_kind) in turns {
            let mut watch = open(&cpus);
            ends += window * number_of_kind / (number + 1);
            for round in 0..number_of_kind {
                let Some(before) = self.fresh_report(audience)? else {
                    return Ok(());
                };
                let mut tree = self.server.tree();
                tree.refresh();
                let of_server = tree.clone();
                let mut watching = std::mem::take(&mut self.watching);
                let length = window / (number + 1);
                let have = || self.have_turn(&of_server, before, length, audience);
                let watched = watching.watch(&mut watch, round, &mut tree, have);
                self.watching = watching;
                watched?;
                if Instant::now() >= ends {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The number of replies in the next report that had not been waiting to be read; `None` if the window is over.
    fn fresh_report(&mut self, audience: &mut Audience<'_>) -> Stage<Option<u64>> {
        loop {
            let asked = Instant::now();
            match self.step(audience)? {
                LoadNews::Snapshot(snapshot) if asked.elapsed() >= STALE => {
                    return Ok(snapshot.verified);
                }
                LoadNews::Phase { waits, .. } => {
                    if waits {
                        self.proceed()?;
                    }
                    return Ok(None);
                }
                _ => {}
            }
        }
    }

    /// What the server does from a report with this number of replies on; `None` if the window ends before.
    fn have_turn(
        &mut self,
        tree: &Tree,
        before: u64,
        length: Duration,
        audience: &mut Audience<'_>,
    ) -> Stage<Option<Slice>> {
        let (began, used_before) = (Instant::now(), cpu::total(tree));
        loop {
            let Some(replies) = self.fresh_report(audience)? else {
                return Ok(None);
            };
            let took = began.elapsed();
            if took < length {
                continue;
            }
            let used_then = cpu::total(tree).zip(used_before);
            let used = used_then.map(|(after, then)| after.saturating_sub(then));
            return Ok(Some(Slice {
                took_ns: took.as_nanos() as u64,
                replies: replies.saturating_sub(before),
                server_cpu_ns: used.map(|used| used.as_nanos() as u64),
                ..Slice::default()
            }));
        }
    }

    /// The CPUs where the server may run.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        let bound = self.setup.launch.cpus;
        if bound.is_empty() || !self.server.is_started() {
            return host::all_cpus();
        }
        bound.to_vec()
    }

    /// Gives the functions in the server's stacks their names, while it runs.
    pub(crate) fn name_stacks(&mut self) {
        self.seen = std::mem::take(&mut self.watching).finish();
    }

    /// Lets a load in slices, which is at rest, continue to its end.
    pub(crate) fn finish(&mut self) -> Stage<Load> {
        self.proceed()?;
        self.deadline = Instant::now() + SLACK;
        loop {
            match self.receive()? {
                LoadNews::Phase { waits: true, .. } => self.proceed()?,
                LoadNews::Result(load) => return Ok(*load),
                _ if Instant::now() >= self.deadline => {
                    let (reason, output) = self.load.overdue();
                    return failed(FailedStage::Load, reason, output);
                }
                _ if Instant::now() >= self.follower.due() => {
                    self.follower.sample(&mut self.panels);
                }
                _ => {}
            }
        }
    }

    /// The next report of the load, or a sample if one is due first. The caller starts the phases for which the load
    /// waits.
    pub(crate) fn step(&mut self, audience: &mut Audience<'_>) -> Stage<LoadNews> {
        let news = self.receive()?;
        let is_last = matches!(news, LoadNews::Result(_));
        // Even if reports arrive without pause.
        if !is_last && Instant::now() >= self.deadline.min(self.follower.due()) {
            self.sample(audience)?;
        }
        Ok(news)
    }

    /// The next report of the load, until a sample is due.
    fn receive(&mut self) -> Stage<LoadNews> {
        let news = self.load.receive(self.deadline.min(self.follower.due()));
        match &news {
            LoadNews::Phase {
                phase, snapshot, ..
            } => {
                self.follower.add_snapshot(*snapshot, &mut self.panels);
                self.follower.enter(*phase, &mut self.panels);
            }
            LoadNews::Snapshot(snapshot) => self
                .follower
                .add_snapshot_if_new(*snapshot, &mut self.panels),
            LoadNews::Failed { reason, output } => {
                return failed(FailedStage::Load, reason, output.clone());
            }
            LoadNews::Slice(_) | LoadNews::Result(_) | LoadNews::Nothing | LoadNews::Late => {}
        }
        Ok(news)
    }

    /// Takes the due sample, and checks that everything still runs.
    fn sample(&mut self, audience: &mut Audience<'_>) -> Stage<()> {
        if audience.stop.requested() {
            return Err(Halt::Interrupted);
        }
        if Instant::now() >= self.deadline {
            let (reason, output) = self.load.overdue();
            return failed(FailedStage::Load, reason, output);
        }
        if self.server.has_ended() {
            // The caller finds out how it ended.
            return failed(FailedStage::Serve, "the server ended", String::new());
        }
        self.follower.sample(&mut self.panels);
        let seen = self.follower.live_snapshot(self.panels.each_ref());
        audience.observer.on_snapshot(&seen);
        Ok(())
    }

    /// Starts the phase that the load is waiting for.
    pub(crate) fn proceed(&mut self) -> Stage<()> {
        let proceeded = self.load.proceed();
        proceeded.or_else(|error| failed(FailedStage::Load, format!("{error:#}"), String::new()))
    }

    /// Ends both sides, and collects all results; `watched` is the load's result.
    pub(crate) fn end(self, watched: Stage<Load>, result: &mut Result) -> Stage<()> {
        let Self {
            setup,
            mut server,
            mut load,
            panels,
            written_before,
            stop,
            seen,
            ..
        } = self;
        (result.profile, result.stacks) = seen;
        let launch = &setup.launch;
        load.stop(STOP_LIMIT);
        result.note_hosts(load);
        if matches!(&watched, Ok(ended) if ended.stopped_by == StoppedBy::NoClientsLeft.name()) {
            server.wait_for_end(DYING_LIMIT);
        }
        result.messages = server.messages();
        result.messages.add(launch.messages_in_logs());
        if server.has_ended() && !matches!(watched, Err(Halt::Interrupted)) {
            let ending = how_it_ended(launch, &mut server);
            // Its last lines are read by now.
            result.messages = server.messages();
            result.messages.add(launch.messages_in_logs());
            result.take(panels);
            let signal = server.started().and_then(Process::signal);
            return Err(Halt::Failed(Failure {
                stage: FailedStage::Serve,
                reason: ending,
                output: server.output(),
                signal,
            }));
        }
        result.written_bytes = server.written_bytes().saturating_sub(written_before);
        let whole = launch.check_tree();
        let still = server
            .started()
            .map_or_else(String::new, |process| still(process));
        let stop_limit = match &watched {
            _ if launch.is_built_in() => STOP_LIMIT + STOP_PER_CLIENT * setup.load.load.clients,
            Ok(_) => launch.stop_limit,
            Err(_) => launch.stop_limit.min(STOP_LIMIT),
        };
        let stopped = server.stop(&launch.stop_order(stop_limit, stop));
        result.load = Some(watched?);
        result.take(panels);
        whole.or_else(|reason| failed(FailedStage::Load, reason, server.output()))?;
        if let Some(reason) = not_stopped(&stopped, stop_limit, launch.stop_signal().0) {
            // A server stopped by a signal, or a built-in one, is not merely slow.
            if launch.is_built_in() || !still.is_empty() {
                return failed(FailedStage::Stop, reason + &still, server.output());
            }
            result.stopped_late = Some(reason);
        }
        match server.processes {
            Processes::Started(mut process) if launch.is_built_in() => {
                result.note_counts(launch, &mut process)
            }
            _ => Ok(()),
        }
    }
}

/// A report that arrives this soon after it is waited for had been there before.
const STALE: Duration = Duration::from_millis(1);

/// Which part of a server did not stop in time, if any.
fn not_stopped(stopped: &Stopped, limit: Duration, signal: &str) -> Option<String> {
    let in_time = format!("within {limit:?} of SIG{signal}");
    match stopped {
        Stopped::InTime => None,
        Stopped::Late => Some(format!("the server did not stop {in_time} and was killed")),
        Stopped::ButNot(others) => Some(format!(
            "the server stopped, but {others} that it had started did not {in_time}; they were killed"
        )),
    }
}

/// Starts the load, and prepares the panel of its clients.
fn begin_load<'a>(
    setup: &Setup<'_>,
    origin: &'a mut Origin,
    address: Endpoint,
) -> Stage<(Loading<'a>, Panel)> {
    let target = |pid| Target {
        tree: Tree::of(pid),
        server: address.clone(),
        clients: setup.load.load.clients,
        files: setup.files.clone(),
        presence: ClientPresence::of(&setup.load.load),
    };
    let purpose = setup.purpose;
    match origin {
        Origin::Here => {
            let probes = setup.probes.clone();
            let prepare = move || Panel::prepare(&probes, Subject::Processes, purpose);
            let assignment = Assignment {
                servers: vec![setup.named(&address)],
                allow_remote: setup.launch.info.allows_remote(),
                ..setup.load.clone()
            };
            let cpus = setup.client_cpus;
            let started = Process::start_load(setup.program, &assignment, cpus, prepare);
            let (load, mut panel) = started.or_else(|error| cannot(&error))?;
            panel.attach(target(load.pid()));
            Ok((Loading::Here(load), panel))
        }
        Origin::Cluster(cluster) => {
            // The hosts have their own probes. Values for all clients together are added here.
            let mut panel = Panel::prepare(&[], Subject::Processes, purpose);
            panel.attach(target(std::process::id()));
            let names: Vec<String> = setup
                .probes
                .iter()
                .map(|kind| kind.info.name.to_owned())
                .collect();
            let leader = rustix::system::uname();
            let load = cluster::WholeLoad {
                load: &setup.load.load,
                figures_every: setup.load.figures_every,
                server: address,
                probes: &names,
                purpose,
                cpus: setup.client_cpus,
                leader: &leader.nodename().to_string_lossy(),
            };
            let orders = cluster::divide(&load, cluster.hosts());
            let keeps_rows = orders.iter().all(|order| order.rows);
            let rows = setup.load.clients_csv.as_deref().filter(|_| keeps_rows);
            let gathering = Gathering::start(cluster.as_mut(), &orders, rows)
                .or_else(|error| cannot(&error))?;
            Ok((Loading::Cluster(Box::new(gathering)), panel))
        }
    }
}

fn cannot<T>(error: &anyhow::Error) -> Stage<T> {
    failed(FailedStage::Load, format!("{error:#}"), String::new())
}

impl Result {
    /// Undoes all preparations, even after a failure, and stores how the trial ended.
    pub(crate) fn set_end(&mut self, setup: &Setup<'_>, ended: Stage<()>, audience: &Audience<'_>) {
        match ended.and(setup.launch.conclude()) {
            Ok(()) => {}
            // A service manager, for example, may have stopped servers and loads together with throng; they did not
            // fail then.
            Err(Halt::Failed(_)) if audience.stop.requested() => self.interrupted = true,
            // Values of a failed load would look valid.
            Err(Halt::Failed(failure)) if setup.purpose.seeks_limit() => {
                // In a search a failure is a result, and the probes show its cause.
                self.failure = Some(failure);
                self.load = None;
            }
            Err(Halt::Failed(failure)) => self.fail(failure),
            Err(Halt::Interrupted) => self.interrupted = true,
        }
        self.fail_for_survivors();
    }

    /// Discards all values.
    fn fail(&mut self, failure: Failure) {
        *self = Self {
            failure: Some(failure),
            messages: std::mem::take(&mut self.messages),
            hosts: std::mem::take(&mut self.hosts),
            host_lost: self.host_lost,
            ..Self::default()
        }
    }

    /// Fails if a process of the trial could not be ended. An interrupted run reports that at its end.
    pub(crate) fn fail_for_survivors(&mut self) {
        if self.interrupted {
            return;
        }
        match (ending::take_survivors(), &mut self.failure) {
            (None, _) => {}
            (Some(survivors), Some(failure)) => failure.reason += &format!("; {survivors}"),
            (Some(reason), None) => self.fail(Failure {
                stage: FailedStage::Stop,
                reason,
                output: String::new(),
                signal: None,
            }),
        }
    }

    /// Stores the counts that a built-in server prints last.
    fn note_counts(&mut self, launch: &Launch<'_>, process: &mut Process) -> Stage<()> {
        let deadline = Instant::now() + STOP_LIMIT;
        while let Ok(line) = process.line(deadline) {
            let counts = serde_json::from_str(&line).ok();
            self.server_counts = counts.or(self.server_counts.take());
        }
        if process.reap().is_some_and(|status| !status.success()) {
            return failed(FailedStage::Stop, launch.ending(process), process.output());
        }
        Ok(())
    }

    /// Stores the outcome of each host's part of the load.
    fn note_hosts(&mut self, load: Loading<'_>) {
        if let Loading::Cluster(parts) = load {
            (self.hosts, self.start_skew, self.host_lost) = parts.into_record();
        }
    }

    /// Stores the samples of the panels of the server, the clients and the network.
    fn take(&mut self, panels: [Panel; 3]) {
        let sides = [
            ("server", &mut self.server_side),
            ("client", &mut self.client_side),
            ("network", &mut self.network),
        ];
        for (panel, (name, side)) in panels.into_iter().zip(sides) {
            let (figures, samples) = panel.finish();
            *side = figures.if_any();
            let named = samples.into_iter().map(|(at, sample)| (name, at, sample));
            self.samples.extend(named);
        }
    }
}

/// Writes a time series.
pub(crate) fn write_samples(
    path: &Path,
    samples: &[(&'static str, f64, Sample)],
) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = Draft::named(path)?;
    writeln!(file, "at_s,side,metric,value")?;
    for (side, at, sample) in samples {
        writeln!(file, "{at:.4},{side},{},{}", sample.metric, sample.value)?;
    }
    file.finish()
}
