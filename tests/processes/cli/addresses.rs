//! Where servers are: names, addresses of both kinds, unix sockets.

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use throng::registry::Entry as _;
use throng::serve::models::MODELS;

use super::{Finished, throng};
use crate::support::interpreter;
use crate::support::program::{THRONG, words};
use crate::support::server::Server;

/// Starts a server that listens there.
fn serve(arguments: &[&str], listen: &str) -> Server {
    let mut command = Command::new(THRONG);
    command.arg("serve").args(arguments);
    Server::spawn_on(listen, command).expect("it listens")
}

/// A load of 200 requests from 4 clients, and its result.
fn load(arguments: &[&str]) -> (Finished, Value) {
    let finished = throng(&[&["load", "--json", "-c", "4", "-n", "200"], arguments].concat());
    let result = finished.json();
    (finished, result)
}

fn all_are_right(arguments: &[&str]) {
    let (finished, result) = load(arguments);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(result["verified"], 200, "{result}");
    assert_eq!(result["errors"], serde_json::json!({}), "{result}");
}

#[test]
fn servers_and_loads_meet_on_ipv6_names_and_short_forms() {
    let server = Server::start(&["epoll", "--protocol", "http"]).unwrap();
    let port = server.address().port();
    for target in [
        format!("HTTP://LOCALHOST:{port}"),
        format!("http://127.0.0.1:{port}/a"),
    ] {
        all_are_right(&[&target]);
    }
    all_are_right(&[&format!(":{port}"), "--protocol", "http"]);
    let finished = throng(&["load", &format!("http://localhost:{port}"), "-n", "200"]);
    let chosen = format!("clients on 127.0.0.1:{port}");
    assert!(finished.out.contains(&chosen), "{finished:?}");
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        println!("not tried: there is no IPv6 here");
        return;
    }
    let server = serve(&["epoll"], "[::1]:0");
    assert!(server.address().is_ipv6());
    for engine in ["epoll", "io-uring"] {
        all_are_right(&[&server.address().to_string(), "--engine", engine]);
    }
    assert_eq!(server.stop().unwrap()["requests"], 400);
}

#[test]
fn a_user_in_a_url_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let received = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let count = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 204 X\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 10]);
        String::from_utf8_lossy(&request[..count]).into_owned()
    });
    let url = "http://Aladdin:open%20sesame@example.org/x?y";
    let socket = path.to_str().unwrap();
    let finished = throng(&["load", url, "--unix-socket", socket, "-c", "1", "-n", "1"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    let received = received.join().unwrap();
    assert!(received.starts_with("GET /x?y HTTP/1.1\r\n"), "{received}");
    let user = "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";
    assert!(received.contains(user), "{received}");
}

#[test]
fn unix_sockets_are_served_and_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a b.sock");
    let listen = format!("unix:{}", file.display());
    for (model, protocol) in [("epoll", "http"), ("reactors", "echo"), ("tokio", "upload")] {
        let server = serve_unix(&[model, "--protocol", protocol], &listen);
        for engine in ["epoll", "io-uring"] {
            all_are_right(&[&listen, "--protocol", protocol, "--engine", engine]);
        }
        if protocol == "http" {
            let path = file.display().to_string();
            let encoded = path.replace('/', "%2F").replace(' ', "%20");
            all_are_right(&[&format!("http+unix://{encoded}/x")]);
            all_are_right(&["http://localhost/x", "--unix-socket", &path]);
        }
        end(server);
        assert!(!file.exists(), "{model} left its socket");
    }
    // Existing files of others are not touched.
    let listener = UnixListener::bind(&file).unwrap();
    let taken = throng(&["serve", "epoll", "--listen", &listen]);
    assert!(
        taken.code == 1 && taken.err.contains("another server listens there"),
        "{taken:?}"
    );
    drop(listener);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "mine").unwrap();
    let refused = throng(&["serve", "epoll", "--listen", &listen]);
    assert!(refused.err.contains("not a socket"), "{refused:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    let (finished, result) = load(&["unix:/no/such/socket"]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert_eq!(result["errors"]["refused"], 4, "{result}");
}

/// Starts a server on a unix socket, which has no address, and waits until it listens.
fn serve_unix(arguments: &[&str], listen: &str) -> OnSocket {
    use std::io::BufRead as _;
    let mut command = Command::new(THRONG);
    command
        .arg("serve")
        .args(arguments)
        .args(["--listen", listen]);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut line = String::new();
    let stdout = child.stdout.as_mut().expect("it is piped");
    std::io::BufReader::new(stdout)
        .read_line(&mut line)
        .expect("it says where it listens");
    assert!(
        line.starts_with(&format!("listening on {listen} (")),
        "{line}"
    );
    OnSocket(child)
}

/// A server on a unix socket, always ended.
struct OnSocket(Child);

impl Drop for OnSocket {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn end(mut server: OnSocket) {
    let pid = rustix::process::Pid::from_child(&server.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    assert!(server.0.wait().expect("it was started").success());
}

#[test]
fn every_model_serves_on_a_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    for model in MODELS.iter().filter(|model| model.supported().is_ok()) {
        let name = model.info().name;
        let file = directory.path().join(name);
        let listen = format!("unix:{}", file.display());
        let server = serve_unix(&[name, "--workers", "2"], &listen);
        // One client, since some models serve no more at a time.
        let finished = throng(&["load", &listen, "--json", "-c", "1", "-n", "50"]);
        let result = finished.json();
        assert_eq!(finished.code, 0, "{name}: {finished:?}");
        assert_eq!(result["verified"], 50, "{name}: {result}");
        end(server);
        assert!(!file.exists(), "{name} left its socket");
    }
}

#[test]
fn a_name_without_an_address_is_reported() {
    throng(&["load", "no-such-host.invalid:80"])
        .is_usage_error(&["cannot look up no-such-host.invalid"]);
}

#[test]
fn servers_that_run_already_are_measured_by_unix_socket_and_websocket() {
    let directory = tempfile::tempdir().unwrap();
    let listen = format!("unix:{}", directory.path().join("s").display());
    let of_socket = serve_unix(&["epoll", "--protocol", "http"], &listen);
    let of_port = Server::start(&["epoll", "--protocol", "websocket"]).unwrap();
    let url = format!("ws://{}/chat", of_port.address());
    for (server, more, by) in [
        (&listen, &["--protocol", "http"][..], "found by its socket"),
        (&url, &["--text"], "found by its port"),
    ] {
        let finished = measured(directory.path(), server, more);
        let trial = trial(directory.path(), &finished);
        assert_eq!(trial["failure"], Value::Null, "{server}: {trial}");
        assert_eq!(trial["load"]["errors"], serde_json::json!({}), "{trial}");
        assert!(finished.err.contains(by), "{finished:?}");
        std::fs::remove_dir_all(directory.path().join("run")).unwrap();
    }
    end(of_socket);
    of_port.stop().unwrap();
}

/// The first trial of the record.
fn trial(directory: &Path, finished: &Finished) -> Value {
    let trials = std::fs::read_to_string(directory.join("run/trials.jsonl"));
    let trials = trials.unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let first = trials.lines().next().expect("there is a trial");
    serde_json::from_str(first).expect("a trial is JSON")
}

/// The results of a comparison, or why there are none.
fn measured(directory: &Path, server: &str, more: &[&str]) -> Finished {
    let out = directory.join("run");
    let out = out.to_str().expect("its name is text");
    let usual = words(
        "measure {} --duration 100ms --runs 1 --retries 0 --allow-rough --warm-up 50ms --warm-up-limit 50ms -o {}",
        &[server, out],
    );
    throng(&[&usual[..], more].concat())
}

#[test]
fn foreign_servers_may_have_a_unix_socket_or_ipv6_alone() {
    let program = "import socket, sys, threading
kind, place = sys.argv[1:]
if kind == 'unix':
    s = socket.socket(socket.AF_UNIX)
    s.bind(place)
else:
    s = socket.socket(socket.AF_INET6)
    s.bind(('::1', int(place)))
s.listen(50)
def echo(c):
    while b := c.recv(65536):
        c.sendall(b)
while True:
    threading.Thread(target=echo, args=s.accept()[:1], daemon=True).start()
";
    let Some(python) = interpreter::program("python3") else {
        println!("skipped: python3 is not installed");
        return;
    };
    let mut servers = vec![("unix", "{socket}")];
    if std::net::TcpListener::bind("[::1]:0").is_ok() {
        servers.push(("v6", "{port}"));
    }
    for (kind, place) in servers {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("server.py");
        std::fs::write(&script, program).unwrap();
        let server = format!("{python} {} {kind} {place}", script.display());
        let more = ["--protocol", "echo", "-c", "5"];
        let finished = measured(directory.path(), &server, &more);
        let trial = trial(directory.path(), &finished);
        assert_eq!(trial["failure"], Value::Null, "{kind}: {trial}");
        assert_eq!(
            trial["load"]["errors"],
            serde_json::json!({}),
            "{kind}: {trial}"
        );
        let missing = trial["network"].to_string() + &trial["missing"].to_string();
        assert_eq!(missing.contains("unix socket"), kind == "unix", "{missing}");
    }
}
