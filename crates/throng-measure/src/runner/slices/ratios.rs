//! The ratios so far between servers measured side by side, and whether they are precise.

use std::time::Instant;

use super::{Member, Plan, SlicedServer, TICK};
use crate::runner::observer::Audience;
use crate::stage::Stage;
use throng_record::metrics::Quantity;
use throng_record::{ServerSoFar, SideBySide, Slice};
use throng_spec::Think;
use throng_stats::median;
use throng_stats::paired::log_ratio_of_slices;

/// Whether the ratios of all servers to the reference are precise, both by rate and by CPU time per request.
pub(super) fn are_precise(plan: &Plan, visited: &[Stage<SlicedServer<'_>>]) -> bool {
    let values = [Slice::requests_per_s, Slice::server_cpu_us_per_request];
    let mut compared = compared(plan, visited).peekable();
    // A server on its own uses its whole time budget.
    let is_alone = compared.peek().is_none();
    !is_alone
        && compared.all(|(own, reference)| {
            values.into_iter().all(|value| {
                let pairs = pairs(own, reference, value);
                // If a value is unavailable, there is nothing to wait for.
                let ratio = || log_ratio_of_slices(&pairs);
                let precise = || ratio().is_some_and(|ratio| ratio.is_enough(plan.half_width));
                pairs.is_empty() || precise()
            })
        })
}

/// The compared servers, each with the reference.
fn compared<'a, 'b>(
    plan: &Plan,
    visited: &'a [Stage<SlicedServer<'b>>],
) -> impl Iterator<Item = (&'a SlicedServer<'b>, &'a SlicedServer<'b>)> {
    let reference = visited[plan.reference].as_ref().ok();
    let others = visited
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != plan.reference)
        .filter_map(|(_, seen)| seen.as_ref().ok());
    others
        .filter(|seen| !seen.checks)
        .filter_map(move |seen| Some((seen, reference?)))
}

/// The values of two servers in each round in which both have one.
fn pairs(
    own: &SlicedServer<'_>,
    reference: &SlicedServer<'_>,
    value: fn(&Slice) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let pair = |slice: &Slice| {
        let others = &reference.slices;
        let other = others.binary_search_by_key(&slice.round, |other| other.round);
        Some((value(slice)?, value(&others[other.ok()?])?))
    };
    own.slices.iter().filter_map(pair).collect()
}

/// The number of slices over which the displayed median is taken.
const SHOWN: usize = 101;

/// The ratios so far, for display.
pub(super) fn so_far(plan: &Plan, visited: &[Stage<SlicedServer<'_>>], rounds: u32) -> SideBySide {
    let reference_visit = visited[plan.reference].as_ref().ok();
    let timed = visited.iter().flatten().filter(|seen| !seen.checks);
    let is_by_cpu = reference_visit.is_some_and(|seen| {
        let load = &seen.setup.load.load;
        load.rate.is_some() || load.think != Think::None
    });
    let value = if is_by_cpu {
        Slice::server_cpu_us_per_request
    } else {
        Slice::requests_per_s
    };
    let servers = timed.map(|own| {
        let other = reference_visit.filter(|reference| !std::ptr::eq(*reference, own));
        let to = |reference| log_ratio_of_slices(&pairs(own, reference, value));
        ServerSoFar {
            ratio: other.and_then(to).map(Quantity::of_ratio),
            ..latest(own.setup.name(), &own.slices)
        }
    });
    SideBySide {
        rounds,
        is_by_cpu,
        ..in_order(
            reference_visit.map_or("", |seen| seen.setup.name()),
            servers,
        )
    }
}

/// A server with the medians over its last slices.
fn latest(name: &str, slices: &[Slice]) -> ServerSoFar {
    let last = &slices[slices.len().saturating_sub(SHOWN)..];
    let of = |value: fn(&Slice) -> Option<f64>| {
        median(&last.iter().filter_map(value).collect::<Vec<_>>())
    };
    ServerSoFar {
        name: name.to_owned(),
        requests_per_s: of(Slice::requests_per_s),
        p50_us: of(|slice| Some(slice.p50_us)),
        p99_us: of(|slice| Some(slice.p99_us)),
        cpu_us_per_request: of(Slice::server_cpu_us_per_request),
        ratio: None,
    }
}

/// These servers, the reference first.
fn in_order(reference: &str, all: impl Iterator<Item = ServerSoFar>) -> SideBySide {
    let mut servers: Vec<ServerSoFar> = all.collect();
    servers.sort_by_key(|server| server.name != reference);
    SideBySide {
        reference: reference.to_owned(),
        servers,
        ..SideBySide::default()
    }
}

/// The servers before the first round, for display: all of them from the start, each with its values once it warms up.
pub(super) struct WarmUps {
    so_far: SideBySide,
    next: Instant,
}

impl WarmUps {
    pub(super) fn begin(plan: &Plan, members: &[Member<'_>], audience: &mut Audience<'_>) -> Self {
        let timed = members.iter().filter(|member| !member.checks);
        let servers = timed.map(|member| latest(member.setup.name(), &[]));
        let reference = members.get(plan.reference);
        let so_far = in_order(reference.map_or("", |member| member.setup.name()), servers);
        audience.observer.on_side_by_side(&so_far);
        Self {
            so_far,
            next: Instant::now(),
        }
    }

    /// Shows the latest slice of a server.
    pub(super) fn see(&mut self, member: &Member<'_>, slice: &Slice, audience: &mut Audience<'_>) {
        let name = member.setup.name();
        let mut known = self.so_far.servers.iter_mut();
        let own = known.find(|server| !member.checks && server.name == name);
        if let Some(server) = own {
            *server = latest(name, std::slice::from_ref(slice));
            if Instant::now() >= self.next {
                audience.observer.on_side_by_side(&self.so_far);
                self.next = Instant::now() + TICK;
            }
        }
    }
}
