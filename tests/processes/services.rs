//! Servers that people run, as `examples/services/start` starts them: a load counts what the server's own log counts,
//! `measure` and `compare` have results of both sides, and no process of a server is left. Those that are not installed
//! are skipped with a note.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use throng::record;

use crate::support::marked::Marked;
use crate::support::program::THRONG;
use crate::support::sockets::is_listener;
use crate::support::tries;

/// Time limit for a server to listen, or a command to end, while other tests run.
const LIMIT: Duration = Duration::from_mins(10);
/// Requests of a load.
const REQUESTS: u64 = 300;
/// Most requests of a trial besides its load, to verify the server.
const MOST_TO_VERIFY: u64 = 50;

/// A server and the requests for it.
struct Service {
    /// As `start` calls it.
    name: &'static str,
    /// A shell command that succeeds where it is installed.
    is_there: &'static str,
    /// Before the port, in what a load is given.
    scheme: &'static str,
    /// Whether it is given the path of a unix socket instead of a port.
    has_socket: bool,
    /// The options of a dialogue that is not HTTP.
    dialogue: &'static [&'static str],
    counted: Counted,
    /// Its line of readiness, if it accepts connections earlier.
    ready: Option<&'static str>,
    /// Whether another one that is measured differs from it only in its TLS.
    is_variant: bool,
}

/// The server's own count of requests.
enum Counted {
    /// Lines of its log with these texts.
    Log(&'static str, &'static str),
    /// Its reply to this, after these words.
    Asked(&'static str, &'static str),
    /// Not at all.
    Never,
}

const ACCESS_LOG: Counted = Counted::Log("access.log", "");

const fn web(name: &'static str, is_there: &'static str) -> Service {
    Service {
        name,
        is_there,
        scheme: "http://",
        has_socket: false,
        dialogue: &[],
        counted: ACCESS_LOG,
        ready: None,
        is_variant: false,
    }
}

/// With a self-signed certificate.
const fn encrypted(name: &'static str, is_there: &'static str) -> Service {
    Service {
        scheme: "https://",
        dialogue: &["--tls", "-k"],
        ..web(name, is_there)
    }
}

const HAS_GRPC: &str = "python3 -c 'import grpc' || /usr/bin/python3 -c 'import grpc'";
const HAS_WEBSOCKETS: &str =
    "python3 -c 'import websockets' || /usr/bin/python3 -c 'import websockets'";

const SERVICES: [Service; 26] = [
    web("nginx", "command -v nginx"),
    Service {
        scheme: "h2c://",
        dialogue: &["--http2"],
        ..web("nginx-h2c", "command -v nginx")
    },
    Service {
        dialogue: &["--tls", "-k", "--http2", "--streams", "4"],
        is_variant: true,
        ..encrypted("nginx-h2", "command -v nginx && command -v openssl")
    },
    Service {
        scheme: "h2c://",
        dialogue: &["--http2", "--streams", "4"],
        ..web("node-h2c", "command -v node")
    },
    Service {
        scheme: "",
        dialogue: &["--grpc", "helloworld.Greeter/SayHello"],
        ..web("greeter", HAS_GRPC)
    },
    encrypted("nginx-tls", "command -v nginx && command -v openssl"),
    encrypted("node-tls", "command -v node && command -v openssl"),
    Service {
        counted: Counted::Log("access.log", "HTTP/1.1"),
        is_variant: true,
        ..encrypted("haproxy-tls", "command -v haproxy && command -v openssl")
    },
    Service {
        is_variant: true,
        ..encrypted("apache-tls", "command -v apache2 && command -v openssl")
    },
    Service {
        dialogue: &["--tls", "-k", "--path", "/page"],
        counted: Counted::Never,
        is_variant: true,
        ..encrypted("openssl", "command -v openssl")
    },
    Service {
        scheme: "wss://",
        dialogue: &["--tls", "-k", "--protocol", "websocket", "--text"],
        is_variant: true,
        ..web("websocket-tls", HAS_WEBSOCKETS)
    },
    web("nginx-proxy", "command -v nginx"),
    Service {
        scheme: "http+unix://",
        has_socket: true,
        ..web("nginx-unix", "command -v nginx")
    },
    Service {
        scheme: "ws://",
        dialogue: &["--protocol", "websocket", "--text"],
        ..web("websocket", HAS_WEBSOCKETS)
    },
    Service {
        counted: Counted::Log("access.log", "HTTP/1.1"),
        ..web("haproxy", "command -v haproxy")
    },
    web("apache", "command -v apache2"),
    web("lighttpd", "command -v lighttpd"),
    web("node", "command -v node"),
    web("node-cluster", "command -v node"),
    web(
        "express",
        "NODE_PATH=/usr/share/nodejs node -e 'require(\"express\")'",
    ),
    Service {
        counted: Counted::Log("access.log", "HTTP/1.1"),
        ..web(
            "uvicorn",
            "python3 -c 'import uvicorn' || /usr/bin/python3 -c 'import uvicorn'",
        )
    },
    web("gunicorn", "command -v gunicorn"),
    // So it is compiled, which takes longer than a server may to start.
    web(
        "go",
        "GO111MODULE=off go build -o /dev/null examples/services/server.go",
    ),
    web("java", "command -v java"),
    Service {
        scheme: "",
        dialogue: &["--send", r"PING\r\n", "--expect", r"text:+PONG\r\n"],
        counted: Counted::Asked("INFO commandstats\r\n", "cmdstat_ping:calls="),
        ..web("redis", "command -v redis-server")
    },
    Service {
        scheme: "",
        dialogue: &["--send", r"get key\r\n", "--expect", r"text:END\r\n"],
        counted: Counted::Asked("stats\r\n", "STAT cmd_get "),
        ..web("memcached", "command -v memcached")
    },
];

/// A request to PostgreSQL is a connection of its own, up to "ready for query".
const POSTGRES: Service = Service {
    scheme: "",
    dialogue: &[
        "--send",
        r"\0\0\0\x17\0\x03\0\0user\0postgres\0\0",
        "--expect",
        r"regex:Z\x00\x00\x00\x05I",
        "--requests-per-connection",
        "1",
    ],
    counted: Counted::Log("postgres.log", "connection authorized"),
    ready: Some("ready to accept connections"),
    ..web("postgres", "ls /usr/lib/postgresql/*/bin/initdb")
};

fn start_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/services/start")
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").port()
}

/// One that runs in a directory of its own.
struct Running {
    child: Child,
    /// Its port, or the path of its socket.
    place: String,
    marked: Marked,
}

impl Running {
    fn start(service: &Service, directory: &Path) -> Result<Self, String> {
        let place = if service.has_socket {
            directory.join("server.sock").display().to_string()
        } else {
            free_port().to_string()
        };
        let mut command = Command::new(start_script());
        command.args([service.name, &place]);
        command.env("SERVICE_DIR", directory).env("ACCESS_LOG", "1");
        let marked = Marked::by(directory, &mut command);
        let output_file = directory.join("output");
        let output = fs::File::create(&output_file).expect("it can be made");
        command.stdout(output.try_clone().expect("a descriptor"));
        let mut child = command.stderr(output).spawn().expect("it can be started");
        let deadline = Instant::now() + LIMIT;
        let root = child.id().cast_signed();
        let is_ready = || match (service.ready, place.parse::<u16>()) {
            (Some(words), _) => {
                fs::read_to_string(&output_file).is_ok_and(|text| text.contains(words))
            }
            (None, Ok(port)) => {
                TcpStream::connect(("127.0.0.1", port)).is_ok()
                    && is_listener(root, port).expect("the kernel lists sockets")
            }
            (None, Err(_)) => UnixStream::connect(&place).is_ok(),
        };
        while !is_ready() {
            let ended = child.try_wait().expect("it is our child");
            if ended.is_some() || Instant::now() > deadline {
                let printed = fs::read_to_string(&output_file).unwrap_or_default();
                let _ = child.kill();
                return Err(format!("{} is not ready: {printed}", service.name));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Self {
            child,
            place,
            marked,
        })
    }

    fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("it has one");
        kill_process(pid, Signal::TERM).expect("it is our child");
        self.child.wait().expect("it is our child");
        self.marked.assert_all_ended();
    }
}

/// Ends it, also if the test fails.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Service {
    /// Whether it can be tried here.
    fn can_be_tried(&self) -> bool {
        let mut shell = Command::new("sh");
        shell.args(["-c", self.is_there]);
        shell.current_dir(env!("CARGO_MANIFEST_DIR"));
        shell.env("PATH", path()).stdout(Stdio::null());
        let status = shell.stderr(Stdio::null()).status();
        let is_there = status.expect("a shell").success();
        if !is_there {
            println!("not tried: {} is not installed", self.name);
        }
        is_there
    }

    /// The command that `start` prints for throng.
    fn command(&self) -> String {
        let place = if self.has_socket {
            "{socket}"
        } else {
            "{port}"
        };
        format!("{} {} {place}", start_script().display(), self.name)
    }

    /// Number of requests that it has counted.
    fn count(&self, directory: &Path, port: u16) -> u64 {
        match self.counted {
            Counted::Log(file, words) => {
                let text = fs::read_to_string(directory.join(file)).expect("it keeps a log");
                text.lines().filter(|line| line.contains(words)).count() as u64
            }
            Counted::Never => 0,
            Counted::Asked(request, words) => {
                use std::io::{Read as _, Write as _};
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
                stream.write_all(request.as_bytes()).expect("it reads");
                let mut printed = Vec::new();
                let mut buffer = [0; 4096];
                loop {
                    let text = String::from_utf8_lossy(&printed);
                    if let Some((_, rest)) = text.split_once(words)
                        && let Some(end) = rest.find(|one: char| !one.is_ascii_digit())
                    {
                        return rest[..end].parse().expect("a number");
                    }
                    let count = stream.read(&mut buffer).expect("it answers");
                    assert_ne!(count, 0, "no `{words}` in {text}");
                    printed.extend_from_slice(&buffer[..count]);
                }
            }
        }
    }

    /// `throng load` sends so many requests, and the server counts as many.
    fn load_is_counted(&self) {
        let (running, directory) = tries::once(|| {
            let directory = tempfile::tempdir().expect("a directory");
            Running::start(self, directory.path()).map(|running| (running, directory))
        });
        let host = if self.has_socket {
            running.place.replace('/', "%2F")
        } else {
            format!("127.0.0.1:{}", running.place)
        };
        let target = format!("{}{host}", self.scheme);
        let requests = REQUESTS.to_string();
        let mut command = assert_cmd::Command::new(THRONG);
        command.args(["load", &target, "-n", &requests, "--clients", "8", "--json"]);
        command.args(self.dialogue).timeout(LIMIT);
        let output = command.output().expect("it can be started");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {printed}", self.name);
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(result["verified"], REQUESTS, "{}: {result}", self.name);
        assert_eq!(result["errors"], json!({}), "{}: {result}", self.name);
        let port = running.place.parse().unwrap_or(0);
        let asked = matches!(self.counted, Counted::Asked(..));
        let early = asked.then(|| self.count(directory.path(), port));
        running.stop();
        let counted = early.unwrap_or_else(|| self.count(directory.path(), port));
        if !matches!(self.counted, Counted::Never) {
            assert_eq!(counted, REQUESTS, "{}", self.name);
        }
    }

    /// `throng measure` starts it, has results of both sides, and ends it.
    fn is_measured(&self) {
        let directory = tempfile::tempdir().expect("a directory");
        let service = directory.path().join("service");
        fs::create_dir(&service).expect("it can be made");
        let record = directory.path().join("record");
        let mut command = Command::new(THRONG);
        command.args(["measure", &self.command(), "-n", self.name, "--runs", "1"]);
        command.args(["--duration", "100ms", "--clients", "8", "--warm-up", "50ms"]);
        command.args([
            "--warm-up-limit",
            "50ms",
            "--probes",
            "cpu",
            "--retries",
            "0",
        ]);
        command.args(["--allow-rough", "--ready-timeout", "60s"]);
        command.args(self.dialogue).arg("-o").arg(&record);
        if let Some(words) = self.ready {
            command.args(["--ready", words]);
        }
        command.env("SERVICE_DIR", &service).env("ACCESS_LOG", "1");
        let marked = Marked::by(directory.path(), &mut command);
        let output = assert_cmd::Command::from_std(command)
            .timeout(LIMIT)
            .output()
            .expect("it can be started");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {printed}", self.name);
        let trials = record::read_trials(&record).expect("a record");
        let [trial] = &trials[..] else {
            panic!("{}: {trials:#?}", self.name);
        };
        assert_eq!(trial.failure, None, "{}", self.name);
        let load = trial.load.as_ref().expect("it was loaded");
        assert_eq!(load.errors, [].into(), "{}", self.name);
        let side = trial.server_side.as_ref().expect("it was measured");
        assert!(side.metrics.contains_key("cpu_ms"), "{}", self.name);
        marked.assert_all_ended();
        if matches!(self.counted, Counted::Log(..)) {
            let counted = self.count(&service, 0);
            let expected = load.verified..=load.verified + MOST_TO_VERIFY;
            assert!(
                expected.contains(&counted),
                "{}: {counted} {expected:?}",
                self.name
            );
        }
    }
}

/// Also where only root looks for servers.
fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/sbin:/usr/local/go/bin")
}

fn try_service(name: &str) {
    let mut all = SERVICES.iter().chain([&POSTGRES]);
    let service = all
        .find(|service| service.name == name)
        .expect("it is one of them");
    if service.can_be_tried() {
        service.load_is_counted();
        if !service.is_variant {
            service.is_measured();
        }
    }
}

macro_rules! tries {
    ($($test:ident: $name:literal;)*) => {
        $(#[test] fn $test() { try_service($name); })*

        #[test]
        fn every_service_is_tried() {
            let tried = [$($name),*];
            let all = SERVICES.iter().chain([&POSTGRES]);
            for service in all {
                assert!(tried.contains(&service.name), "{}", service.name);
            }
        }
    };
}

tries! {
    nginx: "nginx";
    nginx_before_an_old_server: "nginx-proxy";
    nginx_on_a_unix_socket: "nginx-unix";
    websocket: "websocket";
    haproxy: "haproxy";
    apache: "apache";
    lighttpd: "lighttpd";
    node: "node";
    nginx_over_tls: "nginx-tls";
    nginx_over_http2: "nginx-h2c";
    nginx_over_http2_and_tls: "nginx-h2";
    node_over_http2: "node-h2c";
    grpc_in_python: "greeter";
    node_over_tls: "node-tls";
    haproxy_over_tls: "haproxy-tls";
    apache_over_tls: "apache-tls";
    openssl_alone: "openssl";
    websocket_over_tls: "websocket-tls";
    node_cluster: "node-cluster";
    express_with_replies_that_change: "express";
    uvicorn: "uvicorn";
    gunicorn: "gunicorn";
    go: "go";
    java: "java";
    redis: "redis";
    memcached: "memcached";
    postgres: "postgres";
}

/// All installed web servers, compared.
#[test]
fn web_servers_are_compared() {
    let web = SERVICES
        .iter()
        .filter(|service| service.scheme == "http://");
    let there: Vec<&Service> = web.filter(|service| service.can_be_tried()).collect();
    if there.len() < 2 {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let record = directory.path().join("record");
    let mut command = Command::new(THRONG);
    command.arg("compare");
    for service in &there {
        command.args([&service.command(), "-n", service.name]);
    }
    command.args("--runs 1 --duration 300ms --clients 8 --warm-up 50ms".split(' '));
    command.args("--warm-up-limit 50ms --control none --probes cpu".split(' '));
    command.args(["--allow-rough", "--ready-timeout", "60s", "-o"]);
    command.arg(&record);
    let marked = Marked::by(directory.path(), &mut command);
    let output = assert_cmd::Command::from_std(command)
        .timeout(LIMIT)
        .output()
        .expect("it can be started");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    for trial in record::read_trials(&record).expect("a record") {
        assert_eq!(trial.failure, None, "{}", trial.server);
        let load = trial.load.as_ref().expect("it was loaded");
        assert_eq!(load.errors, [].into(), "{}", trial.server);
    }
    marked.assert_all_ended();
}

/// Users log in to an application that no load tool wrote: each has its own cookies and tokens, and the server's log has
/// every step.
#[test]
fn users_log_in_to_django() {
    // Django needs most of a CPU for each hundred sessions a second, which the tests beside this one miss.
    let is_full = std::env::var_os("THRONG_FULL").is_some_and(|value| value == "1");
    let sessions_asked: usize = if is_full { 1000 } else { 200 };
    let django = web(
        "django",
        "command -v gunicorn && /usr/bin/python3 -c 'import django'",
    );
    if !django.can_be_tried() {
        return;
    }
    let (running, directory) = tries::once(|| {
        let directory = tempfile::tempdir().expect("a directory");
        Running::start(&django, directory.path()).map(|running| (running, directory))
    });
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/services");
    let mut command = Command::new(THRONG);
    command.arg("load").arg(examples.join("admin.hurl"));
    command.arg("--data-file").arg(examples.join("users.csv"));
    command.arg("--variable");
    command.arg(format!("host=http://127.0.0.1:{}", running.place));
    let requests = sessions_asked.to_string();
    command.args([
        "--clients",
        "20",
        "--first-reply-timeout",
        "60s",
        "--json",
        "-n",
        &requests,
    ]);
    command.args(["--fail-if", "home:errors > 0"]);
    let output = assert_cmd::Command::from_std(command)
        .timeout(LIMIT)
        .output()
        .expect("it can be started");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    let load: record::Load = serde_json::from_slice(&output.stdout).expect("a result");
    let sessions = load.sessions.expect("sessions");
    assert_eq!(
        (sessions.completed, sessions.failed),
        (sessions_asked as u64, 0),
        "{printed}"
    );
    let steps: Vec<(&str, u64)> = sessions
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step.replies))
        .collect();
    let all = sessions_asked as u64;
    assert_eq!(
        steps,
        ["form", "login", "home", "logout"].map(|name| (name, all))
    );
    running.stop();
    let log = fs::read_to_string(directory.path().join("access.log")).expect("it keeps a log");
    for (request, status) in [
        ("GET /admin/login/", 200),
        ("POST /admin/login/?next=/admin/", 302),
        ("GET /admin/", 200),
        ("GET /admin/logout/", 200),
    ] {
        let line = format!("\"{request} HTTP/1.1\" {status} ");
        let count = log.lines().filter(|text| text.contains(&line)).count();
        assert_eq!(count, sessions_asked, "{line}");
    }
    assert_eq!(log.lines().count(), 4 * sessions_asked);
}
