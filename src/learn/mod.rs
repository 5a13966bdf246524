//! Part 4: what there is to learn about each model.
//!
//! The page about a model is `docs/models/NAME.md`, written by hand and compiled into its
//! [`Card`](crate::serve::Card). Parts of it are [generated]: the card, the quoted source, the traced system calls
//! and the figures of the reference run, all kept current by `tests/readme`. The book has the page as it is, a
//! terminal shows it with calls traced on the spot.

pub mod calls;
pub mod generated;
pub mod page;
mod words;

use crate::serve::Model;

/// Options with which a model is traced: of those that start a number of workers, two are enough to see
/// who does what.
pub fn traced_options(model: &Model) -> Vec<String> {
    match model.worker_layout {
        crate::serve::WorkerLayout::AsNeeded => Vec::new(),
        _ => vec!["--workers".to_owned(), "2".to_owned()],
    }
}
