use proptest::prelude::*;

use super::fixture::{
    ACK, FIN, Packet, RST, SYN, USUAL, Writing, by_client, by_server, connection,
};
use super::flow::{ClientKnownBy, Ending};
use super::row::write_csv;
use super::*;

fn report(packets: &[Packet]) -> Report {
    analyse(&USUAL.pcap(packets)[..], Settings::default()).unwrap()
}

fn only_row(packets: &[Packet]) -> Row {
    let report = report(packets);
    assert_eq!(report.summary.flows, 1);
    report.row(0).unwrap()
}

fn frame(link: u32, wire_bytes: u32, data: &[u8]) -> Frame<'_> {
    Frame {
        number: 1,
        time_ns: 0,
        link,
        interface: 0,
        wire_bytes,
        data,
    }
}

#[test]
fn a_whole_connection_has_every_figure() {
    let row = only_row(&connection());
    assert_eq!(row.client.to_string(), "10.0.0.1:40000");
    assert_eq!(row.server.to_string(), "10.0.0.2:80");
    assert_eq!(row.handshake_us, Some(150.0));
    assert_eq!((row.packets_by_client, row.packets_by_server), (5, 3));
    let payload = (row.payload_bytes_by_client, row.payload_bytes_by_server);
    assert_eq!(payload, (100, 1000));
    let wire = (row.wire_bytes_by_client, row.wire_bytes_by_server);
    assert_eq!(wire, (5 * 54 + 100, 3 * 54 + 1000));
    assert_eq!((row.duration_s * 1e6).round() as u64, 450);
    let rate = row.throughput_bytes_per_s.unwrap();
    assert_eq!(rate.round() as u64, 1_100_000_000 / 450);
    assert_eq!((row.retransmissions(), row.resets()), (0, 0));
    assert_eq!((row.ending, row.complete), (Ending::Closed, true));
    assert_eq!(row.client_known_by, ClientKnownBy::Syn);
}

#[test]
fn every_format_and_link_gives_the_same() {
    let wanted = only_row(&connection());
    for link in [0, 1, 101, 108, 113, 276] {
        for bits in 0..8 {
            let [big_endian, nanoseconds, ipv6] = [1, 2, 4].map(|bit| bits & bit > 0);
            let mut packets = connection();
            for packet in &mut packets {
                packet.ipv6 = ipv6;
            }
            let writing = Writing {
                big_endian,
                nanoseconds,
                link,
                snap: 80,
            };
            for (file, dropped) in [
                (writing.pcap(&packets), None),
                (writing.pcapng(&packets), Some(7)),
            ] {
                let report = analyse(&file[..], Settings::default()).unwrap();
                let context = format!("link {link}, bits {bits}, drops {dropped:?}");
                assert_eq!(report.contents.dropped_by_kernel, dropped, "{context}");
                assert_eq!(report.contents.damage, None, "{context}");
                let row = report.row(0).expect(&context);
                assert_eq!(row.handshake_us, wanted.handshake_us, "{context}");
                assert_eq!(row.packets(), wanted.packets(), "{context}");
                assert_eq!(row.payload_bytes(), wanted.payload_bytes(), "{context}");
                assert_eq!(row.server.address.is_ipv6(), ipv6, "{context}");
                assert!(row.complete, "{context}");
            }
        }
    }
}

#[test]
fn a_capture_may_be_compressed() {
    use std::io::Write as _;
    let plain = USUAL.pcap(&connection());
    let mut file = Vec::new();
    // Two gzip members, as in concatenated files.
    for piece in [&plain[..30], &plain[30..]] {
        let mut gzip = flate2::write::GzEncoder::new(&mut file, flate2::Compression::fast());
        gzip.write_all(piece).unwrap();
        gzip.finish().unwrap();
    }
    let whole = analyse(decompressed(&file[..]).unwrap(), Settings::default()).unwrap();
    assert_eq!(
        whole.row(0).unwrap().packets(),
        only_row(&connection()).packets()
    );
    assert_eq!(whole.contents.damage, None);
    let plain = analyse(decompressed(&plain[..]).unwrap(), Settings::default()).unwrap();
    assert_eq!(plain.contents.packets, whole.contents.packets);
    // A truncated file is read up to its end.
    let cut = decompressed(&file[..file.len() - 20]).unwrap();
    let cut = analyse(cut, Settings::default()).unwrap();
    assert!(cut.contents.damage.is_some() && cut.contents.packets > 0);
    assert!(analyse(decompressed(&file[..1]).unwrap(), Settings::default()).is_err());
}

#[test]
fn a_packet_cut_within_its_headers_is_counted_as_too_short() {
    for (ipv6, headers) in [
        (false, &[][..]),
        (true, &[]),
        (true, &[0]),
        (true, &[0, 60, 43]),
    ] {
        let mut packet = by_client(0, ACK, 1, 1);
        packet.ipv6 = ipv6;
        let mut bytes = packet.on(1);
        // Extension headers of 8 bytes each; the IP header names the first.
        for (at, header) in headers.iter().enumerate().rev() {
            let next = std::mem::replace(&mut bytes[20], *header);
            bytes.splice(54..54, [next, 0, 1, 4, 0, 0, 0, 0]);
            assert!(at < 3);
        }
        if ipv6 {
            let length = (bytes.len() - 54) as u16;
            bytes[18..20].copy_from_slice(&length.to_be_bytes());
        }
        let tcp = if ipv6 { 54 + 8 * headers.len() } else { 34 };
        for length in 12..bytes.len() {
            let frame = frame(1, bytes.len() as u32, &bytes[..length]);
            let found = packet::segment(&frame);
            let context = format!("{headers:?}, {length} of {}", bytes.len());
            if length < tcp + 20 {
                assert_eq!(found.unwrap_err(), packet::Other::Short, "{context}");
            } else {
                assert_eq!(
                    found.unwrap().payload_bytes as usize,
                    bytes.len() - tcp - 20,
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn vlan_tags_are_skipped() {
    let mut bytes = by_client(0, SYN, 1, 0).on(1);
    bytes.splice(12..12, [0x88, 0xa8, 0, 5, 0x81, 0, 0, 7]);
    let segment = packet::segment(&frame(1, bytes.len() as u32, &bytes)).unwrap();
    assert_eq!(segment.destination.port, 80);
    assert_eq!(segment.payload_bytes, 0);
}

#[test]
fn skipped_packets_are_counted_by_reason() {
    let mut analysis = Analysis::new(Settings::default());
    let syn = by_client(0, SYN, 1, 0);
    let changed = |at: usize, to: u8| {
        let mut bytes = syn.on(1);
        bytes[at] = to;
        bytes
    };
    for (link, bytes) in [
        (1, changed(23, 17)),
        (1, changed(12, 9)),
        (1, changed(20, 0x20)),
        (1, changed(46, 0x10)),
        (1, changed(46, 0xf0)),
        (1, syn.on(1)[..40].to_vec()),
        (1, syn.on(1)[..10].to_vec()),
        (147, syn.on(1)),
    ] {
        analysis.take(&frame(link, 54, &bytes));
    }
    let contents = analysis.finish(None, None).contents;
    assert_eq!((contents.packets, contents.not_tcp), (8, 2));
    assert_eq!((contents.fragments, contents.malformed), (1, 2));
    assert_eq!((contents.captured_too_short, contents.unknown_link), (2, 1));
}

#[test]
fn a_repeated_syn_counts_and_makes_the_handshake_long() {
    let mut packets = connection();
    let later = |packet: &mut Packet| packet.at_us += 1_000_000;
    packets[0].number = 9;
    packets[1..].iter_mut().for_each(later);
    packets.insert(1, by_client(1_000_000, SYN, 1000, 0));
    let row = only_row(&packets);
    assert_eq!(row.syn_retransmissions, 1);
    assert_eq!(row.retransmissions_by_client, 1);
    assert_eq!(row.handshake_us, Some(1_000_150.0));
}

#[test]
fn endings_are_distinguished() {
    let syn = by_client(0, SYN, 1, 0);
    let data = by_client(9, ACK, 2, 12).with(5);
    for (packets, ending, complete) in [
        (vec![syn], Ending::Unanswered, false),
        (
            vec![syn, by_server(5, RST | ACK, 0, 2)],
            Ending::Refused,
            true,
        ),
        (
            vec![
                syn,
                by_server(5, SYN | ACK, 11, 2),
                data,
                by_server(99, RST, 12, 0),
            ],
            Ending::ResetByServer,
            true,
        ),
        (
            vec![syn, by_server(5, SYN | ACK, 11, 2), by_client(9, RST, 2, 0)],
            Ending::ResetByClient,
            true,
        ),
        (vec![data], Ending::Open, false),
        (
            vec![data, by_client(99, FIN | ACK, 7, 12)],
            Ending::HalfClosed,
            false,
        ),
    ] {
        let row = only_row(&packets);
        assert_eq!((row.ending, row.complete), (ending, complete));
    }
    // A reset in reply to data after the end is not the ending.
    let mut packets = connection();
    packets.push(by_client(500, RST, 1102, 0));
    let row = only_row(&packets);
    assert_eq!((row.ending, row.resets_by_client), (Ending::Closed, 1));
}

#[test]
fn without_a_syn_the_lower_port_is_the_servers() {
    let row = only_row(&connection()[3..]);
    assert_eq!(row.client_known_by, ClientKnownBy::LowerPort);
    assert_eq!(row.server.port, 80);
    assert_eq!((row.handshake_us, row.complete), (None, false));
    let row = only_row(&connection()[1..]);
    assert_eq!(row.client_known_by, ClientKnownBy::SynAck);
    assert_eq!(row.server.port, 80);
}

#[test]
fn reused_ports_make_a_new_flow() {
    let mut packets = connection();
    packets.extend(connection().into_iter().map(|packet| Packet {
        at_us: packet.at_us + 10_000,
        number: packet.number + 10_000,
        sequence: packet.sequence + 77_000,
        acknowledged: packet.acknowledged + 77_000,
        ..packet
    }));
    let report = report(&packets);
    assert_eq!(report.summary.flows, 2);
    assert_eq!(report.summary.complete_flows, 2);
    assert_eq!(
        report.rows().map(|row| row.packets()).collect::<Vec<_>>(),
        [8, 8]
    );
    assert_eq!(
        (report.row(1).unwrap().start_s * 1e6).round() as u64,
        10_000
    );
}

#[test]
fn a_packet_captured_twice_counts_once() {
    let packets = connection();
    let doubled: Vec<Packet> = packets
        .iter()
        .flat_map(|packet| {
            let copy = Packet {
                at_us: packet.at_us + 3,
                ..*packet
            };
            [*packet, copy]
        })
        .collect();
    // IPv6 has no identification.
    for ipv6 in [false, true] {
        let mut doubled = doubled.clone();
        for packet in &mut doubled {
            packet.ipv6 = ipv6;
        }
        let report = report(&doubled);
        assert_eq!(report.contents.duplicates, 8, "ipv6: {ipv6}");
        assert_eq!(report.summary.packets, 8);
        assert_eq!(report.summary.retransmissions_by_client, 0);
    }
}

#[test]
fn a_syn_ack_may_be_repeated() {
    let mut packets = connection();
    for packet in &mut packets {
        packet.number = u16::from(packet.flags != SYN | ACK) * (packet.at_us as u16 + 1);
    }
    packets.insert(
        2,
        Packet {
            at_us: 101,
            ..packets[1]
        },
    );
    let report = report(&packets);
    assert_eq!(report.contents.duplicates, 0);
    assert_eq!(report.summary.retransmissions_by_server, 1);
}

#[test]
fn flows_are_limited_in_number_and_to_one_port() {
    let mut packets = connection();
    packets.push(by_client(9_000, SYN, 88_000, 0));
    let file = USUAL.pcap(&packets);
    let settings = Settings {
        port: Some(80),
        max_flows: 1,
    };
    let report = analyse(&file[..], settings).unwrap();
    assert_eq!(report.summary.flows, 1);
    assert_eq!(report.contents.beyond_max_flows, 1);
    let settings = Settings {
        port: Some(81),
        ..settings
    };
    let report = analyse(&file[..], settings).unwrap();
    assert_eq!((report.summary.flows, report.contents.other_ports), (0, 9));
}

#[test]
fn csv_and_json_have_the_same_columns() {
    let report = report(&connection());
    let mut csv = Vec::new();
    write_csv(report.rows(), &mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let row = serde_json::to_value(report.row(0).unwrap()).unwrap();
    let json = row.as_object().unwrap();
    let mut names = lines[0].clone();
    names.sort_unstable();
    let mut keys: Vec<&str> = json.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(names, keys);
    for (name, cell) in lines[0].iter().zip(&lines[1]) {
        let value = &json[*name];
        match value.as_f64() {
            Some(value) => assert_eq!(cell.parse(), Ok(value), "{name}"),
            None => assert_eq!(*cell, value.to_string().trim_matches('"'), "{name}"),
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_an_error_or_counted(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = analyse(&bytes[..], Settings::default());
    }

    #[test]
    fn garbage_in_a_packet_is_counted(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        link in proptest::sample::select(vec![0, 1, 101, 108, 113, 276]),
        wire_bytes in any::<u32>(),
    ) {
        let mut analysis = Analysis::new(Settings::default());
        let frame = frame(link, wire_bytes, &bytes);
        analysis.take(&frame);
        analysis.take(&frame);
    }

    #[test]
    fn a_defect_is_reported_with_its_offset(
        at in 0_usize..2000,
        to in any::<u8>(),
        ng in any::<bool>(),
        big_endian in any::<bool>(),
    ) {
        let writing = Writing { big_endian, ..USUAL };
        let packets = connection();
        let mut file = if ng { writing.pcapng(&packets) } else { writing.pcap(&packets) };
        let at = at % file.len();
        file[at] = to;
        if let Ok(report) = analyse(&file[..], Settings::default())
            && let Some(damage) = report.contents.damage
        {
            prop_assert!(damage.offset as usize <= file.len());
            prop_assert!(damage.packet >= 1);
        }
    }

    #[test]
    fn any_order_of_segments_adds_up(
        steps in proptest::collection::vec(
            (any::<bool>(), any::<u8>(), 0_u32..6000, 0_u32..6000, 0_u16..1500, 0_u16..3),
            1..60,
        ),
    ) {
        let packets: Vec<Packet> = steps
            .iter()
            .enumerate()
            .map(|(at, &(by, flags, sequence, acknowledged, payload, window))| Packet {
                by_client: by,
                payload,
                window,
                number: at as u16 + 1,
                ..by_client(at as i64 * 50, flags, sequence, acknowledged)
            })
            .collect();
        let report = report(&packets);
        prop_assert_eq!(report.summary.packets, steps.len() as u64);
        let payload: u64 = packets.iter().map(|packet| u64::from(packet.payload)).sum();
        prop_assert_eq!(report.summary.payload_bytes, payload);
    }
}
