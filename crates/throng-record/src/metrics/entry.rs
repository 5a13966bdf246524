//! Constructors for entries of the catalogue.

use super::{
    Better, Column, Combine, Detail, Load, Metric, Nature, ProbeValue, Purpose, ShownIn, Side,
    Slice, Source, Statistic, Subject, Times, Unit,
};

/// Both sides' metrics of values of a probe: `server_NAME` and `client_NAME`, where NAME is the value's name in
/// records.
macro_rules! of_sides {
    ($probe:literal, $purpose:ident: $($name:literal, $label:literal, $unit:ident, $better:ident, $help:literal
        $(, needs $needs:expr)? $(, server[$($server:tt)*])? $(, client[$($client:tt)*])?;)*) => {
        &[$(
            Metric::of_probe($probe, Purpose::$purpose, Subject::Server, concat!("server_", $name), $label,
                Unit::$unit, Better::$better, $help).value($name)$(.needs($needs))?$($($server)*)?,
            Metric::of_probe($probe, Purpose::$purpose, Subject::LoadGenerator, concat!("client_", $name),
                concat!($label, " (clients)"), Unit::$unit, Better::$better, $help)
                .value($name)$(.needs($needs))?$($($client)*)?,
        )*]
    };
}

/// Both sides' metrics per request: `server_NAME_per_request` from the value that follows, times a factor.
macro_rules! per_request {
    ($probe:literal, $purpose:ident: $($name:literal of $value:literal * $factor:literal, $label:literal,
        $unit:ident, $better:ident, $help:literal $(, server[$($server:tt)*])? $(, client[$($client:tt)*])?;)*) => {
        &[$(
            Metric::of_probe($probe, Purpose::$purpose, Subject::Server,
                concat!("server_", $name, "_per_request"), concat!($label, "/request"), Unit::$unit,
                Better::$better, concat!($help, ", per request")).per_request_of($value, $factor)$($($server)*)?,
            Metric::of_probe($probe, Purpose::$purpose, Subject::LoadGenerator,
                concat!("client_", $name, "_per_request"), concat!($label, "/request (clients)"), Unit::$unit,
                Better::$better, concat!($help, ", per request")).per_request_of($value, $factor)$($($client)*)?,
        )*]
    };
}

/// Both sides' metrics that are computed from several values of a probe.
macro_rules! of_values {
    ($probe:literal, $purpose:ident: $($name:literal, $label:literal, $unit:ident, $better:ident, $help:literal,
        $value:expr $(, server[$($server:tt)*])? $(, client[$($client:tt)*])?;)*) => {
        &[$(
            Metric::of_probe($probe, Purpose::$purpose, Subject::Server, concat!("server_", $name), $label,
                Unit::$unit, Better::$better, $help).values($value)$($($server)*)?,
            Metric::of_probe($probe, Purpose::$purpose, Subject::LoadGenerator, concat!("client_", $name),
                concat!($label, " (clients)"), Unit::$unit, Better::$better, $help)
                .values($value)$($($client)*)?,
        )*]
    };
}

/// Metrics from values of a probe of the connections between both sides.
macro_rules! of_network {
    ($probe:literal, $purpose:ident: $($name:literal, $label:literal, $unit:ident, $better:ident, $help:literal
        $(, [$($more:tt)*])?;)*) => {
        &[$(
            Metric::of_probe($probe, Purpose::$purpose, Subject::Network, $name, $label, Unit::$unit,
                Better::$better, $help).value($name)$($($more)*)?,
        )*]
    };
}

pub(super) use {of_network, of_sides, of_values, per_request};

/// These metrics as CPU time, or derived from CPU time.
pub(super) const fn of_cpu<const N: usize>(mut metrics: [Metric; N]) -> [Metric; N] {
    let mut index = 0;
    while index < N {
        metrics[index].nature = Nature::Cpu;
        index += 1;
    }
    metrics
}

impl Metric {
    /// From the clients of timed trials.
    pub(super) const fn of_load(
        name: &'static str,
        label: &'static str,
        unit: Unit,
        better: Better,
        help: &'static str,
        value: fn(&Load) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            label,
            help,
            unit,
            better,
            subject: Subject::Clients,
            purpose: Purpose::Timed,
            combine: Combine::Median,
            probe: None,
            least_difference: 0.0,
            share_of: None,
            shown: ShownIn {
                results: None,
                costs: false,
                ranked: false,
                compared: false,
                of_trial: false,
            },
            source: Source::Load(value),
            slice: None,
            noun: None,
            nature: Nature::Other,
            follows_rate: false,
            needs_replies: false,
        }
    }

    /// From the clients' distributions of times.
    pub(super) const fn of_times(
        name: &'static str,
        label: &'static str,
        help: &'static str,
        times: Times,
        statistic: Statistic,
    ) -> Self {
        Self {
            combine: match statistic {
                Statistic::Max => Combine::Greatest,
                _ => Combine::Median,
            },
            source: Source::Times(times, statistic),
            ..Self::of_load(name, label, Unit::Microseconds, Better::Lower, help, |_| {
                None
            })
        }
    }

    /// From a probe, without the value.
    #[expect(clippy::too_many_arguments, reason = "only the macros above call it")]
    pub(super) const fn of_probe(
        probe: &'static str,
        purpose: Purpose,
        subject: Subject,
        name: &'static str,
        label: &'static str,
        unit: Unit,
        better: Better,
        help: &'static str,
    ) -> Self {
        Self {
            probe: Some(probe),
            purpose,
            subject,
            ..Self::of_load(name, label, unit, better, help, |_| None)
        }
    }

    /// From a value of its probe.
    pub(super) const fn value(self, name: &'static str) -> Self {
        let value = ProbeValue { name, needs: &[] };
        Self {
            source: Source::Value(value),
            ..self
        }
    }

    /// Computed from other values of its probe.
    pub(super) const fn needs(self, needs: &'static [&'static str]) -> Self {
        match self.source {
            Source::Value(ProbeValue { name, .. }) => Self {
                source: Source::Value(ProbeValue { name, needs }),
                ..self
            },
            _ => self,
        }
    }

    /// From a value of its probe, times a factor, per request.
    pub(super) const fn per_request_of(self, name: &'static str, factor: f64) -> Self {
        let value = ProbeValue { name, needs: &[] };
        Self {
            source: Source::PerRequest(value, factor),
            ..self
        }
    }

    /// From several values of its probe.
    pub(super) const fn values(self, value: fn(&Side, &Load) -> Option<f64>) -> Self {
        Self {
            source: Source::Values(value),
            ..self
        }
    }

    /// Also available per slice.
    pub(super) const fn in_slices(self, value: fn(&Slice) -> Option<f64>) -> Self {
        Self {
            slice: Some(value),
            ..self
        }
    }

    /// With another name within a sentence than its label.
    pub(super) const fn called(self, noun: &'static str) -> Self {
        Self {
            noun: Some(noun),
            ..self
        }
    }

    /// The pace of the work itself.
    pub(super) const fn of_speed(self) -> Self {
        Self {
            nature: Nature::Speed,
            follows_rate: true,
            ..self
        }
    }

    /// A rate of replies, or derived from one.
    pub(super) const fn of_rate(self) -> Self {
        Self {
            follows_rate: true,
            ..self
        }
    }

    /// About fairness, which needs enough replies per client.
    pub(super) const fn of_fairness(self) -> Self {
        Self {
            follows_rate: true,
            needs_replies: true,
            ..self
        }
    }

    /// With shorter names for users.
    pub(super) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// With trials combined in this way instead of by their median.
    pub(super) const fn combined(self, combine: Combine) -> Self {
        Self { combine, ..self }
    }

    /// A part of another sum, for conditions in percent.
    pub(super) const fn share_of(self, whole: &'static str) -> Self {
        Self {
            share_of: Some(whole),
            ..self
        }
    }

    /// Servers are ranked by it, in answers and in scenes of studies.
    pub(super) const fn ranked(mut self) -> Self {
        self.shown.ranked = true;
        self
    }

    /// Servers are compared by it.
    pub(super) const fn compared(mut self) -> Self {
        self.shown.compared = true;
        self
    }

    /// Listed for single trials.
    pub(super) const fn of_trial(mut self) -> Self {
        self.shown.of_trial = true;
        self
    }

    /// With a column in the table of costs per request.
    pub(super) const fn cost(mut self) -> Self {
        self.shown.costs = true;
        self
    }

    /// With a column in the table of results.
    pub(super) const fn column(mut self, place: u8) -> Self {
        self.shown.results = Some(Column {
            place,
            detail: Detail::Interval,
            bar: false,
            terminal: None,
        });
        self
    }

    /// Its column with small print other than the interval.
    pub(super) const fn detail(mut self, detail: Detail) -> Self {
        if let Some(column) = &mut self.shown.results {
            column.detail = detail;
        }
        self
    }

    /// Its column with bars.
    pub(super) const fn bar(mut self) -> Self {
        if let Some(column) = &mut self.shown.results {
            column.bar = true;
        }
        self
    }

    /// Its column also on terminals.
    pub(super) const fn terminal(mut self, order: u8) -> Self {
        if let Some(column) = &mut self.shown.results {
            column.terminal = Some(order);
        }
        self
    }
}
