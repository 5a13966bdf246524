//! The machine that a run was made on.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OtherProcess;

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Operating system and kernel release: "Linux 6.18.1".
    pub kernel: String,
    /// CPU model name as the kernel gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// What else tells one CPU from another, by name: "family", "model", "stepping", "microcode", and the
    /// bounds of its frequency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, String>,
    /// How fast the CPUs ran when the run started, on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<f64>,
    /// CPUs this process may run on.
    pub cpus: u32,
    /// Memory of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Name of the hypervisor, or "yes" when only the CPU flag tells; absent on bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<String>,
    /// Soft limit of descriptors in a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors_soft: Option<u64>,
    /// Hard limit of descriptors in a process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors_hard: Option<u64>,
    /// net.core.somaxconn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub somaxconn: Option<u32>,
    /// First and last ephemeral port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral_ports: Option<(u16, u16)>,
    /// Load average over one minute when the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_average_1min: Option<f64>,
    /// The other processes that used most CPU time while measuring began, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_processes: Vec<OtherProcess>,
    /// CPU frequency governor, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Whether cores run several threads at once (SMT), and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simultaneous_threads: Option<String>,
    /// What the kernel reads the time from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Transparent huge pages: "always", "madvise" or "never".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// The C library in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// Kernel settings by name, "net.core.somaxconn"; those that bear on many connections.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// The kernel's command line; what looks like a secret in it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_command_line: Option<String>,
    /// Limits of a process and of its control groups, the tightest on the way to the root.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Weaknesses of the CPU, and what the kernel does about each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mitigations: BTreeMap<String, String>,
}
