//! System calls by name, through the kernel's tracepoints.
//!
//! Every call is counted as it enters the kernel, so the counts are exact; only `exit_group` and the like never leave
//! it again. The total comes from `raw_syscalls:sys_enter`, the names from `syscalls:sys_enter_NAME`. All are in one
//! group, so that a total and its parts cover the same time.
//!
//! eBPF would count all names with one program, but it needs more rights than counting one's own processes. With 1000
//! forked children, the memory of some thirty counters is negligible next to the children's own. But the counters cost
//! time: each call takes the kernel's slow entry path, and each thread switch moves the counters. So they have trials
//! of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::events::{Events, explain};
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use throng_record::metrics::syscalls::CALLS;
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::perf::{Event, Group};

/// The total.
const ALL: &str = "syscalls";
/// The calls without a name here.
const OTHERS: &str = "syscalls_other";

/// Where the tracepoints are.
pub(crate) struct Tracepoints(PathBuf);

impl Tracepoints {
    /// Finds them in tracefs, wherever it is mounted.
    pub(crate) fn find() -> Result<Self, Unsupported> {
        Self::find_in(&["/sys/kernel/tracing", "/sys/kernel/debug/tracing"])
    }

    fn find_in(places: &[&str]) -> Result<Self, Unsupported> {
        let mut forbidden = None;
        let mut mounted = None;
        for place in places {
            let tracepoints = Self(Path::new(place).join("events"));
            match tracepoints.id("raw_syscalls/sys_enter") {
                Ok(_) => return Ok(tracepoints),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    forbidden = Some(*place);
                }
                Err(_) if tracepoints.0.exists() => mounted = Some(*place),
                Err(_) => {}
            }
        }
        Err(match (forbidden, mounted) {
            (Some(place), _) => Unsupported {
                reason: format!("tracepoints cannot be read: {place} is for root only"),
                remedy: format!(
                    "measure as root, or as root: mount -o remount,mode=755 {place} and sysctl \
                     kernel.perf_event_paranoid=1"
                ),
            },
            (None, Some(place)) => Unsupported {
                reason: format!("there are no tracepoints of system calls in {place}"),
                remedy: "run a kernel built with CONFIG_FTRACE_SYSCALLS".to_owned(),
            },
            (None, None) => Unsupported {
                reason: "tracepoints cannot be found: tracefs is not mounted".to_owned(),
                remedy: "as root: mount -t tracefs nodev /sys/kernel/tracing".to_owned(),
            },
        })
    }

    pub(crate) fn id(&self, tracepoint: &str) -> io::Result<u64> {
        let text = std::fs::read_to_string(self.0.join(tracepoint).join("id"))?;
        text.trim().parse().map_err(io::Error::other)
    }

    /// The counter of all calls.
    fn open_total(&self) -> io::Result<Events> {
        let total = self.id("raw_syscalls/sys_enter")?;
        Events::open(ALL, Event::tracepoint(total))
    }

    /// A group of the total and of the names that this kernel has.
    fn open(&self) -> io::Result<Events> {
        let mut group = self.open_total()?;
        for (call, metric) in CALLS {
            if let Ok(id) = self.id(&format!("syscalls/sys_enter_{call}")) {
                group.add(metric, Event::tracepoint(id))?;
            }
        }
        Ok(group)
    }
}

/// The kind of probe `syscalls`.
pub(super) const SYSCALLS: ProbeKind = ProbeKind {
    info: Info {
        name: "syscalls",
        summary: "system calls by name, in trials of their own",
    },
    supported,
    metrics: metrics::syscalls::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Profiled,
    by_default: true,
    make: || Box::new(SyscallsProbe(None)),
};

fn supported() -> Result<(), Unsupported> {
    let opened = Tracepoints::find()?.open_total();
    opened.map(drop).map_err(|error| explain(&error))
}

struct SyscallsProbe(Option<Events>);

/// The counters of the last trial, kept open. Closing the last counter of a tracepoint takes some 40 ms, until no CPU
/// is in it any more: without this, more than a second for all of them in each trial.
static LAST: Mutex<Option<Group>> = Mutex::new(None);

impl Drop for SyscallsProbe {
    fn drop(&mut self) {
        if let Some(events) = self.0.take() {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            *last = Some(events.into_group());
        }
    }
}

impl Probe for SyscallsProbe {
    fn prepare(&mut self) -> Result<(), Unsupported> {
        let opened = Tracepoints::find()?.open();
        self.0 = Some(opened.map_err(|error| explain(&error))?);
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        _: &Target,
        _: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        if let Some(events) = &mut self.0 {
            events.sample(moment)?;
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let Some(events) = &self.0 else {
            return;
        };
        for (metric, count) in with_others(&events.counts().collect::<Vec<_>>()) {
            out(metric, count);
        }
    }
}

/// The total, the named calls that occurred, and the others.
fn with_others(counts: &[(&'static str, f64)]) -> Vec<(&'static str, f64)> {
    let Some((total, named)) = counts.split_first() else {
        return Vec::new();
    };
    let mut all = vec![*total];
    all.extend(named.iter().filter(|(_, count)| *count > 0.0));
    let known: f64 = named.iter().map(|(_, count)| count).sum();
    if total.1 > known {
        all.push((OTHERS, total.1 - known));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_total() {
        let counts = [(ALL, 10.0), ("syscalls_read", 7.0), ("syscalls_poll", 0.0)];
        assert_eq!(
            with_others(&counts),
            [(ALL, 10.0), ("syscalls_read", 7.0), (OTHERS, 3.0)]
        );
        assert_eq!(with_others(&counts[..1]), [(ALL, 10.0), (OTHERS, 10.0)]);
        assert_eq!(with_others(&[]), []);
    }

    #[test]
    fn tracepoints_are_found_where_they_are_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().to_str().unwrap();
        let reason = || {
            Tracepoints::find_in(&["/nowhere", here])
                .err()
                .unwrap()
                .remedy
        };
        assert!(reason().contains("mount -t tracefs nodev /sys/kernel/tracing"));
        std::fs::create_dir_all(directory.path().join("events")).unwrap();
        assert!(reason().contains("CONFIG_FTRACE_SYSCALLS"));
        let point = directory.path().join("events/raw_syscalls/sys_enter");
        std::fs::create_dir_all(&point).unwrap();
        std::fs::write(point.join("id"), "389\n").unwrap();
        let found = Tracepoints::find_in(&["/nowhere", here]).unwrap();
        assert_eq!(found.id("raw_syscalls/sys_enter").unwrap(), 389);
    }
}
