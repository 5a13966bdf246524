//! Two runs side by side: how they were made, the ratio B over A of every server with the same number of clients in
//! both, and which results of the earlier run held in the later one.
//!
//! The runs took place at different times, so nothing is interleaved, and a change of the machine looks like a change
//! of a server. A comparison begins with that caveat, and with differences of load and machine.

pub(crate) mod figures;
mod repeated;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::Report;
use super::answer::leader;
use super::comparison::{
    Pair, Pairing, Source, against_reference, apart, conclude, judge, others, pair,
};
use super::facts::{Condition, details, of_run, side_by_side};
pub use super::facts::{Fact, Kind};
use super::figures::Figure;
use super::grade::{Grade, Level};
use super::provenance;
use super::study::{self, LoadedStudy, StudyReport};
pub use repeated::{Outcome, Repeated, Seen, Subject};
use throng_record::format::{counted, list};
use throng_record::{Ending, Finding, StudyPart};
use throng_stats::Verdict;

/// What two runs are compared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// How the servers of the later run, B, differ from those of the earlier one, A.
    Diff,
    /// Whether the later run, a repeat, confirms the results of the earlier one.
    Reproduction,
}

/// Two runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Between {
    pub question: Question,
    /// The earlier run, and the later one.
    pub runs: [RunInfo; 2],
    /// The result in one sentence, then its counts.
    pub headline: Vec<String>,
    /// Each server that differs, or each result that did not hold, in a sentence.
    pub sentences: Vec<String>,
    /// Why the ratios say less than they seem to, if the runs were not made alike.
    pub caveats: Vec<String>,
    /// Each part that both records have; a single one for runs without parts.
    pub parts: Vec<PartBetween>,
    /// The claims that both judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Repeated>,
    /// Parts that only the earlier run has, and parts that only the later one has.
    pub only_in: [Vec<String>; 2],
    /// Facts about both records.
    pub facts: Vec<Fact>,
    /// Differences in how the runs were made, each once.
    pub differences: Vec<Fact>,
    /// Programs whose identity is not recorded.
    pub unknown: BTreeSet<String>,
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
    /// The command line that started it.
    pub arguments: Vec<String>,
    /// Its findings, each once.
    pub findings: Vec<Finding>,
}

/// A part that both records have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartBetween {
    /// Its name; empty if the runs have no parts.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The grades of both runs.
    pub grades: [Grade; 2],
    /// How both were made. Details only where they differ.
    pub facts: Vec<Fact>,
    /// Each server with each number of clients, later over earlier, the largest number first.
    pub pairs: Vec<Pair>,
    /// The verdicts on servers within each run.
    pub verdicts: Vec<Repeated>,
    /// The limits of each server, if both runs searched for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Repeated>,
    /// Measurements that only the earlier run has, and that only the later one has.
    pub only_in: [Vec<String>; 2],
    /// The servers that both have, in the order of the later run.
    pub servers: Vec<String>,
    /// Plots.
    #[serde(skip)]
    pub figures: Vec<Figure>,
}

/// Why two records cannot be compared.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unlike(String);

/// A record read from disk.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Its directory, as it is called on pages.
    pub directory: String,
    pub study: LoadedStudy,
}

impl Recorded {
    /// Reads the record in `directory`.
    ///
    /// # Errors
    /// When it holds no record, or a file of the record is damaged, naming it.
    pub fn read(directory: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            directory: directory.display().to_string(),
            study: study::load_any(directory)?,
        })
    }

    /// Whether it is a run, which has no parts.
    fn is_single(&self) -> bool {
        self.study
            .study
            .parts
            .iter()
            .all(|part| part.name.is_empty())
    }

    /// Whether `other` is the same record, wherever it is stored.
    fn is_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.study, &other.study);
        let mut parts = own.parts.iter().zip(&others.parts);
        own.study == others.study
            && parts.all(|both| match both {
                (Some(one), Some(two)) => (&one.run, &one.trials) == (&two.run, &two.trials),
                (one, two) => one.is_none() && two.is_none(),
            })
    }

    /// The directories of its parts.
    fn directories(&self) -> Vec<String> {
        let directory = Path::new(&self.directory);
        let parts = self.study.study.parts.iter();
        parts
            .map(|part| directory.join(&part.name).display().to_string())
            .collect()
    }
}

impl Between {
    /// Compares the later of two runs, B, with the earlier one, A.
    ///
    /// # Errors
    /// When the records cannot be compared, which is [`Unlike`], or a histogram cannot be read.
    pub fn diff(one: &Recorded, other: &Recorded) -> anyhow::Result<Self> {
        // UTC in RFC 3339 sorts as text.
        let is_later = one.study.study.started_at > other.study.study.started_at;
        let [a, b] = if is_later { [other, one] } else { [one, other] };
        if a.is_same(b) {
            let both = [&a.directory, &b.directory];
            let what = format!("{} are the same run; name another one", list(&both));
            return Err(Unlike(what).into());
        }
        for (whole, single) in [(a, b), (b, a)] {
            if !whole.is_single() && single.is_single() {
                return Err(Unlike(format!(
                    "{} is a study of several parts and {} is not; name one of its parts: {}",
                    whole.directory,
                    single.directory,
                    list(&whole.directories())
                ))
                .into());
            }
        }
        let diff = Self::of(Question::Diff, [a, b])?;
        let mut parts = diff.parts.iter();
        if parts.all(|part| part.pairs.is_empty() && part.limits.is_empty()) {
            let have = words::measured([a, b]);
            return Err(Unlike(format!("the records have nothing in common: {have}")).into());
        }
        Ok(diff)
    }

    /// Compares the record in `again` with the one in `earlier`, which it repeats. The same rules judge both. If a run
    /// compares no servers, the reference is the best server of the earlier run.
    ///
    /// # Errors
    /// When a file of a record is missing or damaged, naming it.
    pub fn reproduction(earlier: &Path, again: &Path) -> anyhow::Result<Self> {
        let (then, mut now) = (Recorded::read(earlier)?, Recorded::read(again)?);
        now.study.study.claims.clone_from(&then.study.study.claims);
        Self::of(Question::Reproduction, [&then, &now])
    }

    fn of(question: Question, [a, b]: [&Recorded; 2]) -> anyhow::Result<Self> {
        let [then, now] = [a.study.report()?, b.study.report()?];
        let both = now.parts.iter().filter_map(|later| {
            let mut parts = then.parts.iter();
            let earlier = parts.find(|part| part.record.name == later.record.name)?;
            let reports = [earlier.report.as_ref()?, later.report.as_ref()?];
            Some((PartBetween::of(later.record, reports), reports))
        });
        let (mut parts, both_reports): (Vec<PartBetween>, Vec<[&Report<'_>; 2]>) = both.unzip();
        conclude(parts.iter_mut().flat_map(|part| &mut part.pairs));
        let pairs = parts.iter_mut().flat_map(|part| &mut part.pairs);
        // Apart from the others, whose verdicts would need much more data if these many were among them.
        judge(pairs.flat_map(|compared| &mut compared.more));
        // They show the verdicts.
        for (part, reports) in parts.iter_mut().zip(both_reports) {
            let summaries = reports.map(|report| &report.summary);
            part.figures = figures::figures(&part.servers, &part.pairs, summaries);
        }
        let only = |report: &StudyReport<'_>| -> Vec<String> {
            let names = report.parts.iter().map(|part| &part.record.name);
            let only = names.filter(|name| !parts.iter().any(|part| part.name == **name));
            only.cloned().collect()
        };
        let runs = [RunInfo::of(a, &then), RunInfo::of(b, &now)];
        let facts = side_by_side(&about(&runs[0], &then), &about(&runs[1], &now));
        let of_parts = parts.iter().flat_map(|part| &part.facts);
        let mut differences: Vec<Fact> = Vec::new();
        for fact in facts.iter().chain(of_parts).filter(|fact| fact.differs()) {
            if !differences.contains(fact) {
                differences.push(fact.clone());
            }
        }
        let mut between = Self {
            question,
            headline: Vec::new(),
            sentences: Vec::new(),
            caveats: words::caveats(&parts, &facts),
            claims: Repeated::of_claims(&then.claims, &now.claims),
            only_in: [only(&then), only(&now)],
            unknown: reports(&then)
                .chain(reports(&now))
                .flat_map(unknown)
                .collect(),
            runs,
            parts,
            facts,
            differences,
        };
        between.headline = words::headline(&between);
        between.sentences = words::sentences(&between);
        Ok(between)
    }

    /// The verdicts on all servers by metric, and on limits: the later run over the earlier one.
    pub fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        self.parts.iter().flat_map(|part| {
            let measures = part.pairs.iter().flat_map(|pair| &pair.measures);
            let limits = part.limits.iter().filter_map(|limit| limit.verdict);
            measures.map(|measured| measured.verdict).chain(limits)
        })
    }

    /// Every result of both runs, with the name of its part.
    pub(crate) fn repeated(&self) -> impl Iterator<Item = (&str, &Repeated)> {
        let of_parts = self.parts.iter().flat_map(|part| {
            let own = part.verdicts.iter().chain(&part.limits);
            own.map(|repeated| (part.name.as_str(), repeated))
        });
        of_parts.chain(self.claims.iter().map(|claim| ("", claim)))
    }

    /// Whether any result of the earlier run did not hold.
    pub fn has_failed(&self) -> bool {
        self.repeated()
            .any(|(_, repeated)| repeated.outcome == Outcome::NotHeld)
    }
}

/// The reports of the parts that ran.
fn reports<'a>(study: &'a StudyReport<'a>) -> impl Iterator<Item = &'a Report<'a>> {
    study.parts.iter().filter_map(|part| part.report.as_ref())
}

/// Facts about a record.
fn about(run: &RunInfo, report: &StudyReport<'_>) -> Vec<Condition> {
    use Kind::{Load, Moment};
    let trials = counted(run.trials_planned, "trial");
    let ending = format!("{}, {} of {trials}", words::ending(run.ending), run.trials);
    let version = reports(report)
        .next()
        .map(|first| provenance::version(first.run));
    let scale = report
        .study
        .scale
        .as_ref()
        .map_or_else(|| "full".to_owned(), |scale| scale.by.clone());
    let facts = [
        (Moment, "Record", run.directory.clone()),
        (Moment, "Study", run.study.clone()),
        (Moment, "Question", run.question.clone()),
        (Load, "Scale", scale),
        (Moment, "Started", run.started_at.clone()),
        (Moment, "Ending", ending),
        (Moment, "Warnings", run.findings.len().to_string()),
        (Moment, "throng", version.unwrap_or_default()),
    ]
    .into_iter();
    facts
        .map(|(kind, name, value)| Condition::new(kind, name, value))
        .collect()
}

/// The programs of a run whose identity is not recorded.
fn unknown(report: &Report<'_>) -> Vec<String> {
    let throng = &report.run.throng_program;
    let is_modified = throng.modified == Some(true);
    let is_known = throng.sha256.is_some() || throng.commit.is_some() && !is_modified;
    let foreign = report.run.servers.iter().filter(|server| {
        let mut program = provenance::program_of(server).into_iter();
        let has_hashes = program.any(|program| program.files().all(|file| file.sha256.is_some()));
        server.foreign.is_some() && !has_hashes
    });
    let own = (!is_known).then(|| "throng".to_owned());
    let names = foreign.map(|server| server.name.clone());
    own.into_iter().chain(names).collect()
}

impl RunInfo {
    fn of(recorded: &Recorded, report: &StudyReport<'_>) -> Self {
        let mut findings: Vec<Finding> = Vec::new();
        for finding in reports(report).flat_map(|part| &part.run.findings) {
            if !findings.contains(finding) {
                findings.push(finding.clone());
            }
        }
        let planned = reports(report).map(|part| part.run.trials_planned);
        Self {
            directory: recorded.directory.clone(),
            study: report.study.name.clone(),
            question: report.study.question.clone(),
            started_at: report.study.started_at.clone(),
            ending: report.ending(),
            trials: reports(report).map(|part| part.trials.len() as u32).sum(),
            trials_planned: planned.fold(0, u32::saturating_add),
            arguments: report.study.arguments.clone(),
            findings,
        }
    }
}

impl PartBetween {
    fn of(part: &StudyPart, [then, now]: [&Report<'_>; 2]) -> Self {
        let [a, b] = [then, now].map(|report| Source {
            run: report.run,
            summary: &report.summary,
        });
        let in_both = now.run.servers.iter().filter(|server| has(a, &server.name));
        let servers: Vec<String> = in_both.map(|server| server.name.clone()).collect();
        let earlier = |server: &str| format!("{server} in A");
        let pairs = apart(b, a, earlier, |side, reference| Pair {
            more: others(side, reference, Pairing::Apart),
            ..pair(side, reference, Pairing::Apart)
        });
        let shown = [then, now].map(|report| of_run(report.run, None));
        let more = [then, now].map(|report| details(report.run));
        let mut facts = side_by_side(&shown[0], &shown[1]);
        facts.extend(
            side_by_side(&more[0], &more[1])
                .into_iter()
                .filter(Fact::differs),
        );
        let leaders = leaders(then);
        let [in_then, in_now] = [then, now].map(|report| compared(report, &leaders));
        Self {
            name: part.name.clone(),
            title: part.title.clone(),
            grades: [then, now].map(|report| report.grade.clone()),
            facts,
            verdicts: Repeated::of_pairs(&in_then, &in_now),
            limits: Repeated::of_limits([then, now]),
            only_in: [only(a, b), only(b, a)],
            figures: Vec::new(),
            pairs,
            servers,
        }
    }
}

/// The best server with each number of clients.
fn leaders(report: &Report<'_>) -> BTreeMap<u32, String> {
    let clients = report.summary.clients.iter();
    clients
        .filter_map(|clients| Some((*clients, leader(&report.summary, *clients)?.to_owned())))
        .collect()
}

/// All pairs of servers of a run that are compared, with their verdicts.
fn compared(report: &Report<'_>, leaders: &BTreeMap<u32, String>) -> Vec<Pair> {
    if let Some(comparison) = report.comparison.requested() {
        return comparison.all_pairs().cloned().collect();
    }
    let source = Source {
        run: report.run,
        summary: &report.summary,
    };
    let mut pairs = against_reference(source, |clients| leaders.get(&clients).map(String::as_str));
    conclude(&mut pairs);
    if let (Level::Unusable, Some(cause)) = (report.grade.level, report.grade.cause()) {
        for pair in &mut pairs {
            pair.withhold(cause);
        }
    }
    pairs
}

/// Whether a run has a server of this name.
fn has(source: Source<'_>, server: &str) -> bool {
    let mut servers = source.run.servers.iter();
    servers.any(|known| known.name == server)
}

/// What run `of` has and run `other` lacks: servers, numbers of clients, and combinations of a server and a number of
/// clients that both have separately.
fn only(of: Source<'_>, other: Source<'_>) -> Vec<String> {
    let servers = of.run.servers.iter().map(|server| server.name.clone());
    let mut only: Vec<String> = servers.filter(|name| !has(other, name)).collect();
    let clients = of.summary.clients.iter().copied();
    let is_alone = |number: &u32| !other.summary.clients.contains(number);
    only.extend(
        clients
            .filter(is_alone)
            .map(|alone| counted(alone, "client")),
    );
    let missing = of.summary.rows.iter().filter(|row| {
        let mut there = other.summary.rows_at(row.clients);
        let is_there = there.any(|there| there.server == row.server);
        has(other, &row.server) && !is_alone(&row.clients) && !is_there
    });
    only.extend(
        missing.map(|row| format!("{} with {}", row.server, counted(row.clients, "client"))),
    );
    only
}
