//! Dots with intervals below each other, in groups, as data.

use serde::Serialize;

use super::{Axis, Point};

/// Servers, or measures, by one value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// What the value is, with which end is good.
    pub title: String,
    pub axis: Axis,
    /// What all are held against, where there is such a value.
    pub level: Option<f64>,
    /// From where to where a difference from it does not matter.
    pub band: Option<(f64, f64)>,
    pub groups: Vec<Grouped>,
}

/// Those of which the same can be said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grouped {
    /// What can be said; empty where there is nothing.
    pub title: String,
    pub standing: Standing,
    pub rows: Vec<Rank>,
}

/// How those of a group stand to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// None is shown to be better than another.
    Tied,
    /// As their values say, or as nobody knows.
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
    /// What stands behind it.
    pub text: String,
    /// Whether it is better or worse than what it is held against, where that is known.
    pub better: Option<bool>,
}

impl Ranked {
    /// All rows, whatever their group.
    pub fn rows(&self) -> impl Iterator<Item = &Rank> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}
