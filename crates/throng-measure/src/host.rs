//! The machine: its hardware and settings, its resources, and this process's place on it.

pub(super) mod cpu;
pub(super) mod details;
pub(super) mod other_processes;

use std::fs;

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

pub use details::group_limits;
use other_processes::Watch;
use throng_record::{Host, OtherProcess, Resources};
use throng_sys::process::libc_version;
pub use throng_sys::process::{bind_to, raise_descriptor_limit, usable_cpus};

/// Examines the machine.
pub fn examine() -> Host {
    let limit = getrlimit(Resource::Nofile);
    Host {
        kernel: kernel(),
        cpu_model: cpu_info("model name"),
        cpu: cpu::first(),
        cpu_mhz: cpu::mean_mhz(),
        cpus: usable_cpus().len() as u32,
        cpu_quota: details::group_limits().cpus,
        memory_bytes: memory("MemTotal:"),
        virtual_machine: virtual_machine(),
        descriptors_soft: limit.current,
        descriptors_hard: limit.maximum,
        somaxconn: sysctl("net/core/somaxconn").and_then(|text| text.parse().ok()),
        ephemeral_ports: ephemeral_ports(),
        load_average_1min: load_average(),
        // These are examined when measuring begins.
        other_processes: Vec::new(),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        simultaneous_threads: details::simultaneous_threads(),
        clock_source: details::clock_source(),
        huge_pages: details::huge_pages(),
        libc: libc_version(),
        sysctls: details::sysctls(),
        kernel_command_line: read("/proc/cmdline").map(|text| details::without_secrets(&text)),
        limits: details::limits(),
        mitigations: details::mitigations(),
    }
}

/// The other processes that use the most CPU time now, busiest first; observed for a moment.
pub fn busiest_processes() -> Vec<OtherProcess> {
    Watch::start().busiest()
}

/// Every CPU that is in use, whether or not this process may run there.
pub(crate) fn all_cpus() -> Vec<u32> {
    let text = read("/sys/devices/system/cpu/online").unwrap_or_default();
    let ranges = text.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

/// Operating system and kernel release: "Linux 6.18.1".
pub fn kernel() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy()
    )
}

/// The resources that a load may use here.
pub fn load_resources() -> Resources {
    Resources {
        descriptors: getrlimit(Resource::Nofile).maximum,
        ports: ephemeral_ports(),
        threads: threads_left(),
        files: files_left(),
        watches: number("fs/epoll/max_user_watches"),
        memory_bytes: memory_left(),
    }
}

/// Threads that can still be started on this machine, or in this container if it has a limit.
fn threads_left() -> Option<u64> {
    let (there, most) = threads()?;
    let left = most.saturating_sub(there);
    Some(threads_left_in_container().map_or(left, |in_container| left.min(in_container)))
}

/// Threads on this machine, and their maximum.
pub(super) fn threads() -> Option<(u64, u64)> {
    let most = number("kernel/pid_max")?.min(number("kernel/threads-max")?);
    let load = read("/proc/loadavg")?;
    let (_, there) = load.split_whitespace().nth(3)?.split_once('/')?;
    Some((there.parse().ok()?, most))
}

/// Maximum memory mappings of a process.
pub(super) fn most_mappings() -> Option<u64> {
    number("vm/max_map_count")
}

/// Available memory of this machine.
pub(super) fn memory_left() -> Option<u64> {
    memory("MemAvailable:")
}

fn threads_left_in_container() -> Option<u64> {
    let pids =
        |name: &str| -> Option<u64> { read(&format!("/sys/fs/cgroup/pids.{name}"))?.parse().ok() };
    Some(pids("max")?.saturating_sub(pids("current")?))
}

/// Files that this machine can still open; `None` for a process with CAP_SYS_ADMIN, which has no limit.
fn files_left() -> Option<u64> {
    let sets = capabilities(None).ok()?;
    if sets.effective.contains(CapabilitySet::SYS_ADMIN) {
        return None;
    }
    let text = sysctl("fs/file-nr")?;
    let numbers: Vec<u64> = text
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    let &[open, _, most] = numbers.as_slice() else {
        return None;
    };
    Some(most.saturating_sub(open))
}

fn number(sysctl_path: &str) -> Option<u64> {
    sysctl(sysctl_path)?.parse().ok()
}

/// First and last ephemeral port.
fn ephemeral_ports() -> Option<(u16, u16)> {
    let text = sysctl("net/ipv4/ip_local_port_range")?;
    let (first, last) = text.split_once(char::is_whitespace)?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

/// A kernel setting as text.
pub fn sysctl(path: &str) -> Option<String> {
    read(&format!("/proc/sys/{path}"))
}

/// Load average over the last minute.
pub fn load_average() -> Option<f64> {
    read("/proc/loadavg")?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

fn memory(kind: &str) -> Option<u64> {
    let text = read("/proc/meminfo")?;
    let line = text.lines().find(|line| line.starts_with(kind))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn cpu_info(key: &str) -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The hypervisor's name if it has one, or "yes" if only the CPU shows that there is one.
fn virtual_machine() -> Option<String> {
    let reported = read("/sys/hypervisor/type").or_else(|| {
        let vendor = read("/sys/class/dmi/id/sys_vendor")?;
        let known = [
            "QEMU",
            "Amazon EC2",
            "Google",
            "Microsoft",
            "VMware",
            "Xen",
            "innotek",
        ];
        known
            .iter()
            .any(|name| vendor.contains(name))
            .then_some(vendor)
    });
    let flag = cpu_info("flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    reported.or_else(|| flag.then(|| "yes".to_owned()))
}

fn read(path: &str) -> Option<String> {
    let content = fs::read_to_string(path).ok()?;
    let text = content.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
