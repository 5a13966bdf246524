//! Limits of the answer: failed, invalid and missing trials.

use crate::summary::Summary;
use crate::warm_up;
use throng_record::format::counted;

pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let failed: u32 = summary.rows.iter().map(|row| row.trials_failed).sum();
    if failed > 0 {
        notes.push(format!(
            "{failed} of {} failed and {} excluded.",
            counted(summary.trials_run, "trial"),
            if failed == 1 { "is" } else { "are" }
        ));
    }
    notes.extend(summary.invalid());
    notes.extend(warm_up::reported(summary).map(|took| format!("Warm-up: {took}.")));
    let missing = summary.trials_planned.saturating_sub(summary.trials_run);
    if missing > 0 {
        notes.push(format!(
            "The run ended early: {missing} of {} did not run.",
            counted(summary.trials_planned, "trial")
        ));
    }
    notes
}
