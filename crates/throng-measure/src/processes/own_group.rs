//! Control groups of our own (cgroups(7)): one for a run, and inside it one for each started process. Everything that
//! a server starts is born into its group and cannot leave it by leaving tree, session or environment. So all of it
//! can be ended, even by the watchdog, and the kernel itself accounts for its CPU time and memory.
//!
//! They are created below throng's own group, if permitted; that group itself is not changed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::claim::{self, Claim};
use super::control_group::members;
use throng_spec::registry::Unsupported;
use throng_sys::spawn;

/// Prefix of our groups' names.
const NAME: &str = "throng.";
/// Time limit for a group to become empty.
const LIMIT: Duration = Duration::from_secs(2);

/// The group of a run, in each useful hierarchy. Dropping it ends its members.
#[derive(Debug)]
pub(crate) struct RunGroup {
    directories: Vec<PathBuf>,
    /// Dropped last, after the members have ended.
    _claims: Vec<Claim>,
    next: AtomicU32,
}

impl RunGroup {
    /// Creates the group of a run, and ends the groups whose throng was killed together with its watchdog.
    ///
    /// # Errors
    /// Why none can be created here.
    pub(crate) fn make(mark: &str) -> Result<Self, Unsupported> {
        let text =
            |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let places = places(&text("mountinfo"), &text("cgroup"));
        let mut directories: Vec<PathBuf> = Vec::new();
        let mut claims = Vec::new();
        let mut refused = None;
        for place in &places {
            // Version 1 has several hierarchies; one that counts memory is enough if version 2 counts the rest.
            if !place.is_useful(&directories) {
                continue;
            }
            for (abandoned, _claim) in claim::abandoned(&place.directory, NAME) {
                end_all(&[abandoned]);
            }
            let prefix = format!("{NAME}{mark}-");
            match Claim::create(&DirBuilder::new(), &place.directory, &prefix) {
                Ok((directory, claim)) => {
                    claims.push(claim);
                    // Parent of the groups of processes; it has no processes itself.
                    let _ = fs::write(directory.join("cgroup.subtree_control"), "+memory");
                    directories.push(directory);
                }
                Err(error) => refused = refused.or(Some((place.directory.clone(), error))),
            }
        }
        if !directories.is_empty() {
            return Ok(Self {
                directories,
                _claims: claims,
                next: AtomicU32::new(0),
            });
        }
        Err(match refused {
            Some((place, error)) => Unsupported {
                reason: format!("cannot create a control group in {}: {error}", place.display()),
                remedy: "run as root, or in a group that is yours: systemd-run --user --scope -p Delegate=yes throng ..."
                    .to_owned(),
            },
            None => Unsupported {
                reason: "no control groups are mounted".to_owned(),
                remedy: "as root: mount -t cgroup2 none /sys/fs/cgroup".to_owned(),
            },
        })
    }

    /// Its directories, one per hierarchy.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Creates a group in it for the process of `command` and its descendants; `None` if that fails.
    pub(crate) fn create_for(&self, command: &mut Command) -> Option<OwnGroup> {
        let name = self.next.fetch_add(1, Relaxed).to_string();
        let mut group = OwnGroup::default();
        let mut doors: Vec<OwnedFd> = Vec::new();
        for directory in &self.directories {
            let own = directory.join(&name);
            fs::create_dir(&own).ok()?;
            let door = OpenOptions::new()
                .write(true)
                .open(own.join("cgroup.procs"));
            group.directories.push(own);
            doors.push(door.ok()?.into());
        }
        spawn::enter(command, doors);
        Some(group)
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        end_all(&self.directories);
    }
}

/// The group of a started process. Dropping it ends its members.
#[derive(Debug, Default)]
pub(crate) struct OwnGroup {
    directories: Vec<PathBuf>,
    /// Whether remaining processes live on, until the group of the run ends.
    outlived: bool,
}

impl OwnGroup {
    /// Its directories, one per hierarchy.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Lets remaining processes live on.
    pub(crate) fn is_outlived(&mut self) {
        self.outlived = true;
    }
}

impl Drop for OwnGroup {
    fn drop(&mut self) {
        if !self.outlived {
            return end_all(&self.directories);
        }
        for directory in &self.directories {
            let _ = fs::remove_dir(directory); // fails if something is left in it
        }
    }
}

/// Ends all members of these groups and their subgroups, and removes the groups.
pub fn end_all(directories: &[PathBuf]) {
    let deadline = Instant::now() + LIMIT;
    let mut rest = Duration::from_micros(100);
    loop {
        let left = directories.iter().filter(|directory| !is_ended(directory));
        if left.count() == 0 || Instant::now() >= deadline {
            return;
        }
        std::thread::sleep(rest);
        rest = (rest * 2).min(Duration::from_millis(5));
    }
}

/// Kills all members of a group and removes it; returns whether it is gone.
fn is_ended(directory: &Path) -> bool {
    if !directory.is_dir() {
        return true;
    }
    let pids = members(directory);
    if !pids.is_empty() && !kill_at_once(directory) {
        for pid in pids {
            kill(pid, directory);
        }
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for group in inner {
        let _ = fs::remove_dir(group.path());
    }
    fs::remove_dir(directory).is_ok()
}

/// Lets the kernel kill all members of a group, including processes being forked: version 2, Linux 5.14.
fn kill_at_once(directory: &Path) -> bool {
    let file = OpenOptions::new()
        .write(true)
        .open(directory.join("cgroup.kill"));
    file.and_then(|mut file: File| file.write_all(b"1")).is_ok()
}

/// Kills a process, if it is in a group.
fn kill(pid: u32, directory: &Path) {
    let Some(number) = Pid::from_raw(pid.cast_signed()) else {
        return;
    };
    // By pidfd, and checked again: the ID may have been reused.
    if let Ok(open) = pidfd_open(number, PidfdFlags::empty())
        && members(directory).contains(&pid)
    {
        let _ = pidfd_send_signal(open, Signal::KILL);
    }
}

/// A hierarchy of control groups, and throng's place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    /// Its controllers in version 1; empty for version 2.
    controllers: Vec<String>,
    directory: PathBuf,
}

impl Place {
    /// Whether a group in it adds to those that exist.
    fn is_useful(&self, made: &[PathBuf]) -> bool {
        let counts = |name: &str| self.controllers.iter().any(|own| own == name);
        match made.first() {
            None => self.controllers.is_empty() || counts("memory") || counts("cpuacct"),
            Some(first) => {
                // Files of version 2, which comes first if it exists.
                let lacks = |file: &str| !first.join(file).exists();
                let lacks_memory = made.iter().all(|made| {
                    !made.join("memory.current").exists()
                        && !made.join("memory.usage_in_bytes").exists()
                });
                counts("memory") && lacks_memory || counts("cpuacct") && lacks("cpu.stat")
            }
        }
    }
}

/// Where throng may create groups, version 2 first.
fn places(mounts: &str, own: &str) -> Vec<Place> {
    let mut places = Vec::new();
    for line in mounts.lines() {
        // "36 35 98:0 /root /mount options ... - type source super-options"
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let words_before: Vec<&str> = before.split(' ').collect();
        let words_after: Vec<&str> = after.split(' ').collect();
        let (&[_, _, _, root, mount, ..], &[kind, _, options, ..]) =
            (&words_before[..], &words_after[..])
        else {
            continue;
        };
        let path = match kind {
            "cgroup2" => path_of(own, ""),
            "cgroup" => options
                .split(',')
                .find_map(|controller| path_of(own, controller)),
            _ => None,
        };
        let inside = path.and_then(|path| path.strip_prefix(root.trim_end_matches('/')));
        let Some(inside) = inside.filter(|inside| !inside.contains("..")) else {
            continue;
        };
        let controllers = match kind {
            "cgroup2" => Vec::new(),
            _ => options.split(',').map(str::to_owned).collect(),
        };
        places.push(Place {
            controllers,
            directory: Path::new(mount).join(inside.trim_start_matches('/')),
        });
    }
    places.sort_by_key(|place| !place.controllers.is_empty());
    places
}

/// The path of a process's group in the hierarchy that has this controller, or in version 2 if `controller` is empty.
fn path_of<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let is_it = parts.next()?.split(',').any(|name| name == controller);
        parts.next().filter(|_| is_it)
    })
}

/// The directories of a process's own groups, version 2 first.
pub(crate) fn of_process(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mut found = places(&mounts, &own);
    found.retain(|place| {
        let mut parts = place.directory.iter().rev().skip(1);
        parts
            .next()
            .is_some_and(|parent| parent.to_string_lossy().starts_with(NAME))
    });
    found.into_iter().map(|place| place.directory).collect()
}

/// Checks that groups can be created here, and returns whether they can also account for memory.
///
/// # Errors
/// Why none can be created.
pub fn check() -> Result<bool, Unsupported> {
    let group = RunGroup::make(&format!("look-{}", std::process::id()))?;
    let mut command = Command::new("true");
    let Some(inner) = group.create_for(&mut command) else {
        return Err(Unsupported {
            reason: "a control group can be created here, but none inside it".to_owned(),
            remedy: "see cgroup.max.descendants of the groups above".to_owned(),
        });
    };
    let counts = |directory: &PathBuf| {
        ["memory.current", "memory.usage_in_bytes"]
            .iter()
            .any(|file| directory.join(file).exists())
    };
    Ok(inner.directories.iter().any(counts))
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn hierarchies_are_found_with_our_place_in_them() {
        let mounts = "\
30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
33 30 0:29 /a /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
34 30 0:30 /elsewhere /other rw - cgroup cgroup rw,cpuacct,cpu";
        let own = "5:cpu,cpuacct:/\n4:memory:/m/n\n1:name=systemd:/\n0::/a/b\n";
        let found: Vec<_> = places(mounts, own)
            .into_iter()
            .map(|place| place.directory)
            .collect();
        let expected = [
            "/sys/fs/cgroup/unified/b",
            "/sys/fs/cgroup/memory/m/n",
            "/sys/fs/cgroup/systemd/",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        assert_eq!(places(mounts, "0::/../other\n"), []);
    }

    /// For a bug: `killall -9 throng` ended the watchdog too, and the groups stayed.
    #[test]
    fn a_group_whose_throng_is_gone_ends_with_the_next_start() {
        let make = |name: &str| RunGroup::make(&format!("{name}-{}", std::process::id()));
        let other = match make("other") {
            Ok(other) => other,
            Err(why) => return println!("not tried: {why}"),
        };
        let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
        let place = other.directories[0].parent().unwrap();
        let prefix = format!("{NAME}killed-");
        let (killed, claim) = Claim::create(&DirBuilder::new(), place, &prefix).unwrap();
        fs::write(killed.join("cgroup.procs"), sleep.id().to_string()).unwrap();
        drop(make("living").unwrap());
        assert!(sleep.try_wait().unwrap().is_none(), "its throng still runs");
        drop(claim);
        drop(make("next").unwrap());
        assert!(!sleep.wait().unwrap().success());
        assert!(other.directories[0].exists());
        // Another test that starts now may have been the one to end it, and may still be at it.
        let patience = Instant::now() + Duration::from_secs(10);
        while killed.exists() && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(!killed.exists());
    }

    /// A daemon has left its process tree, process group, session and environment, but is still in the control group.
    #[test]
    fn a_daemon_without_an_environment_ends_with_its_group() {
        let run = match RunGroup::make(&format!("test-{}", std::process::id())) {
            Ok(run) => run,
            Err(why) => return println!("not tried: {why}"),
        };
        let mut command = Command::new("sh");
        // A daemon that outlives its parent.
        let daemon = "env -i setsid sh -c 'echo $$; exec sleep 300 > /dev/null 2>&1' & exit";
        command
            .args(["-c", daemon])
            .stdout(Stdio::piped())
            .stdin(Stdio::null());
        let group = run.create_for(&mut command).unwrap();
        let output = command.output().unwrap();
        let pid: u32 = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert_eq!(members(&group.directories[0]), [pid]);
        assert!(of_process(pid).contains(&group.directories[0]));
        assert!(of_process(std::process::id()).is_empty());
        let directories = run.directories().to_vec();
        // As the watchdog does, which knows only the group of the run.
        end_all(&directories);
        assert!(directories.iter().all(|directory| !directory.exists()));
        drop(group);
        let is_gone = || {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        assert!(is_gone());
    }
}
