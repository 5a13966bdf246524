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
    start: Option<(Instant, Ticks)>,
    end: Option<(Instant, Ticks)>,
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
        *place = Some((at, ticks));
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let (Some((began, start)), Some((ended, end))) = (self.start, self.end) else {
            return;
        };
        let elapsed_s = ended.duration_since(began).as_secs_f64();
        let (busy_s, steal_s) = end.seconds_since(start);
        if elapsed_s > 0.0 {
            out("machine_busy_percent", busy_s / elapsed_s * 100.0);
            out("machine_steal_percent", steal_s / elapsed_s * 100.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_all_cpus_is_read() {
        let text = "cpu  10 2 30 400 5 6 7 8 9 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 5\n";
        let ticks = Ticks { busy: 55, steal: 8 };
        assert_eq!(Ticks::parse(text), Some(ticks));
        assert_eq!(Ticks::parse("cpu  10 2 30 400\n"), None);
        assert_eq!(Ticks::parse(""), None);
    }
}
