//! What each URL answers: pages, reports, and files of a record.

use std::io::Read;
use std::path::Path;

use hyper::{StatusCode, Uri};

use super::address::{decoded, values};
use super::response::{Answer, Refused, boxed, json, typed, whole};
use super::run::Progress;
use super::runs::{RunEntry, Runs, State};
use super::{history, list, run, trial};
use throng_record as record;
use throng_record::format::sentence;
use throng_report::between::{Between, Recorded, Unlike};
use throng_report::document::html::{POLICY, SCRIPT, STYLE};

/// The Content-Security-Policy is in the first bytes of a page, at most this many.
const HEAD: usize = 2000;
/// Maximum size of a file that is served unchanged.
const MOST_BYTES: u64 = 64 << 20;
const OWN_SCRIPT: &str = include_str!("page.js");
const OWN_STYLE: &str = include_str!("page.css");

/// The response to a request that may read the runs.
pub(super) fn answer(runs: &Runs, uri: &Uri) -> Answer {
    let no_page = || Refused::missing("No such page.");
    let path = decoded(uri.path()).ok_or_else(no_page)?;
    let query = uri.query().unwrap_or_default();
    match path.as_str() {
        "/" => list::page(runs, query),
        "/runs.json" => json(&runs.list()?),
        "/page.css" => Ok(typed(
            "text/css; charset=utf-8",
            [&STYLE, OWN_STYLE].concat(),
        )),
        "/page.js" => Ok(typed("text/javascript; charset=utf-8", OWN_SCRIPT)),
        "/report.js" => Ok(typed("text/javascript; charset=utf-8", SCRIPT)),
        "/compare" => compare(runs, query),
        "/history" => history::page(runs, query),
        other => {
            let of_run = other
                .strip_prefix("/run/")
                .and_then(|rest| rest.rsplit_once('/'));
            let (name, page) = of_run.ok_or_else(no_page)?;
            let found = runs.find(name)?;
            match page {
                "" => Ok(run::page(runs, found)),
                "live" => Ok(whole(&run::live(&Progress::of(found)))),
                "progress.json" => json(&Progress::of(found)),
                "report.html" => report(&found),
                "trials" => trial::list(&found, query),
                "trial" => trial::page(&found, query),
                "trial.json" => json(&trial::selected(&found, query)?),
                "clients.csv" => csv_of_trial(&found, "clients", query),
                "samples.csv" => csv_of_trial(&found, "samples", query),
                "run.json" | "study.json" | "summary.json" => {
                    let file_path = found.directory.join(page);
                    let opened = record::open_if_there(&file_path)?;
                    let file =
                        opened.ok_or_else(|| Refused::missing("The record has no such file."))?;
                    handed_out(file, "application/json", &file_path)
                }
                "trials.jsonl" => {
                    let opened = record::Trials::open(&found.directory)?;
                    let trials =
                        opened.ok_or_else(|| Refused::missing("The run has no trials yet."))?;
                    handed_out(trials.lines_from(0)?, "application/jsonl", trials.path())
                }
                _ => Err(no_page()),
            }
        }
    }
}

/// The report of a record, made again if it is missing or out of date.
fn report(found: &RunEntry) -> Answer {
    let stored = (found.state != State::Running).then(|| stored(found));
    match stored.flatten() {
        Some(stored) => Ok(boxed(stored)),
        None => Ok(boxed(throng_report::page(&found.directory)?)),
    }
}

/// The report stored in a record, if it is newer than the rest and from this version: the browser would refuse the
/// script and the style of another version.
fn stored(found: &RunEntry) -> Option<Vec<u8>> {
    let page = found.directory.join("report.html");
    if !found.is_older_than(&page) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = record::open_if_there(&page).ok()??;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    (head.contains(&**POLICY) && bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
}

/// Compares two runs, the later with the earlier one.
fn compare(runs: &Runs, query: &str) -> Answer {
    let chosen = values(query, "run").unwrap_or_default();
    let [one, other] = <[String; 2]>::try_from(chosen).map_err(|chosen| {
        let why = format!("Choose two runs to compare; {} are chosen.", chosen.len());
        Refused(StatusCode::BAD_REQUEST, why)
    })?;
    let mut found = [runs.find(&one)?, runs.find(&other)?];
    found.sort_by(|a, b| a.started_at.cmp(&b.started_at));
    let mut recorded = Vec::new();
    for run in found {
        recorded.push(Recorded {
            directory: run.name,
            ..Recorded::read(&run.directory)?
        });
    }
    let diff = Between::diff(&recorded[0], &recorded[1]).map_err(|error| {
        match error.downcast_ref::<Unlike>() {
            Some(unlike) => Refused(StatusCode::BAD_REQUEST, sentence(&unlike.to_string())),
            None => error.into(),
        }
    })?;
    Ok(boxed(throng_report::page_between(&diff)))
}

/// A file of a trial, in the directory `part` of its record.
fn csv_of_trial(found: &RunEntry, part: &str, query: &str) -> Answer {
    let name = trial::selected(found, query)?.file_stem() + ".csv";
    let opened = record::open_in(&found.directory, part, &name)?;
    let file = opened.ok_or_else(|| Refused::missing("The trial left no such file."))?;
    let path = found.directory.join(part).join(name);
    handed_out(file, "text/csv; charset=utf-8", &path)
}

/// Serves a file unchanged, unless it is too large.
fn handed_out(from: impl Read, kind: &'static str, path: &Path) -> Answer {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let why = format!(
            "The file has more than {} MiB; open it directly: {}",
            MOST_BYTES >> 20,
            path.display()
        );
        return Err(Refused(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    Ok(typed(kind, bytes))
}
