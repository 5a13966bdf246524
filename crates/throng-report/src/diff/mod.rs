//! Two runs compared: their settings, their differences, and the ratio B over A of every server with the same number
//! of clients in both.
//!
//! The runs took place at different times, so nothing is interleaved, and a change of the machine looks like a change
//! of a server. The comparison begins with that caveat, and with differences of load and machine.

mod differences;
pub(super) mod figures;
mod likeness;
mod limits;
mod load;
mod words;

use std::collections::BTreeSet;

use serde::Serialize;

use super::comparison::{Pair, PairMetric, Pairing, Source, conclude, judge, others, pair};
use super::figures::Figure;
use super::limit::Limits;
use super::summary::Summary;
pub use differences::Fact;
pub(crate) use differences::{differing, started};
pub use likeness::Likeness;
pub use limits::LimitDiff;
pub(crate) use limits::limits_of;
pub use load::{RecordedPart, StoredRecord, load};
use throng_record::format::{counted, list};
use throng_record::{Ending, Finding, Run, Trial};
use throng_stats::Verdict;

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// The earlier run.
    pub a: RunInfo,
    /// The later run, which is compared with A.
    pub b: RunInfo,
    /// The result in one sentence.
    pub headline: String,
    /// Whether the two were made alike.
    pub made: Likeness,
    /// Why the ratios say less than they seem to, if the runs were not made alike.
    pub caveats: Vec<String>,
    /// Caveats of any comparison of two runs.
    pub notes: Vec<String>,
    /// Each part that both records have; a single one for runs without parts.
    pub parts: Vec<Part>,
    /// Parts that only A has, and parts that only B has.
    pub only_in: [Vec<String>; 2],
}

/// A run in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInfo {
    /// The directory of its record.
    pub directory: String,
    pub study: String,
    /// The question it answers.
    pub question: String,
    /// Start time, in UTC.
    pub started_at: String,
    pub ending: Ending,
    /// Trials in the record.
    pub trials: u32,
    /// Trials that were planned.
    pub trials_planned: u32,
    /// The version of throng.
    pub version: String,
    /// The command line that started it.
    pub arguments: Vec<String>,
    /// Its findings, each once.
    pub findings: Vec<Finding>,
}

/// A part that both records have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// Its name; `None` if the runs have no parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Facts about both runs, side by side.
    pub facts: Vec<Fact>,
    /// Why the ratios say less than they seem to.
    pub caveats: Vec<String>,
    /// Each server with each number of clients, the largest first.
    pub pairs: Vec<ServerDiff>,
    /// The limits of each server, if both runs searched for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitDiff>,
    /// Measurements that only A has, and that only B has.
    pub only_in: [Vec<String>; 2],
    /// The servers that both have, in the order of B.
    pub servers: Vec<String>,
    /// Plots.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// A server with the same number of clients in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerDiff {
    /// Its name in both.
    pub server: String,
    /// The comparison by the metrics that servers are always compared by.
    #[serde(flatten)]
    pub pair: Pair,
    /// The comparison by all other metrics that have a better direction.
    pub more: Vec<PairMetric>,
}

/// Why two records cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// Both are the same record.
    #[error("{0} and {1} are the same run; name another one")]
    Same(String, String),
    /// Only one of them is a study of parts.
    #[error(
        "{whole} is a study of several parts and {single} is not; name one of its parts: {parts}"
    )]
    Parts {
        /// The study.
        whole: String,
        /// The other record.
        single: String,
        /// The directories of its parts.
        parts: String,
    },
    /// They share no server with the same number of clients.
    #[error("the records have nothing in common: {0}")]
    Nothing(String),
}

impl Diff {
    /// Compares the later of two runs, B, with the earlier one, A.
    ///
    /// # Errors
    /// When the records cannot be compared, which is a [`DiffError`], or a histogram cannot be read.
    pub fn of(one: &StoredRecord, other: &StoredRecord) -> anyhow::Result<Self> {
        // UTC in RFC 3339 sorts as text.
        let (a, b) = if one.started_at() > other.started_at() {
            (other, one)
        } else {
            (one, other)
        };
        if a.is_same(b) {
            return Err(DiffError::Same(a.directory.clone(), b.directory.clone()).into());
        }
        for (whole, single) in [(a, b), (b, a)] {
            if whole.study.is_some() && single.study.is_none() {
                return Err(DiffError::Parts {
                    whole: whole.directory.clone(),
                    single: single.directory.clone(),
                    parts: list(&whole.directories()),
                }
                .into());
            }
        }
        let mut parts = Vec::new();
        for in_b in &b.parts {
            let in_a = a.parts.iter().find(|part| part.name == in_b.name);
            let both =
                in_a.and_then(|in_a| Some((in_a.measured.as_ref()?, in_b.measured.as_ref()?)));
            if let Some((in_a, in_b_measured)) = both {
                let mut part = Part::of(in_a, in_b_measured)?;
                part.name.clone_from(&in_b.name);
                part.title.clone_from(&in_b.title);
                parts.push(part);
            }
        }
        let pairs = parts.iter_mut().flat_map(|part| &mut part.pairs);
        conclude(pairs.map(|compared| &mut compared.pair));
        let pairs = parts.iter_mut().flat_map(|part| &mut part.pairs);
        judge(pairs.flat_map(|compared| &mut compared.more));
        let compared = |part: &Part| !part.pairs.is_empty() || !part.limits.is_empty();
        if !parts.iter().any(compared) {
            return Err(DiffError::Nothing(words::apart(a, b)).into());
        }
        let shared: Vec<&str> = parts
            .iter()
            .filter_map(|part| part.name.as_deref())
            .collect();
        let only = |recorded: &StoredRecord| -> Vec<String> {
            let names = recorded
                .parts
                .iter()
                .filter_map(|part| part.name.as_deref());
            let only = names.filter(|name| !shared.contains(name));
            only.map(str::to_owned).collect()
        };
        let only_in = [only(a), only(b)];
        let mut diff = Self {
            made: Likeness::of(&parts, &only_in, [a, b]),
            only_in,
            a: RunInfo::of(a),
            b: RunInfo::of(b),
            headline: String::new(),
            caveats: words::caveats(&parts, [a, b]),
            notes: Vec::new(),
            parts,
        };
        diff.headline = words::headline(&diff);
        diff.notes = words::notes(&diff);
        Ok(diff)
    }

    /// The verdicts on all servers by metric, and on limits.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.parts.iter().flat_map(|part| {
            let measures = part
                .pairs
                .iter()
                .flat_map(|compared| &compared.pair.measures);
            let limits = part.limits.iter().map(|limit| limit.verdict);
            measures.map(|measured| measured.verdict).chain(limits)
        })
    }

    /// The sentence of each pair with a difference.
    pub fn sentences(&self) -> Vec<&str> {
        let pairs = self.parts.iter().flat_map(|part| &part.pairs);
        let differs = |compared: &&ServerDiff| {
            let mut measures = compared.pair.measures.iter();
            measures.any(|one| one.verdict.is_difference())
        };
        pairs
            .filter(differs)
            .map(|compared| compared.pair.sentence.as_str())
            .collect()
    }

    /// Both runs as facts.
    pub fn side(&self) -> Vec<Fact> {
        let fact =
            |name: &str, of: fn(&RunInfo) -> String| Fact::plain(name, of(&self.a), of(&self.b));
        let questions = fact("Question", |side| side.question.clone());
        let mut facts = vec![
            fact("Record", |side| side.directory.clone()),
            fact("Study", |side| side.study.clone()),
            fact("Started", |side| side.started_at.clone()),
            fact("Ending", |side| {
                let how = match side.ending {
                    Ending::Complete => "complete",
                    Ending::Interrupted => "interrupted",
                    Ending::HostLost => "a client host was lost",
                    Ending::ServerFailed => "a server did not start or answer properly",
                    Ending::Unfinished => "unfinished",
                };
                format!(
                    "{how}, {} of {}",
                    side.trials,
                    counted(side.trials_planned, "trial")
                )
            }),
            fact("Warnings", |side| side.findings.len().to_string()),
            fact("throng", |side| side.version.clone()),
        ];
        if questions.a != questions.b {
            facts.insert(2, questions);
        }
        facts
    }

    /// The heading of a page.
    pub fn title(&self) -> String {
        if self.a.study == self.b.study {
            format!("{}, two runs compared", self.b.study)
        } else {
            format!("{} vs {}", self.b.study, self.a.study)
        }
    }
}

impl RunInfo {
    fn of(recorded: &StoredRecord) -> Self {
        let runs = || recorded.measured().map(|(run, _)| run);
        let mut findings: Vec<Finding> = Vec::new();
        for finding in runs().flat_map(|run| &run.findings) {
            if !findings.contains(finding) {
                findings.push(finding.clone());
            }
        }
        let first = recorded.first();
        let study = recorded.study.as_ref();
        let of_first = |of: fn(&Run) -> String| first.map(of).unwrap_or_default();
        Self {
            directory: recorded.directory.clone(),
            study: study.map_or_else(
                || of_first(|run| run.study.name.clone()),
                |s| s.name.clone(),
            ),
            question: study.map_or_else(
                || of_first(|run| run.study.question.clone()),
                |study| study.question.clone(),
            ),
            started_at: recorded.started_at().to_owned(),
            ending: Ending::of_parts(runs().map(|run| run.ending)),
            trials: recorded
                .measured()
                .map(|(_, trials)| trials.len() as u32)
                .sum(),
            trials_planned: runs()
                .map(|run| run.trials_planned)
                .fold(0, u32::saturating_add),
            version: of_first(|run| {
                let version = [run.throng_version.as_str(), run.throng_build.as_str()];
                version.join(" ").trim_end().to_owned()
            }),
            arguments: study.map_or_else(
                || first.map(|run| run.arguments.clone()).unwrap_or_default(),
                |study| study.arguments.clone(),
            ),
            findings,
        }
    }
}

impl Part {
    fn of(
        (run_a, trials_a): &(Run, Vec<Trial>),
        (run_b, trials_b): &(Run, Vec<Trial>),
    ) -> anyhow::Result<Self> {
        let summaries = [Summary::of(run_a, trials_a)?, Summary::of(run_b, trials_b)?];
        let [a, b] = [(run_a, &summaries[0]), (run_b, &summaries[1])]
            .map(|(run, summary)| Source { run, summary });
        let limits = [Limits::of(run_a, trials_a), Limits::of(run_b, trials_b)];
        let names = |run: &Run| -> BTreeSet<String> {
            run.servers
                .iter()
                .map(|server| server.name.clone())
                .collect()
        };
        let in_a = names(run_a);
        let servers: Vec<String> = run_b
            .servers
            .iter()
            .map(|server| server.name.clone())
            .collect();
        let servers: Vec<String> = servers
            .into_iter()
            .filter(|name| in_a.contains(name))
            .collect();
        let pairs = compared(&servers, a, b);
        let limits = limits::limits(limits[0].as_ref(), limits[1].as_ref(), run_b);
        Ok(Self {
            name: None,
            title: None,
            facts: differences::facts_of(run_a, run_b),
            caveats: differences::caveats(run_a, run_b),
            limits,
            only_in: [only(a, b), only(b, a)],
            figures: figures::figures(&servers, &pairs, [&summaries[0], &summaries[1]]),
            pairs,
            servers,
        })
    }
}

/// Each of these servers with each number of clients that both have, the largest first.
fn compared(servers: &[String], a: Source<'_>, b: Source<'_>) -> Vec<ServerDiff> {
    let mut pairs = Vec::new();
    for &clients in b.summary.clients.iter().rev() {
        for server in servers {
            let [in_a, in_b] = ["A", "B"].map(|run| format!("{server} in {run}"));
            let sides = b
                .side(server, clients, &in_b)
                .zip(a.side(server, clients, &in_a));
            pairs.extend(sides.map(|(side, reference)| ServerDiff {
                server: server.clone(),
                pair: pair(&side, &reference, Pairing::Apart),
                more: others(&side, &reference, Pairing::Apart),
            }));
        }
    }
    pairs
}

/// What run `of` has and run `other` lacks: servers, numbers of clients, and combinations of a server and a number of
/// clients that both have separately.
fn only(of: Source<'_>, other: Source<'_>) -> Vec<String> {
    let has = |source: Source<'_>, server: &str| {
        let mut servers = source.run.servers.iter();
        servers.any(|known| known.name == server)
    };
    let mut only: Vec<String> = of
        .run
        .servers
        .iter()
        .filter(|server| !has(other, &server.name))
        .map(|server| server.name.clone())
        .collect();
    let clients = of.summary.clients.iter();
    let alone: Vec<u32> = clients
        .filter(|clients| !other.summary.clients.contains(clients))
        .copied()
        .collect();
    only.extend(alone.iter().map(|clients| counted(*clients, "client")));
    let rows = of.summary.rows.iter();
    let others = rows.filter(|row| has(other, &row.server) && !alone.contains(&row.clients));
    let missing = others.filter(|row| {
        let mut there = other.summary.rows_at(row.clients);
        !there.any(|there| there.server == row.server)
    });
    only.extend(
        missing.map(|row| format!("{} with {}", row.server, counted(row.clients, "client"))),
    );
    only
}

#[cfg(test)]
mod tests;
