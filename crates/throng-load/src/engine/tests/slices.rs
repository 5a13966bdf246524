//! Loads in slices.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;
use crate::{NextSlice, SliceStats};

/// No test needs more slices, unless replies are missing.
const MOST_SLICES: usize = 500;

/// Runs `slices` slices, then more until there are `replies` replies, and records what the server served in the
/// pauses.
struct Slicer {
    warm_ups: usize,
    slices: usize,
    replies: u64,
    served: Arc<AtomicUsize>,
    seen: Vec<SliceStats>,
    served_in_pauses: usize,
}

impl Watcher for Slicer {
    fn enter(&mut self, _: Phase, _: &Progress) -> anyhow::Result<()> {
        Ok(())
    }

    fn watch(&mut self, _: Phase, _: &Progress, _: f64) {}

    fn interrupted(&self) -> bool {
        false
    }

    fn next_slice(&mut self, last: Option<SliceStats>) -> anyhow::Result<Option<NextSlice>> {
        match last {
            Some(_) if self.warm_ups > 0 => self.warm_ups -= 1,
            last => self.seen.extend(last),
        }
        let before = self.served.load(Relaxed);
        std::thread::sleep(Duration::from_millis(20));
        self.served_in_pauses += self.served.load(Relaxed) - before;
        let replies: u64 = self.seen.iter().map(|slice| slice.replies).sum();
        let is_enough = self.seen.len() >= self.slices && replies >= self.replies
            || self.seen.len() >= MOST_SLICES;
        Ok((!is_enough).then_some(NextSlice {
            length_ns: 10_000_000,
            warms_up: self.warm_ups > 0,
        }))
    }
}

/// A server that counts its replies to requests of `size` bytes.
fn counting(size: usize, closes_after: usize) -> (Server, Arc<AtomicUsize>) {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    let started = server(move |mut stream, _| {
        let mut bytes = vec![0; size];
        for _ in 0..closes_after {
            if stream.read_exact(&mut bytes).is_err() {
                return;
            }
            count.fetch_add(1, Relaxed);
            if stream.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    (started, answered)
}

fn in_slices(
    plan: &Plan,
    answered: &Arc<AtomicUsize>,
    slices: usize,
    replies: u64,
) -> (Load, Slicer) {
    let mut watcher = Slicer {
        warm_ups: 3,
        slices,
        replies,
        served: Arc::clone(answered),
        seen: Vec::new(),
        served_in_pauses: 0,
    };
    let result = run(plan, &mut watcher).unwrap();
    (result.stats.summary(), watcher)
}

#[test]
fn nothing_is_asked_between_slices_and_all_that_is_asked_in_one_is_answered_in_it() {
    const FOREVER: Until = Until::Duration(Duration::from_hours(1));
    for engine in engines() {
        for threads in [1, 2] {
            let (server, answered) = counting(100, usize::MAX);
            let plan = Plan {
                engine,
                threads,
                in_slices: true,
                warm_up: Duration::from_millis(5),
                ..plan(server.address, "echo", 100, 7, FOREVER)
            };
            let (load, slicer) = in_slices(&plan, &answered, 6, 100);
            let name = format!("{}, {threads} threads", engine.name());
            assert_eq!(slicer.served_in_pauses, 0, "{name}");
            assert!(slicer.seen.iter().all(|slice| slice.complete), "{name}");
            let replies: u64 = slicer.seen.iter().map(|slice| slice.replies).sum();
            assert_eq!(
                load.window.replies, replies,
                "{name}: what the slices saw is all"
            );
            assert!(
                slicer.seen.iter().all(|slice| slice.p50_ns <= slice.p99_ns
                    && (slice.replies == 0 || slice.p50_ns > 0))
            );
            let took: u64 = slicer.seen.iter().map(|slice| slice.took_ns).sum();
            let duration_ns = (load.window.duration_s * 1e9).round() as u64;
            assert_eq!(duration_ns, took, "{name}: pauses do not count");
            assert_eq!(load.verified, answered.load(Relaxed) as u64, "{name}");
            assert!(load.errors.is_empty(), "{name}: {:?}", load.errors);
            assert_eq!(load.stopped_by, "duration", "{name}");
        }
    }
}

#[test]
fn clients_without_a_connection_at_the_end_of_a_slice_make_one_in_the_next() {
    for engine in engines() {
        let (server, answered) = counting(50, usize::MAX);
        let plan = Plan {
            engine,
            in_slices: true,
            requests_per_connection: Some(3),
            ..plan(
                server.address,
                "echo",
                50,
                5,
                Until::Duration(Duration::from_hours(1)),
            )
        };
        let (load, slicer) = in_slices(&plan, &answered, 8, 100);
        assert_eq!(slicer.served_in_pauses, 0, "{}", engine.name());
        assert!(slicer.seen.iter().all(|slice| slice.complete));
        assert!(
            load.connections >= 100 / 3,
            "{} connections",
            load.connections
        );
        assert_eq!(load.verified, answered.load(Relaxed) as u64);
        assert!(load.errors.is_empty(), "{:?}", load.errors);
    }
}

/// Regression test: side by side with many servers, pauses are longer than Node.js keeps an idle connection.
#[test]
fn connections_that_a_server_closed_in_a_pause_are_made_again() {
    for engine in engines() {
        let answers = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&answers);
        let server = server(move |mut stream, _| {
            // Longer than the time between requests of a slice, much shorter than a pause.
            let _ = stream.set_read_timeout(Some(Duration::from_millis(4)));
            let mut bytes = [0; 50];
            while stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {
                count.fetch_add(1, Relaxed);
            }
        });
        let forever = Until::Duration(Duration::from_hours(1));
        let plan = Plan {
            engine,
            in_slices: true,
            ..plan(server.address, "echo", 50, 5, forever)
        };
        let (load, slicer) = in_slices(&plan, &answers, 8, 100);
        // If a client is not scheduled for that long during a slice, it gets a close instead of a reply.
        let all_closed = load
            .errors
            .keys()
            .all(|kind| kind == "closed-early" || kind == "reset");
        assert!(all_closed, "{:?}", load.errors);
        let name = engine.name();
        assert!(load.connections > 5, "{name}: {}", load.connections);
        assert!(
            slicer.seen.iter().skip(2).any(|slice| slice.replies > 0),
            "{name}"
        );
    }
}

#[test]
fn a_slice_without_answers_ends_all_the_same_and_is_not_complete() {
    let server = server(|mut stream, _| {
        let mut bytes = vec![0; 100];
        if stream.read_exact(&mut bytes).is_ok() && stream.write_all(&bytes).is_ok() {
            while let Ok(1..) = stream.read(&mut bytes) {} // and no answer
        }
    });
    let plan = Plan {
        in_slices: true,
        grace: Duration::from_millis(50),
        ..plan(
            server.address,
            "echo",
            100,
            2,
            Until::Duration(Duration::from_hours(1)),
        )
    };
    let (load, slicer) = in_slices(&plan, &Arc::default(), 2, 0);
    assert_eq!((load.served, load.window.replies), (2, 0));
    assert_eq!(slicer.seen.len(), 2);
    assert!(
        slicer
            .seen
            .iter()
            .all(|slice| slice.replies == 0 && !slice.complete)
    );
}

#[test]
fn a_schedule_stands_still_between_slices_and_loses_nothing() {
    const A_SLICE: u64 = 10; // of 10 ms
    for engine in engines() {
        for threads in [1, 2] {
            let (server, answered) = counting(100, usize::MAX);
            let forever = Until::Duration(Duration::from_hours(1));
            let plan = Plan {
                engine,
                threads,
                in_slices: true,
                rate: Some(Rate {
                    from_per_s: 1000.0,
                    to_per_s: 1000.0,
                    rise: Duration::ZERO,
                    spacing: Spacing::Constant,
                }),
                ..plan(server.address, "echo", 100, 7, forever)
            };
            let (load, slicer) = in_slices(&plan, &answered, 6, 20);
            let name = format!("{}, {threads} threads", engine.name());
            assert_eq!(slicer.served_in_pauses, 0, "{name}");
            let open = load.open_loop.unwrap();
            let asked = load.requests - 7 + open.never_sent;
            let count = slicer.seen.len() as u64 + 3;
            assert_eq!(asked, A_SLICE * count, "{name}: {open:?}");
            assert!(load.errors.is_empty(), "{name}: {:?}", load.errors);
        }
    }
}
