//! A control group that may have so many threads and processes.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// It goes with this, when no process is in it any more.
pub(crate) struct SmallGroup(PathBuf);

impl SmallGroup {
    /// None, with the reason printed, where none can be made.
    pub(crate) fn make(pids: u32) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Relaxed);
        let name = format!("throng-test-{}-{number}", std::process::id());
        let made = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"]
            .iter()
            .find_map(|mount| {
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

    /// What a shell has to run to be in it.
    pub(crate) fn enter(&self) -> String {
        format!("echo $$ > {}/cgroup.procs", self.0.display())
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
