use super::*;
use crate::fixture::{ACK, FIN, Packet, SYN, by_client, by_server, connection};

/// The kind of each packet.
fn kinds(packets: &[Packet], round_trip_ns: Option<u64>) -> Vec<Kind> {
    let (mut client, mut server) = (SequenceState::default(), SequenceState::default());
    packets
        .iter()
        .map(|packet| {
            let (from, to) = if packet.by_client {
                (&mut client, &mut server)
            } else {
                (&mut server, &mut client)
            };
            analyse(&packet.segment(), from, to, round_trip_ns)
        })
        .collect()
}

/// The kind of the last of these packets, after a handshake.
fn last(packets: &[Packet]) -> Kind {
    let mut all = connection()[..3].to_vec();
    all.extend(packets);
    *kinds(&all, Some(150_000)).last().unwrap()
}

/// The client's hundred bytes with index `number`.
fn data(at_us: i64, number: u32) -> Packet {
    by_client(at_us, ACK, 1001 + 100 * number, 5001).with(100)
}

/// The server acknowledges the first `number` of them.
fn has(at_us: i64, number: u32) -> Packet {
    by_server(at_us, ACK, 5001, 1001 + 100 * number)
}

#[test]
fn an_undisturbed_connection_has_only_new_segments() {
    assert!(
        kinds(&connection(), None)
            .iter()
            .all(|kind| *kind == Kind::New)
    );
}

#[test]
fn a_segment_sent_again_after_a_while_is_a_retransmission() {
    assert_eq!(
        last(&[data(1000, 0), data(200_000, 0)]),
        Kind::Retransmission
    );
    let fin = by_client(1000, ACK | FIN, 1001, 5001);
    let again = Packet {
        at_us: 200_000,
        ..fin
    };
    assert_eq!(last(&[fin, again]), Kind::Retransmission);
    let syn = by_client(0, SYN, 1000, 0);
    assert_eq!(kinds(&[syn, syn], None)[1], Kind::Retransmission);
}

#[test]
fn a_retransmission_of_acknowledged_data_is_spurious() {
    let sent_again = [data(1000, 0), has(1100, 1), data(200_000, 0)];
    assert_eq!(last(&sent_again), Kind::SpuriousRetransmission);
}

#[test]
fn duplicate_acknowledgements_make_a_retransmission_fast() {
    let lost = [data(1000, 0), data(1010, 2), data(1020, 3), data(1030, 4)];
    let calls = [has(1050, 1), has(1060, 1), has(1070, 1)];
    let sent = |at_us| [&lost[..], &calls, &[data(at_us, 1)]].concat();
    assert_eq!(last(&sent(1100)), Kind::FastRetransmission);
    assert_eq!(last(&sent(1070 + 20_000)), Kind::Retransmission);
    // With a different window, it is not a duplicate.
    let mut news = sent(1170);
    news[5].window += 1;
    assert_eq!(last(&news), Kind::OutOfOrder);
}

#[test]
fn an_overtaken_segment_is_out_of_order() {
    assert_eq!(last(&[data(1000, 1), data(1100, 0)]), Kind::OutOfOrder);
    assert_eq!(last(&[data(1000, 1), data(1150, 0)]), Kind::Retransmission);
    // The newest data again is not out of order.
    assert_eq!(last(&[data(1000, 0), data(1100, 0)]), Kind::Retransmission);
}

#[test]
fn keep_alives_and_zero_window_probes_are_not_retransmissions() {
    let alive = by_client(900_000, ACK, 1100, 5001).with(1);
    assert_eq!(last(&[data(1000, 0), has(1100, 1), alive]), Kind::KeepAlive);
    let silent = Packet {
        payload: 0,
        ..alive
    };
    assert_eq!(
        last(&[data(1000, 0), has(1100, 1), silent]),
        Kind::KeepAlive
    );
    let closed = Packet {
        window: 0,
        ..has(1100, 1)
    };
    let probe = by_client(900_000, ACK, 1101, 5001).with(1);
    assert_eq!(last(&[data(1000, 0), closed, probe]), Kind::ZeroWindowProbe);
    let again = Packet {
        at_us: 999_000,
        ..probe
    };
    assert_eq!(
        last(&[data(1000, 0), closed, probe, again]),
        Kind::ZeroWindowProbe
    );
}

#[test]
fn numbers_go_round() {
    let first = by_client(0, ACK, u32::MAX - 49, 7).with(100);
    let second = by_client(1000, ACK, 50, 7).with(100);
    let again = Packet {
        at_us: 900_000,
        ..first
    };
    let kinds = kinds(&[first, second, again], None);
    assert_eq!(kinds, [Kind::New, Kind::New, Kind::Retransmission]);
}
