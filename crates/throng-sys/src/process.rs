//! CPU affinity and limits of this process.

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// CPUs that this process may run on.
#[cfg(target_os = "linux")]
pub fn usable_cpus() -> Vec<u32> {
    use rustix::thread::CpuSet;
    let Ok(set) = rustix::thread::sched_getaffinity(None) else {
        return vec![0];
    };
    (0..CpuSet::MAX_CPU as u32)
        .filter(|cpu| set.is_set(*cpu as usize))
        .collect()
}

/// The C library that this program uses: "glibc 2.39".
pub fn libc_version() -> Option<String> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no arguments and returns a constant NUL-terminated string.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_str().ok()?))
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        cfg!(target_env = "musl").then(|| "musl".to_owned())
    }
}

/// The numbers from 0 to below the count of CPUs that this process may run on; the real CPU numbers are unknown.
#[cfg(not(target_os = "linux"))]
pub fn usable_cpus() -> Vec<u32> {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (0..count as u32).collect()
}

/// Binds this process, and its later children, to CPUs.
///
/// # Errors
/// If a CPU does not exist.
#[cfg(target_os = "linux")]
pub fn bind_to(cpus: &[u32]) -> anyhow::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    for &cpu in cpus {
        set.set(cpu as usize);
    }
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("cannot run on CPUs {cpus:?}"))
}

/// Not supported on this system.
///
/// # Errors
/// Always: POSIX has no such call.
#[cfg(not(target_os = "linux"))]
pub fn bind_to(cpus: &[u32]) -> anyhow::Result<()> {
    let error = std::io::Error::from(std::io::ErrorKind::Unsupported);
    Err(error).with_context(|| format!("cannot run on CPUs {cpus:?}; leave the choice out"))
}

/// Number of threads of this process; `None` without `/proc`.
pub fn threads() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let count = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"))?;
    count.trim().parse().ok()
}

/// Raises the soft descriptor limit to the hard limit, which needs no privilege.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If this fails, the old limit stays, and later failures are counted.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}

/// Lowers the soft descriptor limit to `most`, if it is higher.
///
/// # Errors
/// As setrlimit(2).
pub fn lower_descriptor_limit(most: u64) -> std::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let current = Some(limit.current.map_or(most, |current| current.min(most)));
    let maximum = limit.maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}
