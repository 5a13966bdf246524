//! Probes: each one source of measurements, applied to the process tree of either side.
//!
//! To add one: a new file, its `mod` line and its line in [`PROBES`].

mod cpu;
mod memory;
mod switches;
mod tree;

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::record::Side;
use crate::registry::{Entry, Unsupported};
use crate::sys::clock::thread_cpu_time;
pub use tree::Tree;

/// Every kind of probe there is.
pub const PROBES: &[&dyn ProbeKind] = &[&cpu::Cpu, &memory::Memory, &switches::Switches];

/// A kind of probe, from which one is made for each side of each trial.
pub trait ProbeKind: Entry + Sync {
    /// What it measures.
    fn metrics(&self) -> &'static [Metric];

    /// A new one.
    fn make(&self) -> Box<dyn Probe>;
}

/// One figure of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Metric {
    /// Name in records; the unit is its end.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
}

/// When a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The load is on, replies do not count yet; may take long.
    Before,
    /// The steady part begins; must be quick.
    Start,
    /// Within it; must be quick.
    Tick,
    /// It ends; must be quick.
    End,
    /// The clients are still connected and ask nothing; may take long.
    After,
}

/// One value at one time, for the time series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// What.
    pub metric: &'static str,
    /// How much.
    pub value: f64,
}

/// One source of measurements on one process tree.
pub trait Probe: Send {
    /// Looks whether it can measure.
    ///
    /// # Errors
    /// What is missing, and what would mend it.
    fn attach(&mut self, tree: &Tree) -> Result<(), Unsupported>;

    /// Measures; what belongs into the time series goes to `out`.
    ///
    /// # Errors
    /// When the process tree can no longer be measured.
    fn sample(
        &mut self,
        moment: Moment,
        tree: &Tree,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()>;

    /// The figures of the steady part; what could not be measured is absent.
    fn figures(&self, out: &mut dyn FnMut(&'static str, f64));
}

/// All probes on one side.
pub struct Panel {
    tree: Tree,
    attached: Vec<(&'static str, Box<dyn Probe>)>,
    side: Side,
    samples: Vec<(Duration, Sample)>,
    began: Instant,
    cost: Duration,
}

impl Panel {
    /// Attaches every probe that can be to the tree whose root is `pid`.
    pub fn attach(pid: u32) -> Self {
        let tree = Tree::of(pid);
        let mut side = Side::default();
        let mut attached = Vec::new();
        for kind in PROBES {
            let name = kind.info().name;
            let mut probe = kind.make();
            match kind.supported().and_then(|()| probe.attach(&tree)) {
                Ok(()) => attached.push((name, probe)),
                Err(unsupported) => {
                    side.unavailable.insert(name.to_owned(), unsupported);
                }
            }
        }
        Self {
            tree,
            attached,
            side,
            samples: Vec::new(),
            began: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    /// Takes a sample with every probe. One that fails is left out from then on, with its reason.
    pub fn sample(&mut self, moment: Moment) {
        let cpu = thread_cpu_time();
        if matches!(moment, Moment::Before | Moment::After) {
            self.tree.look();
        }
        if moment == Moment::Start {
            self.began = Instant::now();
        }
        let now = Instant::now();
        let mut out = Vec::new();
        let side = &mut self.side;
        let tree = &self.tree;
        self.attached.retain_mut(|(name, probe)| {
            let sampled = probe.sample(moment, tree, now, &mut out);
            if let Err(error) = &sampled {
                let unsupported = Unsupported {
                    reason: format!("{error:#}"),
                    remedy: "see whether the process ended or changed its user".to_owned(),
                };
                side.unavailable.insert((*name).to_owned(), unsupported);
            }
            sampled.is_ok()
        });
        let at = now.saturating_duration_since(self.began);
        self.samples
            .extend(out.into_iter().map(|sample| (at, sample)));
        if matches!(moment, Moment::Start | Moment::Tick | Moment::End) {
            self.cost += thread_cpu_time().saturating_sub(cpu);
        }
    }

    /// The figures and the time series.
    pub fn finish(mut self) -> (Side, Vec<(Duration, Sample)>) {
        for (_, probe) in &self.attached {
            probe.figures(&mut |name, value| {
                self.side.metrics.insert(name.to_owned(), value);
            });
        }
        self.side.probe_cost_ms = self.cost.as_secs_f64() * 1e3;
        (self.side, self.samples)
    }
}

/// Where `/proc` cannot be read, no probe of processes works.
fn need_proc() -> Result<(), Unsupported> {
    if std::path::Path::new("/proc/self/stat").exists() {
        return Ok(());
    }
    Err(Unsupported {
        reason: "there is no /proc with processes here".to_owned(),
        remedy: "mount it (mount -t proc proc /proc), or run on Linux".to_owned(),
    })
}
