//! Thresholds, and whether they were missed.

use super::comparison::Comparison;
use super::summary::Summary;
use throng_record::Run;
use throng_record::metrics::{Condition, ConditionResult, Values};

/// Judges all thresholds of a run: its conditions, for every server they apply to, and the thresholds of its
/// comparison.
pub(super) fn judged(
    run: &Run,
    summary: &Summary,
    comparison: &Comparison,
) -> Vec<ConditionResult> {
    let asked = run.settings.fail_if.iter();
    let read = asked.filter_map(|text| Some((text, Condition::parse(text).ok()?)));
    let mut judged = Vec::new();
    let servers: Vec<&str> = run.servers.iter().map(|server| &*server.name).collect();
    let mut steps: Vec<&str> = Vec::new();
    for step in summary.rows.iter().flat_map(|row| &row.steps) {
        if !steps.contains(&&*step.name) {
            steps.push(&step.name);
        }
    }
    for (text, condition) in read {
        let Ok(named) = condition.named(&servers, &steps) else {
            continue;
        };
        let name = named.server;
        let mut rows = summary
            .rows
            .iter()
            .filter(|row| name.is_none_or(|name| *name == row.server))
            .peekable();
        if rows.peek().is_none() && run.finished_at.is_some() && summary.trials_run == 0 {
            let all = run.servers.iter().map(|server| &server.name);
            let meant = all.filter(|server| name.is_none_or(|name| name == *server));
            let clients = run.settings.clients.last().copied().unwrap_or_default();
            let why = "no trial was recorded";
            judged.extend(meant.map(|server| Condition::not_judged(text, server, clients, why)));
        }
        for row in rows {
            // Replies that are missing or wrong have no speed, but they can be counted.
            let fault = row.fault().filter(|_| !condition.metric.counts_outcomes());
            judged.push(if let Some(fault) = fault {
                Condition::not_judged(text, &row.server, row.clients, &fault)
            } else if let Some(step_name) = named.step {
                let values = row
                    .steps
                    .iter()
                    .find(|step| step.name == step_name)
                    .map_or_else(Values::default, |step| step.metrics.clone());
                condition.judge(text, &row.server, row.clients, (&values, None))
            } else {
                let why = row.absent.get(condition.metric.name);
                let values = (&row.metrics, why.copied());
                condition.judge(text, &row.server, row.clients, values)
            });
        }
    }
    judged.extend(comparison.demands.iter().cloned());
    judged
}
