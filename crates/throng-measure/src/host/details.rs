//! Further details of the machine that may explain a result: kernel settings, limits, mitigations.
//!
//! Text as reported by the kernel, to compare two records by eye and by program. Values that this machine lacks, or
//! does not let us read, are absent.

use std::collections::BTreeMap;
use std::fs;

use super::{read, sysctl};
use crate::processes::control_group::Groups;
use throng_record::GroupLimits;

/// Kernel settings that affect many connections, as paths below `/proc/sys`.
const SYSCTLS: &[&str] = &[
    "fs/epoll/max_user_watches",
    "fs/file-max",
    "fs/nr_open",
    "kernel/io_uring_disabled",
    "kernel/perf_event_paranoid",
    "kernel/pid_max",
    "kernel/sched_autogroup_enabled",
    "kernel/threads-max",
    "net/core/busy_poll",
    "net/core/default_qdisc",
    "net/core/netdev_budget",
    "net/core/netdev_max_backlog",
    "net/core/optmem_max",
    "net/core/rmem_default",
    "net/core/rmem_max",
    "net/core/somaxconn",
    "net/core/wmem_default",
    "net/core/wmem_max",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_abort_on_overflow",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_fastopen",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_max_orphans",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_max_tw_buckets",
    "net/ipv4/tcp_mem",
    "net/ipv4/tcp_notsent_lowat",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_syn_linear_timeouts",
    "net/ipv4/tcp_syn_retries",
    "net/ipv4/tcp_synack_retries",
    "net/ipv4/tcp_syncookies",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_wmem",
    "vm/max_map_count",
    "vm/overcommit_memory",
    "vm/swappiness",
];

/// Kernel settings by name, like "net.core.somaxconn".
pub(super) fn sysctls() -> BTreeMap<String, String> {
    let values = SYSCTLS
        .iter()
        .filter_map(|path| Some((path.replace('/', "."), one_line(&sysctl(path)?))));
    values.collect()
}

/// Fields separated by one space, whatever separator the kernel uses.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Files with limits on input and output, of both versions.
const IO: &[&str] = &[
    "io.max",
    "blkio.throttle.read_bps_device",
    "blkio.throttle.write_bps_device",
    "blkio.throttle.read_iops_device",
    "blkio.throttle.write_iops_device",
];

/// Reads the limits of throng's control groups.
pub fn group_limits() -> GroupLimits {
    let [cpu, memory, threads, blkio] =
        ["cpu", "memory", "pids", "blkio"].map(|name| Groups::of(std::process::id(), name));
    GroupLimits {
        cpus: cpu.cpu_quota(),
        cpu_weight: cpu.cpu_weight(),
        memory_high: memory.least(&["memory.high"]),
        memory_max: memory.least_limit(&["memory.max", "memory.limit_in_bytes"]),
        threads: threads.least(&["pids.max"]),
        io: blkio.first_line(IO),
    }
}

/// Resource limits: rlimits, and the tightest of the control groups.
pub(super) fn limits() -> BTreeMap<String, String> {
    let mut limits = fs::read_to_string("/proc/self/limits")
        .map(|text| of_process(&text))
        .unwrap_or_default();
    let own = std::process::id();
    let of_groups = [
        ("cpu.max", Groups::of(own, "cpu").cpu_time()),
        (
            "memory.max",
            Groups::of(own, "memory").tightest(&["memory.max", "memory.limit_in_bytes"]),
        ),
        ("pids.max", Groups::of(own, "pids").tightest(&["pids.max"])),
        (
            "memory.high",
            Groups::of(own, "memory").tightest(&["memory.high"]),
        ),
        ("io.max", group_limits().io),
        (
            "cpu.weight",
            group_limits().cpu_weight.map(|weight| weight.to_string()),
        ),
    ]
    .into_iter();
    limits.extend(of_groups.filter_map(|(name, value)| Some((format!("cgroup {name}"), value?))));
    limits
}

/// The lines of `/proc/PID/limits` that affect many connections, threads and processes.
pub(crate) fn of_process(text: &str) -> BTreeMap<String, String> {
    let wanted = [
        ("Max open files", "nofile"),
        ("Max processes", "nproc"),
        ("Max locked memory", "memlock"),
        ("Max stack size", "stack"),
        ("Max address space", "as"),
    ];
    let of_line = |line: &str| {
        let (title, name) = wanted.iter().find(|(title, _)| line.starts_with(title))?;
        let mut values = line[title.len()..].split_whitespace();
        let (soft, hard) = (values.next()?, values.next()?);
        Some(((*name).to_owned(), format!("{soft} soft, {hard} hard")))
    };
    text.lines().filter_map(of_line).collect()
}

/// Parts of the names of secret values.
const SECRETS: [&str; 5] = ["passw", "passphrase", "secret", "token", "credential"];

/// The kernel's command line, without values that look like secrets.
pub(crate) fn without_secrets(text: &str) -> String {
    let word = |word: &str| {
        let Some((name, value)) = word.split_once('=') else {
            return word.to_owned();
        };
        let low = name.to_lowercase();
        let is_secret = SECRETS.iter().any(|secret| low.contains(secret)) || low.ends_with("key");
        // A URL that contains a password.
        let has_user = value.contains("://") && value.contains('@');
        if is_secret || has_user {
            return format!("{name}=(left out)");
        }
        word.to_owned()
    };
    let words: Vec<String> = text.split_whitespace().map(word).collect();
    words.join(" ")
}

/// Vulnerabilities of the CPU, and the kernel's mitigations.
pub(super) fn mitigations() -> BTreeMap<String, String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    let values = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let value = read(&format!("{folder}/{name}"))?;
        Some((name, value))
    });
    values.collect()
}

/// Whether cores run several threads: "on, 2 threads per core", "off", "not supported".
pub(super) fn simultaneous_threads() -> Option<String> {
    let control = read("/sys/devices/system/cpu/smt/control")?
        .replace("notsupported", "not supported")
        .replace("notimplemented", "not implemented");
    let siblings = read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    let threads = siblings.map_or(1, |list| threads_in(&list));
    if threads > 1 {
        return Some(format!("{control}, {threads} threads per core"));
    }
    Some(control)
}

/// The number of CPUs in a list like "0,4" or "0-1".
pub(crate) fn threads_in(cpus: &str) -> u32 {
    let of_part = |part: &str| -> Option<u32> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    cpus.split(',').filter_map(of_part).sum()
}

/// Whether memory uses huge pages: "always", "madvise", "never".
pub(super) fn huge_pages() -> Option<String> {
    let text = read("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, chosen) = text.split_once('[')?;
    Some(chosen.split_once(']')?.0.to_owned())
}

/// The kernel's clock source: "tsc", "kvm-clock", "hpet".
pub(super) fn clock_source() -> Option<String> {
    read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "\
Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max processes             96365                96365                processes 
Max open files            1024                 1048576              files     
Max locked memory         8388608              8388608              bytes     
";

    #[test]
    fn limits_are_read_by_their_titles() {
        let limits = of_process(LIMITS);
        assert_eq!(limits["nofile"], "1024 soft, 1048576 hard");
        assert_eq!(limits["nproc"], "96365 soft, 96365 hard");
        assert_eq!(limits.len(), 3);
    }

    #[test]
    fn the_kernel_command_line_is_recorded_without_secrets() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=1 ro mitigations=off api_token=abc \
                    rd.luks.key=/k rd.vconsole.keymap=us ip=dhcp PASSWORD=x \
                    ks=http://me:pw@host/x -- --init\n";
        assert_eq!(
            without_secrets(line),
            "BOOT_IMAGE=/vmlinuz root=UUID=1 ro mitigations=off api_token=(left out) \
             rd.luks.key=(left out) rd.vconsole.keymap=us ip=dhcp PASSWORD=(left out) \
             ks=(left out) -- --init"
        );
        assert_eq!(without_secrets(" \n"), "");
    }

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(["0", "0,4", "0-1", "0-1,8-9"].map(threads_in), [1, 2, 2, 4]);
    }

    #[test]
    fn this_machine_has_some_of_each() {
        assert!(sysctls().contains_key("net.core.somaxconn"));
        assert!(limits().contains_key("nofile"));
        assert_eq!(one_line("4096\t131072\t6291456"), "4096 131072 6291456");
    }
}
