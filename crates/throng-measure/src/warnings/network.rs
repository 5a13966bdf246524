//! Warnings from the kernel's view of the connections: late connections because of a full queue, plateaus of the
//! service time because of delayed acknowledgements, retransmissions, exhausted ports. Pure; each warning has its
//! numbers, the likely cause, and the remedy.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::warning;
use throng_record::format::{self, counted, list, whole};
use throng_record::{Host, Latency, Load, ServerInfo, Settings, Trial, Warning, delayed_ack};

/// Nanoseconds per millisecond, the unit of these histograms.
const MS: u64 = 1_000_000;

/// Warnings about the connections of one trial.
pub(crate) fn of_trial(
    trial: &Trial,
    server: &ServerInfo,
    settings: &Settings,
    host: &Host,
) -> Vec<Warning> {
    let Some(load) = &trial.load else {
        return Vec::new();
    };
    let network = trial.network.as_ref();
    let seen = NetworkValues {
        metrics: network.map(|network| &network.metrics),
    };
    // Other servers choose their backlog themselves.
    let own_backlog = server.foreign.is_none().then_some(settings.backlog);
    [
        accept_queue_full(load, &seen, own_backlog),
        delayed_ack(load, &seen),
        sent_again(&seen),
        few_ports(load, &seen, host),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A warning about clients that connected late or not at all in a load without trials; `metrics` are the metrics of
/// the accept queue.
pub fn of_queue(load: &Load, metrics: &BTreeMap<String, f64>) -> Option<Warning> {
    let seen = NetworkValues {
        metrics: Some(metrics),
    };
    accept_queue_full(load, &seen, None)
}

/// The values of the network probes.
struct NetworkValues<'a> {
    metrics: Option<&'a BTreeMap<String, f64>>,
}

impl NetworkValues<'_> {
    /// A value; `None` if it could not be measured.
    fn figure(&self, name: &str) -> Option<u64> {
        let value = self.metrics?.get(name)?;
        Some(value.round() as u64)
    }

    /// The same, zero if absent.
    fn count(&self, name: &str) -> u64 {
        self.figure(name).unwrap_or(0)
    }
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
fn late_connections(load: &Load) -> Vec<(u64, u64)> {
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

/// Clients that connected late or not at all because of a full accept queue; `own_backlog` is the backlog of a
/// built-in server.
fn accept_queue_full(
    load: &Load,
    seen: &NetworkValues<'_>,
    own_backlog: Option<u32>,
) -> Option<Warning> {
    let steps = late_connections(load);
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
        let slowest = format::time(slowest);
        consequences.push(format!(
            "the last client got its first reply after {slowest}"
        ));
    }
    let cause = if overflows > 0 {
        let length = seen.figure("accept_backlog");
        let length = length.map_or_else(String::new, |length| format!(" of {length}"));
        let option = own_backlog.map_or_else(String::new, |own| format!(" (--backlog {own})"));
        let queue = format!("the accept queue{length}{option}");
        let dropped = if late + gave_up > 0 {
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
    };
    let message = match (list(&consequences), cause) {
        (consequences, Some(cause)) if consequences.is_empty() => cause,
        (consequences, Some(cause)) => format!("{consequences}: {cause}"),
        (consequences, None) => {
            format!("{consequences}, as if SYNs were lost and retransmitted")
        }
    };
    let remedy = if overflows > 0 && own_backlog.is_some() {
        "raise --backlog and net.core.somaxconn, or accept faster; connect times are those of the queue, not \
         of the server"
    } else if overflows > 0 {
        "let the server listen with a longer backlog, raise net.core.somaxconn, or accept faster; connect times \
         are those of the queue, not of the server"
    } else {
        "raise net.ipv4.tcp_max_syn_backlog, or find what else drops SYNs"
    };
    Some(warning("late-connections", message, remedy))
}

/// Minimum requests on a plateau for a warning.
const FEW: u64 = 10;

/// The number of values around `plateau_ms`, if there are few on either side.
fn plateau(times: &Histogram<u64>, plateau_ms: u64) -> Option<u64> {
    let (from, to) = delayed_ack::around(plateau_ms);
    let width = to - from;
    let there = between(times, from * MS, to * MS);
    let below = between(times, (from - width) * MS, from * MS);
    let above = between(times, to * MS, (to + width) * MS);
    let stands_out = there > 4 * below.max(above) && there >= FEW && there * 100 >= times.len();
    stands_out.then_some(there)
}

/// Requests that waited for a delayed acknowledgement from the other side.
fn delayed_ack(load: &Load, seen: &NetworkValues<'_>) -> Option<Warning> {
    let times = histogram(load.service_time.as_ref())?;
    let held_back = seen.figure("delayed_acks")?;
    delayed_ack::PLATEAUS_MS.into_iter().find_map(|ms| {
        let requests = plateau(&times, ms)?;
        // Some of the plateau was before the window in which the kernel's count was taken.
        (held_back * 2 >= requests).then(|| {
            warning(
                "delayed-ack",
                format!(
                    "{requests} of {} requests took about {ms} ms: one side delayed its ACK \
                     ({held_back} delayed ACKs), while the other waited for it to send the rest of a message \
                     (Nagle's algorithm)",
                    times.len()
                ),
                "set TCP_NODELAY on the side that writes messages in pieces, or write each message with one \
                 call (writev, MSG_MORE)",
            )
        })
    })
}

/// Minimum retransmitted segments for a warning, and their minimum share of all segments sent.
const FEWEST_SEGMENTS: u64 = 10;
const LEAST_SHARE: f64 = 1e-4;

/// Segments retransmitted in the measured phase: loopback loses none by itself.
fn sent_again(seen: &NetworkValues<'_>) -> Option<Warning> {
    let again = seen.figure("segments_retransmitted")?;
    let sent = seen.figure("segments_sent")?.max(1);
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
    let signs = if signs.is_empty() {
        String::new()
    } else {
        format!(": {}", signs.join(", "))
    };
    Some(warning(
        "retransmissions",
        format!(
            "{again} of {sent} segments were retransmitted during the measurement, although loopback loses \
             none by itself{signs}"
        ),
        "raise net.ipv4.tcp_mem, tcp_rmem and net.core.netdev_max_backlog, or use fewer clients or smaller \
         messages",
    ))
}

/// Ports that have run out, or soon will.
fn few_ports(load: &Load, seen: &NetworkValues<'_>, host: &Host) -> Option<Warning> {
    let (first, last) = host.ephemeral_ports?;
    let ports = u64::from(last.saturating_sub(first)) + 1;
    let refused = load.errors.get("no-port").copied().unwrap_or(0);
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
    Some(warning(
        "few-ports",
        message,
        "widen net.ipv4.ip_local_port_range, add --source addresses, or keep connections open",
    ))
}

#[cfg(test)]
mod tests;
