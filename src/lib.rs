//! The program: subcommands ([`cli`]), the TOML form of studies ([`study`]) and the pages about models ([`learn`]).
//! Everything else is in crates of the workspace, which are re-exported here under short names. `ARCHITECTURE.md` maps
//! the crates.
#![cfg_attr(
    test,
    expect(
        clippy::shadow_unrelated,
        reason = "a test looks at several cases in turn"
    )
)]

pub mod cli;
pub mod learn;
pub mod study;

pub use tcpflows as flows;
#[cfg(target_os = "linux")]
pub use throng_load as load;
#[cfg(target_os = "linux")]
pub use throng_measure as measure;
pub use throng_protocol as protocol;
pub use throng_record as record;
pub use throng_report as report;
pub use throng_serve as serve;
pub use throng_spec as spec;
pub use throng_spec::registry;
pub use throng_stats as stats;
pub use throng_sys as sys;
#[cfg(target_os = "linux")]
pub use throng_tls as tls;
#[cfg(target_os = "linux")]
pub use throng_view as view;
