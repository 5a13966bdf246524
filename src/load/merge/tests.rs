use proptest::prelude::*;

use super::super::jobs::Asked;
use super::super::outcome::{Circumstances, Outcome};
use super::super::share::Share;
use super::super::shared::WindowTimes;
use super::super::tally::{ClientTally, ErrorKind, OpenTally, WorkerTally};
use super::*;

/// When loads begin on the clock of the host that leads.
const BEGAN: u64 = 1_000_000_000_000;

/// What one client of a made-up load saw.
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

/// The tally of the host, or the worker, that has every so-manieth of these clients.
fn tally(clients: &[Seen], number: usize, of: usize) -> WorkerTally {
    let mut tally = WorkerTally::new(true, true);
    let mut open = OpenTally::default();
    for (place, client) in clients.iter().enumerate().skip(number).step_by(of) {
        for (which, &time) in client.times.iter().enumerate() {
            match which % 4 {
                0 => tally.connect_time.record(time),
                1 => open.response_time.record(time),
                _ => {
                    tally.service_time.record(time);
                    tally.times.record(place % 60, time);
                }
            }
        }
        open.waited += 1;
        tally.window_bytes_sent += client.window_replies;
        tally.served[place * 10 / clients.len()][place % 20] += client.window_replies;
        if client.failed {
            tally.error(ErrorKind::Reset, client.connected_at);
        }
        tally.clients.push(ClientTally {
            started_at: Some(0),
            connected_at: Some(client.connected_at),
            first_answer_at: Some(client.connected_at + 5),
            connections: 1,
            requests: client.window_replies + 1,
            replies: client.window_replies + 1,
            window_replies: client.window_replies,
            ..ClientTally::default()
        });
    }
    tally.open = Some(open);
    tally
}

fn circumstances(clients: u32, share: Share, offset: i64) -> Circumstances {
    let began = BEGAN.wrapping_add_signed(offset);
    Circumstances {
        window: WindowTimes {
            began,
            from: began + 10_000_000,
            until: began + 1_010_000_000,
            has_slices: true,
        },
        stopped_by: "duration",
        cpu_s: Some(0.25),
        job: None,
        clients,
        share,
        gathers_clients: true,
    }
}

/// The part of each of so many hosts, as it comes over the wire.
fn contribution(clients: &[Seen], number: usize, of: usize, offset: i64) -> Contribution {
    let share = Share::new(number as u32, of as u32).unwrap();
    let around = circumstances(clients.len() as u32, share, offset);
    let outcome = Outcome::merge(vec![tally(clients, number, of)], &around);
    let line = serde_json::to_string(&outcome.into_contribution()).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whether clients were on one host or on several is not to be seen in the result.
    #[test]
    fn parts_are_the_whole(
        clients in prop::collection::vec(seen(), 10..60), hosts in 1..6_usize,
        offsets in prop::collection::vec(-900_000_000_000..i64::MAX / 4, 6),
    ) {
        let tallies = (0..hosts).map(|number| tally(&clients, number, hosts)).collect();
        let around = circumstances(clients.len() as u32, Share::WHOLE, 0);
        let mut expected = Outcome::merge(tallies, &around).load;
        expected.cpu_s = Some(0.25 * hosts as f64);
        let mut whole = Whole::default();
        // In whatever order they come.
        for number in (0..hosts).rev() {
            let part = contribution(&clients, number, hosts, offsets[number]);
            whole.add(part, Some(offsets[number])).unwrap();
        }
        let mut merged = whole.load().unwrap();
        let fairness = (expected.fairness.take(), merged.fairness.take());
        prop_assert!(close(merged.window.duration_s, expected.window.duration_s));
        prop_assert_eq!(&merged, &expected);
        if let (Some(one), Some(other)) = fairness {
            prop_assert!(close(one.mean, other.mean) && close(one.jain, other.jain));
            prop_assert_eq!((one.min, one.max), (other.min, other.max));
            // Early clients' share is told from when each was connected, by whatever clock.
            let coefficient = |fairness: &crate::record::Fairness| {
                fairness.early_bias.map_or(0.0, |bias| bias.coefficient)
            };
            prop_assert!(close(coefficient(&one), coefficient(&other)));
        }
    }
}

#[test]
fn what_cannot_be_told_of_all_is_absent_with_the_reason() {
    let clients: Vec<Seen> = (0..20)
        .map(|number| Seen {
            connected_at: 100 + number,
            window_replies: number,
            times: vec![1000 * number],
            failed: false,
        })
        .collect();
    let mut whole = Whole::default();
    for number in 0..2 {
        let mut part = contribution(&clients, number, 2, 0);
        if number == 1 {
            part.pieces.clients = None;
        }
        whole.add(part, None).unwrap();
    }
    let fairness = whole.load().unwrap().fairness.unwrap();
    assert_eq!(fairness.early_bias, None);
    assert!(fairness.bias_absent.unwrap().starts_with("20 clients"));
    assert_eq!((fairness.min, fairness.max), (0, 19));
}

#[test]
fn jobs_end_when_the_last_host_is_done_by_one_clock() {
    let part = |number: u32, clock: i64, done_at: u64, failed_at: Option<u64>| {
        let share = Share::new(number, 2).unwrap();
        let mut tally = WorkerTally::new(false, false);
        tally.jobs = Some(Box::new(super::super::jobs::JobsTally::new(
            1,
            number as usize,
        )));
        let client = |done_at: Option<u64>, failed_at: Option<u64>| ClientTally {
            started_at: Some(0),
            connected_at: Some(1),
            first_answer_at: Some(2),
            done_at,
            failed_at,
            error: failed_at.map(|_| ErrorKind::Reset),
            ..ClientTally::default()
        };
        let one = client(failed_at.is_none().then_some(done_at), failed_at);
        tally.clients = vec![client(Some(done_at), None), one];
        let mut around = circumstances(4, share, clock);
        around.window.has_slices = false;
        around.job = Some(Asked {
            requests: 1,
            at_once: 2,
            seed: 1,
        });
        Outcome::merge(vec![tally], &around).into_contribution()
    };
    let second = 1_000_000_000;
    let mut whole = Whole::default();
    whole.add(part(0, 0, 2 * second, None), Some(0)).unwrap();
    // Its clock is five seconds ahead, and it began with the other one.
    let ahead = 5 * second as i64;
    whole
        .add(part(1, ahead, 3 * second, Some(second)), Some(ahead))
        .unwrap();
    let load = whole.load().unwrap();
    let jobs = load.completion.unwrap();
    assert_eq!((jobs.clients_done, jobs.failed, jobs.at_once), (3, 1, 4));
    assert_eq!(jobs.last_done_s, Some(3.0));
    assert_eq!(jobs.clients_per_s, Some(1.0));
    let first = jobs.first_failure.unwrap();
    assert_eq!((first.client, first.at_s), (3, 1.0));
    assert_eq!(load.fairness, None, "they did not compete");
}

#[test]
fn hosts_are_added_one_at_a_time_and_their_figures_agree() {
    let (hosts, clients) = (64, 200);
    let mut whole = Whole::default();
    let mut sum = [0; 3];
    for number in 0..hosts {
        let part = synthetic(number, hosts, clients);
        let times = part
            .load
            .service_time
            .as_ref()
            .map_or(0, |times| times.count);
        let replies = part
            .pieces
            .replies
            .as_ref()
            .unwrap()
            .fairness()
            .unwrap()
            .mean;
        let replies = (replies * f64::from(clients)).round() as u64;
        for (sum, part) in sum
            .iter_mut()
            .zip([part.load.window.replies, times, replies])
        {
            *sum += part;
        }
        whole.add(part, Some(0)).unwrap();
    }
    let load = whole.load().unwrap();
    assert_eq!(load.clients, hosts * clients);
    let fairness = load.fairness.unwrap();
    let told = (fairness.mean * f64::from(load.clients)).round() as u64;
    assert_eq!(
        [load.window.replies, load.service_time.unwrap().count, told],
        sum
    );
    assert_eq!(load.cpu_s, Some(9.5 * f64::from(hosts)));
}
