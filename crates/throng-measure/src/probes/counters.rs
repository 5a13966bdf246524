//! Counters of the CPU and of the kernel: instructions, cycles, misses, switches, faults.
//!
//! The CPU has few counters. As many are used as it can count at once, in the order of [`HARDWARE`], so that none is
//! multiplexed and scaled; the others are absent with a reason. If other processes use the counters too, values are
//! scaled, and `counted_share` is the share of the time that they are based on.

use std::io;
use std::time::{Duration, Instant};

use super::events::{Events, explain};
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};
use throng_sys::perf::Event;

/// An event and the name of its value.
type NamedEvent = (Event, &'static str);

/// The kernel's events.
const SOFTWARE: [NamedEvent; 4] = [
    (Event::TASK_CLOCK, "task_clock_ns"),
    (Event::CONTEXT_SWITCHES, "context_switches"),
    (Event::CPU_MIGRATIONS, "cpu_migrations"),
    (Event::PAGE_FAULTS, "page_faults"),
];

/// The CPU's events, the most useful ones first.
const HARDWARE: [NamedEvent; 9] = [
    (Event::INSTRUCTIONS, "instructions"),
    (Event::CYCLES, "cycles"),
    (Event::BRANCH_MISSES, "branch_misses"),
    (Event::CACHE_MISSES, "cache_misses"),
    (Event::BRANCHES, "branches"),
    (Event::CACHE_REFERENCES, "cache_references"),
    (Event::USER_INSTRUCTIONS, "user_instructions"),
    (Event::STALLED_FRONT, "stalled_cycles_frontend"),
    (Event::STALLED_BACK, "stalled_cycles_backend"),
];

/// Time limit for the CPU to start counting a group. Other users of its counters hold them for a few milliseconds at a
/// time.
const TURN: Duration = Duration::from_millis(20);

/// The kind of probe `counters`.
pub(super) const COUNTERS: ProbeKind = ProbeKind {
    info: Info {
        name: "counters",
        summary: "instructions, cycles, misses, switches and faults, in trials of their own",
    },
    supported,
    metrics: metrics::counters::METRICS,
    subject: Subject::Processes,
    purpose: Purpose::Profiled,
    by_default: true,
    make: || Box::new(CountersProbe::default()),
};

fn supported() -> Result<(), Unsupported> {
    let opened = Events::open("task_clock_ns", Event::TASK_CLOCK);
    opened.map(drop).map_err(|error| explain(&error))
}

#[derive(Default)]
struct CountersProbe {
    software: Option<Events>,
    hardware: Option<Events>,
    missing: Vec<(&'static str, Unsupported)>,
}

/// Opens a group of all available ones of these events; also returns why the others are not available.
fn open(wanted: &[NamedEvent]) -> (Option<Events>, Vec<(&'static str, Unsupported)>) {
    let mut group: Option<Events> = None;
    let mut missing = Vec::new();
    for (event, name) in wanted {
        let opened = match &mut group {
            Some(group) => group.add(name, *event),
            None => Events::open(name, *event).map(|opened| group = Some(opened)),
        };
        if let Err(error) = opened {
            missing.push((*name, explain(&error)));
        }
    }
    (group, missing)
}

/// The longest prefix of `wanted` that is really counted together: the kernel does not know beforehand what else holds
/// a counter.
fn countable(wanted: &[NamedEvent]) -> &[NamedEvent] {
    for count in (1..=wanted.len()).rev() {
        let wanted = &wanted[..count];
        match open(wanted).0.map(|group| group.runs(TURN)) {
            Some(Ok(false)) => {}
            Some(Ok(true) | Err(_)) | None => return wanted,
        }
    }
    &[]
}

impl Probe for CountersProbe {
    fn prepare(&mut self) -> Result<(), Unsupported> {
        (self.software, self.missing) = open(&SOFTWARE);
        let countable = countable(&HARDWARE);
        let (hardware, missing) = open(countable);
        self.hardware = hardware;
        self.missing.extend(missing);
        let busy = io::Error::from_raw_os_error(libc::ENOSPC);
        for (_, name) in &HARDWARE[countable.len()..] {
            self.missing.push((*name, explain(&busy)));
        }
        match (&self.software, self.missing.first()) {
            (None, Some((_, reason))) => Err(reason.clone()),
            _ => Ok(()),
        }
    }

    fn sample(
        &mut self,
        moment: Moment,
        _: &Target,
        _: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        for group in [&mut self.software, &mut self.hardware]
            .into_iter()
            .flatten()
        {
            group.sample(moment)?;
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let groups = || [&self.software, &self.hardware].into_iter().flatten();
        for (metric, count) in groups().flat_map(Events::counts) {
            out(metric, count);
        }
        let count = |metric| groups().find_map(|group| group.count(metric));
        let mut ratio = |metric, above: Option<f64>, below: Option<f64>| {
            if let (Some(above), Some(below)) = (above, below)
                && below > 0.0
            {
                out(metric, above / below);
            }
        };
        let (cycles, clock) = (count("cycles"), count("task_clock_ns"));
        ratio("instructions_per_cycle", count("instructions"), cycles);
        let misses = count("branch_misses").map(|misses| 100.0 * misses);
        ratio("branch_miss_rate_percent", misses, count("branches"));
        ratio("cpu_ghz", cycles, clock);
        let elapsed = self.software.as_ref().and_then(Events::lasted);
        ratio(
            "cpus_used",
            clock,
            elapsed.map(|elapsed| elapsed.as_nanos() as f64),
        );
        if let Some(hardware) = &self.hardware
            && hardware.share() < ALL_THE_TIME
        {
            out("counted_share", hardware.share());
        }
    }

    fn missing(&self) -> &[(&'static str, Unsupported)] {
        &self.missing
    }
}

/// From this share of the time on, the counters count as not shared with others.
const ALL_THE_TIME: f64 = 0.999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_metric_and_none_has_two() {
        let recorded = || {
            metrics::counters::METRICS
                .iter()
                .filter_map(metrics::Metric::recorded_as)
        };
        let mut names: Vec<&str> = Vec::new();
        for (_, name) in SOFTWARE.iter().chain(&HARDWARE) {
            assert!(recorded().any(|known| known == *name), "{name}");
            assert!(!names.contains(name), "{name}");
            names.push(name);
        }
    }

    #[test]
    fn unavailable_counters_are_missing_with_a_reason() {
        if let Err(unsupported) = (COUNTERS.supported)() {
            eprintln!("skipped: {unsupported}");
            return;
        }
        let mut probe = CountersProbe::default();
        probe.prepare().unwrap();
        let hardware = probe.hardware.iter().map(Events::len).sum::<usize>();
        let software = probe.software.iter().map(Events::len).sum::<usize>();
        assert_eq!(
            hardware + software + probe.missing.len(),
            HARDWARE.len() + SOFTWARE.len()
        );
        let nothing = (Event::tracepoint(u64::MAX), "nothing");
        let (group, missing) = open(&[nothing, SOFTWARE[0], nothing]);
        assert_eq!(group.unwrap().len(), 1);
        assert_eq!(missing.len(), 2);
    }

    #[test]
    fn all_are_countable_where_the_kernel_counts() {
        if (COUNTERS.supported)().is_ok() {
            assert_eq!(countable(&SOFTWARE).len(), SOFTWARE.len());
        }
    }
}
