//! Servers compared with themselves in an earlier run.

use serde::Serialize;

use super::pair::{Pair, Pairing, Side, Source, pair};
use crate::facts::{Fact, caveats, conditions, side_by_side};
use crate::summary::Summary;
use throng_record::{self as record, Run, Trial};

/// A comparison with an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Baseline {
    /// The directory of its record.
    pub directory: String,
    /// Start time, in UTC.
    pub started_at: String,
    /// Servers of the same name, in this run and in the earlier one.
    pub pairs: Vec<Pair>,
    /// Why this says less than a comparison within one run.
    pub caveat: String,
}

impl Baseline {
    pub(super) fn of(now: Source<'_>, then: &Run, trials: &[Trial]) -> anyhow::Result<Self> {
        let before = Source {
            run: then,
            summary: &Summary::of(then, trials)?,
        };
        let facts = side_by_side(&conditions(then), &conditions(now.run));
        let differences: Vec<Fact> = facts.into_iter().filter(Fact::differs).collect();
        let first = format!(
            "The baseline was measured at {}, not interleaved with this run: changes on the machine since then show as \
             differences too.",
            then.started_at
        );
        let more = caveats(&differences, ["the baseline", "this run"]);
        let asked = now.run.comparison.as_ref();
        let directory = asked.and_then(|asked| asked.baseline.clone());
        Ok(Self {
            directory: directory.unwrap_or_else(|| record::BASELINE.to_owned()),
            started_at: then.started_at.clone(),
            pairs: apart(
                now,
                before,
                |_| "its baseline".to_owned(),
                |side, reference| pair(side, reference, Pairing::Apart),
            ),
            caveat: [vec![first], more].concat().join(" "),
        })
    }
}

/// Each server with each number of clients that both runs have, the largest number first. `called` names a server of
/// the earlier run in sentences.
pub(crate) fn apart<T>(
    now: Source<'_>,
    then: Source<'_>,
    called: impl Fn(&str) -> String,
    compare: impl Fn(&Side<'_>, &Side<'_>) -> T,
) -> Vec<T> {
    let mut pairs = Vec::new();
    for &clients in now.summary.clients.iter().rev() {
        for server in &now.run.servers {
            let (name, earlier) = (&server.name, called(&server.name));
            let side = now.side(name, clients, name);
            let both = side.zip(then.side(name, clients, &earlier));
            pairs.extend(both.map(|(under_test, reference)| compare(&under_test, &reference)));
        }
    }
    pairs
}
