//! Clients that rest between slices.

use std::time::Duration;

use rustix::io::Errno;

use super::super::super::Plan;
use super::super::super::arrival::{Spacing, Think};
use super::super::super::fixture::rate;
use super::world::{Answer, Connect, MICROSECOND, MILLISECOND, SECOND, World, plan, seconds};

const CLIENTS: u32 = 3;
const SLICE: u64 = 20 * MILLISECOND;

/// Ways to schedule requests.
fn plans() -> Vec<(&'static str, Plan)> {
    let plan = || Plan {
        in_slices: true,
        ..plan("echo", CLIENTS, seconds(10))
    };
    vec![
        ("a closed loop", plan()),
        (
            "pipelines",
            Plan {
                pipeline: 4,
                ..plan()
            },
        ),
        (
            "think time",
            Plan {
                think: Think::Fixed(Duration::from_millis(2)),
                ..plan()
            },
        ),
        (
            "a schedule",
            Plan {
                rate: Some(rate(2000.0, Spacing::Constant)),
                ..plan()
            },
        ),
    ]
}

/// A world in which all clients rest after a slice.
fn at_rest(plan: Plan) -> World {
    let mut world = World::new("echo", plan);
    world.pass(MILLISECOND);
    world.count(10 * SECOND);
    let _ = world.pool.update_slice(world.now, world.now);
    world.pass(MILLISECOND);
    begin_slice(&mut world);
    world.pass(2 * SLICE);
    assert!(rests(&mut world));
    world
}

fn begin_slice(world: &mut World) {
    let now = world.now;
    world.pool.end_rest();
    world.pool.begin_slice((now, now + SLICE), now);
}

fn rests(world: &mut World) -> bool {
    let until = world.now - SLICE;
    world.pool.update_slice(until, world.now)
}

/// Gives `answer` to the first `count` requests of client 1 from now on.
fn answer_first(world: &mut World, count: u32, answer: fn() -> Answer) {
    let mut left = count;
    world.answers = Box::new(move |_, slot| {
        if slot == 1 && left > 0 {
            left -= 1;
            answer()
        } else {
            Answer::In(100 * MICROSECOND)
        }
    });
}

/// A way to close a connection, and the answer that does it.
type Closing = (&'static str, fn() -> Answer);

const CLOSES: [Closing; 3] = [
    ("end", || Answer::Ends(50 * MICROSECOND)),
    ("reset", || {
        Answer::Breaks(50 * MICROSECOND, Errno::CONNRESET)
    }),
    ("pipe", || Answer::Breaks(0, Errno::PIPE)),
];

#[test]
fn a_request_over_a_connection_that_was_closed_at_rest_is_sent_again() {
    for (how, answer) in CLOSES {
        for (name, plan) in plans() {
            let mut world = at_rest(plan);
            answer_first(&mut world, 1, answer);
            let replies = world.replies.len();
            begin_slice(&mut world);
            world.pass(2 * SLICE);
            assert!(rests(&mut world), "{how}, {name}");
            assert!(world.replies.len() > replies, "{how}, {name}");
            assert_eq!(world.pool.progress().lost, 0, "{how}, {name}");
            assert_eq!(world.requests(), world.pool.progress().verified);
            let connections = world.pool.client_stats(1).connections;
            assert_eq!(connections, 2, "{how}, {name}");
            let (stats, _) = world.finish();
            assert!(stats.errors.is_empty(), "{how}, {name}");
        }
    }
}

#[test]
fn a_new_connection_that_is_closed_too_is_an_error() {
    for (how, answer) in CLOSES {
        for (name, plan) in plans() {
            let mut world = at_rest(plan);
            answer_first(&mut world, 2, answer);
            begin_slice(&mut world);
            world.pass(2 * SLICE);
            assert_eq!(world.pool.progress().failed, 1, "{how}, {name}");
            assert_eq!(world.finish().0.errors.len(), 1, "{how}, {name}");
        }
    }
}

#[test]
fn a_close_after_a_reply_in_the_slice_is_an_error() {
    for (how, answer) in CLOSES {
        for (name, plan) in plans() {
            let mut world = at_rest(plan);
            begin_slice(&mut world);
            world.pass(SLICE / 2);
            answer_first(&mut world, 1, answer);
            world.pass(SLICE);
            assert_eq!(world.pool.progress().failed, 1, "{how}, {name}");
        }
    }
}

#[test]
fn a_reply_that_ends_early_is_an_error() {
    for (name, plan) in plans() {
        let mut world = at_rest(plan);
        answer_first(&mut world, 1, || Answer::Stops(50 * MICROSECOND));
        begin_slice(&mut world);
        world.pass(2 * SLICE);
        assert_eq!(world.pool.progress().failed, 1, "{name}");
    }
}

#[test]
fn a_connection_that_is_reset_at_rest_is_made_again() {
    for (name, plan) in plans() {
        let mut world = at_rest(plan);
        world.pool.end_rest();
        for slot in 0..CLIENTS as usize {
            world.interfere(slot, Some(Errno::CONNRESET));
        }
        begin_slice(&mut world);
        world.connects = Box::new(|_, slot| match slot {
            2 => Connect::Fails(MILLISECOND, Errno::CONNREFUSED),
            _ => Connect::In(MILLISECOND),
        });
        world.pass(2 * SLICE);
        assert_eq!(world.pool.client_stats(1).connections, 2, "{name}");
        assert_eq!(world.pool.progress().failed, 1, "{name}: a server is gone");
        let (stats, _) = world.finish();
        assert!(stats.errors.contains_key("refused"), "{name}");
        assert_eq!(stats.errors.len(), 1, "{name}");
    }
}
