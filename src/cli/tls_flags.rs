//! Flags for encrypted connections.

use std::path::PathBuf;

use crate::spec::{LoadSpec, TlsSpec};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct TlsFlags {
    /// Encrypt connections, as https:// does. The other TLS flags imply it.
    #[arg(long)]
    tls: bool,
    /// Accept any server certificate.
    #[arg(short = 'k', long, alias = "insecure-skip-tls-verify")]
    insecure: bool,
    /// Trust the certificates in this PEM file [default: the system's].
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Client certificate with its chain, as a PEM file.
    #[arg(long, value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate, as a PEM file.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Server name to send and to verify [default: the host in the address].
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// ALPN protocols to offer, best first, or `none` [default: http/1.1 for http, h2 for http2 and grpc, else none].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    alpn: Vec<String>,
    /// Resume the last session on reconnect, instead of a full handshake.
    #[arg(long)]
    tls_resume: bool,
}

impl TlsFlags {
    /// Applies the given flags to a load.
    pub(super) fn apply(&self, load: &mut LoadSpec) {
        if !self.is_there() {
            return;
        }
        let tls = load.tls.get_or_insert_with(TlsSpec::default);
        if self.insecure || self.cacert.is_some() {
            (tls.insecure, tls.cacert) = (self.insecure, self.cacert.clone());
        }
        for (typed, kept) in [(&self.cert, &mut tls.cert), (&self.key, &mut tls.key)] {
            *kept = typed.clone().or(kept.take());
        }
        tls.sni = self.sni.clone().or(tls.sni.take());
        if !self.alpn.is_empty() {
            tls.alpn.clone_from(&self.alpn);
        }
        tls.resume |= self.tls_resume;
    }

    /// Whether any of these flags was given.
    fn is_there(&self) -> bool {
        let files = [&self.cacert, &self.cert, &self.key];
        self.tls
            || self.insecure
            || self.tls_resume
            || self.sni.is_some()
            || !self.alpn.is_empty()
            || files.iter().any(|file| file.is_some())
    }
}
