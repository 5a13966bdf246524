//! The server: its address, access checks, and headers of all responses.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::sync::Semaphore;

use super::address::{is_own, page_of, value};
use super::answers::answer;
use super::page::{POLICY, refusal};
use super::response::{Refused, Response, whole};
use super::runs::Runs;
use throng_sys::signal::Stop;

/// Maximum number of threads that read and render.
const MOST_BLOCKED: usize = 2;
/// Maximum number of connections at once; further ones wait.
const MOST_CONNECTIONS: usize = 256;
/// Time limit for the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of the head of a request, in bytes.
const HEAD: usize = 64 << 10;
/// Pause after a failure to accept a connection.
const MOMENT: Duration = Duration::from_millis(10);
/// Time limit for responses in progress at shutdown.
const GRACE: Duration = Duration::from_millis(500);
/// The name of the token in the URL.
const TOKEN: &str = "token";

/// The listening server.
#[derive(Debug)]
pub struct Viewer {
    runs: Runs,
    listener: std::net::TcpListener,
    listening: SocketAddr,
    /// What shows that a request comes from this user: other users of this machine can connect, too. The URL has it,
    /// and the first answer leaves it as a cookie.
    token: String,
}

impl Viewer {
    /// Listens on `address`, to show the runs below `directory`.
    ///
    /// # Errors
    /// When it cannot listen on that address, or there is no source of random numbers.
    pub fn bind(directory: &Path, address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let mut random = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        Ok(Self {
            runs: Runs::new(directory),
            listening: listener.local_addr()?,
            listener,
            token: format!("{:032x}", u128::from_ne_bytes(random)),
        })
    }

    /// The URL that gives access to the pages.
    pub fn url(&self) -> String {
        format!("http://{}/?{TOKEN}={}", self.listening, self.token)
    }

    /// The same for the page of a run, by the path of its record.
    pub fn url_of(&self, run: &str) -> String {
        let page = page_of(run, "");
        format!("http://{}{page}?{TOKEN}={}", self.listening, self.token)
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
        let ended = runtime.block_on(Arc::new(self).accept(stop));
        runtime.shutdown_timeout(GRACE);
        ended
    }

    /// Accepts connections until asked to stop.
    async fn accept(self: Arc<Self>, stop: Stop) -> anyhow::Result<()> {
        let listener = self
            .listener
            .try_clone()
            .and_then(TcpListener::from_std)
            .context("cannot listen")?;
        let asked = stop
            .fd()
            .try_clone_to_owned()
            .and_then(pipe::Receiver::from_owned_fd)
            .context("cannot wait for signals")?;
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let next = async {
                let place = Arc::clone(&places).acquire_owned().await;
                (listener.accept().await, place)
            };
            let (accepted, place) = tokio::select! {
                request = next => request,
                _ = asked.readable() => return Ok(()),
            };
            let Ok((stream, _)) = accepted else {
                // Without a free descriptor; there may be one shortly.
                tokio::time::sleep(MOMENT).await;
                continue;
            };
            let viewer = Arc::clone(&self);
            tokio::spawn(async move {
                let service = service_fn(|request| Arc::clone(&viewer).respond(request));
                let connection = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEADER_TIMEOUT)
                    .max_buf_size(HEAD)
                    .serve_connection(TokioIo::new(stream), service);
                // A peer that disconnects or does not speak HTTP affects only this connection.
                let _ = connection.await;
                drop(place);
            });
        }
    }

    /// Accepts only read requests for one of this machine's own names, and only with the token. Adds the security
    /// headers to every response.
    async fn respond(self: Arc<Self>, request: Request<Incoming>) -> Result<Response, Infallible> {
        let uri = request.uri().clone();
        let mut response = if let Some(refused) = self.refused(&request) {
            shown(refused)
        } else {
            let viewer = Arc::clone(&self);
            let made = tokio::task::spawn_blocking(move || answer(&viewer.runs, &uri))
                .await
                .unwrap_or_else(|_| {
                    // The record caused a panic, which was reported on standard error.
                    let why = "throng cannot make a page of this record.".to_owned();
                    Err(Refused(StatusCode::INTERNAL_SERVER_ERROR, why))
                });
            let mut response = made.unwrap_or_else(shown);
            // Only links may lead from other sites to these pages.
            let text = format!("{}; Path=/; HttpOnly; SameSite=Lax", self.cookie());
            let cookie = HeaderValue::from_str(&text).ok();
            let headers = response.headers_mut();
            headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
            response
        };
        let headers = response.headers_mut();
        for (name, value) in [
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-store"),
            (header::ALLOW, "GET, HEAD"),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let policy = HeaderValue::from_static(POLICY);
        headers
            .entry(header::CONTENT_SECURITY_POLICY)
            .or_insert(policy);
        Ok(response)
    }

    /// Why a request is rejected, if it is.
    fn refused(&self, request: &Request<Incoming>) -> Option<Refused> {
        let listening = self.listening;
        let ours = |host: &str| is_own(host, listening);
        let mut hosts = request
            .headers()
            .get_all(header::HOST)
            .iter()
            .map(|host| host.to_str().unwrap_or_default());
        let is_ours = hosts.next().is_some_and(ours) && hosts.next().is_none();
        let asked = request.uri().authority().map(Authority::as_str);
        if !is_ours || !asked.is_none_or(ours) {
            // Another site may have pointed its own name at this machine, to read what it otherwise could not (DNS
            // rebinding).
            let why = format!("Open http://{listening}/: other host names are rejected.");
            return Some(Refused(StatusCode::MISDIRECTED_REQUEST, why));
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let why = "These pages are read-only.".to_owned();
            return Some(Refused(StatusCode::METHOD_NOT_ALLOWED, why));
        }
        if !self.has_token(request) {
            let why = "Open the whole URL that throng view printed, with its token.".to_owned();
            return Some(Refused(StatusCode::FORBIDDEN, why));
        }
        None
    }

    /// The cookie. All ports of this machine share their cookies.
    fn cookie(&self) -> String {
        format!("throng-{}={}", self.listening.port(), self.token)
    }

    fn has_token(&self, request: &Request<Incoming>) -> bool {
        let own = self.cookie();
        let mut cookies = request
            .headers()
            .get_all(header::COOKIE)
            .iter()
            .flat_map(|cookies| cookies.to_str().unwrap_or("").split(';'));
        let query = request.uri().query().unwrap_or_default();
        cookies.any(|cookie| cookie.trim() == own)
            || value(query, TOKEN).is_some_and(|token| token == self.token)
    }
}

/// The page that says why a request is rejected.
fn shown(Refused(status, why): Refused) -> Response {
    let title = status.canonical_reason().unwrap_or("Refused");
    let mut response = whole(&refusal(title, &why));
    *response.status_mut() = status;
    response
}
