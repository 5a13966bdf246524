//! Flags for what clients say, and how they know a right answer.

use super::Usage;
use crate::protocol::{Expectation, Statuses};
use crate::record::spec::{LoadSpec, Paths, Sent, Sizes, weighted_path};

#[derive(Debug, clap::Args)]
pub(super) struct RequestFlags {
    /// What to say; `throng list protocols` says what there is [default: echo, or http with a URL and
    /// where a server that is not throng's own is compared].
    #[arg(long)]
    protocol: Option<String>,
    /// Bytes in a request, for protocols that let you choose: a number like 1000, 64KiB or 10MB; or
    /// several by weight, like 100kB:3,1MB:1. A server's own count of echo requests is right only
    /// for one size [default: 1000].
    #[arg(long, value_name = "BYTES[:WEIGHT],...")]
    size: Option<Sizes>,
    /// A path to ask for by http; several times for a mix, each with a weight, like /:3 and /news:1.
    /// Of each, what is granted must always have the same length.
    #[arg(long = "path", value_name = "PATH[:WEIGHT]", value_parser = weighted_path)]
    paths: Vec<(String, u32)>,
    /// Statuses that are right for http, like 200,404 or 2xx; replies of any other count as errors
    /// [default: 2xx,3xx].
    #[arg(long, value_name = "LIST", conflicts_with = "send", value_parser = statuses)]
    expect_status: Option<String>,
    /// Instead of a protocol: bytes to send, the same each time. Text may have \r \n \t \0 \xNN and
    /// \\ in it (and begins with \x40 for an @); of a file everything is sent as it is.
    #[arg(long, value_name = "TEXT|@FILE", requires = "expect",
          conflicts_with_all = ["protocol", "size", "paths"])]
    send: Option<Sent>,
    /// How a reply to --send ends, and what is right: bytes:N for so many bytes; text:STRING for
    /// exactly this; until:STRING for anything that ends with the first STRING; regex:RE for
    /// anything, as soon as RE matches in it (^ is where the reply begins); close for anything up to
    /// where the server closes.
    #[arg(long, value_name = "SPEC", requires = "send", value_parser = expectation)]
    expect: Option<String>,
}

impl RequestFlags {
    /// Gives a load what was typed.
    pub(super) fn apply(&self, load: &mut LoadSpec) -> Result<(), Usage> {
        if let Some(protocol) = &self.protocol {
            load.protocol = Some(protocol.clone());
        }
        if let Some(size) = &self.size {
            load.size = size.clone();
        }
        if !self.paths.is_empty() {
            let paths = Paths::new(self.paths.clone());
            load.path = Some(paths.map_err(|why| Usage(format!("the mix of --path: {why}")))?);
        }
        if let Some(statuses) = &self.expect_status {
            load.expect_status = Some(statuses.clone());
        }
        if let (Some(sent), Some(expect)) = (&self.send, &self.expect) {
            load.protocol = None;
            load.send = Some(sent.clone());
            load.expect = Some(expect.clone());
        }
        Ok(())
    }
}

/// A list of statuses, kept as it was written.
fn statuses(list: &str) -> Result<String, String> {
    list.parse::<Statuses>().map(|_| list.to_owned())
}

/// An expectation, kept as it was written.
fn expectation(spec: &str) -> Result<String, String> {
    Expectation::parse(spec).map(|_| spec.to_owned())
}
