//! Memory of the whole tree, without counting what its processes share more than once.
//!
//! The sum of resident sizes overstates a forking server many times over; the proportional set
//! size (`smaps_rollup`, `proc_pid_smaps(5)`) divides each shared page among those who share it.

use std::time::{Duration, Instant};

use procfs::process::{MMapExtension, MMapPath, Process};

use super::pace::Pace;
use super::{Metric, Moment, Probe, ProbeKind, Sample, Target, Tree, need_proc};
use crate::registry::{Entry, Info, Unsupported};

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
        &[
            Metric {
                name: "pss_bytes",
                help: "proportional set size, summed, with all clients connected",
            },
            Metric {
                name: "peak_rss_bytes",
                help: "VmHWM of the root process: its largest resident size so far",
            },
            Metric {
                name: "threads",
                help: "threads of all processes, with all clients connected",
            },
            Metric {
                name: "processes",
                help: "processes, with all clients connected",
            },
            Metric {
                name: "descriptors",
                help: "open descriptors of all processes, with all clients connected",
            },
        ]
    }

    fn make(&self) -> Box<dyn Probe> {
        Box::new(MemoryProbe::default())
    }
}

struct MemoryProbe {
    figures: Vec<(&'static str, f64)>,
    pace: Pace,
}

/// Least time between two samples within the steady part.
const INTERVAL: Duration = Duration::from_millis(500);

impl Default for MemoryProbe {
    fn default() -> Self {
        Self {
            figures: Vec::new(),
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
            Moment::Settle | Moment::Tick | Moment::End => {}
            Moment::After => {
                let pss = self.look(tree, at)?;
                out.push(pss);
                self.figures = everything(tree, pss.value);
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
        Ok(Sample {
            metric: "pss_bytes",
            value,
        })
    }
}

fn everything(tree: &Tree, pss_bytes: f64) -> Vec<(&'static str, f64)> {
    let mut figures = vec![("pss_bytes", pss_bytes)];
    if let Ok(status) = Process::new(tree.root().cast_signed()).and_then(|root| root.status())
        && let Some(kib) = status.vmhwm
    {
        figures.push(("peak_rss_bytes", kib as f64 * 1024.0));
    }
    let (mut threads, mut processes, mut descriptors) = (0, 0_u32, Some(0));
    for (process, stat) in tree.stats() {
        processes += 1;
        threads += stat.num_threads;
        descriptors = descriptors.and_then(|sum| Some(sum + open_descriptors(&process)?));
    }
    figures.push(("threads", threads as f64));
    figures.push(("processes", f64::from(processes)));
    figures.extend(descriptors.map(|count| ("descriptors", count as f64)));
    figures
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
