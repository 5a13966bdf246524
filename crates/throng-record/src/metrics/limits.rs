//! Of the probe `limits`: how near a side comes to what it may have.

use super::entry::of_sides;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_sides! { "limits", Timed:
    "descriptors_most", "Most descriptors", Count, Neutral, "most open descriptors of one process";
    "descriptors_limit", "Limit of descriptors", Count, Neutral, "how many that process may have (soft limit)";
    "tasks_most", "Most threads", Count, Neutral, "most threads of all processes";
    "processes_limit", "Limit of processes", Count, Neutral, "threads and processes that its user may have, where that holds for it";
    "address_space_most_bytes", "Largest address space", Bytes, Neutral, "largest address space of one process";
    "address_space_limit_bytes", "Limit of address space", Bytes, Neutral, "how large that process's may become";
    "mappings", "Mappings", Count, Neutral, "memory mappings of the root process, with all clients connected";
    "mappings_limit", "Limit of mappings", Count, Neutral, "how many a process may have (vm.max_map_count)";
    "pids_most", "Most tasks of the group", Count, Neutral, "most threads and processes in its control group";
    "pids_limit", "Limit of tasks of the group", Count, Neutral, "how many that may have";
    "pids_refused", "Tasks refused", Count, Lower, "how often it was refused more of them";
    "memory_limit_bytes", "Memory limit", Bytes, Neutral, "memory that its control group may have";
    "memory_most_bytes", "Group's peak memory", Bytes, Neutral, "most memory of its control group, ever";
    "oom_kills", "OOM kills", Count, Lower, "processes of its control group that were killed because memory ran out";
    "machine_tasks_most", "Most threads on the machine", Count, Neutral, "most threads on the machine";
    "machine_tasks_limit", "Limit of threads on the machine", Count, Neutral, "how many there can be (pid_max, threads-max)";
    "machine_memory_least_bytes", "Least memory available", Bytes, Neutral, "least memory that was still available on the machine";
};
