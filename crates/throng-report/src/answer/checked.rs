//! Checks of the measurement: the maximum rate of the load generator, and a server measured twice.

use crate::checks::Checks;
use crate::comparison::ratio;
use crate::summary::{Row, Summary};
use throng_record::format::{list, number};

/// The maximum rate of the load generator.
pub(super) fn ceiling(summary: &Summary, clients: u32) -> Option<String> {
    // With think time the CPU is idle, and its use says nothing about the maximum.
    if summary.rows.iter().any(Row::thinks) {
        return None;
    }
    let ceiling = summary.checks_at(clients)?.ceiling.as_ref()?;
    Some(format!(
        "The load generator can reach {}/s: against {}, the cheapest server, it used {:.0} % of its CPU at {}/s.",
        number(ceiling.reachable_per_s),
        ceiling.server,
        ceiling.client_cpu_share * 100.0,
        number(ceiling.requests_per_s),
    ))
}

/// A server measured twice, compared with itself.
pub(super) fn control(checks: &Checks) -> Option<String> {
    let control = checks.control.as_ref()?;
    let server = &control.server;
    if let Some(off) = &control.off {
        return Some(format!(
            "Control ({server} measured twice): significant difference, {} ratio {}.",
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
    .map(|(found, what)| format!("{what} ratio {}", ratio(found)))
    .collect();
    (!ratios.is_empty()).then(|| {
        format!(
            "Control ({server} measured twice): no significant difference, {}.",
            list(&ratios)
        )
    })
}
