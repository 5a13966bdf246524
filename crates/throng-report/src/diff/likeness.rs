//! Whether two runs had the same settings, programs and machine. Then they are an A/A comparison, and any difference
//! is noise or a change on the machine.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Fact, Part, StoredRecord};
use crate::provenance::program_of;
use throng_record::format::{ABSENT, first_of};
use throng_record::{Run, ServerInfo};

/// The maximum number of names listed; the rest are only counted.
const NAMED: usize = 6;

/// The likeness of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// Everything recorded is the same.
    Alike,
    /// Everything recorded is the same, but not everything about these programs is recorded.
    AlikeAsFarAsKnown(Vec<String>),
    /// These things differ.
    Differently(Vec<String>),
}

impl Likeness {
    pub(super) fn of(
        parts: &[Part],
        only_in: &[Vec<String>; 2],
        [a, b]: [&StoredRecord; 2],
    ) -> Self {
        let mut names: Vec<String> = Vec::new();
        let facts = parts.iter().flat_map(|part| &part.facts);
        // What one of the runs does not record may or may not differ.
        let is_known = |fact: &&Fact| ![&fact.a, &fact.b].iter().any(|value| *value == ABSENT);
        let differ = facts.filter(|fact| fact.differs).filter(is_known);
        let differ = differ.map(|fact| &fact.name);
        let servers = parts.iter().flat_map(|part| part.only_in.iter().flatten());
        for name in differ.chain(servers).chain(only_in.iter().flatten()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if !names.is_empty() {
            return Self::Differently(names);
        }
        let runs = || [a, b].into_iter().flat_map(StoredRecord::measured);
        let unknown = runs().flat_map(|(run, _)| unknown(run));
        let unknown: BTreeSet<String> = unknown.collect();
        if unknown.is_empty() {
            Self::Alike
        } else {
            Self::AlikeAsFarAsKnown(unknown.into_iter().collect())
        }
    }

    /// Whether they are an A/A comparison.
    pub fn is_same(&self) -> bool {
        !matches!(self, Self::Differently(_))
    }

    /// "A/A: settings, programs and machine are the same."
    pub fn words(&self) -> (&'static str, String) {
        let same = "any difference is noise or a change on the machine between the runs.";
        match self {
            Self::Alike => (
                "A/A",
                format!(": settings, programs and machine are the same, so {same}"),
            ),
            Self::AlikeAsFarAsKnown(programs) => (
                "A/A, as far as recorded",
                format!(
                    ": settings, machine and all recorded program hashes are the same, so {same} No hash is recorded \
                     for {}.",
                    first_of(programs, NAMED)
                ),
            ),
            Self::Differently(names) => (
                "Different conditions",
                format!(": {}.", first_of(names, NAMED)),
            ),
        }
    }
}

/// The programs of a run whose identity is not recorded.
fn unknown(run: &Run) -> impl Iterator<Item = String> {
    let throng = &run.throng_program;
    let is_modified = throng.modified == Some(true);
    let is_known = throng.sha256.is_some() || throng.commit.is_some() && !is_modified;
    let own = (!is_known).then(|| "throng".to_owned());
    let has_hashes = |server: &&ServerInfo| {
        program_of(server).is_some_and(|program| program.files().all(|file| file.sha256.is_some()))
    };
    let foreign = run.servers.iter().filter(|server| server.foreign.is_some());
    let unknown = foreign.filter(move |server| !has_hashes(server));
    own.into_iter()
        .chain(unknown.map(|server| server.name.clone()))
}

#[cfg(test)]
mod tests {
    use crate::diff::{Diff, RecordedPart, StoredRecord};
    use crate::fixture;
    use throng_record::{Run, Trial};

    fn recorded(run: Run, trials: Vec<Trial>) -> StoredRecord {
        StoredRecord {
            directory: run.started_at.clone(),
            study: None,
            parts: vec![RecordedPart {
                name: None,
                title: None,
                measured: Some((run, trials)),
            }],
        }
    }

    fn words(change: impl Fn(&mut Run)) -> String {
        let (run, trials) = fixture::record();
        let mut other = run.clone();
        other.started_at = "2027-01-01T00:00:00Z".to_owned();
        other.seed += 1;
        change(&mut other);
        let [a, b] = [recorded(run, trials.clone()), recorded(other, trials)];
        let (first, rest) = Diff::of(&a, &b).unwrap().made.words();
        first.to_owned() + &rest
    }

    #[test]
    fn equal_settings_and_programs_make_an_a_a_comparison() {
        let alike = words(|_| {});
        assert!(
            alike.starts_with("A/A: settings, programs and machine"),
            "{alike}"
        );
        let unknown = words(|run| {
            run.throng_program.sha256 = None;
            run.throng_program.commit = None;
        });
        assert!(unknown.starts_with("A/A, as far as recorded"), "{unknown}");
        assert!(
            unknown.contains("No hash is recorded for throng."),
            "{unknown}"
        );
    }

    #[test]
    fn differences_are_named() {
        let kernel = words(|run| run.host.kernel = "Linux 9.9".to_owned());
        assert_eq!(kernel, "Different conditions: Kernel.");
        let server = words(|run| run.servers[0].command.push("--more".to_owned()));
        assert!(server.contains("Start of "), "{server}");
        let program = words(|run| run.throng_program.sha256 = Some("0".repeat(64)));
        assert!(program.contains("throng's program"), "{program}");
    }
}
