//! What was traced and measured on one machine and is carried along, so that there is something to show where
//! nothing can be traced, and for the book. Both files are made, by tests of the book; see `docs/models`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::figures::Figures;
use super::traced::Traced;

static TRACED: LazyLock<BTreeMap<String, Traced>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("reference/traced.json")).expect("a test has read it")
});

static FIGURES: LazyLock<Figures> = LazyLock::new(|| {
    serde_json::from_str(include_str!("reference/figures.json")).expect("a test has read it")
});

/// What each model was seen to do for one client.
pub fn traced() -> &'static BTreeMap<String, Traced> {
    &TRACED
}

/// What each model was measured to do under several crowds.
pub fn figures() -> &'static Figures {
    &FIGURES
}
