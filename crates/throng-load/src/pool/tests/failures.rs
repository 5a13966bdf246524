//! Connections that fail, and timeouts.

use std::time::Duration;

use rustix::io::Errno;

use super::super::super::arrival::{Spacing, Think};
use super::super::super::client::State;
use super::super::super::client_stats::ErrorKind;
use super::super::super::fixture::rate;
use super::super::super::{Plan, Until};
use super::world::{Answer, BEGAN, Connect, MILLISECOND, SECOND, World, plan, seconds};

fn kinds(world: World) -> Vec<(String, u64)> {
    let errors = world.finish().0.errors;
    let counts = errors
        .into_iter()
        .map(|(kind, errors)| (kind, errors.count));
    counts.collect()
}

#[test]
fn each_way_not_to_connect_has_its_name() {
    for (errno, kind) in [
        (Errno::CONNREFUSED, ErrorKind::Refused),
        (Errno::TIMEDOUT, ErrorKind::ConnectTimeout),
        (Errno::HOSTUNREACH, ErrorKind::Unreachable),
        (Errno::ADDRNOTAVAIL, ErrorKind::NoPort),
        (Errno::MFILE, ErrorKind::NoDescriptor),
        (Errno::CONNRESET, ErrorKind::Reset),
        (Errno::ACCESS, ErrorKind::Denied),
        (Errno::PROTOTYPE, ErrorKind::Other(libc::EPROTOTYPE)),
    ] {
        let mut world = World::new("echo", plan("echo", 2, seconds(1)));
        world.connects = Box::new(move |_, _| Connect::Fails(MILLISECOND, errno));
        world.pass(SECOND);
        assert_eq!(world.attempts.len(), 2, "no reconnecting");
        assert_eq!(world.pool.progress().failed, 2);
        let (stats, clients) = world.finish();
        assert_eq!(stats.errors[&kind.name()].count, 2);
        assert_eq!(
            stats.errors[&kind.name()].first_ns,
            (BEGAN + MILLISECOND) as i64
        );
        assert_eq!(stats.errors.len(), 1);
        assert_eq!(clients[1].error, Some(kind));
    }
}

#[test]
fn each_way_not_to_answer_has_its_name() {
    for number in 0..5 {
        let mut world = World::steady("echo", plan("echo", 3, seconds(1)));
        world.answers = Box::new(move |_, slot| match (slot, number) {
            (0 | 2, _) => Answer::In(MILLISECOND),
            (_, 0) => Answer::Ends(MILLISECOND),
            (_, 1) => Answer::Wrong(MILLISECOND),
            (_, 2) => Answer::Breaks(MILLISECOND, Errno::CONNRESET),
            (_, 3) => Answer::Breaks(MILLISECOND, Errno::TIMEDOUT),
            _ => Answer::Never,
        });
        world.pass(2 * SECOND);
        let expected = [
            ErrorKind::ClosedEarly,
            ErrorKind::WrongReply,
            ErrorKind::Reset,
            ErrorKind::RequestTimeout,
            ErrorKind::Unanswered,
        ];
        let failed = u64::from(number < 4);
        assert_eq!(world.pool.progress().failed, failed);
        assert_eq!(world.pool.progress().lost, failed);
        assert_eq!(kinds(world), [(expected[number].name(), 1)]);
    }
}

#[test]
fn the_wait_before_a_new_try_doubles_up_to_a_second() {
    let plan = Plan {
        reconnect: true,
        ..plan("echo", 1, seconds(1))
    };
    let mut world = World::new("echo", plan);
    world.connects = Box::new(|_, _| Connect::Fails(0, Errno::CONNREFUSED));
    world.pass(5 * SECOND);
    let waits: Vec<u64> = world
        .attempts
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0) / MILLISECOND)
        .collect();
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000]);
    assert_eq!(world.pool.progress().failed, 0);
    // A reply resets the backoff.
    world.connects = Box::new(|_, _| Connect::In(0));
    world.pass(2 * SECOND);
    assert_eq!(world.pool.progress().answered, 1);
    assert_eq!(world.pool.details[0].failures, 0);
}

#[test]
fn a_client_that_connects_too_long_fails() {
    let plan = Plan {
        connect_timeout: Duration::from_millis(100),
        ..plan("echo", 3, seconds(1))
    };
    let mut world = World::new("echo", plan);
    world.connects = Box::new(|_, slot| match slot {
        1 => Connect::Never,
        _ => Connect::In(MILLISECOND),
    });
    world.pass(99 * MILLISECOND);
    assert_eq!(world.pool.progress().failed, 0);
    world.pass(50 * MILLISECOND);
    assert_eq!(world.pool.progress().failed, 1);
    assert_eq!(world.pool.state(1), State::Lost);
    assert_eq!(kinds(world), [("connect-timeout".to_owned(), 1)]);
}

#[test]
fn a_client_that_waits_too_long_for_a_reply_fails() {
    let plan = Plan {
        request_timeout: Some(Duration::from_millis(50)),
        reconnect: true,
        ..plan("echo", 40, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    let began = world.now;
    world.answers = Box::new(move |now, slot| {
        if slot == 7 && now < began + SECOND / 2 {
            Answer::Never
        } else {
            Answer::In(20 * MILLISECOND)
        }
    });
    world.pass(2 * SECOND);
    // 50 ms and up to 10 % more, with 10, 20, 40 ... ms between attempts.
    let kinds = kinds(world);
    assert_eq!(kinds, [("request-timeout".to_owned(), 5)]);
}

/// Regression test: slow requests left the percentiles, which then showed only the fast ones.
#[test]
fn a_request_that_timed_out_counts_with_at_least_its_timeout() {
    for rate in [None, Some(rate(500.0, Spacing::Constant))] {
        let plan = Plan {
            rate,
            request_timeout: Some(Duration::from_millis(50)),
            reconnect: true,
            ..plan("echo", 10, seconds(1))
        };
        let mut world = World::steady("echo", plan);
        world.answers = Box::new(|_, slot| match slot {
            3 => Answer::Never,
            _ => Answer::In(10 * MILLISECOND),
        });
        world.pass(2 * SECOND);
        let (stats, _) = world.finish();
        let timeouts = stats.errors["request-timeout"].count;
        assert!(timeouts >= 5, "{timeouts}");
        let service = stats.service_time.histogram();
        let slow = |times: &hdrhistogram::Histogram<u64>| {
            times.count_between(49 * MILLISECOND, 60 * MILLISECOND)
        };
        assert_eq!(slow(&service), timeouts);
        let parts = stats.times_by_part.recorded().unwrap();
        let by_part: u64 = parts.counts.iter().flatten().sum();
        match &stats.open {
            None => assert!(by_part + 1 >= service.len(), "{by_part}"),
            Some(open) => {
                assert_eq!(slow(&open.response_time.histogram()), timeouts);
                assert_eq!((open.unanswered, open.lost), (timeouts, 0));
            }
        }
    }
}

#[test]
fn an_open_loop_counts_the_wait_for_a_connection_that_timed_out() {
    let plan = Plan {
        rate: Some(rate(100.0, Spacing::Constant)),
        connect_timeout: Duration::from_millis(50),
        reconnect: true,
        ..plan("upload", 10, seconds(1))
    };
    let mut world = World::steady("upload", plan);
    world.connects = Box::new(|_, slot| match slot {
        3 => Connect::Never,
        _ => Connect::In(MILLISECOND),
    });
    world.pass(2 * SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert!(stats.errors["connect-timeout"].count >= 2);
    assert_eq!((open.response_time.count(), open.lost), (100, 0));
    assert!(open.never_sent >= 2 && open.response_time.histogram().max() >= 50 * MILLISECOND);
}

#[test]
fn a_counted_load_counts_what_its_clients_can_ask_no_more() {
    let mut world = World::new("echo", plan("echo", 4, Until::Requests(400)));
    world.pass(MILLISECOND);
    world.interfere(2, Some(Errno::CONNRESET));
    world.pass(SECOND);
    let progress = world.pool.progress();
    assert_eq!(progress.verified + progress.lost, 400);
    assert!(progress.lost > 50);
    assert_eq!(progress.failed, 1);
    let (stats, clients) = world.finish();
    let requests: u64 = clients.iter().map(|client| client.requests).sum();
    assert_eq!(requests + stats.left, 400);
}

#[test]
fn a_counted_load_goes_on_over_a_new_connection() {
    let plan = Plan {
        reconnect: true,
        pipeline: 4,
        ..plan("echo", 4, Until::Requests(400))
    };
    let mut world = World::new("echo", plan);
    world.pass(MILLISECOND);
    world.interfere(2, Some(Errno::CONNRESET));
    world.pass(SECOND);
    let progress = world.pool.progress();
    assert_eq!((progress.verified, progress.lost), (396, 4));
}

/// Regression test: a client that failed at its last request before any reply began one more.
#[test]
fn a_client_that_sent_all_requests_sends_none_after_a_failure() {
    let plan = Plan {
        reconnect: true,
        ..plan("echo", 2, Until::Requests(2))
    };
    let mut world = World::new("echo", plan);
    world.answers = Box::new(|_, _| Answer::Ends(0));
    world.pass(SECOND);
    assert_eq!(world.asked.len(), 2);
    assert_eq!(world.pool.progress().lost, 2);
}

/// Regression test: a client took several requests before its first reply. The count of waiting requests was
/// decreased for all of them but increased for none.
#[test]
fn waiting_requests_are_counted_after_the_first_of_several_replies() {
    let plan = Plan {
        rate: Some(rate(1000.0, Spacing::Constant)),
        reconnect: true,
        pipeline: 4,
        ..plan("echo", 2, seconds(1))
    };
    let mut world = World::new("echo", plan);
    let began = world.now;
    world.connects = Box::new(move |now, slot| {
        if slot == 1 && now < began + 20 * MILLISECOND {
            Connect::Fails(0, Errno::CONNREFUSED)
        } else {
            Connect::In(MILLISECOND)
        }
    });
    world.answers = Box::new(|_, _| Answer::In(10 * MILLISECOND));
    world.pass(15 * MILLISECOND);
    world.count(SECOND);
    world.pass(SECOND / 2);
    assert_eq!(world.pool.progress().answered, 2);
    assert!(world.pool.progress().waiting > 0);
}

/// Regression test: a client that failed during think time reconnected without waiting, and sent more at once than
/// allowed.
#[test]
fn a_failed_client_waits_even_if_a_thought_ends() {
    let plan = Plan {
        think: Think::Fixed(Duration::from_millis(30)),
        pipeline: 2,
        reconnect: true,
        ..plan("echo", 1, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    world.pass(100 * MILLISECOND);
    let attempts = world.attempts.len();
    let failed_at = world.now;
    world.connects = Box::new(|_, _| Connect::Fails(0, Errno::CONNREFUSED));
    world.interfere(0, Some(Errno::CONNRESET));
    world.pass(200 * MILLISECOND);
    let tries: Vec<u64> = world.attempts[attempts..]
        .iter()
        .map(|&(at, _)| (at - failed_at) / MILLISECOND)
        .collect();
    assert_eq!(tries, [10, 30, 70, 150]);
    world.connects = Box::new(|_, _| Connect::In(MILLISECOND));
    world.answers = Box::new(|_, _| Answer::In(25 * MILLISECOND));
    world.pass(400 * MILLISECOND);
    assert!(world.replies.len() > 10);
}

#[test]
fn requests_lost_by_an_open_loop_are_counted() {
    let plan = Plan {
        rate: Some(rate(1000.0, Spacing::Constant)),
        reconnect: true,
        pipeline: 2,
        ..plan("echo", 10, seconds(1))
    };
    let mut world = World::steady("echo", plan);
    world.answers = Box::new(|now, _| {
        if now / MILLISECOND % 100 == 50 {
            Answer::Breaks(MILLISECOND, Errno::CONNRESET)
        } else {
            Answer::In(MILLISECOND)
        }
    });
    world.pass(2 * SECOND);
    let (stats, _) = world.finish();
    let open = stats.open.unwrap();
    assert!(open.lost >= 9, "{}", open.lost);
    assert_eq!(open.response_time.count() + open.lost, 1000);
    // Requests without a reply have a service time too: their wait.
    assert_eq!(
        stats.service_time.count() + open.never_sent + open.lost,
        1000
    );
}

#[test]
fn an_idle_connection_that_the_server_ends_is_no_failure() {
    for think in [Think::None, Think::Fixed(Duration::from_millis(50))] {
        let plan = Plan {
            think,
            ..plan("echo", 2, seconds(1))
        };
        let mut world = World::new("echo", plan);
        world.pass(10 * MILLISECOND);
        world.interfere(0, None);
        assert_eq!(world.pool.state(0), State::Disconnected);
        world.count(SECOND);
        world.pass(SECOND);
        let asked = world.asked.iter().filter(|&&(_, slot)| slot == 0);
        assert!(asked.count() > 10);
        world.pass(10 * MILLISECOND);
        assert!(world.finish().0.errors.is_empty());
    }
}

/// Regression test: the reply 408 to no request ended the client for good.
#[test]
fn an_idle_connection_that_times_out_is_no_failure() {
    let scheduled = rate(20.0, Spacing::Constant);
    for (think, rate) in [
        (Think::None, None),
        (Think::Fixed(Duration::from_millis(50)), None),
        (Think::None, Some(scheduled)),
    ] {
        let plan = Plan {
            rate,
            think,
            ..plan("http", 2, seconds(1))
        };
        let mut world = World::new("http", plan);
        world.pass(10 * MILLISECOND);
        world.say(0, b"HTTP/1.1 408 Request Timeout\r\n");
        assert_eq!(world.pool.state(0), State::Closing);
        world.say(0, b"Connection: close\r\nContent-Length: 4\r\n\r\nlate");
        world.interfere(0, None);
        assert_eq!(world.pool.state(0), State::Disconnected);
        world.count(SECOND);
        world.pass(SECOND);
        let asked = world.asked.iter().filter(|&&(_, slot)| slot == 0);
        assert!(asked.count() > 5);
        world.pass(10 * MILLISECOND);
        assert!(world.finish().0.errors.is_empty());
    }
}

/// Regression test: a client that had failed before its first reply left its last request without an explanation, and
/// so did a failure with several open requests. The load was called unbalanced.
#[test]
fn each_request_without_a_reply_is_explained() {
    for pipeline in [1, 4] {
        let plan = Plan {
            request_timeout: Some(Duration::from_millis(200)),
            reconnect: true,
            pipeline,
            rate: Some(rate(100.0, Spacing::Constant)),
            ..plan("echo", 10, Until::Requests(60))
        };
        let mut world = World::new("echo", plan);
        world.answers = Box::new(|_, slot| match slot {
            0..5 => Answer::In(MILLISECOND),
            _ => Answer::Never,
        });
        world.pass(300 * MILLISECOND);
        let (requests, verified) = (world.requests(), world.pool.progress().verified);
        let (stats, clients) = world.finish();
        assert_eq!(stats.without_reply, requests - verified);
        let errors: u64 = clients.iter().map(|client| u64::from(client.errors)).sum();
        assert!(stats.without_reply > errors, "{errors}");
    }
}

/// Regression test: clients waited for such a close for ever.
#[test]
fn a_server_that_leaves_closing_to_its_clients_is_awaited_only_once() {
    for leaves_closing in [false, true] {
        let mut world = World::new("upload", plan("upload", 2, Until::Requests(40)));
        world.leaves_closing = leaves_closing;
        world.pass(SECOND);
        assert_eq!(world.replies.len(), 40);
        // Until 100 ms after their first replies, and for the next sweep.
        let awaited = world.replies[2].0 > BEGAN + 100 * MILLISECOND;
        assert_eq!(awaited, leaves_closing);
        let (first, last) = (world.replies[2].0, world.replies[39].0);
        assert!(last - first < 10 * MILLISECOND, "{}", last - first);
        assert!(world.finish().0.errors.is_empty());
    }
}

/// Regression test: bytes that an engine reported late as sent were subtracted from the pending ones, although an
/// early reply had withdrawn them.
#[test]
fn bytes_that_left_before_an_early_reply_may_be_counted_after_it() {
    let mut world = World::new("upload", plan("upload", 1, seconds(1)));
    world.room = 50;
    world.pass(15 * super::world::MICROSECOND);
    assert_eq!(world.pool.pending(0).len(), 58);
    let mut declined = [0; 9];
    declined[0] = 1;
    let _ = world.pool.received(0, &declined, world.now);
    assert_eq!(world.pool.state(0), State::Closing);
    world.pool.sent(0, 58);
    assert!(world.pool.pending(0).is_empty());
    let action = world.pool.peer_closed(0, world.now);
    assert!(matches!(action, super::super::Action::Close(_)));
}
