//! Clients whose host vanishes: nothing more arrives from them, no FIN and no reset, and their connections stay
//! half-open at the server.

use std::time::{Duration, Instant};

use super::Lab;
use crate::support::server::Server;

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_mins(2);

/// Connections that the server's host takes for established.
fn established(lab: &Lab, server: &Server) -> usize {
    const ESTABLISHED: &str = "01";
    let local = format!(":{:04X}", server.address().port());
    let sockets = lab.ran("server", "cat", &["/proc/net/tcp"]);
    let is_one = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1].ends_with(&local) && words[3] == ESTABLISHED
    };
    sockets.lines().skip(1).filter(is_one).count()
}

/// Number of clients of the first host that are served before it vanishes.
fn vanish(lab: &Lab, server: &Server, clients: usize) {
    let options = format!("-c {clients} -d 60s --warm-up 0s --controlled");
    let mut load = lab.load("client1", server, &options);
    load.wait_for("measure");
    lab.run("cut", "client1");
    // Killed (SIGKILL); its kernel's packets about that do not leave the host.
    drop(load);
}

fn another_host_is_served(lab: &Lab, server: &Server) {
    let ended = lab.loaded("client2", server, "-c 7 -n 70");
    assert_eq!((ended.code, ended.count("verified")), (0, 70), "{ended:?}");
}

#[test]
fn vanished_clients_are_closed_by_the_idle_timeout() {
    const CLIENTS: usize = 20;
    for model in ["epoll", "thread"] {
        let Some(lab) = Lab::up("--clients 2") else {
            return;
        };
        let server = lab.server(&format!("{model} --idle-timeout 500ms"));
        vanish(&lab, &server, CLIENTS);
        let deadline = Instant::now() + LIMIT;
        while established(&lab, &server) > 0 {
            assert!(Instant::now() < deadline, "{model} keeps who has vanished");
            std::thread::sleep(Duration::from_millis(20));
        }
        another_host_is_served(&lab, &server);
        let counts = server.stop().unwrap();
        let idle = counts["outcomes"]["idle-timeout"].as_u64();
        assert!(idle >= Some(CLIENTS as u64), "{model}: {counts}");
    }
}

/// Without a timeout they stay, as TCP requires; they take no more than the server's descriptors, and other clients are
/// served while there is room.
#[test]
fn vanished_clients_take_no_more_than_the_descriptors() {
    const CLIENTS: usize = 40;
    let Some(lab) = Lab::up("--clients 2") else {
        return;
    };
    let server = lab.server_with_descriptors(64, "epoll");
    vanish(&lab, &server, CLIENTS);
    another_host_is_served(&lab, &server);
    assert_eq!(established(&lab, &server), CLIENTS, "they are half-open");
    let connections = lab.loaded("client2", &server, "-c 60 -d 200ms --warm-up 0s");
    assert_eq!(connections.code, 0, "some are served: {connections:?}");
    assert!(connections.count("verified") > 0, "{connections:?}");
    let counts = server.stop().unwrap();
    assert!(
        counts["refused"]["descriptors"].as_u64() >= Some(1),
        "{counts}"
    );
    assert!(counts["peak_open"].as_u64() <= Some(62), "{counts}");
    assert_eq!(counts["outcomes"]["cut"], CLIENTS, "{counts}");
}
