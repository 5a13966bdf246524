//! Dots with intervals as data: one row per server, in groups.

use serde::Serialize;

use super::{Axis, Point};

/// Servers or measures ranked by one value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ranked {
    /// The name of the value, with the direction that is better.
    pub title: String,
    pub axis: Axis,
    /// The reference value, if there is one.
    pub level: Option<f64>,
    /// The band within which a difference from the reference does not matter.
    pub band: Option<(f64, f64)>,
    pub groups: Vec<Grouped>,
}

/// Rows with the same verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grouped {
    /// The verdict; empty if there is none.
    pub title: String,
    /// Whether no server of the group is shown to be better than another.
    pub is_tied: bool,
    pub rows: Vec<Rank>,
}

/// One row of a ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    pub name: String,
    /// Place of the server in the palette, if the row is about one.
    pub place: Option<usize>,
    /// Its value, as y, with its interval.
    pub point: Option<Point>,
    /// The published value, on the same axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The text after the dot, such as the value.
    pub text: String,
    /// Whether the server failed, as [`super::Figure::failure`] says: it has no dot.
    pub failed: bool,
    /// Whether it is better or worse than the reference, if known.
    pub better: Option<bool>,
}

impl Rank {
    /// A row of a server, without a value.
    pub(crate) fn of(server: &str, place: usize) -> Self {
        Self {
            name: server.to_owned(),
            place: Some(place),
            point: None,
            published: None,
            text: String::new(),
            failed: false,
            better: None,
        }
    }
}

impl Grouped {
    /// Rows without a verdict.
    pub(crate) fn apart(rows: Vec<Rank>) -> Self {
        Self {
            title: String::new(),
            is_tied: false,
            rows,
        }
    }
}

impl Ranked {
    /// The rows of all groups.
    pub fn rows(&self) -> impl Iterator<Item = &Rank> {
        self.groups.iter().flat_map(|group| &group.rows)
    }
}
