//! Scalability in sentences.

use crate::summary::Summary;
use crate::summary::scalability::{Scaling, percent, power, range};
use throng_record::format::{counted, list, whole};
use throng_stats::scalability::Estimate;

/// An exponent this close to 0 is level: ten times the clients change the cost by an eighth at most.
const LEVEL: f64 = 0.05;

/// A power that is off by more than this describes only a trend.
const ROUGH: f64 = 0.15;

/// The maximum number of servers named one by one.
const MOST_NAMED: usize = 4;

/// The sentences about a run; empty without estimates.
pub(super) fn sentences(summary: &Summary) -> Vec<String> {
    let mut sentences: Vec<String> = [growth(summary), peaks(summary)]
        .into_iter()
        .flatten()
        .collect();
    sentences.extend(rough(&summary.scaling));
    sentences
}

/// "From 1 to 900 clients, CPU per request grows as n^0.41 (0.38–0.44) with select; it does not change
/// significantly with epoll."
fn growth(summary: &Summary) -> Option<String> {
    let (fewest, most) = (summary.clients.first()?, summary.clients.last()?);
    let mut all: Vec<(&str, Estimate)> = summary
        .scaling
        .iter()
        .filter_map(|one| Some((one.server.as_str(), one.cpu_growth.as_ref()?)))
        .filter(|(_, growth)| growth.range() == (*fewest, *most))
        .map(|(server, growth)| (server, growth.exponent))
        .collect();
    all.sort_by(|one, other| other.1.value.total_cmp(&one.1.value));
    let those = |wanted: fn(f64, f64) -> bool| -> Vec<(&str, Estimate)> {
        all.iter()
            .copied()
            .filter(|(_, e)| wanted(e.low.unwrap_or(e.value), e.high.unwrap_or(e.value)))
            .collect()
    };
    let growing = those(|low, _| low > LEVEL);
    let mut falling = those(|_, high| high < -LEVEL);
    falling.reverse();
    let level = those(|low, high| low <= LEVEL && high >= -LEVEL);
    let named = |of: &[(&str, Estimate)]| -> String {
        let mut named: Vec<String> = of
            .iter()
            .take(MOST_NAMED)
            .map(|(server, exponent)| match range(exponent, power) {
                range if range.is_empty() => format!("n^{} with {server}", power(exponent.value)),
                range => format!("n^{} ({range}) with {server}", power(exponent.value)),
            })
            .collect();
        named.extend(others(of.len(), "less"));
        list(&named)
    };
    let mut parts = Vec::new();
    if !growing.is_empty() {
        parts.push(format!("grows as {}", named(&growing)));
    }
    if !falling.is_empty() {
        parts.push(format!("falls as {}", named(&falling)));
    }
    if !level.is_empty() {
        let servers: Vec<&str> = level.iter().map(|(server, _)| *server).collect();
        parts.push(format!(
            "does not change significantly with {}",
            list(&servers)
        ));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "From {} to {}, CPU per request {}.",
            whole(f64::from(*fewest)),
            counted(*most, "client"),
            parts.join("; it ")
        )
    })
}

/// "Throughput peaks at 300 clients (100–300) for select; it does not fall up to 900 clients for epoll."
fn peaks(summary: &Summary) -> Option<String> {
    let (mut peaking, mut endless) = (Vec::new(), Vec::new());
    let mut farthest = 0;
    for one in &summary.scaling {
        let Some(most) = one.rate_up_to else { continue };
        let Some(peak) = &one.peak_clients else {
            farthest = farthest.max(most);
            endless.push(one.server.as_str());
            continue;
        };
        let interval = if peak.low == peak.high {
            String::new()
        } else {
            format!(" ({})", range(peak, whole))
        };
        let clients = counted(peak.value as u32, "client");
        peaking.push((
            peak.value,
            format!("at {clients}{interval} for {}", one.server),
        ));
    }
    if peaking.is_empty() {
        return None;
    }
    peaking.sort_by(|one, other| other.0.total_cmp(&one.0));
    let first = peaking
        .iter()
        .take(MOST_NAMED)
        .map(|(_, text)| text.clone());
    let named: Vec<String> = first.chain(others(peaking.len(), "lower")).collect();
    let mut parts = vec![format!("peaks {}", list(&named))];
    if !endless.is_empty() {
        let most = counted(farthest, "client");
        parts.push(format!("does not fall up to {most} for {}", list(&endless)));
    }
    Some(format!("Throughput {}.", parts.join("; it ")))
}

/// "less for 3 more", if not all are named.
fn others(all: usize, how: &str) -> Option<String> {
    match all.saturating_sub(MOST_NAMED) {
        0 => None,
        1 => Some(format!("{how} for one more")),
        more => Some(format!("{how} for {more} more")),
    }
}

/// Servers whose costs lie far off the power.
fn rough(scaling: &[Scaling]) -> Option<String> {
    let residual = |one: &Scaling| Some(one.cpu_growth.as_ref()?.typical_residual);
    let off: Vec<String> = scaling
        .iter()
        .filter_map(|one| Some((&one.server, residual(one)?)))
        .filter(|(_, residual)| *residual > ROUGH)
        .map(|(server, residual)| format!("{} for {server}", percent(residual)))
        .collect();
    (!off.is_empty()).then(|| {
        let servers = list(&off);
        format!("These powers show trends only: CPU per request is off by {servers}.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_answer_says_it_in_words() {
        let (run, trials) = fixture::growing();
        let summary = Summary::of(&run, &trials).unwrap();
        insta::assert_snapshot!(sentences(&summary).join("\n"));
    }
}
