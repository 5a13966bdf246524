//! Local web pages for all runs below a directory: the list, the answer of each run, its trials and their clients,
//! comparisons of two runs, the history of a server, and the progress of an active run.
//!
//! The server listens only on the loopback interface and accepts only requests for a loopback host name. It serves
//! one user, who has the token of its URL. It only reads, and only below the directory. Records are untrusted: a
//! damaged one is shown with its error. Blocking work (reading, rendering) runs on a few threads.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod address;
mod answers;
mod history;
mod list;
mod page;
mod response;
mod run;
mod runs;
mod server;
mod so_far;
mod trial;

pub use server::Viewer;
