//! TLS of a load.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::SpecError;

/// Maximum length of an ALPN protocol.
const LONGEST_PROTOCOL: usize = 255;
/// The name that offers no protocol.
const NO_PROTOCOL: &str = "none";

/// TLS settings of clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TlsSpec {
    /// Whether to accept any server certificate.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// The file with trusted certificates; the system's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacert: Option<PathBuf>,
    /// The file with the client certificate and its chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// The file with the private key of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The server name; if absent, the host in its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sni: Option<String>,
    /// ALPN protocols, best first; if empty, http/1.1 for http, h2 for http2 and grpc, and none for others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alpn: Vec<String>,
    /// Whether each client resumes its last session on reconnect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
}

impl TlsSpec {
    /// The protocols that clients offer; by default, the name of their own protocol, if it has one.
    pub fn offered(&self, own: Option<&str>) -> Vec<Vec<u8>> {
        if self.alpn.is_empty() {
            return own
                .map(|name| name.as_bytes().to_vec())
                .into_iter()
                .collect();
        }
        let offered = self.alpn.iter().filter(|name| *name != NO_PROTOCOL);
        offered.map(|name| name.clone().into_bytes()).collect()
    }

    /// Rejects invalid settings.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.cert.is_some() != self.key.is_some() {
            let why = "a client certificate needs both `cert` and `key`";
            return Err(SpecError::key("tls", why));
        }
        if self.insecure && self.cacert.is_some() {
            let why = "`insecure` and `cacert` cannot be used together; leave out one of them";
            return Err(SpecError::key("tls", why));
        }
        let is_wrong = |name: &&String| name.is_empty() || name.len() > LONGEST_PROTOCOL;
        if let Some(name) = self.alpn.iter().find(is_wrong) {
            let why =
                format!("`{name}` is not a protocol for `alpn`; write a list like h2,http/1.1");
            return Err(SpecError::value("tls", why));
        }
        if self.alpn.len() > 1 && self.alpn.iter().any(|name| name == NO_PROTOCOL) {
            let why = "`alpn` has `none` and other protocols; leave out one of them";
            return Err(SpecError::value("tls", why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_is_offered_where_it_is_spoken() {
        let offered = |alpn: &[&str], own| {
            let alpn = alpn.iter().map(|name| (*name).to_owned()).collect();
            let tls = TlsSpec {
                alpn,
                ..TlsSpec::default()
            };
            let names = tls.offered(own).into_iter();
            names
                .map(|name| String::from_utf8(name).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(offered(&[], Some("h2")), ["h2"]);
        assert!(offered(&[], None).is_empty());
        assert!(offered(&["none"], Some("h2")).is_empty());
        assert_eq!(offered(&["h2", "http/1.1"], None), ["h2", "http/1.1"]);
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let tls = TlsSpec {
            cert: Some("a.pem".into()),
            ..TlsSpec::default()
        };
        let refused = tls.check().unwrap_err().of_flags();
        assert_eq!(refused, "a client certificate needs both --cert and --key");
    }
}
