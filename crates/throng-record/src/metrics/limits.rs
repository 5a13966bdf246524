//! Metrics of the probe `limits`: resource use and limits of a side.

use super::entry::of_sides;
use super::{Better, Metric, Purpose, Subject, Unit};

#[rustfmt::skip]
pub const METRICS: &[Metric] = of_sides! { "limits", Timed:
    "descriptors_peak", "Max descriptors", Count, Neutral, "most open file descriptors of one process";
    "descriptors_limit", "Descriptor limit", Count, Neutral, "open file descriptors that this process may have (soft RLIMIT_NOFILE)";
    "tasks_peak", "Max threads", Count, Neutral, "most threads of all processes";
    "processes_limit", "Process limit", Count, Neutral, "threads and processes that its user may have (RLIMIT_NPROC), if enforced";
    "address_space_peak_bytes", "Max address space", Bytes, Neutral, "largest address space of one process";
    "address_space_limit_bytes", "Address space limit", Bytes, Neutral, "address space that this process may have (RLIMIT_AS)";
    "mappings", "Mappings", Count, Neutral, "memory mappings of the main process with all clients connected";
    "mappings_limit", "Mapping limit", Count, Neutral, "memory mappings that a process may have (vm.max_map_count)";
    "pids_peak", "Max cgroup tasks", Count, Neutral, "most threads and processes in its control group";
    "pids_limit", "Cgroup task limit", Count, Neutral, "threads and processes that its control group may have (pids.max)";
    "pids_refused", "Refused tasks", Count, Lower, "times the control group refused a new thread or process";
    "memory_limit_bytes", "Cgroup memory limit", Bytes, Neutral, "memory that its control group may use (memory.max)";
    "memory_peak_bytes", "Peak cgroup memory", Bytes, Neutral, "peak memory of its control group over its lifetime";
    "oom_kills", "OOM kills", Count, Lower, "processes of its control group that the OOM killer ended";
    "machine_tasks_peak", "Max threads, machine", Count, Neutral, "most threads on the machine";
    "machine_tasks_limit", "Thread limit, machine", Count, Neutral, "threads that the machine may have (pid_max, threads-max)";
    "machine_memory_min_bytes", "Min available memory", Bytes, Neutral, "least memory available on the machine";
};
