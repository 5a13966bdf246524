//! Metrics by the names that users type.

use std::fmt;

use super::{METRICS, Metric};

/// No metric has the name that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The name as typed.
    pub name: String,
    /// The closest name there is, when one is close.
    pub suggestion: Option<&'static str>,
}

impl std::error::Error for UnknownMetric {}

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown metric `{}`; ", self.name)?;
        match self.suggestion {
            Some(suggestion) => write!(f, "did you mean `{suggestion}`?"),
            None => write!(f, "`throng list metrics` lists all"),
        }
    }
}

/// The metric of exactly this name.
pub fn named(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// The metric that a user means: by its name, its name without the unit, or an alias.
///
/// # Errors
/// When there is none, with the closest one.
pub fn find(name: &str) -> Result<&'static Metric, UnknownMetric> {
    let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
    let known_as = |metric: &&Metric| {
        let without_unit = metric.name.strip_suffix(metric.unit.suffix());
        metric.aliases.contains(&plain.as_str())
            || (!metric.unit.suffix().is_empty() && without_unit == Some(&plain))
    };
    let found = named(&plain).or_else(|| METRICS.iter().find(known_as));
    found.ok_or_else(|| {
        let names = METRICS
            .iter()
            .flat_map(|metric| metric.aliases.iter().copied().chain([metric.name]));
        let likely = names
            .map(|known| (strsim::jaro_winkler(known, &plain), known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        UnknownMetric {
            name: name.trim().to_owned(),
            suggestion: likely.map(|(_, known)| known),
        }
    })
}
