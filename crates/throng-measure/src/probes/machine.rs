//! The machine outside both sides: total CPU use, and time stolen by its host.
//!
//! The CPU use of other processes is the machine's busy time minus both sides and the probes; `throng_record::findings::cpu` computes it.
//! `/proc/stat` counts in ticks of 10 ms over all CPUs (`proc_stat(5)`), so shares of short windows are rough.

use std::time::Instant;

use anyhow::Context as _;

use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::network::proc_file::ProcFile;
use throng_record::{Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};

/// The kind of probe `machine`.
pub(super) const MACHINE: ProbeKind = ProbeKind {
    info: Info {
        name: "machine",
        summary: "how busy all CPUs were, and what the host of a virtual machine took away",
    },
    supported: || ProcFile::open("/proc/stat").map(drop),
    metrics: metrics::machine::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(MachineProbe::default()),
};

#[derive(Default)]
struct MachineProbe {
    file: Option<ProcFile>,
    /// `/proc/pressure/cpu`, where the kernel counts it.
    pressure: Option<ProcFile>,
    start: Option<Reading>,
    end: Option<Reading>,
}

/// What was counted until a moment.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    ticks: Ticks,
    /// How long some task waited for a CPU.
    waited_us: Option<u64>,
}

/// The microseconds in which some task waited for a CPU, from the text of `/proc/pressure/cpu`.
fn waited_us(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Clock ticks of all CPUs since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticks {
    busy: u64,
    steal: u64,
}

impl Ticks {
    /// Parses the text of `/proc/stat`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> = all
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        // User time already includes guests.
        let &[user, nice, system, _idle, _waiting, irq, softirq, steal, ..] = numbers.as_slice()
        else {
            return None;
        };
        Some(Self {
            busy: user + nice + system + irq + softirq,
            steal,
        })
    }
}

impl Ticks {
    /// Seconds since `then` in which CPUs were busy, and that the host took.
    pub(crate) fn seconds_since(self, then: Self) -> (f64, f64) {
        let seconds =
            |from: u64, to: u64| to.saturating_sub(from) as f64 / procfs::ticks_per_second() as f64;
        (
            seconds(then.busy, self.busy),
            seconds(then.steal, self.steal),
        )
    }
}

impl Probe for MachineProbe {
    fn attach(&mut self, _: &Target) -> Result<(), Unsupported> {
        self.file = Some(ProcFile::open("/proc/stat")?);
        self.pressure = ProcFile::open("/proc/pressure/cpu").ok();
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        _: &Target,
        at: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        let place = match moment {
            Moment::Start => &mut self.start,
            Moment::End => &mut self.end,
            _ => return Ok(()),
        };
        let file = self.file.as_mut().context("the probe is not attached")?;
        let ticks = Ticks::parse(file.read()?).context("/proc/stat has no line of all CPUs")?;
        let pressure = self.pressure.as_mut().and_then(|lines| lines.read().ok());
        *place = Some(Reading {
            at,
            ticks,
            waited_us: pressure.and_then(waited_us),
        });
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let (Some(start), Some(end)) = (self.start, self.end) else {
            return;
        };
        let elapsed_s = end.at.duration_since(start.at).as_secs_f64();
        let (busy_s, steal_s) = end.ticks.seconds_since(start.ticks);
        if elapsed_s > 0.0 {
            out("machine_busy_percent", busy_s / elapsed_s * 100.0);
            out("machine_steal_percent", steal_s / elapsed_s * 100.0);
            if let Some((before, after)) = start.waited_us.zip(end.waited_us) {
                let waited_s = after.saturating_sub(before) as f64 / 1e6;
                out("machine_cpu_pressure_percent", waited_s / elapsed_s * 100.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pressure_is_read() {
        let text = "some avg10=0.00 avg60=1.52 avg300=2.33 total=120345\nfull avg10=0.00 total=9\n";
        assert_eq!(waited_us(text), Some(120_345));
        assert_eq!(waited_us("full total=9\n"), None);
    }

    #[test]
    fn the_line_of_all_cpus_is_read() {
        let text = "cpu  10 2 30 400 5 6 7 8 9 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5\n";
        let ticks = Ticks { busy: 55, steal: 8 };
        assert_eq!(Ticks::parse(text), Some(ticks));
        assert_eq!(Ticks::parse("cpu  10 2 30 400\n"), None);
        assert_eq!(Ticks::parse(""), None);
    }
}
