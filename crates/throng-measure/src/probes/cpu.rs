//! CPU time of the whole tree: threads, children, and children already reaped.
//!
//! The total comes from each process's CPU clock, to the nanosecond and with one system call per process
//! (`clock_getcpuclockid(3)`). The time that reaped children used comes from `/proc/PID/stat` of every parent. The
//! kernel forgets the time of children that no process waits for, but a control group of the server's own still counts it.
//! Both can only miss time, so the greater one is used.
//!
//! The split into user and system time is only known in ticks (`proc_pid_stat(5)`). So it is read over a slightly longer
//! time, including the warm-up, and its shares are applied to the total.

use std::time::{Duration, Instant};

use super::control_group::Group;
use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target, Tree, need_proc};
use crate::processes::control_group::{Groups, Throttling};
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::clock::process_cpu_time;

/// The kind of probe `cpu`.
pub(super) const CPU: ProbeKind = ProbeKind {
    info: Info {
        name: "cpu",
        summary: "CPU time, user and system, of all threads and processes, reaped ones too",
    },
    supported: need_proc,
    metrics: metrics::cpu::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(CpuProbe::default()),
};

struct CpuProbe {
    pace: Pace,
    group: Option<Group>,
    ticks_before: Option<Ticks>,
    /// Before the first client connects.
    first: Option<Reading>,
    start: Option<Reading>,
    last: Option<Reading>,
    end: Option<Reading>,
    /// The control groups whose CPU quota holds for it, and how that had stopped them at the start and at the end.
    quota: Groups,
    throttling: [Vec<Throttling>; 2],
    ticks_after: Option<Ticks>,
}

/// Minimum time between two samples: zero, each tick has one.
const INTERVAL: Duration = Duration::ZERO;

impl Default for CpuProbe {
    fn default() -> Self {
        Self {
            pace: Pace::new(INTERVAL),
            group: None,
            ticks_before: None,
            first: None,
            start: None,
            last: None,
            end: None,
            quota: Groups::default(),
            throttling: Default::default(),
            ticks_after: None,
        }
    }
}

/// Total CPU time at a moment.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    total: Duration,
    /// Of only the main process.
    parent: Duration,
    processes: usize,
}

/// User and system time in clock ticks.
#[derive(Clone, Copy)]
struct Ticks {
    user: u64,
    system: u64,
}

/// CPU time of a tree's processes until now, including those already reaped; `None` if no process is left.
pub(crate) fn total(tree: &Tree) -> Option<Duration> {
    Some(read(tree, None).ok()?.total)
}

fn read(tree: &Tree, group: Option<&Group>) -> anyhow::Result<Reading> {
    let at = Instant::now();
    let (mut total, mut parent) = (Duration::ZERO, Duration::ZERO);
    let mut processes = 0;
    // Before the processes' own time: a child that ends in between is missed, rather than counted twice.
    let reaped = tree
        .parent_stats()
        .map(|stat| stat.cutime.max(0) + stat.cstime.max(0));
    let per_second = procfs::ticks_per_second().max(1);
    total += Duration::from_secs_f64(reaped.sum::<i64>() as f64 / per_second as f64);
    for &pid in tree.pids() {
        if let Ok(used) = process_cpu_time(pid) {
            total += used;
            processes += 1;
            if pid == tree.main() {
                parent = used;
            }
        }
    }
    anyhow::ensure!(processes > 0, "the process {} is gone", tree.root());
    let counted = group.and_then(Group::cpu_time);
    Ok(Reading {
        at,
        total: total.max(counted.unwrap_or_default()),
        parent,
        processes,
    })
}

fn ticks(tree: &Tree) -> Ticks {
    let mut sum = Ticks { user: 0, system: 0 };
    for (_, stat) in tree.stats() {
        sum.user += stat.utime + stat.cutime.max(0).cast_unsigned();
        sum.system += stat.stime + stat.cstime.max(0).cast_unsigned();
    }
    sum
}

impl Probe for CpuProbe {
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        self.group = Group::of(target.tree.root());
        self.quota = Groups::of(target.tree.main(), "cpu");
        let first = read(&target.tree, self.group.as_ref()).map_err(|error| Unsupported {
            reason: format!("its CPU clock cannot be read: {error:#}"),
            remedy: "see whether the process runs, as a user that we may look at".to_owned(),
        })?;
        self.first = Some(first);
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, .. }: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let read = |processes| read(processes, self.group.as_ref());
        match moment {
            Moment::Before => self.ticks_before = Some(ticks(tree)),
            Moment::Start => {
                self.throttling[0] = self.quota.throttling();
                self.start = Some(self.pace.sample(at, || read(tree))?);
                self.last = self.start;
            }
            Moment::Tick if self.pace.is_due(at) => {
                let reading = self.pace.sample(at, || read(tree))?;
                if let Some(last) = self.last.replace(reading) {
                    let value = percent(&last, &reading);
                    out.push(Sample {
                        metric: "cpu_percent",
                        value,
                    });
                }
            }
            Moment::Connect | Moment::Tick => {}
            Moment::End => {
                self.end = Some(read(tree)?);
                self.throttling[1] = self.quota.throttling();
            }
            Moment::After => {
                self.ticks_after = Some(ticks(tree));
                // Processes started or ended meanwhile, so all of them are read. No requests were sent since the end,
                // so hardly any time was used. A control group needs no second look.
                let now = read(tree)?;
                if let Some(end) = &mut self.end
                    && now.processes != end.processes
                    && self.group.is_none()
                {
                    end.total = now.total;
                }
            }
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let (Some(first), Some(start), Some(end)) = (&self.first, &self.start, &self.end) else {
            return;
        };
        let total_ms = end.total.saturating_sub(start.total).as_secs_f64() * 1e3;
        out("cpu_ms", total_ms);
        out("cpu_percent", percent(start, end));
        out("run_cpu_percent", percent(first, end));
        out("parent_cpu_percent", share(first, end, |at| at.parent));
        if let Some(cpus) = self.quota.cpu_quota() {
            let [before, after] = &self.throttling;
            let grown = Throttling::between(before, after);
            out("cpu_quota_percent", cpus * 100.0);
            out("quota_periods", grown.periods as f64);
            out("throttled_periods", grown.throttled as f64);
            out("throttled_ms", grown.throttled_us as f64 / 1e3);
        }
        let (Some(before), Some(after)) = (self.ticks_before, self.ticks_after) else {
            return;
        };
        let user = after.user.saturating_sub(before.user) as f64;
        let system = after.system.saturating_sub(before.system) as f64;
        if user + system > 0.0 {
            out("cpu_user_ms", total_ms * user / (user + system));
            out("cpu_system_ms", total_ms * system / (user + system));
        }
    }
}

fn percent(from: &Reading, to: &Reading) -> f64 {
    share(from, to, |at| at.total)
}

/// The share of the time between two readings, in percent.
fn share(from: &Reading, to: &Reading, of: fn(&Reading) -> Duration) -> f64 {
    let elapsed = to.at.duration_since(from.at).as_secs_f64();
    let used = of(to).saturating_sub(of(from)).as_secs_f64();
    if elapsed > 0.0 {
        used / elapsed * 100.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// Regression: only the children of the first process counted. A shell that waited for the server hid all others.
    #[test]
    fn ended_children_of_a_server_behind_a_wrapper_count() {
        let work = "for i in 1 2 3; do head -c 20000000 /dev/zero | cksum > /dev/null; done; echo; read end";
        let mut wrapper = Command::new("sh")
            .args(["-c", "sh -c \"$0\"; true", work])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0];
        let mut output = wrapper.stdout.take().unwrap();
        output.read_exact(&mut line).unwrap();
        let mut tree = Tree::of(wrapper.id());
        tree.find_main(|_| false);
        assert_eq!(tree.main(), *tree.pids().last().unwrap());
        let server = tree.stats().last().unwrap().1;
        let reaped = (server.cutime + server.cstime) as f64 / procfs::ticks_per_second() as f64;
        assert!(reaped > 0.0, "{server:?}");
        let seen = read(&tree, None).unwrap();
        assert!(seen.total.as_secs_f64() >= reaped, "{reaped}");
        assert!(seen.parent < seen.total);
        let (user, system) = (server.cutime.cast_unsigned(), server.cstime.cast_unsigned());
        let split = ticks(&tree);
        assert!(split.user >= user && split.system >= system, "{server:?}");
        drop(wrapper.stdin.take());
        wrapper.wait().unwrap();
    }

    /// The kernel forgets children that no process waits for, but their control group counts them.
    #[test]
    fn time_that_only_the_control_group_counted_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let counted = |usage_us: u64| {
            let text = format!("usage_usec {usage_us}\n");
            std::fs::write(directory.path().join("cpu.stat"), text).unwrap();
            let group = Group(vec![directory.path().to_owned()]);
            read(&Tree::of(std::process::id()), Some(&group)).unwrap()
        };
        let more = Duration::from_hours(1000);
        assert_eq!(counted(more.as_micros() as u64).total, more);
        let less = counted(0);
        assert!(less.total >= less.parent && less.total < more);
    }
}
