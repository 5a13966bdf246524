//! A control group with a limit on threads and processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit for the last processes of a group to end.
const LIMIT: Duration = Duration::from_secs(30);
/// The prefix of all group names; the ID of the process that made the group follows.
const NAME: &str = "throng-test-";

/// Dropping it ends its processes and removes it.
pub(crate) struct SmallGroup(PathBuf);

impl SmallGroup {
    /// Prints why and returns `None` if no group can be made.
    pub(crate) fn make(pids: u32) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let name = format!("{NAME}{}-{number}", std::process::id());
        let made = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
            .iter()
            .find_map(|mount| {
                remove_abandoned(Path::new(mount));
                let group = PathBuf::from(mount).join(&name);
                fs::create_dir(&group).ok()?;
                let group = Self(group);
                fs::write(group.0.join("pids.max"), pids.to_string()).ok()?;
                Some(group)
            });
        if made.is_none() {
            println!("not tried: no control group that limits threads can be made here");
        }
        made
    }

    /// The shell command that enters the group.
    pub(crate) fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + LIMIT;
        while fs::remove_dir(&self.0).is_err() && self.0.exists() && Instant::now() < deadline {
            let members = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            for pid in members
                .lines()
                .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            {
                let _ = kill_process(pid, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Removes the empty groups of test programs that were killed.
fn remove_abandoned(mount: &Path) {
    for group in fs::read_dir(mount).into_iter().flatten().flatten() {
        let name = group.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(NAME))
            .and_then(|rest| rest.split('-').next());
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(group.path());
        }
    }
}
