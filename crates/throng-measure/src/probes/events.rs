//! Shared by probes that count kernel events: a group of counters, each with its metric, read when the clients are
//! idle.

use std::io;
use std::time::{Duration, Instant};

use super::Moment;
use throng_spec::registry::Unsupported;
use throng_sys::perf::{Counts, Event, Group};

/// A group of counters and what they counted.
pub(super) struct Events {
    group: Group,
    metrics: Vec<&'static str>,
    rest: Option<(Instant, Counts)>,
    counted: Option<(Duration, Counts)>,
}

impl Events {
    /// Opens a group of one counter, for the calling thread and whatever it starts from now on.
    pub(super) fn open(metric: &'static str, leader: Event) -> io::Result<Self> {
        Ok(Self {
            group: Group::open(leader)?,
            metrics: vec![metric],
            rest: None,
            counted: None,
        })
    }

    /// Adds a counter.
    pub(super) fn add(&mut self, metric: &'static str, event: Event) -> io::Result<()> {
        self.group.add(event)?;
        self.metrics.push(metric);
        Ok(())
    }

    /// Reads the counters while the clients are idle: before they start, and after their last replies. The counts thus
    /// belong to a known number of replies, however late this process is.
    pub(super) fn sample(&mut self, moment: Moment) -> io::Result<()> {
        match moment {
            Moment::Before => self.rest = Some((Instant::now(), self.group.read()?)),
            Moment::After => {
                if let Some((began, before)) = &self.rest {
                    let lasted = began.elapsed();
                    self.counted = Some((lasted, self.group.read()?.since(before)));
                }
            }
            Moment::Connect | Moment::Start | Moment::Tick | Moment::End => {}
        }
        Ok(())
    }

    /// Whether the CPU can currently count the whole group at once.
    pub(super) fn runs(&self, limit: Duration) -> io::Result<bool> {
        let began = Instant::now();
        while began.elapsed() < limit {
            if !self.group.read()?.running.is_zero() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts by metric: none if the CPU never had a counter free, and scaled up if it had one only part of the time.
    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let values = self.counted.iter().flat_map(|(_, counts)| {
            let share = counts.share();
            let values = counts.values.iter();
            values
                .filter(move |_| share > 0.0)
                .map(move |value| *value as f64 / share)
        });
        self.metrics.iter().copied().zip(values)
    }

    /// The count of one metric.
    pub(super) fn count(&self, metric: &str) -> Option<f64> {
        let mut counts = self.counts();
        counts
            .find(|(name, _)| *name == metric)
            .map(|(_, count)| count)
    }

    /// The time between the two readings.
    pub(super) fn lasted(&self) -> Option<Duration> {
        self.counted.as_ref().map(|(lasted, _)| *lasted)
    }

    /// The share of that time in which the counters ran.
    pub(super) fn share(&self) -> f64 {
        self.counted
            .as_ref()
            .map_or(1.0, |(_, counts)| counts.share())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.metrics.len()
    }

    /// The counters themselves.
    pub(super) fn into_group(self) -> Group {
        self.group
    }
}

/// What an error from opening a counter means.
pub(crate) fn explain(error: &io::Error) -> Unsupported {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let root = rustix::process::geteuid().is_root();
    explain_with(error, level, root)
}

/// The same, given kernel.perf_event_paranoid and whether we are root.
fn explain_with(error: &io::Error, level: Option<i32>, root: bool) -> Unsupported {
    let unsupported = |reason: &str, remedy: &str| Unsupported {
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    match (error.raw_os_error(), level) {
        (Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO), _) => unsupported(
            "the CPU has no such counter, or a hypervisor keeps it to itself",
            "measure on bare metal, or give the virtual machine counters (KVM: -cpu host,pmu=on)",
        ),
        (Some(libc::EINVAL | libc::ENOSPC), _) => unsupported(
            "the CPU cannot count it beside the other counters",
            "end what else uses its counters (as root: sysctl kernel.nmi_watchdog=0)",
        ),
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 1 && !root => Unsupported {
            reason: format!(
                "counting is for privileged users here (kernel.perf_event_paranoid is {level})"
            ),
            remedy: "measure as root, or as root: sysctl kernel.perf_event_paranoid=1".to_owned(),
        },
        (Some(libc::EACCES | libc::EPERM), _) => unsupported(
            "perf_event_open() is forbidden, most likely by a seccomp filter or missing capabilities",
            "let the container count (docker run --cap-add PERFMON, --security-opt seccomp=FILE)",
        ),
        (Some(libc::ENOSYS), _) => unsupported(
            "this kernel has no perf_event_open(), or a seccomp filter hides it",
            "run a kernel built with CONFIG_PERF_EVENTS; in a sandbox, outside of it",
        ),
        (Some(libc::EMFILE | libc::ENFILE), _) => unsupported(
            "there is no descriptor left for a counter",
            "raise ulimit -n, or ask for fewer probes",
        ),
        _ => Unsupported {
            reason: format!("a counter cannot be opened: {error}"),
            remedy: "see perf_event_open(2)".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(error: i32, level: Option<i32>, root: bool) -> String {
        explain_with(&io::Error::from_raw_os_error(error), level, root).to_string()
    }

    #[test]
    fn each_error_has_a_remedy() {
        assert!(explained(libc::ENOENT, Some(2), true).contains("bare metal"));
        assert!(explained(libc::EOPNOTSUPP, None, false).contains("hypervisor"));
        assert!(explained(libc::EACCES, Some(2), false).contains("perf_event_paranoid=1"));
        assert!(explained(libc::EACCES, Some(4), false).contains("paranoid is 4"));
        assert!(explained(libc::EPERM, Some(2), true).contains("seccomp"));
        assert!(explained(libc::EPERM, Some(-1), false).contains("PERFMON"));
        assert!(explained(libc::ENOSYS, None, false).contains("CONFIG_PERF_EVENTS"));
        assert!(explained(libc::EMFILE, None, false).contains("ulimit"));
        assert!(explained(libc::EINVAL, None, false).contains("watchdog"));
        assert!(explained(libc::EIO, None, false).contains("perf_event_open(2)"));
    }

    #[test]
    fn an_event_is_counted_from_rest_to_rest() {
        let Ok(mut events) = Events::open("task_clock", Event::TASK_CLOCK)
            .inspect_err(|error| eprintln!("skipped: {}", explain(error)))
        else {
            return;
        };
        // Others may have taken the remaining counters or descriptors since.
        if let Err(error) = events.add("page_faults", Event::PAGE_FAULTS) {
            eprintln!("skipped: {}", explain(&error));
            return;
        }
        events.sample(Moment::After).unwrap();
        assert_eq!(events.counts().count(), 0);
        assert_eq!(events.lasted(), None);
        events.sample(Moment::Before).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2) {}
        events.sample(Moment::After).unwrap();
        assert!(events.lasted().unwrap() >= Duration::from_millis(2));
        assert!(events.count("task_clock").unwrap() > 0.0);
        assert!(events.count("page_faults").is_some());
        assert_eq!(events.count("cycles"), None);
    }

    #[test]
    fn multiplexed_counts_are_scaled() {
        let Ok(mut events) = Events::open("task_clock", Event::TASK_CLOCK)
            .inspect_err(|error| eprintln!("skipped: {}", explain(error)))
        else {
            return;
        };
        let mut counts = Counts {
            values: vec![50],
            enabled: Duration::from_millis(10),
            running: Duration::from_millis(5),
        };
        events.counted = Some((Duration::from_millis(10), counts.clone()));
        assert_eq!(events.count("task_clock"), Some(100.0));
        counts.running = Duration::ZERO;
        events.counted = Some((Duration::from_millis(10), counts));
        assert_eq!(events.count("task_clock"), None);
    }
}
