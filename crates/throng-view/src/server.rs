//! The server: its address, access checks, and headers of all responses.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::extract::{Request, State};
use axum::http::{self, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::{Router, body::HttpBody as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream};

use super::address::{is_own, value};
use super::answers::{AppState, routes};
use super::connections::{
    CHECK_EVERY, Connections, MOST_CONNECTIONS, MOST_UNREAD, Peer, TrackedStream,
};
use super::page;
use super::refused::Refused;
use super::runs::Runs;
use throng_sys::signal::Stop;

/// Maximum number of threads that read and render.
const MOST_BLOCKED: usize = 4;
/// Time limit for the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the head of a request, in bytes.
const HEAD: usize = 64 << 10;
/// Pause after a failure to accept a connection.
const MOMENT: Duration = Duration::from_millis(10);
/// ENFILE and EMFILE.
const OUT_OF_DESCRIPTORS: [i32; 2] = [23, 24];
/// Time limit for responses in progress at shutdown.
const GRACE: Duration = Duration::from_millis(500);

/// The listening server.
#[derive(Debug)]
pub struct Viewer {
    runs: Runs,
    listener: std::net::TcpListener,
    access: Access,
}

impl Viewer {
    /// Listens on `address`, to show the runs below `directory`.
    ///
    /// # Errors
    /// When it cannot listen on that address, or there is no source of random numbers.
    pub fn bind(directory: &FilePath, address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            runs: Runs::new(directory),
            access: Access::new(listener.local_addr()?)?,
            listener,
        })
    }

    /// The URL that gives access to the pages.
    pub fn url(&self) -> String {
        let Access { listening, token } = &self.access;
        format!("http://{listening}/?{TOKEN}={token}")
    }

    /// Serves until asked to stop.
    ///
    /// # Errors
    /// When threads cannot be started.
    pub fn run(self, stop: Stop) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(MOST_BLOCKED)
            .thread_name("view")
            .enable_io()
            .enable_time()
            .build()
            .context("cannot start the threads that answer")?;
        let shared =
            AppState::new(self.runs).context("cannot start the thread that reads reports")?;
        let guard = middleware::from_fn_with_state(self.access, guard);
        let routes = routes(shared).layer(guard);
        let ended = runtime.block_on(answer(self.listener, routes, stop));
        runtime.shutdown_timeout(GRACE);
        ended
    }
}

/// The name of the token in the URL.
const TOKEN: &str = "token";

/// What shows that a request comes from this user: other users of this machine can connect, too. The URL has a token,
/// and the first answer leaves it as a cookie.
#[derive(Debug, Clone)]
struct Access {
    listening: SocketAddr,
    token: String,
}

impl Access {
    fn new(listening: SocketAddr) -> io::Result<Self> {
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token = format!("{:032x}", u128::from_ne_bytes(random));
        Ok(Self { listening, token })
    }

    /// The cookie. All ports of this machine share their cookies.
    fn cookie(&self) -> String {
        format!("throng-{}={}", self.listening.port(), self.token)
    }

    /// The header that makes a browser keep it. Only links may lead from other sites to these pages.
    fn to_keep(&self) -> Option<HeaderValue> {
        let cookie = format!("{}; Path=/; HttpOnly; SameSite=Lax", self.cookie());
        HeaderValue::from_str(&cookie).ok()
    }

    fn is_shown_by(&self, request: &Request) -> bool {
        let own = self.cookie();
        let cookies = request.headers().get_all(header::COOKIE).iter();
        let mut cookies = cookies.flat_map(|cookies| cookies.to_str().unwrap_or("").split(';'));
        let query = request.uri().query().unwrap_or_default();
        cookies.any(|cookie| cookie.trim() == own)
            || value(query, TOKEN).is_some_and(|token| token == self.token)
    }
}

/// Accepts connections until asked to stop.
async fn answer(listener: std::net::TcpListener, routes: Router, stop: Stop) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener).context("cannot listen")?;
    let asked = stop.fd().try_clone_to_owned();
    let asked = asked.and_then(pipe::Receiver::from_owned_fd);
    let asked = asked.context("cannot wait for signals")?;
    let connections = Arc::new(Connections::new(MOST_CONNECTIONS, MOST_UNREAD));
    let mut look = tokio::time::interval(CHECK_EVERY);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = look.tick() => {
                connections.check();
                continue;
            }
            _ = asked.readable() => return Ok(()),
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                if error
                    .raw_os_error()
                    .is_some_and(|code| OUT_OF_DESCRIPTORS.contains(&code))
                {
                    connections.send_one_away();
                }
                // There may be room shortly.
                tokio::time::sleep(MOMENT).await;
                continue;
            }
        };
        let peer = connections.peer();
        let task = serve(
            stream,
            routes.clone(),
            Arc::clone(&connections),
            Arc::clone(&peer),
        );
        let task = tokio::spawn(task).abort_handle();
        connections.enter(peer, task);
    }
}

/// Serves a connection until it ends.
async fn serve(stream: TcpStream, routes: Router, connections: Arc<Connections>, peer: Arc<Peer>) {
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let work = peer.work();
        let answered = routes.call(request);
        let (connections, peer) = (&connections, &peer);
        async move {
            let answered = answered.await;
            drop(work);
            answered.inspect(|answer: &Response| {
                connections.answers(peer, answer.body().size_hint().lower());
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD)
        .serve_connection(
            TokioIo::new(TrackedStream {
                stream,
                peer: Arc::clone(&peer),
            }),
            service,
        );
    // A peer that disconnects or does not speak HTTP affects only this connection.
    let _ = connection.await;
}

/// Accepts only read requests for one of this machine's own names, and only with access. Adds the security headers to
/// every response.
async fn guard(State(access): State<Access>, request: Request, next: Next) -> Response {
    let mut answer = if let Some(refused) = refused(&access, &request) {
        refused.into_response()
    } else {
        let mut answer = next.run(request).await;
        let headers = answer.headers_mut();
        headers.extend(access.to_keep().map(|cookie| (header::SET_COOKIE, cookie)));
        answer
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

/// Why a request is rejected, if it is.
fn refused(access: &Access, request: &Request) -> Option<Refused> {
    let listening = access.listening;
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let asked = request.uri().authority().map(http::uri::Authority::as_str);
    let ours = |host: &str| is_own(host, listening);
    let several = request.headers().get_all(header::HOST).iter().count() > 1;
    if several || !host.is_some_and(ours) || !asked.is_none_or(ours) {
        // Another site may have pointed its own name at this machine, to read what it otherwise could not (DNS
        // rebinding).
        let why = format!("Open http://{listening}/: other host names are rejected.");
        return Some(Refused(StatusCode::MISDIRECTED_REQUEST, why));
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let why = "These pages are read-only.".to_owned();
        return Some(Refused(StatusCode::METHOD_NOT_ALLOWED, why));
    }
    if !access.is_shown_by(request) {
        let why = "Open the whole URL that throng view printed, with its token.".to_owned();
        return Some(Refused(StatusCode::FORBIDDEN, why));
    }
    None
}
