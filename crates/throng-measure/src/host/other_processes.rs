//! Other processes that used CPU time when measuring began.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use procfs::process::{Stat, all_processes};

use throng_record::OtherProcess;

/// The shortest useful interval between two readings: CPU time comes in ticks of 10 ms.
const SHORTEST: Duration = Duration::from_millis(300);
/// Minimum CPU share to be named.
const LEAST_PERCENT: f64 = 5.0;
/// Maximum number of names.
const MOST: usize = 5;

/// The CPU time of all processes at one moment.
pub(crate) struct Watch {
    at: Instant,
    ticks: BTreeMap<Process, u64>,
}

/// A process: its ID and its start time, since IDs are reused.
type Process = (i32, u64);

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            at: Instant::now(),
            ticks: others()
                .map(|stat| (process(&stat), ticks(&stat)))
                .collect(),
        }
    }

    /// The processes that used the most CPU time since the start, busiest first. Waits a moment if it was only just
    /// now.
    pub(crate) fn busiest(self) -> Vec<OtherProcess> {
        std::thread::sleep(SHORTEST.saturating_sub(self.at.elapsed()));
        let elapsed_s = self.at.elapsed().as_secs_f64();
        let used = others().map(|stat| {
            let before = self.ticks.get(&process(&stat)).copied();
            (
                stat.comm.clone(),
                ticks(&stat) - before.unwrap_or(0).min(ticks(&stat)),
            )
        });
        let per_second = procfs::ticks_per_second().max(1) as f64;
        busiest(used, elapsed_s * per_second)
    }
}

/// The busiest processes by name, relative to `elapsed` ticks of one CPU.
fn busiest(used: impl Iterator<Item = (String, u64)>, elapsed: f64) -> Vec<OtherProcess> {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for (name, ticks) in used {
        *by_name.entry(name).or_default() += ticks;
    }
    let percent = |ticks: u64| (100.0 * ticks as f64 / elapsed).round();
    let named = by_name.into_iter().map(|(name, ticks)| OtherProcess {
        name,
        cpu_percent: percent(ticks),
    });
    let mut busy: Vec<OtherProcess> = named
        .filter(|process| process.cpu_percent >= LEAST_PERCENT)
        .collect();
    busy.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    busy.truncate(MOST);
    busy
}

/// Every process except this one and its children.
fn others() -> impl Iterator<Item = Stat> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let processes = all_processes().into_iter().flatten().flatten();
    let stats = processes.filter_map(|process| process.stat().ok());
    stats.filter(move |stat| stat.pid != own && stat.ppid != own)
}

fn process(stat: &Stat) -> Process {
    (stat.pid, stat.starttime)
}

fn ticks(stat: &Stat) -> u64 {
    stat.utime + stat.stime
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_name_count_together_and_idle_ones_not_at_all() {
        let used = [("cc", 10), ("idle", 1), ("cc", 20), ("make", 6), ("a", 7)]
            .map(|(name, ticks)| (name.to_owned(), ticks));
        let found = busiest(used.into_iter(), 100.0);
        let busy: Vec<(&str, f64)> = found
            .iter()
            .map(|process| (process.name.as_str(), process.cpu_percent))
            .collect();
        assert_eq!(busy, [("cc", 30.0), ("a", 7.0), ("make", 6.0)]);
        let many = (0..20).map(|number| (format!("p{number}"), 50));
        assert_eq!(busiest(many, 100.0).len(), MOST);
    }

    #[test]
    fn own_work_is_not_that_of_others() {
        let own = std::process::id().cast_signed();
        assert!(others().all(|stat| stat.pid != own));
        assert!(others().count() > 0);
    }
}
