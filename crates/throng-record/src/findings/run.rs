//! All trials of a run together, as a report judges them.

use super::{FindingKind, Rule, Severity};

/// There is no speed to report.
pub static NOTHING_MEASURED: FindingKind = FindingKind::new(
    "nothing-measured",
    Severity::Unusable,
    "No server answered its clients as expected, so there is no speed to report.",
    "see the failures and the server's output",
    Rule::Met,
);

/// The control differs from what it repeats.
pub static CONTROL_DIFFERS: FindingKind = FindingKind::new(
    "control-differs",
    Severity::Rough,
    "A server measured twice differs from itself. By more than 10 %, the run is unusable.",
    "use a quiet machine, and run again",
    Rule::Met,
);

/// The server's rate moved the same way in most trials.
pub static WARMING_UP: FindingKind = FindingKind::new(
    "warming-up",
    Severity::Rough,
    "The rate of a server rose or fell in most of its trials (a sign test at 5 %), by at least 5 %.",
    "use a longer --warm-up",
    Rule::Met,
);

/// Trials failed.
pub static FAILED_TRIALS: FindingKind = FindingKind::new(
    "failed-trials",
    Severity::Rough,
    "Some trials failed.",
    "see the failures",
    Rule::Met,
);

/// Invalid trials were not replaced by valid ones.
pub static INVALID_TRIALS: FindingKind = FindingKind::new(
    "invalid-trials",
    Severity::Rough,
    "Invalid trials were not replaced by valid ones. If a server has no valid trial, the run is unusable.",
    "use a quiet machine, and run again",
    Rule::Met,
);

/// Too few trials for intervals.
pub static FEW_TRIALS: FindingKind = FindingKind::new(
    "few-trials",
    Severity::Rough,
    "Fewer trials than intervals need.",
    "use --runs 6 or more",
    Rule::Met,
);

/// A comparison would have missed even large differences in speed.
pub static NOISE: FindingKind = FindingKind::new(
    "noise",
    Severity::Rough,
    "The comparison would have missed differences in speed of 10 %.",
    "use a quiet machine, or a longer run",
    Rule::Met,
);
