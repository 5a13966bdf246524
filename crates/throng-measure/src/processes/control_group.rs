//! The control groups of a process, of either version: their limits, and how often these were hit (`cgroups(7)`).

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Version 1 writes the largest number of pages for "no limit".
const NO_LIMIT: u64 = 1 << 62;

/// The control groups of a process for one resource, from its own up to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    directories: Vec<PathBuf>,
}

impl Groups {
    /// The groups of a process for `controller`: "cpu", "memory", "pids" or that of devices.
    pub(crate) fn of(pid: u32, controller: &str) -> Self {
        let lines = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let mut directories = Vec::new();
        for (mount, path) in mounted(&lines, controller) {
            let directory = Path::new(MOUNT).join(mount);
            let own = directory.join(path.trim_start_matches('/'));
            let up = own
                .ancestors()
                .take_while(|group| group.starts_with(&directory));
            directories.extend(up.filter(|group| group.is_dir()).map(Path::to_owned));
        }
        Self { directories }
    }

    /// The smallest number in files of these names, as far as they exist; "max" is no limit.
    pub(crate) fn least(&self, names: &[&str]) -> Option<u64> {
        self.numbers(names).min()
    }

    /// The smallest of these numbers; the largest possible one is no limit.
    pub(crate) fn least_limit(&self, names: &[&str]) -> Option<u64> {
        self.least(names).filter(|least| *least < NO_LIMIT)
    }

    /// The smallest of these numbers as text, "max" if none of the existing files has a limit.
    pub(crate) fn tightest(&self, names: &[&str]) -> Option<String> {
        let mut files = self
            .directories
            .iter()
            .flat_map(|group| names.iter().map(|name| group.join(name)));
        let limited = files.any(|file| file.is_file());
        let least = self.least_limit(names);
        limited.then(|| least.map_or("max".to_owned(), |least| least.to_string()))
    }

    /// The tightest CPU limit, in the form of `cpu.max` (version 2): quota and period in microseconds.
    pub(crate) fn cpu_time(&self) -> Option<String> {
        let read = |group: &Path, name: &str| fs::read_to_string(group.join(name)).ok();
        let all = self.directories.iter().filter_map(|group| {
            let of_one = ["cpu.cfs_quota_us", "cpu.cfs_period_us"];
            let text = read(group, "cpu.max").or_else(|| {
                let [quota, period] = of_one.map(|name| read(group, name));
                Some(format!("{} {}", quota?.trim(), period?.trim()))
            })?;
            Some(text.trim().to_owned())
        });
        tightest_share(all)
    }

    /// The CPUs that the tightest quota allows; `None` without a quota.
    pub(crate) fn cpu_quota(&self) -> Option<f64> {
        cpus(&self.cpu_time()?)
    }

    /// The smallest weight for CPU time, where 100 is usual.
    pub(crate) fn cpu_weight(&self) -> Option<u64> {
        let of_one = self
            .least(&["cpu.shares"])
            .map(|shares| shares * 100 / 1024);
        of_one.into_iter().chain(self.least(&["cpu.weight"])).min()
    }

    /// The first limit in a file of these names, which is empty without a limit.
    pub(crate) fn first_line(&self, names: &[&str]) -> Option<String> {
        let mut files = self
            .directories
            .iter()
            .flat_map(|group| names.iter().map(|name| group.join(name)));
        files.find_map(|file| {
            let text = fs::read_to_string(file).ok()?;
            text.lines().next().map(str::to_owned)
        })
    }

    /// How the CPU quota of each of these groups has stopped processes so far.
    pub(crate) fn throttling(&self) -> Vec<Throttling> {
        let groups = self.directories.iter();
        let of_group = groups.map(|group| {
            let text = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
            Throttling::read(&text)
        });
        of_group.collect()
    }

    /// The largest number in files of these names.
    pub(crate) fn greatest(&self, names: &[&str]) -> Option<u64> {
        self.numbers(names).max()
    }

    fn numbers<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = u64> + 'a {
        let files = self
            .directories
            .iter()
            .flat_map(|group| names.iter().map(|name| group.join(name)));
        files.filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
    }

    /// The largest count after `key` in files of this name: "max 3".
    pub(crate) fn count(&self, names: &[&str], key: &str) -> Option<u64> {
        let files = self
            .directories
            .iter()
            .flat_map(|group| names.iter().map(move |name| group.join(name)));
        let counts = files.filter_map(|file| count(&fs::read_to_string(file).ok()?, key));
        counts.max()
    }
}

/// How often and for how long a CPU quota has stopped the processes of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Throttling {
    pub(crate) periods: u64,
    pub(crate) throttled: u64,
    pub(crate) throttled_us: u64,
}

impl Throttling {
    /// Reads `cpu.stat`. Version 1 counts nanoseconds.
    fn read(text: &str) -> Self {
        let of = |key: &str| count(text, key);
        let in_version_1 = || Some(of("throttled_time")? / 1000);
        Self {
            periods: of("nr_periods").unwrap_or(0),
            throttled: of("nr_throttled").unwrap_or(0),
            throttled_us: of("throttled_usec").or_else(in_version_1).unwrap_or(0),
        }
    }

    /// Of the same groups before and after, the one that was stopped most often in between.
    pub(crate) fn between(before: &[Self], after: &[Self]) -> Self {
        let grown = before.iter().zip(after).map(|(before, after)| Self {
            periods: after.periods.saturating_sub(before.periods),
            throttled: after.throttled.saturating_sub(before.throttled),
            throttled_us: after.throttled_us.saturating_sub(before.throttled_us),
        });
        let most = grown.max_by_key(|grown| (grown.throttled, grown.periods));
        most.unwrap_or_default()
    }
}

/// The processes in a control group and its subgroups, by its directory.
pub(crate) fn members(directory: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    for group in below(directory) {
        let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        pids.extend(
            text.lines()
                .filter_map(|line| line.trim().parse::<u32>().ok()),
        );
    }
    pids.sort_unstable();
    pids.dedup();
    // Processes of another PID namespace are listed as 0.
    pids.retain(|pid| *pid > 0);
    pids
}

/// Maximum number of directories to search.
const MOST_DIRECTORIES: usize = 20_000;

/// A directory and all its descendants, without following links.
fn below(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut next = 0;
    while next < found.len() && found.len() < MOST_DIRECTORIES {
        let entries = fs::read_dir(&found[next]).into_iter().flatten().flatten();
        let inner: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        found.extend(inner);
        next += 1;
    }
    found
}

/// The directory of a control group with processes, named by its path below the mount point, as in
/// `/proc/PID/cgroup`, or by its full path.
pub(crate) fn named(path: &str) -> Option<PathBuf> {
    let whole = Path::new(path);
    let inside = path.trim_start_matches('/');
    let below = ["", "unified", "systemd", "pids", "memory"]
        .map(|mount| Path::new(MOUNT).join(mount).join(inside));
    let mut places = std::iter::once(whole.to_owned())
        .filter(|place| place.starts_with(MOUNT))
        .chain(below);
    places.find(|place| !members(place).is_empty())
}

/// The group of a systemd unit with processes.
pub(crate) fn of_unit(name: &str) -> Option<PathBuf> {
    let unit = unit_file(name);
    let all = below(Path::new(MOUNT)).into_iter();
    let mut named = all.filter(|place| place.file_name().is_some_and(|last| *last == *unit));
    named.find(|place| !members(place).is_empty())
}

/// The file name of a unit: ".service" may be left out.
fn unit_file(name: &str) -> String {
    const ENDINGS: [&str; 4] = [".service", ".scope", ".slice", ".socket"];
    if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        name.to_owned()
    } else {
        format!("{name}.service")
    }
}

/// Of the values "QUOTA PERIOD", the one with the smallest share; an invalid or negative quota is no limit.
fn tightest_share(all: impl Iterator<Item = String>) -> Option<String> {
    let shares = all.map(|text| (cpus(&text), text));
    let least = shares.min_by(|(a, _), (b, _)| {
        let none = f64::INFINITY;
        a.unwrap_or(none).total_cmp(&b.unwrap_or(none))
    });
    least.map(|(share, text)| share.map_or("max".to_owned(), |_| text))
}

/// The CPUs that "QUOTA PERIOD" allows.
fn cpus(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0).then(|| quota as f64 / period as f64)
}

/// The directories below the mount point where a controller may be, each with the path of the process's group there.
pub(crate) fn mounted<'a>(lines: &'a str, controller: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut places = Vec::new();
    for line in lines.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            // Version 2: mounted alone, or next to version 1.
            places.extend([("", path), ("unified", path)]);
        } else if controllers.split(',').any(|name| name == controller) {
            places.push((controllers, path));
        }
    }
    places
}

pub(crate) fn count(text: &str, key: &str) -> Option<u64> {
    let lines = text.lines();
    let mut found = lines.filter_map(|line| line.split_once(' ').filter(|(name, _)| *name == key));
    found.next()?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_versions_are_found() {
        let one = "9:name=systemd:/\n8:pids:/some/where\n3:cpu,memory:/\n0::/\n";
        assert_eq!(
            mounted(one, "pids"),
            [("pids", "/some/where"), ("", "/"), ("unified", "/")]
        );
        assert_eq!(mounted(one, "memory")[0], ("cpu,memory", "/"));
        let two = "0::/user.slice/session.scope\n";
        assert_eq!(mounted(two, "pids")[0], ("", "/user.slice/session.scope"));
        assert_eq!(mounted("nonsense\n", "pids"), []);
    }

    #[test]
    fn events_are_counts_behind_names() {
        let text = "low 0\nmax 12\noom 1\noom_kill 1\n";
        assert_eq!(count(text, "max"), Some(12));
        assert_eq!(count(text, "oom_kill"), Some(1));
        assert_eq!(count(text, "high"), None);
    }

    #[test]
    fn the_least_limit_on_the_way_up_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(root.path().join("pids.max"), "90\n").unwrap();
        fs::write(inner.join("pids.max"), "max\n").unwrap();
        let groups = Groups {
            directories: vec![inner.clone(), root.path().to_owned()],
        };
        assert_eq!(groups.least(&["pids.max"]), Some(90));
        fs::write(inner.join("pids.max"), "50\n").unwrap();
        assert_eq!(groups.least(&["pids.max"]), Some(50));
        assert_eq!(groups.least(&["memory.max"]), None);
        assert_eq!(groups.tightest(&["pids.max"]).as_deref(), Some("50"));
        assert_eq!(groups.tightest(&["memory.max"]), None);
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(groups.tightest(&["memory.max"]).as_deref(), Some("max"));
        let one = "memory.limit_in_bytes";
        fs::write(inner.join(one), "9223372036854771712\n").unwrap();
        assert_eq!(groups.tightest(&[one]).as_deref(), Some("max"));
    }

    #[test]
    fn the_processes_of_a_group_are_those_of_all_below_it() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.path().join("cgroup.procs"), "5\n0\n").unwrap();
        fs::write(inner.join("cgroup.procs"), "7\n6\n5\n").unwrap();
        assert_eq!(members(root.path()), [5, 6, 7]);
        assert_eq!(members(&root.path().join("none")), [0; 0]);
        assert_eq!(named("/no/such/group"), None);
        assert_eq!(unit_file("nginx"), "nginx.service");
        assert_eq!(unit_file("a.scope"), "a.scope");
    }

    #[test]
    fn the_least_share_of_the_cpus_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let groups = Groups {
            directories: vec![inner.clone(), root.path().to_owned()],
        };
        assert_eq!(groups.cpu_time(), None);
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        assert_eq!(groups.cpu_time().as_deref(), Some("max"));
        fs::write(root.path().join("cpu.cfs_quota_us"), "150000\n").unwrap();
        fs::write(root.path().join("cpu.cfs_period_us"), "100000\n").unwrap();
        assert_eq!(groups.cpu_time().as_deref(), Some("150000 100000"));
        fs::write(inner.join("cpu.max"), "50000 100000\n").unwrap();
        assert_eq!(groups.cpu_time().as_deref(), Some("50000 100000"));
        assert_eq!(groups.cpu_quota(), Some(0.5));
        fs::write(root.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        fs::write(inner.join("cpu.max"), "nonsense").unwrap();
        assert_eq!(groups.cpu_time().as_deref(), Some("max"));
        assert_eq!(groups.cpu_quota(), None);
    }

    /// Regression: a server that a quota had stopped in 319 of 341 periods was graded good.
    #[test]
    fn throttling_by_the_groups_own_or_a_parents_quota_is_counted() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let groups = Groups {
            directories: vec![inner.clone(), root.path().to_owned()],
        };
        let of_two = |throttled: u64| {
            let text = format!(
                "usage_usec 9\nnr_periods 341\nnr_throttled {throttled}\nthrottled_usec 7000\n"
            );
            fs::write(root.path().join("cpu.stat"), text).unwrap();
            groups.throttling()
        };
        let (before, after) = (of_two(0), of_two(319));
        assert_eq!(Throttling::between(&before, &after).throttled, 319);
        let of_one = "nr_periods 9\nnr_throttled 5\nthrottled_time 4000000\n";
        fs::write(inner.join("cpu.stat"), of_one).unwrap();
        let expected = Throttling {
            periods: 9,
            throttled: 5,
            throttled_us: 4000,
        };
        let after = groups.throttling();
        assert_eq!(after[0], expected);
        assert_eq!(Throttling::between(&before, &after[..1]), expected);
        assert_eq!(Throttling::between(&[], &[]), Throttling::default());
    }

    #[test]
    fn weights_of_both_versions_have_one_scale() {
        let root = tempfile::tempdir().unwrap();
        let groups = Groups {
            directories: vec![root.path().to_owned()],
        };
        assert_eq!(groups.cpu_weight(), None);
        fs::write(root.path().join("cpu.shares"), "1024\n").unwrap();
        assert_eq!(groups.cpu_weight(), Some(100));
        fs::write(root.path().join("cpu.weight"), "20\n").unwrap();
        assert_eq!(groups.cpu_weight(), Some(20));
        fs::write(root.path().join("io.max"), "").unwrap();
        assert_eq!(groups.first_line(&["io.max"]), None);
        fs::write(root.path().join("io.max"), "8:0 rbps=1024\n").unwrap();
        assert_eq!(
            groups.first_line(&["io.max"]).as_deref(),
            Some("8:0 rbps=1024")
        );
    }
}
