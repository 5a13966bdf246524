//! HTTP requests and responses.

use std::io::Read as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::address::values;
use super::glances::{GlanceState, Glances};
use super::history::{self, HistoryQuery};
use super::page::{self, list, run};
use super::page_cache::PageCache;
use super::progress;
use super::record_cache::{is_older, stamps};
use super::refused::Refused;
use super::run_entry::{RunEntry, State as How};
use super::runs::Runs;
use super::trials::{TrialDetail, TrialQuery, file_of, trial};
use throng_record::format::sentence;
use throng_record::{self as record, Study};
use throng_report::diff::{self, Diff, DiffError};
use throng_report::document::html::{POLICY, SCRIPT, STYLE};
use throng_report::glance::{Occasion, server_history};
use throng_report::summary::Summary;

/// Maximum number of pages made concurrently from whole records, which takes time and memory.
const MOST_RENDERED: usize = 2;
/// The Content-Security-Policy is in the first bytes of a page, at most this many.
const HEAD: usize = 2000;
/// Maximum size of a file that is served unchanged.
const MOST_BYTES: u64 = 64 << 20;

/// The policy for a page of a record, which may be from anyone: its script gets an origin of its own, and thus cannot
/// read the other pages.
const IN_A_BOX: &str = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'";

const OWN_SCRIPT: &str = include_str!("page.js");
const OWN_STYLE: &str = include_str!("page.css");

/// State shared by all responses.
#[derive(Clone)]
pub(super) struct AppState {
    own: Arc<Inner>,
    rendering: Arc<Semaphore>,
}

struct Inner {
    runs: Runs,
    glances: Glances,
    /// Reports, and pages of finished runs.
    pages: PageCache,
}

type Answer = Result<Response, Refused>;

impl AppState {
    /// # Errors
    /// When no thread can be started.
    pub(super) fn new(runs: Runs) -> std::io::Result<Self> {
        Ok(Self {
            own: Arc::new(Inner {
                runs,
                glances: Glances::new()?,
                pages: PageCache::default(),
            }),
            rendering: Arc::new(Semaphore::new(MOST_RENDERED)),
        })
    }
}

pub(super) fn routes(shared: AppState) -> Router {
    let css = || async { typed("text/css; charset=utf-8", [&STYLE, OWN_STYLE].concat()) };
    let script =
        |text: &'static str| get(async move || typed("text/javascript; charset=utf-8", text));
    Router::new()
        .route("/", get(list_of_runs))
        .route("/runs.json", get(list_as_json))
        .route("/page.css", get(css))
        .route("/page.js", script(OWN_SCRIPT))
        .route("/report.js", script(SCRIPT))
        .route("/compare", get(compare))
        .route("/history", get(server_over_time))
        .route("/run/{*page}", get(page_of_run))
        .fallback(async || Refused::missing("No such page."))
        .with_state(shared)
}

/// Runs blocking work on a separate thread.
async fn apart<T: Send + 'static>(
    shared: &AppState,
    work: impl FnOnce(&Inner) -> T + Send + 'static,
) -> Result<T, Refused> {
    let own = Arc::clone(&shared.own);
    let done = tokio::task::spawn_blocking(move || work(&own)).await;
    done.map_err(|_| {
        // The record caused a panic, which was reported on standard error.
        let why = "throng cannot make a page of this record.".to_owned();
        Refused(StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}

/// Runs work that takes time and memory, only a few at a time.
async fn rendered<T: Send + 'static>(
    shared: &AppState,
    work: impl FnOnce(&Inner) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let place = shared.rendering.acquire().await;
    let page = apart(shared, work).await?;
    drop(place);
    page
}

/// A page of a record, in a sandbox.
fn boxed(page: impl Into<Body>) -> Response {
    let boxed = format!("{}; {IN_A_BOX}", *POLICY);
    let mut answer = typed("text/html; charset=utf-8", page);
    let policy = HeaderValue::from_str(&boxed).ok();
    let headers = answer.headers_mut();
    headers.extend(policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    answer
}

async fn list_of_runs(State(shared): State<AppState>, RawQuery(query): RawQuery) -> Answer {
    let page = apart(&shared, move |own| {
        let listing = own.runs.list().map_err(|error| Refused::failed(&error))?;
        let choice = list::Choice::of(&query.unwrap_or_default());
        let running = listing.runs.iter().filter(|run| run.state == How::Running);
        let counts = list::Counts {
            runs: listing.runs.len(),
            running: running.count(),
            left_out: listing.left_out,
            not_all: listing.not_all,
        };
        let chosen = choice.chosen(listing.runs);
        let shown = choice.shown(&chosen);
        let glances = own.glances(shown);
        let shown: Vec<_> = shown.iter().zip(glances).collect();
        let directory = own.runs.directory().display().to_string();
        Ok(list::page(&directory, &counts, &choice, chosen.len(), &shown).into_string())
    });
    Ok(whole(page.await??))
}

async fn list_as_json(State(shared): State<AppState>) -> Answer {
    let listing = apart(&shared, |own| own.runs.list()).await?;
    json(&listing.map_err(|error| Refused::failed(&error))?)
}

/// A page of a run. The path is the name of the run; the part after the last slash selects the page.
async fn page_of_run(
    State(shared): State<AppState>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer {
    let query = query.unwrap_or_default();
    let (name, page) = path.rsplit_once('/').ok_or_else(no_run)?;
    let name = name.to_owned();
    match page {
        "" => {
            let page = rendered(&shared, move |own| own.opened(&name)).await?;
            Ok(whole(page))
        }
        "live" => {
            let progress = apart(&shared, move |own| progress::of(&own.runs, &name)).await?;
            let progress = progress.ok_or_else(no_run)?;
            Ok(whole(run::live(&progress).into_string()))
        }
        "progress.json" => {
            let progress = apart(&shared, move |own| progress::of(&own.runs, &name)).await?;
            json(&progress.ok_or_else(no_run)?)
        }
        "report.html" => {
            let page = rendered(&shared, move |own| own.report(&name)).await?;
            Ok(boxed(page))
        }
        "trials" => {
            let page = rendered(&shared, move |own| {
                let (directory, _) = own.runs.find(&name).ok_or_else(no_run)?;
                let selected = TrialQuery::of(&directory, &query);
                let selected = selected.map_err(|error| Refused::broken(&error))?;
                Ok(page::trial::list(&own.way(&name), &selected).into_string())
            });
            Ok(whole(page.await?))
        }
        "trial" => {
            let page = rendered(&shared, move |own| {
                let (directory, _) = own.runs.find(&name).ok_or_else(no_run)?;
                let looked = TrialDetail::of(&directory, &query);
                let looked = looked.map_err(|error| Refused::broken(&error))?;
                let looked = looked.ok_or_else(no_trial)?;
                Ok(page::trial::page(&own.way(&name), &looked).into_string())
            });
            Ok(whole(page.await?))
        }
        "trial.json" | "clients.csv" | "samples.csv" => {
            let page = page.to_owned();
            rendered(&shared, move |own| own.raw_of_trial(&name, &page, &query)).await
        }
        "run.json" | "study.json" | "summary.json" | "trials.jsonl" => {
            let page = page.to_owned();
            rendered(&shared, move |own| own.raw(&name, &page)).await
        }
        _ => Err(Refused::missing("No such page.")),
    }
}

/// Compares two runs, the later with the earlier one.
async fn compare(State(shared): State<AppState>, RawQuery(query): RawQuery) -> Answer {
    let chosen = values(&query.unwrap_or_default(), "run").unwrap_or_default();
    let [one, other] = <[String; 2]>::try_from(chosen).map_err(|chosen| {
        let why = format!("Choose two runs to compare; {} are chosen.", chosen.len());
        Refused(StatusCode::BAD_REQUEST, why)
    })?;
    let page = rendered(&shared, move |own| {
        let mut found = Vec::new();
        for name in [&one, &other] {
            found.push(own.runs.find(name).ok_or_else(no_run)?);
        }
        found.sort_by(|(_, a), (_, b)| a.started_at.cmp(&b.started_at));
        let from = found.iter().flat_map(|(directory, _)| stamps(directory));
        let (key, from) = (format!("compare {:?}", [&one, &other]), from.collect());
        own.pages.page(key, from, || compared(found))
    });
    Ok(boxed(page.await?))
}

/// The page that compares two runs, the earlier first.
fn compared(runs: Vec<(PathBuf, RunEntry)>) -> Result<Bytes, Refused> {
    let mut recorded = Vec::new();
    for (directory, listed) in runs {
        let mut one = diff::load(&directory).map_err(|error| Refused::broken(&error))?;
        one.directory = listed.name;
        recorded.push(one);
    }
    let diff = Diff::of(&recorded[0], &recorded[1]).map_err(|error| {
        match error.downcast_ref::<DiffError>() {
            Some(unlike) => Refused(StatusCode::BAD_REQUEST, sentence(&unlike.to_string())),
            None => Refused::broken(&error),
        }
    })?;
    Ok(throng_report::page_diff(&diff).into())
}

/// The history of a server over runs, or the list of all servers.
async fn server_over_time(State(shared): State<AppState>, RawQuery(query): RawQuery) -> Answer {
    let page = apart(&shared, move |own| {
        let listing = own.runs.list().map_err(|error| Refused::failed(&error))?;
        let mut runs = listing.runs;
        runs.retain(list::is_read);
        runs.truncate(history::MOST_RUNS);
        let glances = own.glances(&runs);
        let runs: Vec<(RunEntry, GlanceState)> = runs.into_iter().zip(glances).collect();
        let known = history::ServerIndex::of(&runs);
        let asked = HistoryQuery::of(&query.unwrap_or_default());
        let Some(server) = &asked.server else {
            return Ok(page::history::servers(&known).into_string());
        };
        let clients = asked.clients.or_else(|| known.usual_clients(server));
        if clients.is_none() && known.waiting == 0 {
            let why = format!("No run has a server {server} that served all its clients.");
            return Err(Refused(StatusCode::NOT_FOUND, why));
        }
        let clients = clients.unwrap_or_default();
        let occasions = history::occasions(&asked, server, &runs);
        let plain: Vec<&Occasion> = occasions.iter().map(|(_, occasion)| *occasion).collect();
        let turns = server_history(&plain, server, clients);
        let page = page::history::server(&known, &asked, (server, clients), &occasions, &turns);
        Ok(page.into_string())
    });
    Ok(whole(page.await??))
}

impl Inner {
    fn glances(&self, runs: &[RunEntry]) -> Vec<GlanceState> {
        let directory = self.runs.directory();
        let records = runs.iter().filter(|run| list::is_read(run));
        let records: Vec<(String, PathBuf)> = records
            .map(|run| (run.name.clone(), directory.join(&run.name)))
            .collect();
        let mut glances = self.glances.of(&records).into_iter();
        let each = |run: &RunEntry| list::is_read(run).then(|| glances.next()).flatten();
        runs.iter()
            .map(each)
            .map(Option::unwrap_or_default)
            .collect()
    }

    /// The names of the runs that contain a run, followed by its own name.
    fn way(&self, name: &str) -> Vec<String> {
        let ends = name.match_indices('/').map(|(end, _)| end);
        let above = ends.map(|end| name[..end].to_owned());
        let is_run = |name: &String| {
            let place = self.runs.place(name);
            place.is_some_and(|place| Study::is_in(&place))
        };
        above.filter(is_run).chain([name.to_owned()]).collect()
    }

    /// The page of a run.
    fn opened(&self, name: &str) -> Result<Bytes, Refused> {
        let (directory, listed) = self.runs.find(name).ok_or_else(no_run)?;
        let way = self.way(name);
        if !list::is_read(&listed) {
            return self.open(name, way);
        }
        let key = format!("run {} {}", listed.state.text(), way.join(" "));
        let make = || self.open(name, way);
        self.pages.page(key, stamps(&directory), make)
    }

    fn open(&self, name: &str, way: Vec<String>) -> Result<Bytes, Refused> {
        let progress = progress::of(&self.runs, name).ok_or_else(no_run)?;
        let (directory, listed) = self.runs.find(name).ok_or_else(no_run)?;
        let (glanced, numbers) = if list::is_read(&listed) {
            self.glances.now(name, &directory)
        } else {
            (GlanceState::Waiting, None)
        };
        let parts = self.runs.parts(name).into_iter();
        let parts = parts.filter_map(|(part, ..)| {
            let name = format!("{name}/{}", part.name?);
            let (directory, listed) = self.runs.find(&name)?;
            let glanced = if list::is_read(&listed) {
                self.glances.now(&name, &directory).0
            } else {
                GlanceState::Waiting
            };
            Some((listed, glanced))
        });
        let parts: Vec<(RunEntry, GlanceState)> = parts.collect();
        let is_one = parts.is_empty() && list::is_read(&listed);
        let summary = numbers.or_else(|| is_one.then(|| summary(&directory)).flatten());
        let opened = run::RunPage {
            progress,
            glanced,
            way,
            parts,
            summary,
        };
        Ok(run::page(&opened).into_string().into())
    }

    /// The report of a record, made again if it is missing or out of date.
    fn report(&self, name: &str) -> Result<Bytes, Refused> {
        let (directory, listed) = self.runs.find(name).ok_or_else(no_run)?;
        if listed.state != How::Running
            && let Some(stored) = stored(&directory)
        {
            return Ok(stored.into());
        }
        let key = format!("report {}", directory.display());
        self.pages.page(key, stamps(&directory), || {
            let page = throng_report::page(&directory).map_err(|error| Refused::broken(&error))?;
            Ok(page.into())
        })
    }

    /// A file of a record, unchanged except for compressed trials.
    fn raw(&self, name: &str, file: &str) -> Answer {
        let (directory, _) = self.runs.find(name).ok_or_else(no_run)?;
        let broken = |error: anyhow::Error| Refused::broken(&error);
        if file == "trials.jsonl" {
            let trials = record::Trials::open(&directory).map_err(|error| broken(error.into()))?;
            let trials = trials.ok_or_else(|| Refused::missing("The run has no trials yet."))?;
            let lines = trials.lines_from(0).map_err(|error| broken(error.into()))?;
            return handed_out(lines, "application/jsonl", trials.path());
        }
        let path = directory.join(file);
        let found = record::open_if_there(&path).map_err(|error| broken(error.into()))?;
        let found = found.ok_or_else(|| Refused::missing("The record has no such file."))?;
        handed_out(found, "application/json", &path)
    }

    /// The record of a trial, or one of its files.
    fn raw_of_trial(&self, name: &str, file: &str, query: &str) -> Answer {
        let (directory, _) = self.runs.find(name).ok_or_else(no_run)?;
        let found = trial(&directory, query).map_err(|error| Refused::broken(&error))?;
        let found = found.ok_or_else(no_trial)?;
        let part = match file {
            "clients.csv" => "clients",
            "samples.csv" => "samples",
            _ => return json(&found),
        };
        let file = file_of(&directory, part, &found);
        let file = file.ok_or_else(|| Refused::missing("The trial left no such file."))?;
        let path = directory.join(part).join(found.file_stem() + ".csv");
        handed_out(file, "text/csv; charset=utf-8", &path)
    }
}

/// The numbers of a record; `None` if they are unreadable, which its page reports elsewhere.
fn summary(directory: &FilePath) -> Option<Summary> {
    let run = record::read(directory).ok()?;
    let trials = record::read_trials(directory).ok()?;
    Summary::of(&run, &trials).ok()
}

/// Serves a file unchanged, unless it is too large.
fn handed_out(from: impl std::io::Read, kind: &'static str, path: &FilePath) -> Answer {
    let mut bytes = Vec::new();
    let read = from.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refused::broken(&error.into()))?;
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

/// The report stored in a record, if it is newer than the rest and from this version: the browser would refuse the
/// script and the style of another version.
fn stored(directory: &FilePath) -> Option<Vec<u8>> {
    let page = directory.join("report.html");
    if is_older(directory, &page) {
        return None;
    }
    let file = record::open_if_there(&page).ok()??;
    if file.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    head.contains(&**POLICY).then_some(bytes)
}

fn whole(page: impl Into<Body>) -> Response {
    typed("text/html; charset=utf-8", page)
}

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE, kind)], body.into()).into_response()
}

fn json(value: &impl serde::Serialize) -> Answer {
    let text = serde_json::to_vec(value).map_err(|error| Refused::failed(&error.into()))?;
    Ok(typed("application/json", text))
}

fn no_run() -> Refused {
    Refused::missing("No run has this name.")
}

fn no_trial() -> Refused {
    Refused::missing("The run has no such trial.")
}
