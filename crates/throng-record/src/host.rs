//! The machine of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OtherProcess;

/// The machine of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Operating system and kernel release: "Linux 6.18.1".
    pub kernel: String,
    /// CPU model name from the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Other properties of the CPUs, by name: "family", "model", "stepping", "microcode", and the bounds of their
    /// frequency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, String>,
    /// Average CPU frequency at the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_mhz: Option<f64>,
    /// CPUs that this process may use.
    pub cpus: u32,
    /// CPUs that the quota of its control groups allows, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// Memory of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Name of the hypervisor, or "yes" if only the CPU flag shows one; absent on bare metal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_machine: Option<String>,
    /// Soft limit of descriptors per process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors_soft: Option<u64>,
    /// Hard limit of descriptors per process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptors_hard: Option<u64>,
    /// net.core.somaxconn
    #[serde(skip_serializing_if = "Option::is_none")]
    pub somaxconn: Option<u32>,
    /// First and last ephemeral port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral_ports: Option<(u16, u16)>,
    /// Load average over one minute at the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_average_1min: Option<f64>,
    /// The other processes that used the most CPU time at the start of the run, busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_processes: Vec<OtherProcess>,
    /// CPU frequency governor, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// SMT, and the number of threads per core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simultaneous_threads: Option<String>,
    /// The kernel's clock source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_source: Option<String>,
    /// Transparent huge pages: "always", "madvise" or "never".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<String>,
    /// The C library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// Kernel settings that affect many connections, by name: "net.core.somaxconn".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// The kernel's command line, without values that look like secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_command_line: Option<String>,
    /// Limits of a process and of its control groups, the tightest on the way to the root.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Vulnerabilities of the CPU, and the kernel's mitigations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mitigations: BTreeMap<String, String>,
}

impl Host {
    /// The number of ephemeral ports.
    pub fn ports(&self) -> Option<u64> {
        let (first, last) = self.ephemeral_ports?;
        Some(u64::from(last.saturating_sub(first)) + 1)
    }
}

/// The limits of throng's control groups, each the tightest on the way up. A server that throng starts has the same ones.
#[derive(Debug, Clone, Default)]
pub struct GroupLimits {
    /// CPUs that the quota allows.
    pub cpus: Option<f64>,
    /// The weight against other groups; 100 is usual.
    pub cpu_weight: Option<u64>,
    /// Bytes of memory beyond which the kernel slows the group down.
    pub memory_high: Option<u64>,
    /// Bytes of memory beyond which the kernel ends processes.
    pub memory_max: Option<u64>,
    pub threads: Option<u64>,
    /// The first limit on input and output.
    pub io: Option<String>,
}
