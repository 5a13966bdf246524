//! Clients with a job each, which servers refuse or fail: the ends are distinguished.

use std::net::{SocketAddr, TcpListener};

use rustix::net::sockopt;
use serde_json::{Value, json};

use super::connecting::fill;
use super::servers::{Hostile, bound, echo_once, listening};
use crate::support::load::{Ended, load};

/// The options of all these loads.
fn jobs(address: SocketAddr, options: &str) -> (Ended, Value) {
    let ended = load(address, &format!("-c 7 --each 1 {options}"));
    let jobs = ended.result["completion"].clone();
    (ended, jobs)
}

#[test]
fn a_refused_client_failed_to_connect() {
    let (_socket, address) = bound();
    let (ended, jobs) = jobs(address, "");
    ended.only("refused", 7);
    assert_eq!(jobs["connect_failures"], json!({"refused": 7}), "{ended:?}");
    assert_eq!(jobs["first_failure"]["kind"], "refused", "{ended:?}");
    assert_eq!(jobs["first_failure"]["connected"], false, "{ended:?}");
    assert_eq!(
        (&jobs["failed"], &jobs["clients_done"]),
        (&json!(7), &json!(0))
    );
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
}

/// The queue stays full: the kernel retries each SYN once and gives up.
#[test]
fn an_unanswered_syn_is_a_failed_connect() {
    let (_socket, address) = listening(0);
    let _connections = fill(address);
    let (ended, jobs) = jobs(address, "--syn-retries 1 --connect-timeout 45s");
    ended.only("connect-timeout", 7);
    let failures = &jobs["connect_failures"];
    assert_eq!(*failures, json!({"connect-timeout": 7}), "{ended:?}");
    assert_eq!(jobs["first_failure"]["connected"], false, "{ended:?}");
    assert!(
        jobs["first_failure"]["at_s"].as_f64() >= Some(1.0),
        "{ended:?}"
    );
}

#[test]
fn a_reset_client_was_connected() {
    let server = Hostile::start(|number, mut stream| {
        if number % 2 == 1 {
            return echo_once(&mut stream);
        }
        sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))?;
        drop(stream);
        Ok(())
    });
    let (ended, jobs) = jobs(server.address, "--at-once 1 --think 100ms");
    assert_eq!(ended.ended_by(&["reset"]), 4, "{ended:?}");
    assert_eq!(jobs["connect_failures"], Value::Null, "{ended:?}");
    assert_eq!(jobs["first_failure"]["client"], 0, "{ended:?}");
    assert_eq!(jobs["first_failure"]["connected"], true, "{ended:?}");
    assert_eq!(
        (&jobs["failed"], &jobs["clients_done"]),
        (&json!(4), &json!(3))
    );
    assert_eq!(ended.result["stopped_by"], "clients", "{ended:?}");
}

/// Connected as the kernel has it, and never accepted: neither done nor failed.
#[test]
fn an_unanswered_client_is_not_done() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let (ended, jobs) = jobs(
        address,
        "--first-reply-timeout 100ms --connect-timeout 100ms",
    );
    ended.never_served(7);
    assert_eq!(
        (&jobs["failed"], &jobs["unfinished"]),
        (&json!(0), &json!(7))
    );
    assert_eq!(jobs["last_done_s"], Value::Null, "{ended:?}");
}
