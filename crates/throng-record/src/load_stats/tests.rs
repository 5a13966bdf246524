use proptest::prelude::*;

use super::*;

/// An event of a client of a load.
#[derive(Debug, Clone)]
enum Event {
    Reply {
        time: u64,
        part: usize,
        tenth: usize,
    },
    Connected {
        time: u64,
    },
    Late {
        time: u64,
    },
    Due {
        time: u64,
        lost: bool,
    },
    Refused {
        status: u16,
    },
    Failed {
        kind: u8,
        at_ns: i64,
        client: u32,
    },
    Done {
        time: u64,
        at_ns: i64,
    },
    Thought(u64),
    Served {
        connected_ns: i64,
        replies: u64,
    },
    Window {
        began_ns: i64,
        length_ns: u64,
    },
    Probed {
        time: u64,
    },
    Secured {
        time: u64,
        resumed: bool,
    },
    Process {
        cpu_ns: Option<u64>,
        ending: StoppedBy,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let time = || (0..u64::MAX, 0_u32..64).prop_map(|(time, shift)| time >> shift);
    let at = || -1_000_000_000_000..1_000_000_000_000_i64;
    let ending = prop::sample::select(vec![
        StoppedBy::Interrupted,
        StoppedBy::Clients,
        StoppedBy::Duration,
        StoppedBy::NoClientsLeft,
    ]);
    prop_oneof![
        4 => (time(), 0..PARTS, 0..TENTHS)
            .prop_map(|(time, part, tenth)| Event::Reply { time, part, tenth }),
        2 => time().prop_map(|time| Event::Connected { time }),
        2 => time().prop_map(|time| Event::Late { time }),
        2 => (time(), any::<bool>()).prop_map(|(time, lost)| Event::Due { time, lost }),
        2 => (0..3_u16).prop_map(|status| Event::Refused { status }),
        2 => (0..3_u8, at(), 0..100_u32)
            .prop_map(|(kind, at_ns, client)| Event::Failed { kind, at_ns, client }),
        2 => (time(), at()).prop_map(|(time, at_ns)| Event::Done { time, at_ns }),
        4 => time().prop_map(Event::Thought),
        2 => (at(), 0..100_000_u64)
            .prop_map(|(connected_ns, replies)| Event::Served { connected_ns, replies }),
        2 => (at(), 0..u64::MAX / 4)
            .prop_map(|(began_ns, length_ns)| Event::Window { began_ns, length_ns }),
        2 => time().prop_map(|time| Event::Probed { time }),
        2 => (time(), any::<bool>())
            .prop_map(|(time, resumed)| Event::Secured { time, resumed }),
        2 => (prop::option::of(0..u64::MAX / 1000), ending)
            .prop_map(|(cpu_ns, ending)| Event::Process { cpu_ns, ending }),
    ]
}

/// A reply of status 1, which was expected, or 2; or a rejection.
fn refused(status: u16) -> ReplyCounts {
    let one = |is_it: bool| is_it.then_some((status, 1)).into_iter().collect();
    let rejected = (status == 0).then_some(("over-limit", 1));
    ReplyCounts {
        limits: std::collections::BTreeMap::new(),
        statuses: one(status > 0),
        unexpected: one(status > 1),
        failed: std::collections::BTreeMap::new(),
        rejected: rejected.into_iter().collect(),
        redirect: (status > 0).then(|| format!("/{status}")),
    }
}

fn see_handshake(stats: &mut LoadStats, time: u64, resumed: bool) {
    let tls = stats.tls.get_or_insert_default();
    let negotiated = format!("TLS 1.{}", 2 + u8::from(resumed));
    tls.add(resumed, negotiated, time, time.is_multiple_of(2));
}

fn see(stats: &mut LoadStats, event: &Event) {
    match *event {
        Event::Reply { time, part, tenth } => {
            stats.service_time.record(time);
            stats.reply_bytes.record(time, 2);
            stats.times_by_part.record(part, time);
            stats.replies_by_tenth[tenth][part / PARTS_AN_INTERVAL] += 1;
            stats.window_replies += 1;
            stats.window_bytes_received += 64;
        }
        Event::Connected { time } => {
            stats.connect_time.record(time);
            stats.first_reply.record(time);
            stats.connections += 1;
            stats.connected += 1;
        }
        Event::Late { time } => stats.lateness.record(time),
        Event::Due { time, lost } => {
            let open = stats.open.get_or_insert_default();
            open.lost += u64::from(lost);
            if !lost {
                open.response_time.record(time);
            }
        }
        Event::Refused { status } => stats.add_counts(refused(status)),
        Event::Failed {
            kind,
            at_ns,
            client,
        } => {
            stats.error(&kind.to_string(), at_ns, (kind & 1 == 1).then_some("so"));
            see_failure(stats, at_ns, client, kind);
        }
        Event::Done { .. } | Event::Thought(_) => {
            see_job(stats.jobs.get_or_insert_default(), event);
        }
        Event::Served {
            connected_ns,
            replies,
        } => {
            stats.served += 1;
            stats.replies.add(replies);
            stats
                .early_bias
                .merge(&EarlyBias::Clients(vec![ServedClient {
                    connected_ns,
                    window_replies: replies,
                    replies: replies + 1,
                }]));
        }
        Event::Window {
            began_ns,
            length_ns,
        } => stats.span.merge(Span {
            began_ns: Some(began_ns),
            from_ns: Some(began_ns + 1),
            until_ns: Some(began_ns + 1 + length_ns as i64),
            fixed_ns: (length_ns % 2 == 0).then_some(length_ns),
            slices_ns: None,
        }),
        Event::Probed { time } => {
            let probe = stats.probe.get_or_insert_default();
            probe.stats.service_time.record(time);
        }
        Event::Secured { time, resumed } => see_handshake(stats, time, resumed),
        Event::Process { cpu_ns, ending } => {
            stats.processes += 1;
            if let Some(time) = cpu_ns {
                stats.cpu.add(time);
            }
            stats.stopped_by = least(stats.stopped_by, Some(ending));
            stats.clients += 1;
        }
    }
}

fn see_failure(stats: &mut LoadStats, at_ns: i64, client: u32, kind: u8) {
    let failed = FailedClient {
        at_ns,
        client,
        kind: kind.to_string(),
        connected: kind == 0,
    };
    let jobs = stats.jobs.get_or_insert_default();
    jobs.failed += 1;
    jobs.first_failure = least(jobs.first_failure.take(), Some(failed));
}

fn see_job(jobs: &mut JobStats, event: &Event) {
    match *event {
        Event::Done { time, at_ns } => {
            jobs.done += 1;
            jobs.time.record(time);
            jobs.last_done_ns = jobs.last_done_ns.max(Some(at_ns));
        }
        Event::Thought(time) => jobs.think.add(time),
        _ => {}
    }
}

/// The results of the parts among which these events were divided.
fn divided(events: &[(Event, usize)], parts: usize) -> Vec<LoadStats> {
    let mut all = vec![LoadStats::default(); parts];
    for (event, part) in events {
        see(&mut all[part % parts], event);
    }
    all
}

fn merged<'a>(parts: impl IntoIterator<Item = &'a LoadStats>) -> LoadStats {
    let mut sum = LoadStats::default();
    parts.into_iter().for_each(|part| sum.merge(part));
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The result does not depend on how clients were divided, in which order their parts were merged, or how they
    /// were transferred.
    #[test]
    fn parts_are_the_whole(
        events in prop::collection::vec((event(), 0..64_usize), 0..200), parts in 1..6_usize,
    ) {
        let whole = divided(&events, 1).remove(0);
        let parts = divided(&events, parts);
        prop_assert_eq!(&merged(&parts), &whole);
        prop_assert_eq!(&merged(parts.iter().rev()), &whole);
        let (first, rest) = parts.split_at(parts.len() / 2);
        prop_assert_eq!(&merged([&merged(first), &merged(rest)]), &whole);
        let written = serde_json::to_string(&whole).unwrap();
        let mut read: LoadStats = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(&read, &whole);
        read.merge(&LoadStats::default());
        prop_assert_eq!(&read, &whole);
        prop_assert_eq!(merged([&read]).summary(), whole.summary());
    }

    /// Parts on hosts whose clocks differ are converted to one clock.
    #[test]
    fn a_clock_shows_nowhere(
        events in prop::collection::vec((event(), 0..64_usize), 0..100),
        by_ns in -1_000_000_000_000..1_000_000_000_000_i64,
    ) {
        let stats = divided(&events, 1).remove(0);
        let mut elsewhere = stats.clone();
        elsewhere.shift(by_ns);
        if stats.span.began_ns.is_some() {
            prop_assert_eq!(elsewhere.summary(), stats.summary());
        }
        elsewhere.shift(-by_ns);
        prop_assert_eq!(elsewhere, stats);
    }
}

#[test]
fn values_unknown_for_some_parts_are_absent_with_the_reason() {
    let part = |host: i64| {
        let mut stats = LoadStats::default();
        for number in 0..10 {
            let replies = (10 * host + number) as u64;
            see(
                &mut stats,
                &Event::Served {
                    connected_ns: replies as i64,
                    replies,
                },
            );
        }
        stats.clients = 10;
        stats
    };
    let fairness = |parts: [&LoadStats; 2]| merged(parts).summary().fairness.unwrap();
    let (one, mut other) = (part(0), part(1));
    let all = fairness([&one, &other]);
    assert!(all.early_bias.unwrap().coefficient < -0.99, "{all:?}");
    assert_eq!((all.min, all.max, &all.bias_absent), (0, 19, &None));
    other.early_bias = other.early_bias.finished();
    let some = fairness([&one, &other]);
    assert_eq!(some.early_bias, None);
    assert!(some.bias_absent.unwrap().starts_with("20 clients"));
}

#[test]
fn hosts_are_added_one_at_a_time_and_their_figures_agree() {
    let (hosts, clients) = (64, 200);
    let (mut whole, mut sum) = (LoadStats::default(), [0; 2]);
    for number in 0..hosts {
        let part = synthetic(number, clients);
        sum[0] += part.window_replies;
        sum[1] += part.service_time.count();
        whole.merge(&part);
    }
    let load = whole.summary();
    assert_eq!(load.clients, hosts * clients);
    let fairness = load.fairness.unwrap();
    let reported = (fairness.mean * f64::from(load.clients)).round() as u64;
    assert_eq!(reported, sum[0]);
    let service = load.service_time.unwrap();
    assert_eq!([load.window.replies, service.count], sum);
    assert_eq!(load.cpu_s, Some(9.5 * f64::from(hosts)));
}
