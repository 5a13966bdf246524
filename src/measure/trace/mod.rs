//! The system calls that a server makes for one client, traced while it makes them.
//!
//! The server is a process of its own, as in a trial. Once it has answered one client right, all its threads
//! and processes are traced, and another client comes, asks and leaves, each when all of them sleep. With a
//! single client nothing happens at the same time that would have to be told apart. The thread that traces
//! is the client too; when it ends, the kernel kills what it traces.

mod decode;
mod ring;
mod watch;

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::host;
use super::own_server::OwnServer;
use crate::learn::traced::{About, Step, Traced};
use crate::protocol::{Protocol, Requester, Settings};
use crate::registry::Unsupported;
use crate::sys::signal::Stop;
use watch::Watch;

/// Longest time for any one step.
const LIMIT: Duration = Duration::from_secs(5);
/// How long nothing may happen while all sleep before a step is over.
const QUIET: Duration = Duration::from_millis(10);
/// Calls after the answer by which a server is known for one that never waits.
const RESTLESS: usize = 200;
/// Time between two looks when nothing has happened.
const PAUSE: Duration = Duration::from_micros(100);

/// What is traced: a model and the options that it is started with.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// Options of `throng serve`.
    pub options: &'a [String],
}

/// Starts a server, traces it while one client comes, asks and leaves, and ends it.
///
/// # Errors
/// [`Unsupported`] among the causes where the kernel lets nobody trace; else what went wrong with the
/// server, or that `stop` was requested.
pub fn trace(
    subject: Subject<'_>,
    protocol: &dyn Protocol,
    settings: Settings,
    stop: Stop,
) -> anyhow::Result<Traced> {
    let Subject { model, options } = subject;
    let server = OwnServer::start("the server to trace", model, options, &[], stop)?;
    let limits = Limits { stop, time: LIMIT };
    let steps = steps(&server, || protocol.requester(&settings, 0), limits)?;
    Ok(Traced {
        system: system(),
        asked: protocol.describe(&settings),
        options: options.join(" "),
        steps,
    })
}

/// The system with the first two numbers of its version, which is what system calls depend on.
fn system() -> String {
    let kernel = host::kernel();
    let mut numbers = kernel.split('.');
    let first: Vec<&str> = numbers.by_ref().take(2).collect();
    first.join(".")
}

fn steps(
    server: &OwnServer,
    requester: impl Fn() -> Box<dyn Requester> + Sync,
    limits: Limits,
) -> anyhow::Result<Vec<Step>> {
    // Before any client is there, all its sockets are those it listens on.
    let listeners: HashSet<String> = watch::sockets(server.pid()).collect();
    let (pid, address) = (server.pid(), server.address());
    verify(address, requester(), limits).context("the server does not answer right")?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tracer".to_owned());
        let traced = thread.spawn_scoped(scope, || {
            let watch = Watch::begin(pid, listeners).map_err(|error| forbidden(&error))?;
            Tracing { watch, limits }.client(address, requester())
        });
        let traced = traced.context("cannot start a thread")?;
        traced
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the tracer panicked")))
    })
}

/// Why nobody can be traced.
fn forbidden(error: &io::Error) -> anyhow::Error {
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let remedy = match yama.unwrap_or_default().trim() {
        "2" | "3" => "as root: sysctl kernel.yama.ptrace_scope=1",
        _ => {
            "run it where ptrace(2) is allowed: outside this container, or with --cap-add=SYS_PTRACE"
        }
    };
    let unsupported = Unsupported {
        reason: format!("the kernel does not let system calls be traced: {error}"),
        remedy: remedy.to_owned(),
    };
    unsupported.into()
}

/// What bounds each step.
#[derive(Clone, Copy)]
struct Limits {
    stop: Stop,
    time: Duration,
}

impl Limits {
    /// That a step that began then may go on.
    fn check(self, began: Instant, waits_for: &str) -> anyhow::Result<()> {
        anyhow::ensure!(!self.stop.requested(), "interrupted");
        anyhow::ensure!(
            began.elapsed() < self.time,
            "{waits_for} within {:?}",
            self.time
        );
        Ok(())
    }
}

/// One connection, one request.
fn verify(
    address: SocketAddr,
    requester: Box<dyn Requester>,
    limits: Limits,
) -> anyhow::Result<()> {
    let mut client = Client::connect(address, requester)?;
    client.ask()?;
    let began = Instant::now();
    while !client.hears_answer()? {
        limits.check(began, "no whole reply")?;
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// The tracing of one server.
struct Tracing {
    watch: Watch,
    limits: Limits,
}

impl Tracing {
    /// Lets a client come, ask and leave.
    fn client(
        &mut self,
        address: SocketAddr,
        requester: Box<dyn Requester>,
    ) -> anyhow::Result<Vec<Step>> {
        self.settle(|| Ok(true))?;
        let mut client = None;
        let comes = self.step(About::Comes, || {
            client = Some(Client::connect(address, requester)?);
            Ok(())
        })?;
        let mut client = client.context("it has come")?;
        client.ask()?;
        self.settle(|| client.hears_answer())?;
        self.watch.begin_step();
        client.ask()?;
        let rests = self.settle(|| client.hears_answer())?;
        let asks = Step {
            about: About::Asks,
            calls: self.watch.calls(rests),
        };
        let leaves = self.step(About::Leaves, || {
            drop(client);
            Ok(())
        })?;
        Ok(vec![comes, asks, leaves])
    }

    fn step(
        &mut self,
        about: About,
        act: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Step> {
        self.watch.begin_step();
        act()?;
        let rests = self.settle(|| Ok(true))?;
        let calls = self.watch.calls(rests);
        Ok(Step { about, calls })
    }

    /// Watches until the client has what it waits for and all of the server sleep, or make calls without end;
    /// whether they sleep.
    fn settle(
        &mut self,
        mut client_has: impl FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let began = Instant::now();
        let mut quiet_since = Instant::now();
        let mut seen_before = None;
        loop {
            let happened = self.watch.look();
            if happened {
                quiet_since = Instant::now();
            }
            anyhow::ensure!(!self.watch.is_over(), "the server has ended");
            if seen_before.is_none() && client_has()? {
                seen_before = Some(self.watch.seen());
            }
            if let Some(before) = seen_before {
                let rests = quiet_since.elapsed() >= QUIET && self.watch.all_sleep();
                if rests || self.watch.seen() > before + RESTLESS {
                    return Ok(rests);
                }
            }
            let waits_for = match seen_before {
                None => "no whole reply",
                Some(_) => "the server did not come to rest",
            };
            self.limits.check(began, waits_for)?;
            if !happened {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A client that never waits in a call, so that its server can be traced meanwhile.
struct Client {
    stream: TcpStream,
    requester: Box<dyn Requester>,
}

impl Client {
    fn connect(address: SocketAddr, requester: Box<dyn Requester>) -> io::Result<Self> {
        // The kernel completes it, not the server.
        let stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, requester })
    }

    fn ask(&mut self) -> io::Result<()> {
        let mut wire = Vec::new();
        self.requester.request(&mut wire);
        // So little fits into an empty socket.
        self.stream.write_all(&wire)
    }

    /// Whether the answer has come, every byte of it checked.
    fn hears_answer(&mut self) -> anyhow::Result<bool> {
        let mut input = [0; 16 * 1024];
        match self.stream.read(&mut input) {
            Ok(0) => anyhow::bail!("the server closed the connection before its reply was whole"),
            Ok(count) => Ok(self.requester.receive(&input[..count])?.completed > 0),
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) =>
            {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process::Command;

    use super::*;
    use crate::protocol::PROTOCOLS;

    /// Whether a process is there.
    fn lives(pid: u32) -> bool {
        fs::exists(format!("/proc/{pid}")).unwrap()
    }

    #[test]
    fn a_server_that_never_answers_ends_with_a_reason_and_in_time() {
        let stop = Stop::install().unwrap();
        // The test listens in its place.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut command = Command::new("sh");
        let says = format!(
            "echo listening on {}; sleep 60 & wait",
            listener.local_addr().unwrap()
        );
        command.args(["-c", &says]);
        let server = OwnServer::start_command("the server", command, &[], stop).unwrap();
        let pid = server.pid();
        let limits = Limits {
            stop,
            time: Duration::from_millis(200),
        };
        let requester = || PROTOCOLS[0].requester(&Settings::default(), 0);
        let error = steps(&server, requester, limits).unwrap_err();
        assert!(
            format!("{error:#}").contains("no whole reply within 200ms"),
            "{error:#}"
        );
        drop(server);
        assert!(!lives(pid));
    }

    #[test]
    fn who_may_not_trace_is_told_why() {
        let error = forbidden(&io::Error::from_raw_os_error(libc::EPERM));
        let unsupported = error.downcast_ref::<Unsupported>().unwrap();
        assert!(
            unsupported.reason.contains("not permitted"),
            "{unsupported}"
        );
        assert!(!unsupported.remedy.is_empty());
    }
}
