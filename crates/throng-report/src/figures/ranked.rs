//! Dots with intervals, one row per server, in groups, as data.

use serde::Serialize;

use super::{Axis, Point};

/// Servers, or measures, by one value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The name of the value, with which end is good.
    pub title: String,
    pub axis: Axis,
    /// The value that all are compared with, if there is one.
    pub level: Option<f64>,
    /// The band in which a difference from it does not matter.
    pub band: Option<(f64, f64)>,
    pub groups: Vec<Grouped>,
}

/// Rows with the same verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grouped {
    /// The verdict; empty without one.
    pub title: String,
    pub standing: Standing,
    pub rows: Vec<Rank>,
}

/// Whether the servers of a group differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// None is shown to be better than another.
    Tied,
    /// Ordered by value, without a verdict.
    Apart,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    pub name: String,
    /// The place among the servers, if it is one.
    pub place: Option<usize>,
    /// Its value, as y, with its interval.
    pub point: Option<Point>,
    /// A note after the value.
    pub text: String,
    /// Whether it is better or worse than the reference, if that is known.
    pub better: Option<bool>,
}

impl Grouped {
    /// Rows without a verdict.
    pub(crate) fn apart(rows: Vec<Rank>) -> Self {
        Self {
            title: String::new(),
            standing: Standing::Apart,
            rows,
        }
    }
}

impl Ranked {
    /// All rows, whatever their group.
    pub fn rows(&self) -> impl Iterator<Item = &Rank> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}
