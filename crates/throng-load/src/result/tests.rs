use proptest::prelude::*;

use super::super::Until;
use super::super::fixture::{self, NOWHERE};
use super::*;
use throng_record::Fairness;
use throng_record::load_stats::{JobStats, OpenStats};

/// Start of loads on the clock of the leading host.
const BEGAN: u64 = 1_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// The stats of one client of a made-up load.
#[derive(Debug, Clone)]
struct Seen {
    connected_at: u64,
    window_replies: u64,
    times: Vec<u64>,
    failed: bool,
}

fn seen() -> impl Strategy<Value = Seen> {
    let times = prop::collection::vec((0..3_600_000_000_000_u64, 0_u32..42), 0..20);
    (1..1_000_000_u64, 0..3000_u64, times, any::<bool>()).prop_map(
        |(connected_at, window_replies, times, failed)| Seen {
            connected_at,
            window_replies,
            times: times
                .into_iter()
                .map(|(time, shift)| time >> shift)
                .collect(),
            failed,
        },
    )
}

/// The stats of the worker that has every `of`th of these clients, in a load that began at `began`.
fn worked(clients: &[Seen], number: usize, of: usize, began: u64) -> WorkerStats {
    let (mut stats, mut open, mut own) = (LoadStats::default(), OpenStats::default(), Vec::new());
    for (place, client) in clients.iter().enumerate().skip(number).step_by(of) {
        for (which, &time) in client.times.iter().enumerate() {
            match which % 4 {
                0 => stats.connect_time.record(time),
                1 => open.response_time.record(time),
                _ => {
                    stats.service_time.record(time);
                    stats.times_by_part.record(place % 60, time);
                }
            }
        }
        open.waited += 1;
        stats.window_bytes_sent += client.window_replies;
        stats.replies_by_tenth[place * 10 / clients.len()][place % 20] += client.window_replies;
        if client.failed {
            stats.error("reset", (began + client.connected_at) as i64, None);
        }
        own.push(ClientStats {
            started_at: Some(0),
            connected_at: Some(client.connected_at),
            first_reply_at: Some(client.connected_at + 5),
            connections: 1,
            requests: client.window_replies + 1,
            replies: client.window_replies + 1,
            window_replies: client.window_replies,
            ..ClientStats::default()
        });
    }
    stats.threads = 1;
    stats.open = Some(open);
    (stats, own)
}

fn plan(clients: u32, share: Share) -> Plan {
    let until = Until::Each {
        requests: Some(1),
        live: None,
        limit: None,
    };
    Plan {
        share,
        gathers_clients: share != Share::WHOLE,
        ..fixture::plan(NOWHERE, "echo", 100, clients, until)
    }
}

fn led(began: u64, is_timed: bool) -> LeaderResult {
    LeaderResult {
        window: WindowTimes {
            began,
            from: began + 10_000_000,
            until: began + 10_000_000 + SECOND,
            is_timed,
            slices_ns: None,
        },
        stopped_by: StoppedBy::Duration,
        warm_up: None,
        cpu: Some(Duration::from_millis(250)),
    }
}

/// The results of several hosts as transferred, converted to one clock and merged.
fn merged(parts: impl Iterator<Item = (LoadStats, i64)>) -> LoadStats {
    let mut whole = LoadStats::default();
    for (part, offset) in parts {
        let line = serde_json::to_string(&part).unwrap();
        let mut part: LoadStats = serde_json::from_str(&line).unwrap();
        part.shift(-offset);
        whole.merge(&part);
    }
    whole
}

fn bias(fairness: &Fairness) -> f64 {
    fairness.early_bias.map_or(0.0, |bias| bias.coefficient)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The result does not show whether clients were on one host or on several.
    #[test]
    fn parts_are_the_whole(
        clients in prop::collection::vec(seen(), 10..60), hosts in 1..6_usize,
        offsets in prop::collection::vec(-900_000_000_000..i64::MAX / 4, 6),
    ) {
        let count = clients.len() as u32;
        let workers = (0..hosts).map(|number| worked(&clients, number, hosts, BEGAN)).collect();
        let whole = LoadResult::of(&plan(count, Share::WHOLE), &led(BEGAN, true), workers, None);
        let mut expected = whole.stats.summary();
        expected.cpu_s = Some(0.25 * hosts as f64);
        let parts = (0..hosts).rev().map(|number| {
            let share = Share::new(number as u32, hosts as u32).unwrap();
            let began = BEGAN.wrapping_add_signed(offsets[number]);
            let worked = vec![worked(&clients, number, hosts, began)];
            let part = LoadResult::of(&plan(count, share), &led(began, true), worked, None);
            (part.stats, offsets[number])
        });
        let mut merged = merged(parts).summary();
        if hosts > 1 {
            expected.window.intervals_by_tenth.clear(); // hosts share no order
        }
        let fairness = (expected.fairness.take(), merged.fairness.take());
        prop_assert_eq!(&merged, &expected);
        if let (Some(one), Some(other)) = fairness {
            // Ranks are the same, but clients are summed in another order.
            prop_assert!((bias(&one) - bias(&other)).abs() < 1e-9);
            prop_assert_eq!((one.mean, one.jain), (other.mean, other.jain));
            prop_assert_eq!((one.min, one.max), (other.min, other.max));
            prop_assert_eq!(one.early_over_late, other.early_over_late);
            prop_assert_eq!(one.life, other.life);
        }
    }
}

#[test]
fn jobs_end_when_the_last_host_is_done_by_one_clock() {
    let part = |number: u32, clock: u64, done_at: u64, failed_at: Option<u64>| {
        let share = Share::new(number, 2).unwrap();
        let stats = LoadStats {
            jobs: Some(Box::new(JobStats {
                requests_each: Some(1),
                ..JobStats::default()
            })),
            ..LoadStats::default()
        };
        let client = |done_at: Option<u64>, failed_at: Option<u64>| ClientStats {
            started_at: Some(0),
            connected_at: Some(1),
            first_reply_at: Some(2),
            done_at,
            failed_at,
            error: failed_at.map(|_| ErrorKind::Reset),
            ..ClientStats::default()
        };
        let one = client(failed_at.is_none().then_some(done_at), failed_at);
        let own = vec![client(Some(done_at), None), one];
        let plan = Plan {
            at_once: Some(4),
            ..plan(4, share)
        };
        let result = LoadResult::of(&plan, &led(BEGAN + clock, false), vec![(stats, own)], None);
        (result.stats, clock as i64)
    };
    // The other host's clock is five seconds ahead, and it began at the same time.
    let load = merged(
        [
            part(0, 0, SECOND / 2, None),
            part(1, 5 * SECOND, 3 * SECOND / 4, Some(SECOND / 4)),
        ]
        .into_iter(),
    )
    .summary();
    // The window does not last until the leaders noticed.
    assert!((load.window.duration_s - 0.74).abs() < 1e-6, "{load:?}");
    let jobs = load.completion.unwrap();
    assert_eq!((jobs.clients_done, jobs.failed, jobs.at_once), (3, 1, 4));
    assert_eq!(jobs.last_done_s, Some(0.75));
    assert_eq!(jobs.clients_per_s, Some(4.0));
    let first = jobs.first_failure.unwrap();
    assert_eq!((first.client, first.at_s), (3, 0.25));
    assert_eq!(load.fairness, None, "they did not compete");
}
