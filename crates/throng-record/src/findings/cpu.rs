//! Who used the CPUs: the clients, the server, the probes, other processes, and the machine's host.

use super::{Circumstances, Evidence, FindingKind, Observed, Rule, Severity};
use crate::format::{self, counted};
use crate::{HostPart, Side, Trial};

/// Share of its CPUs from which a side is full.
const FULL: f64 = 0.95;
/// From this share of the rate with a minimal server on, the clients may be the limit.
const NEAR_CEILING: f64 = 0.8;
/// CPU time of other processes above which it is reported, in percent of one CPU.
const OTHERS_PERCENT: f64 = 10.0;
/// Steal time above which it is reported.
const STEAL_PERCENT: f64 = 2.0;
/// Share of all CPUs that may go to others before a trial is invalid.
const OTHERS_MOST: f64 = 0.5;
/// A control group that counted less than this part of the CPU time, and this much less, does not hold all processes.
const LEFT: f64 = 1.1;
const UNCOUNTED_MS: f64 = 20.0;
/// The share of a quota's periods in which it may stop a side.
const THROTTLED_SHARE: f64 = 0.01;
/// The share of the time in which threads have work that they may wait for a CPU.
const CPU_WAIT_SHARE: f64 = 0.4;
/// Share of a CPU that probes may take in the measured phase.
const PROBES_SHARE: f64 = 0.02;
/// Duration of one sample of all probes beyond which the next one may be late.
const PROBES_SAMPLE_MS: f64 = 50.0;

/// The clients could send no more, and the server could have answered more.
pub static CLIENT_LIMITED: FindingKind = FindingKind::new(
    "client-limited",
    Severity::Rough,
    "The clients' CPUs were full and the server's were not, so the rate is a lower bound.",
    "read the rate as a lower bound; give the clients more CPUs (--client-cpus) or hosts",
    Rule::Trial(client_limited),
);

/// The clients could send no more, and it is unknown whether the server could have answered more.
pub static CLIENTS_FULL: FindingKind = FindingKind::new(
    "clients-full",
    Severity::Note,
    "The clients may have been the bottleneck: their CPUs were full and the server's use is unknown, or they were close \
     to the rate that they reach with a minimal server.",
    "do not rank servers by this rate; give the clients more CPUs or hosts",
    Rule::Trial(clients_full),
);

/// Other processes, or the machine's host, used the CPUs.
pub static OTHERS: FindingKind = FindingKind::new(
    "others",
    Severity::Rough,
    "Other processes or the machine's host took CPU time during the measurement. Above half of all CPUs, the trial is \
     invalid.",
    "stop other processes, and run again",
    Rule::Trial(others),
);

/// A CPU quota stopped processes.
pub static CPU_QUOTA: FindingKind = FindingKind::new(
    "cpu-quota",
    Severity::Rough,
    "A CPU quota of a control group stopped the server or the clients in more than 1 % of its periods.",
    "rates and latencies are those of the quota (cpu.max)",
    Rule::Trial(cpu_quota),
);

/// The server had work, but no CPU, because others used it.
pub static NO_CPU: FindingKind = FindingKind::new(
    "no-cpu",
    Severity::Note,
    "Threads of the server were ready to run and had no CPU for more than 40 % of the time in which they had work, although the \
     server did not use all of its CPUs itself. Rate and latency then describe what it was left, not the server.",
    "give the server CPUs of its own (--server-cpus); stop other processes",
    Rule::Trial(no_cpu),
)
.of_server();

/// The kernel slowed a side down because its control group used too much memory.
pub static MEMORY_HIGH: FindingKind = FindingKind::new(
    "memory-high",
    Severity::Rough,
    "The kernel slowed down the server or the clients, because their control group used more memory than memory.high.",
    "raise that limit",
    Rule::Trial(memory_high),
);

/// The probes may have affected the result.
pub static PROBES: FindingKind = FindingKind::new(
    "probes",
    Severity::Note,
    "The probes used so much CPU time, or took so long for one sample, that they may have affected the result.",
    "expect higher costs; use fewer --probes, or a longer --duration",
    Rule::Trial(probes),
);

/// Some processes of the server are outside its control group.
pub static LEFT_GROUP: FindingKind = FindingKind::new(
    "left-group",
    Severity::Note,
    "The server's control group counted less CPU time than its processes used: some left the group.",
    "start the server without a tool that moves it to another control group",
    Rule::Trial(left_group),
);

/// How much of its CPUs one side used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CpuUse {
    /// In percent of one CPU.
    pub(crate) used: f64,
    /// The most that it may use.
    pub(crate) most: f64,
    /// The busiest of several client hosts.
    host: Option<(String, usize)>,
}

impl CpuUse {
    /// The server's. A thread uses at most one CPU.
    pub(crate) fn of_server(trial: &Trial, circumstances: &Circumstances<'_>) -> Option<Self> {
        let used = super::metric(trial.server_side.as_ref(), "cpu_percent")?;
        let tasks =
            super::metric(trial.server_side.as_ref(), "tasks_peak").unwrap_or(f64::INFINITY);
        let usable = cpus(circumstances, &circumstances.settings.server_cpus);
        let most = 100.0 * usable.min(tasks.max(1.0));
        let host = None;
        Some(Self { used, most, host })
    }

    /// The clients'; with several hosts, that of the busiest.
    pub(crate) fn of_clients(trial: &Trial, circumstances: &Circumstances<'_>) -> Option<Self> {
        let share = |host: &HostPart| host.cpu_share.unwrap_or(0.0);
        let hosts = trial.hosts.iter().filter(|host| host.cpu_share.is_some());
        if let Some(busiest) = hosts.max_by(|one, other| share(one).total_cmp(&share(other))) {
            return Some(Self {
                used: 100.0 * share(busiest),
                most: 100.0,
                host: Some((busiest.name.clone(), trial.hosts.len())),
            });
        }
        let threads = f64::from(trial.load.as_ref()?.threads.max(1));
        let usable = cpus(circumstances, &circumstances.settings.client_cpus);
        Some(Self {
            used: super::metric(trial.client_side.as_ref(), "cpu_percent")?,
            most: 100.0 * threads.min(usable),
            host: None,
        })
    }

    /// Whether it could not use more.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= FULL * self.most
    }

    /// "the clients' CPU use was 99 % of 100 %".
    pub(crate) fn words(&self, whose: &str) -> String {
        match &self.host {
            Some((name, hosts)) => format!(
                "the busiest of {} was {name}, with {:.0} % of its CPUs",
                counted(*hosts as u32, "client host"),
                self.used
            ),
            None => format!(
                "{whose} CPU use was {:.0} % of {:.0} %",
                self.used, self.most
            ),
        }
    }
}

/// The CPUs to which a side is bound, or all that there are.
fn cpus(circumstances: &Circumstances<'_>, bound: &[u32]) -> f64 {
    match (bound.len(), circumstances.host.cpus) {
        (0, 0) => f64::INFINITY,
        (0, all) => f64::from(all),
        (bound, _) => bound as f64,
    }
}

fn client_limited(seen: &Observed<'_>) -> Option<Evidence> {
    // Below the maximum the schedule sets the work, and lateness has its own finding.
    if !seen.trial.purpose.is_timed() || seen.trial.at_load.is_some() {
        return None;
    }
    let server = CpuUse::of_server(seen.trial, &seen.circumstances)?;
    let clients = CpuUse::of_clients(seen.trial, &seen.circumstances)?;
    (clients.is_full() && !server.is_full()).then(|| {
        let text = match &clients.host {
            Some((name, hosts)) => {
                format!("the CPUs of {name}, one of {hosts} client hosts, were full, and the server's were not")
            }
            None => format!(
                "the clients' CPUs were full ({:.0} %), and the server's were not ({:.0} %)",
                clients.used, server.used
            ),
        };
        text.into()
    })
}

fn clients_full(seen: &Observed<'_>) -> Option<Evidence> {
    if !seen.trial.purpose.is_timed() || seen.trial.at_load.is_some() {
        return None;
    }
    let clients = CpuUse::of_clients(seen.trial, &seen.circumstances).filter(CpuUse::is_full);
    let is_unknown = CpuUse::of_server(seen.trial, &seen.circumstances).is_none();
    let why = match (clients.filter(|_| is_unknown), &seen.load.ceiling) {
        (Some(clients), _) => clients.words("their"),
        (None, Some(ceiling)) if ceiling.share >= NEAR_CEILING => format!(
            "the rate was {:.0} % of what they reach with a minimal server",
            100.0 * ceiling.share
        ),
        _ => return None,
    };
    Some(format!("the clients may have been the bottleneck: {why}").into())
}

/// CPU time that neither side of a trial got, in percent of one CPU.
struct Taken {
    by_others: f64,
    by_host: f64,
}

impl Taken {
    fn of(seen: &Observed<'_>) -> Option<Self> {
        let busy = seen.network("machine_busy_percent")?;
        let own = seen.server("cpu_percent")? + seen.client("cpu_percent")?;
        Some(Self {
            by_others: (busy - own).max(0.0),
            by_host: seen.network("machine_steal_percent").unwrap_or(0.0),
        })
    }
}

fn others(seen: &Observed<'_>) -> Option<Evidence> {
    let taken = Taken::of(seen).filter(|_| seen.trial.purpose.is_timed())?;
    // The error of two readings in ticks of 10 ms.
    let error = 100.0 * 0.04 / seen.load.window.duration_s.max(1e-9);
    let cpus = f64::from(seen.circumstances.host.cpus.max(1));
    let surely = |percent: f64| (percent - error).max(0.0);
    let share = (surely(taken.by_others) + surely(taken.by_host)) / 100.0 / cpus;
    let is_much = taken.by_others > OTHERS_PERCENT + error || taken.by_host > STEAL_PERCENT + error;
    (is_much || share > OTHERS_MOST).then(|| {
        let text = format!(
            "other processes took {:.0} % of a CPU, and the machine's host {:.0} % (steal)",
            taken.by_others, taken.by_host
        );
        let evidence = Evidence::from(text)
            .severe(Severity::Invalid, share > OTHERS_MOST)
            .value(BY_OTHERS, taken.by_others)
            .value(BY_HOST, taken.by_host);
        if taken.by_host > taken.by_others {
            evidence.remedy("run again while the host's other virtual machines are less busy")
        } else {
            evidence
        }
    })
}

/// The values of [`OTHERS`], in percent of one CPU.
pub const BY_OTHERS: &str = "by_others";
/// The same, of the machine's host.
pub const BY_HOST: &str = "by_host";

/// The value of [`CPU_QUOTA`]: the share of its periods in which it stopped processes.
pub const THROTTLED: &str = "throttled";

fn no_cpu(seen: &Observed<'_>) -> Option<Evidence> {
    let waiting = super::metric(seen.trial.server_side.as_ref(), "threads_waiting_for_cpu")?;
    let server = CpuUse::of_server(seen.trial, &seen.circumstances)?;
    let share = waiting / (waiting + server.used / 100.0);
    (share >= CPU_WAIT_SHARE && !server.is_full()).then(|| {
        let percent = format::number(100.0 * share);
        let used = format::number(server.used);
        format!(
            "the server's threads waited for a CPU {percent} % of the time that they had work, and used {used} % of a CPU"
        )
        .into()
    })
}

fn cpu_quota(seen: &Observed<'_>) -> Option<Evidence> {
    let of_side = |side: &Side| {
        let of = |name: &str| side.metrics.get(name).copied();
        let (throttled, periods) = (of("throttled_periods")?, of("quota_periods")?);
        Some((
            of("cpu_quota_percent")? / 100.0,
            throttled / periods.max(1.0),
        ))
    };
    let found = seen.sides().filter_map(of_side);
    let (cpus, throttled) = found.max_by(|one, other| one.1.total_cmp(&other.1))?;
    (throttled > THROTTLED_SHARE).then(|| {
        let text = format!(
            "a CPU quota of {} stopped processes in {:.0} % of its periods",
            format::cpus(cpus),
            100.0 * throttled
        );
        Evidence::from(text).value(THROTTLED, throttled)
    })
}

fn memory_high(seen: &Observed<'_>) -> Option<Evidence> {
    let mut hits = seen
        .sides()
        .filter_map(|side| side.metrics.get("memory_high_hits"));
    let slowed = || {
        "the kernel slowed down server or clients (memory.high)"
            .to_owned()
            .into()
    };
    hits.any(|hits| *hits > 0.0).then(slowed)
}

fn probes(seen: &Observed<'_>) -> Option<Evidence> {
    let trial = seen.trial;
    let sides = || {
        let sides = [&trial.server_side, &trial.client_side, &trial.network];
        sides.into_iter().flatten()
    };
    let cost_ms: f64 = sides().map(|side| side.probe_cost_ms).sum();
    let slowest_ms: f64 = sides().map(|side| side.slowest_sample_ms).sum();
    // A load of short-lived clients may be so short that a single sample is much of it.
    let shortest_s = if seen.load.completion.is_some() {
        1.0
    } else {
        1e-9
    };
    let share = cost_ms / 1e3 / seen.load.window.duration_s.max(shortest_s);
    let is_much = share > PROBES_SHARE || slowest_ms > PROBES_SAMPLE_MS;
    (is_much && trial.purpose.is_timed()).then(|| {
        let text = format!(
            "the probes took {:.1} % of a CPU, and {} for their slowest sample",
            share * 100.0,
            format::time(slowest_ms * 1e3)
        );
        text.into()
    })
}

fn left_group(seen: &Observed<'_>) -> Option<Evidence> {
    let (used, counted) = (seen.server("cpu_ms")?, seen.server("counted_cpu_ms")?);
    (seen.trial.purpose.is_timed() && used > LEFT * counted + UNCOUNTED_MS).then(|| {
        let text = format!(
            "the server's processes used {} of CPU time, of which its control group counted {}: some left the group",
            format::time(used * 1e3),
            format::time(counted * 1e3)
        );
        text.into()
    })
}
