//! What is asked and answered, over HTTP.

use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Router, http};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::address::{is_ours, values};
use super::runs::{self, Runs, Stamp};
use super::{page, progress};
use throng_record::{self as record, is_plain};
use throng_report::diff::{self, Diff, Unlike};
use throng_report::document::html::{POLICY, STYLE};
use throng_sys::signal::Stop;

/// Connections at once; who comes then is turned away.
const MOST_CONNECTIONS: usize = 64;
/// Threads that read and render.
const MOST_BLOCKED: usize = 4;
/// Pages made of whole records at once: these take time and memory.
const MOST_RENDERED: usize = 2;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long what is being answered may take when it is time to end.
const GRACE: Duration = Duration::from_millis(500);
/// Where a page says what a browser is to refuse.
const HEAD: usize = 2000;
/// Most bytes of a report that is handed out as it lies there.
const MOST_BYTES: u64 = 64 << 20;

/// A page of a record, which anybody may have written: its script has an origin of its own, and so can read
/// none of the other pages.
const IN_A_BOX: &str = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'";

const SCRIPT: &str = include_str!("page.js");
const OWN_STYLE: &str = include_str!("page.css");

/// What listens.
#[derive(Debug)]
pub struct Viewer {
    runs: Runs,
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// What every answer needs.
#[derive(Clone)]
struct Shared {
    runs: Arc<Runs>,
    rendering: Arc<Semaphore>,
    address: SocketAddr,
}

/// Something that was refused, and why.
struct Refused(StatusCode, String);

type Answer = Result<Response, Refused>;

impl Viewer {
    /// Listens on an address for whoever wants to see the runs of a directory.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub fn bind(directory: &FilePath, address: SocketAddr) -> std::io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            runs: Runs::new(directory),
            address: listener.local_addr()?,
            listener,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until asked to stop.
    ///
    /// # Errors
    /// When no threads can be had.
    pub fn run(self, stop: Stop) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MOST_BLOCKED)
            .thread_name("view")
            .enable_io()
            .enable_time()
            .build()
            .context("cannot start the threads that answer")?;
        let shared = Shared {
            runs: Arc::new(self.runs),
            rendering: Arc::new(Semaphore::new(MOST_RENDERED)),
            address: self.address,
        };
        let ended = runtime.block_on(answer(self.listener, routes(shared), stop));
        runtime.shutdown_timeout(GRACE);
        ended
    }
}

/// Takes connections until asked to stop.
async fn answer(listener: std::net::TcpListener, routes: Router, stop: Stop) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener).context("cannot listen")?;
    let asked = stop.fd().try_clone_to_owned();
    let asked = asked.and_then(pipe::Receiver::from_owned_fd);
    let asked = asked.context("cannot wait for signals")?;
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = asked.readable() => return Ok(()),
        };
        let Ok((stream, _)) = accepted else {
            // Out of descriptors, or gone before it was taken: a moment later there may be room.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let routes = routes.clone();
            tokio::spawn(async move {
                serve(stream, routes).await;
                drop(place);
            });
        }
    }
}

/// Answers on a connection until it ends.
async fn serve(stream: TcpStream, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service);
    // A peer that breaks it off, or says what is no HTTP, costs this connection alone.
    let _ = connection.await;
}

fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/", get(list))
        .route("/runs.json", get(list_as_json))
        .route("/page.css", get(style))
        .route("/page.js", get(script))
        .route("/compare", get(compare))
        .route("/run/{name}/", get(watch))
        .route("/run/{name}/progress.json", get(watch_as_json))
        .route("/run/{name}/report.html", get(report))
        .route("/run/{name}/{part}/report.html", get(report_of_part))
        .fallback(async || Refused::missing("There is no such page."))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
        .with_state(shared)
}

/// Lets in who asks for this machine by a name of its own, and only to read; says to all what they may do with
/// the answer.
async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let mut answer = match refused(&shared, &request) {
        Some(refused) => refused.into_response(),
        None => next.run(request).await,
    };
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        let methods = HeaderValue::from_static("GET, HEAD");
        answer.headers_mut().insert(header::ALLOW, methods);
    }
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = HeaderValue::from_static(page::POLICY);
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(policy);
    answer
}

/// Why a request gets no answer, if it gets none.
fn refused(shared: &Shared, request: &Request) -> Option<Refused> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let asked = request.uri().authority().map(http::uri::Authority::as_str);
    let ours = |host: &str| is_ours(host, shared.address);
    let several = request.headers().get_all(header::HOST).iter().count() > 1;
    if several || !host.is_some_and(ours) || !asked.is_none_or(ours) {
        // Some page may have given this machine a name of its own, to read from it what it could not.
        let why = format!(
            "This is http://{}/, and is asked for by that name alone.",
            shared.address
        );
        return Some(Refused(StatusCode::MISDIRECTED_REQUEST, why));
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let why = "Nothing can be changed here.".to_owned();
        return Some(Refused(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    None
}

/// Does what blocks where it holds up nobody.
async fn apart<T: Send + 'static>(
    shared: &Shared,
    work: impl FnOnce(&Runs) -> T + Send + 'static,
) -> Result<T, Refused> {
    let runs = Arc::clone(&shared.runs);
    let done = tokio::task::spawn_blocking(move || work(&runs)).await;
    done.map_err(|_| {
        // Of the record; the panic itself was reported on standard error.
        let why = "This record is more than throng can make a page of.".to_owned();
        Refused(StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}

/// The same for what takes time and memory, a few at once.
async fn rendered(
    shared: &Shared,
    work: impl FnOnce(&Runs) -> Result<Vec<u8>, Refused> + Send + 'static,
) -> Answer {
    let place = shared.rendering.acquire().await;
    let page = apart(shared, work).await??;
    drop(place);
    let boxed = format!("{}; {IN_A_BOX}", *POLICY);
    let mut answer = typed("text/html; charset=utf-8", page);
    let headers = answer.headers_mut();
    let policy = HeaderValue::from_str(&boxed).ok();
    headers.extend(policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
    Ok(answer)
}

async fn list(State(shared): State<Shared>) -> Answer {
    let page = apart(&shared, |runs| {
        let listing = runs.list().map_err(|error| Refused::failed(&error))?;
        let directory = runs.directory().display().to_string();
        Ok(page::list(&directory, &listing).into_string())
    });
    Ok(own(page.await??))
}

async fn list_as_json(State(shared): State<Shared>) -> Answer {
    let listing = apart(&shared, Runs::list).await?;
    json(&listing.map_err(|error| Refused::failed(&error))?)
}

async fn watch(State(shared): State<Shared>, Path(name): Path<String>) -> Answer {
    let found = apart(&shared, move |runs| progress::of(runs, &name)).await?;
    let found = found.ok_or_else(no_run)?;
    Ok(own(page::progress(&found).into_string()))
}

async fn watch_as_json(State(shared): State<Shared>, Path(name): Path<String>) -> Answer {
    let found = apart(&shared, move |runs| progress::of(runs, &name)).await?;
    json(&found.ok_or_else(no_run)?)
}

async fn report(State(shared): State<Shared>, Path(name): Path<String>) -> Answer {
    rendered(&shared, move |runs| {
        let (directory, listed) = runs.find(&name).ok_or_else(no_run)?;
        report_in(&directory, listed.state == runs::State::Running)
    })
    .await
}

async fn report_of_part(
    State(shared): State<Shared>,
    Path((name, part)): Path<(String, String)>,
) -> Answer {
    rendered(&shared, move |runs| {
        let (run, listed) = runs.find(&name).ok_or_else(no_run)?;
        let part = is_plain(&part).then(|| record::directory(&run, &part));
        let directory = part
            .and_then(|part| part.ok().flatten())
            .ok_or_else(no_run)?;
        report_in(&directory, listed.state == runs::State::Running)
    })
    .await
}

/// Two of them beside each other, the one that was started later beside the other.
async fn compare(State(shared): State<Shared>, RawQuery(query): RawQuery) -> Answer {
    let chosen = values(&query.unwrap_or_default(), "run").unwrap_or_default();
    let [one, other] = <[String; 2]>::try_from(chosen).map_err(|chosen| {
        let why = format!(
            "Two runs are put side by side, and {} were chosen.",
            chosen.len()
        );
        Refused(StatusCode::BAD_REQUEST, why)
    })?;
    rendered(&shared, move |runs| {
        let mut found = Vec::new();
        for name in [&one, &other] {
            found.push(runs.find(name).ok_or_else(no_run)?);
        }
        found.sort_by(|(_, a), (_, b)| a.started_at.cmp(&b.started_at));
        let mut recorded = Vec::new();
        for (directory, listed) in found {
            let mut one = diff::load(&directory).map_err(|error| Refused::broken(&error))?;
            one.directory = listed.name;
            recorded.push(one);
        }
        let diff = Diff::of(&recorded[0], &recorded[1]).map_err(|error| {
            match error.downcast_ref::<Unlike>() {
                Some(unlike) => Refused(StatusCode::BAD_REQUEST, sentence(&unlike.to_string())),
                None => Refused::broken(&error),
            }
        })?;
        Ok(throng_report::page_diff(&diff).into_bytes())
    })
    .await
}

async fn style() -> Response {
    typed("text/css; charset=utf-8", [&STYLE, OWN_STYLE].concat())
}

async fn script() -> Response {
    typed("text/javascript; charset=utf-8", SCRIPT)
}

/// The report as it lies in a record, or made anew where there is none, or one of fewer trials.
fn report_in(directory: &FilePath, is_running: bool) -> Result<Vec<u8>, Refused> {
    let stored = if is_running { None } else { stored(directory) };
    match stored {
        Some(page) => Ok(page),
        None => throng_report::page(directory).map_err(|error| Refused::broken(&error)),
    }
}

/// The report in a record, if all of this is older and it was made by this version: the browser would refuse the
/// script and the style of another one.
fn stored(directory: &FilePath) -> Option<Vec<u8>> {
    use std::io::Read as _;
    let changed = |path: &FilePath| Stamp::of(path).map(|stamp| stamp.changed);
    let page = directory.join("report.html");
    let made = changed(&page)?;
    let parts = record::Study::is_in(directory).then(|| record::Study::read(directory).ok());
    let parts = parts.map_or(Some(Vec::new()), |study| Some(study?.parts))?;
    let places = parts.iter().map(|part| directory.join(&part.name));
    let sources = places.chain([directory.to_owned()]).flat_map(|place| {
        let files = ["run.json", "study.json"].into_iter().chain(record::TRIALS);
        files.map(move |file| place.join(file))
    });
    let is_old = sources
        .filter_map(|source| changed(&source))
        .any(|at| at > made);
    let file = record::open_if_there(&page).ok()??;
    if is_old || file.metadata().ok()?.len() > MOST_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    head.contains(&**POLICY).then_some(bytes)
}

fn own(page: String) -> Response {
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
    let why = "There is no run of this name in the directory.".to_owned();
    Refused(StatusCode::NOT_FOUND, why)
}

/// An error as a sentence.
fn sentence(error: &str) -> String {
    let mut letters = error.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

impl Refused {
    fn missing(why: &str) -> Self {
        Self(StatusCode::NOT_FOUND, why.to_owned())
    }

    fn failed(error: &anyhow::Error) -> Self {
        let why = sentence(&format!("{error:#}"));
        Self(StatusCode::INTERNAL_SERVER_ERROR, why)
    }

    /// A record that cannot be read.
    fn broken(error: &anyhow::Error) -> Self {
        let why = sentence(&format!("{error:#}"));
        Self(StatusCode::UNPROCESSABLE_ENTITY, why)
    }
}

impl axum::response::IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(status, why) = self;
        let title = status.canonical_reason().unwrap_or("Refused");
        (status, own(page::refusal(title, &why).into_string())).into_response()
    }
}
