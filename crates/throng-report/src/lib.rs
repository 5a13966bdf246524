//! Makes pages, tables and pictures from a record. Runs nothing.
//!
//! Data flow: [`throng_record`] → [`summary`] (numbers) → [`answer`] (words) and [`figures`] (plots as data) →
//! [`sections`] (parts of a report) → [`document`] (blocks for a medium) and [`exporters`] (files).
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

pub mod answer;
pub mod at_load;
pub mod between;
pub mod checks;
mod columns;
pub mod comparison;
pub mod completion;
mod counted;
pub mod document;
pub mod exporters;
pub mod facts;
pub mod figures;
pub mod flame;
pub mod glance;
pub mod grade;
pub mod limit;
pub mod pace;
pub mod palette;
mod provenance;
pub mod render;
pub mod sections;
pub mod study;
pub mod summary;
mod thresholds;
pub mod trial_files;
mod warm_up;
pub mod why;

#[cfg(test)]
mod estimates;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod not_ranked;
#[cfg(test)]
mod one_value;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use answer::Answer;
use between::{Between, Question};
use comparison::Comparison;
use document::{Document, html, markdown};
use exporters::{EXPORTERS, Exporter};
use figures::{FIGURES, Figure, Source};
use flame::FlameGraph;
use grade::Grade;
use limit::Limits;
use study::StudyReport;
use summary::Summary;
use throng_record::findings::run::{FAILED_TRIALS, INVALID_TRIALS};
use throng_record::metrics::ConditionResult;
use throng_record::{self as record, Draft, Finding, Run, Trial, counting};
use throng_spec::registry::Unsupported;
use trial_files::{ClientLog, Stacks};
use why::Why;

/// Everything an exporter needs.
#[derive(Debug, Clone)]
pub struct Report<'a> {
    pub run: &'a Run,
    /// The trials of the run, as recorded.
    pub trials: &'a [Trial],
    /// The numbers.
    pub summary: Summary,
    /// The comparisons of its servers.
    pub comparison: Comparison,
    /// Why servers differ, for each pair that was watched.
    pub why: Vec<Why>,
    /// Where the CPU time of its servers goes, if their stacks were kept.
    pub(crate) flame_graphs: Vec<FlameGraph>,
    /// The thresholds, and whether each was missed.
    pub thresholds: Vec<ConditionResult>,
    /// The limits found, if the run searched for them.
    pub limits: Option<Limits>,
    /// The grade of the results.
    pub grade: Grade,
    /// The answer in words.
    pub answer: Answer,
    /// The figures the record has data for.
    pub figures: Vec<Figure>,
    /// The servers that share the colours and markers of its pictures: those of the run, or of the whole study.
    pub(crate) among: Vec<String>,
    /// Costs that could not be counted, and why. Each reason appears once.
    pub not_here: Vec<(String, Unsupported)>,
}

impl<'a> Report<'a> {
    /// Why the results fall short: they are unusable, or trials failed. `None` for a search, whose trials may fail.
    pub fn rough(&self) -> Option<String> {
        if self.limits.is_some() {
            return None;
        }
        if !self.grade.is_usable() {
            let cause = self.grade.cause().unwrap_or_default();
            return Some(format!("what was measured is unusable: {cause}"));
        }
        let of_trials = |cause: &&Finding| cause.is(&FAILED_TRIALS) || cause.is(&INVALID_TRIALS);
        if let Some(cause) = self.grade.causes.iter().find(of_trials) {
            return Some(cause.text.clone());
        }
        let mut rows = self.summary.rows.iter();
        rows.find_map(|row| Some(format!("{}: {}", row.server, row.not_comparable()?)))
    }

    /// The place of a server in the palette.
    pub(crate) fn place(&self, server: &str) -> usize {
        palette::place(server, &self.among)
    }

    /// Whether any threshold was missed.
    pub fn missed(&self) -> bool {
        self.thresholds.iter().any(|judged| judged.missed)
    }

    /// Builds the report of a run. `logs` may be empty.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn of(run: &'a Run, trials: &'a [Trial], logs: &Logs) -> anyhow::Result<Self> {
        Self::with_baseline(run, trials, logs, None, names(run))
    }

    /// Builds the report of a run, compared with an earlier run if `baseline` is given. Its servers share their colours
    /// and markers with those of `among`.
    ///
    /// # Errors
    /// When a histogram in either record cannot be read.
    pub fn with_baseline(
        run: &'a Run,
        trials: &'a [Trial],
        logs: &Logs,
        baseline: Option<&(Run, Vec<Trial>)>,
        among: Vec<String>,
    ) -> anyhow::Result<Self> {
        let summary = Summary::of(run, trials)?;
        let mut comparison = Comparison::of(run, &summary, baseline)?;
        let grade = Grade::of(&grade::GradeInput {
            run,
            trials,
            summary: &summary,
            comparison: &comparison,
        });
        if let (grade::Level::Unusable, Some(cause)) = (grade.level, grade.cause()) {
            comparison.withhold(cause);
        }
        comparison.judge();
        let why = Why::all(trials, &comparison);
        let limits = Limits::of(run, trials);
        let counting = counting(trials);
        let source = Source {
            summary: &summary,
            servers: &among,
            clients: &logs.clients,
            trials: &counting,
            limits: limits.as_ref(),
            comparison: Some(&comparison),
            why: &why,
            grade: Some(&grade),
        };
        let drawn = FIGURES.iter().filter_map(|kind| kind.build(&source));
        Ok(Self {
            run,
            trials,
            figures: drawn.collect(),
            answer: match &limits {
                Some(limits) => Answer::of_limits(limits),
                None => Answer::of(&summary, &comparison, &grade),
            },
            grade,
            thresholds: thresholds::judged(run, &summary, &comparison),
            limits,
            comparison,
            flame_graphs: flame::graphs(&logs.stacks, &why),
            why,
            summary,
            among,
            not_here: counted::not_here(run, trials),
        })
    }
}

/// The names of the servers of a run.
fn names(run: &Run) -> Vec<String> {
    run.servers
        .iter()
        .map(|server| server.name.clone())
        .collect()
}

/// The logs of individual trials at the largest number of clients.
#[derive(Debug, Clone, Default)]
pub struct Logs {
    /// The clients of each server.
    pub clients: Vec<ClientLog>,
    /// The stacks of each server, if they were kept.
    pub stacks: Vec<Stacks>,
}

/// A record read from disk, from which to build a [`Report`].
#[derive(Debug, Clone)]
pub struct LoadedRun {
    pub run: Run,
    pub trials: Vec<Trial>,
    /// The logs of individual trials.
    pub logs: Logs,
    /// The earlier run to compare with, if any.
    pub baseline: Option<(Run, Vec<Trial>)>,
}

impl LoadedRun {
    /// Builds the report of this record.
    ///
    /// # Errors
    /// When a histogram in the record cannot be read.
    pub fn report(&self) -> anyhow::Result<Report<'_>> {
        self.report_among(names(&self.run))
    }

    /// The same, with the colours and markers of a study of these servers.
    fn report_among(&self, servers: Vec<String>) -> anyhow::Result<Report<'_>> {
        let baseline = self.baseline.as_ref();
        Report::with_baseline(&self.run, &self.trials, &self.logs, baseline, servers)
    }
}

/// Reads the record in `dir`.
///
/// # Errors
/// When a file of the record is missing or damaged, naming it.
pub fn load(dir: &Path) -> anyhow::Result<LoadedRun> {
    let run = record::read(dir)?;
    let trials = record::read_trials(dir)?;
    let logs = Logs {
        clients: trial_files::read_largest(dir, &run, &trials)?,
        stacks: trial_files::read_stacks(dir, &trials)?,
    };
    let baseline = match record::directory(dir, record::BASELINE)? {
        Some(earlier) => Some((record::read(&earlier)?, record::read_trials(&earlier)?)),
        None => None,
    };
    Ok(LoadedRun {
        run,
        trials,
        logs,
        baseline,
    })
}

/// Writes every export and still figure of a report into `dir`. Returns the paths written, the page first.
///
/// # Errors
/// When a file cannot be written, naming it.
pub fn write_all(report: &Report<'_>, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = export(dir, |exporter, to| (exporter.render)(report, to))?;
    written.extend(draw(&report.figures, dir)?);
    Ok(written)
}

/// Draws the figures into files. Returns the paths written.
fn draw(figures: &[Figure], dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    if figures.is_empty() {
        return Ok(written);
    }
    let pictures = dir.join("figures");
    record::directory(dir, "figures")?;
    fs::create_dir_all(&pictures).with_context(|| format!("cannot make {}", pictures.display()))?;
    for figure in figures {
        let svg = pictures.join(format!("{}.svg", figure.id));
        write(&svg, render::still::svg(figure).as_bytes())?;
        written.push(svg);
    }
    Ok(written)
}

/// Writes every export of a study into `dir`, and the exports of its parts into their directories. Returns the paths
/// written, the study's page first.
///
/// # Errors
/// When a file cannot be written, naming it.
pub fn write_study(report: &StudyReport<'_>, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = export(dir, |exporter, to| (exporter.render_study)(report, to))?;
    written.extend(draw(&report.pictures(), dir)?);
    for part in &report.parts {
        if let Some(of_part) = &part.report {
            written.extend(write_all(of_part, &dir.join(&part.record.name))?);
        }
    }
    Ok(written)
}

/// Writes the comparison of two runs into `dir`, as `diff.html`, `.md` and `.json`, or as `reproduction.html`, `.md` and
/// `.json`. Returns the paths written, the page first.
///
/// # Errors
/// When a file cannot be written, naming it.
pub fn write_between(between: &Between, dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = match between.question {
        Question::Diff => "diff",
        Question::Reproduction => "reproduction",
    };
    let document = sections::of_between(between);
    let files = [
        ("html", html::page(&document).into_bytes()),
        ("md", markdown::text(&document).into_bytes()),
        ("json", serde_json::to_vec_pretty(between)?),
    ];
    let mut written = Vec::new();
    for (ending, bytes) in files {
        let path = dir.join(format!("{name}.{ending}"));
        write(&path, &bytes)?;
        written.push(path);
    }
    Ok(written)
}

/// Writes a file of a record.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut file = Draft::of_record(path)?;
    let written = file.write_all(bytes).and_then(|()| file.finish());
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The page of the record in `directory`, as it would be written there.
///
/// # Errors
/// When a file of the record is missing or damaged, naming it.
pub fn page(directory: &Path) -> anyhow::Result<Vec<u8>> {
    exported(directory, EXPORTERS[0])
}

/// The output of `exporter` for the record in `directory`, which is a run or a study.
///
/// # Errors
/// When a file of the record is missing or damaged, naming it.
pub fn exported(directory: &Path, exporter: &Exporter) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if record::Study::is_in(directory) {
        let loaded = study::load(directory)?;
        (exporter.render_study)(&loaded.report()?, &mut bytes)?;
    } else {
        let loaded = load(directory)?;
        (exporter.render)(&loaded.report()?, &mut bytes)?;
    }
    Ok(bytes)
}

/// The export of each server of a run by itself, by its name.
///
/// # Errors
/// When a file of the record is missing or damaged, naming it, or it is the record of a study.
pub fn exported_by_server(
    directory: &Path,
    exporter: &Exporter,
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let is_study = record::Study::is_in(directory);
    anyhow::ensure!(!is_study, "name the directory of a part of the study");
    let loaded = load(directory)?;
    let alone = |server: &String| {
        let mut of_server = loaded.clone();
        of_server.run.servers.retain(|other| other.name == *server);
        of_server.run.comparison = None;
        of_server.trials.retain(|trial| trial.server == *server);
        let mut bytes = Vec::new();
        (exporter.render)(&of_server.report()?, &mut bytes)?;
        Ok((server.clone(), bytes))
    };
    names(&loaded.run).iter().map(alone).collect()
}

/// A document as Markdown for a file at `path`. The pictures of its answers are written next to that file; without a
/// path there are no pictures.
///
/// # Errors
/// When a picture cannot be written, naming it.
pub fn markdown_for(document: &Document, path: Option<&Path>) -> anyhow::Result<String> {
    let stem = path.and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let (text, pictures) = markdown::elsewhere(document, stem.as_deref());
    for (name, figure) in pictures {
        let file = path.map_or_else(|| PathBuf::from(&name), |path| path.with_file_name(&name));
        write(&file, render::still::svg(&figure).as_bytes())?;
    }
    Ok(text)
}

/// The page that compares two runs.
pub fn page_between(between: &Between) -> String {
    html::page(&sections::of_between(between))
}

/// Writes one file per exporter into `dir`, except for those on request.
fn export(
    dir: &Path,
    render: impl Fn(&Exporter, &mut dyn io::Write) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for exporter in EXPORTERS {
        let Some(file_name) = exporter.file_name else {
            continue;
        };
        let path = dir.join(file_name);
        let cannot_write = || format!("cannot write {}", path.display());
        let mut to = Draft::of_record(&path)?;
        render(exporter, &mut to).with_context(cannot_write)?;
        to.finish().with_context(cannot_write)?;
        written.push(path);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of exporters that write into every record.
    fn files() -> usize {
        let written = EXPORTERS.iter().filter_map(|exporter| exporter.file_name);
        written.count()
    }

    /// The number of figures that need several loads, a job per client, a search, a comparison of servers, or servers
    /// that were watched.
    const OF_OTHER_LOADS: usize = 10;

    fn write_again(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
        write_all(&load(dir)?.report()?, dir)
    }

    #[test]
    fn everything_is_written_and_named() {
        let dir = tempfile::tempdir().unwrap();
        fixture::write(dir.path());
        let written = write_again(dir.path()).unwrap();
        let drawn = load(dir.path()).unwrap().report().unwrap().figures.len();
        assert_eq!(written.len(), files() + drawn);
        assert!(
            written
                .iter()
                .all(|path| path.metadata().unwrap().len() > 500)
        );
    }

    #[test]
    fn one_load_and_one_server_are_drawn_too() {
        let (run, mut trials) = fixture::at_load();
        trials.extend(fixture::captured(&trials));
        trials.retain(|trial| trial.clients == 100 && trial.server == "epoll");
        let report = Report::of(&run, &trials, &fixture::logs(&run)).unwrap();
        assert_eq!(report.figures.len(), FIGURES.len() - OF_OTHER_LOADS);
        for figure in &report.figures {
            assert!(render::still::svg(figure).ends_with("</svg>\n"));
        }
        let text = document::terminal::text(&sections::of_run(&report), 80, false);
        assert!(
            text.contains("With 100 clients, epoll serves 148,000 requests per second"),
            "{text}"
        );
    }

    #[test]
    fn a_record_without_trials_still_gives_a_report() {
        let dir = tempfile::tempdir().unwrap();
        let (run, _) = fixture::record();
        fs::write(
            dir.path().join("run.json"),
            serde_json::to_vec(&run).unwrap(),
        )
        .unwrap();
        fs::write(dir.path().join("trials.jsonl"), "").unwrap();
        assert_eq!(write_again(dir.path()).unwrap().len(), files());
        let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
        assert!(page.contains("No trial has finished"));
    }

    #[test]
    fn a_record_of_failures_only_still_gives_a_report() {
        let (run, trials) = fixture::record();
        let failed: Vec<Trial> = trials
            .into_iter()
            .filter(|trial| trial.clients == 100)
            .map(|trial| Trial {
                load: None,
                failure: Some(fixture::failure()),
                ..trial
            })
            .collect();
        let report = Report::of(&run, &failed, &Logs::default()).unwrap();
        assert!(report.figures.is_empty());
        for exporter in exporters::with_reasons() {
            (exporter.render)(&report, &mut Vec::new()).unwrap();
        }
        let text = document::terminal::text(&sections::of_run(&report), 80, false);
        assert!(text.contains("failed"), "{text}");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fixture::write(dir.path());
        fs::create_dir(dir.path().join("report.html")).unwrap();
        let error = write_again(dir.path()).unwrap_err();
        assert!(error.to_string().ends_with("report.html"), "{error}");
    }
}
