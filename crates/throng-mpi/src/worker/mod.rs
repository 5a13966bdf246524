//! The worker of a rank: the process that runs without MPI. On the leading rank it is throng itself, with the other
//! ranks as its client hosts; on every other rank it is an agent.

mod client;
mod leading;
mod line;
mod message;

use std::process::ExitCode;

use line::Line;

/// Runs the worker of this rank.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let (place, line) = Line::open()?;
    if place.rank != 0 {
        return client::run(place, line);
    }
    let ranks = leading::Ranks::gather(place, line)?;
    Ok(throng::cli::main_with(
        std::env::args_os(),
        Some(Box::new(ranks)),
    ))
}
