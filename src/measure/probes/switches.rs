//! Context switches and page faults.
//!
//! The kernel counts switches by thread (`/proc/PID/task/TID/status`), so a look at thousands of
//! threads takes a while. It is taken before the steady part and after it, and the figures are
//! rates over the time between, in which the load was the same.

use std::time::Instant;

use procfs::process::Process;

use super::{Metric, Moment, Probe, ProbeKind, Sample, Target, Tree, need_proc};
use crate::registry::{Entry, Info, Unsupported};

/// The kind of probe `switches`.
pub(super) struct Switches;

impl Entry for Switches {
    fn info(&self) -> Info {
        Info {
            name: "switches",
            summary: "context switches, voluntary and not, and page faults",
        }
    }

    fn supported(&self) -> Result<(), Unsupported> {
        need_proc()
    }
}

impl ProbeKind for Switches {
    fn metrics(&self) -> &'static [Metric] {
        &[
            Metric {
                name: "voluntary_switches_per_s",
                help: "times a thread went to sleep to wait",
            },
            Metric {
                name: "involuntary_switches_per_s",
                help: "times a thread had to make room for another",
            },
            Metric {
                name: "minor_faults_per_s",
                help: "page faults served from memory",
            },
            Metric {
                name: "major_faults_per_s",
                help: "page faults that had to read from a disk",
            },
        ]
    }

    fn make(&self) -> Box<dyn Probe> {
        Box::new(SwitchesProbe::default())
    }
}

#[derive(Default)]
struct SwitchesProbe {
    before: Option<(Instant, Counts)>,
    ended: Option<Instant>,
    after: Option<Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    voluntary: u64,
    involuntary: u64,
    minor: u64,
    major: u64,
}

fn read(tree: &Tree) -> Counts {
    let mut counts = Counts::default();
    for (process, stat) in tree.stats() {
        counts.minor += stat.minflt;
        counts.major += stat.majflt;
        if stat.pid == tree.root().cast_signed() {
            counts.minor += stat.cminflt;
            counts.major += stat.cmajflt;
        }
        add_switches(&process, &mut counts);
    }
    counts
}

fn add_switches(process: &Process, counts: &mut Counts) {
    let Ok(tasks) = process.tasks() else {
        return;
    };
    for status in tasks.flatten().filter_map(|task| task.status().ok()) {
        counts.voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
        counts.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or(0);
    }
}

impl Probe for SwitchesProbe {
    fn attach(&mut self, _: &Target) -> Result<(), Unsupported> {
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, .. }: &Target,
        at: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        match moment {
            Moment::Before => self.before = Some((at, read(tree))),
            Moment::End => self.ended = Some(at),
            Moment::After => self.after = Some(read(tree)),
            Moment::Start | Moment::Tick => {}
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let (Some((began, before)), Some(ended), Some(after)) =
            (self.before, self.ended, self.after)
        else {
            return;
        };
        let elapsed = ended.duration_since(began).as_secs_f64();
        let mut rate = |name, from: u64, to: u64| {
            out(name, to.saturating_sub(from) as f64 / elapsed);
        };
        rate(
            "voluntary_switches_per_s",
            before.voluntary,
            after.voluntary,
        );
        rate(
            "involuntary_switches_per_s",
            before.involuntary,
            after.involuntary,
        );
        rate("minor_faults_per_s", before.minor, after.minor);
        rate("major_faults_per_s", before.major, after.major);
    }
}
