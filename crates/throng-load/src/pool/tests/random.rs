//! Any plan in any world: [`World`] checks the invariants after each step, and the totals at the end.

use std::fmt;
use std::time::Duration;

use proptest::prelude::*;
use rustix::io::Errno;

use super::super::super::arrival::{Spacing, Think};
use super::super::super::fixture::rate;
use super::super::super::{Close, Plan, Until};
use super::world::{Answer, Connect, MICROSECOND, MILLISECOND, World, plan, seconds};
use throng_record::LoadStats;

/// When requests are due.
#[derive(Debug, Clone, Copy)]
enum Loop {
    Closed(Think),
    Open(f64, Spacing),
}

fn loops() -> impl Strategy<Value = Loop> {
    let time = |ms: u64| Duration::from_micros(ms * 100);
    prop_oneof![
        3 => Just(Loop::Closed(Think::None)),
        1 => (0_u64..80).prop_map(move |ms| Loop::Closed(Think::Fixed(time(ms + 1)))),
        1 => (0_u64..80).prop_map(move |ms| Loop::Closed(Think::Uniform(time(ms), time(2 * ms)))),
        1 => (1_u64..80).prop_map(move |ms| Loop::Closed(Think::Exponential(time(ms)))),
        2 => (100.0..20_000.0).prop_map(|per_s| Loop::Open(per_s, Spacing::Constant)),
        1 => (100.0..20_000.0).prop_map(|per_s| Loop::Open(per_s, Spacing::Poisson)),
        1 => (100.0..20_000.0, 1_u32..20)
            .prop_map(|(per_s, size)| Loop::Open(per_s, Spacing::Burst(size))),
    ]
}

struct Case {
    protocol: &'static str,
    plan: Plan,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = &self.plan;
        f.debug_struct(self.protocol)
            .field("clients", &plan.clients)
            .field("rate", &plan.rate)
            .field("think", &plan.think)
            .field("pipeline", &plan.pipeline)
            .field("until", &plan.until)
            .field("requests_per_connection", &plan.requests_per_connection)
            .field("lifetime", &plan.lifetime)
            .field("request_timeout", &plan.request_timeout)
            .field("close", &plan.close)
            .field("reconnect", &plan.reconnect)
            .field("eager", &plan.eager)
            .field("connects_per_s", &plan.connects_per_s)
            .field("seed", &plan.seed)
            .finish()
    }
}

prop_compose! {
    fn plans()(
        protocol in prop_oneof![2 => Just("echo"), 1 => Just("upload")],
        clients in 1_u32..8,
        which in loops(),
        pipeline in 1_u16..6,
        (requests, is_counted) in (10_u64..300, any::<bool>()),
        requests_per_connection in prop::option::of(1_u32..6),
        lifetime_ms in prop::option::of(1_u64..30),
        request_timeout_ms in prop::option::of(2_u64..20),
        (resets, reconnect, eager) in any::<(bool, bool, bool)>(),
        connects_per_s in prop::option::of(100.0..10_000.0),
        seed in any::<u64>(),
    ) -> Case {
        let until = if is_counted { Until::Requests(requests) } else { seconds(1) };
        let plan = Plan {
            rate: match which {
                Loop::Open(per_s, spacing) => Some(rate(per_s, spacing)),
                Loop::Closed(_) => None,
            },
            think: match which {
                Loop::Closed(think) => think,
                Loop::Open(..) => Think::None,
            },
            pipeline: if protocol == "echo" { pipeline } else { 1 },
            requests_per_connection,
            lifetime: lifetime_ms.map(Duration::from_millis),
            request_timeout: request_timeout_ms.map(Duration::from_millis),
            connect_timeout: Duration::from_millis(20),
            close: if resets { Close::Reset } else { Close::Orderly },
            reconnect,
            eager,
            connects_per_s,
            seed,
            ..plan(protocol, clients, until)
        };
        Case { protocol, plan }
    }
}

/// A world in which one event in `one_in` fails.
fn world(protocol: &str, plan: Plan, seed: u64, one_in: u32, slow: u64) -> World {
    let mut world = World::new(protocol, plan);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut more = random.fork();
    world.connects = Box::new(move |_, _| {
        let time = random.u64(0..slow);
        match random.u32(0..one_in) {
            0 if random.bool() => Connect::Never,
            0 => Connect::Fails(time, Errno::CONNREFUSED),
            _ => Connect::In(time),
        }
    });
    world.answers = Box::new(move |_, _| {
        let time = more.u64(0..slow);
        match (more.u32(0..one_in), more.u32(0..4)) {
            (0, 0) => Answer::Never,
            (0, 1) => Answer::Wrong(time),
            (0, 2) => Answer::Ends(time),
            (0, _) => Answer::Breaks(time, Errno::CONNRESET),
            _ => Answer::In(time),
        }
    });
    world
}

/// Checks that the sums of the clients' stats and the worker's stats agree.
fn balances(world: World) -> LoadStats {
    let (from, until, is_counted) = (
        world.from,
        world.until,
        !matches!(world.plan.until, Until::Duration(_)),
    );
    let pipeline = u64::from(world.plan.pipeline);
    let per_s = world.plan.rate.map(|rate| (rate.from_per_s, rate.spacing));
    let (stats, clients) = world.finish();
    let errors: u64 = stats.errors.values().map(|errors| errors.count).sum();
    let by_clients: u32 = clients.iter().map(|client| client.errors).sum();
    assert_eq!(errors, u64::from(by_clients));
    let connections: u32 = clients.iter().map(|client| client.connections).sum();
    assert_eq!(stats.connect_time.count(), u64::from(connections));
    let replies: u64 = clients.iter().map(|client| client.replies).sum();
    let in_window: u64 = clients.iter().map(|one| one.window_replies).sum();
    assert_eq!(stats.intervals().iter().sum::<u64>(), in_window);
    let Some(open) = &stats.open else {
        let others = ["request-timeout", "unanswered"].map(|kind| stats.errors.get(kind));
        let without: u64 = others.iter().flatten().map(|errors| errors.count).sum();
        let times = stats.service_time.count();
        assert!((in_window..=in_window + without * pipeline).contains(&times));
        return stats;
    };
    let sent = stats.service_time.count();
    assert!(sent <= replies + open.unanswered);
    assert_eq!(open.response_time.count(), sent + open.never_sent);
    let due = open.response_time.count() + open.lost;
    assert!(open.waited <= due);
    if let (Some((per_s, Spacing::Constant)), false) = (per_s, is_counted) {
        let expected = per_s * (until - from) as f64 / 1e9;
        assert!((due as f64 - expected).abs() <= 1.0, "{due} of {expected}");
    }
    stats
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_answered_or_accounted_for(
        Case { protocol, plan } in plans(),
        seed in any::<u64>(),
        one_in in prop_oneof![Just(3_u32), Just(20), Just(u32::MAX)],
        slow_us in 1_u64..3_000,
        room in prop_oneof![2 => Just(usize::MAX), 1 => 1_usize..150],
        strikes in prop::collection::vec((0_usize..8, any::<bool>()), 0..20),
    ) {
        let is_counted = matches!(plan.until, Until::Requests(_));
        let (clients, total) = (plan.clients as usize, plan.until);
        let well = one_in == u32::MAX && strikes.is_empty() && plan.request_timeout.is_none();
        let is_slow = room < 150 || slow_us > 1_000;
        let mut world = world(protocol, plan, seed, one_in, slow_us * MICROSECOND);
        world.room = room;
        world.pass(30 * MILLISECOND);
        if !is_counted {
            world.from = world.now + 5 * MILLISECOND;
            world.until = world.from + 60 * MILLISECOND;
        }
        for (slot, resets) in strikes {
            world.pass(3 * MILLISECOND);
            world.interfere(slot % clients, resets.then_some(Errno::CONNRESET));
        }
        world.pass(40 * MILLISECOND);
        if is_counted && well && !is_slow && world.plan.rate.is_none() {
            world.pass(20_000 * MILLISECOND);
            let Until::Requests(total) = total else { unreachable!() };
            prop_assert_eq!(world.pool.progress().verified, total);
        }
        if is_counted {
            world.until = world.now;
        }
        world.pass(100 * MILLISECOND);
        balances(world);
    }
}
