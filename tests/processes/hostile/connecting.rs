//! Servers that fail before they send anything.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use super::servers::{Hostile, bound, echo_once, listening, only_receive};
use crate::support::load::{Load, load};

#[test]
fn a_port_without_a_listener_refuses() {
    let (_socket, address) = bound();
    let ended = load(address, "-c 7 -d 200ms");
    ended.only("refused", 7);
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
    assert_eq!(ended.count("connected"), 0, "{ended:?}");
}

/// The kernel completes connections that the server never accepts.
#[test]
fn unaccepted_clients_are_never_served() {
    let (_socket, address) = listening(100);
    let ended = load(address, "-c 7 -d 200ms --first-reply-timeout 300ms");
    ended.never_served(7);
    assert_eq!(ended.count("connected"), 7, "{ended:?}");
}

#[test]
fn unanswered_clients_are_never_served() {
    let server = Hostile::start(|_, stream| only_receive(stream));
    load(server.address, "-c 7 -d 200ms --first-reply-timeout 300ms").never_served(7);
}

/// It neither reads nor writes: requests stay in the clients' buffers.
#[test]
fn unread_clients_are_never_served() {
    let (_socket, address) = listening(100);
    let options = "-c 7 -d 200ms --first-reply-timeout 1s --protocol upload --size 60000000";
    let ended = load(address, options);
    ended.never_served(7);
    assert_eq!(ended.count("requests"), 7, "{ended:?}");
    assert!(ended.most_memory_kib < 100_000, "{ended:?}");
}

#[test]
fn a_reply_that_takes_too_long_is_a_request_timeout() {
    let (_socket, unaccepting) = listening(100);
    let unanswering = Hostile::start(|_, stream| only_receive(stream));
    for address in [unaccepting, unanswering.address] {
        let ended = load(address, "-c 7 -d 200ms --request-timeout 300ms");
        ended.only("request-timeout", 7);
        assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
        assert!(ended.took >= Duration::from_millis(300), "{ended:?}");
    }
}

/// Fills the queue of a listener that accepts no client, until its kernel answers no more SYN.
pub(super) fn fill(address: SocketAddr) -> Vec<TcpStream> {
    let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok();
    let connections: Vec<TcpStream> = (0..16).map_while(connect).collect();
    assert!(connections.len() < 16, "the queue has an end");
    connections
}

#[test]
fn a_syn_without_an_answer_is_a_connect_timeout() {
    let (_socket, address) = listening(0);
    let _connections = fill(address);
    let ended = load(address, "-c 7 -d 200ms --connect-timeout 400ms");
    ended.only("connect-timeout", 7);
    assert_eq!(ended.count("connected"), 0, "{ended:?}");
    assert!(ended.took >= Duration::from_millis(400), "{ended:?}");
}

/// The kernel sends a SYN twice, and gives up after one and two more seconds, long before the load would.
#[test]
fn the_kernel_gives_up_connecting_after_so_many_syn() {
    let (_socket, address) = listening(0);
    let _connections = fill(address);
    let options = "-c 7 -d 200ms --connect-timeout 170s --first-reply-timeout 170s --syn-retries 1";
    let ended = load(address, options);
    ended.only("connect-timeout", 7);
    assert!(ended.took >= Duration::from_secs(2), "{ended:?}");
    assert!(ended.took < Duration::from_secs(170), "{ended:?}");
}

#[test]
fn a_server_that_closes_at_once_closes_early_or_resets() {
    let server = Hostile::start(|_, stream| {
        drop(stream);
        Ok(())
    });
    let ended = load(server.address, "-c 7 -d 200ms");
    ended.assert_none_served();
    // Which of the two depends on whether the request came before the close.
    let seen = ended.ended_by(&["closed-early", "reset"]);
    assert_eq!((seen, ended.errors.values().sum()), (7, 7), "{ended:?}");
}

/// A server that had clients and is gone: they notice, and the load ends long before its time.
#[test]
fn a_server_that_vanishes_ends_the_load() {
    let server = crate::support::server::Server::start(&["epoll"]).unwrap();
    let mut load = Load::start(
        server.address(),
        "-c 20 -d 30s --warm-up 200ms --controlled",
    );
    load.wait_for("measure");
    drop(server); // which kills it
    let ended = load.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.count("served"), 20, "{ended:?}");
    let seen = ended.ended_by(&["closed-early", "reset"]);
    assert_eq!((seen, ended.errors.values().sum()), (20, 20), "{ended:?}");
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
}

/// Clients in the middle of an upload wait for a server that hangs, and then is gone.
#[test]
fn a_server_killed_while_uploads_wait_ends_the_load() {
    for model in ["thread", "aio", "polling", "select"] {
        let server =
            crate::support::server::Server::start(&[model, "--protocol", "upload"]).unwrap();
        let options = "-c 20 -d 30s --warm-up 0s --protocol upload --size 10MB --controlled";
        let mut load = Load::start(server.address(), options);
        load.wait_for("measure");
        kill_process(server.pid(), Signal::STOP).unwrap();
        drop(server); // which kills it
        let ended = load.end();
        assert_eq!((ended.code, ended.count("served")), (0, 20), "{ended:?}");
        // A client that has just had a reply returns with the next upload and is refused.
        let seen = ended.ended_by(&["closed-early", "reset", "refused"]);
        assert_eq!((seen, ended.errors.values().sum()), (20, 20), "{ended:?}");
        assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
    }
}

/// Those who rest after their first answer, until all have theirs, may lose their connection too.
#[test]
fn clients_that_lose_their_connection_while_they_rest_have_ended() {
    let server = Hostile::start(|number, mut stream| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        echo_once(&mut stream)
    });
    let ended = load(server.address, "-c 7 -d 30s --warm-up 0s");
    assert_eq!((ended.code, ended.count("served")), (1, 7), "{ended:?}");
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
}

/// A server that is stopped answers what it has received. The load ends, too.
#[test]
fn a_server_that_ends_in_order_ends_the_load() {
    let server = crate::support::server::Server::start(&["epoll"]).unwrap();
    let mut load = Load::start(
        server.address(),
        "-c 20 -d 30s --warm-up 200ms --controlled",
    );
    load.wait_for("measure");
    let counts = server.stop().unwrap();
    let ended = load.end();
    assert_eq!((ended.code, ended.count("served")), (0, 20), "{ended:?}");
    let seen = ended.ended_by(&["closed-early", "reset"]);
    assert_eq!(ended.errors.values().sum::<u64>(), seen, "{ended:?}");
    assert_eq!(ended.result["stopped_by"], "no-clients-left", "{ended:?}");
    assert!(
        counts["requests"].as_u64() >= Some(ended.count("verified")),
        "{counts} {ended:?}"
    );
}

/// Without a listener, reconnecting clients are refused, and counted.
#[test]
fn a_vanished_server_refuses_reconnects() {
    let server = crate::support::server::Server::start(&["epoll"]).unwrap();
    let options = "-c 20 -d 2s --warm-up 0s --reconnect --controlled";
    let mut load = Load::start(server.address(), options);
    load.wait_for("measure");
    drop(server);
    let ended = load.end();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(ended.count("served"), 20, "{ended:?}");
    assert!(ended.ended_by(&["refused"]) >= 20, "{ended:?}");
    // While a killed server ends, the kernel may close its listener last, and connect clients until then.
    let others = ended.ended_by(&["closed-early", "reset"]);
    assert!(others <= ended.count("connections"), "{ended:?}");
    assert!(ended.most_descriptors < 100, "{ended:?}");
}

#[test]
fn clients_that_fail_give_their_descriptors_back() {
    let server = Hostile::start(|number, stream| {
        // The first stays, so that the load continues after all others have ended.
        if number == 0 {
            only_receive(stream)
        } else {
            Ok(())
        }
    });
    let ended = load(server.address, "-c 300 -d 200ms --first-reply-timeout 3s");
    assert_eq!(ended.ended_by(&["closed-early", "reset"]), 299, "{ended:?}");
    assert_eq!(ended.count("never_served"), 1, "{ended:?}");
    assert!(ended.most_descriptors < 400, "{ended:?}");
}
