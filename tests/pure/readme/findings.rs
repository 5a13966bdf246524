//! docs/findings.md and docs/findings-details.md: what published reports claim, what the reference runs in `results/`
//! show, and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use throng::record::Study;
use throng::record::format::{counted, list};
use throng::report::glance::{self, sentence};
use throng::report::render::still;
use throng::report::study::claims::{ClaimVerdict, JudgedCause, JudgedClaim};
use throng::report::study::{LoadedStudy, StudyReport, load};

use super::{results, summary};

/// The figure of a study: the part that it comes from, and its name. Other studies have the overview of their first
/// part.
const FIGURES: [(&str, &str, &str); 7] = [
    ("capacity", "crowd", "search"),
    ("completion", "at-once", "completion"),
    ("counters", "two", "overview"),
    ("fairness", "threads", "fairness-order"),
    ("resources", "use", "cpu-per-request"),
    ("tls", "handshakes", "overview"),
    ("upload", "most-large", "overview"),
];

/// The page's content from the latest reference run of a study.
struct Found {
    name: String,
    /// Its entry in the short page, and whether it is of a published report.
    short: String,
    is_published: bool,
    verdicts: Vec<ClaimVerdict>,
    /// The claim that leads its page.
    leading: Option<JudgedClaim>,
    /// Its rows in the table of claims.
    claims: String,
    section: String,
    /// Its figure.
    svg: Option<String>,
}

fn found() -> &'static [Found] {
    static FOUND: LazyLock<Vec<Found>> = LazyLock::new(|| {
        std::thread::scope(|scope| {
            let records = records().into_iter();
            let begun: Vec<_> = records
                .map(|(name, record)| scope.spawn(move || read(name, &record)))
                .collect();
            let read = begun.into_iter();
            read.map(|one| one.join().expect("it can be read"))
                .collect()
        })
    });
    &FOUND
}

/// The latest record of each study. The name of the parent directory begins with the date.
pub(super) fn records() -> BTreeMap<String, PathBuf> {
    let mut days = directories(&root().join("results"));
    days.sort();
    let records = days.iter().flat_map(|day| directories(day));
    let those = records.filter(|run| Study::is_in(run));
    those.map(|record| (file_name(&record), record)).collect()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().expect("it has a name");
    name.to_string_lossy().into_owned()
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn directories(of: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(of).expect("the directory can be read");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    paths.filter(|path| path.is_dir()).collect()
}

fn read(name: String, record: &Path) -> Found {
    let loaded = rejudged(&name, record);
    let report = loaded.report().expect("histograms can be read");
    let figure = figure(&name, &report);
    let mut section = format!("\n### {name}\n\n{}", report.study.question);
    let path = record.strip_prefix(root()).expect("it is below").display();
    writeln!(section, " ([record](../{path}))\n").expect("it is a string");
    section += &about(&report);
    if let Some((alternative, _)) = &figure {
        write!(section, "\n![{alternative}](findings/{name}.svg)\n").expect("it is a string");
    }
    section.extend(report.claims.iter().map(of_claim));
    section += &results::published(&summary(record));
    let is_published = report.study.source.is_some();
    Found {
        short: if is_published {
            counted_claims(&name, &report, figure.as_ref())
        } else {
            own(&name, &report)
        },
        is_published,
        verdicts: report.claims.iter().map(|claim| claim.verdict).collect(),
        leading: report.claims.iter().find(|claim| claim.leads).cloned(),
        claims: rows(&format!("[{name}](#{name})"), &report),
        svg: figure.map(|(_, svg)| svg),
        section,
        name,
    }
}

/// All claims of a report counted, and a picture.
fn counted_claims(
    name: &str,
    report: &StudyReport<'_>,
    figure: Option<&(String, String)>,
) -> String {
    let mut text = format!(
        "\n### [{name}](reports/{name}.md)\n\n{}\n",
        sentence(report)
    );
    if let Some((alternative, _)) = figure {
        text += &format!("\n![{alternative}](findings/{name}.svg)\n");
    }
    text
}

/// The claims of a study of our own with their verdicts, or what it found.
fn own(name: &str, report: &StudyReport<'_>) -> String {
    let study = format!("[{name}](findings-details.md#{name})");
    if report.claims.is_empty() {
        return format!("| {study} | {} | |\n", sentence(report));
    }
    rows(&study, report)
}

/// The claims of a study as rows of a table, the first one with its name.
fn rows(study: &str, report: &StudyReport<'_>) -> String {
    let names = std::iter::once(study).chain(std::iter::repeat(""));
    let row = |(name, claim): (&str, &JudgedClaim)| {
        let (text, verdict) = (claim.text.trim_end_matches('.'), claim.verdict.text());
        format!("| {name} | {text} | {verdict} |\n")
    };
    names.zip(&report.claims).map(row).collect()
}

/// A record with the question, source and claims of the study as it is now, which may be newer.
pub(super) fn rejudged(name: &str, record: &Path) -> LoadedStudy {
    let mut loaded = load(record).unwrap_or_else(|error| panic!("{error:#}"));
    let now = throng::study::Study::find(name).unwrap_or_else(|error| panic!("{error:#}"));
    loaded.study.question = now.question;
    loaded.study.source = now.source;
    loaded.study.changed = now.changed;
    loaded.study.claims = now.claims;
    loaded
}

/// The source, the measurement and the result of a study.
fn about(report: &StudyReport<'_>) -> String {
    let source = report.study.source.as_ref();
    let published = source
        .map(|source| format!("*Published*: {source}. "))
        .unwrap_or_default();
    let parts = || report.parts.iter().filter_map(|part| part.report.as_ref());
    let trials: u32 = parts().map(|report| report.summary.trials_run).sum();
    let day = report.study.started_at.split('T').next();
    let (day, machine) = (day.unwrap_or_default(), machine(report));
    let (trials, result) = (counted(trials, "trial"), sentence(report));
    format!("{published}*Measured*: {day}, {trials}, on {machine}. *Result*: {result}\n")
}

/// The machine that a study was measured on.
fn machine(report: &StudyReport<'_>) -> String {
    let first = report.parts.iter().find_map(|part| part.report.as_ref());
    first.map_or_else(
        || "no machine".to_owned(),
        |report| glance::machine(report.run),
    )
}

/// A claim with its verdict, the evidence, the mechanism, and how our setting differs.
fn of_claim(claim: &JudgedClaim) -> String {
    let (text, verdict) = (claim.text.trim_end_matches('.'), claim.verdict.text());
    let mut item = format!("\n- **{text}: {verdict}.** {}\n", claim.sentence);
    let why = claim.cause.as_ref().map(JudgedCause::line);
    for (what, line) in [("Cause", why), ("Setting", claim.fidelity.clone())] {
        if let Some(line) = line {
            write!(item, "\n  *{what}:* {line}\n").expect("it is a string");
        }
    }
    item
}

/// The figure of a study: the text for readers who cannot see it, and its SVG.
fn figure(study: &str, report: &StudyReport<'_>) -> Option<(String, String)> {
    let of_study = FIGURES.iter().filter(|(name, _, _)| *name == study);
    let of_parts = report
        .parts
        .iter()
        .map(|part| (part.record.name.as_str(), "overview"));
    let wanted = of_study.map(|(_, part, id)| (*part, *id)).chain(of_parts);
    let mut figures = wanted.filter_map(|(part, id)| {
        let mut parts = report.parts.iter();
        let part = parts.find(|one| one.record.name == part)?;
        let figures = &part.report.as_ref()?.figures;
        let mut figure = figures.iter().find(|figure| figure.id == id)?.clone();
        if id == "overview" && report.parts.len() > 1 {
            for text in [&mut figure.title, &mut figure.alternative] {
                *text = format!("{}: {}", part.record.title, lowered(text));
            }
        }
        Some(figure)
    });
    let figure = figures.next()?;
    Some((figure.alternative.clone(), still::svg(&figure)))
}

fn lowered(text: &str) -> String {
    text.chars()
        .take(1)
        .flat_map(char::to_lowercase)
        .chain(text.chars().skip(1))
        .collect()
}

/// What is found about each published report, after the verdicts on their leading claims; or about the others.
pub(super) fn in_short(is_published: bool) -> String {
    let those = || {
        found()
            .iter()
            .filter(|one| one.is_published == is_published)
    };
    let text: String = those().map(|one| one.short.as_str()).collect();
    if !is_published {
        return HEAD.to_owned() + &text;
    }
    let all: Vec<ClaimVerdict> = those().flat_map(|one| one.verdicts.clone()).collect();
    let counts = ClaimVerdict::ALL.map(|verdict| {
        let count = all.iter().filter(|one| **one == verdict).count();
        format!("{count} {}", verdict.text())
    });
    let leading = those().filter_map(|one| {
        let (name, claim) = (&one.name, one.leading.as_ref()?);
        let (said, verdict) = (claim.text.trim_end_matches('.'), claim.verdict.text());
        let cause = claim.cause.as_ref().and_then(JudgedCause::stated);
        let why = cause.unwrap_or_default();
        Some(format!(
            "| [{name}](reports/{name}.md) | {said} | **{verdict}** | {why} |\n"
        ))
    });
    let head = "| study | leading claim | verdict | why |\n|---|---|---|---|\n".to_owned();
    let table = leading.fold(head, |table, row| table + &row);
    format!(
        "Of all {} published claims: {}.\n\n{table}{text}\n",
        all.len(),
        list(&counts)
    )
}

const HEAD: &str = "| study | claim | verdict |\n|---|---|---|\n";

/// Every claim with its verdict.
pub(super) fn claims() -> String {
    found()
        .iter()
        .fold(HEAD.to_owned(), |table, one| table + &one.claims)
}

/// A section for each study.
pub(super) fn studies() -> String {
    let sections: String = found().iter().map(|one| one.section.as_str()).collect();
    sections + "\n"
}

/// Each study that should have a figure has it, as drawn from its record.
#[test]
fn the_figures_are_current() {
    let place = root().join("docs/findings");
    for Found { name, svg, .. } in found() {
        let path = place.join(format!("{name}.svg"));
        if std::env::var_os("UPDATE_README").is_some() {
            if let Some(svg) = svg {
                std::fs::create_dir_all(&place).expect("a directory");
                std::fs::write(path, svg).expect("it can be written");
            }
            continue;
        }
        let kept = std::fs::read_to_string(&path).ok();
        assert!(
            kept == *svg,
            "{}: run UPDATE_README=1 cargo test --test pure readme",
            path.display()
        );
        assert!(svg.is_some(), "{name}: add a figure of it to FIGURES");
    }
}
