//! The connections, as the kernel and a packet capture see them: late ones because of a full queue, delayed
//! acknowledgements, retransmissions, exhausted ports, and connections that failed.

use hdrhistogram::Histogram;

use super::{Evidence, FindingKind, Observed, Rule, Severity};
use crate::format::{self, counted, list, whole};
use crate::{Latency, Load, delayed_ack as plateaus};
use throng_spec::Close;

/// Nanoseconds per millisecond, the unit of these histograms.
const MS: u64 = 1_000_000;
/// Minimum requests on a plateau.
const FEW: u64 = 10;
/// Minimum retransmitted segments, and their minimum share of all segments sent.
const FEWEST_SEGMENTS: u64 = 10;
const LEAST_SHARE: f64 = 1e-4;

/// Connections failed, or ended badly.
pub static FAILED_FLOWS: FindingKind = FindingKind::new(
    "failed-flows",
    Severity::Note,
    "Captured connections failed, or ended badly.",
    "run `throng flows` on the file in captures/, and see the errors of the clients",
    Rule::Trial(failed_flows),
);

/// Packets are missing from the capture.
pub static DROPPED_PACKETS: FindingKind = FindingKind::new(
    "dropped-packets",
    Severity::Note,
    "The kernel dropped packets before tcpdump saw them, so counts of the capture are too low.",
    "use fewer --clients, a shorter --duration or more CPUs",
    Rule::Trial(dropped_packets),
);

/// Clients connected late or not at all.
pub static LATE_CONNECTIONS: FindingKind = FindingKind::new(
    "late-connections",
    Severity::Note,
    "Clients connected late or not at all because a queue of the server was full.",
    "raise net.ipv4.tcp_max_syn_backlog, or find what else drops SYNs",
    Rule::Trial(late_connections),
);

/// Requests waited for a delayed acknowledgement.
pub static DELAYED_ACK: FindingKind = FindingKind::new(
    "delayed-ack",
    Severity::Note,
    "Requests waited for a delayed acknowledgement of the other side.",
    "set TCP_NODELAY on the side that writes messages in pieces, or write each message with one call (writev, MSG_MORE)",
    Rule::Trial(delayed_ack),
);

/// Segments were retransmitted.
pub static RETRANSMISSIONS: FindingKind = FindingKind::new(
    "retransmissions",
    Severity::Note,
    "Segments were retransmitted during the measurement.",
    "raise net.ipv4.tcp_mem, tcp_rmem and net.core.netdev_max_backlog, or use fewer clients or smaller messages",
    Rule::Trial(retransmissions),
);

/// Local ports have run out, or soon will.
pub static FEW_PORTS: FindingKind = FindingKind::new(
    "few-ports",
    Severity::Note,
    "Local ports have run out, or soon will.",
    "widen net.ipv4.ip_local_port_range, add --source addresses, or keep connections open",
    Rule::Trial(few_ports),
);

/// A count of the capture, if it is not zero.
fn captured(seen: &Observed<'_>, name: &str) -> Option<f64> {
    seen.network(name).filter(|value| *value > 0.0)
}

fn failed_flows(seen: &Observed<'_>) -> Option<Evidence> {
    let clients_reset = seen.circumstances.settings.load.close == Close::Reset;
    let ways = [
        ("refused_flows", "refused by the server"),
        ("unanswered_flows", "without a reply to their SYN"),
        ("flows_reset_by_server", "reset by the server"),
        ("flows_reset_by_client", "reset by the client"),
    ];
    let on_purpose = |name: &str| clients_reset && name == "flows_reset_by_client";
    let parts: Vec<String> = ways
        .iter()
        .filter(|(name, _)| !on_purpose(name))
        .filter_map(|(name, how)| Some(format!("{} {how}", whole(captured(seen, name)?))))
        .collect();
    (!parts.is_empty()).then(|| {
        let of = captured(seen, "flows").map_or_else(String::new, |flows| {
            format!(" of {} captured connections", whole(flows))
        });
        format!("some{of} failed: {}", list(&parts)).into()
    })
}

fn dropped_packets(seen: &Observed<'_>) -> Option<Evidence> {
    let dropped = whole(captured(seen, "capture_dropped")?);
    let kept = captured(seen, "packets").map_or_else(String::new, |packets| {
        format!(" ({} were captured)", whole(packets))
    });
    let text = format!(
        "the kernel dropped {dropped} packets before tcpdump saw them{kept}: bytes, retransmissions and complete \
         connections are undercounted"
    );
    Some(text.into())
}

/// The number of values in a histogram from `low` to below `high`.
fn between(times: &Histogram<u64>, low: u64, high: u64) -> u64 {
    times.count_between(low, high - 1)
}

fn histogram(latency: Option<&Latency>) -> Option<Histogram<u64>> {
    latency?.times().ok()
}

/// Connections that needed a retransmitted SYN, by whole seconds. The kernel waits 1 s before it sends another, then,
/// depending on its settings, another 1 s each time or twice as long each time.
pub(super) fn late_by_seconds(load: &Load) -> Vec<(u64, u64)> {
    let Some(times) = histogram(load.connect_time.as_ref()) else {
        return Vec::new();
    };
    let step = |second: u64| {
        let due = second * 1000 * MS;
        (second, between(&times, due - 50 * MS, due + 300 * MS))
    };
    let last = times.max() / (1000 * MS) + 1;
    let mut steps: Vec<(u64, u64)> = (1..=last.min(127)).map(step).collect();
    steps.retain(|(_, count)| *count > 0);
    let on_steps: u64 = steps.iter().map(|(_, count)| count).sum();
    let late = between(&times, 950 * MS, u64::MAX);
    // Other times were spent waiting for something else.
    if on_steps * 5 >= late * 4 {
        steps
    } else {
        Vec::new()
    }
}

/// "after 1 s", "in steps of 1 s, 2 s and 3 s".
fn seconds_in_words(steps: &[(u64, u64)]) -> String {
    let mut seconds: Vec<String> = steps
        .iter()
        .map(|(second, _)| format!("{second} s"))
        .collect();
    let last = seconds.pop().unwrap_or_default();
    if seconds.is_empty() {
        format!("only after {last}")
    } else {
        format!("in steps of {} and {last}", seconds.join(", "))
    }
}

/// What made connections late, if the kernel counted it.
fn why_late(seen: &Observed<'_>, own_backlog: Option<u32>, is_late: bool) -> Option<String> {
    let overflows = seen.count("listen_overflows");
    let syn_drops = seen.count("syn_queue_drops");
    if overflows > 0 {
        let length = seen
            .network("accept_backlog")
            .map_or_else(String::new, |length| format!(" of {length:.0}"));
        let option = own_backlog.map_or_else(String::new, |own| format!(" (--backlog {own})"));
        let queue = format!("the accept queue{length}{option}");
        let dropped = if is_late {
            " and SYNs were dropped"
        } else {
            ": handshakes completed only on the clients' side"
        };
        let times = counted(overflows.try_into().unwrap_or(u32::MAX), "time");
        Some(format!("{queue} overflowed {times}{dropped}"))
    } else if syn_drops > 0 {
        Some(format!(
            "the SYN queue was full and {syn_drops} SYNs were dropped"
        ))
    } else {
        let again = seen.count("syn_retransmits");
        (again > 0).then(|| format!("{again} SYNs or SYN-ACKs were retransmitted"))
    }
}

fn late_connections(seen: &Observed<'_>) -> Option<Evidence> {
    let load = seen.load;
    let circumstances = &seen.circumstances;
    // Other servers choose their backlog themselves.
    let is_own = circumstances.server.foreign.is_none();
    let own_backlog = is_own.then_some(circumstances.settings.backlog);
    let steps = late_by_seconds(load);
    let late: u64 = steps.iter().map(|(_, count)| count).sum();
    let gave_up = load.errors.get("connect-timeout").copied().unwrap_or(0);
    let overflows = seen.count("listen_overflows");
    let syn_drops = seen.count("syn_queue_drops");
    if late == 0 && gave_up == 0 && overflows == 0 && syn_drops == 0 {
        return None;
    }
    let mut consequences = Vec::new();
    if late > 0 {
        let of = load.connections.max(u64::from(load.connected));
        let what = if of > u64::from(load.clients) {
            "connections opened"
        } else {
            "clients connected"
        };
        consequences.push(format!(
            "{} of {} {what} {}",
            whole(late as f64),
            whole(of as f64),
            seconds_in_words(&steps)
        ));
    }
    if gave_up > 0 {
        consequences.push(format!("{} did not connect in time", whole(gave_up as f64)));
    }
    // The last part of a handshake is dropped too; then only the client considers it complete.
    if overflows > 0 && load.never_served > 0 {
        let unserved = counted(load.never_served, "client");
        consequences.push(format!("{unserved} got no reply"));
    }
    let slowest = load.first_reply.as_ref().map_or(0.0, |times| times.max_us);
    if overflows > 0 && slowest >= 950_000.0 {
        let shown = format::time(slowest);
        consequences.push(format!("the last client got its first reply after {shown}"));
    }
    let cause = why_late(seen, own_backlog, late + gave_up > 0);
    let message = match (list(&consequences), cause) {
        (consequences, Some(cause)) if consequences.is_empty() => cause,
        (consequences, Some(cause)) => format!("{consequences}: {cause}"),
        (consequences, None) => {
            format!("{consequences}, as if SYNs were lost and retransmitted")
        }
    };
    let evidence = Evidence::from(message);
    Some(if overflows > 0 && own_backlog.is_some() {
        evidence.remedy(
            "raise --backlog and net.core.somaxconn, or accept faster; connect times are those of the queue, not of \
             the server",
        )
    } else if overflows > 0 {
        evidence.remedy(
            "let the server listen with a longer backlog, raise net.core.somaxconn, or accept faster; connect times \
             are those of the queue, not of the server",
        )
    } else {
        evidence
    })
}

/// The number of values around `plateau_ms`, if there are few on either side.
fn plateau(times: &Histogram<u64>, plateau_ms: u64) -> Option<u64> {
    let (from, to) = plateaus::around(plateau_ms);
    let width = to - from;
    let there = between(times, from * MS, to * MS);
    let below = between(times, (from - width) * MS, from * MS);
    let above = between(times, to * MS, (to + width) * MS);
    let stands_out = there > 4 * below.max(above) && there >= FEW && there * 100 >= times.len();
    stands_out.then_some(there)
}

fn delayed_ack(seen: &Observed<'_>) -> Option<Evidence> {
    let times = histogram(seen.load.service_time.as_ref())?;
    let held_back = seen.network("delayed_acks")?;
    plateaus::PLATEAUS_MS.into_iter().find_map(|ms| {
        let requests = plateau(&times, ms)?;
        // Some of the plateau was before the window in which the kernel's count was taken.
        (held_back * 2.0 >= requests as f64).then(|| {
            let text = format!(
                "{requests} of {} requests took about {ms} ms: one side delayed its ACK ({held_back:.0} delayed ACKs), \
                 while the other waited for it to send the rest of a message (Nagle's algorithm)",
                times.len()
            );
            text.into()
        })
    })
}

fn retransmissions(seen: &Observed<'_>) -> Option<Evidence> {
    seen.network("segments_retransmitted")?;
    seen.network("segments_sent")?;
    let again = seen.count("segments_retransmitted");
    let sent = seen.count("segments_sent").max(1);
    if again < FEWEST_SEGMENTS
        || (again as f64) < sent as f64 * LEAST_SHARE
        || again <= seen.count("syn_retransmits")
    {
        return None;
    }
    let signs: Vec<String> = [
        ("memory_pressures", "TCP ran short of memory", "times"),
        ("receive_queue_prunes", "receive buffers were full", "times"),
        ("backlog_drops", "a busy socket dropped", "segments"),
        ("retransmit_timeouts", "ACKs timed out", "times"),
    ]
    .into_iter()
    .filter(|(name, ..)| seen.count(name) > 0)
    .map(|(name, what, unit)| format!("{what} ({} {unit})", seen.count(name)))
    .collect();
    let reasons = if signs.is_empty() {
        String::new()
    } else {
        format!(": {}", signs.join(", "))
    };
    Some(format!(
            "{again} of {sent} segments were retransmitted during the measurement, although loopback loses \
             none by itself{reasons}"
        ).into())
}

fn few_ports(seen: &Observed<'_>) -> Option<Evidence> {
    let ports = seen.circumstances.host.ports()?;
    let refused = seen.load.errors.get("no-port").copied().unwrap_or(0);
    let waiting = seen.count("time_wait_max");
    if refused == 0 && waiting * 2 < ports {
        return None;
    }
    let mut message = String::new();
    if refused > 0 {
        message = format!("{refused} connections got no local port: ");
    }
    message += &format!(
        "up to {waiting} closed connections kept their ports for a minute (TIME_WAIT), of {ports} per \
         source address"
    );
    Some(message.into())
}
