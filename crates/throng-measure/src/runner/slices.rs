//! Servers under test side by side. Each has all its clients connected, and the clients of only one server send
//! requests at a time, for a slice of some milliseconds. The order within a round is random.
//!
//! Separate trials of a second are seconds apart, and on a shared machine they differ by 10 to 25 %. Slices of one
//! round are milliseconds apart, so disturbances affect all of them equally and cancel in their ratio.

mod ratios;
mod server_cpu;

use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::main_thread;
use super::observer::Audience;
use super::others::{Meter, OtherCpu};
use super::trial::{self, Live, Setup};
use crate::cluster::{LoadNews, Origin};
use crate::profile::{self, Watch};
use crate::stage::{Halt, Stage, failed};
use ratios::{WarmUps, are_precise, so_far};
use server_cpu::ServerCpu;
use throng_record::load_event::{NextSlice, SliceStats};
use throng_record::{FailedStage, Phase, Slice, WarmUp, Why};
use throng_stats::steadiness::Level;
use throng_sys::clock::process_cpu_time;
use throng_sys::signal::Stop;

/// The slices of servers side by side.
pub(crate) struct Plan {
    /// Length of a slice; `None` for as long as the servers need.
    pub(crate) length: Option<Duration>,
    /// Number of rounds; `None` to continue until the ratios are precise.
    pub(crate) rounds: Option<u32>,
    /// Time for all rounds.
    pub(crate) budget: Duration,
    /// Time limit for the warm-up of a server.
    pub(crate) warm_up_limit: Duration,
    /// A ratio is precise if its confidence interval has this half-width or less.
    pub(crate) half_width: f64,
    /// Whether the servers are also watched.
    pub(crate) why: Why,
    /// Index of the server that the others are compared with.
    pub(crate) reference: usize,
    pub(crate) seed: u64,
    /// Whether to measure the other servers if one does not start or does not answer properly.
    pub(crate) keep_going: bool,
}

/// A server to measure.
pub(crate) struct Member<'a> {
    pub(crate) setup: &'a Setup<'a>,
    /// Whether it only checks the others, and so runs in some rounds only.
    pub(crate) checks: bool,
}

/// The result of one server.
pub(crate) struct ServerSlices {
    pub(crate) result: trial::Result,
    pub(crate) slices: Vec<Slice>,
}

/// A server that only checks the others runs in the first `CONTROL_ROUNDS` of every `ROUNDS_PER_CONTROL` rounds: with two
/// other servers it takes an eleventh of the time. Its rounds are consecutive, so that it rests between them for as
/// long as the others do: a server that has rested for longer behaves differently. Its first slice after a long rest
/// does not count. Consecutive rounds share disturbances, and short bursts show more than a few long ones.
const ROUNDS_PER_CONTROL: u32 = 15;
const CONTROL_ROUNDS: u32 = 3;
/// Number of rounds between two checks whether the ratios are precise.
const ROUNDS_PER_CHECK: u32 = 10;
/// Time between two readings of processes and memory.
const TICK: Duration = Duration::from_secs(1);
/// Minimum time between two such readings, as a multiple of the time that one takes.
const SAMPLES_SHARE: u32 = 10;
/// Maximum time from the end of a slice until its last reply; longer than the load waits for it.
const SLACK: Duration = Duration::from_secs(10);
/// This many consecutive slices without a reply are a failure; fewer may be chance.
const MOST_EMPTY: u32 = 20;
/// Bounds of the automatic slice length, and the replies that a slice should have.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_millis(100);
const REPLIES_PER_CLIENT: u32 = 2;
const FEWEST_REPLIES: u32 = 100;
/// Shortest slice during the warm-up.
const SHORTEST_WARM_UP: Duration = Duration::from_millis(32);
/// How long the CPU use of a server at rest is watched, and the share of a CPU above which the server is stopped
/// during the slices of the others.
const WATCHED_AT_REST: Duration = Duration::from_millis(30);
const BUSY_AT_REST: f64 = 0.05;

/// Measures all members side by side. A failure of one is part of its result, and the others continue.
pub(crate) fn run(
    plan: &Plan,
    members: &[Member<'_>],
    audience: &mut Audience<'_>,
) -> (Vec<ServerSlices>, Option<OtherCpu>) {
    let mut origins: Vec<Origin> = members.iter().map(|_| Origin::Here).collect();
    let mut visited: Vec<Stage<SlicedServer<'_>>> = Vec::new();
    let mut warm_ups = WarmUps::begin(plan, members, audience);
    for (member, origin) in members.iter().zip(&mut origins) {
        let is_over = audience.stop.requested() || is_ended(plan, &visited);
        visited.push(if is_over {
            Err(Halt::Interrupted)
        } else {
            SlicedServer::begin(plan, member, origin, &mut warm_ups, audience)
        });
    }
    let mut others = None;
    let is_whole = !audience.stop.requested() && !is_ended(plan, &visited);
    if is_whole && visited.iter().any(Result::is_ok) {
        let of_all = |stages: &[Stage<SlicedServer<'_>>]| -> Duration {
            stages.iter().flatten().map(SlicedServer::cpu_of_both).sum()
        };
        if !plan.why.is_off() {
            have_watched_turns(plan, &mut visited, audience);
        }
        let (meter, before) = (Meter::start(), of_all(&visited));
        have_rounds(plan, &mut visited, audience);
        let measured = of_all(&visited).saturating_sub(before);
        others = meter.and_then(|meter| meter.others(measured));
    }
    let mut ended: Vec<ServerSlices> = members
        .iter()
        .zip(visited)
        .map(|(member, visited)| match visited {
            Ok(visited) => {
                let mut seen = visited.end(audience);
                seen.result.interrupted |= !is_whole;
                seen
            }
            Err(halt) => {
                let mut result = trial::Result::default();
                result.set_end(member.setup, Err(halt), audience);
                ServerSlices {
                    result,
                    slices: Vec::new(),
                }
            }
        })
        .collect();
    trial::end_orphans();
    // Whose they are is unknown by now: that of the first server that is not interrupted.
    for server in &mut ended {
        server.result.fail_for_survivors();
    }
    (ended, others)
}

/// Whether measuring ends because a server did not start or did not answer properly.
fn is_ended(plan: &Plan, visited: &[Stage<SlicedServer<'_>>]) -> bool {
    let mut halts = visited.iter().filter_map(|seen| seen.as_ref().err());
    !plan.keep_going && halts.any(Halt::is_of_the_beginning)
}

/// Visits the servers round by round, until the plan or a signal ends this, or all servers have failed.
fn have_rounds(plan: &Plan, visited: &mut [Stage<SlicedServer<'_>>], audience: &mut Audience<'_>) {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let began = Instant::now();
    let mut look_at = began + TICK;
    let length = plan.length.unwrap_or_else(|| length(visited));
    for round in 0.. {
        let mut order: Vec<usize> = (0..visited.len()).collect();
        random.shuffle(&mut order);
        let draw = random.usize(..);
        for place in order {
            let Ok(server) = &mut visited[place] else {
                continue;
            };
            if server.checks && round % ROUNDS_PER_CONTROL >= CONTROL_ROUNDS {
                continue;
            }
            server.move_to(draw);
            let counts = !server.checks || round % ROUNDS_PER_CONTROL > 0;
            if let Err(halt) = server.visit(length, round, counts) {
                visited[place] = Err(halt);
            }
        }
        let now = Instant::now();
        if now >= look_at {
            audience
                .observer
                .on_side_by_side(&so_far(plan, visited, round + 1));
            for server in visited.iter_mut() {
                if let Ok(seen) = server
                    && let Err(halt) = seen.sample()
                {
                    *server = Err(halt);
                }
            }
            look_at = Instant::now() + TICK.max(SAMPLES_SHARE * now.elapsed());
        }
        let rounds = round + 1;
        let over = match plan.rounds {
            Some(wanted) => rounds >= wanted,
            None => {
                began.elapsed() >= plan.budget
                    || rounds % ROUNDS_PER_CHECK == 0 && are_precise(plan, visited)
            }
        };
        let all_failed = visited.iter().all(Result::is_err);
        if over || all_failed || audience.stop.requested() {
            return;
        }
    }
}

/// The length of a turn of all servers together, so that watching takes some seconds, and the bounds of that of each.
const TURN_OF_ALL: Duration = Duration::from_millis(320);
const SHORTEST_TURN: Duration = Duration::from_millis(20);
const LONGEST_TURN: Duration = Duration::from_millis(100);

fn length_of_turn(servers: u32) -> Duration {
    let each = TURN_OF_ALL / servers.max(1);
    each.clamp(SHORTEST_TURN, LONGEST_TURN)
}

/// How long watching this many servers takes.
pub(crate) fn time_of_watching(why: Why, servers: u32) -> Duration {
    let turns: u32 = profile::turns(why).iter().map(|(_, turns)| turns).sum();
    length_of_turn(servers) * turns * servers
}

/// Watches the servers in turns before the timed rounds. To the load these are slices of warm-up, which it does not
/// count.
fn have_watched_turns(
    plan: &Plan,
    visited: &mut [Stage<SlicedServer<'_>>],
    audience: &Audience<'_>,
) {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let is_watched = |server: &&SlicedServer<'_>| !server.checks;
    let servers = visited.iter().flatten().filter(is_watched).count() as u32;
    let length = length_of_turn(servers);
    let mut cpus: Vec<u32> = Vec::new();
    for server in visited.iter().flatten() {
        cpus.extend(server.live.cpus());
    }
    cpus.sort_unstable();
    cpus.dedup();
    for (open, turns) in profile::turns(plan.why) {
        let mut watch = open(&cpus);
        for round in 0..turns {
            let mut order: Vec<usize> = (0..visited.len()).collect();
            random.shuffle(&mut order);
            for place in order {
                if audience.stop.requested() {
                    return;
                }
                if let Ok(server) = &mut visited[place]
                    && !server.checks
                    && let Err(halt) = server.have_watched(&mut watch, length, round)
                {
                    visited[place] = Err(halt);
                }
            }
        }
    }
    for server in visited.iter_mut().flatten() {
        server.live.name_stacks();
    }
}

/// The length of slices: the shortest in which at least half of the servers get enough replies. In a given time, many
/// short slices are more precise than a few long ones, since less changes from one to the next. One slow server among
/// many should not make all slices long. It still gets a reply for each of its clients, since a slice ends with the
/// last reply.
fn length(visited: &[Stage<SlicedServer<'_>>]) -> Duration {
    let enough = visited.iter().flatten().map(|server| {
        let load = &server.setup.load.load;
        // If many clients share a rate, each one rarely sends a request.
        let each = if load.rate.is_some() {
            0
        } else {
            REPLIES_PER_CLIENT
        };
        let replies = each.saturating_mul(load.clients).max(FEWEST_REPLIES);
        f64::from(replies) / server.replies_per_s
    });
    typical(enough.collect())
}

/// The time that is enough for at least half of the servers, within the bounds; for two servers, the longer one.
fn typical(mut needed_s: Vec<f64>) -> Duration {
    needed_s.sort_by(f64::total_cmp);
    let middle = needed_s.get(needed_s.len() / 2).copied();
    let (shortest, longest) = (SHORTEST.as_secs_f64(), LONGEST.as_secs_f64());
    // Not `clamp`: a server may have had no reply.
    Duration::from_secs_f64(middle.unwrap_or(shortest).max(shortest).min(longest))
}

/// A server with its clients, at rest except during its slices.
struct SlicedServer<'a> {
    setup: &'a Setup<'a>,
    live: Live<'a>,
    server_cpu: ServerCpu,
    /// The thread that does the server's work, if there is just one.
    main_thread: Option<Pid>,
    checks: bool,
    /// Whether it uses the CPU even at rest, and so is stopped between its slices.
    is_frozen: bool,
    slices: Vec<Slice>,
    warm_up: Option<WarmUp>,
    /// The rate at the end of the warm-up.
    replies_per_s: f64,
    /// Slices without a reply since the last one with replies.
    empty: u32,
}

impl<'a> SlicedServer<'a> {
    /// Starts a server and its load, and warms the server up.
    fn begin(
        plan: &Plan,
        member: &Member<'a>,
        origin: &'a mut Origin,
        warm_ups: &mut WarmUps,
        audience: &mut Audience<'_>,
    ) -> Stage<Self> {
        let mut live = Live::begin(member.setup, origin, audience.stop)?;
        if let Err(halt) = until_measured(&mut live, audience) {
            let mut result = trial::Result::default();
            live.end(Err(halt), &mut result)?;
            return Err(Halt::Interrupted);
        }
        let mut tree = live.server.tree();
        tree.refresh();
        let mut visited = Self {
            setup: member.setup,
            live,
            server_cpu: ServerCpu::of(tree),
            main_thread: None,
            checks: member.checks,
            is_frozen: false,
            slices: Vec::new(),
            warm_up: None,
            replies_per_s: 0.0,
            empty: 0,
        };
        let before = visited.server_cpu.used_at_rest();
        std::thread::sleep(WATCHED_AT_REST);
        let used = visited
            .server_cpu
            .used()
            .zip(before)
            .map(|(after, (before, _))| after.saturating_sub(before));
        // A server that throng did not start is neither stopped nor moved.
        let is_started = visited.live.server.is_started();
        if is_started && used.is_some_and(|used| used > WATCHED_AT_REST.mul_f64(BUSY_AT_REST)) {
            visited.is_frozen = true;
            visited.server_cpu.read_processes_only();
            visited.live.server.freeze(true)?;
        }
        visited.live.proceed()?;
        let stop = audience.stop;
        visited.warm_up(plan, |slice| warm_ups.see(member, slice, audience), stop)?;
        visited.main_thread =
            main_thread::of(visited.server_cpu.tree.pids()).filter(|_| is_started);
        Ok(visited)
    }

    /// Warms the server up, until its rate and its CPU time per request are level, but no longer than the limit.
    fn warm_up(&mut self, plan: &Plan, mut see: impl FnMut(&Slice), stop: Stop) -> Stage<()> {
        let (began, before) = (Instant::now(), self.setup.load.load.warm_up);
        let mut level = Level::default();
        // If slices are too short, many are needed.
        let length = plan.length.unwrap_or_default().max(SHORTEST_WARM_UP);
        loop {
            if let Some(slice) = self.have(length, true, 0)? {
                self.replies_per_s = slice.requests_per_s().unwrap_or_default();
                level.push([slice.requests_per_s(), slice.server_cpu_us_per_request()]);
                see(&slice);
            }
            let took = before + began.elapsed();
            if level.is_reached() || took >= plan.warm_up_limit || stop.requested() {
                self.warm_up = Some(WarmUp::ended(took.as_secs_f64(), &level));
                return Ok(());
            }
        }
    }

    /// CPU time that the server and its load have used until now.
    fn cpu_of_both(&self) -> Duration {
        let load = self
            .live
            .load
            .pid()
            .and_then(|pid| process_cpu_time(pid).ok());
        self.server_cpu.used().unwrap_or_default() + load.unwrap_or_default()
    }

    /// Moves the thread that does the work to one of the server's CPUs, the same one for all servers.
    fn move_to(&self, draw: usize) {
        let cpus = self.setup.launch.cpus;
        if let Some(thread) = self.main_thread
            && cpus.len() > 1
        {
            main_thread::move_to(thread, cpus[draw % cpus.len()]);
        }
    }

    /// Runs a slice of a round.
    fn visit(&mut self, length: Duration, round: u32, counts: bool) -> Stage<()> {
        let slice = self.have(length, false, round)?;
        self.slices.extend(slice.filter(|_| counts));
        Ok(())
    }

    /// Runs a slice that is not timed, while the server is watched.
    fn have_watched(&mut self, watch: &mut Watch, length: Duration, round: u32) -> Stage<()> {
        let mut watching = std::mem::take(&mut self.live.watching);
        let mut tree = self.server_cpu.tree.clone();
        let have = || self.have(length, true, round);
        let watched = watching.watch(watch, round, &mut tree, have);
        self.live.watching = watching;
        watched
    }

    /// Runs a slice; `None` if it had no reply.
    fn have(&mut self, length: Duration, warms_up: bool, round: u32) -> Stage<Option<Slice>> {
        let had = self.try_slice(length, warms_up, round);
        let server = &mut self.live.server;
        if matches!(had, Err(Halt::Failed(_))) && server.has_ended() {
            let how = trial::how_it_ended(&self.setup.launch, server);
            return failed(FailedStage::Serve, how, server.output());
        }
        had
    }

    fn try_slice(&mut self, length: Duration, warms_up: bool, round: u32) -> Stage<Option<Slice>> {
        if self.is_frozen {
            self.live.server.freeze(false)?;
        }
        let waited_before = self.server_cpu.waited();
        let before = self.server_cpu.used();
        self.live.load.begin_slice(NextSlice {
            length_ns: length.as_nanos() as u64,
            warms_up,
        });
        let seen = self.await_slice(Instant::now() + length + SLACK)?;
        let (after, late) = if self.is_frozen {
            let used = self.server_cpu.used();
            self.live.server.freeze(true)?;
            (used, None)
        } else {
            self.server_cpu.used_at_rest().unzip()
        };
        let readings = after.zip(before);
        if !seen.complete {
            return failed(
                FailedStage::Load,
                "requests of a slice were not answered in time",
                String::new(),
            );
        }
        if seen.replies > 0 {
            let used = readings.map(|(new, old)| new.saturating_sub(old));
            let waited = waited_before.zip(self.server_cpu.waited());
            self.empty = 0;
            return Ok(Some(Slice {
                server_cpu_wait_ns: waited.map(|(then, now)| now.saturating_sub(then)),
                ..slice(round, &seen, used, late)
            }));
        }
        // The slice is unusable if the clients did not run long enough.
        self.empty += 1;
        if self.empty < MOST_EMPTY {
            return Ok(None);
        }
        failed(
            FailedStage::Load,
            format!("no reply in {MOST_EMPTY} slices of {length:?}; use a longer --slice"),
            String::new(),
        )
    }

    fn await_slice(&mut self, deadline: Instant) -> Stage<SliceStats> {
        loop {
            match self.live.load.receive(deadline) {
                LoadNews::Slice(seen) => return Ok(seen),
                LoadNews::Failed { reason, output } => {
                    return failed(FailedStage::Load, reason, output);
                }
                LoadNews::Result(_) => {
                    return failed(FailedStage::Load, "the load ended by itself", String::new());
                }
                LoadNews::Late => {
                    let (reason, output) = self.live.load.overdue();
                    return failed(FailedStage::Load, reason, output);
                }
                LoadNews::Phase { .. } | LoadNews::Snapshot(_) | LoadNews::Nothing => {}
            }
        }
    }

    /// Takes a sample with the probes, between two slices.
    fn sample(&mut self) -> Stage<()> {
        if self.live.server.has_ended() {
            return failed(FailedStage::Serve, "the server ended", String::new());
        }
        self.server_cpu.tree.refresh();
        self.live.follower.sample(&mut self.live.panels);
        Ok(())
    }

    /// Lets the load close its connections, and ends both sides.
    fn end(mut self, audience: &mut Audience<'_>) -> ServerSlices {
        let thawed = if self.is_frozen {
            self.live.server.freeze(false)
        } else {
            Ok(())
        };
        let mut result = trial::Result::default();
        let watched = thawed.and_then(|()| self.live.finish());
        let ended = self.live.end(watched, &mut result);
        result.set_end(self.setup, ended, audience);
        if let Some(load) = &mut result.load {
            load.warm_up = self.warm_up;
        }
        ServerSlices {
            result,
            slices: self.slices,
        }
    }
}

/// Follows a load until it waits for its first slice.
fn until_measured(live: &mut Live<'_>, audience: &mut Audience<'_>) -> Stage<()> {
    loop {
        match live.step(audience)? {
            LoadNews::Phase {
                phase: Phase::Measure,
                ..
            } => return Ok(()),
            LoadNews::Phase {
                phase: Phase::Drain | Phase::Idle,
                ..
            }
            | LoadNews::Result(_) => {
                return failed(FailedStage::Load, "no client was served", String::new());
            }
            LoadNews::Phase { waits: true, .. } => live.proceed()?,
            _ => {}
        }
    }
}

fn slice(
    round: u32,
    seen: &SliceStats,
    server_cpu: Option<Duration>,
    late: Option<Duration>,
) -> Slice {
    let microseconds = |time: u64| time as f64 / 1e3;
    let nanoseconds = |time: Duration| time.as_nanos() as u64;
    Slice {
        round,
        took_ns: seen.took_ns,
        replies: seen.replies,
        server_cpu_ns: server_cpu.map(nanoseconds),
        server_cpu_late_ns: late.map(nanoseconds),
        client_cpu_ns: seen.cpu_ns,
        mean_us: seen.mean_ns / 1e3,
        p50_us: microseconds(seen.p50_ns),
        p90_us: microseconds(seen.p90_ns),
        p99_us: microseconds(seen.p99_ns),
        ..Slice::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_server_among_many_does_not_make_slices_long() {
        let length = |needed_s: &[f64]| typical(needed_s.to_vec());
        let ms = Duration::from_millis;
        assert_eq!(length(&[0.02, 0.015, 0.5, 0.02, 0.03]), ms(20));
        assert_eq!(
            length(&[0.02, 0.05]),
            ms(50),
            "of two the slower one decides"
        );
        assert_eq!(length(&[0.001, 0.002, 0.003]), SHORTEST);
        assert_eq!(length(&[f64::INFINITY, f64::INFINITY]), LONGEST);
        assert_eq!(
            length(&[f64::NAN]),
            SHORTEST,
            "0 replies wanted and none had"
        );
        assert_eq!(length(&[]), SHORTEST);
    }
}
