//! The kernel's own accounting of a side, in a control group of its own that no process can leave.
//!
//! CPU time covers all processes and threads that were ever in the group, however short-lived. Memory is what the
//! kernel charges to the group: pages of processes, with shared pages counted once, and kernel memory, including
//! sockets. The page cache is left out, since it is released on demand.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::processes::control_group::count;
use crate::processes::own_group;
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};

/// The kind of probe `control-group`.
pub(super) const CONTROL_GROUP: ProbeKind = ProbeKind {
    info: Info {
        name: "control-group",
        summary: "CPU time and memory as the kernel counts them, in a control group of its own",
    },
    supported: || own_group::check().map(drop),
    metrics: metrics::control_group::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(ControlGroupProbe::default()),
};

struct ControlGroupProbe {
    group: Group,
    start: Option<Cpu>,
    end: Option<Cpu>,
    charged: Option<f64>,
    most: Option<f64>,
    pace: Pace,
    missing: Vec<(&'static str, Unsupported)>,
}

/// Minimum time between two readings of memory within the measured phase.
const INTERVAL: Duration = Duration::from_millis(100);

impl Default for ControlGroupProbe {
    fn default() -> Self {
        Self {
            group: Group::default(),
            start: None,
            end: None,
            charged: None,
            most: None,
            pace: Pace::new(INTERVAL),
            missing: Vec::new(),
        }
    }
}

/// CPU time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cpu {
    total: f64,
    /// User and system time, if the kernel separates them.
    split: Option<(f64, f64)>,
}

/// The directories of a group, of either version.
#[derive(Debug, Default)]
pub(crate) struct Group(pub(super) Vec<PathBuf>);

impl Group {
    /// The group that throng made for a process; `None` if it made none.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let directories = own_group::of_process(pid);
        (!directories.is_empty()).then_some(Self(directories))
    }

    /// CPU time of all processes that were ever in it.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        let cpu = self.cpu()?;
        Some(Duration::from_secs_f64(cpu.total / 1e6))
    }

    fn text(&self, name: &str) -> Option<String> {
        let mut texts = self
            .0
            .iter()
            .map(|directory| fs::read_to_string(directory.join(name)));
        texts.find_map(Result::ok)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.trim().parse().ok()
    }

    fn cpu(&self) -> Option<Cpu> {
        if let Some(text) = self.text("cpu.stat")
            && let Some(total) = count(&text, "usage_usec")
        {
            let (user, system) = (count(&text, "user_usec"), count(&text, "system_usec"));
            return Some(Cpu {
                total: total as f64,
                split: user
                    .zip(system)
                    .map(|(user, system)| (user as f64, system as f64)),
            });
        }
        let both = ["cpuacct.usage_user", "cpuacct.usage_sys"].map(|name| self.number(name));
        Some(Cpu {
            total: self.number("cpuacct.usage")? / 1e3,
            split: both[0]
                .zip(both[1])
                .map(|(user, system)| (user / 1e3, system / 1e3)),
        })
    }

    /// Bytes charged to it, except for file contents.
    fn memory(&self) -> Option<f64> {
        let text = self.text("memory.stat")?;
        let sum = |names: &[&str]| {
            let counts = names.iter().map(|name| count(&text, name));
            counts.sum::<Option<u64>>().map(|sum| sum as f64)
        };
        if let Some(kernel) = self.number("memory.kmem.usage_in_bytes") {
            // These cover a single group, but there are no groups below it.
            let sockets = self.number("memory.kmem.tcp.usage_in_bytes").unwrap_or(0.0);
            return Some(sum(&["rss", "shmem"])? + kernel + sockets);
        }
        sum(&["anon", "shmem", "kernel", "sock"])
    }
}

fn unsupported(reason: &str, remedy: &str) -> Unsupported {
    Unsupported {
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    }
}

impl Probe for ControlGroupProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        let Some(group) = Group::of(target.tree.root()) else {
            let remedy = "have throng start it: name its command line; see throng doctor";
            return Err(unsupported("it is in no control group of its own", remedy));
        };
        self.group = group;
        if self.group.memory().is_none() {
            let why = unsupported(
                "the kernel does not count memory in the control groups that can be made here",
                "run it where the memory controller is on: in the root group, or with version 1",
            );
            self.missing = ["charged_bytes", "charged_peak_bytes"]
                .map(|name| (name, why.clone()))
                .into();
        }
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        _: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        match moment {
            Moment::Start => {
                self.start = Some(self.group.cpu().context("the control group is gone")?);
                self.pace.wait_from(at);
            }
            Moment::End => self.end = self.group.cpu(),
            Moment::Tick if self.pace.is_due(at) => {
                let group = &self.group;
                let _ = self
                    .pace
                    .sample(at, || group.memory())
                    .map(|bytes| self.add(bytes, out));
            }
            Moment::Before | Moment::After => {
                if let Some(bytes) = self.group.memory() {
                    self.charged = Some(bytes);
                    self.add(bytes, out);
                }
            }
            Moment::Connect | Moment::Tick => {}
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let (Some(start), Some(end)) = (&self.start, &self.end) {
            out("counted_cpu_ms", (end.total - start.total).max(0.0) / 1e3);
            if let (Some(start), Some(end)) = (start.split, end.split) {
                out("counted_cpu_user_ms", (end.0 - start.0).max(0.0) / 1e3);
                out("counted_cpu_system_ms", (end.1 - start.1).max(0.0) / 1e3);
            }
        }
        if let Some(charged) = self.charged {
            out("charged_bytes", charged);
        }
        if let Some(most) = self.most {
            out("charged_peak_bytes", most);
        }
    }

    fn missing(&self) -> &[(&'static str, Unsupported)] {
        &self.missing
    }
}

impl ControlGroupProbe {
    fn add(&mut self, bytes: f64, out: &mut Vec<Sample>) {
        self.most = Some(self.most.map_or(bytes, |most| most.max(bytes)));
        out.push(Sample {
            metric: "charged_bytes",
            value: bytes,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> (tempfile::TempDir, Group) {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let group = Group(vec![
            PathBuf::from("/nonexistent"),
            directory.path().to_owned(),
        ]);
        (directory, group)
    }

    #[test]
    fn both_versions_are_read() {
        let (_two, two) = group(&[
            (
                "cpu.stat",
                "usage_usec 3000\nuser_usec 1000\nsystem_usec 2000\n",
            ),
            ("memory.current", "999\n"),
            (
                "memory.stat",
                "anon 100\nfile 5000\nkernel 20\nsock 3\nshmem 4\n",
            ),
        ]);
        let cpu = Cpu {
            total: 3000.0,
            split: Some((1000.0, 2000.0)),
        };
        assert_eq!((two.cpu(), two.memory()), (Some(cpu), Some(127.0)));
        let (_one, one) = group(&[
            ("cpuacct.usage", "3000000\n"),
            ("cpuacct.usage_user", "1000000\n"),
            ("cpuacct.usage_sys", "2000000\n"),
            ("memory.stat", "cache 5000\nrss 100\nshmem 4\n"),
            ("memory.kmem.usage_in_bytes", "20\n"),
            ("memory.kmem.tcp.usage_in_bytes", "3\n"),
        ]);
        assert_eq!((one.cpu(), one.memory()), (Some(cpu), Some(127.0)));
        let (_none, none) = group(&[("memory.stat", "anon 100\n")]);
        assert_eq!((none.cpu(), none.memory()), (None, None));
    }
}
