//! Servers compared with an earlier run.

use serde::Serialize;

use super::pair::{Pair, Pairing, Source, pair};
use crate::provenance::{same_throng, throng};
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
    pub(super) fn of(
        run: &Run,
        now: Source<'_>,
        then: &Run,
        trials: &[Trial],
    ) -> anyhow::Result<Self> {
        let summary = Summary::of(then, trials)?;
        let before = Source {
            run: then,
            summary: &summary,
        };
        let mut pairs = Vec::new();
        for &clients in now.summary.clients.iter().rev() {
            for server in &run.servers {
                let sides = now
                    .side(&server.name, clients, &server.name)
                    .zip(before.side(&server.name, clients, "its baseline"));
                pairs
                    .extend(sides.map(|(side, reference)| pair(&side, &reference, Pairing::Apart)));
            }
        }
        Ok(Self {
            directory: run
                .comparison
                .as_ref()
                .and_then(|asked| asked.baseline.clone())
                .unwrap_or_else(|| record::BASELINE.to_owned()),
            started_at: then.started_at.clone(),
            pairs,
            caveat: caveat(run, then),
        })
    }
}

/// Other possible causes of a difference from an earlier run.
fn caveat(run: &Run, then: &Run) -> String {
    let mut text = format!(
        "The baseline was measured at {}, not interleaved with this run: changes on the machine since then show as \
         differences too.",
        then.started_at
    );
    for (what, before, now) in of_machines(run, then) {
        text += &format!(" The {what} was {before} and is {now}.");
    }
    text
}

/// Differences in machine and throng between two runs, as (name, before, now).
pub(crate) fn of_machines(run: &Run, then: &Run) -> Vec<(&'static str, String, String)> {
    let cpu = |run: &Run| {
        run.host
            .cpu_model
            .clone()
            .unwrap_or_else(|| "unknown".to_owned())
    };
    let mut all = vec![
        ("kernel", then.host.kernel.clone(), run.host.kernel.clone()),
        ("CPU", cpu(then), cpu(run)),
        (
            "number of CPUs",
            then.host.cpus.to_string(),
            run.host.cpus.to_string(),
        ),
    ];
    if !same_throng(run, then) {
        all.push(("throng version", throng(then), throng(run)));
    }
    all.retain(|(_, before, now)| before != now);
    all
}
