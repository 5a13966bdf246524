//! The result of a load of which each of several processes had a part, put together.

use serde::{Deserialize, Serialize};

use crate::record::Load;

/// What the clients of one part of a load saw, with what is needed to put it together with the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contribution {
    /// The figures of this part by itself.
    pub load: Load,
    /// What these alone do not say.
    pub pieces: Pieces,
}

/// What figures of parts do not say that those of the whole need.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pieces {
    /// When the load began, on its host's `CLOCK_MONOTONIC`, in nanoseconds.
    pub began_ns: u64,
    /// From when replies counted, likewise.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}
