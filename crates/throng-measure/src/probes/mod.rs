//! Probes: each is one source of measurements, applied to the processes of either side or to the connections between
//! them.
//!
//! To add one, create a file, and add its `mod` line and its line in [`PROBES`].

pub mod accept_queue;
mod capture;
pub(crate) mod control_group;
mod counters;
pub(crate) mod cpu;
mod established;
pub(crate) mod events;
mod kernel_memory;
mod limits;
pub(super) mod machine;
mod memory;
mod pace;
pub(crate) mod switches;
pub(crate) mod syscalls;
mod tcp;
mod together;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use throng_record::metrics::Metric;
use throng_record::{MemoryPart, Purpose, Side};
use throng_spec::registry::{self, Entry, Info, UnknownName, Unsupported};
use throng_spec::{Endpoint, LoadSpec};
use throng_sys::clock::thread_cpu_time;
pub use tree::Tree;

/// Every kind of probe.
pub const PROBES: &[&ProbeKind] = &[
    &cpu::CPU,
    &memory::MEMORY,
    &control_group::CONTROL_GROUP,
    &kernel_memory::KERNEL_MEMORY,
    &switches::SWITCHES,
    &established::ESTABLISHED,
    &accept_queue::ACCEPT_QUEUE,
    &tcp::TCP,
    &machine::MACHINE,
    &limits::LIMITS,
    &counters::COUNTERS,
    &syscalls::SYSCALLS,
    &capture::CAPTURE,
];

/// A kind of probe. One probe is made for each of its subjects in each of its trials.
pub struct ProbeKind {
    /// Name and summary.
    pub info: Info,
    supported: fn() -> Result<(), Unsupported>,
    /// The entries of the catalogue that it measures.
    pub metrics: &'static [Metric],
    /// What it measures.
    pub subject: Subject,
    /// The trials in which it measures: the timed ones, unless measuring would disturb them.
    pub purpose: Purpose,
    /// Whether it is a default probe.
    by_default: bool,
    make: fn() -> Box<dyn Probe>,
}

impl Entry for ProbeKind {
    fn info(&self) -> Info {
        self.info
    }

    /// A probe that can measure is not asked again: the answer may require starting tcpdump, and the kernel takes tens
    /// of milliseconds to close its socket, or a counter of system calls.
    fn supported(&self) -> Result<(), Unsupported> {
        static SUPPORTED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
        let mut supported = SUPPORTED.lock().unwrap_or_else(PoisonError::into_inner);
        if !supported.contains(self.info.name) {
            (self.supported)()?;
            supported.insert(self.info.name);
        }
        Ok(())
    }
}

/// What a kind of probe measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The processes of a side: one probe for the server, one for the clients.
    Processes,
    /// The connections between them: one probe.
    Network,
}

/// The default probes.
pub fn by_default() -> Vec<&'static ProbeKind> {
    let mut kinds = PROBES.to_vec();
    kinds.retain(|kind| kind.by_default);
    kinds
}

/// The kinds with these names. `default` means the default probes, `all` all probes, `none` no probes. In the order of
/// [`PROBES`], each once.
///
/// # Errors
/// An unknown name.
pub fn choose(names: &[String]) -> Result<Vec<&'static ProbeKind>, UnknownName> {
    let mut chosen: Vec<&'static str> = Vec::new();
    for name in names {
        match name.as_str() {
            "default" => chosen.extend(by_default().iter().map(|kind| kind.info.name)),
            "all" => chosen.extend(PROBES.iter().map(|kind| kind.info.name)),
            "none" => {}
            name => chosen.push(registry::find("probe", PROBES, name)?.info().name),
        }
    }
    let mut kinds = PROBES.to_vec();
    kinds.retain(|kind| chosen.contains(&kind.info.name));
    Ok(kinds)
}

/// The purposes of the additional trials that these kinds need, each once, in order.
pub fn other_purposes(kinds: &[&'static ProbeKind]) -> BTreeSet<Purpose> {
    let others = kinds.iter().filter(|kind| !kind.purpose.is_timed());
    let can = others.filter(|kind| kind.supported().is_ok());
    can.map(|kind| kind.purpose).collect()
}

/// What is measured in a trial.
#[derive(Debug, Clone)]
pub struct Target {
    /// The side's processes; for a [`Subject::Network`], the server's.
    pub tree: Tree,
    /// Where the server listens.
    pub server: Endpoint,
    /// Number of clients of the load.
    pub clients: u32,
    /// Path for files of a probe, without extension: `DIR/captures/STEM`.
    pub files: PathBuf,
    /// The clients' progress.
    pub presence: ClientPresence,
}

impl Target {
    /// Where the server listens, for probes of TCP.
    ///
    /// # Errors
    /// If it is a unix socket.
    fn tcp(&self) -> Result<SocketAddr, Unsupported> {
        self.server.tcp().ok_or_else(|| Unsupported {
            reason: format!(
                "the server listens on a unix socket ({}), without TCP",
                self.server
            ),
            remedy: "let it listen on a port".to_owned(),
        })
    }
}

/// The connected clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientPresence {
    /// Whether each client leaves after its job, so that none is connected at the end.
    pub comes_and_goes: bool,
    /// Clients connected at the last report.
    pub present: u64,
}

impl ClientPresence {
    /// The clients of a load before it begins.
    pub fn of(load: &LoadSpec) -> Self {
        Self {
            comes_and_goes: load.has_jobs(),
            present: 0,
        }
    }
}

/// When a sample is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Clients are connecting, or have begun to send requests; repeated, must be quick.
    Connect,
    /// The load is running, but replies do not count yet; may take long.
    Before,
    /// The measured phase begins; must be quick.
    Start,
    /// During the measured phase; must be quick.
    Tick,
    /// The measured phase ends; must be quick.
    End,
    /// The clients are still connected and idle; may take long.
    After,
}

/// One value at one time, for the time series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Name of the metric.
    pub metric: &'static str,
    /// Its value.
    pub value: f64,
}

/// One source of measurements on one subject.
pub trait Probe: Send {
    /// Gets ready before the side's process is started, on the thread that starts the process next and lives as long
    /// as it: what children inherit from that thread, the process has from its birth.
    ///
    /// # Errors
    /// What is missing, and how to fix it.
    fn prepare(&mut self) -> Result<(), Unsupported> {
        Ok(())
    }

    /// Checks whether it can measure. The server is listening, and no client has connected yet.
    ///
    /// # Errors
    /// What is missing, and how to fix it.
    fn attach(&mut self, target: &Target) -> Result<(), Unsupported> {
        let _ = target;
        Ok(())
    }

    /// Takes a sample; values for the time series go to `out`.
    ///
    /// # Errors
    /// If the process tree can no longer be measured.
    fn sample(
        &mut self,
        moment: Moment,
        target: &Target,
        at: Instant,
        out: &mut Vec<Sample>,
    ) -> anyhow::Result<()>;

    /// Ends what was started for measuring, after both sides have ended.
    ///
    /// # Errors
    /// If there is no result.
    fn conclude(&mut self, target: &Target) -> anyhow::Result<()> {
        let _ = target;
        Ok(())
    }

    /// The values of the measurement. Values that could not be measured are absent.
    fn figures(&self, out: &mut dyn FnMut(&'static str, f64));

    /// What holds the memory that each connected client takes, in bytes.
    fn memory_per_client(&self) -> Option<&BTreeMap<MemoryPart, f64>> {
        None
    }

    /// Values that are unavailable here although others are available, with the reasons.
    fn missing(&self) -> &[(&'static str, Unsupported)] {
        &[]
    }
}

/// Maximum age of the last value of a metric, in values: as many as all probes take in a few samples.
const RECENT: usize = 64;

/// All probes on one subject, in one trial.
pub struct Panel {
    probes: Vec<(&'static str, Box<dyn Probe>)>,
    target: Option<Target>,
    side: Side,
    samples: Vec<(Instant, Sample)>,
    /// When the measured phase began; before that, when the panel was made.
    began: Instant,
    cost: Duration,
}

impl Panel {
    /// Makes the probes of `kinds` that measure `subject` in trials of this purpose, and [prepares](Probe::prepare)
    /// them.
    pub fn prepare(kinds: &[&'static ProbeKind], subject: Subject, purpose: Purpose) -> Self {
        let purpose = if purpose.is_timed() {
            Purpose::Timed
        } else {
            purpose
        };
        let mut panel = Self {
            probes: Vec::new(),
            target: None,
            side: Side::default(),
            samples: Vec::new(),
            began: Instant::now(),
            cost: Duration::ZERO,
        };
        for kind in kinds {
            if (kind.subject, kind.purpose) == (subject, purpose) {
                panel.probes.push((kind.info.name, (kind.make)()));
                if let Err(unsupported) = kind.supported() {
                    panel.leave_out(kind.info.name, unsupported);
                }
            }
        }
        panel.retain_probes(Probe::prepare);
        panel
    }

    /// Like [`Panel::prepare`], for processes that are already running. Probes that must start before the processes
    /// are left out; if nothing is known about the processes, all probes are, with the reason `unknown`.
    pub fn of_running(
        kinds: &[&'static ProbeKind],
        purpose: Purpose,
        unknown: Option<&Unsupported>,
    ) -> Self {
        let mut panel = Self::prepare(kinds, Subject::Processes, purpose);
        let names: Vec<&'static str> = panel.probes.iter().map(|(name, _)| *name).collect();
        for name in names {
            let kind = kinds.iter().find(|kind| kind.info.name == name);
            let inherits = kind.is_some_and(|kind| kind.purpose == Purpose::Profiled);
            if let Some(why) = unknown {
                panel.leave_out(name, why.clone());
            } else if inherits {
                panel.leave_out(
                    name,
                    Unsupported {
                        reason: "the server ran already, and this counts from a process's birth on"
                            .to_owned(),
                        remedy: "have throng start it: name its command line".to_owned(),
                    },
                );
            }
        }
        panel
    }

    /// Attaches the probes to what they measure.
    pub fn attach(&mut self, target: Target) {
        self.retain_probes(|probe| probe.attach(&target));
        self.target = Some(target);
    }

    fn retain_probes<P>(&mut self, mut can: P)
    where
        P: FnMut(&mut (dyn Probe + 'static)) -> Result<(), Unsupported>,
    {
        let side = &mut self.side;
        self.probes.retain_mut(|(name, probe)| {
            let could = can(&mut **probe);
            let kept = could.is_ok();
            if let Err(unsupported) = could {
                side.unavailable.insert((*name).to_owned(), unsupported);
            }
            kept
        });
    }

    fn leave_out(&mut self, name: &str, unsupported: Unsupported) {
        self.probes.retain(|(other, _)| *other != name);
        self.side.unavailable.insert(name.to_owned(), unsupported);
    }

    /// Takes a sample with every probe. A probe that fails is left out from then on, with its reason.
    fn sample(&mut self, moment: Moment) {
        let Some(target) = self.target.take() else {
            return;
        };
        let cpu = thread_cpu_time();
        if moment == Moment::Start {
            self.began = Instant::now();
        }
        let now = Instant::now();
        let mut out = Vec::new();
        self.retain_probes(|probe| {
            let sampled = probe.sample(moment, &target, now, &mut out);
            sampled.map_err(|error| Unsupported {
                reason: format!("{error:#}"),
                remedy: "see whether the process ended or changed its user".to_owned(),
            })
        });
        self.samples
            .extend(out.into_iter().map(|sample| (now, sample)));
        if matches!(moment, Moment::Start | Moment::Tick | Moment::End) {
            self.cost += thread_cpu_time().saturating_sub(cpu);
            let took_ms = now.elapsed().as_secs_f64() * 1e3;
            self.side.slowest_sample_ms = self.side.slowest_sample_ms.max(took_ms);
        }
        self.target = Some(target);
    }

    /// The last value of a metric in the time series, if it is recent.
    pub fn last(&self, metric: &str) -> Option<f64> {
        let mut latest = self.samples.iter().rev().take(RECENT);
        let (_, sample) = latest.find(|(_, sample)| sample.metric == metric)?;
        Some(sample.value)
    }

    /// Sets the number of connected clients.
    pub fn set_present(&mut self, present: u64) {
        if let Some(target) = &mut self.target {
            target.presence.present = present;
        }
    }

    /// Adds a value that the subject itself reported to the time series.
    pub fn add_sample(&mut self, metric: &'static str, value: f64) {
        let sample = Sample { metric, value };
        self.samples.push((Instant::now(), sample));
    }

    /// The values, and the time series in seconds since the measurement began: earlier samples have negative times.
    pub fn finish(mut self) -> (Side, Vec<(f64, Sample)>) {
        if let Some(target) = self.target.take() {
            self.retain_probes(|probe| {
                probe.conclude(&target).map_err(|error| Unsupported {
                    reason: format!("{error:#}"),
                    remedy: "see whether there was room for it, and whether somebody ended it"
                        .to_owned(),
                })
            });
        }
        for (name, probe) in &self.probes {
            probe.figures(&mut |metric, value| {
                self.side.metrics.insert(metric.to_owned(), value);
            });
            if let Some(parts) = probe.memory_per_client() {
                self.side.memory_per_client = parts.clone();
            }
            for (value, why) in probe.missing() {
                self.side.note_missing(name, value, why.clone());
            }
        }
        self.side.probe_cost_ms = self.cost.as_secs_f64() * 1e3;
        let since_began = |at: Instant| match at.checked_duration_since(self.began) {
            Some(after) => after.as_secs_f64(),
            None => -self.began.duration_since(at).as_secs_f64(),
        };
        let samples = self
            .samples
            .iter()
            .map(|(at, sample)| (since_began(*at), *sample));
        (self.side, samples.collect())
    }
}

/// Checks for `/proc`, without which no probe of processes works.
fn need_proc() -> Result<(), Unsupported> {
    if std::path::Path::new("/proc/self/stat").exists() {
        return Ok(());
    }
    Err(Unsupported {
        reason: "there is no /proc with processes here".to_owned(),
        remedy: "mount it (mount -t proc proc /proc), or run on Linux".to_owned(),
    })
}

/// Waits until `is_so` holds; returns false if it does not in time. What a test closes stays open until no process has
/// it, and a process that another test starts holds everything for a moment, until it executes its own program.
#[cfg(test)]
fn becomes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let kinds = choose(&names).unwrap();
        kinds.iter().map(|kind| kind.info.name).collect()
    }

    #[test]
    fn metrics_of_invisible_processes_are_absent_with_the_reason() {
        let why = Unsupported {
            reason: "it is far away".to_owned(),
            remedy: "go there".to_owned(),
        };
        let names = ["cpu", "counters"].map(str::to_owned);
        let kinds = choose(&names).unwrap();
        let side = |purpose, unknown| Panel::of_running(&kinds, purpose, unknown).finish().0;
        let unseen = side(Purpose::Timed, Some(&why));
        assert_eq!(unseen.unavailable["cpu"], why);
        assert!(unseen.metrics.is_empty());
        assert!(side(Purpose::Timed, None).unavailable.is_empty());
        assert!(
            side(Purpose::Profiled, None)
                .unavailable
                .contains_key("counters")
        );
    }

    #[test]
    fn probes_are_chosen_by_name_each_once_in_one_order() {
        let usual = chosen(&["default"]);
        assert_eq!(chosen(&["switches", "cpu", "cpu"]), ["cpu", "switches"]);
        assert_eq!(chosen(&["default", "cpu"]), usual);
        assert_eq!(chosen(&["all"]).len(), PROBES.len());
        assert_eq!(chosen(&["none"]), [""; 0]);
        let error = choose(&["cpus".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("cpu"), "{error}");
    }
}
