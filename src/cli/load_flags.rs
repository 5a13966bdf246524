//! The flags of a load, from which a [`LoadSpec`] is made.

use super::Usage;
use super::request::RequestFlags;
use super::tls_flags::TlsFlags;
use super::traffic::TrafficFlags;
use crate::spec::{LoadSpec, SpecError};

/// What clients send, and when.
#[derive(Debug, clap::Args)]
pub(super) struct LoadFlags {
    #[command(flatten)]
    pub(super) request: RequestFlags,
    #[command(flatten)]
    pub(super) traffic: TrafficFlags,
    #[command(flatten)]
    pub(super) tls: TlsFlags,
}

impl LoadFlags {
    /// Applies the given flags to a load.
    pub(super) fn apply(&self, load: &mut LoadSpec) -> Result<(), Usage> {
        self.traffic.apply(load);
        self.tls.apply(load);
        self.request.apply(load)
    }

    /// Whether a flag of this name exists.
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

/// Sets the protocol of a load that has none: other servers most likely speak HTTP.
pub(super) fn default_protocol(load: &mut LoadSpec, all_ours: bool) {
    if load.send.is_none() {
        let usual = if all_ours { "echo" } else { "http" };
        load.protocol.get_or_insert_with(|| usual.to_owned());
    }
}
