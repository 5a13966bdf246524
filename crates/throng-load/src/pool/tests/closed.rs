//! Clients that send after their reply, or some time later.

use std::sync::Arc;
use std::time::Duration;

use super::super::super::arrival::Think;
use super::super::super::client::State;
use super::super::super::{Close, Plan, Until};
use super::super::ClientPool;
use super::world::{
    Answer, BEGAN, Connect, MICROSECOND, MILLISECOND, SECOND, World, plan, seconds,
};
use throng_record::load_stats::{PARTS_AN_INTERVAL, TENTHS};

/// The pauses of each client between a reply and its next request.
fn pauses(world: &World) -> Vec<u64> {
    let mut pauses = Vec::new();
    for &(replied_at, slot) in &world.replies {
        let next = world
            .asked
            .iter()
            .find(|&&(at, by)| by == slot && at >= replied_at);
        pauses.extend(next.map(|&(at, _)| at - replied_at));
    }
    pauses
}

#[test]
fn the_budget_is_kept_exactly() {
    for (clients, pipeline, total) in [(1, 1, 1), (3, 1, 10), (3, 4, 100), (7, 16, 7)] {
        for protocol in ["echo", "upload"] {
            let pipeline = if protocol == "echo" { pipeline } else { 1 };
            let plan = Plan {
                pipeline,
                ..plan(protocol, clients, Until::Requests(total))
            };
            let mut world = World::new(protocol, plan);
            world.pass(SECOND);
            assert_eq!(world.pool.progress().verified, total);
            assert_eq!(world.asked.len() as u64, total);
            for slot in 0..clients as usize {
                assert_eq!(world.pool.state(slot), State::Done);
                let count = world.asked.iter().filter(|&&(_, by)| by == slot).count();
                let even = total as usize / clients as usize;
                assert!((even..=even + 1).contains(&count));
            }
        }
    }
}

#[test]
fn a_pipeline_is_always_full() {
    let plan = Plan {
        pipeline: 8,
        ..plan("echo", 3, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    world.pass(MILLISECOND);
    for _ in 0..200 {
        world.pass(37 * MICROSECOND);
        for client in &world.pool.clients {
            assert_eq!(client.outstanding, 8);
        }
    }
}

#[test]
fn clients_rest_until_all_are_served_and_then_go_on() {
    let mut world = World::new("echo", plan("echo", 5, seconds(1)));
    world.pass(50 * MILLISECOND);
    assert_eq!(world.asked.len(), 5, "one each");
    assert_eq!(world.pool.progress().answered, 5);
    world.count(SECOND);
    world.pass(50 * MILLISECOND);
    assert!(world.asked.len() > 5 * 400);
}

#[test]
fn the_eager_do_not_rest() {
    let plan = Plan {
        eager: true,
        ..plan("echo", 5, seconds(1))
    };
    let mut world = World::new("echo", plan);
    world.pass(50 * MILLISECOND);
    assert!(world.asked.len() > 5 * 400);
}

#[test]
fn nothing_is_asked_after_the_window() {
    let mut world = World::steady("echo", plan("echo", 5, seconds(1)));
    world.pass(2 * SECOND);
    let last = world.asked.last().unwrap().0;
    assert!(last < world.until);
    assert_eq!(world.pool.progress().waiting, 0);
    assert!(world.pool.progress().at_end);
    let replies = world.replies.iter();
    let counted = replies
        .filter(|&&(at, _)| at >= world.from && at < world.until)
        .count() as u64;
    let (stats, _) = world.finish();
    assert_eq!(stats.service_time.count(), counted);
    assert_eq!(stats.intervals().iter().sum::<u64>(), counted);
    assert!(stats.intervals().iter().all(|&replies| replies > 0));
    let times = stats.times_by_part.recorded().unwrap();
    let by_interval: Vec<u64> = times
        .counts
        .chunks(PARTS_AN_INTERVAL)
        .map(|parts| parts.iter().flatten().sum())
        .collect();
    assert_eq!(by_interval, stats.intervals());
}

/// Regression test: they were the tenths of the clients by number, however late the first ones were connected.
#[test]
fn replies_are_counted_by_tenths_of_the_clients_in_order_of_connection() {
    let mut world = World::new("echo", plan("echo", 25, seconds(1)));
    world.connects = Box::new(|_, slot| Connect::In((25 - slot as u64) * 100 * MICROSECOND));
    // The clients that are connected first get most replies.
    world.answers = Box::new(|_, slot| Answer::In((30 - slot as u64) * 100 * MICROSECOND));
    world.pass(10 * MILLISECOND);
    world.count(SECOND);
    world.pass(2 * SECOND);
    let (stats, clients) = world.finish();
    let mut expected = [0; TENTHS];
    for (rank, client) in clients.iter().rev().enumerate() {
        expected[rank * TENTHS / 25] += client.window_replies;
    }
    assert!(expected[0] > 2 * expected[TENTHS - 1]);
    assert_eq!(
        stats
            .replies_by_tenth
            .map(|intervals| intervals.iter().sum::<u64>()),
        expected
    );
    assert!(expected.iter().all(|&replies| replies > 0));
}

#[test]
fn workers_share_one_order_of_connection() {
    let (plan, connected) = (Arc::new(plan("echo", 20, seconds(1))), Arc::default());
    let mut tenths = Vec::new();
    for number in [1, 0] {
        let mut pool = ClientPool::new(&plan, number, 2, BEGAN, &connected);
        while let Some(slot) = pool.next_to_connect(BEGAN) {
            let _send = pool.connected(slot, BEGAN + MICROSECOND);
            tenths.push(usize::from(pool.clients[slot].tenth));
        }
    }
    let expected: Vec<usize> = (0..20).map(|rank| rank * TENTHS / 20).collect();
    assert_eq!(tenths, expected);
}

#[test]
fn a_connection_serves_so_many_requests() {
    for (limit, pipeline, think) in [(1, 1, false), (3, 1, false), (5, 2, false), (3, 4, true)] {
        for close in [Close::Orderly, Close::Reset] {
            let plan = Plan {
                requests_per_connection: Some(limit),
                pipeline,
                close,
                think: if think {
                    Think::Fixed(Duration::from_millis(1))
                } else {
                    Think::None
                },
                ..plan("echo", 2, Until::Requests(60))
            };
            let mut world = World::new("echo", plan);
            world.pass(SECOND);
            assert_eq!(world.pool.progress().verified, 60);
            assert!(
                world
                    .closes
                    .iter()
                    .filter(|&&(_, how)| how == close)
                    .count()
                    >= 18 / 3
            );
            let (_, clients) = world.finish();
            let connections: u32 = clients.iter().map(|one| one.connections).sum();
            assert_eq!(connections, 60_u32.div_ceil(2 * limit) * 2);
        }
    }
}

/// Regression test: a connection that reached its limit with the first reply was used once more.
#[test]
fn a_connection_is_worn_out_by_its_first_request_too() {
    let plan = Plan {
        requests_per_connection: Some(1),
        ..plan("echo", 4, seconds(1))
    };
    let mut world = World::new("echo", plan);
    world.pass(10 * MILLISECOND);
    assert_eq!(world.closes.len(), 4);
    world.count(SECOND);
    world.pass(100 * MILLISECOND);
    assert!(world.asked.len() > 1000);
}

/// Regression test: with think time, clients sent as many requests as fit into the pipeline.
#[test]
fn clients_that_think_keep_their_budget() {
    let plan = Plan {
        pipeline: 4,
        think: Think::Fixed(Duration::from_millis(1)),
        ..plan("echo", 2, Until::Requests(12))
    };
    let mut world = World::new("echo", plan);
    world.pass(SECOND);
    assert_eq!(world.asked.len(), 12);
    assert_eq!(world.pool.progress().verified, 12);
}

#[test]
fn a_connection_lives_so_long() {
    let plan = Plan {
        lifetime: Some(Duration::from_millis(20)),
        ..plan("echo", 3, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    world.pass(SECOND);
    // With the sweep, connections of resting clients live a little longer.
    assert!((3 * 45..=3 * 51).contains(&world.attempts.len()));
}

#[test]
fn those_who_think_are_swept_when_their_connection_has_served_its_time() {
    let plan = Plan {
        lifetime: Some(Duration::from_millis(20)),
        think: Think::Fixed(Duration::from_millis(500)),
        ..plan("echo", 3, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    world.pass(100 * MILLISECOND);
    let apart = |world: &World| {
        let clients = world.pool.clients.iter();
        clients
            .filter(|client| client.state == State::Disconnected)
            .count()
    };
    assert!(apart(&world) >= 1);
    world.pass(800 * MILLISECOND);
    assert!(world.replies.len() >= 6, "they came back");
}

#[test]
fn clients_think_as_long_as_drawn() {
    let milliseconds = Duration::from_millis;
    let thinks = [
        (Think::Fixed(milliseconds(5)), 5.0, 5.0, 5.0),
        (
            Think::Uniform(milliseconds(2), milliseconds(6)),
            2.0,
            6.0,
            4.0,
        ),
        (Think::Exponential(milliseconds(5)), 0.0, 100.0, 5.0),
    ];
    for (think, shortest, longest, mean) in thinks {
        let plan = Plan {
            think,
            ..plan("echo", 20, seconds(1))
        };
        let mut world = World::steady("echo", plan);
        let first_round = world.replies.len();
        world.pass(SECOND);
        world.replies.drain(..first_round);
        let pauses: Vec<f64> = pauses(&world)
            .into_iter()
            .map(|pause| pause as f64 / 1e6)
            .collect();
        assert!(pauses.len() > 3000);
        let slack = 0.01; // rounds of the worker
        for pause in &pauses {
            assert!((shortest..=longest + slack).contains(pause), "{pause}");
        }
        let average = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((average - mean).abs() < mean / 10.0, "{average}");
        let asked = world
            .asked
            .iter()
            .filter(|&&(at, _)| at >= world.from)
            .count() as u64;
        let lateness = world.finish().0.lateness;
        assert!((asked - 20..=asked).contains(&lateness.count()));
        assert!(lateness.histogram().max() <= 10 * MICROSECOND);
    }
}

#[test]
fn those_who_think_equally_long_are_out_of_step() {
    let plan = Plan {
        think: Think::Fixed(Duration::from_millis(100)),
        ..plan("echo", 50, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    let first_round = world.asked.len();
    world.pass(50 * MILLISECOND);
    let asked = world.asked.len() - first_round;
    assert!((10..=40).contains(&asked), "{asked}");
}

#[test]
fn a_server_that_closes_after_each_reply_has_a_connection_a_request() {
    let mut world = World::steady("upload", plan("upload", 4, seconds(1)));
    world.pass(100 * MILLISECOND);
    assert!(world.replies.len() > 1000);
    let (stats, clients) = world.finish();
    assert!(stats.errors.is_empty());
    for client in clients {
        assert!(u64::from(client.connections) >= client.replies);
    }
}

#[test]
fn unanswered_requests_at_the_end_are_errors() {
    let mut world = World::steady("echo", plan("echo", 3, seconds(1)));
    world.pass(SECOND / 2);
    world.answers = Box::new(|_, slot| {
        if slot == 1 {
            Answer::Never
        } else {
            Answer::In(MILLISECOND)
        }
    });
    world.pass(SECOND);
    assert_eq!(world.pool.progress().waiting, 1);
    let (stats, clients) = world.finish();
    let names: Vec<String> = stats.errors.keys().cloned().collect();
    assert_eq!(names, ["unanswered"]);
    let errors: Vec<u32> = clients.iter().map(|client| client.errors).collect();
    assert_eq!(errors, [0, 1, 0]);
}
