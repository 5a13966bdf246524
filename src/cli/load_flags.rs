//! The flags of a load, which [`LoadSpec`] is made of.

use super::Usage;
use super::request::RequestFlags;
use super::tls_flags::TlsFlags;
use super::traffic::TrafficFlags;
use crate::record::spec::{LoadSpec, SpecError};

/// What clients say, and when.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Requests")]
pub(super) struct LoadFlags {
    #[command(flatten)]
    pub(super) request: RequestFlags,
    #[command(flatten)]
    pub(super) traffic: TrafficFlags,
    #[command(flatten)]
    pub(super) tls: TlsFlags,
}

impl LoadFlags {
    /// Gives a load what was typed, and leaves the rest as it is.
    pub(super) fn apply(&self, load: &mut LoadSpec) -> Result<(), Usage> {
        self.traffic.apply(load);
        self.tls.apply(load);
        self.request.apply(load)
    }

    /// Whether there is a flag of this name.
    pub(super) fn has(name: &str) -> bool {
        let command = <Self as clap::Args>::augment_args(clap::Command::new(""));
        command
            .get_arguments()
            .any(|argument| argument.get_long() == Some(name))
    }
}

impl From<SpecError> for Usage {
    fn from(error: SpecError) -> Self {
        Self(error.of_flags())
    }
}

/// Has a load that names no protocol speak the usual one: who brings a server of their own most likely has a
/// web server.
pub(super) fn default_protocol(load: &mut LoadSpec, all_ours: bool) {
    if load.send.is_none() {
        let usual = if all_ours { "echo" } else { "http" };
        load.protocol.get_or_insert_with(|| usual.to_owned());
    }
}
