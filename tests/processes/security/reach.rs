//! Nothing leaves this machine and no other host may connect, unless `--allow-remote` is given.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};

use super::hostile_text::records;
use super::{Finished, throng, word};
use crate::support::program::words;

/// Addresses that are not on this machine's loopback, in every way in which one can be written.
const ELSEWHERE: [&str; 7] = [
    "192.0.2.1:80",
    "0.0.0.0:80",
    "[::]:80",
    "[::ffff:192.0.2.1]:80",
    "[2001:db8::1]:80",
    "169.254.1.1:80",
    "255.255.255.255:80",
];

#[test]
fn a_load_reaches_only_its_target() {
    for address in ELSEWHERE {
        throng(&["load", address])
            .is_refused(&["not on this machine's loopback", "--allow-remote"]);
        let url = format!("http://{address}/");
        throng(&["load", &url]).is_refused(&["not on this machine's loopback", "--allow-remote"]);
    }
    // That of a question is one, too.
    for command in ["sleep {port}", "sh -c 'exec sleep {port}'"] {
        let ready = ["--ready", "https://192.0.2.1/health"];
        throng(&[&["measure", command], &ready[..]].concat())
            .is_refused(&["--ready: 192.0.2.1", "--allow-remote"]);
    }
    // One of several is enough.
    throng(&["load", "127.0.0.1:1", "192.0.2.1:1"]).is_refused(&["192.0.2.1", "--allow-remote"]);
}

#[test]
fn a_server_listens_on_loopback_by_default() {
    for address in ELSEWHERE {
        let finished = throng(&["serve", "epoll", "--listen", address]);
        finished.is_refused(&["not on this machine's loopback", "--allow-remote"]);
    }
}

#[test]
fn servers_that_are_measured_stay_here() {
    for subcommand in [
        &["run"][..],
        &words("compare --allow-rough --retries 0 epoll poll", &[]),
        &["limit", "epoll"],
    ] {
        for option in [&["--server-address", "192.0.2.1"][..], &["--allow-remote"]] {
            let finished = throng(&[subcommand, option].concat());
            finished.is_refused(&["for clients on several hosts"]);
        }
    }
    for option in ["--listen 0.0.0.0:0", "--allow-remote"] {
        let server = format!("epoll {option}");
        for arguments in [
            &["limit", server.as_str()][..],
            &words("compare --allow-rough --retries 0 poll {}", &[&server]),
        ] {
            throng(arguments).is_refused(&["cannot be set for a single server"]);
        }
    }
}

/// A record has the addresses of its servers; resuming it must not send a load there.
#[test]
fn a_record_brings_no_load_to_another_machine() {
    let directory = tempfile::tempdir().expect("a directory");
    let run: Value = records().swap_remove(0)["run"].take();
    let [mut elsewhere, mut running, mut ready] = [run.clone(), run.clone(), run];
    elsewhere["settings"]["server_address"] = json!("192.0.2.1");
    running["servers"][0]["foreign"] =
        json!({"running": {"address": "192.0.2.1:80"}, "allow_remote": true});
    ready["servers"][0]["foreign"] =
        json!({"ready": "http://192.0.2.1:{port}/", "allow_remote": true});
    for run in [elsewhere, running, ready] {
        fs::write(directory.path().join("run.json"), run.to_string()).expect("it can be written");
        for command in [
            &["run", "--allow-rough", "--resume"][..],
            &["reproduce", "-o", word(&directory.path().join("again"))],
        ] {
            let finished = throng(&[command, &[word(directory.path())]].concat());
            finished.is_refused(&["192.0.2.1", "not on this machine's loopback"]);
        }
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let [server, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("loopback"));
    let address = server.local_addr().expect("it listens");
    let elsewhere = other.local_addr().expect("it listens");
    other.set_nonblocking(true).expect("it is a socket");
    // A few more connections than the load makes, one of which verifies the server first.
    std::thread::spawn(move || {
        let location = format!("http://{elsewhere}/");
        let reply = format!(
            "HTTP/1.1 302 Found\r\nLocation: {location}\r\nRefresh: 0; url={location}\r\n\
             Content-Length: 0\r\n\r\n"
        );
        while let Ok((mut client, _)) = server.accept() {
            let reply = reply.clone();
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while client.read(&mut request).is_ok_and(|count| count > 0) {
                    let _ = client.write_all(reply.as_bytes());
                }
            });
        }
    });
    let url = format!("http://{address}/");
    let Finished { code, out, err } =
        throng(&["load", &url, "--clients", "1", "--requests", "3", "--json"]);
    let load: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{code} {out} {err}"));
    assert_eq!(load["statuses"]["302"], 3, "{load}");
    let nobody = other.accept().expect_err("nobody came");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}
