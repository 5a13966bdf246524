//! Metrics of the probe `cpu`: CPU time of a side's process tree.

use super::entry::{of_cpu, of_sides, of_values, per_request};
use super::{Better, Detail, Load, Metric, Purpose, Side, Subject, Unit, count, joined};
use crate::Slice;

pub const METRICS: &[Metric] = &of_cpu(joined::<{ count(&PARTS) }>(&PARTS));

const PARTS: [&[Metric]; 4] = [PER_REQUEST, PER_CPU, KERNEL, VALUES];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "cpu", Timed:
    "cpu_us" of "cpu_ms" * 1e3, "CPU", Microseconds, Lower, "CPU time, user and system, of all processes",
        server[.called("CPU per request").aliases(&["cpu", "server_cpu_per_request"]).column(21).bar().terminal(0)
            .in_slices(Slice::server_cpu_us_per_request).compared().ranked()],
        client[.in_slices(Slice::client_cpu_us_per_request)];
    "cpu_user_us" of "cpu_user_ms" * 1e3, "User CPU", Microseconds, Lower, "CPU time in user mode";
    "cpu_system_us" of "cpu_system_ms" * 1e3, "System CPU", Microseconds, Lower, "CPU time in the kernel";
};

const PER_CPU: &[Metric] = &[
    Metric::of_probe(
        "cpu",
        Purpose::Timed,
        Subject::Server,
        "requests_per_server_cpu_s",
        "Requests/CPU s",
        Unit::PerSecond,
        Better::Higher,
        "requests answered per second of the server's CPU time",
    )
    .values(per_cpu_s)
    .called("requests per CPU-second of the server")
    .in_slices(|slice| Some(1e6 / slice.server_cpu_us_per_request()?))
    .column(23),
    Metric::of_probe(
        "cpu",
        Purpose::Timed,
        Subject::LoadGenerator,
        "requests_per_client_cpu_s",
        "Requests/CPU s (clients)",
        Unit::PerSecond,
        Better::Higher,
        "requests answered per second of the load generator's CPU time",
    )
    .values(per_cpu_s)
    .in_slices(|slice| Some(1e6 / slice.client_cpu_us_per_request()?)),
];

#[rustfmt::skip]
const KERNEL: &[Metric] = of_values! { "cpu", Timed:
    "cpu_in_kernel_percent", "CPU in kernel", Percent, Neutral, "share of CPU time spent in the kernel", in_kernel_percent,
        server[.column(22).terminal(10)];
};

#[rustfmt::skip]
const VALUES: &[Metric] = of_sides! { "cpu", Timed:
    "cpu_percent", "CPU usage", Percent, Neutral, "CPU time over elapsed time; 100 % is one CPU",
        server[.column(24).detail(Detail::Others(&[("client_cpu_percent", "clients {}")])).terminal(9).of_trial()],
        client[.of_trial()];
    "cpu_ms", "CPU time", Milliseconds, Lower, "CPU time during the measurement";
    "cpu_user_ms", "User CPU time", Milliseconds, Lower, "CPU time in user mode during the measurement; absent if processes are too short-lived to tell";
    "cpu_system_ms", "System CPU time", Milliseconds, Lower, "CPU time in the kernel during the measurement";
    "run_cpu_percent", "CPU usage, whole run", Percent, Neutral, "CPU time over elapsed time from before the first client connects until the measurement ends";
    "parent_cpu_percent", "Parent CPU usage", Percent, Neutral, "CPU usage of the server's main process, without its children, from before the first client connects until the measurement ends";
    "cpu_quota_percent", "CPU quota", Percent, Neutral, "CPU usage that the quota of its control group allows (cpu.max, cpu.cfs_quota_us)";
    "quota_periods", "Quota periods", Count, Neutral, "periods of that quota in which the group ran, during the measurement";
    "throttled_periods", "Throttled periods", Count, Neutral, "periods in which the group used up its quota and was stopped";
    "throttled_ms", "Throttled time", Milliseconds, Neutral, "time for which the group was stopped, summed over CPUs";
};

fn per_cpu_s(side: &Side, load: &Load) -> Option<f64> {
    let used_ms = side.metrics.get("cpu_ms").filter(|used| **used > 0.0)?;
    (load.window.replies > 0).then(|| load.window.replies as f64 * 1e3 / used_ms)
}

fn in_kernel_percent(side: &Side, _: &Load) -> Option<f64> {
    let (user, system) = (
        side.metrics.get("cpu_user_ms")?,
        side.metrics.get("cpu_system_ms")?,
    );
    (user + system > 0.0).then(|| 100.0 * system / (user + system))
}
