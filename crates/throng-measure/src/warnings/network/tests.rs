use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use throng_record::Side;
use throng_record::load_stats::Times;

/// A distribution, from numbers of requests and their latency in milliseconds.
fn latency(times: &[(u64, f64)]) -> Latency {
    let mut all = Times::default();
    for (count, ms) in times {
        all.record_n((ms * 1e6) as u64, *count);
    }
    all.latency().unwrap()
}

/// The warnings about a load with these errors and these network metrics.
fn warned(load: Load, errors: &[(&str, u64)], network: &[(&str, f64)]) -> Vec<String> {
    let trial = Trial {
        load: Some(Load {
            errors: named(errors),
            clients: 1000,
            connections: 1000,
            connected: 1000,
            ..load
        }),
        network: Some(Side {
            metrics: named(network),
            ..Side::default()
        }),
        ..Trial::default()
    };
    let settings = Settings {
        backlog: 1,
        ..super::super::tests::settings()
    };
    let host = Host {
        ephemeral_ports: Some((32_768, 60_999)),
        ..Host::default()
    };
    let warnings = of_trial(&trial, &ServerInfo::default(), &settings, &host);
    assert!(warnings.iter().all(|warning| !warning.remedy.is_empty()));
    warnings
        .into_iter()
        .map(|warning| format!("{}: {}", warning.kind, warning.message))
        .collect()
}

fn named<T: Copy>(values: &[(&str, T)]) -> BTreeMap<String, T> {
    values
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect()
}

fn connecting(times: &[(u64, f64)]) -> Load {
    Load {
        connect_time: Some(latency(times)),
        ..Load::default()
    }
}

fn serving(times: &[(u64, f64)]) -> Load {
    Load {
        service_time: Some(latency(times)),
        ..Load::default()
    }
}

const QUIET: [(&str, f64); 3] = [
    ("listen_overflows", 0.0),
    ("accept_backlog", 4096.0),
    ("delayed_acks", 0.0),
];

#[test]
fn normal_trials_have_no_warnings() {
    let load = connecting(&[(990, 0.3), (10, 400.0)]);
    assert_eq!(warned(load, &[], &QUIET), [""; 0]);
    assert_eq!(warned(Load::default(), &[], &[]), [""; 0]);
}

#[test]
fn late_connections_are_joined_with_the_queue_that_made_them_late() {
    let load = connecting(&[(873, 0.3), (100, 1001.0), (27, 3020.0)]);
    let network = [
        ("listen_overflows", 311.0),
        ("listen_drops", 311.0),
        ("accept_backlog", 1.0),
    ];
    assert_eq!(
        warned(load.clone(), &[], &network),
        [
            "late-connections: 127 of 1,000 clients connected in steps of 1 s and 3 s: the accept \
             queue of 1 (--backlog 1) overflowed 311 times and SYNs were dropped"
        ]
    );
    assert_eq!(
        warned(load, &[("connect-timeout", 5)], &[]),
        [
            "late-connections: 127 of 1,000 clients connected in steps of 1 s and 3 s and 5 did not \
             connect in time, as if SYNs were lost and retransmitted"
        ]
    );
}

#[test]
fn a_full_queue_is_reported_even_without_late_clients() {
    let network = [("listen_overflows", 2.0), ("accept_backlog", 1.0)];
    assert_eq!(
        warned(connecting(&[(1000, 0.2)]), &[], &network),
        [
            "late-connections: the accept queue of 1 (--backlog 1) overflowed 2 times: handshakes \
             completed only on the clients' side"
        ]
    );
}

#[test]
fn unanswered_clients_are_reported_too() {
    let load = Load {
        never_served: 34,
        first_reply: Some(Latency {
            max_us: 14_336_131.0,
            ..latency(&[(26, 1000.0)])
        }),
        ..connecting(&[(10, 1.0), (50, 1010.0)])
    };
    let network = [("listen_overflows", 99.0), ("accept_backlog", 1.0)];
    assert_eq!(
        warned(load, &[], &network),
        [
            "late-connections: 50 of 1,000 clients connected only after 1 s, 34 clients got no reply and \
             the last client got its first reply after 14.3 s: the accept queue of 1 (--backlog 1) overflowed 99 \
             times and SYNs were dropped"
        ]
    );
}

#[test]
fn a_queue_of_handshakes_is_another_one() {
    let network = [("syn_queue_drops", 40.0), ("accept_backlog", 4096.0)];
    assert_eq!(
        warned(connecting(&[(960, 0.2), (40, 1010.0)]), &[], &network),
        [
            "late-connections: 40 of 1,000 clients connected only after 1 s: the SYN \
             queue was full and 40 SYNs were dropped"
        ]
    );
}

#[test]
fn a_server_that_is_slow_to_be_reached_is_no_step() {
    // Anywhere between one and five seconds: no timer does that.
    let spread: Vec<(u64, f64)> = (0..100)
        .map(|place| (1, 1000.0 + 40.0 * f64::from(place)))
        .collect();
    assert_eq!(warned(connecting(&spread), &[], &QUIET), [""; 0]);
}

#[test]
fn a_plateau_at_40_ms_is_held_back_acknowledgements() {
    let load = serving(&[(20, 0.1), (500, 40.3), (480, 48.9), (3, 60.0)]);
    let warned_of = warned(load.clone(), &[], &[("delayed_acks", 981.0)]);
    assert_eq!(warned_of.len(), 1);
    assert!(
        warned_of[0].starts_with(
            "delayed-ack: 980 of 1003 requests took about 40 ms: one side delayed its ACK \
             (981 delayed ACKs)"
        ),
        "{warned_of:?}"
    );
    // Without the kernel's counter, it is a server that takes 40 ms.
    assert_eq!(warned(load.clone(), &[], &[("delayed_acks", 3.0)]), [""; 0]);
    assert_eq!(warned(load, &[], &[]), [""; 0]);
}

#[test]
fn times_around_40_ms_are_no_plateau() {
    let spread: Vec<(u64, f64)> = (10..90).map(|ms| (20, f64::from(ms))).collect();
    let network = [("delayed_acks", 100_000.0)];
    assert_eq!(warned(serving(&spread), &[], &network), [""; 0]);
    let later = serving(&[(900, 0.1), (80, 201.0)]);
    assert!(warned(later, &[], &network)[0].contains("80 of 980 requests took about 200 ms"));
}

#[test]
fn segments_sent_again_on_loopback_are_reported_with_what_points_at_the_cause() {
    let network = [
        ("segments_sent", 100_000.0),
        ("segments_retransmitted", 50.0),
        ("memory_pressures", 2.0),
        ("retransmit_timeouts", 0.0),
    ];
    assert_eq!(
        warned(Load::default(), &[], &network),
        [
            "retransmissions: 50 of 100000 segments were retransmitted during the measurement, \
             although loopback loses none by itself: TCP ran short of memory (2 times)"
        ]
    );
    let few = [("segments_sent", 1e9), ("segments_retransmitted", 50.0)];
    assert_eq!(warned(Load::default(), &[], &few), [""; 0]);
}

#[test]
fn ports_that_run_out_are_predicted() {
    let network = [("time_wait_max", 20_000.0)];
    let warned_of = warned(Load::default(), &[("no-port", 7)], &network);
    assert_eq!(
        warned_of,
        [
            "few-ports: 7 connections got no local port: up to 20000 closed connections kept \
             their ports for a minute (TIME_WAIT), of 28232 per source address"
        ]
    );
    assert_eq!(
        warned(Load::default(), &[], &[("time_wait_max", 900.0)]),
        [""; 0]
    );
}

proptest! {
    #[test]
    fn every_connection_is_counted_in_one_step_at_most(
        times in prop::collection::vec((1_u64..50, 0.01_f64..130_000.0), 1..40),
    ) {
        let load = connecting(&times);
        let total: u64 = times.iter().map(|(count, _)| count).sum();
        let late: u64 = late_connections(&load).iter().map(|(_, count)| count).sum();
        prop_assert!(late <= total);
    }
}

#[test]
fn a_server_of_others_has_no_option_and_reconnects_are_not_clients() {
    let load = Load {
        clients: 50,
        connections: 4090,
        ..connecting(&[(4000, 0.2), (90, 1010.0)])
    };
    let network = [("listen_overflows", 426.0), ("accept_backlog", 5.0)];
    let warning = of_queue(&load, &named(&network)).expect("the queue overflowed");
    assert_eq!(
        warning.message,
        "90 of 4,090 connections opened only after 1 s: the accept queue of 5 overflowed 426 times and SYNs were \
         dropped"
    );
    assert!(!warning.remedy.contains("--backlog"), "{}", warning.remedy);
}
