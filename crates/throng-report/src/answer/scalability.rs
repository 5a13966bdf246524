//! Scalability in sentences.

use crate::summary::Summary;
use crate::summary::scalability::{Scaling, percent, power, range};
use throng_record::format::{counted, list, whole};
use throng_stats::scalability::{Estimate, FARTHEST};

/// An exponent this close to 0 is level: ten times the clients change the cost by an eighth at most.
const LEVEL: f64 = 0.05;

/// A power or a curve that is off by more than this describes only a trend.
const ROUGH: f64 = 0.15;

/// The maximum number of servers named one by one.
const MOST_NAMED: usize = 4;

/// The sentences about a run; empty if nothing was fitted.
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

/// "By the Universal Scalability Law, throughput peaks at 37 clients (31–44) for select and has no peak up to
/// 1,800 clients for epoll."
fn peaks(summary: &Summary) -> Option<String> {
    let (mut peaking, mut endless) = (Vec::new(), Vec::new());
    let mut farthest = 0;
    for one in &summary.scaling {
        let Some(law) = &one.law else { continue };
        let (fewest, most) = law.range();
        farthest = farthest.max(most.saturating_mul(FARTHEST));
        let peak = law.peak_clients;
        if peak.value.is_infinite() {
            endless.push(one.server.as_str());
        } else if peak.value <= f64::from(fewest) {
            peaking.push((
                f64::from(fewest),
                format!("with the fewest clients for {}", one.server),
            ));
        } else {
            let range = match (peak.low, peak.high) {
                (Some(low), Some(high)) if high.is_infinite() => format!(" (≥{})", whole(low)),
                (Some(low), Some(high)) => format!(" ({}–{})", whole(low), whole(high)),
                _ => String::new(),
            };
            peaking.push((
                peak.value,
                format!("at {}{range} for {}", whole(peak.value), one.server),
            ));
        }
    }
    peaking.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut parts = Vec::new();
    if !peaking.is_empty() {
        let named = peaking
            .iter()
            .take(MOST_NAMED)
            .map(|(_, text)| text.clone());
        let named: Vec<String> = named.chain(others(peaking.len(), "lower")).collect();
        parts.push(format!("peaks {}", list(&named)));
    }
    if !endless.is_empty() {
        parts.push(format!(
            "has no peak up to {} for {}",
            counted(farthest, "client"),
            list(&endless)
        ));
    }
    (!parts.is_empty()).then(|| {
        format!(
            "By the Universal Scalability Law, throughput {}.",
            list(&parts)
        )
    })
}

/// "less for 3 more", if not all are named.
fn others(all: usize, how: &str) -> Option<String> {
    match all.saturating_sub(MOST_NAMED) {
        0 => None,
        1 => Some(format!("{how} for one more")),
        more => Some(format!("{how} for {more} more")),
    }
}

/// Servers whose measurements lie far off the fitted curve or power.
fn rough(scaling: &[Scaling]) -> Option<String> {
    let curve = |one: &Scaling| Some(one.law.as_ref()?.typical_residual);
    let cost = |one: &Scaling| Some(one.cpu_growth.as_ref()?.typical_residual);
    let mut named = Vec::new();
    for (of, what) in [
        (
            &curve as &dyn Fn(&Scaling) -> Option<f64>,
            "throughput off the fitted curve",
        ),
        (&cost, "CPU per request off the fitted power"),
    ] {
        let off: Vec<String> = scaling
            .iter()
            .filter_map(|one| Some((&one.server, of(one)?)))
            .filter(|(_, residual)| *residual > ROUGH)
            .map(|(server, residual)| format!("{} for {server}", percent(residual)))
            .collect();
        if !off.is_empty() {
            named.push(format!("{what} by {}", list(&off)));
        }
    }
    (!named.is_empty()).then(|| format!("These fits show trends only: {}.", named.join("; ")))
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
