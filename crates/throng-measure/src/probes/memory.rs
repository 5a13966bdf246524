//! Memory of the whole tree, without counting what its processes share more than once.
//!
//! The sum of resident sizes overstates a forking server many times over; the proportional set
//! size (`smaps_rollup`, `proc_pid_smaps(5)`) divides each shared page among those who share it.
//!
//! The kernel remembers a process's largest resident size (`VmHWM`), but no largest proportional one.
//! So the peak of a tree is what it has now, and beside it what each process had more at its own peak
//! (`VmHWM` less `VmRSS`): memory given back since, which was its own. That all peaked at once is
//! assumed, so with many processes it is an upper bound; what was seen at any look is a lower one.
//! Children that have ended are in neither, but in the looks.

use std::time::{Duration, Instant};

use procfs::process::{MMapExtension, MMapPath, Process};

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Target, Tree, need_proc};
use throng_record::metrics::{self, Metric};
use throng_registry::{Entry, Info, Unsupported};

/// The kind of probe `memory`.
pub(super) struct Memory;

impl Entry for Memory {
    fn info(&self) -> Info {
        Info {
            name: "memory",
            summary: "proportional set size, peak, threads, processes, descriptors",
        }
    }

    fn supported(&self) -> Result<(), Unsupported> {
        need_proc()?;
        if std::path::Path::new("/proc/self/smaps_rollup").exists() {
            return Ok(());
        }
        Err(Unsupported {
            reason: "the kernel has no /proc/PID/smaps_rollup".to_owned(),
            remedy: "use Linux 4.14 or newer".to_owned(),
        })
    }
}

impl ProbeKind for Memory {
    fn metrics(&self) -> &'static [Metric] {
        metrics::memory::METRICS
    }

    fn make(&self) -> Box<dyn Probe> {
        Box::new(MemoryProbe::default())
    }
}

struct MemoryProbe {
    figures: Vec<(&'static str, f64)>,
    /// Most that a look saw.
    most: f64,
    pace: Pace,
}

/// Least time between two samples within the steady part.
const INTERVAL: Duration = Duration::from_millis(500);

impl Default for MemoryProbe {
    fn default() -> Self {
        Self {
            figures: Vec::new(),
            most: 0.0,
            pace: Pace::new(INTERVAL),
        }
    }
}

impl Probe for MemoryProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        pss(&target.tree).map(drop).map_err(|error| Unsupported {
            reason: format!("its memory cannot be read: {error}"),
            remedy: "measure as the same user as the server, or as root".to_owned(),
        })
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, .. }: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        match moment {
            Moment::Start => self.pace.wait_from(at),
            Moment::Before => out.push(self.look(tree, at)?),
            Moment::Tick if self.pace.is_due(at) => out.push(self.look(tree, at)?),
            Moment::Connect | Moment::Tick | Moment::End => {}
            Moment::After => {
                let pss = self.look(tree, at)?;
                out.push(pss);
                self.figures = everything(tree, pss.value, self.most);
            }
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        for &(name, value) in &self.figures {
            out(name, value);
        }
    }
}

impl MemoryProbe {
    fn look(&mut self, tree: &Tree, at: Instant) -> procfs::ProcResult<Sample> {
        let value = self.pace.look(at, || pss(tree))? as f64;
        self.most = self.most.max(value);
        Ok(Sample {
            metric: "pss_bytes",
            value,
        })
    }
}

fn everything(tree: &Tree, pss_bytes: f64, most: f64) -> Vec<(&'static str, f64)> {
    let mut figures = vec![("pss_bytes", pss_bytes)];
    let (mut threads, mut processes, mut descriptors) = (0, 0_u32, Some(0));
    let mut given_back = None;
    for (process, stat) in tree.stats() {
        // A child that has ended and was not waited for has none.
        if let Some(size) = resident(&process) {
            *given_back.get_or_insert(0.0) += size.given_back();
            if stat.pid == tree.root().cast_signed() {
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

/// Since Linux 6.2 the size of `/proc/PID/fd` is the number of entries; before, they are counted.
pub(super) fn open_descriptors(process: &Process) -> Option<u64> {
    let path = format!("/proc/{}/fd", process.pid);
    match std::fs::metadata(&path).ok()?.len() {
        0 => process.fd_count().ok().map(|count| count as u64),
        count => Some(count),
    }
}

/// Sum of the proportional set sizes; a process that ended meanwhile counts nothing.
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
