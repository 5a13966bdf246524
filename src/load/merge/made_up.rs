//! Parts of a load that nobody had, for tests and benches of putting parts together.

use super::super::outcome::{Circumstances, Outcome};
use super::super::share::Share;
use super::super::shared::WindowTimes;
use super::super::tally::{ClientTally, OpenTally, WorkerTally};
use super::Contribution;

/// Replies to a client whose times are made up one by one; the others are counted alone.
const TIMES_EACH: usize = 4;

/// What host `number` of `hosts` would have seen of an open loop with so many clients on each: times from a
/// microsecond to seconds, and another number of replies for most clients.
pub fn synthetic(number: u32, hosts: u32, clients: u32) -> Contribution {
    let mut random = fastrand::Rng::with_seed(number.into());
    let mut tally = WorkerTally::new(true, true);
    let mut open = OpenTally::default();
    for client in 0..clients {
        let connected_at = random.u64(1..2_000_000_000);
        let replies = random.u64(500..5000);
        for _ in 0..TIMES_EACH {
            // As many in each doubling.
            let mut time = || 1000 + (random.u64(0..1 << 22) >> random.u32(0..22)) * 1000;
            tally.service_time.record(time());
            tally.connect_time.record(time());
            open.response_time.record(time());
            if let Some(lateness) = &mut tally.lateness {
                lateness.record(time());
            }
        }
        let tenth = (u64::from(client) * 10 / u64::from(clients)) as usize;
        tally.served[tenth][client as usize % 20] += replies;
        for _ in 0..TIMES_EACH {
            let time = 1000 + (random.u64(0..1 << 22) >> random.u32(0..22)) * 1000;
            tally.times.record(client as usize % 60, time);
        }
        tally.clients.push(ClientTally {
            started_at: Some(0),
            connected_at: Some(connected_at),
            first_answer_at: Some(connected_at + 1000),
            connections: 1,
            requests: replies + 1,
            replies: replies + 1,
            window_replies: replies,
            ..ClientTally::default()
        });
    }
    tally.open = Some(open);
    let began = 1_000_000_000_000;
    let around = Circumstances {
        window: WindowTimes {
            began,
            from: began + 3_000_000_000,
            until: began + 13_000_000_000,
            has_slices: true,
        },
        stopped_by: "duration",
        cpu_s: Some(9.5),
        job: None,
        clients: clients * hosts,
        share: Share::new(number, hosts).unwrap_or(Share::WHOLE),
        gathers_clients: false,
    };
    Outcome::merge(vec![tally], &around).into_contribution()
}
