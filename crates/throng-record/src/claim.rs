//! Claims about the servers of a study, and what results must show for each: the same tables in study files
//! and in records.

use serde::{Deserialize, Serialize};

/// A claim.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub text: String,
    /// What results must show, all of it.
    pub expect: Vec<Expectation>,
    /// Its cause, and metrics shown with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// How the setting differs from that in which it was claimed, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<String>,
}

/// Why something may be so, and what must be seen for that.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mechanism {
    /// The cause, in words; absent: only values are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What results must show for it, all of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Expectation>,
    /// Metrics whose values are shown with the claim.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// How the values of a metric must compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Name of the metric.
    pub metric: String,
    /// The parts, each checked by itself; none: the only part of the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// The servers; none: every one of the part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// The numbers of clients; absent: all of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// How the values compare.
    pub relation: Relation,
    /// What they are compared with; absent where they are compared with each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// By how many percent values may differ that count as alike; a smaller difference is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// What may have given way first, by kind, where a limit was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// How values compare: with a baseline, with each other, with the number of clients, or with other servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// Less than the baseline.
    Less,
    /// No more than the baseline, give or take the margin.
    AtMost,
    /// More than the baseline.
    Greater,
    /// No less than the baseline, give or take the margin.
    AtLeast,
    /// Within the margin of the baseline, or of each other.
    Alike,
    /// More, the more clients there are.
    Grows,
    /// Less, the more clients there are.
    Falls,
    /// Within the margin, however many clients there are.
    Flat,
    /// More than that of every other server of the part.
    Highest,
    /// Less than that of every other server of the part.
    Lowest,
    /// The limit that was searched for came of one of these causes.
    EndedBy,
}

/// Some numbers of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// The least and the most, both included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u32>,
    /// The most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
}

/// What values are compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Another value of the same metric; what is absent is as in the value that is compared with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
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
    /// So many times the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
}

impl Expectation {
    /// Whether it is about so many clients.
    pub fn is_about(&self, clients: u32) -> bool {
        match &self.clients {
            None => true,
            Some(Clients::Numbers(numbers)) => numbers.contains(&clients),
            Some(Clients::Bounds(Bounds { min, max })) => {
                min.is_none_or(|min| min <= clients) && max.is_none_or(|max| clients <= max)
            }
        }
    }

    /// Whether there is a margin: a number is not exceeded by any, and a cause is one or not.
    pub fn has_margin(&self) -> bool {
        match self.relation {
            Relation::Alike | Relation::Flat => true,
            Relation::EndedBy => false,
            _ => !matches!(self.baseline, Some(Baseline::Number(_) | Baseline::Text(_))),
        }
    }

    /// The margin in percent: [`USUAL_MARGIN`] if none is given.
    pub fn margin(&self) -> f64 {
        self.margin.unwrap_or(USUAL_MARGIN)
    }
}

/// Values that differ by less than this, in percent, are equivalent where nothing else is said.
pub const USUAL_MARGIN: f64 = 5.0;

impl Relation {
    /// Whether values are compared with a baseline; none where they may be.
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

    /// Whether it is about how values go with the number of clients.
    pub fn is_trend(self) -> bool {
        matches!(self, Self::Grows | Self::Falls | Self::Flat)
    }

    /// Whether it picks servers out of those of a part.
    pub fn is_extreme(self) -> bool {
        matches!(self, Self::Highest | Self::Lowest)
    }
}

impl Baseline {
    /// The number as it is written, where it is one.
    pub fn number(&self) -> Option<String> {
        match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Value(_) => None,
        }
    }
}
