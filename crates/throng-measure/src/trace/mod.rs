//! The system calls that a server makes for one client, traced as they happen.
//!
//! The server is a separate process, as in a trial. After it has served one client, all its threads and processes are
//! traced, and another client connects, sends a request and disconnects. The client takes each step when all of them
//! sleep and the kernel has delivered the previous step. That may take a while on a busy machine. With a single
//! client, there is no concurrent work to separate. The tracing thread is also the client; when it ends, the kernel
//! kills the traced processes.

mod decode;
mod ring;
mod tasks;
mod watch;

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::host;
use super::network::sock_diag::{Question, SockDiag, State};
use crate::servers::own_server::OwnServer;
use throng_protocol::{Protocol, Requester, Settings};
use throng_record::traced::{ClientStep, Step, Traced};
use throng_spec::registry::Unsupported;
use throng_sys::signal::Stop;
use watch::Watch;

/// Time limit of any one step, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);
/// A step is over when nothing happens for this long while all threads sleep.
const QUIET: Duration = Duration::from_millis(10);
/// A server that makes this many calls after its reply never waits.
const RESTLESS: usize = 200;
/// Interval of checks while nothing happens.
const PAUSE: Duration = Duration::from_micros(100);

/// A model to trace, and its options.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// Options of `throng serve`.
    pub options: &'a [String],
}

/// Starts a server, traces it while one client connects, sends a request and leaves, and then stops the server.
///
/// # Errors
/// [`Unsupported`] among the causes if tracing is forbidden; otherwise a failure of the server, or a requested `stop`.
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

/// The system with the first two numbers of its version, which system calls depend on.
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
    // Without clients, all its sockets are listening ones.
    let listeners: HashSet<String> = tasks::sockets(server.pid()).collect();
    let (pid, address) = (server.pid(), server.address());
    let before = verify(address, requester(), limits).context("the server gave a wrong reply")?;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("tracer".to_owned());
        let traced = thread
            .spawn_scoped(scope, || {
                let watch = Watch::begin(pid, listeners).map_err(|error| forbidden(&error))?;
                let connections = Connections::of(address);
                let mut tracing = Tracing {
                    watch,
                    connections,
                    limits,
                };
                tracing.client(address, requester(), before)
            })
            .context("cannot start a thread")?;
        traced
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the tracer panicked")))
    })
}

/// Why tracing is forbidden.
fn forbidden(error: &io::Error) -> anyhow::Error {
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let remedy = match yama.unwrap_or_default().trim() {
        "2" | "3" => "as root: sysctl kernel.yama.ptrace_scope=1",
        _ => "allow ptrace(2): run outside this container, or with --cap-add=SYS_PTRACE",
    };
    let unsupported = Unsupported {
        reason: format!("system calls cannot be traced: {error}"),
        remedy: remedy.to_owned(),
    };
    unsupported.into()
}

/// The time limits of each step.
#[derive(Clone, Copy)]
struct Limits {
    stop: Stop,
    time: Duration,
}

impl Limits {
    /// Checks that a step that began at `began` may continue.
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

/// Makes one connection and one request; returns the client's port.
fn verify(
    address: SocketAddr,
    requester: Box<dyn Requester>,
    limits: Limits,
) -> anyhow::Result<u16> {
    let mut client = Client::connect(address, requester)?;
    client.ask()?;
    let began = Instant::now();
    while !client.receives_reply()? {
        limits.check(began, "no complete reply")?;
        std::thread::sleep(PAUSE);
    }
    Ok(client.port()?)
}

/// The connections of a server, as listed by the kernel.
struct Connections {
    /// `None` if the kernel lacks it; delivery is then assumed to be quick.
    diag: Option<SockDiag>,
    server: SocketAddr,
}

impl Connections {
    fn of(server: SocketAddr) -> Self {
        let diag = SockDiag::open().ok();
        Self { diag, server }
    }

    /// Whether the accept queue is empty.
    fn all_are_accepted(&mut self) -> anyhow::Result<bool> {
        let waiting = Question {
            states: State::SynReceived.bit() | State::Listen.bit(),
            ..Question::default()
        };
        // Length of a listening socket's accept queue.
        self.is_none(waiting, |state, queue| {
            state != State::Listen as u8 || queue > 0
        })
    }

    /// Whether the server has closed its connection to this port.
    fn is_closed(&mut self, client: u16) -> anyhow::Result<bool> {
        let open = Question {
            states: State::Established.bit() | State::CloseWait.bit(),
            remote_port: client,
            ..Question::default()
        };
        self.is_none(open, |_, _| true)
    }

    /// Whether no socket on the server's port, by state and queue, matches.
    fn is_none(
        &mut self,
        question: Question,
        is_one: impl Fn(u8, u32) -> bool,
    ) -> anyhow::Result<bool> {
        let Some(diag) = &mut self.diag else {
            return Ok(true);
        };
        let question = Question {
            ipv6: self.server.is_ipv6(),
            local_port: self.server.port(),
            ..question
        };
        let mut none = true;
        diag.each(&question, |socket| {
            none &= !is_one(socket.state, socket.receive_queue);
            ControlFlow::Continue(())
        })?;
        Ok(none)
    }
}

/// The tracing of one server.
struct Tracing {
    watch: Watch,
    connections: Connections,
    limits: Limits,
}

impl Tracing {
    /// Runs one client, once the earlier client on port `before` is gone.
    fn client(
        &mut self,
        address: SocketAddr,
        requester: Box<dyn Requester>,
        before: u16,
    ) -> anyhow::Result<Vec<Step>> {
        self.wait_until_quiet("the client before was not closed", |connections| {
            connections.is_closed(before)
        })?;

        self.watch.begin_step();
        let mut client = Client::connect(address, requester)?;
        let port = client.port()?;
        let rests = self.wait_until_quiet("the client was not accepted", |connections| {
            connections.all_are_accepted()
        })?;
        let comes = self.end_step(ClientStep::Comes, rests);

        client.ask()?;
        self.wait_until_quiet("no complete reply", |_| client.receives_reply())?;
        self.watch.begin_step();
        client.ask()?;
        let replied = self.wait_until_quiet("no complete reply", |_| client.receives_reply())?;
        let asks = self.end_step(ClientStep::Asks, replied);

        self.watch.begin_step();
        drop(client);
        let closed = self.wait_until_quiet("the connection was not closed", |connections| {
            connections.is_closed(port)
        })?;
        let leaves = self.end_step(ClientStep::Leaves, closed);
        Ok(vec![comes, asks, leaves])
    }

    fn end_step(&mut self, about: ClientStep, rests: bool) -> Step {
        let calls = self.watch.calls(rests);
        Step { about, calls }
    }

    /// Watches until the awaited state is reached and all threads of the server sleep, or make calls endlessly;
    /// returns whether they sleep. `has_come` returns whether the state is reached; `lacks` is the error if it is not
    /// in time.
    fn wait_until_quiet(
        &mut self,
        lacks: &str,
        mut has_come: impl FnMut(&mut Connections) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let began = Instant::now();
        let mut quiet_since = Instant::now();
        let mut seen_before = None;
        loop {
            let happened = self.watch.process_stops();
            anyhow::ensure!(!self.watch.is_over(), "the server has ended");
            if seen_before.is_none() && has_come(&mut self.connections)? {
                seen_before = Some(self.watch.call_count());
                quiet_since = Instant::now();
            }
            if let Some(before) = seen_before {
                // A thread that is about to sleep for a moment may have waited for a CPU until now.
                if happened || !self.watch.all_sleep() {
                    quiet_since = Instant::now();
                }
                let rests = quiet_since.elapsed() >= QUIET;
                if rests || self.watch.call_count() > before + RESTLESS {
                    return Ok(rests);
                }
            }
            let waits_for = match seen_before {
                None => lacks,
                Some(_) => "the server did not become idle",
            };
            self.limits.check(began, waits_for)?;
            if !happened {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// A non-blocking client, so that its server can be traced at the same time.
struct Client {
    stream: TcpStream,
    requester: Box<dyn Requester>,
}

impl Client {
    fn connect(address: SocketAddr, requester: Box<dyn Requester>) -> io::Result<Self> {
        // The kernel completes the connection, not the server.
        let stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self { stream, requester })
    }

    fn port(&self) -> io::Result<u16> {
        Ok(self.stream.local_addr()?.port())
    }

    fn ask(&mut self) -> io::Result<()> {
        let mut wire = Vec::new();
        self.requester.request(&mut wire);
        // It is small enough for an empty socket buffer.
        self.stream.write_all(&wire)
    }

    /// Whether the reply has arrived, with every byte checked.
    fn receives_reply(&mut self) -> anyhow::Result<bool> {
        let mut input = [0; 16 * 1024];
        match self.stream.read(&mut input) {
            Ok(0) => {
                anyhow::bail!("the server closed the connection before its reply was complete")
            }
            Ok(count) => {
                let received = self.requester.receive(&input[..count])?;
                // After a handshake, the request itself.
                let mut wire = Vec::new();
                self.requester.append_pending(&mut wire);
                self.stream.write_all(&wire)?;
                Ok(received.completed > 0)
            }
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
    use throng_protocol::PROTOCOLS;

    /// Whether a process exists.
    fn setups(pid: u32) -> bool {
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
            format!("{error:#}").contains("no complete reply within 200ms"),
            "{error:#}"
        );
        drop(server);
        assert!(!setups(pid));
    }

    #[test]
    fn missing_permission_to_trace_is_explained() {
        let error = forbidden(&io::Error::from_raw_os_error(libc::EPERM));
        let unsupported = error.downcast_ref::<Unsupported>().unwrap();
        assert!(
            unsupported.reason.contains("not permitted"),
            "{unsupported}"
        );
        assert!(!unsupported.remedy.is_empty());
    }
}
