//! Requests that are due regardless of the server.

use std::time::Duration;

use super::super::super::arrival::Spacing;
use super::super::super::fixture::rate;
use super::super::super::{Plan, Until};
use super::world::{
    Answer, BEGAN, Connect, MICROSECOND, MILLISECOND, SECOND, World, plan, seconds,
};

/// A load at a constant rate of `per_s` requests per second.
fn evenly(clients: u32, per_s: f64) -> Plan {
    Plan {
        rate: Some(rate(per_s, Spacing::Constant)),
        ..plan("echo", clients, seconds(1))
    }
}

#[test]
fn requests_leave_when_they_are_due() {
    let mut world = World::steady("echo", evenly(10, 1000.0));
    let first = world.asked.len();
    world.pass(2 * SECOND);
    let asked = &world.asked[first..];
    assert_eq!(asked.len(), 1000);
    for (number, &(at, _)) in asked.iter().enumerate() {
        let due = world.from + number as u64 * MILLISECOND;
        assert!((due..=due + 2 * MICROSECOND).contains(&at), "{number}");
    }
    // Each request goes to the client that has been idle longest.
    let slots: Vec<usize> = asked.iter().map(|&(_, slot)| slot).collect();
    assert!(slots.windows(10).all(|ten| !ten[1..].contains(&ten[0])));
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert_eq!(open.response_time.count(), 1000);
    assert_eq!((open.waited, open.never_sent), (0, 0));
    assert_eq!((open.unanswered, open.lost), (0, 0));
    assert_eq!(stats.lateness.count(), 1000);
    assert_eq!(stats.service_time.count(), 1000);
}

#[test]
fn a_burst_leaves_at_once() {
    let plan = Plan {
        rate: Some(rate(1000.0, Spacing::Burst(10))),
        ..evenly(10, 1.0)
    };
    let mut world = World::steady("echo", plan);
    let first = world.asked.len();
    world.pass(2 * SECOND);
    let asked = &world.asked[first..];
    assert_eq!(asked.len(), 1000);
    for burst in asked.chunks(10) {
        assert_eq!(burst[0].0, burst[9].0);
    }
    assert_eq!(world.finish().0.open.unwrap().waited, 0);
}

#[test]
fn with_no_client_free_requests_wait_and_are_charged_for_it() {
    // One client, replies in 4 ms, a request every 2 ms: the nth waits 2n ms.
    let mut world = World::new("echo", evenly(1, 500.0));
    world.answers = Box::new(|_, _| Answer::In(4 * MILLISECOND));
    world.pass(10 * MILLISECOND);
    world.count(SECOND);
    world.pass(2 * SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert_eq!(open.response_time.count(), 500);
    assert_eq!(stats.service_time.count(), 250);
    assert_eq!(open.never_sent, 250);
    assert_eq!(open.waited, 499, "all but the first");
    let service = stats.service_time.histogram();
    assert!(service.max() < 5 * MILLISECOND);
    let response = open.response_time.histogram();
    // The last one sent was due at 498 ms and got its reply at 1 s.
    let quarter = response.value_at_quantile(0.25) as f64 / 1e6;
    assert!((quarter - 254.0).abs() < 8.0, "{quarter}");
    // The first one that was never sent was due at 500 ms and had waited 1.5 s at the end.
    let longest = response.max() as f64 / 1e6;
    assert!((longest - 1500.0).abs() < 8.0, "{longest}");
    let lateness = stats.lateness;
    assert_eq!(lateness.count(), 250);
}

#[test]
fn unanswered_requests_count_with_their_waiting_time() {
    let mut world = World::steady("echo", evenly(4, 100.0));
    world.answers = Box::new(|_, slot| {
        if slot == 0 {
            Answer::Never
        } else {
            Answer::In(MILLISECOND)
        }
    });
    world.pass(3 * SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert_eq!((open.unanswered, open.never_sent), (1, 0));
    assert_eq!(open.response_time.count(), 100);
    assert!(open.response_time.histogram().max() > 2900 * MILLISECOND);
}

#[test]
fn only_requests_due_in_the_window_count() {
    let plan = Plan {
        warm_up: Duration::from_millis(500),
        ..evenly(100, 100.0)
    };
    let mut world = World::new("echo", plan);
    world.pass(10 * MILLISECOND);
    world.answers = Box::new(|_, _| Answer::In(200 * MILLISECOND));
    let origin = world.now;
    world.from = world.now + SECOND / 2;
    world.until = world.from + SECOND;
    world.pass(3 * SECOND);
    let sent = world.asked.iter().filter(|&&(at, _)| at >= origin);
    assert_eq!(sent.count(), 150, "warm-up and window");
    let in_window = world
        .replies
        .iter()
        .filter(|&&(at, _)| at >= world.from && at < world.until)
        .count() as u64;
    let (stats, _) = world.finish();
    // Replies after the window count if the requests were due in it. Replies in the window to earlier requests do not.
    assert_eq!(stats.service_time.count(), 100);
    assert_eq!(stats.open.as_ref().unwrap().response_time.count(), 100);
    assert_eq!(stats.intervals().iter().sum::<u64>(), in_window);
}

#[test]
fn a_connection_a_request_is_made_when_the_request_is_due() {
    let plan = Plan {
        rate: Some(rate(1000.0, Spacing::Constant)),
        ..plan("upload", 10, seconds(1))
    };
    let mut world = World::new("upload", plan);
    world.connects = Box::new(|_, _| Connect::In(2 * MILLISECOND));
    world.pass(10 * MILLISECOND);
    world.count(SECOND);
    world.pass(2 * SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert_eq!(open.response_time.count(), 1000);
    assert_eq!((open.waited, open.lost, open.unanswered), (0, 0, 0));
    // Clients that are still connecting at the end send after it.
    assert_eq!(open.never_sent, 0);
    assert_eq!(stats.service_time.count(), 1000);
    let lateness = stats.lateness.histogram();
    assert!(lateness.min() >= 1990 * MICROSECOND, "with the connection");
}

/// Regression test: it was never sent, counted with its wait until the load ended, and set the maximum.
#[test]
fn a_request_due_in_the_last_instant_is_sent() {
    let mut world = World::steady("echo", evenly(10, 1000.0));
    world.pass(SECOND - MILLISECOND / 2);
    // The last request is due before the end, and the worker wakes up after it.
    world.until -= MILLISECOND / 4;
    world.now = world.until + 50 * MICROSECOND;
    world.pass(MILLISECOND);
    assert!(world.pool.progress().at_end);
    world.pass(SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert_eq!(stats.left, 0, "there was no number of requests");
    assert_eq!((open.response_time.count(), open.never_sent), (1000, 0));
    assert!(open.response_time.histogram().max() < MILLISECOND);
}

/// Regression test: requests that waited for a client and were never sent counted twice as waiting.
#[test]
fn unsent_requests_are_counted_as_waiting_once() {
    let plan = Plan {
        rate: Some(rate(1000.0, Spacing::Constant)),
        ..plan("upload", 1, seconds(1))
    };
    let mut world = World::steady("upload", plan);
    world.connects = Box::new(|_, _| Connect::In(300 * MILLISECOND));
    world.pass(2 * SECOND);
    let open = world.finish().0.open.unwrap();
    assert_eq!(open.response_time.count(), 1000);
    assert!(open.waited <= 1000, "{}", open.waited);
}

#[test]
fn a_number_of_requests_is_kept_at_a_rate() {
    for pipeline in [1, 4] {
        let plan = Plan {
            pipeline,
            until: Until::Requests(100),
            ..evenly(10, 1000.0)
        };
        let mut world = World::new("echo", plan);
        world.pass(SECOND);
        assert_eq!(world.pool.progress().verified, 100);
        assert_eq!(world.asked.len(), 100);
        let last = world.asked.last().unwrap().0;
        assert!((99 * MILLISECOND..100 * MILLISECOND).contains(&(last - BEGAN)));
        let open = world.finish().0.open.unwrap();
        assert_eq!(open.response_time.count(), 100);
        assert_eq!(open.never_sent, 0);
    }
}

#[test]
fn clients_of_an_open_loop_rest_until_the_schedule_begins() {
    let plan = Plan {
        eager: true,
        ..evenly(10, 1000.0)
    };
    let mut world = World::new("echo", plan);
    world.pass(100 * MILLISECOND);
    assert_eq!(world.asked.len(), 10);
    world.count(SECOND);
    world.pass(SECOND / 2);
    assert_eq!(world.asked.len(), 10 + 500);
}

#[test]
fn pipelined_clients_take_several_requests() {
    let plan = Plan {
        pipeline: 4,
        ..evenly(1, 1000.0)
    };
    let mut world = World::new("echo", plan);
    world.answers = Box::new(|_, _| Answer::In(3 * MILLISECOND));
    world.pass(10 * MILLISECOND);
    world.count(SECOND);
    world.pass(2 * SECOND);
    let open = world.finish().0.open.unwrap();
    assert_eq!((open.response_time.count(), open.waited), (1000, 0));
    assert!(open.response_time.histogram().max() < 4 * MILLISECOND);
}

#[test]
fn an_interrupted_load_counts_what_was_due_until_then() {
    let mut world = World::steady("echo", evenly(10, 1000.0));
    world.pass(SECOND / 4);
    world.until = world.now;
    world.pass(SECOND / 4);
    let open = world.finish().0.open.unwrap();
    assert_eq!(open.response_time.count(), 250);
}
