//! What a run says of itself: what its clients can reach, and whether a server differs from itself.

use crate::checks::Checks;
use crate::comparison::ratio;
use crate::summary::{Row, Summary};
use throng_record::format::{list, number};

/// What the clients can reach, which the rates are to be read against.
pub(super) fn ceiling(summary: &Summary, clients: u32) -> Option<String> {
    // Who thinks leaves the CPU idle, and what it uses tells nothing.
    if summary.rows.iter().any(Row::thinks) {
        return None;
    }
    let ceiling = summary.checks_at(clients)?.ceiling.as_ref()?;
    Some(format!(
        "Against {}, which costs them least, the same clients reach {}/s with {:.0} % of their CPU, \
         so they could reach {}/s.",
        ceiling.server,
        number(ceiling.requests_per_s),
        ceiling.client_cpu_share * 100.0,
        number(ceiling.reachable_per_s),
    ))
}

/// What a server that was measured twice says of the run.
pub(super) fn control(checks: &Checks) -> Option<String> {
    let control = checks.control.as_ref()?;
    let server = &control.server;
    if let Some(off) = &control.off {
        return Some(format!(
            "Measured a second time as a control, {server} differs from itself: {} {}.",
            off.what,
            ratio(&off.ratio)
        ));
    }
    let ratios: Vec<String> = [
        (control.rate_ratio, "throughput"),
        (control.cost_ratio, "CPU per request"),
    ]
    .iter()
    .filter_map(|(found, what)| Some((found.as_ref().filter(|ratio| ratio.low.is_some())?, what)))
    .map(|(found, what)| format!("{} of its {what}", ratio(found)))
    .collect();
    (!ratios.is_empty()).then(|| {
        format!(
            "Measured a second time as a control, {server} does not differ from itself: {}.",
            list(&ratios)
        )
    })
}
