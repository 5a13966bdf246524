//! Memory of the whole tree, with shared pages counted once.
//!
//! The sum of resident sizes overstates the memory of a forking server many times over. The proportional set size
//! (`smaps_rollup`, `proc_pid_smaps(5)`) divides each shared page among the processes that share it.
//!
//! The kernel keeps a process's largest resident size (`VmHWM`), but no largest proportional one. So the peak of a
//! tree is its current size, plus what each process had in addition at its own peak (`VmHWM` minus `VmRSS`), which was
//! private memory and has been released since. This assumes that all processes peaked at once, so with many processes
//! it is an upper bound; the largest sample is a lower one. Children that have ended are only in the samples.
//!
//! Short-lived clients (jobs) are no longer connected at the end. For them, samples are taken repeatedly near the
//! largest number of clients, and the maximum of each value is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use procfs::process::{MMapExtension, MMapPath, MemoryMap, Process};

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target, Tree, need_proc};
use crate::processes::control_group::Groups;
use crate::processes::sleeping::{self, Doing};
use throng_record::{MemoryPart, Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::clock::thread_cpu_time;

/// The kind of probe `memory`.
pub(super) const MEMORY: ProbeKind = ProbeKind {
    info: Info {
        name: "memory",
        summary: "proportional set size, peak, threads, processes, descriptors",
    },
    supported,
    metrics: metrics::memory::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(MemoryProbe::default()),
};

fn supported() -> Result<(), Unsupported> {
    need_proc()?;
    if std::path::Path::new("/proc/self/smaps_rollup").exists() {
        return Ok(());
    }
    Err(Unsupported {
        reason: "the kernel has no /proc/PID/smaps_rollup".to_owned(),
        remedy: "use Linux 4.14 or newer".to_owned(),
    })
}

struct MemoryProbe {
    figures: Vec<(&'static str, f64)>,
    /// The maxima with short-lived clients.
    peak: Peak,
    /// The largest sample.
    most: f64,
    /// Before any client connected.
    before: f64,
    parts_before: BTreeMap<MemoryPart, f64>,
    per_client: Option<BTreeMap<MemoryPart, f64>>,
    pace: Pace,
    /// Its control groups, and how often the kernel had slowed them down for using too much memory.
    groups: Groups,
    slowed_before: Option<u64>,
}

/// Minimum time between two samples within the measured phase.
const INTERVAL: Duration = Duration::from_millis(500);

impl Default for MemoryProbe {
    fn default() -> Self {
        Self {
            figures: Vec::new(),
            peak: Peak::default(),
            most: 0.0,
            before: 0.0,
            parts_before: BTreeMap::new(),
            per_client: None,
            pace: Pace::new(INTERVAL),
            groups: Groups::default(),
            slowed_before: None,
        }
    }
}

impl Probe for MemoryProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        let before = pss(&target.tree).map_err(|error| Unsupported {
            reason: format!("its memory cannot be read: {error}"),
            remedy: "measure as the same user as the server, or as root".to_owned(),
        })?;
        self.before = before as f64;
        self.parts_before = parts(&target.tree);
        self.groups = Groups::of(target.tree.main(), "memory");
        self.slowed_before = slowed(&self.groups);
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, presence, .. }: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        match moment {
            Moment::Tick if presence.comes_and_goes => {
                if self.peak.is_due(presence.present, at) {
                    out.extend(self.sample_peak(tree, presence.present, at));
                }
            }
            Moment::After if presence.comes_and_goes && self.peak.clients > 0 => {
                self.figures = self.peak.figures();
            }
            Moment::Start => self.pace.wait_from(at),
            Moment::Before => out.push(self.sample_pss(tree, at)?),
            Moment::Tick if self.pace.is_due(at) => out.push(self.sample_pss(tree, at)?),
            Moment::Connect | Moment::Tick | Moment::End => {}
            Moment::After => {
                let pss = self.sample_pss(tree, at)?;
                out.push(pss);
                self.figures = everything(tree, pss.value, self.most);
                self.figures.push(("pss_clients", presence.present as f64));
                if presence.present > 0 {
                    let each = (pss.value - self.before).max(0.0) / presence.present as f64;
                    self.figures.push(("pss_bytes_per_client", each));
                    self.per_client =
                        Some(growth(&self.parts_before, &parts(tree), presence.present));
                }
            }
        }
        Ok(())
    }

    fn memory_per_client(&self) -> Option<&BTreeMap<MemoryPart, f64>> {
        self.per_client.as_ref()
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        for &(name, value) in &self.figures {
            out(name, value);
        }
        if let (Some(before), Some(after)) = (self.slowed_before, slowed(&self.groups)) {
            out("memory_high_hits", after.saturating_sub(before) as f64);
        }
    }
}

/// Most processes whose mappings are read, one by one.
const MOST_PROCESSES: usize = 64;

/// What holds the memory of a tree; of many processes, those of some stand for all.
fn parts(tree: &Tree) -> BTreeMap<MemoryPart, f64> {
    let pids = tree.pids();
    let step = pids.len().div_ceil(MOST_PROCESSES).max(1);
    let read: Vec<u32> = pids.iter().copied().step_by(step).collect();
    let weight = pids.len() as f64 / read.len().max(1) as f64;
    let mut parts = BTreeMap::new();
    for pid in read {
        let Ok(maps) = Process::new(pid.cast_signed()).and_then(|process| process.smaps()) else {
            continue;
        };
        let threads = sleeping::threads(pid).into_iter();
        let mut stacks: Vec<u64> = threads
            .filter_map(|thread| match sleeping::look(pid, thread)? {
                Doing::Sleeping { stack, .. } => Some(stack),
                Doing::Running => None,
            })
            .collect();
        stacks.sort_unstable();
        for map in maps {
            let held = match &map.pathname {
                // Which pages of a program were needed until now says nothing of its clients.
                MMapPath::Path(path) if !is_memory(path) => {
                    map.extension.map.get("Anonymous").copied()
                }
                _ => pss_of(&map.extension),
            };
            let bytes = held.unwrap_or_default() as f64;
            *parts.entry(part(&map, &stacks)).or_default() += weight * bytes;
        }
    }
    parts
}

/// Whether what is mapped is memory that processes share, rather than a file.
fn is_memory(path: &Path) -> bool {
    ["/memfd:", "/dev/shm", "/dev/zero", "/SYSV"]
        .iter()
        .any(|place| {
            path.as_os_str()
                .as_encoded_bytes()
                .starts_with(place.as_bytes())
        })
}

/// What a mapping holds. The stack of a thread is an anonymous mapping like others, but its stack pointer is in it.
fn part(map: &MemoryMap, stacks: &[u64]) -> MemoryPart {
    let (start, end) = map.address;
    match &map.pathname {
        MMapPath::Stack | MMapPath::TStack(_) => MemoryPart::Stacks,
        MMapPath::Anonymous | MMapPath::Other(_) => {
            let first = stacks.partition_point(|pointer| *pointer < start);
            match stacks.get(first) {
                Some(pointer) if *pointer < end => MemoryPart::Stacks,
                _ => MemoryPart::Heap,
            }
        }
        MMapPath::Heap => MemoryPart::Heap,
        _ => MemoryPart::Files,
    }
}

/// The growth of each part per client; parts that did not change are left out.
pub(super) fn growth(
    before: &BTreeMap<MemoryPart, f64>,
    after: &BTreeMap<MemoryPart, f64>,
    clients: u64,
) -> BTreeMap<MemoryPart, f64> {
    let all: BTreeSet<&MemoryPart> = before.keys().chain(after.keys()).collect();
    let each = |part: &MemoryPart| {
        let [then, now] = [before, after].map(|parts| parts.get(part).copied().unwrap_or_default());
        (now - then) / clients as f64
    };
    let grown = all.into_iter().map(|part| (part.clone(), each(part)));
    grown.filter(|(_, bytes)| *bytes != 0.0).collect()
}

fn slowed(groups: &Groups) -> Option<u64> {
    groups.count(&["memory.events"], "high")
}

impl MemoryProbe {
    /// Takes a sample; `None` if the processes ended meanwhile.
    fn sample_peak(&mut self, tree: &Tree, present: u64, at: Instant) -> Option<Sample> {
        let before = thread_cpu_time();
        let mut tree = tree.clone();
        tree.refresh();
        let found = tree.pids().len() as f64;
        let value = pss(&tree).ok()? as f64;
        let mut figures = everything(&tree, value, self.most);
        for (name, count) in &mut figures {
            // Some processes may have ended while the others were read.
            if ["processes", "threads"].contains(name) {
                *count = count.max(found);
            }
        }
        let cost = thread_cpu_time().saturating_sub(before);
        self.peak.take(&figures, present, at, cost);
        Some(Sample {
            metric: "pss_bytes",
            value,
        })
    }

    fn sample_pss(&mut self, tree: &Tree, at: Instant) -> procfs::ProcResult<Sample> {
        let value = self.pace.sample(at, || pss(tree))? as f64;
        self.most = self.most.max(value);
        Ok(Sample {
            metric: "pss_bytes",
            value,
        })
    }
}

/// The maximum of each value with short-lived clients.
#[derive(Default)]
struct Peak {
    most: BTreeMap<&'static str, f64>,
    /// The most clients at any sample, and their number when the most memory was used.
    clients: u64,
    then: u64,
    /// When the last sample was taken, and the most CPU time that a sample took.
    sampled_at: Option<Instant>,
    cost: Duration,
    /// When the first client connected.
    came: Option<Instant>,
    /// The number of clients a while ago, and whether many more have connected since.
    before: Option<(Instant, u64)>,
    is_growing: bool,
}

/// Minimum time between two samples with short-lived clients.
const PEAK_INTERVAL: Duration = Duration::from_millis(200);
/// Such a sample, which lists every process first, may take one part in `PEAK_SHARE` of the time until the next one,
/// and one part in `LARGER_SHARE` after the number of clients grew by half.
const PEAK_SHARE: u32 = 50;
const LARGER_SHARE: u32 = 10;
/// More than `FEW` clients are sampled when their number stops growing, or has been growing for `LONG_GROWTH`.
const FEW: u64 = 50;
const GROWS: Duration = Duration::from_millis(250);
const LONG_GROWTH: Duration = Duration::from_secs(2);

impl Peak {
    /// Whether to sample now: the number of clients is near its maximum or above, and is unlikely to grow soon.
    fn is_due(&mut self, present: u64, at: Instant) -> bool {
        let (since, before) = *self.before.get_or_insert((at, present));
        if at.duration_since(since) >= GROWS {
            self.is_growing = present * 20 > before * 21;
            self.before = Some((at, present));
        } else if self.came.is_none() {
            self.is_growing = true;
        }
        if present == 0 || present * 20 < self.clients * 19 {
            return false;
        }
        let came = *self.came.get_or_insert(at);
        let sampled = self.sampled_at.unwrap_or(came);
        let has_grown_long = at.duration_since(sampled) >= LONG_GROWTH;
        let share = if present * 2 >= self.clients * 3 {
            LARGER_SHARE
        } else {
            PEAK_SHARE
        };
        let pause = PEAK_INTERVAL.max(self.cost * share);
        let is_rested = self.sampled_at.is_none_or(|looked| at >= looked + pause);
        is_rested && (present <= FEW || !self.is_growing || has_grown_long)
    }

    fn take(&mut self, figures: &[(&'static str, f64)], present: u64, at: Instant, cost: Duration) {
        for &(name, value) in figures {
            let most = self.most.entry(name).or_default();
            if name == "pss_bytes" && value >= *most {
                self.then = present;
            }
            *most = most.max(value);
        }
        self.clients = self.clients.max(present);
        self.cost = self.cost.max(cost);
        self.sampled_at = Some(at);
    }

    fn figures(&self) -> Vec<(&'static str, f64)> {
        let most = self.most.iter().map(|(name, value)| (*name, *value));
        most.chain([("pss_clients", self.then as f64)]).collect()
    }
}

fn everything(tree: &Tree, pss_bytes: f64, most: f64) -> Vec<(&'static str, f64)> {
    let mut figures = vec![("pss_bytes", pss_bytes)];
    let (mut threads, mut processes, mut descriptors) = (0, 0_u32, Some(0));
    let mut given_back = None;
    for (process, stat) in tree.stats() {
        // A child that has ended and was not waited for has no resident size.
        if let Some(size) = resident(&process) {
            *given_back.get_or_insert(0.0) += size.given_back();
            if stat.pid == tree.main().cast_signed() {
                figures.push(("parent_rss_bytes", size.now));
                figures.push(("peak_rss_bytes", size.largest));
            }
        }
        processes += 1;
        threads += stat.num_threads;
        descriptors = descriptors.and_then(|sum| Some(sum + open_descriptors(&process)?));
    }
    figures.extend(given_back.map(|sum| ("peak_bytes", most.max(pss_bytes + sum))));
    figures.push(("threads", threads as f64));
    figures.push(("processes", f64::from(processes)));
    figures.extend(descriptors.map(|count| ("descriptors", count as f64)));
    figures
}

/// Resident size of a process, in bytes.
#[derive(Clone, Copy)]
struct Resident {
    now: f64,
    largest: f64,
}

impl Resident {
    fn given_back(self) -> f64 {
        (self.largest - self.now).max(0.0)
    }
}

fn resident(process: &Process) -> Option<Resident> {
    let status = process.status().ok()?;
    let bytes = |kib: Option<u64>| kib.map(|kib| kib as f64 * 1024.0);
    Some(Resident {
        now: bytes(status.vmrss)?,
        largest: bytes(status.vmhwm)?,
    })
}

/// Since Linux 6.2, the size of `/proc/PID/fd` is the number of entries; on older kernels, they are counted.
pub(super) fn open_descriptors(process: &Process) -> Option<u64> {
    let path = format!("/proc/{}/fd", process.pid);
    match std::fs::metadata(&path).ok()?.len() {
        0 => process.fd_count().ok().map(|count| count as u64),
        count => Some(count),
    }
}

/// Sum of the proportional set sizes; processes that end meanwhile count as zero.
fn pss(tree: &Tree) -> procfs::ProcResult<u64> {
    let mut sum = None;
    let mut failure = None;
    for pid in tree.pids() {
        match Process::new(pid.cast_signed()).and_then(|process| process.smaps_rollup()) {
            Ok(rollup) => {
                let maps = rollup.memory_map_rollup.0.iter();
                let rolled = maps.filter(|map| map.pathname == MMapPath::Rollup);
                let bytes: u64 = rolled.filter_map(|map| pss_of(&map.extension)).sum();
                *sum.get_or_insert(0) += bytes;
            }
            Err(error) => failure = Some(error),
        }
    }
    match (sum, failure) {
        (Some(sum), _) => Ok(sum),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(0),
    }
}

fn pss_of(extension: &MMapExtension) -> Option<u64> {
    extension.map.get("Pss").copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_apart_by_what_holds_it() {
        const MIB: usize = 1 << 20;
        let tree = Tree::of(std::process::id());
        let before = parts(&tree);
        // Much more than other tests in this process allocate or free meanwhile.
        let allocated = std::hint::black_box(vec![1_u8; 256 * MIB]);
        let (quit, wait) = std::sync::mpsc::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let on_stack = move || {
            #[expect(clippy::large_stack_arrays, reason = "the stack is what is measured")]
            let array = std::hint::black_box([1_u8; 4 * MIB]);
            ready.send(()).unwrap();
            let ended = wait.recv().is_err();
            ended && array[MIB] == 1
        };
        let thread = std::thread::Builder::new().stack_size(64 * MIB);
        let sleeper = thread.spawn(on_stack).unwrap();
        is_ready.recv().unwrap();
        // Until it sleeps, nobody knows where its stack is.
        let grown = |part: &MemoryPart| growth(&before, &parts(&tree), 1)[part] / MIB as f64;
        assert!(super::super::becomes_true(
            || grown(&MemoryPart::Stacks) >= 3.9
        ));
        let heap = grown(&MemoryPart::Heap);
        assert!(heap > 240.0, "{heap}");
        drop((quit, allocated));
        assert!(sleeper.join().unwrap());
    }

    #[test]
    fn the_peak_of_short_lived_clients_is_kept() {
        let mut peak = Peak::default();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        assert!(!peak.is_due(0, at(0)), "nobody is there");
        assert!(peak.is_due(5, at(100)), "a few are looked at at once");
        let cheap = Duration::from_millis(1);
        let few = [("pss_bytes", 10.0), ("processes", 6.0)];
        peak.take(&few, 5, at(100), cheap);
        assert!(!peak.is_due(100, at(299)), "it was looked a moment ago");
        // Many connect, and sampling waits for them.
        assert!(!peak.is_due(1000, at(400)));
        assert!(!peak.is_due(2000, at(600)));
        assert!(!peak.is_due(3000, at(800)));
        assert!(!peak.is_due(3010, at(1100)));
        assert!(peak.is_due(3020, at(1350)), "hardly any come");
        // They are connected, but not all have their process yet.
        let dear = Duration::from_millis(30);
        let most = [("pss_bytes", 150.0), ("processes", 2001.0)];
        peak.take(&most, 3020, at(1350), dear);
        assert!(
            !peak.is_due(3020, at(2849)),
            "a dear look keeps a longer pause"
        );
        assert!(!peak.is_due(2800, at(2850)), "many have gone");
        assert!(peak.is_due(2900, at(2950)));
        let less = [("pss_bytes", 140.0), ("processes", 2900.0)];
        peak.take(&less, 2900, at(2950), dear);
        let figures = peak.figures();
        let most = [
            ("processes", 2900.0),
            ("pss_bytes", 150.0),
            ("pss_clients", 3020.0),
        ];
        assert_eq!(figures, most);
        // Steady growth does not prevent samples.
        let mut peak = Peak::default();
        let mut looks = (0..40).filter(|tick| peak.is_due(100 * (tick + 1), at(100 * tick)));
        assert_eq!(looks.next(), Some(20));
    }
}
