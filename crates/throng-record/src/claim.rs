//! Claims about the servers of a study, with the results that confirm them: the same tables in study files and in
//! records.

use serde::{Deserialize, Serialize};

/// A claim.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// As text.
    pub text: String,
    /// Whether it leads the page of its study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leads: bool,
    /// The required results, all of them.
    pub expect: Vec<Expectation>,
    /// Its cause, and metrics shown with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// How the setup differs from the claim's original one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
}

/// A cause, and its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// The cause, as text; absent if only values are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Required results as evidence, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
    /// Metrics shown with the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// How the values of a metric must compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Name of the metric.
    pub metric: String,
    /// The parts, each checked separately; empty for the only part of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The servers; empty for all servers of the part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The numbers of clients; absent for all of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// The comparison.
    pub relation: Relation,
    /// The baseline; absent if the values are compared with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// The margin in percent. Smaller differences count as none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// The metric under which its values were published, if another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// Possible causes of the limit, by kind, for a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// A comparison: with a baseline, with each other, with the number of clients, or with other servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Less than the baseline.
    Less,
    /// At most the baseline, within the margin.
    AtMost,
    /// More than the baseline.
    Greater,
    /// At least the baseline, within the margin.
    AtLeast,
    /// Within the margin of the baseline, or of each other.
    Alike,
    /// Rising with the number of clients.
    Grows,
    /// Falling with the number of clients.
    Falls,
    /// Within the margin for all numbers of clients.
    Flat,
    /// Higher than for every other server of the part.
    Highest,
    /// Lower than for every other server of the part.
    Lowest,
    /// The limit has one of these causes.
    EndedBy,
}

/// Some numbers of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "`clients` has numbers of clients, like [10, 100], or bounds, like { min = 10, max = 100 }"
)]
pub enum Clients {
    /// These.
    Numbers(Vec<u32>),
    /// Those within bounds.
    Bounds(Bounds),
}

/// The bounds, both included.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// The upper bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// A baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "`baseline` is a number, like 0.95 or \"10ms\", or has a `server`, `part`, `clients` or `factor`, \
                 like { server = \"epoll\" }"
)]
pub enum Baseline {
    /// A plain number.
    Number(f64),
    /// A number with its unit.
    Text(String),
    /// Another value of the same metric.
    Value(Reference),
}

/// Another value of the same metric. Absent keys are the same as those of the value compared with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The number of clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// A factor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

impl Expectation {
    /// Whether it covers `clients` clients.
    pub fn is_about(&self, clients: u32) -> bool {
        match &self.clients {
            None => true,
            Some(Clients::Numbers(numbers)) => numbers.contains(&clients),
            Some(Clients::Bounds(Bounds { min, max })) => {
                min.is_none_or(|min| min <= clients) && max.is_none_or(|max| clients <= max)
            }
        }
    }

    /// Whether it has a margin. Comparisons with a number or a cause have none.
    pub fn has_margin(&self) -> bool {
        match self.relation {
            Relation::Alike | Relation::Flat => true,
            Relation::EndedBy => false,
            _ => !matches!(self.baseline, Some(Baseline::Number(_) | Baseline::Text(_))),
        }
    }

    /// The margin in percent: [`USUAL_MARGIN`] by default.
    pub fn margin(&self) -> f64 {
        self.margin.unwrap_or(USUAL_MARGIN)
    }
}

/// Values that differ by less than this, in percent, are equivalent by default.
pub const USUAL_MARGIN: f64 = 5.0;

impl Relation {
    /// Whether values are compared with a baseline; `None` if both are possible.
    pub fn has_baseline(self) -> Option<bool> {
        match self {
            Self::Less | Self::AtMost | Self::Greater | Self::AtLeast => Some(true),
            Self::Alike => None,
            Self::Grows
            | Self::Falls
            | Self::Flat
            | Self::Highest
            | Self::Lowest
            | Self::EndedBy => Some(false),
        }
    }

    /// Whether it describes a trend over the number of clients.
    pub fn is_trend(self) -> bool {
        matches!(self, Self::Grows | Self::Falls | Self::Flat)
    }

    /// Whether it selects servers among those of a part.
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Highest | Self::Lowest)
    }
}

impl Baseline {
    /// The number as written, if it is one.
    pub fn number(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Value(_) => None,
        }
    }
}
