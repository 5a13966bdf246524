//! The flows of a capture as blocks: totals, caveats, then a table with a row per flow.

use crate::flows::flow::Ending;
use crate::flows::row::Row;
use crate::flows::summary::{Percentiles, Summary};
use crate::flows::{Contents, Report};
use crate::record::format::{ABSENT, bytes, number, or_absent, time, whole};
use crate::report::document::{self, Block, Cell, Column, Role, Table, Tone};

/// Everything about a capture, with these of its flows.
pub(super) fn blocks(name: &str, report: &Report, rows: &[Row]) -> Vec<Block> {
    let (contents, summary) = (&report.contents, &report.summary);
    let totals = totals(contents, summary)
        .into_iter()
        .map(|(title, content)| (title.into(), content.into()));
    let mut blocks = vec![
        Block::Heading(name.into()),
        Block::Facts(totals.collect()),
        Block::Table(percentiles(summary)),
    ];
    let notes = wary(contents, summary).into_iter();
    blocks.extend(notes.map(|note| Block::Warning(note, String::new())));
    blocks.push(Block::Table(flows(rows)));
    let mut below = "Packets and those sent again: client + server.".to_owned();
    let left = summary.flows as usize - rows.len();
    if left > 0 {
        let (left, all) = (count(left as u64, "flow"), summary.flows);
        below += &format!(" {left} not shown: --limit {all}, or --csv.");
    }
    if !rows.is_empty() {
        blocks.push(Block::paragraph(Role::Fine, below));
    }
    blocks
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", whole(number as f64))
}

fn rate(bytes_per_s: f64) -> String {
    format!("{}/s", bytes(bytes_per_s))
}

fn totals(contents: &Contents, summary: &Summary) -> Vec<(&'static str, String)> {
    let endings: Vec<String> = summary
        .endings
        .iter()
        .map(|(ending, flows)| format!("{} {}", whole(*flows as f64), ending.replace('-', " ")))
        .collect();
    let retransmissions = summary.retransmissions_by_client + summary.retransmissions_by_server;
    let mut totals = vec![(
        "Flows",
        format!(
            "{}, {} of them seen from SYN to end",
            whole(summary.flows as f64),
            whole(summary.complete_flows as f64)
        ),
    )];
    if !endings.is_empty() {
        totals.push(("Ended", endings.join(", ")));
    }
    totals.extend([
        (
            "Packets",
            format!(
                "{} in {}, of {} in the file",
                whole(summary.packets as f64),
                time(summary.duration_s.max(0.0) * 1e6),
                whole(contents.packets as f64)
            ),
        ),
        (
            "Bytes",
            format!(
                "{} on the wire, {} of them payload",
                bytes(summary.wire_bytes as f64),
                bytes(summary.payload_bytes as f64)
            ),
        ),
        (
            "Throughput",
            format!(
                "{} of payload, all flows together",
                or_absent(summary.throughput_bytes_per_s, rate)
            ),
        ),
        (
            "Retransmissions",
            format!(
                "{} ({} % of packets): {} by clients ({} SYN), {} by servers; {} out of order",
                whole(retransmissions as f64),
                number(100.0 * retransmissions as f64 / summary.packets.max(1) as f64),
                whole(summary.retransmissions_by_client as f64),
                whole(summary.syn_retransmissions as f64),
                whole(summary.retransmissions_by_server as f64),
                whole(summary.out_of_order as f64)
            ),
        ),
        (
            "Resets",
            format!(
                "{} by clients, {} by servers",
                whole(summary.resets_by_client as f64),
                whole(summary.resets_by_server as f64)
            ),
        ),
    ]);
    totals
}

fn percentiles(summary: &Summary) -> Table {
    type Form = fn(f64) -> String;
    let measured: [(&str, Option<Percentiles>, Form); 4] = [
        ("Handshake", summary.handshake_us, time),
        ("Flow's time", summary.flow_duration_s, |s| time(s * 1e6)),
        ("Flow's rate", summary.flow_throughput_bytes_per_s, rate),
        ("Flow's packets", summary.packets_per_flow, number),
    ];
    let row = |(title, percentiles, form): (&str, Option<Percentiles>, Form)| {
        let one = percentiles?;
        let values = [form(one.min), form(one.p50), form(one.p90)];
        let largest = [or_absent(one.p99, form), form(one.max)];
        let cells = values.into_iter().chain(largest).map(Cell::plain);
        Some(document::Row::of(title, cells.collect()))
    };
    let titles = ["min", "p50", "p90", "p99", "max"].map(Column::number);
    let columns = std::iter::once(Column::text("")).chain(titles).collect();
    Table::of(
        "Percentiles",
        columns,
        measured.into_iter().filter_map(row).collect(),
    )
}

/// Caveats about the figures.
fn wary(contents: &Contents, summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |packets: u64, text: &str| {
        if packets > 0 {
            notes.push(format!("{} {text}", count(packets, "packet")));
        }
    };
    note(
        contents.dropped_by_kernel.unwrap_or(0),
        "dropped by the kernel while capturing: flows have gaps; capture with a larger buffer (-B)",
    );
    note(
        contents.duplicates,
        "captured twice, on several devices or in both directions: counted once",
    );
    note(
        contents.beyond_max_flows,
        "of flows beyond --max-flows: not in any figure",
    );
    note(
        contents.fragments,
        "left out as IP fragments, which are not reassembled",
    );
    note(
        contents.captured_too_short,
        "captured too short to analyse; capture more of each (-s 128)",
    );
    note(contents.malformed, "left out as malformed");
    note(contents.unknown_link, "left out: unknown link type");
    note(contents.other_ports, "of other ports");
    note(contents.not_tcp, "not TCP");
    if summary.guessed_clients > 0 {
        notes.push(format!(
            "{} began before the capture: the side with the lower port counts as the server",
            count(summary.guessed_clients, "flow")
        ));
    }
    notes
}

fn flows(rows: &[Row]) -> Table {
    let columns = vec![
        Column::number("#"),
        Column::text("Client"),
        Column::text("Server").dropped(6),
        Column::number("Start").dropped(9),
        Column::number("Time"),
        Column::number("Handshake").dropped(4),
        Column::number("Packets").dropped(5),
        Column::number("Sent").dropped(2),
        Column::number("Received").dropped(2),
        Column::number("On the wire").dropped(10),
        Column::number("Rate").dropped(3),
        Column::number("Again").dropped(1),
        Column::text("End").dropped(1),
    ];
    Table::of("Flows", columns, rows.iter().map(flow).collect())
}

fn flow(row: &Row) -> document::Row {
    let both = |client: u64, server: u64| format!("{client}+{server}");
    let again = match row.retransmissions() {
        0 => Cell::plain(ABSENT),
        _ => Cell::plain(both(
            row.retransmissions_by_client,
            row.retransmissions_by_server,
        ))
        .toned(Tone::Bad),
    };
    let ending = match row.ending {
        Ending::Refused | Ending::Unanswered | Ending::ResetByClient | Ending::ResetByServer => {
            Tone::Bad
        }
        _ => Tone::Plain,
    };
    let wire_bytes = row.wire_bytes_by_client + row.wire_bytes_by_server;
    let cells = vec![
        Cell::plain(row.client.to_string()),
        Cell::plain(row.server.to_string()),
        Cell::plain(time(row.start_s * 1e6)),
        Cell::plain(time(row.duration_s * 1e6)),
        Cell::plain(or_absent(row.handshake_us, time)),
        Cell::plain(both(row.packets_by_client, row.packets_by_server)),
        Cell::plain(bytes(row.payload_bytes_by_client as f64)),
        Cell::plain(bytes(row.payload_bytes_by_server as f64)),
        Cell::plain(bytes(wire_bytes as f64)),
        Cell::plain(or_absent(row.throughput_bytes_per_s, rate)),
        again,
        Cell::plain(row.ending.name().replace('-', " ")).toned(ending),
    ];
    document::Row::of(row.flow.to_string(), cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::fixture::{ACK, Packet, RST, SYN, USUAL, by_client, by_server, connection};
    use crate::flows::{Settings, analyse};
    use crate::report::document::terminal;

    fn shown(packets: &[Packet], width: usize) -> String {
        let report = analyse(&USUAL.pcapng(packets)[..], Settings::default()).unwrap();
        let rows: Vec<Row> = report.rows().take(2).collect();
        let text = terminal::blocks(&blocks("load.pcapng", &report, &rows), width);
        anstream::adapter::strip_str(&text).to_string()
    }

    fn packets() -> Vec<Packet> {
        let mut packets = connection();
        packets.push(by_client(900_000, SYN, 70_000, 0));
        packets.push(by_server(900_040, RST | ACK, 0, 70_001));
        packets.push(by_client(1_900_000, SYN, 80_000, 0));
        packets
    }

    #[test]
    fn a_small_capture() {
        insta::assert_snapshot!(shown(&packets(), 140));
    }

    #[test]
    fn narrow_terminals_have_fewer_columns() {
        for width in [80, 100, 120] {
            let text = shown(&packets(), width);
            let (_, lines) = text.split_once("\n#").unwrap();
            for line in lines.lines().take(3) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_capture_of_nothing() {
        let text = shown(&[], 80);
        assert!(text.contains("0, 0 of them seen from SYN to end"), "{text}");
    }
}
