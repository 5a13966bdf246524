//! What published figures and claims refer to by name: a metric of trials, or one of a server over all
//! its numbers of clients.

use super::over::{OVER_CLIENTS, OverClients};
use crate::report::metrics::{METRICS, Metric, Unit};

/// A metric of either kind.
#[derive(Debug, Clone, Copy)]
pub enum AnyMetric {
    /// Of trials.
    Trial(&'static Metric),
    /// Over all numbers of clients.
    Over(&'static OverClients),
}

impl PartialEq for AnyMetric {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl AnyMetric {
    /// The metric of this name.
    ///
    /// # Errors
    /// When there is none, saying which comes closest or which there are.
    pub fn find(name: &str) -> Result<Self, String> {
        if let Some(over) = OVER_CLIENTS.iter().find(|over| over.name == name) {
            return Ok(Self::Over(over));
        }
        let close = match Metric::find(name) {
            Ok(metric) => return Ok(Self::Trial(metric)),
            Err(close) => close,
        };
        let of_ours = OVER_CLIENTS.iter().map(|over| over.name);
        let mut likely = of_ours
            .clone()
            .filter(|known| strsim::jaro_winkler(known, name) > 0.8);
        let help = if let Some(close) = likely.next().or(close) {
            format!("did you mean `{close}`?")
        } else {
            let names = METRICS.iter().map(|metric| metric.name).chain(of_ours);
            format!("there are: {}", names.collect::<Vec<_>>().join(", "))
        };
        Err(format!("there is no metric `{name}`; {help}"))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trial(metric) => metric.name,
            Self::Over(over) => over.name,
        }
    }

    /// Heading in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Trial(metric) => metric.title,
            Self::Over(over) => over.title,
        }
    }

    /// What it is measured in.
    pub fn unit(self) -> Unit {
        match self {
            Self::Trial(metric) => metric.unit,
            Self::Over(over) => over.unit,
        }
    }

    /// Whether it comes of a search for a limit.
    pub fn is_of_search(self) -> bool {
        matches!(self, Self::Over(over) if over.is_of_search())
    }

    /// The names of those that do.
    pub fn of_search() -> impl Iterator<Item = &'static str> {
        let of_search = OVER_CLIENTS.iter().filter(|over| over.is_of_search());
        of_search.map(|over| over.name)
    }

    /// Whether it is one value over all numbers of clients.
    pub fn is_over_clients(self) -> bool {
        matches!(self, Self::Over(_))
    }
}

/// A number of what a study calls `name`, in the metric's own unit.
///
/// # Errors
/// When values of this metric cannot be in it.
pub fn read(unit: Unit, number: f64, name: &str) -> Result<f64, String> {
    let name = match name.trim() {
        "count" | "index" | "ratio" | "/s" | "1/s" => "",
        "bytes" => "B",
        "bytes/s" => "B/s",
        "KB" => "kB",
        "KB/s" => "kB/s",
        name => name,
    };
    unit.parse(&format!("{number}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_both_kinds_are_found() {
        assert_eq!(AnyMetric::find("p99").unwrap().name(), "p99");
        assert!(AnyMetric::find("first_failure").unwrap().is_over_clients());
        let why = AnyMetric::find("first_failur").unwrap_err();
        assert!(why.ends_with("did you mean `first_failure`?"), "{why}");
        let why = AnyMetric::find("weight").unwrap_err();
        assert!(why.contains("there are: replies_per_s"), "{why}");
    }

    #[test]
    fn units_are_those_of_publications() {
        for (unit, name, expected) in [
            (Unit::Time, "s", 1e6),
            (Unit::Bytes, "MB", 1e6),
            (Unit::Bytes, "KB", 1e3),
            (Unit::Bytes, "bytes", 1.0),
            (Unit::PerSecond, "/s", 1.0),
            (Unit::Count, "count", 1.0),
        ] {
            let factor = read(unit, 1.0, name).unwrap();
            assert!((factor - expected).abs() < 1e-9, "{name}");
        }
        assert!(read(Unit::Time, 1.0, "MB").unwrap_err().contains("no unit"));
    }
}
