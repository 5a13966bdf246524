use super::*;
use crate::fixture::{USUAL, connection};

fn read(file: &[u8]) -> (u64, Option<Damage>) {
    let mut capture = match Capture::open(file) {
        Ok(capture) => capture,
        Err(damage) => return (0, Some(damage)),
    };
    let mut packets = 0;
    loop {
        match capture.next_frame() {
            Ok(Some(frame)) => packets = frame.number,
            Ok(None) => return (packets, None),
            Err(damage) => return (packets, Some(damage)),
        }
    }
}

fn complaint(file: &[u8]) -> String {
    read(file)
        .1
        .map_or_else(String::new, |damage| damage.to_string())
}

#[test]
fn unknown_formats_are_reported() {
    assert!(complaint(b"").contains("ends before its header"));
    assert!(complaint(b"GET / HTTP/1.1").contains("begins with 47455420"));
    assert!(complaint(&[0x28, 0xb5, 0x2f, 0xfd]).contains("zstdcat FILE | throng flows -"));
    assert!(complaint(&USUAL.pcap(&[])[..20]).contains("within its header"));
    assert_eq!(read(&USUAL.pcap(&[])), (0, None));
}

#[test]
fn a_truncated_file_gives_the_packets_before_the_cut_and_its_offset() {
    for file in [USUAL.pcap(&connection()), USUAL.pcapng(&connection())] {
        let (whole, damage) = read(&file);
        assert_eq!((whole, damage), (8, None));
        let mut before = 0;
        for cut in 24..=file.len() {
            let (packets, damage) = read(&file[..cut]);
            assert!((before..=8).contains(&packets));
            before = packets;
            if let Some(damage) = damage {
                assert!(damage.what.contains("ends"), "{damage}");
                assert!([0, packets + 1].contains(&damage.packet), "{damage}");
                assert!(damage.offset <= cut as u64);
            }
        }
        assert_eq!(before, 8);
    }
}

#[test]
fn an_impossible_length_is_reported_with_its_offset() {
    let mut file = USUAL.pcap(&connection());
    let second = 24 + 16 + 54;
    file[second + 8..second + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        complaint(&file),
        format!(
            "packet 2, byte {second}: it says that 4294967295 bytes were captured, which no packet \
             has; the file is damaged here"
        )
    );
}

#[test]
fn a_file_is_read_across_many_windows() {
    let packets: Vec<_> = (0..4000).flat_map(|_| connection()).collect();
    for file in [USUAL.pcap(&packets), USUAL.pcapng(&packets)] {
        assert!(file.len() > 4 << 20);
        assert_eq!(read(&file), (32_000, None));
    }
}
