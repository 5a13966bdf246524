//! Metrics by the names that users type.

use std::collections::HashMap;
use std::fmt;
use std::sync::LazyLock;

use super::{METRICS, Metric};

/// An unknown name of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The name as typed.
    pub name: String,
    /// Names that were probably meant.
    pub suggestions: Vec<&'static str>,
}

impl std::error::Error for UnknownMetric {}

impl fmt::Display for UnknownMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown metric `{}`; ", self.name)?;
        match &self.suggestions[..] {
            [] => write!(f, "`throng list metrics` lists all"),
            [suggestion] => write!(f, "did you mean `{suggestion}`?"),
            several => write!(f, "did you mean one of: {}?", several.join(", ")),
        }
    }
}

/// The metric of exactly this name.
pub fn named(name: &str) -> Option<&'static Metric> {
    static BY_NAME: LazyLock<HashMap<&str, &Metric>> =
        LazyLock::new(|| METRICS.iter().map(|metric| (metric.name, metric)).collect());
    BY_NAME.get(name).copied()
}

/// The metric for a user's name: its name, its name without the unit, or an alias.
///
/// # Errors
/// [`UnknownMetric`], with suggestions.
pub fn find(name: &str) -> Result<&'static Metric, UnknownMetric> {
    let plain = name.trim().to_lowercase().replace([' ', '-'], "_");
    let known_as = |metric: &&Metric| {
        let without_unit = metric.name.strip_suffix(metric.unit.suffix());
        metric.aliases.contains(&plain.as_str())
            || (!metric.unit.suffix().is_empty() && without_unit == Some(&plain))
    };
    let found = named(&plain).or_else(|| METRICS.iter().find(known_as));
    found.ok_or_else(|| UnknownMetric {
        name: name.trim().to_owned(),
        suggestions: suggestions(&plain),
    })
}

/// Maximum number of suggestions, and the size from which a family is too large to suggest.
const MOST_SUGGESTIONS: usize = 6;
const LARGE_FAMILY: usize = 11;

/// The metrics that begin with this word, like those of `latency`; otherwise the name with the closest spelling.
fn suggestions(plain: &str) -> Vec<&'static str> {
    let mut family: Vec<_> = METRICS
        .iter()
        .filter(|metric| {
            let rest = metric.name.strip_prefix(plain);
            !plain.is_empty() && rest.is_some_and(|rest| rest.starts_with('_'))
        })
        .map(short_name)
        .collect();
    match family.len() {
        0 | 1 => (),
        LARGE_FAMILY.. => return Vec::new(),
        _ => {
            family.truncate(MOST_SUGGESTIONS);
            return family;
        }
    }
    let names = METRICS
        .iter()
        .flat_map(|metric| metric.aliases.iter().copied().chain([metric.name]));
    let closest = names
        .map(|known| (strsim::jaro_winkler(known, plain), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    closest.into_iter().map(|(_, known)| known).collect()
}

/// The first alias of a metric, or its name.
fn short_name(metric: &Metric) -> &'static str {
    metric.aliases.first().copied().unwrap_or(metric.name)
}
