//! Where a server's CPU time goes, in turns in which nothing is timed: samples of its stacks, or its system calls by
//! name, and in which calls its threads sleep.
//!
//! Samples and passages are taken of whole CPUs, with one ring buffer each, whatever number of threads and processes
//! the server has; the reader keeps those of the server. So memory is bounded, and nothing needs to be opened before
//! the server starts.

mod asleep;
mod family;
mod parts;
mod symbols;
mod unwind;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::probes::syscalls::Tracepoints;
use crate::probes::{Tree, events, switches};
use asleep::Asleep;
use family::Family;
use parts::StackCounts;
use throng_record::profile::{Events, Profile, Turn, Watched};
use throng_record::{Slice, Why};
use throng_spec::registry::Unsupported;
use throng_sys::calls;
use throng_sys::perf::Event;
use throng_sys::samples::{Sampler, What};
use unwind::Images;

/// Samples per second and CPU: no multiple of what programs do regularly.
const HERTZ: u32 = 1999;
/// Bytes of the stack in each sample.
const STACK_BYTES: u32 = 8192;
/// Bytes of a ring buffer.
const RING_BYTES: usize = 1 << 23;
/// Looks at threads and readings of the rings, per second.
const LOOKS_PER_S: u32 = 99;

/// The events of some CPUs.
pub(crate) struct Watch {
    /// Stacks or calls.
    watched: Watched,
    sampler: Result<Sampler, Unsupported>,
}

impl Watch {
    /// Begins to watch where the time of these CPUs goes.
    pub(crate) fn stacks(cpus: &[u32]) -> Self {
        let what = What::Stacks {
            hertz: HERTZ,
            stack_bytes: STACK_BYTES,
        };
        let sampler = Sampler::open(what, cpus, RING_BYTES);
        Self {
            watched: Watched::Stacks,
            sampler: sampler.map_err(|error| forbidden(&error)),
        }
    }

    /// Begins to watch the system calls on these CPUs.
    pub(crate) fn calls(cpus: &[u32]) -> Self {
        let open = |points: Tracepoints| {
            let what = What::Passages(Event::tracepoint(points.id(ALL_CALLS)?));
            Sampler::open(what, cpus, RING_BYTES)
        };
        let found = Tracepoints::find();
        Self {
            watched: Watched::Calls,
            sampler: found.and_then(|points| open(points).map_err(|error| forbidden(&error))),
        }
    }
}

/// Begins to watch something of CPUs.
pub(crate) type Open = fn(&[u32]) -> Watch;

/// What is watched one after the other, each with its number of turns.
pub(crate) fn turns(why: Why) -> [(Open, u32); 2] {
    let [stacks, calls] = match why {
        Why::Off => [0, 0],
        Why::On => [TURNS_FOR_STACKS, TURNS_FOR_CALLS],
        Why::Profile => [TURNS_OF_PROFILE * TURNS_FOR_STACKS, TURNS_FOR_CALLS],
    };
    [(Watch::stacks, stacks), (Watch::calls, calls)]
}

/// Number of turns of each server for stacks, and for system calls.
const TURNS_FOR_STACKS: u32 = 16;
const TURNS_FOR_CALLS: u32 = 10;
/// How many times as many turns make a flame graph.
const TURNS_OF_PROFILE: u32 = 4;

/// The tracepoint that every system call passes first.
const ALL_CALLS: &str = "raw_syscalls/sys_enter";

/// Why CPUs cannot be watched.
fn forbidden(error: &io::Error) -> Unsupported {
    let why = events::explain(error);
    if error.kind() != io::ErrorKind::PermissionDenied {
        return why;
    }
    Unsupported {
        remedy: "measure as root, or as root: sysctl kernel.perf_event_paranoid=-1 kernel.kptr_restrict=0"
            .to_owned(),
        ..why
    }
}

/// What is seen of a server over all turns.
#[derive(Default)]
pub(crate) struct Profiling {
    profile: Profile,
    images: Images,
    stacks: StackCounts,
}

impl Profiling {
    /// Watches a turn, which `have` runs; an error of `have` ends it without a trace.
    pub(crate) fn watch<E>(
        &mut self,
        watch: &mut Watch,
        round: u32,
        tree: &mut Tree,
        have: impl FnOnce() -> Result<Option<Slice>, E>,
    ) -> Result<(), E> {
        tree.refresh();
        let root = tree.main();
        let mut family = Family::of(tree.pids());
        if let Err(why) = &watch.sampler {
            self.profile.unavailable.insert(watch.watched, why.clone());
        }
        let mut turn = Turn {
            round,
            ..Turn::default()
        };
        let mut asleep = Asleep::of(tree);
        let before = switches::read(tree);
        let place = self.profile.turns.len();
        let is_over = AtomicBool::new(false);
        // What was written before the turn began: here, since the other thread may begin to run later than the turn.
        if let Ok(sampler) = &mut watch.sampler {
            sampler.drain(&mut |_| {});
        }
        let looked = || {
            loop {
                let ends = is_over.load(Relaxed);
                asleep.look();
                if let Ok(sampler) = &mut watch.sampler {
                    family.read(sampler);
                    if ends {
                        family.read(sampler);
                    }
                }
                if ends {
                    return;
                }
                std::thread::sleep(Duration::from_secs(1) / LOOKS_PER_S);
            }
        };
        let took = std::thread::scope(|scope| {
            scope.spawn(looked);
            let took = have();
            is_over.store(true, Relaxed);
            took
        });
        let Some(took) = took? else {
            return Ok(());
        };
        for stack in family.stacks {
            if let Some(image) = self.images.of(stack.pid, root) {
                let program = self.images.walk(image, &stack);
                self.stacks.add(place, image, stack, program);
            }
        }
        turn.events = Some(since(before, switches::read(tree)));
        (turn.took_ns, turn.replies) = (took.took_ns, took.replies);
        turn.server_cpu_ns = took.server_cpu_ns;
        turn.lost = family.lost;
        match asleep.means() {
            Some(means) => (turn.asleep, turn.idle) = (means.asleep, means.idle),
            None => {
                self.profile
                    .unavailable
                    .insert(Watched::Waits, cannot_look());
            }
        }
        // Whose calls were lost is unknown.
        if watch.watched == Watched::Calls && watch.sampler.is_ok() && turn.lost == 0 {
            let named = family
                .passages
                .into_iter()
                .map(|(number, count)| (calls::name(number), count));
            turn.calls = Some(named.collect::<BTreeMap<_, _>>());
        }
        self.profile.turns.push(turn);
        Ok(())
    }

    /// The profile, while the server still runs, and its stacks with their counts, outermost function first.
    pub(crate) fn finish(self) -> (Option<Profile>, Vec<(String, u64)>) {
        let mut profile = self.profile;
        if profile.turns.is_empty() {
            return (None, Vec::new());
        }
        let named = self.stacks.named(&self.images, profile.turns.len());
        for (turn, samples) in profile.turns.iter_mut().zip(named.turns) {
            turn.samples = samples;
        }
        profile.unnamed_share = named.unnamed_share;
        (Some(profile), named.folded)
    }
}

/// Writes stacks with their counts, if there are any, as tools for flame graphs read them.
pub(crate) fn write(path: &Path, stacks: &[(String, u64)]) -> io::Result<()> {
    if stacks.is_empty() {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let lines = stacks
        .iter()
        .map(|(stack, count)| format!("{stack} {count}\n"));
    fs::write(path, lines.collect::<String>())
}

fn since(before: switches::Counts, after: switches::Counts) -> Events {
    let waited = before.waited_ns.zip(after.waited_ns);
    let faults = |counts: &switches::Counts| counts.minor + counts.major;
    Events {
        voluntary_switches: after.voluntary.saturating_sub(before.voluntary),
        involuntary_switches: after.involuntary.saturating_sub(before.involuntary),
        page_faults: faults(&after).saturating_sub(faults(&before)),
        waited_for_cpu_ns: waited.map(|(then, now)| now.saturating_sub(then)),
    }
}

fn cannot_look() -> Unsupported {
    Unsupported {
        reason: "the calls in which its threads sleep cannot be read (/proc/PID/task/TID/syscall)"
            .to_owned(),
        remedy: "measure as root, or let throng start the server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;
    use throng_record::profile::Part;

    /// Watches a process that starts others, beside one that starts others too.
    #[test]
    fn what_a_process_and_its_children_do_is_seen() {
        let shell = |program: &str| {
            Command::new("sh")
                .args(["-c", &format!("while :; do {program}; done")])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let busy = shell("/bin/true");
        let other = shell("/bin/uname");
        let mut profiling = Profiling::default();
        let mut tree = Tree::of(busy.id());
        let cpus = throng_sys::process::usable_cpus();
        for mut watch in [Watch::stacks(&cpus), Watch::calls(&cpus)] {
            let have = || {
                let began = Instant::now();
                std::thread::sleep(Duration::from_millis(300));
                Ok::<_, ()>(Some(Slice {
                    took_ns: began.elapsed().as_nanos() as u64,
                    replies: 1,
                    ..Slice::default()
                }))
            };
            profiling.watch(&mut watch, 0, &mut tree, have).unwrap();
        }
        let (seen, folded) = profiling.finish();
        for mut child in [busy, other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let profile = seen.expect("it had turns");
        let [stacks, calls] = &profile.turns[..] else {
            panic!("{profile:?}");
        };
        if !profile.unavailable.contains_key(&Watched::Stacks) {
            let in_kernel = stacks
                .samples
                .iter()
                .any(|one| matches!(one.part, Part::Call(_)));
            let has_symbols = std::fs::read_to_string("/proc/kallsyms");
            assert!(in_kernel || has_symbols.is_err(), "{stacks:?}");
            assert!(!folded.is_empty());
        }
        // Other tests may make more calls than the ring has room for.
        if !profile.unavailable.contains_key(&Watched::Calls) && calls.lost == 0 {
            let counted = calls.calls.as_ref().unwrap();
            assert!(
                counted
                    .keys()
                    .any(|call| call.contains("clone") || call.contains("wait")),
                "{counted:?}"
            );
            let has = |call: &str| counted.contains_key(call);
            assert!(has("execve") && !has("uname"), "{counted:?}");
        }
    }
}
