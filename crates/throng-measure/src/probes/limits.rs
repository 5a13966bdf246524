//! How close a side comes to its limits of file descriptors, threads and memory: its own (`getrlimit(2)`), those of
//! its control group, and those of the machine.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use procfs::process::{LimitValue, Process};
use rustix::thread::CapabilitySet;

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target, Tree, memory, need_proc};
use crate::host;
use crate::processes::control_group::Groups;
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};

/// The kind of probe `limits`.
pub(super) const LIMITS: ProbeKind = ProbeKind {
    info: Info {
        name: "limits",
        summary: "how close the server is to its limits of descriptors, threads and memory",
    },
    supported: need_proc,
    metrics: metrics::limits::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Timed,
    by_default: false,
    make: || {
        Box::new(LimitsProbe {
            pace: Pace::new(INTERVAL),
            groups: None,
            before: Refusals::default(),
            after: Refusals::default(),
            most: LimitPeaks::default(),
        })
    },
};

/// Minimum time between two samples.
const INTERVAL: Duration = Duration::from_millis(50);
/// "No limit" in control groups of version 1.
const ENDLESS: u64 = 1 << 60;

struct LimitsProbe {
    pace: Pace,
    groups: Option<[Groups; 2]>,
    /// The refusals of the control group before the clients connected, and after.
    before: Refusals,
    after: Refusals,
    most: LimitPeaks,
}

/// The refusals of a control group so far.
#[derive(Debug, Clone, Copy, Default)]
struct Refusals {
    pids: Option<u64>,
    oom_kills: Option<u64>,
}

/// The closest that the side came to each limit.
#[derive(Debug, Clone, Copy, Default)]
struct LimitPeaks {
    descriptors: Option<u64>,
    descriptors_limit: Option<u64>,
    tasks: Option<u64>,
    processes_limit: Option<u64>,
    address_space: Option<u64>,
    address_space_limit: Option<u64>,
    mappings: Option<u64>,
    pids: Option<u64>,
    pids_limit: Option<u64>,
    memory: Option<u64>,
    memory_limit: Option<u64>,
    machine_tasks: Option<u64>,
    machine_tasks_limit: Option<u64>,
    machine_memory: Option<u64>,
}

impl Probe for LimitsProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        let main = target.tree.main();
        let groups = ["pids", "memory"].map(|controller| Groups::of(main, controller));
        self.before = Refusals::read(&groups);
        self.after = self.before;
        self.groups = Some(groups);
        self.most.update(&target.tree, self.groups.as_ref());
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, .. }: &Target,
        at: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let slow = matches!(moment, Moment::Before | Moment::After);
        if slow || self.pace.is_due(at) {
            let (most, groups) = (&mut self.most, self.groups.as_ref());
            self.pace.sample(at, || most.update(tree, groups));
        }
        if slow {
            self.most.mappings = mappings(tree.main());
        }
        Ok(())
    }

    /// A killed process is gone, but its control group keeps the count.
    fn conclude(&mut self, _: &Target) -> anyhow::Result<()> {
        if let Some(groups) = &self.groups {
            self.after = Refusals::read(groups);
            let memory = groups[1].least_peak();
            self.most.memory = self.most.memory.max(memory);
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let most = &self.most;
        let grown = |before: Option<u64>, after: Option<u64>| Some(after?.saturating_sub(before?));
        for (name, value) in [
            ("descriptors_peak", most.descriptors),
            ("descriptors_limit", most.descriptors_limit),
            ("tasks_peak", most.tasks),
            ("processes_limit", most.processes_limit),
            ("address_space_peak_bytes", most.address_space),
            ("address_space_limit_bytes", most.address_space_limit),
            ("mappings", most.mappings),
            ("mappings_limit", host::most_mappings()),
            ("pids_peak", most.pids),
            ("pids_limit", most.pids_limit),
            ("pids_refused", grown(self.before.pids, self.after.pids)),
            ("memory_limit_bytes", most.memory_limit),
            ("memory_peak_bytes", most.memory),
            (
                "oom_kills",
                grown(self.before.oom_kills, self.after.oom_kills),
            ),
            ("machine_tasks_peak", most.machine_tasks),
            ("machine_tasks_limit", most.machine_tasks_limit),
            ("machine_memory_min_bytes", most.machine_memory),
        ] {
            if let Some(value) = value {
                out(name, value as f64);
            }
        }
    }
}

impl Groups {
    /// The smallest of the peaks of memory of the group and its ancestors.
    fn least_peak(&self) -> Option<u64> {
        self.least(&["memory.peak", "memory.max_usage_in_bytes"])
    }
}

impl Refusals {
    fn read([pids, memory]: &[Groups; 2]) -> Self {
        Self {
            pids: pids.count(&["pids.events"], "max"),
            oom_kills: memory.count(&["memory.events", "memory.oom_control"], "oom_kill"),
        }
    }
}

impl LimitPeaks {
    fn update(&mut self, tree: &Tree, groups: Option<&[Groups; 2]>) {
        let mut tasks = 0;
        for (process, stat) in tree.stats() {
            tasks += stat.num_threads.max(0).cast_unsigned();
            self.update_from(&process);
        }
        self.tasks = self.tasks.max(Some(tasks).filter(|tasks| *tasks > 0));
        if let Some([pids, memory]) = groups {
            self.pids = self.pids.max(pids.greatest(&["pids.current"]));
            self.pids_limit = pids.least(&["pids.max"]);
            let limits = ["memory.max", "memory.limit_in_bytes"];
            self.memory_limit = memory.least(&limits).filter(|limit| *limit < ENDLESS);
        }
        if let Some((there, limit)) = host::threads() {
            self.machine_tasks = self.machine_tasks.max(Some(there));
            self.machine_tasks_limit = Some(limit);
        }
        let left = host::memory_left();
        self.machine_memory = match (self.machine_memory, left) {
            (Some(least), Some(left)) => Some(least.min(left)),
            (least, left) => least.or(left),
        };
    }

    fn update_from(&mut self, process: &Process) {
        let Ok(limits) = process.limits() else {
            return;
        };
        let descriptors = memory::open_descriptors(process);
        if descriptors > self.descriptors || self.descriptors_limit.is_none() {
            self.descriptors = descriptors;
            self.descriptors_limit = value(limits.max_open_files.soft_limit);
        }
        let Ok(status) = process.status() else {
            return;
        };
        // Processes with these capabilities are exempt (`setrlimit(2)`).
        let exempt = CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_ADMIN;
        let held_to = status.ruid != 0 && status.capeff & exempt.bits() == 0;
        if held_to {
            self.processes_limit = value(limits.max_processes.soft_limit);
        }
        let largest = status.vmpeak.map(|kib| kib * 1024);
        if largest > self.address_space {
            self.address_space = largest;
            self.address_space_limit = value(limits.max_address_space.soft_limit);
        }
    }
}

/// The number of mappings, one per line; counting those of ten thousand threads takes a while.
fn mappings(pid: u32) -> Option<u64> {
    let file = File::open(format!("/proc/{pid}/maps")).ok()?;
    let lines = BufReader::new(file).split(b'\n');
    Some(lines.map_while(Result::ok).count() as u64)
}

fn value(limit: LimitValue) -> Option<u64> {
    match limit {
        LimitValue::Unlimited => None,
        LimitValue::Value(value) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_limits_are_seen() {
        let mut most = LimitPeaks::default();
        let tree = Tree::of(std::process::id());
        most.update(&tree, None);
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(most.descriptors_limit, limit.current);
        assert!(most.descriptors.is_some_and(|open| open >= 3));
        assert!(most.tasks.is_some_and(|tasks| tasks >= 1));
        assert!(mappings(std::process::id()).is_some_and(|mappings| mappings > 5));
        assert!(most.machine_tasks < most.machine_tasks_limit);
        let before = most.descriptors;
        let _more: Vec<_> = (0..64).map(|_| File::open("/dev/null").unwrap()).collect();
        most.update(&tree, None);
        assert!(most.descriptors >= before);
    }
}
