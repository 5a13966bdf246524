//! CPU time of any process, in nanoseconds.

use std::io;
use std::time::Duration;

/// CPU time of all threads of process `pid`, including ended threads, excluding child processes.
///
/// One system call for any number of threads (`clock_getcpuclockid(3)`).
///
/// # Errors
/// `NotFound` if the process has ended.
pub fn process_cpu_time(pid: u32) -> io::Result<Duration> {
    let id = libc::pid_t::try_from(pid).map_err(io::Error::other)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: `clock` is valid for writing; the call keeps no pointer.
    let error = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for writing; the call keeps no pointer.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        // The clock of an ended process is invalid.
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU time of all threads of this process.
pub fn own_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_clock_advances_with_work() {
        let pid = std::process::id();
        let before = process_cpu_time(pid).unwrap();
        let mut sum = 0_u64;
        while process_cpu_time(pid).unwrap() < before + Duration::from_millis(2) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(process_cpu_time(pid).unwrap() > before);
    }

    #[test]
    fn an_ended_process_is_not_found() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(process_cpu_time(pid).is_err());
    }
}
