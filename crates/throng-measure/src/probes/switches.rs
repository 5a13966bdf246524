//! Context switches, the time that threads wait for a CPU, and page faults.
//!
//! The kernel counts switches per thread (`/proc/PID/task/TID/status`), and the time that a thread was ready to run but had no
//! CPU (`/proc/PID/task/TID/schedstat`, its second number). Threads that end in between are missed. So reading thousands of threads takes a while.
//! The counts are read before and after the measurement, and the values are rates over the time in between, during
//! which the load was the same. If reading is cheap, as for one process with a few threads, samples are also taken
//! during the measurement, for the time series.

use std::path::Path;
use std::time::{Duration, Instant};

use procfs::process::Process;

use super::pace::Pace;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target, Tree, need_proc};
use crate::processes::sleeping;
use throng_record::{Purpose, metrics};
use throng_spec::registry::Info;

/// The kind of probe `switches`.
pub(super) const SWITCHES: ProbeKind = ProbeKind {
    info: Info {
        name: "switches",
        summary: "context switches, voluntary and not, waits for a CPU, and page faults",
    },
    supported: need_proc,
    metrics: metrics::switches::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(SwitchesProbe::default()),
};

/// Minimum time between two readings within the measured phase.
const INTERVAL: Duration = Duration::from_secs(1);

struct SwitchesProbe {
    pace: Pace,
    before: Option<(Instant, Counts)>,
    last: Option<(Instant, Counts)>,
    ended: Option<Instant>,
    after: Option<Counts>,
}

impl Default for SwitchesProbe {
    fn default() -> Self {
        Self {
            pace: Pace::new(INTERVAL),
            before: None,
            last: None,
            ended: None,
            after: None,
        }
    }
}

/// What the kernel counted for all threads until now.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) minor: u64,
    pub(crate) major: u64,
    /// How long threads were ready to run, and waited for a CPU; `None` if the kernel does not count that.
    pub(crate) waited_ns: Option<u64>,
}

/// How long all threads together were ready to run, and waited for a CPU; `None` if there are more than `most`, or the
/// kernel does not count that.
pub(crate) fn waited_of_few(tree: &Tree, most: usize) -> Option<u64> {
    let mut threads = 0;
    let mut sum = 0;
    for pid in tree.pids() {
        for thread in sleeping::threads(*pid) {
            threads += 1;
            if threads > most {
                return None;
            }
            sum += waited_ns(pid.cast_signed(), thread.cast_signed())?;
        }
    }
    Some(sum)
}

pub(crate) fn read(tree: &Tree) -> Counts {
    let mut counts = Counts {
        waited_ns: Some(0),
        ..Counts::default()
    };
    for (process, stat) in tree.stats() {
        counts.minor += stat.minflt + stat.cminflt;
        counts.major += stat.majflt + stat.cmajflt;
        add_switches(&process, &mut counts);
    }
    counts
}

fn add_switches(process: &Process, counts: &mut Counts) {
    let Ok(tasks) = process.tasks() else {
        return;
    };
    for task in tasks.flatten() {
        // A thread that ended has neither.
        let Ok(status) = task.status() else {
            continue;
        };
        counts.voluntary += status.voluntary_ctxt_switches.unwrap_or(0);
        counts.involuntary += status.nonvoluntary_ctxt_switches.unwrap_or(0);
        let sum = counts.waited_ns.zip(waited_ns(task.pid, task.tid));
        counts.waited_ns = sum.map(|(sum, waited)| sum + waited);
    }
}

/// How long a thread was ready to run, and waited for a CPU.
fn waited_ns(pid: i32, tid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"));
    match text {
        Ok(text) => text.split_whitespace().nth(1)?.parse().ok(),
        // It ended since it was listed.
        Err(_) => Path::new("/proc/self/schedstat").exists().then_some(0),
    }
}

impl Probe for SwitchesProbe {
    fn sample(
        &mut self,
        moment: Moment,
        Target { tree, .. }: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        match moment {
            Moment::Before => {
                self.before = Some((at, self.pace.sample(at, || read(tree))));
                self.last = self.before;
            }
            Moment::Start => self.pace.wait_from(at),
            Moment::Tick if self.pace.is_due(at) => {
                let counts = self.pace.sample(at, || read(tree));
                if let Some((from, before)) = self.last.replace((at, counts)) {
                    let elapsed = at.duration_since(from).as_secs_f64();
                    rates(&before, &counts, elapsed, &mut |metric, value| {
                        out.push(Sample { metric, value });
                    });
                }
            }
            Moment::End => self.ended = Some(at),
            Moment::After => self.after = Some(read(tree)),
            Moment::Connect | Moment::Tick => {}
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
        rates(&before, &after, elapsed, out);
    }
}

/// Growth of each count per second.
fn rates(before: &Counts, after: &Counts, elapsed: f64, out: &mut dyn FnMut(&'static str, f64)) {
    if elapsed <= 0.0 {
        return;
    }
    let mut rate = |name, from: u64, to: u64| out(name, to.saturating_sub(from) as f64 / elapsed);
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
    if let Some((before, after)) = before.waited_ns.zip(after.waited_ns) {
        let waited_s = after.saturating_sub(before) as f64 / 1e9;
        out("threads_waiting_for_cpu", waited_s / elapsed);
    }
}
