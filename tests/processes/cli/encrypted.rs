//! Loads over TLS as a user has them: servers with good and with bad certificates, without TLS, and real ones where they
//! are installed.

use std::fs;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use throng::tls::fixture::{Authority, Server, TlsServerSettings, Valid, server_config};

use super::foreign::start_nginx;
use super::{Finished, throng};
use crate::support::program::words;
use crate::support::server::Server as Plain;

/// The result of this number of requests by four clients, as JSON.
fn load(url: &str, requests: &str, more: &[&str]) -> Finished {
    let mut words = words("load {} --clients 4 --requests {} --json", &[url, requests]);
    words.extend(more);
    throng(&words)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn an_https_url_means_tls() {
    let authority = Authority::new();
    let certified = authority.issue(&["127.0.0.1"], Valid::Now);
    let speaks = TlsServerSettings {
        alpn: vec![b"http/1.1".to_vec()],
        ..TlsServerSettings::default()
    };
    let server = Server::http(server_config(&certified, &speaks), 1000);
    let cacert = text(&authority.cacert());
    let address = server.address;
    for (url, more) in [
        (format!("https://{address}/"), vec!["--cacert", &cacert]),
        (format!("HTTPS://{address}/a?b"), vec!["-k"]),
        (
            format!("{address}"),
            vec!["--tls", "-k", "--protocol", "http"],
        ),
    ] {
        for engine in ["epoll", "io-uring"] {
            let more = [&more[..], &["--engine", engine]].concat();
            let finished = load(&url, "200", &more);
            if finished.err.contains("is not supported here") {
                continue; // as `throng list` explains
            }
            assert_eq!(finished.code, 0, "{finished:?}");
            let result = finished.json();
            assert_eq!(result["verified"], 200, "{result}");
            assert_eq!(result["tls"]["handshakes"], 4, "{result}");
            assert_eq!(result["window"]["bytes_received"], 200 * 1041, "{result}");
            let negotiated = result["tls"]["negotiated"].to_string();
            assert!(negotiated.contains("TLS 1.3, TLS13_"), "{negotiated}");
            assert!(negotiated.contains("http/1.1"), "{negotiated}");
        }
    }
}

#[test]
fn impossible_settings_are_reported_before_clients_connect() {
    let (authority, other) = (Authority::new(), Authority::new());
    let cacert = text(&authority.cacert());
    for (certified, words) in [
        (
            authority.issue(&["127.0.0.1"], Valid::Before),
            &["has expired", "-k"][..],
        ),
        (
            authority.issue(&["a.example"], Valid::Now),
            &["a.example", "--sni NAME"],
        ),
        (other.issue(&["127.0.0.1"], Valid::Now), &["--cacert FILE"]),
        (
            authority.self_signed(&["127.0.0.1"], true),
            &["self-signed", "--cacert FILE, or -k"],
        ),
    ] {
        let server = Server::http(server_config(&certified, &TlsServerSettings::default()), 5);
        let url = format!("https://{}/", server.address);
        let finished = load(&url, "50", &["--cacert", &cacert]);
        assert_eq!(finished.code, 1, "{finished:?}");
        for words in words {
            assert!(
                finished.err.contains(words),
                "`{words}` is not in {finished:?}"
            );
        }
        assert_eq!(server.accepted.load(Relaxed), 1, "no client came");
        assert_eq!(load(&url, "50", &["-k"]).code, 0);
    }
}

/// A unix socket that is another way to a server.
fn unix_way_to(address: SocketAddr, path: &Path) {
    let listener = UnixListener::bind(path).expect("nothing is there");
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let server = TcpStream::connect(address).expect("it listens");
            let (from, to) = (client.try_clone(), server.try_clone());
            let (mut from, mut to) = (from.expect("a descriptor"), to.expect("a descriptor"));
            let (mut client, mut server) = (client, server);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut server, &mut client);
                let _ = client.shutdown(Shutdown::Write);
            });
        }
    });
}

#[test]
fn a_certificate_is_checked_before_clients_come_over_a_unix_socket_too() {
    let authority = Authority::new();
    let certified = authority.issue(&["a.example"], Valid::Now);
    let server = Server::http(server_config(&certified, &TlsServerSettings::default()), 5);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    unix_way_to(server.address, &path);
    let url = format!("https+unix://{}/", text(&path).replace('/', "%2F"));
    let cacert = text(&authority.cacert());
    let finished = load(&url, "50", &["--cacert", &cacert]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.err.contains("--sni NAME"), "{finished:?}");
    assert_eq!(server.accepted.load(Relaxed), 1, "no client came");
    let finished = load(&url, "50", &["--cacert", &cacert, "--sni", "a.example"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert_eq!(finished.json()["verified"], 50, "{finished:?}");
}

#[test]
fn a_mismatch_of_tls_is_named_on_either_side() {
    let plain = Plain::start(&["epoll", "--protocol", "http"]).expect("a server can be started");
    let finished = load(&format!("https://{}/", plain.address()), "50", &["-k"]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.err.contains("use http://"), "{finished:?}");
    let authority = Authority::new();
    let certified = authority.issue(&["127.0.0.1"], Valid::Now);
    let server = Server::http(server_config(&certified, &TlsServerSettings::default()), 5);
    let finished = load(&format!("http://{}/", server.address), "50", &[]);
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.err.contains("https://"), "{finished:?}");
}

const TLS: &str = "
  log_format sessions '$connection $ssl_protocol $ssl_session_reused';
  access_log sessions.log sessions;
  server {
    listen ADDRESS ssl;
    ssl_certificate CERT;
    ssl_certificate_key KEY;
    ssl_protocols TLSv1.2 TLSv1.3;
    location / { return 200 'hello'; }
  }";

/// The log of nginx, once it has this number of lines: it writes one when it has sent a reply.
fn log_of(path: &Path, lines: usize) -> String {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let log = fs::read_to_string(path).expect("nginx has made it");
        if log.lines().count() >= lines || Instant::now() > until {
            return log;
        }
        std::thread::yield_now();
    }
}

#[test]
fn nginx_counts_as_many_as_its_clients() {
    let authority = Authority::new();
    let certified = authority.issue(&["127.0.0.1"], Valid::Now);
    let directory = tempfile::tempdir().unwrap();
    let directives = TLS
        .replace("CERT", &text(&certified.cert))
        .replace("KEY", &text(&certified.key));
    let Some((_nginx, address)) = start_nginx(directory.path(), &directives) else {
        return;
    };
    let url = format!("https://{address}/");
    let cacert = text(&authority.cacert());
    for (more, connections, resumed) in [
        // After 100 requests over each, it closes.
        (&["--engine", "epoll"][..], 12, 0),
        (&["--requests-per-connection", "50"], 20, 0),
        (&["--requests-per-connection", "50", "--tls-resume"], 20, 16),
    ] {
        let more = [more, &["--cacert", &cacert]].concat();
        let finished = load(&url, "1000", &more);
        assert_eq!(finished.code, 0, "{finished:?}");
        let result = finished.json();
        assert_eq!(result["verified"], 1000, "{result}");
        assert_eq!(result["tls"]["handshakes"], connections, "{result}");
        assert_eq!(result["tls"]["resumed"], resumed, "{result}");
        let log = log_of(&directory.path().join("sessions.log"), 1000);
        fs::write(directory.path().join("sessions.log"), "").unwrap();
        assert_eq!(log.lines().count(), 1000);
        let reused = log.lines().filter(|line| line.ends_with(" r")).count();
        assert_eq!(reused as u64, resumed * 50, "by its own account");
    }
}

const NODE: &str = "
const fs = require('fs');
const body = 'x'.repeat(1000);
const keys = { cert: fs.readFileSync('CERT'), key: fs.readFileSync('KEY') };
const server = require('https').createServer(keys, (request, response) => {
  response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
});
server.listen(Number(process.argv[2]), '127.0.0.1');
";

#[test]
fn servers_of_others_are_measured_over_tls() {
    if Command::new("node").arg("--version").output().is_err() {
        println!("not tried: node is not installed");
        return;
    }
    let authority = Authority::new();
    let certified = authority.issue(&["localhost"], Valid::Now);
    let directory = tempfile::tempdir().unwrap();
    let script = NODE
        .replace("CERT", &text(&certified.cert))
        .replace("KEY", &text(&certified.key));
    let path = directory.path().join("https-server.js");
    fs::write(&path, script).unwrap();
    let server = format!("node {} {{port}}", path.display());
    let record = text(&directory.path().join("record"));
    let cacert = text(&authority.cacert());
    let measure = |more: &[&str]| {
        let _ = fs::remove_dir_all(&record);
        let mut words = words(
            "compare {} --protocol http --clients 4 -r 1 -d 100ms --warm-up 20ms --probes cpu \
             --retries 0 --allow-rough --ready-timeout 60s -o {}",
            &[&server, &record],
        );
        words.extend(more);
        let finished = throng(&words);
        let trials = fs::read_to_string(Path::new(&record).join("trials.jsonl"));
        (finished, trials.unwrap_or_default())
    };
    for more in [
        &["--tls", "-k", "--ready", "https://{address}/"][..],
        &["--cacert", &cacert, "--sni", "localhost"],
    ] {
        let (finished, trials) = measure(more);
        assert_eq!(finished.code, 0, "{finished:?}");
        assert!(trials.contains("\"negotiated\":{\"TLS 1.3"), "{trials}");
    }
    let (finished, _) = measure(&["--cacert", &cacert]);
    let printed = finished.out.clone() + &finished.err;
    assert!(printed.contains("--sni NAME"), "{finished:?}");
    let (finished, _) = measure(&[]);
    let printed = finished.out.clone() + &finished.err;
    assert!(printed.contains("use --tls"), "{finished:?}");
}

#[test]
fn a_server_that_runs_already_is_measured_over_tls() {
    let authority = Authority::new();
    let certified = authority.issue(&["localhost"], Valid::Now);
    let server = Server::http(
        server_config(&certified, &TlsServerSettings::default()),
        1000,
    );
    let url = format!("https://localhost:{}/", server.address.port());
    let directory = tempfile::tempdir().unwrap();
    let record = text(&directory.path().join("record"));
    let cacert = text(&authority.cacert());
    let common = words("--clients 4 -r 1 -d 100ms --warm-up 20ms", &[]);
    let words = [
        &["compare", &url, "--cacert", &cacert, "--probes", "cpu"][..],
        &common,
        &["--retries", "0", "--allow-rough", "-o", &record],
    ];
    let finished = throng(&words.concat());
    assert_eq!(finished.code, 0, "{finished:?}");
    let trials = fs::read_to_string(Path::new(&record).join("trials.jsonl")).unwrap();
    assert!(trials.contains("\"negotiated\":{\"TLS 1.3"), "{trials}");
    for (others, words) in [("http://127.0.0.1:1/", "https://"), ("epoll", "--tls")] {
        throng(&["compare", &url, others]).is_usage_error(&[words]);
    }
}
