//! Limits that servers name themselves, on their output or in a log file.

use std::fs;
use std::process::{Command, Stdio};

use super::{limit, limit_of_echo};

const CONFIGURATION: &str = "
daemon off;
worker_processes 1;
pid nginx.pid;
error_log ERRORS warn;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path temporary;
  server { listen 127.0.0.1:PORT backlog=1024; location / { return 200 'hello'; } }
}
";

/// nginx that writes its errors there, in a log file or not.
fn limit_of_nginx(errors: &str, log: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().display();
    let installed = Command::new("nginx")
        .arg("-v")
        .stderr(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        println!("not tried: nginx is not installed");
        return;
    }
    let configuration = CONFIGURATION.replace("ERRORS", errors);
    fs::write(directory.path().join("nginx.conf.in"), configuration).expect("it is ours");
    let prepare = format!("sed s/PORT/$PORT/ {place}/nginx.conf.in > {place}/nginx.conf");
    let server = format!("exec nginx -p {place} -c {place}/nginx.conf");
    let errors = directory.path().join(errors).display().to_string();
    let mut arguments = vec![server.as_str(), "--shell", "--prepare", &prepare];
    // In shorter trials, nginx closes idle connections in favour of new ones, and serves more clients.
    arguments.extend(["--from", "50", "--factor", "1.8", "--within", "90%"]);
    arguments.extend(["--duration", "600ms"]);
    if log {
        arguments.extend(["--server-log", &errors]);
    }
    let ran = limit(&arguments);
    let (passed, failed) = ran.ends();
    assert!(passed < 64 && failed <= 100, "{}", ran.out);
    let (kind, printed) = ran.cause();
    assert_eq!(kind, "server-message", "{printed}");
    assert!(
        printed.starts_with("each of its workers is limited to 64 connections"),
        "{printed}"
    );
    assert!(
        printed.contains("64 worker_connections are not enough"),
        "{printed}"
    );
    assert!(printed.contains("raise worker_connections"), "{printed}");
    let found_in = if log { "log" } else { "output" };
    let trials = ran.trials();
    let mut all = trials.iter().flat_map(|trial| &trial.server_messages);
    assert!(all.all(|message| message.found_in == found_in));
}

/// Regression: no cause was found for nginx at its worker_connections.
#[test]
fn nginx_names_its_limit_of_connections_on_its_output() {
    limit_of_nginx("stderr", false);
}

#[test]
fn nginx_names_its_limit_of_connections_in_a_log_file() {
    limit_of_nginx("errors.log", true);
}

#[test]
fn a_server_without_descriptors_is_named() {
    let printed = "accept: too many open files";
    let Some(server) = super::python(&format!("say 20 '{printed}'")) else {
        return;
    };
    let ran = limit_of_echo(&server, "--from 20 --factor 1.1 --first-reply-timeout 2s");
    assert_eq!(ran.ends(), (20, 21), "{}", ran.out);
    let (kind, words) = ran.cause();
    assert_eq!(kind, "server-descriptors", "{words}");
    assert!(words.contains(printed), "{words}");
}
