//! The machine: what is known about it before the first trial, and how it changed from trial to trial.

use std::collections::BTreeMap;

use throng_stats::median;
use throng_stats::paired::FEWEST_PAIRS;

use super::{Evidence, FindingKind, Machine, Planned, Rule, Severity};
use crate::format;
use crate::{Purpose, Spin, Trial};

/// CPU time that other processes may use when a run starts, in percent of one CPU.
const MOST_OTHERS_PERCENT: f64 = 30.0;
/// A CPU that took this many times as long as usual around a trial has disturbed it.
const SLOWER: f64 = 1.25;
/// Trials of one server under one load with this spread, relative to their median, disagree.
const SCATTERED: f64 = 0.25;
/// Fewest trials that can disagree.
const FEWEST: usize = 3;
/// Maximum number of servers to name; further ones are counted.
const NAMED: usize = 5;
/// From this number of CPUs on, the clients have enough of them.
const ENOUGH_CPUS: u32 = 4;
/// Descriptors, or threads, for ten thousand clients, with a margin.
const MANY: u64 = 11_000;
/// The usual number of ephemeral ports.
const USUAL_PORTS: u64 = 28_000;
/// The usual length of the accept queue.
const USUAL_QUEUE: u32 = 4096;
/// The usual weight of a control group.
const USUAL_WEIGHT: u64 = 100;

/// Too few trials for an interval.
pub static FEW_RUNS: FindingKind = FindingKind::new(
    "few-runs",
    Severity::Note,
    "Each server has too few trials for a confidence interval or a ranking.",
    "use --runs 6 or more",
    Rule::Run(few_runs),
);

/// Server and clients share CPUs.
pub static SHARED_CPUS: FindingKind = FindingKind::new(
    "shared-cpus",
    Severity::Note,
    "Server and clients share a CPU and slow each other down.",
    "use a machine with at least two CPUs, and separate --server-cpus and --client-cpus",
    Rule::MachineOfRun(shared_cpus),
);

/// A virtual machine.
pub static VIRTUAL_MACHINE: FindingKind = FindingKind::new(
    "virtual-machine",
    Severity::Note,
    "This is a virtual machine: other virtual machines take CPU time unseen.",
    "trust ratios within this run more than absolute rates, or use bare metal",
    Rule::MachineOfRun(virtual_machine),
);

/// Clients and server use loopback.
pub static LOOPBACK: FindingKind = FindingKind::new(
    "loopback",
    Severity::Note,
    "Clients and server use loopback, without a network card.",
    "read the results as the server's own cost, not as that of a network",
    Rule::Run(loopback),
);

/// Other processes were busy at the start.
pub static BUSY_MACHINE: FindingKind = FindingKind::new(
    "busy-machine",
    Severity::Note,
    "Other processes take CPU time from server and clients.",
    "stop other processes, and run again",
    Rule::MachineOfRun(busy_machine),
);

/// A CPU was slower at times.
pub static DISTURBED: FindingKind = FindingKind::new(
    "disturbed",
    Severity::Note,
    "Around some trials a CPU was slower than usual.",
    "trust ratios within this run more than rates; use more --runs, or a quiet machine",
    Rule::Trials(disturbed),
);

/// Equal trials disagree.
pub static NOISY: FindingKind = FindingKind::new(
    "noisy",
    Severity::Note,
    "The rates of equal trials vary widely.",
    "use more --runs and a longer --duration, and stop other processes",
    Rule::Trials(noisy),
);

/// A quota of CPU time.
pub static SMALL_QUOTA: FindingKind = FindingKind::new(
    "small-cpu-quota",
    Severity::Rough,
    "A quota allows less than the usable CPUs: the kernel stops server and clients once a period's quota is used up.",
    "run outside this control group, or raise its quota (cpu.max, cpu.cfs_quota_us)",
    Rule::Machine(small_quota),
);

/// Few CPUs.
pub static FEW_CPUS: FindingKind = FindingKind::new(
    "few-cpus",
    Severity::Note,
    "The clients get only one or two CPUs and may be the bottleneck.",
    "compare CPU per request rather than requests/s, or use a larger machine",
    Rule::Machine(few_cpus),
);

/// Few descriptors per process.
pub static FEW_DESCRIPTORS: FindingKind = FindingKind::new(
    "few-descriptors",
    Severity::Note,
    "Each client takes a descriptor on both sides, so the limit of a process limits the number of clients.",
    "as root: prlimit --nofile=1048576:1048576 --pid $$",
    Rule::Machine(few_descriptors),
);

/// A narrow range of ephemeral ports.
pub static NARROW_PORTS: FindingKind = FindingKind::new(
    "narrow-ports",
    Severity::Note,
    "The range of ephemeral ports is narrow, and each client needs its own port.",
    "as root: sysctl net.ipv4.ip_local_port_range='1024 65535'",
    Rule::Machine(narrow_ports),
);

/// A short accept queue.
pub static SHORT_QUEUE: FindingKind = FindingKind::new(
    "short-accept-queue",
    Severity::Rough,
    "Many clients that connect at once overflow the accept queue, and wait 1 s or more for a SYN retry.",
    "as root: sysctl net.core.somaxconn=4096",
    Rule::Machine(short_queue),
);

/// The CPU frequency changes.
pub static GOVERNOR: FindingKind = FindingKind::new(
    "cpu-frequency",
    Severity::Note,
    "The CPU frequency changes with the load, and results with it.",
    "as root: cpupower frequency-set -g performance",
    Rule::Machine(governor),
);

/// Limits of the control group slow down or end what runs in it.
pub static GROUP_LIMITS: FindingKind = FindingKind::new(
    "group-limits",
    Severity::Note,
    "Limits of throng's control group, which are also those of the servers, slow down or end processes.",
    "run outside this control group, or raise its limits",
    Rule::Machine(group_limits),
);

/// No control groups of its own.
pub static NO_GROUPS: FindingKind = FindingKind::new(
    "no-control-groups",
    Severity::Note,
    "Without control groups, CPU time and memory are summed over processes, and some daemons outlive a killed run.",
    "run throng where it may create control groups with the memory controller",
    Rule::Met,
);

/// A probe or a model that cannot run.
pub static UNSUPPORTED: FindingKind = FindingKind::new(
    "unsupported",
    Severity::Note,
    "A probe or a model cannot run on this machine.",
    "see what it lacks",
    Rule::Met,
);

fn small_quota(machine: &Machine<'_>) -> Option<Evidence> {
    let cpus = machine.host.cpus;
    let quota = machine
        .host
        .cpu_quota
        .filter(|quota| *quota < f64::from(cpus))?;
    let usable = format::counted(cpus, "usable CPU");
    Some(format!("{usable}, of which a quota allows {quota:.2}").into())
}

fn few_cpus(machine: &Machine<'_>) -> Option<Evidence> {
    let cpus = machine.host.cpus;
    // A single one is shared.
    let is_few = (2..ENOUGH_CPUS).contains(&cpus);
    is_few.then(|| {
        format!("{cpus} CPUs for server and clients: the clients may be the bottleneck").into()
    })
}

fn few_descriptors(machine: &Machine<'_>) -> Option<Evidence> {
    let most = machine.host.descriptors_hard.filter(|most| *most < MANY)?;
    Some(
        format!("a process may have {most} descriptors, which limits the number of clients").into(),
    )
}

fn narrow_ports(machine: &Machine<'_>) -> Option<Evidence> {
    let ports = machine.host.ports().filter(|ports| *ports < USUAL_PORTS)?;
    Some(format!("{ports} ephemeral ports, and each client needs its own").into())
}

fn short_queue(machine: &Machine<'_>) -> Option<Evidence> {
    let most = machine.host.somaxconn.filter(|most| *most < USUAL_QUEUE)?;
    Some(format!("an accept queue holds {most} clients (net.core.somaxconn)").into())
}

fn governor(machine: &Machine<'_>) -> Option<Evidence> {
    let governor = machine
        .host
        .governor
        .as_deref()
        .filter(|governor| *governor != "performance")?;
    Some(format!("the CPU frequency changes with the load (governor {governor})").into())
}

fn group_limits(machine: &Machine<'_>) -> Option<Evidence> {
    let group = machine.group;
    let bytes = |bytes: u64| format::bytes(bytes as f64);
    let weight = group.cpu_weight.filter(|weight| *weight < USUAL_WEIGHT);
    let threads = group.threads.filter(|threads| *threads < MANY);
    let found: Vec<String> = [
        weight.map(|weight| {
            format!(
                "cpu.weight is {weight} (usual: {USUAL_WEIGHT}), so other groups get more CPU time"
            )
        }),
        group.memory_high.map(|high| {
            format!(
                "memory.high is {}, beyond which processes are slowed down",
                bytes(high)
            )
        }),
        group.memory_max.map(|max| {
            format!(
                "memory.max is {}, beyond which processes are ended",
                bytes(max)
            )
        }),
        threads.map(|threads| {
            format!(
                "pids.max is {threads}, which limits servers with a thread or a process per client"
            )
        }),
        group
            .io
            .as_ref()
            .map(|first| format!("io.max is {first}, which slows down servers that use files")),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!found.is_empty()).then(|| found.join("; ").into())
}

fn few_runs(planned: &Planned<'_>) -> Option<Evidence> {
    let runs = planned.settings.runs;
    // The number of tries of a search depends on their results.
    (!planned.seeks_limit && runs < FEWEST_PAIRS as u32).then(|| {
        let trials = format::counted(runs, "trial");
        format!("only {trials} per server, too few for a confidence interval or a ranking").into()
    })
}

fn shared_cpus(planned: &Planned<'_>) -> Option<Evidence> {
    let settings = planned.settings;
    let clients_run_on = |cpu: &u32| settings.client_cpus.contains(cpu);
    let are_shared =
        settings.server_cpus.is_empty() || settings.server_cpus.iter().any(clients_run_on);
    are_shared.then(|| {
        "server and clients share a CPU and slow each other down"
            .to_owned()
            .into()
    })
}

fn virtual_machine(planned: &Planned<'_>) -> Option<Evidence> {
    let name = match planned.host.virtual_machine.as_deref()? {
        "yes" => String::new(),
        name => format!(" ({name})"),
    };
    Some(
        format!("this is a virtual machine{name}: other virtual machines take CPU time unseen")
            .into(),
    )
}

fn loopback(planned: &Planned<'_>) -> Option<Evidence> {
    let address = planned.settings.server_address;
    address.is_none_or(|address| address.is_loopback()).then(|| {
        "clients and server use loopback: there is no network card, and the receiver's protocol work counts as the \
         sender's CPU time"
            .to_owned()
            .into()
    })
}

fn busy_machine(planned: &Planned<'_>) -> Option<Evidence> {
    let others = &planned.host.other_processes;
    let sum: f64 = others.iter().map(|process| process.cpu_percent).sum();
    let names: Vec<&str> = others.iter().map(|process| process.name.as_str()).collect();
    (sum >= MOST_OTHERS_PERCENT).then(|| {
        let listed = names.join(", ");
        format!("other processes used {sum:.0} % of a CPU when throng started: {listed}").into()
    })
}

/// Trials around which a CPU was slower than usual.
fn disturbed(trials: &[Trial]) -> Option<Evidence> {
    let server = UsualSpeed::of(trials, |spin| [spin.server_before_ns, spin.server_after_ns])?;
    let client = UsualSpeed::of(trials, |spin| [spin.client_before_ns, spin.client_after_ns])?;
    let paces = trials.iter().filter_map(|trial| trial.spin.as_ref());
    let slowest: Vec<f64> = paces
        .map(|spin| server.times(spin).max(client.times(spin)))
        .collect();
    let count = slowest.iter().filter(|times| **times > SLOWER).count();
    let worst = slowest.iter().copied().fold(0.0, f64::max);
    (count > 0).then(|| {
        format!(
                "around {count} of {} trials, a CPU took up to {worst:.1} times as long as usual for the same \
                 loop: other virtual machines, or a changing CPU frequency",
                trials.len()
            ).into()
    })
}

/// The usual duration of a step on a CPU.
struct UsualSpeed {
    step_ns: f64,
    of: fn(&Spin) -> [f64; 2],
}

impl UsualSpeed {
    fn of(trials: &[Trial], of: fn(&Spin) -> [f64; 2]) -> Option<Self> {
        let steps: Vec<f64> = trials
            .iter()
            .filter_map(|trial| trial.spin.as_ref())
            .flat_map(of)
            .filter(|step| step.is_finite() && *step > 0.0)
            .collect();
        let step_ns = median(&steps)?;
        Some(Self { step_ns, of })
    }

    fn times(&self, spin: &Spin) -> f64 {
        let [before, after] = (self.of)(spin);
        before.max(after) / self.step_ns
    }
}

/// Servers whose trials under the same load disagree.
fn noisy(trials: &[Trial]) -> Option<Evidence> {
    let mut rates: BTreeMap<(&str, u32), Vec<f64>> = BTreeMap::new();
    for trial in trials {
        if let (Purpose::Timed, None, Some(load)) = (trial.purpose, &trial.failure, &trial.load) {
            let of_row = rates.entry((&trial.server, trial.clients)).or_default();
            of_row.extend(load.window.replies_per_s);
        }
    }
    let mut far: Vec<(f64, String)> = rates
        .into_iter()
        .filter(|(_, rates)| rates.len() >= FEWEST)
        .filter_map(|((server, clients), rates)| {
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rates.iter().copied().fold(0.0, f64::max);
            let spread = (most - least) / median(&rates)?;
            let warned = format!("{server} with {clients} clients ({:.0} %)", spread * 100.0);
            (spread > SCATTERED).then_some((spread, warned))
        })
        .collect();
    far.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut named: Vec<String> = far.iter().map(|(_, warned)| warned.clone()).collect();
    if named.len() > NAMED {
        let more = named.len() - NAMED;
        named.truncate(NAMED);
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| {
        format!(
            "the rates of equal trials vary widely, from slowest to fastest: {}",
            named.join(", ")
        )
        .into()
    })
}
