//! One side of a trial, measured from outside.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use throng_spec::registry::Unsupported;

/// One side's process tree, or the connections between both sides, measured from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Values by name; `throng list probes` explains them.
    pub metrics: BTreeMap<String, f64>,
    /// Probes that could not measure here, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, Unsupported>,
    /// Values that a probe could not measure here although it measured others: by probe and value, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, BTreeMap<String, Unsupported>>,
    /// What holds the memory that each connected client takes, in bytes: its processes' on a process tree, the kernel's
    /// on the connections.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory_per_client: BTreeMap<MemoryPart, f64>,
    /// CPU time that the probes themselves took during the window.
    pub probe_cost_ms: f64,
    /// Duration of the longest sample of all probes in the window.
    #[serde(default)]
    pub slowest_sample_ms: f64,
}

impl Side {
    /// The side, unless no probe sampled it.
    pub fn if_any(self) -> Option<Self> {
        let nothing =
            self.metrics.is_empty() && self.unavailable.is_empty() && self.missing.is_empty();
        (!nothing).then_some(self)
    }

    /// Notes why a probe could not measure one of its values.
    pub fn note_missing(&mut self, probe: &str, value: &str, why: Unsupported) {
        let values = self.missing.entry(probe.to_owned()).or_default();
        values.insert(value.to_owned(), why);
    }
}

/// A reading of the kernel's memory counts as stable when less than this many bytes were freed since the one before: its
/// error.
pub const ERROR_OF_MEMORY: f64 = 65_536.0;

/// What holds memory. No byte belongs to two.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPart {
    /// Memory that the program allocates: the heap and anonymous mappings.
    Heap,
    /// The stacks of its threads.
    Stacks,
    /// Memory that processes share, and pages of files that a process changed.
    Files,
    /// Stacks that the kernel keeps, one for each thread.
    KernelStacks,
    /// Page tables.
    PageTables,
    /// Objects of the kernel, by the name of their cache (`slabinfo(5)`).
    #[serde(untagged)]
    Slab(String),
}

/// Time per step of a fixed loop on a CPU of each side, just before and just after the trial. Only this shows a
/// neighbour on the same core, or a changed clock frequency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spin {
    /// The server's CPU, before.
    pub server_before_ns: f64,
    /// The server's CPU, after.
    pub server_after_ns: f64,
    /// The clients' CPU, before.
    pub client_before_ns: f64,
    /// The clients' CPU, after.
    pub client_after_ns: f64,
}
