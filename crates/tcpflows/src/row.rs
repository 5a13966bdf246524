//! A flow as reported: the same values in JSON and CSV.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::flow::{ClientKnownBy, Ending, Flow};
use super::packet::Endpoint;

/// The values of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Row {
    /// Number, in the order of first packets, from 1.
    pub flow: u64,
    /// Client: address and port.
    pub client: Endpoint,
    /// Server: address and port.
    pub server: Endpoint,
    /// How the client was identified.
    pub client_known_by: ClientKnownBy,
    /// Time from the first packet of the capture to the first packet of the flow, seconds.
    pub start_s: f64,
    /// Time from the flow's first packet to its last, seconds.
    pub duration_s: f64,
    /// Time from the first SYN to the acknowledgement that ends the handshake.
    pub handshake_us: Option<f64>,
    /// SYNs after the first; also included in retransmissions.
    pub syn_retransmissions: u32,
    /// Packets that the client sent.
    pub packets_by_client: u64,
    /// Packets that the server sent.
    pub packets_by_server: u64,
    /// Payload bytes that the client sent, including retransmissions.
    pub payload_bytes_by_client: u64,
    /// The same for the server.
    pub payload_bytes_by_server: u64,
    /// Bytes of the client's packets, with headers.
    pub wire_bytes_by_client: u64,
    /// The same for the server.
    pub wire_bytes_by_server: u64,
    /// Payload bytes in both directions, divided by the duration.
    pub throughput_bytes_per_s: Option<f64>,
    /// Retransmissions by the client, as Wireshark defines them.
    pub retransmissions_by_client: u64,
    /// The same for the server.
    pub retransmissions_by_server: u64,
    /// Out-of-order segments from the client; they do not count as retransmissions.
    pub out_of_order_by_client: u32,
    /// The same for the server.
    pub out_of_order_by_server: u32,
    /// Keep-alive segments.
    pub keep_alives: u64,
    /// Resets that the client sent.
    pub resets_by_client: u32,
    /// Resets that the server sent.
    pub resets_by_server: u32,
    /// Whether the client sent FIN.
    pub fin_by_client: bool,
    /// Whether the server sent FIN.
    pub fin_by_server: bool,
    /// How it ended.
    pub ending: Ending,
    /// Whether it was captured from SYN to end.
    pub complete: bool,
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Row {
    pub(super) fn new(number: u64, flow: &Flow, capture_began_ns: i64) -> Self {
        let [client, server] = &flow.sides;
        let duration_s = seconds(flow.first_ns, flow.last_ns);
        let payload_bytes = client.payload_bytes + server.payload_bytes;
        let [fin_by_client, fin_by_server] = flow.fins();
        Self {
            flow: number,
            client: flow.client,
            server: flow.server,
            client_known_by: flow.known_by,
            start_s: seconds(capture_began_ns, flow.first_ns),
            duration_s,
            handshake_us: flow.handshake_ns.map(|time| time as f64 / 1e3),
            syn_retransmissions: flow.repeated_syns(),
            packets_by_client: client.packets,
            packets_by_server: server.packets,
            payload_bytes_by_client: client.payload_bytes,
            payload_bytes_by_server: server.payload_bytes,
            wire_bytes_by_client: client.wire_bytes,
            wire_bytes_by_server: server.wire_bytes,
            throughput_bytes_per_s: (duration_s > 0.0).then(|| payload_bytes as f64 / duration_s),
            retransmissions_by_client: client.retransmissions,
            retransmissions_by_server: server.retransmissions,
            out_of_order_by_client: client.out_of_order,
            out_of_order_by_server: server.out_of_order,
            keep_alives: u64::from(client.keep_alives) + u64::from(server.keep_alives),
            resets_by_client: client.resets,
            resets_by_server: server.resets,
            fin_by_client,
            fin_by_server,
            ending: flow.ending(),
            complete: flow.is_complete(),
        }
    }

    /// Packets in both directions.
    pub fn packets(&self) -> u64 {
        self.packets_by_client + self.packets_by_server
    }

    /// Payload bytes in both directions.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes_by_client + self.payload_bytes_by_server
    }

    /// Retransmissions in both directions.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions_by_client + self.retransmissions_by_server
    }

    /// Resets by both sides.
    pub fn resets(&self) -> u32 {
        self.resets_by_client + self.resets_by_server
    }
}

pub(super) fn seconds(from_ns: i64, to_ns: i64) -> f64 {
    (i128::from(to_ns) - i128::from(from_ns)) as f64 / 1e9
}

/// Columns of the CSV file: name and value.
type Column = (&'static str, fn(&Row) -> String);

const COLUMNS: &[Column] = &[
    ("flow", |row| row.flow.to_string()),
    ("client", |row| row.client.to_string()),
    ("server", |row| row.server.to_string()),
    ("client_known_by", |row| {
        row.client_known_by.name().to_owned()
    }),
    ("start_s", |row| row.start_s.to_string()),
    ("duration_s", |row| row.duration_s.to_string()),
    ("handshake_us", |row| or_empty(row.handshake_us)),
    ("syn_retransmissions", |row| {
        row.syn_retransmissions.to_string()
    }),
    ("packets_by_client", |row| row.packets_by_client.to_string()),
    ("packets_by_server", |row| row.packets_by_server.to_string()),
    ("payload_bytes_by_client", |row| {
        row.payload_bytes_by_client.to_string()
    }),
    ("payload_bytes_by_server", |row| {
        row.payload_bytes_by_server.to_string()
    }),
    ("wire_bytes_by_client", |row| {
        row.wire_bytes_by_client.to_string()
    }),
    ("wire_bytes_by_server", |row| {
        row.wire_bytes_by_server.to_string()
    }),
    ("throughput_bytes_per_s", |row| {
        or_empty(row.throughput_bytes_per_s)
    }),
    ("retransmissions_by_client", |row| {
        row.retransmissions_by_client.to_string()
    }),
    ("retransmissions_by_server", |row| {
        row.retransmissions_by_server.to_string()
    }),
    ("out_of_order_by_client", |row| {
        row.out_of_order_by_client.to_string()
    }),
    ("out_of_order_by_server", |row| {
        row.out_of_order_by_server.to_string()
    }),
    ("keep_alives", |row| row.keep_alives.to_string()),
    ("resets_by_client", |row| row.resets_by_client.to_string()),
    ("resets_by_server", |row| row.resets_by_server.to_string()),
    ("fin_by_client", |row| row.fin_by_client.to_string()),
    ("fin_by_server", |row| row.fin_by_server.to_string()),
    ("ending", |row| row.ending.name().to_owned()),
    ("complete", |row| row.complete.to_string()),
];

fn or_empty(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Writes rows as CSV: a header, then one line per flow. Unknown values are empty.
pub fn write_csv(rows: impl Iterator<Item = Row>, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    writeln!(out, "{}", names.join(","))?;
    for row in rows {
        let cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(&row)).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    Ok(())
}
