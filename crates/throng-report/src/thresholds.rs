//! Thresholds, and whether they were missed.

use super::comparison::Comparison;
use super::summary::Summary;
use throng_record::Run;
use throng_record::metrics::{Condition, ConditionResult};

/// Judges all thresholds of a run: its conditions, for every server they apply to, and the thresholds of its
/// comparison.
pub(super) fn judged(
    run: &Run,
    summary: &Summary,
    comparison: Option<&Comparison>,
) -> Vec<ConditionResult> {
    let asked = run.settings.fail_if.iter();
    let read = asked.filter_map(|text| Some((text, Condition::parse(text).ok()?)));
    let mut judged = Vec::new();
    for (text, condition) in read {
        let name = condition.server.as_ref();
        let rows = summary.rows.iter();
        for row in rows.filter(|row| name.is_none_or(|name| *name == row.server)) {
            let why = row.absent.get(condition.metric.name);
            let values = (&row.metrics, why.copied());
            judged.push(condition.judge(text, &row.server, row.clients, values));
        }
    }
    judged.extend(comparison.iter().flat_map(|asked| asked.demands.clone()));
    judged
}
