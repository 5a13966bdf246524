//! throng with clients on several hosts, launched by MPI.
//!
//! Every rank runs this program with the same arguments, which are throng's own. The leading rank, 0, is throng: it
//! starts the server, probes its host, and writes the record and the report. Every other rank is a client host, or one
//! of several on the same machine, and runs its share of each load ([`throng::measure::cluster`]).
//!
//! ```text
//!            leading rank                                   every other rank
//!   worker   throng: plan, server, record                   a load and its probes
//!              │ frames over a socket pair                    │
//!   relay     MPI: messages, compares clocks      ←─────→    MPI: answers
//! ```
//!
//! In reading order: [`frame`] (messages between the two processes of a rank), [`worker`], [`relay`],
//! [`sys`].
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

mod frame;
mod relay;
mod sys;
mod worker;

use std::process::ExitCode;

use relay::launcher::{LAUNCHER, wait_then_kill};

/// The environment variable that marks a worker. Its value is the process ID of the worker's relay.
const RELAY: &str = "THRONG_MPI_RELAY";

/// Each launcher sets at least one of these variables: Open MPI, PMIx and MPICH, Slurm's PMI.
const OF_LAUNCHERS: [&str; 5] = [
    "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_FD",
    "PMI_SIZE",
];

const LAUNCH: &str = "\
error: throng-mpi is one process: a load from several hosts needs at least two, started by an MPI launcher

  mpirun -n 4 throng-mpi run --models epoll --clients 1000      three client ranks on this host
  mpirun --hostfile hosts throng-mpi run capacity --server-address 10.0.0.1 --allow-remote
                                                                one rank per line of the file `hosts`
  srun --mpi=pmix throng-mpi ...                                within a Slurm job

The first rank starts the server, all others are its clients. For a load from this process alone: throng";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let measures = throng::cli::uses_cluster(&arguments);
    if let Ok(launcher) = std::env::var(LAUNCHER) {
        return wait_then_kill(&launcher);
    }
    let ran = if is_worker() {
        worker::run()
    } else if OF_LAUNCHERS
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        relay::run(|| alone(measures))
    } else {
        return alone(measures);
    };
    ran.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Whether this process is a worker. Children of a worker inherit the variable, but have another parent.
fn is_worker() -> bool {
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    parent.is_some() && parent == std::env::var(RELAY).ok()
}

/// Runs throng without other ranks.
fn alone(measures: bool) -> ExitCode {
    if measures {
        eprintln!("{LAUNCH}");
        return ExitCode::from(2);
    }
    throng::cli::main_with(std::env::args_os(), None)
}
