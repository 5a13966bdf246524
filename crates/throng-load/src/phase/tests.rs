//! The state machine with made-up times.

use super::super::arrival::Think;
use super::super::fixture::{self, NOWHERE};
use super::*;

pub(super) const MS: u64 = 1_000_000;

pub(super) fn plan(until: Until) -> Plan {
    Plan {
        warm_up: Duration::from_millis(100),
        longest_warm_up: Duration::from_millis(100),
        first_reply_timeout: Duration::from_millis(300),
        grace: Duration::from_millis(50),
        ..fixture::plan(NOWHERE, "echo", 100, 10, until)
    }
}

fn timed() -> Phases {
    Phases::new(&plan(Until::Duration(Duration::from_millis(500))), 0)
}

pub(super) fn answered(answered: u64) -> Progress {
    Progress {
        connected: 10,
        answered,
        ..Progress::default()
    }
}

pub(super) fn enter(phases: &mut Phases, now: u64, progress: &Progress, phase: Phase) {
    assert_eq!(
        phases.advance(now, progress),
        Next::Enter(phase),
        "at {now}"
    );
    phases.entered(phase, now);
}

#[test]
fn a_timed_load_goes_through_all_phases() {
    let mut phases = timed();
    assert!(matches!(phases.advance(MS, &answered(9)), Next::Wait(_)));
    let all = answered(10);
    enter(&mut phases, 5 * MS, &all, Phase::WarmUp);
    assert_eq!(phases.window(), (105 * MS, 605 * MS));
    assert!(matches!(phases.advance(104 * MS, &all), Next::Wait(_)));
    enter(&mut phases, 105 * MS, &all, Phase::Measure);
    enter(&mut phases, 605 * MS, &all, Phase::Drain);
    let all = Progress {
        at_end: true,
        ..all
    };
    let waiting = Progress { waiting: 1, ..all };
    assert!(matches!(phases.advance(606 * MS, &waiting), Next::Wait(_)));
    enter(&mut phases, 607 * MS, &all, Phase::Idle);
    assert_eq!(
        phases.advance(608 * MS, &all),
        Next::Done(StoppedBy::Duration)
    );
}

#[test]
fn drain_ends_when_its_grace_is_over() {
    let mut phases = timed();
    enter(&mut phases, 0, &answered(10), Phase::WarmUp);
    phases.entered(Phase::Drain, 600 * MS);
    let stuck = Progress {
        waiting: 3,
        ..answered(10)
    };
    assert!(matches!(phases.advance(649 * MS, &stuck), Next::Wait(_)));
    enter(&mut phases, 650 * MS, &stuck, Phase::Idle);
}

#[test]
fn drain_goes_on_while_replies_come() {
    let mut phases = timed();
    enter(&mut phases, 0, &answered(10), Phase::WarmUp);
    phases.entered(Phase::Drain, 600 * MS);
    let replies = |verified| Progress {
        waiting: 9,
        verified,
        ..answered(10)
    };
    for step in 1..=37 {
        let now = (600 + 40 * step) * MS;
        let next = phases.advance(now, &replies(1000 + step));
        assert!(matches!(next, Next::Wait(_)), "{step}");
    }
    enter(&mut phases, 2100 * MS, &replies(2000), Phase::Idle);
}

#[test]
fn the_timeout_counts_from_the_last_first_reply() {
    let mut phases = timed();
    assert!(matches!(
        phases.advance(200 * MS, &answered(1)),
        Next::Wait(_)
    ));
    assert!(matches!(
        phases.advance(499 * MS, &answered(1)),
        Next::Wait(_)
    ));
    enter(&mut phases, 500 * MS, &answered(1), Phase::WarmUp);
}

#[test]
fn an_eager_load_waits_only_until_clients_are_connected() {
    let eager = Plan {
        eager: true,
        ..plan(Until::Duration(Duration::from_millis(500)))
    };
    let mut phases = Phases::new(&eager, 0);
    let few = Progress {
        connected: 4,
        ..answered(2)
    };
    assert!(matches!(phases.advance(100 * MS, &few), Next::Wait(_)));
    assert!(matches!(
        phases.advance(200 * MS, &answered(2)),
        Next::Wait(_)
    ));
    assert!(matches!(
        phases.advance(499 * MS, &answered(3)),
        Next::Wait(_)
    ));
    enter(&mut phases, 500 * MS, &answered(4), Phase::WarmUp);
}

#[test]
fn the_wait_for_slow_first_replies_ends() {
    let mut phases = Phases::new(
        &Plan {
            clients: 1000,
            ..plan(Until::Duration(Duration::from_millis(500)))
        },
        0,
    );
    let longest = 300 * u64::from(LONGEST_CONNECT);
    for at in (0..longest).step_by(200) {
        let trickles = answered(1 + at / 200);
        assert!(matches!(phases.advance(at * MS, &trickles), Next::Wait(_)));
    }
    enter(&mut phases, longest * MS, &answered(900), Phase::WarmUp);
}

#[test]
fn a_counted_load_is_patient_while_clients_think() {
    let thoughtful = Plan {
        think: Think::Fixed(Duration::from_secs(1)),
        ..plan(Until::Requests(1000))
    };
    let mut phases = Phases::new(&thoughtful, 0);
    let some = Progress {
        verified: 10,
        ..answered(10)
    };
    assert!(matches!(phases.advance(MS, &some), Next::Wait(_)));
    assert!(matches!(phases.advance(1300 * MS, &some), Next::Wait(_)));
    enter(&mut phases, 1301 * MS, &some, Phase::Idle);
}

#[test]
fn a_load_ends_if_no_client_is_served() {
    let mut phases = timed();
    let refused = Progress {
        failed: 10,
        ..Progress::default()
    };
    enter(&mut phases, MS, &refused, Phase::Idle);
    assert_eq!(
        phases.advance(MS, &refused),
        Next::Done(StoppedBy::NoClientsLeft)
    );
}

#[test]
fn all_clients_lost_while_steady_ends_the_load() {
    let mut phases = timed();
    enter(&mut phases, 0, &answered(10), Phase::WarmUp);
    enter(&mut phases, 100 * MS, &answered(10), Phase::Measure);
    let lost = Progress {
        failed: 10,
        ..answered(10)
    };
    enter(&mut phases, 200 * MS, &lost, Phase::Drain);
    let lost = Progress {
        at_end: true,
        ..lost
    };
    enter(&mut phases, 200 * MS, &lost, Phase::Idle);
    assert_eq!(phases.window(), (100 * MS, 200 * MS));
    assert_eq!(
        phases.advance(200 * MS, &lost),
        Next::Done(StoppedBy::NoClientsLeft)
    );
}

#[test]
fn a_counted_load_ends_when_all_have_finished() {
    let mut phases = Phases::new(&plan(Until::Requests(1000)), MS);
    let some = Progress {
        verified: 500,
        ..answered(10)
    };
    assert!(matches!(phases.advance(2 * MS, &some), Next::Wait(_)));
    let all = Progress {
        verified: 1000,
        ..answered(10)
    };
    enter(&mut phases, 9 * MS, &all, Phase::Idle);
    assert_eq!(phases.window(), (MS, 9 * MS));
    assert_eq!(
        phases.advance(9 * MS, &all),
        Next::Done(StoppedBy::Requests)
    );
}

#[test]
fn an_interrupt_keeps_what_was_measured() {
    let mut phases = timed();
    enter(&mut phases, 0, &answered(10), Phase::WarmUp);
    enter(&mut phases, 100 * MS, &answered(10), Phase::Measure);
    phases.interrupt(300 * MS);
    enter(&mut phases, 300 * MS, &answered(10), Phase::Drain);
    assert_eq!(phases.window(), (100 * MS, 300 * MS));
    // A worker may not have noticed yet, and may still begin a request.
    let next = phases.advance(301 * MS, &answered(10));
    assert!(matches!(next, Next::Wait(_)));
    let all = Progress {
        at_end: true,
        ..answered(10)
    };
    enter(&mut phases, 302 * MS, &all, Phase::Idle);
    assert_eq!(
        phases.advance(302 * MS, &answered(10)),
        Next::Done(StoppedBy::Interrupted)
    );
}

#[test]
fn a_load_of_so_many_bytes_drains_when_they_have_gone() {
    let mut phases = Phases::new(&plan(Until::Bytes(1000)), MS);
    let some = Progress {
        bytes: 999,
        ..answered(10)
    };
    assert!(matches!(phases.advance(2 * MS, &some), Next::Wait(_)));
    let all = Progress {
        bytes: 1001,
        verified: 5,
        waiting: 3,
        ..answered(10)
    };
    enter(&mut phases, 9 * MS, &all, Phase::Drain);
    assert_eq!(phases.window(), (MS, 9 * MS));
    assert!(matches!(phases.advance(10 * MS, &all), Next::Wait(_)));
    let drained = Progress {
        waiting: 0,
        at_end: true,
        ..all
    };
    enter(&mut phases, 11 * MS, &drained, Phase::Idle);
    assert_eq!(
        phases.advance(12 * MS, &drained),
        Next::Done(StoppedBy::Bytes)
    );
}

/// Regression test: a single request that took longer than the timeout for first replies ended the load, although its
/// bytes kept arriving.
#[test]
fn bytes_that_keep_coming_are_news_of_a_load_bounded_by_bytes() {
    let mut phases = Phases::new(&plan(Until::Bytes(1_000_000)), 0);
    let bytes = |bytes| Progress {
        bytes,
        ..Progress::default()
    };
    for step in 1..20 {
        let next = phases.advance(step * 200 * MS, &bytes(step));
        assert!(matches!(next, Next::Wait(_)), "{step}");
    }
    enter(&mut phases, 4100 * MS, &bytes(19), Phase::Drain);
    // Replies in the drain are progress again, however many bytes there were.
    for step in 1..10 {
        let replies = Progress {
            verified: step,
            waiting: 9,
            ..bytes(1_000_000)
        };
        let next = phases.advance((4100 + 40 * step) * MS, &replies);
        assert!(matches!(next, Next::Wait(_)), "{step}");
    }
}

#[test]
fn a_counted_load_does_not_wait_for_failed_clients() {
    let mut phases = Phases::new(&plan(Until::Requests(1000)), 0);
    let lost = |lost| Progress {
        verified: 900,
        lost,
        failed: 1,
        ..answered(10)
    };
    assert!(matches!(phases.advance(MS, &lost(99)), Next::Wait(_)));
    enter(&mut phases, 2 * MS, &lost(100), Phase::Idle);
    assert_eq!(
        phases.advance(2 * MS, &lost(100)),
        Next::Done(StoppedBy::Requests)
    );
}

#[test]
fn a_counted_load_without_a_client_left_ends() {
    for verified in [0, 7] {
        let mut phases = Phases::new(&plan(Until::Requests(1000)), 0);
        let nobody = Progress {
            verified,
            failed: 10,
            ..Progress::default()
        };
        enter(&mut phases, MS, &nobody, Phase::Idle);
        let done = Next::Done(StoppedBy::NoClientsLeft);
        assert_eq!(phases.advance(MS, &nobody), done);
    }
    let mut phases = Phases::new(&plan(Until::Bytes(1000)), 0);
    let nobody = Progress {
        verified: 3,
        bytes: 500,
        failed: 10,
        ..Progress::default()
    };
    enter(&mut phases, MS, &nobody, Phase::Drain);
    assert_eq!(phases.ending, StoppedBy::NoClientsLeft);
}

/// Regression test: it seemed to have made all its requests.
#[test]
fn a_counted_load_that_falls_silent_has_not_made_its_requests() {
    for until in [Until::Requests(40), Until::Bytes(4000)] {
        let mut phases = Phases::new(&plan(until), 0);
        let some = Progress {
            verified: 10,
            bytes: 1000,
            ..answered(10)
        };
        assert!(matches!(phases.advance(2 * MS, &some), Next::Wait(_)));
        assert!(matches!(phases.advance(302 * MS, &some), Next::Enter(_)));
        assert_eq!(phases.window().1, 2 * MS, "what counts ends with the news");
        assert_eq!(phases.ending, StoppedBy::Silence);
    }
}

#[test]
fn the_timeout_begins_when_the_last_client_has_its_turn() {
    // Ten clients, ten per second: the last one's turn is within the first second.
    for until in [
        Until::Duration(Duration::from_millis(500)),
        Until::Requests(1000),
        Until::Bytes(1000),
    ] {
        let plan = Plan {
            connects_per_s: Some(10.0),
            ..plan(until)
        };
        let mut phases = Phases::new(&plan, 0);
        let one = Progress {
            answered: 1,
            verified: 1,
            bytes: 1,
            ..Progress::default()
        };
        for now in [1, 500, 1299] {
            assert!(matches!(phases.advance(now * MS, &one), Next::Wait(_)));
        }
        assert!(matches!(phases.advance(1300 * MS, &one), Next::Enter(_)));
    }
}

fn jobs(limit: Option<Duration>) -> Phases {
    Phases::new(
        &plan(Until::Each {
            requests: Some(2),
            live: None,
            limit,
        }),
        0,
    )
}

fn ended(done: u64, failed: u64) -> Progress {
    Progress {
        connected: done,
        done,
        failed,
        verified: 2 * done,
        at_end: true,
        ..Progress::default()
    }
}

#[test]
fn jobs_are_steady_from_the_first_client_to_the_last() {
    let mut phases = jobs(None);
    assert_eq!(phases.phase(), Phase::Measure);
    assert_eq!(phases.window().0, 0);
    assert!(matches!(phases.advance(MS, &ended(9, 0)), Next::Wait(_)));
    enter(&mut phases, 2 * MS, &ended(9, 1), Phase::Drain);
    assert_eq!(phases.window(), (0, 2 * MS));
    enter(&mut phases, 3 * MS, &ended(9, 1), Phase::Idle);
    let done = Next::Done(StoppedBy::Clients);
    assert_eq!(phases.advance(4 * MS, &ended(9, 1)), done);
}

#[test]
fn jobs_that_all_failed_left_nobody() {
    let mut phases = jobs(None);
    enter(&mut phases, MS, &ended(0, 10), Phase::Drain);
    enter(&mut phases, MS, &ended(0, 10), Phase::Idle);
    let done = Next::Done(StoppedBy::NoClientsLeft);
    assert_eq!(phases.advance(MS, &ended(0, 10)), done);
}

#[test]
fn jobs_end_with_their_time() {
    let mut phases = jobs(Some(Duration::from_millis(40)));
    assert!(matches!(
        phases.advance(39 * MS, &ended(5, 0)),
        Next::Wait(_)
    ));
    enter(&mut phases, 40 * MS, &ended(5, 0), Phase::Drain);
    assert_eq!(phases.window(), (0, 40 * MS));
    enter(&mut phases, 41 * MS, &ended(5, 0), Phase::Idle);
    let done = Next::Done(StoppedBy::TimeLimit);
    assert_eq!(phases.advance(42 * MS, &ended(5, 0)), done);
}

#[test]
fn jobs_end_when_nothing_happens_any_more() {
    let mut phases = jobs(None);
    assert!(matches!(
        phases.advance(5 * MS, &ended(5, 0)),
        Next::Wait(_)
    ));
    // Connecting may take a while, and the timeout for first replies begins after it.
    let silence = 5 * MS + 10_300 * MS;
    assert!(matches!(
        phases.advance(silence - 1, &ended(5, 0)),
        Next::Wait(_)
    ));
    enter(&mut phases, silence, &ended(5, 0), Phase::Drain);
    assert_eq!(
        phases.window(),
        (0, 5 * MS),
        "what counts ends with the news"
    );
    enter(&mut phases, silence, &ended(5, 0), Phase::Idle);
    let done = Next::Done(StoppedBy::Silence);
    assert_eq!(phases.advance(silence, &ended(5, 0)), done);
}

#[test]
fn jobs_that_are_interrupted_keep_what_was_done() {
    let mut phases = jobs(None);
    assert!(matches!(phases.advance(MS, &ended(5, 0)), Next::Wait(_)));
    phases.interrupt(2 * MS);
    enter(&mut phases, 2 * MS, &ended(5, 0), Phase::Drain);
    enter(&mut phases, 2 * MS, &ended(5, 0), Phase::Idle);
    let done = Next::Done(StoppedBy::Interrupted);
    assert_eq!(phases.advance(2 * MS, &ended(5, 0)), done);
}
