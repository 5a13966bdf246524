//! Short-lived clients: they connect, make a fixed number of requests, and disconnect.

use std::time::Duration;

use rustix::io::Errno;

use super::super::super::arrival::Think;
use super::super::super::client::State;
use super::super::super::{Plan, Until};
use super::world::{Answer, BEGAN, Connect, MILLISECOND, SECOND, World, plan};

fn jobs(protocol: &str, clients: u32, requests: u32) -> Plan {
    plan(
        protocol,
        clients,
        Until::Each {
            requests: Some(requests),
            live: None,
            limit: None,
        },
    )
}

/// Clients that live for so many milliseconds.
fn lives(protocol: &str, clients: u32, milliseconds: u64) -> Plan {
    plan(
        protocol,
        clients,
        Until::Each {
            requests: None,
            live: Some(Duration::from_millis(milliseconds)),
            limit: None,
        },
    )
}

/// Maximum number of concurrent clients, sampled in each of `rounds` rounds.
fn most_present(world: &mut World, rounds: u32) -> usize {
    let mut most = 0;
    for _ in 0..rounds {
        world.pass(7_000);
        let clients = world.pool.clients.iter();
        let present = clients.filter(|one| one.state != State::NotStarted && !one.state.is_over());
        most = most.max(present.count());
    }
    most
}

#[test]
fn each_makes_its_requests_and_is_done() {
    for protocol in ["echo", "upload"] {
        for (clients, requests) in [(1, 1), (7, 3), (100, 1)] {
            let mut world = World::new(protocol, jobs(protocol, clients, requests));
            world.pass(SECOND);
            let progress = *world.pool.progress();
            assert_eq!(progress.done, u64::from(clients));
            assert_eq!((progress.gone, progress.failed), (progress.done, 0));
            assert_eq!(progress.verified, u64::from(clients * requests));
            assert_eq!(progress.present(), 0);
            let (stats, own) = world.finish();
            let jobs = stats.jobs.unwrap();
            assert_eq!(jobs.time.count(), u64::from(clients));
            for client in own {
                let connections = if protocol == "upload" { requests } else { 1 };
                assert_eq!(client.connections, connections);
                assert_eq!(client.replies, u64::from(requests));
                assert!(client.done_at > client.first_reply_at || requests == 1);
            }
        }
    }
}

#[test]
fn each_lives_its_time_from_its_own_connection_on() {
    let think = Think::Fixed(Duration::from_millis(7));
    for (protocol, think) in [
        ("echo", Think::None),
        ("upload", Think::None),
        ("echo", think),
    ] {
        let plan = Plan {
            // They connect over 100 ms.
            connects_per_s: Some(100.0),
            think,
            ..lives(protocol, 10, 50)
        };
        let mut world = World::new(protocol, plan);
        world.pass(SECOND);
        let progress = *world.pool.progress();
        assert_eq!((progress.done, progress.failed), (10, 0), "{protocol}");
        let (stats, clients) = world.finish();
        assert_eq!(stats.jobs.unwrap().requests_each, None);
        for client in clients {
            let lived = client.done_at.unwrap() - client.connected_at.unwrap();
            // The sweep finds those who think.
            let longest = 56 * MILLISECOND;
            assert!((50 * MILLISECOND..=longest).contains(&lived), "{lived}");
            assert_eq!(client.requests, client.replies, "none is left open");
            assert!(client.replies >= 5, "{protocol}: {}", client.replies);
        }
    }
}

#[test]
fn a_life_ends_after_the_reply_that_is_waited_for() {
    let mut world = World::new("echo", lives("echo", 2, 10));
    world.answers = Box::new(|_, slot| match slot {
        0 => Answer::In(30 * MILLISECOND),
        _ => Answer::Never,
    });
    world.pass(SECOND);
    let progress = *world.pool.progress();
    assert_eq!((progress.done, progress.present()), (1, 1));
    let (_, clients) = world.finish();
    assert_eq!(clients[0].replies, 1);
    assert_eq!(clients[1].done_at, None, "its reply never came");
}

#[test]
fn a_failed_client_that_has_lived_its_time_does_not_come_back() {
    let plan = Plan {
        reconnect: true,
        ..lives("echo", 1, 10)
    };
    let mut world = World::new("echo", plan);
    world.answers = Box::new(|now, _| match now - BEGAN {
        ..5_000_000 => Answer::In(MILLISECOND),
        _ => Answer::Breaks(20 * MILLISECOND, Errno::CONNRESET),
    });
    world.pass(SECOND);
    let progress = *world.pool.progress();
    assert_eq!((progress.done, progress.failed), (0, 1));
}

#[test]
fn no_more_are_there_than_may_be_and_all_get_their_turn() {
    for at_once in [1, 3, 32] {
        let plan = Plan {
            at_once: Some(at_once),
            ..jobs("echo", 60, 2)
        };
        let mut world = World::new("echo", plan);
        assert_eq!(most_present(&mut world, 4_500), at_once as usize);
        assert_eq!(world.pool.progress().done, 60);
    }
}

#[test]
fn a_failed_client_makes_room_for_the_next() {
    let plan = Plan {
        at_once: Some(2),
        ..jobs("echo", 30, 3)
    };
    let mut world = World::new("echo", plan);
    world.connects = Box::new(|_, slot| match slot % 3 {
        0 => Connect::Fails(MILLISECOND, Errno::TIMEDOUT),
        _ => Connect::In(MILLISECOND),
    });
    world.answers = Box::new(|_, slot| match slot % 3 {
        1 => Answer::Breaks(MILLISECOND, Errno::CONNRESET),
        _ => Answer::In(MILLISECOND),
    });
    world.pass(SECOND);
    let progress = *world.pool.progress();
    assert_eq!((progress.done, progress.failed), (10, 20));
    assert_eq!(progress.gone, 20, "ten were never there");
    let (stats, clients) = world.finish();
    let failures = &stats.jobs.as_ref().unwrap().connect_failures;
    assert_eq!(*failures, [("connect-timeout".to_owned(), 10)].into());
    let ended = |client: &super::super::super::client_stats::ClientStats| {
        (client.done_at.is_some(), client.failed_at.is_some())
    };
    let ends: Vec<_> = clients.iter().map(ended).collect();
    assert_eq!(ends[..3], [(false, true), (false, true), (true, false)]);
}

#[test]
fn time_to_think_comes_before_each_request_the_first_too() {
    let think = Duration::from_millis(20);
    for (protocol, requests) in [("echo", 1), ("echo", 3), ("upload", 3)] {
        let plan = Plan {
            think: Think::Fixed(think),
            ..jobs(protocol, 4, requests)
        };
        let mut world = World::new(protocol, plan);
        world.pass(SECOND);
        assert_eq!(world.pool.progress().done, 4);
        for slot in 0..4 {
            let asked: Vec<u64> = world
                .asked
                .iter()
                .filter(|&&(_, by)| by == slot)
                .map(|&(at, _)| at - BEGAN)
                .collect();
            assert_eq!(asked.len(), requests as usize);
            for (number, at) in asked.iter().enumerate() {
                let thought = 20 * MILLISECOND * (number as u64 + 1);
                assert!((thought..thought + MILLISECOND).contains(at), "{at}");
            }
        }
        let (stats, _) = world.finish();
        assert_eq!(stats.lateness.count(), u64::from(4 * requests));
        assert!(stats.jobs.unwrap().time.histogram().min() >= 20 * MILLISECOND);
    }
}

#[test]
fn delayed_clients_wait_for_room_too() {
    let plan = Plan {
        at_once: Some(1),
        connects_per_s: Some(1000.0),
        think: Think::Fixed(Duration::from_millis(3)),
        ..jobs("echo", 20, 1)
    };
    let mut world = World::new("echo", plan);
    world.pass(30 * MILLISECOND);
    let done = world.pool.progress().done;
    assert!((8..=10).contains(&done), "{done}");
    world.pass(100 * MILLISECOND);
    assert_eq!(world.pool.progress().done, 20);
}

#[test]
fn a_reconnected_client_continues_its_job() {
    let plan = Plan {
        reconnect: true,
        ..jobs("echo", 5, 4)
    };
    let mut world = World::new("echo", plan);
    let mut number = 0;
    world.answers = Box::new(move |_, _| {
        number += 1;
        if number % 3 == 0 {
            Answer::Breaks(MILLISECOND, Errno::CONNRESET)
        } else {
            Answer::In(MILLISECOND)
        }
    });
    world.pass(3 * SECOND);
    let progress = *world.pool.progress();
    assert_eq!((progress.done, progress.failed), (5, 0));
}
