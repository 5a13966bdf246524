//! The flows of a capture for a terminal: totals, caveats, then one line per flow.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use crate::flows::flow::Ending;
use crate::flows::row::Row;
use crate::flows::summary::{Percentiles, Summary};
use crate::flows::{Contents, Report};
use crate::record::format::{ABSENT, bytes, number, or_absent, time, whole};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const WARY: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// The complete text, in lines of at most `width` columns if possible.
pub(super) fn table(name: &str, report: &Report, rows: &[Row], width: usize) -> String {
    let (contents, summary) = (&report.contents, &report.summary);
    let mut text = format!("{STRONG}{name}{STRONG:#}\n\n");
    for (title, content) in totals(contents, summary) {
        let _ = writeln!(text, "  {QUIET}{title:<16}{QUIET:#} {content}");
    }
    text.push_str(&percentiles(summary));
    let wary = wary(contents, summary);
    if !wary.is_empty() {
        text.push('\n');
    }
    for note in wary {
        let _ = writeln!(text, "{WARY}note:{WARY:#} {note}");
    }
    text.push_str(&lines(rows, width));
    let left = summary.flows as usize - rows.len();
    if left > 0 {
        let _ = writeln!(
            text,
            "{QUIET}and {} more (--limit {}, or --csv){QUIET:#}",
            whole(left as f64),
            summary.flows
        );
    }
    text
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

fn percentiles(summary: &Summary) -> String {
    type Form = fn(f64) -> String;
    let rows: [(&str, Option<Percentiles>, Form); 4] = [
        ("Handshake", summary.handshake_us, time),
        ("Flow's time", summary.flow_duration_s, |s| time(s * 1e6)),
        ("Flow's rate", summary.flow_throughput_bytes_per_s, rate),
        ("Flow's packets", summary.packets_per_flow, number),
    ];
    let mut text = String::new();
    for (title, percentiles, form) in rows {
        let Some(one) = percentiles else { continue };
        if text.is_empty() {
            let _ = writeln!(
                text,
                "\n  {QUIET}{:<16} {:>12} {:>12} {:>12} {:>12} {:>12}{QUIET:#}",
                "", "min", "p50", "p90", "p99", "max"
            );
        }
        let _ = writeln!(
            text,
            "  {QUIET}{title:<16}{QUIET:#} {:>12} {:>12} {:>12} {:>12} {:>12}",
            form(one.min),
            form(one.p50),
            form(one.p90),
            or_absent(one.p99, form),
            form(one.max)
        );
    }
    text
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

/// A column of the table.
struct Column {
    title: &'static str,
    text: fn(&Row) -> String,
    /// Whether to align left, as names are; numbers are aligned right.
    left: bool,
    /// On a narrow terminal, columns with the highest number are dropped first; 0 always stays.
    drop: u8,
}

const fn column(title: &'static str, drop: u8, text: fn(&Row) -> String) -> Column {
    Column {
        title,
        text,
        left: false,
        drop,
    }
}

const COLUMNS: &[Column] = &[
    column("#", 0, |row| row.flow.to_string()),
    Column {
        title: "Client",
        text: |row| row.client.to_string(),
        left: true,
        drop: 0,
    },
    Column {
        title: "Server",
        text: |row| row.server.to_string(),
        left: true,
        drop: 6,
    },
    column("Start", 9, |row| time(row.start_s * 1e6)),
    column("Time", 0, |row| time(row.duration_s * 1e6)),
    column("Handshake", 4, |row| or_absent(row.handshake_us, time)),
    column("Packets", 5, |row| {
        format!("{}+{}", row.packets_by_client, row.packets_by_server)
    }),
    column("Sent", 2, |row| bytes(row.payload_bytes_by_client as f64)),
    column("Received", 2, |row| {
        bytes(row.payload_bytes_by_server as f64)
    }),
    column("On the wire", 10, |row| {
        bytes((row.wire_bytes_by_client + row.wire_bytes_by_server) as f64)
    }),
    column("Rate", 3, |row| or_absent(row.throughput_bytes_per_s, rate)),
    column("Again", 1, |row| match row.retransmissions() {
        0 => ABSENT.to_owned(),
        _ => format!(
            "{}+{}",
            row.retransmissions_by_client, row.retransmissions_by_server
        ),
    }),
    Column {
        title: "End",
        text: |row| row.ending.name().replace('-', " "),
        left: true,
        drop: 1,
    },
];

fn lines(rows: &[Row], width: usize) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut laid: Vec<(&Column, Vec<String>, usize)> = COLUMNS
        .iter()
        .map(|column| {
            let cells: Vec<String> = rows.iter().map(column.text).collect();
            let widest = cells.iter().map(|cell| cell.chars().count()).max();
            let width = widest.unwrap_or(0).max(column.title.chars().count());
            (column, cells, width)
        })
        .collect();
    while laid.iter().map(|(_, _, width)| width + 2).sum::<usize>() > width + 2 {
        let last = laid
            .iter()
            .map(|(column, ..)| column.drop)
            .max()
            .unwrap_or(0);
        if last == 0 {
            break;
        }
        laid.retain(|(column, ..)| column.drop != last);
    }
    let line = |cell: &dyn Fn(&Column, &[String]) -> String| {
        let cells: Vec<String> = laid
            .iter()
            .map(|(column, cells, width)| {
                if column.left {
                    format!("{:<width$}", cell(column, cells))
                } else {
                    format!("{:>width$}", cell(column, cells))
                }
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let heading = line(&|column, _| column.title.to_owned());
    let mut text = format!("\n{QUIET}{heading}{QUIET:#}\n");
    for (at, row) in rows.iter().enumerate() {
        let style = match row.ending {
            Ending::Refused | Ending::Unanswered => BAD,
            Ending::ResetByClient | Ending::ResetByServer => WARY,
            _ if row.retransmissions() > 0 => WARY,
            _ => Style::new(),
        };
        let _ = writeln!(
            text,
            "{style}{}{style:#}",
            line(&|_, cells| cells[at].clone())
        );
    }
    let shown = |title| laid.iter().any(|(column, ..)| column.title == title);
    if shown("Packets") || shown("Again") {
        let _ = writeln!(
            text,
            "{QUIET}packets (retransmissions): client + server{QUIET:#}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::fixture::{ACK, Packet, RST, SYN, USUAL, by_client, by_server, connection};
    use crate::flows::{Settings, analyse};

    fn shown(packets: &[Packet], width: usize) -> String {
        let report = analyse(&USUAL.pcapng(packets)[..], Settings::default()).unwrap();
        let rows: Vec<Row> = report.rows().take(2).collect();
        let text = table("load.pcapng", &report, &rows, width);
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
