//! Starts processes that never outlive this one.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

use rustix::net::SendFlags;
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::CpuSet;

/// Sets resource limits of `command`, with equal hard and soft limits.
pub fn limit(command: &mut Command, limits: Vec<(Resource, u64)>) {
    // SAFETY: between fork and exec the closure makes a system call for each limit and touches only its
    // own copies; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            for &(resource, value) in &limits {
                let both = Rlimit {
                    current: Some(value),
                    maximum: Some(value),
                };
                setrlimit(resource, both)?;
            }
            Ok(())
        });
    }
}

/// Makes the process of `command` write its process ID, as a 32-bit integer, to a socket before it runs the program.
pub fn announce(command: &mut Command, to: OwnedFd) {
    // SAFETY: between fork and exec the closure makes two system calls, on a descriptor that it owns; it
    // allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            // The receiver may have ended.
            let how = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let _ = rustix::net::send(&to, &pid.to_ne_bytes(), how);
            Ok(())
        });
    }
}

/// Makes the process of `command` move itself into control groups, through their open `cgroup.procs` files, before it
/// runs the program.
pub fn enter(command: &mut Command, groups: Vec<OwnedFd>) {
    // SAFETY: between fork and exec the closure makes a system call for each group, on descriptors that it owns; it
    // allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            for group in &groups {
                // A process that cannot be moved stays in its parent's group.
                let _ = rustix::io::write(group, b"0");
            }
            Ok(())
        });
    }
}

/// Starts `command` as leader of a new process group, bound to `cpus` (not bound if empty). The kernel kills it when
/// the calling thread ends.
///
/// Call it from a thread that lives as long as the child should.
///
/// # Errors
/// As `Command::spawn`; `InvalidInput` for a CPU that does not exist.
pub fn spawn(command: &mut Command, cpus: &[u32]) -> io::Result<Child> {
    let parent = rustix::process::getpid();
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    let bind = !cpus.is_empty();
    command.process_group(0);
    // SAFETY: between fork and exec the closure makes a few system calls and touches only its own
    // copies and an atomic; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            let kill = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(kill)?;
            if rustix::process::getppid() != Some(parent) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            super::priority::lower()?;
            if bind {
                rustix::thread::sched_setaffinity(None, &set)?;
            }
            Ok(())
        });
    }
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binds_the_child_to_its_cpu() {
        let mut command = Command::new("sh");
        command.args(["-c", "grep Cpus_allowed_list /proc/self/status"]);
        command.stdout(std::process::Stdio::piped());
        let output = spawn(&mut command, &[0])
            .unwrap()
            .wait_with_output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.split_whitespace().last(), Some("0"));
    }

    #[test]
    fn limits_apply_to_the_child_only() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n"]);
        command.stdout(std::process::Stdio::piped());
        limit(&mut command, vec![(Resource::Nofile, 77)]);
        let output = spawn(&mut command, &[])
            .unwrap()
            .wait_with_output()
            .unwrap();
        assert_eq!(output.stdout, b"77\n");
        let ours = rustix::process::getrlimit(Resource::Nofile);
        assert_ne!(ours.current, Some(77));
    }

    #[test]
    fn the_child_reports_its_id_before_it_runs() {
        use std::io::Read as _;
        let (to, mut from) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut command = Command::new("true");
        announce(&mut command, to.into());
        let mut child = spawn(&mut command, &[]).unwrap();
        let mut number = [0; 4];
        from.read_exact(&mut number).unwrap();
        assert_eq!(u32::from_ne_bytes(number), child.id());
        child.wait().unwrap();
    }

    #[test]
    fn an_unknown_cpu_is_rejected() {
        assert!(spawn(&mut Command::new("true"), &[1_000_000]).is_err());
    }
}
