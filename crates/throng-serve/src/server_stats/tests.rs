use rustix::process::Pid;

use super::*;

#[test]
fn counts_what_is_open_and_what_ended() {
    let stats = ServerStats::open(Some(2), 2, Retention::Clients).unwrap();
    let enter = |peer: &str, worker| {
        let id = stats.admit(peer.parse().unwrap()).unwrap();
        stats.open_connection(id, worker)
    };
    let mut first = enter("127.0.0.1:4000", Worker::number(1));
    let mut second = enter("[::1]:5000", Worker::number(0));
    assert_eq!(stats.admit("127.0.0.1:1".parse().unwrap()), None);
    first.received(1000, 1);
    first.sent(900);
    second.received(10, 0);
    first.ends(CloseReason::ClientClosed);
    drop(first);
    stats.refused(Refusal::SetSize);
    let counts = stats.counts();
    assert_eq!((counts.accepted, counts.peak_open), (2, 2));
    assert_eq!(
        (counts.requests, counts.bytes_in, counts.bytes_out),
        (1, 1010, 900)
    );
    let refused = [("max-clients".to_owned(), 1), ("set-size".to_owned(), 1)];
    assert_eq!(counts.refused, BTreeMap::from(refused));
    assert_eq!(counts.workers.len(), 2);
    assert_eq!(counts.workers[1].requests, 1);
    assert_eq!(
        counts.outcomes,
        BTreeMap::from([("client-closed".to_owned(), 1), ("open".to_owned(), 1)])
    );
    let mut csv = Vec::new();
    stats.write_clients(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[1].starts_with("0,127.0.0.1:4000,"), "{csv}");
    assert!(lines[1].ends_with(",1,1000,900,1,client-closed"), "{csv}");
    assert!(
        lines[2].starts_with("1,[::1]:5000,") && lines[2].ends_with(",0,open"),
        "{csv}"
    );
}
#[test]
fn a_dead_process_leaves_no_connection_open() {
    let stats = ServerStats::open(Some(1), 1, Retention::Totals).unwrap();
    let peer = "127.0.0.1:4000".parse().unwrap();
    let (dead, alive) = (Worker::this_process(), Worker::process(Pid::INIT));
    let id = stats.admit(peer).unwrap();
    let mut connection = stats.open_connection(id, dead);
    connection.received(100, 2);
    std::mem::forget(connection); // as if the process was killed
    stats.lost(alive);
    assert_eq!(stats.admit(peer), None);
    stats.lost(dead);
    stats.lost(dead);
    let counts = stats.counts();
    assert_eq!((counts.requests, counts.bytes_in), (2, 100));
    let outcomes = BTreeMap::from([("process-died".to_owned(), 1)]);
    assert_eq!(counts.outcomes, outcomes);
    assert!(stats.admit(peer).is_some());
}

#[test]
fn a_process_that_dies_before_it_serves_whom_it_accepted_leaves_no_connection_open() {
    let stats = ServerStats::open(Some(1), 1, Retention::Totals).unwrap();
    let (peer, dead) = ("127.0.0.1:4000".parse().unwrap(), Worker::this_process());
    stats.belongs_to(dead);
    assert!(stats.admit(peer).is_some());
    stats.lost(dead);
    let outcomes = BTreeMap::from([("process-died".to_owned(), 1)]);
    assert_eq!(stats.counts().outcomes, outcomes);
    assert!(stats.admit(peer).is_some(), "its slot is free again");
}

#[test]
fn a_client_for_whom_there_is_nobody_does_not_count_as_accepted() {
    let stats = ServerStats::open(None, 1, Retention::Totals).unwrap();
    let id = stats.admit("127.0.0.1:4000".parse().unwrap()).unwrap();
    stats.give_up(id, Refusal::Threads);
    let counts = stats.counts();
    assert_eq!(counts.accepted, 0);
    assert_eq!(counts.refused, BTreeMap::from([("threads".to_owned(), 1)]));
}

#[test]
fn clients_that_have_gone_leave_their_memory_to_others() {
    let stats = ServerStats::open(None, 2, Retention::Totals).unwrap();
    let peer = "127.0.0.1:4000".parse().unwrap();
    let one_that_stays = stats.open_connection(stats.admit(peer).unwrap(), Worker::number(1));
    for _ in 0..1000 {
        let id = stats.admit(peer).unwrap();
        let mut connection = stats.open_connection(id, Worker::number(0));
        connection.received(10, 1);
        connection.ends(CloseReason::ClientClosed);
    }
    assert_eq!(stats.shared.rows.used().count(), 2);
    let counts = stats.counts();
    assert_eq!(
        (counts.accepted, counts.requests, counts.unlogged),
        (1001, 1000, 0)
    );
    let outcomes = [("client-closed".to_owned(), 1000), ("open".to_owned(), 1)];
    assert_eq!(counts.outcomes, BTreeMap::from(outcomes));
    let of_loops: Vec<_> = counts
        .workers
        .iter()
        .map(|it| (it.clients, it.requests))
        .collect();
    assert_eq!(of_loops, [(1000, 1000), (1, 0)]);
    drop(one_that_stays);
    assert_eq!(stats.counts().outcomes["cut"], 1);
}
