//! Part 4: pages that explain each model.
//!
//! The page about a model is `docs/models/NAME.md`, written by hand and compiled into its
//! [`Card`](crate::serve::Card). Parts of it are [generated]: the card, the quoted source, the traced system calls and
//! the figures of the reference run. `tests/readme` keeps all of them current. The book shows the page as it is. On a
//! terminal, it is shown with freshly traced calls.

pub mod calls;
pub mod generated;
pub mod page;
mod words;

use crate::serve::Model;

/// Options for tracing a model. Models with several workers start two, which is enough to see which worker does what.
pub fn traced_options(model: &Model) -> Vec<String> {
    match model.worker_layout {
        crate::serve::WorkerLayout::AsNeeded => Vec::new(),
        _ => vec!["--workers".to_owned(), "2".to_owned()],
    }
}
