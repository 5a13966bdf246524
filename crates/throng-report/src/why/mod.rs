//! Why two servers differ: the parts of their CPU time, their system calls, and what their threads wait for, per
//! request, from the turns in which they were watched; and what holds the memory of their clients.
//!
//! Turns of both servers in the same round are pairs. Each difference is a mean over rounds, so the parts add up, and
//! only those count as shown whose interval excludes 0. A part of the CPU time is its share of the samples of a turn,
//! times the server's CPU time per request in the timed slices: watching costs time in all parts alike, and a machine
//! that is slow in a turn is slow in all of them.

mod memory;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::comparison::{Comparison, Pair};
use memory::Memory;
use throng_record::profile::{Function, Part, Profile, Turn, Watched};
use throng_record::{MemoryPart, Trial};
use throng_spec::registry::Unsupported;
use throng_stats::{Interval, differences, median};

/// Level of the intervals of all parts together.
const LEVEL: f64 = 0.99;
/// A part that is a smaller share of the CPU time of both servers is not tested.
const LEAST_SHARE: f64 = 0.01;
/// A difference of a part counts only if it is this share of the CPU time of the server that needs more.
const LEAST_DIFFERENCE: f64 = 0.02;
/// A call that both make less often per request is not tested.
const LEAST_CALLS: f64 = 0.01;
/// A wait counts as a cause only from this share of the mean time of a request on.
const LEAST_WAIT: f64 = 0.05;

/// Why a server differs from the one that it is compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Number of clients.
    pub clients: u32,
    pub server: String,
    pub reference: String,
    /// In words.
    pub sentences: Vec<String>,
    /// CPU time per request of the timed slices, in microseconds; if it is unknown, of the turns that were watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuTime>,
    /// The CPU time per request of the watched turns over that of the timed slices, of the reference and the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watching: Option<[f64; 2]>,
    /// The difference of the CPU time per request, in microseconds, by the ratio of the timed slices, if that shows one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_us: Option<f64>,
    /// Its parts, in microseconds per request, the largest difference first.
    pub parts: Vec<Difference>,
    /// The functions of the programs themselves, in microseconds per request, the largest difference first.
    pub functions: Vec<Difference>,
    /// The same of the program's own functions, each with what it calls in libraries.
    pub own_functions: Vec<Difference>,
    /// The difference of all parts that are not tested, in microseconds per request.
    pub other_parts_us: f64,
    /// What the medians of the timed slices say beyond their ratio by rounds, in microseconds per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained_us: Option<f64>,
    /// System calls per request, the largest difference first.
    pub calls: Vec<Difference>,
    /// Context switches and page faults per request.
    pub events: Vec<Difference>,
    /// How long threads slept in each call, and waited for a CPU, in microseconds per request.
    pub waits: Vec<Difference>,
    /// The mean number of threads of the reference and of the server, by what they do.
    pub threads: [BTreeMap<String, f64>; 2],
    /// What holds the memory of their clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// What could not be seen, and why.
    pub missing: BTreeMap<Watched, Unsupported>,
    /// Servers with much CPU time in functions that have no name: its share.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unnamed: BTreeMap<String, f64>,
}

/// A larger share of samples without a name is worth a warning.
const MOST_UNNAMED: f64 = 0.1;

/// The CPU time per request of both servers, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuTime {
    pub reference: f64,
    pub server: f64,
}

impl CpuTime {
    /// How much more the server needs.
    pub fn difference(self) -> f64 {
        self.server - self.reference
    }
}

/// A value of both servers, per request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// What it is.
    #[serde(skip)]
    pub of: Of,
    pub name: String,
    /// The reference's mean.
    pub reference: f64,
    /// The server's mean.
    pub server: f64,
    /// Server minus reference.
    pub difference: Span,
    /// Whether the interval excludes 0, and the difference is large enough to matter.
    pub is_shown: bool,
}

/// A difference with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Span {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// What a difference is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Of {
    /// The programs themselves.
    OwnCode,
    /// A part of the time in the kernel.
    Kernel(Part),
    /// A function of a program.
    Function(Function),
    /// A system call.
    Call(String),
    /// Threads that went to sleep.
    VoluntarySwitches,
    /// Threads that another one displaced.
    InvoluntarySwitches,
    PageFaults,
    /// Time asleep in a system call.
    Asleep(String),
    /// Time ready to run, without a CPU.
    WaitingForCpu,
    /// Memory of a client.
    Memory(MemoryPart),
}

/// Values per request of a turn.
type Values = BTreeMap<Of, f64>;

impl Why {
    /// Why the servers of a run differ from their reference, for each pair whose servers were watched.
    pub(crate) fn all(trials: &[Trial], comparison: &Comparison) -> Vec<Self> {
        let pairs = comparison.pairs.iter();
        pairs.filter_map(|pair| Self::of(trials, pair)).collect()
    }

    fn of(trials: &[Trial], pair: &Pair) -> Option<Self> {
        let of_server = |server: &str| {
            let is_it = |trial: &&Trial| trial.server == server && trial.clients == pair.clients;
            trials.iter().filter(is_it).collect::<Vec<&Trial>>()
        };
        let trials_of_both = [of_server(&pair.reference), of_server(&pair.server)];
        let both = [watched(&trials_of_both[0])?, watched(&trials_of_both[1])?];
        // Servers that are not comparable have only the cost of the turns that were watched.
        let by = pair
            .by("server_cpu_us_per_request")
            .filter(|by| by.ratio.is_some());
        let watched_us = both.map(median_cpu);
        let timed = by.and_then(|by| Some([by.reference?, by.value?]));
        // Only a difference that is shown is divided: otherwise both have the same cost, and noise is no cause.
        let ratio = by
            .filter(|by| by.verdict.is_difference())
            .and_then(|by| by.ratio);
        let scaled = timed.map(|[reference, _]| {
            let factor = ratio.map_or(1.0, |ratio| ratio.value);
            [reference, reference * factor]
        });
        let costs = scaled.map_or(watched_us, |scaled| scaled.map(Some));
        // Without samples there is nothing to divide.
        let [of_reference, server_cost] =
            [0, 1].map(|side| costs[side].filter(|_| watched_us[side].is_some()));
        let cpu = of_reference
            .zip(server_cost)
            .map(|(reference, server)| CpuTime { reference, server });
        let cpu_us = cpu.map_or([0.0; 2], |cpu| [cpu.reference, cpu.server]);
        let sides = [(both[0], cpu_us[0]), (both[1], cpu_us[1])];
        let [
            mut parts,
            mut functions,
            mut own_functions,
            calls,
            events,
            waits,
        ] = [parts, functions, own_functions, calls, events, waits]
            .map(|values| compared(&sides, values));
        let error = ratio.and_then(|ratio| Some((ratio.high? - ratio.low?) / 2.0 / ratio.value));
        let of_cpu = [&mut parts, &mut functions, &mut own_functions];
        for part in of_cpu.into_iter().flatten() {
            part.widen(error.unwrap_or_default());
        }
        let whole = cpu.map_or(0.0, |cpu| cpu.reference.max(cpu.server));
        let large = |all| large_enough(all, LEAST_SHARE * whole, LEAST_DIFFERENCE * whole);
        let mut why = Self {
            clients: pair.clients,
            server: pair.server.clone(),
            reference: pair.reference.clone(),
            sentences: Vec::new(),
            other_parts_us: 0.0,
            unexplained_us: None,
            timed_us: cpu.filter(|_| ratio.is_some()).map(CpuTime::difference),
            parts: large(parts),
            functions: large(functions),
            own_functions: large(own_functions),
            calls: large_enough(calls, LEAST_CALLS, LEAST_CALLS),
            events: large_enough(events, LEAST_CALLS, LEAST_CALLS),
            waits: large_enough(waits, 0.0, LEAST_WAIT * time_of_request(&both)),
            threads: both.map(threads),
            memory: Memory::of(&trials_of_both),
            missing: missing(&both),
            unnamed: unnamed(pair, &both),
            watching: watching(watched_us, timed),
            cpu,
        };
        if let Some(total) = why.cpu {
            let tested: f64 = why.parts.iter().map(|part| part.difference.value).sum();
            why.other_parts_us = total.difference() - tested;
            why.unexplained_us =
                timed.map(|[reference, server]| server - reference - total.difference());
        }
        why.sentences = words::sentences(&why);
        Some(why)
    }

    /// The difference of a call per request, if any server makes it.
    fn call(&self, name: &str) -> Option<&Difference> {
        let mut calls = self.calls.iter();
        calls.find(|call| matches!(&call.of, Of::Call(found) if found == name))
    }
}

/// What was seen of a server: side by side, in the timed trial; otherwise, in one that counts events.
fn watched<'a>(trials: &[&'a Trial]) -> Option<&'a Profile> {
    trials.iter().find_map(|trial| trial.profile.as_ref())
}

/// The mean time of a request of either server, in microseconds: the shorter one.
fn time_of_request(both: &[&Profile; 2]) -> f64 {
    let mean = |profile: &&Profile| {
        let turns = profile.turns.iter().filter(|turn| turn.replies > 0);
        let sums = turns.fold((0.0, 0.0), |(took, replies), turn| {
            (
                took + turn.took_ns as f64 / 1e3,
                replies + turn.replies as f64,
            )
        });
        sums.0 / sums.1
    };
    both.iter().map(mean).fold(f64::INFINITY, f64::min)
}

/// The state of threads that sleep and have no part in requests.
pub(crate) const IDLE: &str = "idle";

/// The mean number of threads of a server in its turns, by what they do.
fn threads(profile: &Profile) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    let mut took_ns = 0.0;
    let looked = |turn: &&Turn| !turn.asleep.is_empty() || turn.idle > 0.0;
    for turn in profile.turns.iter().filter(looked) {
        took_ns += turn.took_ns as f64;
        let waited_ns = turn.events.and_then(|events| events.waited_for_cpu_ns);
        let times = [
            ("running", turn.server_cpu_ns),
            ("waiting for a CPU", waited_ns),
        ];
        let known = times
            .into_iter()
            .filter_map(|(state, time)| Some((state, time? as f64)));
        let by_call = turn.asleep.iter();
        let idle = (turn.idle > 0.0).then_some((IDLE, turn.idle));
        let slept = by_call
            .map(|(call, threads)| (call.as_str(), *threads))
            .chain(idle)
            .map(|(state, threads)| (state, threads * turn.took_ns as f64));
        for (state, time_ns) in known.chain(slept) {
            *sums.entry(state.to_owned()).or_default() += time_ns;
        }
    }
    for time in sums.values_mut() {
        *time /= took_ns;
    }
    sums
}

/// What watching costs, if both are known.
fn watching(watched: [Option<f64>; 2], timed: Option<[f64; 2]>) -> Option<[f64; 2]> {
    let [of_reference, of_server] = timed?;
    Some([watched[0]? / of_reference, watched[1]? / of_server])
}

/// What could not be seen of either server.
fn missing(both: &[&Profile; 2]) -> BTreeMap<Watched, Unsupported> {
    let all = both.iter().flat_map(|profile| &profile.unavailable);
    all.map(|(what, why)| (*what, why.clone())).collect()
}

/// The servers with many samples without a name.
fn unnamed(pair: &Pair, both: &[&Profile; 2]) -> BTreeMap<String, f64> {
    let each = [&pair.reference, &pair.server].into_iter().zip(both);
    let shares = each.filter_map(|(name, profile)| Some((name.clone(), profile.unnamed_share?)));
    shares.filter(|(_, share)| *share > MOST_UNNAMED).collect()
}

/// All values that either server has in a family, as differences; those that a turn lacks are 0 in it. Each side has its
/// CPU time per request.
fn compared(
    sides: &[(&Profile, f64); 2],
    values: fn(&Turn, f64) -> Option<Values>,
) -> Vec<Difference> {
    let by_round = |(profile, cost): (&Profile, f64)| -> BTreeMap<u32, Values> {
        let turns = profile.turns.iter().filter(|turn| turn.replies > 0);
        turns
            .filter_map(|turn| Some((turn.round, values(turn, cost)?)))
            .collect()
    };
    let [reference, server] = sides.map(by_round);
    let rounds: Vec<(&Values, &Values)> = reference
        .iter()
        .filter_map(|(round, then)| Some((then, server.get(round)?)))
        .collect();
    let all: BTreeSet<&Of> = rounds
        .iter()
        .flat_map(|(then, now)| then.keys().chain(now.keys()))
        .collect();
    let of_pair = |of: &Of, (then, now): &(&Values, &Values)| {
        let value = |all_values: &Values| all_values.get(of).copied().unwrap_or_default();
        (value(then), value(now))
    };
    let pairs: Vec<Vec<(f64, f64)>> = all
        .iter()
        .map(|of| rounds.iter().map(|round| of_pair(of, round)).collect())
        .collect();
    let tested = differences(&pairs, LEVEL);
    let made = all.iter().zip(&pairs).zip(tested);
    made.filter_map(|((of, of_turns), difference)| Some(Difference::of(of, of_turns, difference?)))
        .collect()
}

impl Difference {
    /// Adds the error of the ratio by which the server's values are scaled, as a share.
    fn widen(&mut self, error: f64) {
        let more = error * self.server;
        self.difference.low -= more;
        self.difference.high += more;
        self.is_shown = self.difference.low > 0.0 || self.difference.high < 0.0;
    }

    fn of(of: &Of, pairs: &[(f64, f64)], difference: Interval) -> Self {
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        Self {
            name: words::name(of),
            of: of.clone(),
            reference: mean(pairs.iter().map(|(then, _)| *then).collect()),
            server: mean(pairs.iter().map(|(_, now)| *now).collect()),
            difference: Span {
                value: difference.estimate,
                low: difference.low,
                high: difference.high,
            },
            is_shown: difference.low > 0.0 || difference.high < 0.0,
        }
    }
}

/// Those that are at least `least` for one of the servers, the largest difference first. A difference below `matters` is
/// not shown.
fn large_enough(all: Vec<Difference>, least: f64, matters: f64) -> Vec<Difference> {
    let mut kept: Vec<Difference> = all
        .into_iter()
        .filter(|one| one.reference.abs().max(one.server.abs()) >= least)
        .map(|one| Difference {
            is_shown: one.is_shown && one.difference.value.abs() >= matters,
            ..one
        })
        .collect();
    let size = |one: &Difference| one.difference.value.abs();
    kept.sort_by(|one, other| size(other).total_cmp(&size(one)));
    kept
}

/// The median CPU time per request of turns with samples, in microseconds.
fn median_cpu(profile: &Profile) -> Option<f64> {
    let sampled = profile.turns.iter().filter(|turn| !turn.samples.is_empty());
    let each = sampled.filter(|turn| turn.replies > 0).filter_map(|turn| {
        let used_us = turn.server_cpu_ns? as f64 / 1e3;
        Some(used_us / turn.replies as f64)
    });
    median(&each.collect::<Vec<_>>())
}

/// The parts of the CPU time in microseconds per request; `None` for a turn without samples.
fn parts(turn: &Turn, cost: f64) -> Option<Values> {
    let each = per_sample(turn, cost)?;
    let mut values = Values::new();
    for samples in &turn.samples {
        let of = match &samples.part {
            Part::User(_) => Of::OwnCode,
            part => Of::Kernel(part.clone()),
        };
        *values.entry(of).or_default() += each * f64::from(samples.count);
    }
    Some(values)
}

fn functions(turn: &Turn, cost: f64) -> Option<Values> {
    let each = per_sample(turn, cost)?;
    let of_program = turn
        .samples
        .iter()
        .filter_map(|samples| match &samples.part {
            Part::User(function) => Some((
                Of::Function(function.clone()),
                each * f64::from(samples.count),
            )),
            _ => None,
        });
    Some(of_program.collect())
}

/// The program's own functions, each with all that it calls in libraries.
fn own_functions(turn: &Turn, cost: f64) -> Option<Values> {
    let mut values = Values::new();
    for (of, time) in functions(turn, cost)? {
        if let Of::Function(Function { name, caller }) = of {
            let own = Function {
                name: caller.unwrap_or(name),
                caller: None,
            };
            *values.entry(Of::Function(own)).or_default() += time;
        }
    }
    Some(values)
}

/// The microseconds of CPU time per request that a sample stands for.
fn per_sample(turn: &Turn, cost: f64) -> Option<f64> {
    let samples: u32 = turn.samples.iter().map(|part| part.count).sum();
    (samples > 0).then(|| cost / f64::from(samples))
}

fn calls(turn: &Turn, _: f64) -> Option<Values> {
    let calls = turn.calls.as_ref()?.iter();
    let each =
        calls.map(|(name, count)| (Of::Call(name.clone()), *count as f64 / turn.replies as f64));
    Some(each.collect())
}

fn events(turn: &Turn, _: f64) -> Option<Values> {
    let events = turn.events?;
    let each = [
        (Of::VoluntarySwitches, events.voluntary_switches),
        (Of::InvoluntarySwitches, events.involuntary_switches),
        (Of::PageFaults, events.page_faults),
    ];
    let per_request = |(of, count)| (of, count as f64 / turn.replies as f64);
    Some(each.map(per_request).into_iter().collect())
}

fn waits(turn: &Turn, _: f64) -> Option<Values> {
    let per_request = 1e-3 / turn.replies as f64;
    let mut values: Values = turn
        .asleep
        .iter()
        .map(|(call, threads)| {
            let slept = threads * turn.took_ns as f64 * per_request;
            (Of::Asleep(call.clone()), slept)
        })
        .collect();
    let waited = turn.events?.waited_for_cpu_ns;
    values.extend(waited.map(|waited| (Of::WaitingForCpu, waited as f64 * per_request)));
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{own, profile, system_call as call};
    use crate::{Logs, Report, fixture};

    fn why(reference: Profile, server: Profile) -> Why {
        let (run, trials) = fixture::watched(reference, server);
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        report.why.into_iter().next().unwrap()
    }

    #[test]
    fn the_same_server_differs_in_nothing() {
        let parts_of = [(own("a"), 300), (call("sendto"), 700)];
        let same = profile(10, &parts_of, &[("sendto", 1000)], &[("futex", 1.0)]);
        for values in [parts, functions, own_functions, calls, events, waits] {
            let found = compared(&[(&same, 10.0), (&same, 10.0)], values);
            assert!(
                !found.is_empty() && found.iter().all(|one| !one.is_shown),
                "{found:?}"
            );
        }
    }

    #[test]
    fn parts_add_up_to_the_timed_cost_and_a_slow_turn_is_slow_in_all_of_them() {
        let then = profile(10, &[(own("a"), 300), (call("sendto"), 700)], &[], &[]);
        let now = [(own("a"), 300), (own("spin"), 1000), (call("sendto"), 700)];
        let found = why(then, profile(20, &now, &[], &[]));
        let cpu = found.cpu.unwrap();
        let parts: f64 = found.parts.iter().map(|part| part.difference.value).sum();
        assert!(
            (parts + found.other_parts_us - cpu.difference()).abs() < 1e-9,
            "{found:?}"
        );
        let spin = &found.functions[0];
        assert_eq!(spin.name, "spin");
        assert!(
            (spin.difference.value / cpu.server - 0.5).abs() < 0.02,
            "half of the samples: {found:?}"
        );
        assert!(found.watching.is_some(), "{found:?}");
        let text = found.sentences.join(" ");
        assert!(
            text.contains("more in its own code (") && text.contains(" in spin)"),
            "{text}"
        );
    }

    /// An allocation is spread over functions of a library, which have one caller.
    #[test]
    fn what_a_function_calls_in_libraries_counts_with_it() {
        let called = |name: &str| {
            Part::User(Function {
                name: name.to_owned(),
                caller: Some("allocate".to_owned()),
            })
        };
        let then = profile(10, &[(call("sendto"), 700)], &[], &[]);
        let now = [
            (call("sendto"), 300),
            (called("malloc"), 300),
            (called("free"), 300),
            (own("allocate"), 300),
        ];
        let text = why(then, profile(20, &now, &[], &[])).sentences.join(" ");
        assert!(text.contains(" in allocate and what it calls)"), "{text}");
    }

    #[test]
    fn a_call_and_a_sleep_are_named_with_their_numbers() {
        let then = profile(
            10,
            &[(call("sendto"), 700)],
            &[("sendto", 1000)],
            &[("futex", 3.0)],
        );
        let calls = [("sendto", 1000), ("nanosleep", 1000), ("getppid", 4000)];
        let asleep = [("futex", 5.0), ("nanosleep", 0.5)];
        let now = profile(10, &[(call("sendto"), 700)], &calls, &asleep);
        let found = why(then, now);
        let text = found.sentences.join(" ");
        assert!(
            text.contains(
                "sleep 50.0 µs more in nanosleep() (1.00 call per request instead of none)"
            ),
            "{text}"
        );
        assert!(text.contains("call getppid() 4.00 times more"), "{text}");
        assert!(!text.contains("futex"), "idle threads wait too: {text}");
    }

    #[test]
    fn idle_threads_are_a_state_and_no_wait_of_a_request() {
        let asleep = [("epoll_wait", 1.0)];
        let same = || profile(10, &[(own("a"), 300)], &[("sendto", 1000)], &asleep);
        let mut crowded = same();
        for turn in &mut crowded.turns {
            turn.idle = 4.0;
        }
        let found = why(same(), crowded);
        assert_eq!(found.threads[0].get(IDLE), None);
        assert!(
            (found.threads[1][IDLE] - 4.0).abs() < 1e-9,
            "{:?}",
            found.threads
        );
        assert!(
            found.waits.iter().all(|wait| !wait.is_shown),
            "{:?}",
            found.waits
        );
    }

    #[test]
    fn what_was_not_seen_is_missing_with_its_reason() {
        let mut blind = profile(10, &[], &[("sendto", 1000)], &[]);
        let unsupported = Unsupported {
            reason: "not permitted".to_owned(),
            remedy: "be root".to_owned(),
        };
        blind
            .unavailable
            .insert(Watched::Stacks, unsupported.clone());
        let found = why(blind.clone(), blind);
        assert_eq!(found.cpu, None);
        assert_eq!(
            found.missing,
            BTreeMap::from([(Watched::Stacks, unsupported)])
        );
        assert!(found.sentences.is_empty(), "{found:?}");
    }
}
