//! State that all sessions of a load share, created once from its options.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail, ensure};
use rustls::client::{Resumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, InconsistentKeys, RootCertStore};
use throng_spec::TlsSpec;
use throng_spec::named_file;

use crate::fault::{Fault, Kind};
use crate::session::Session;
use crate::tickets::Tickets;
use crate::verifier::{Anything, Verifier};

/// The clients of a load.
#[derive(Debug, Clone)]
pub struct Client {
    config: ClientConfig,
    /// The server names, in the order of their addresses.
    names: Arc<[ServerName<'static>]>,
    resumes: bool,
}

impl Client {
    /// Reads the files that it needs. `own` is the ALPN name of the clients' protocol. Server names are the hosts of their addresses, HOST:PORT, unless `tls` has one.
    ///
    /// # Errors
    /// Names the file that cannot be read or is invalid, or the invalid address.
    pub fn new(tls: &TlsSpec, own: Option<&str>, addresses: &[String]) -> anyhow::Result<Self> {
        let provider = Arc::new(provider()?);
        let name = |address: &String| {
            let host = address
                .rsplit_once(':')
                .map_or(address.as_str(), |(host, _)| host);
            let name = tls
                .sni
                .as_deref()
                .unwrap_or(host)
                .trim_start_matches('[')
                .trim_end_matches(']');
            let read = ServerName::try_from(name.to_owned());
            read.map_err(|_| anyhow::anyhow!("`{name}` is not a server name; use --sni NAME"))
        };
        let names = addresses.iter().map(name).collect::<Result<_, _>>()?;
        let dangerous = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .context("cannot set up TLS")?
            .dangerous();
        let builder = if tls.insecure {
            let schemes = provider.signature_verification_algorithms;
            let anything = Anything(schemes.supported_schemes());
            dangerous.with_custom_certificate_verifier(Arc::new(anything))
        } else {
            let trusted = trusted(tls.cacert.as_deref())?;
            let mut roots = RootCertStore::empty();
            // The system may trust certificates of an unsupported kind.
            roots.add_parsable_certificates(trusted.iter().cloned());
            let inner =
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                    .build()
                    .context("cannot read the trusted certificates")?;
            dangerous.with_custom_certificate_verifier(Arc::new(Verifier { inner, trusted }))
        };
        let mut config = match (&tls.cert, &tls.key) {
            (Some(cert), Some(key)) => {
                let chain = certificates(cert)?;
                let cannot_read = || format!("cannot read a private key from {}", key.display());
                let text = named_file::read(key, MOST_BYTES).with_context(cannot_read)?;
                let loaded = PrivateKeyDer::from_pem_slice(&text).with_context(cannot_read)?;
                let signing = provider.key_provider.load_private_key(loaded);
                let certified = CertifiedKey::new(chain, signing.with_context(cannot_read)?);
                // Whether they match is unknown for X.509 version 1, which the server may still accept.
                ensure!(
                    certified.keys_match() != Err(InconsistentKeys::KeyMismatch.into()),
                    "{} and {} do not match",
                    cert.display(),
                    key.display()
                );
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = tls.offered(own);
        Ok(Self {
            config,
            names,
            resumes: tls.resume,
        })
    }

    /// A client that accepts any certificate, to find out whether a server speaks TLS.
    pub(crate) fn of_anything(address: String) -> anyhow::Result<Self> {
        let tls = TlsSpec {
            insecure: true,
            sni: Some("localhost".to_owned()),
            ..TlsSpec::default()
        };
        Self::new(&tls, None, &[address])
    }

    /// The sessions of `clients` clients, all driven by one thread.
    pub fn sessions(&self, clients: usize) -> Sessions {
        let tickets = Arc::new(Tickets::new(if self.resumes { clients } else { 0 }));
        let mut config = self.config.clone();
        let store: Arc<Tickets> = Arc::clone(&tickets);
        config.resumption = Resumption::store(store);
        if !self.resumes {
            config.resumption = config
                .resumption
                .tls12_resumption(Tls12Resumption::Disabled);
        }
        Sessions {
            config: Arc::new(config),
            names: Arc::clone(&self.names),
            tickets,
        }
    }
}

/// Creates sessions for the clients of one thread.
#[derive(Debug)]
pub struct Sessions {
    config: Arc<ClientConfig>,
    names: Arc<[ServerName<'static>]>,
    tickets: Arc<Tickets>,
}

impl Sessions {
    /// Begins a session of the client in `slot` with server number `server`; servers are taken in turn.
    ///
    /// # Errors
    /// When it cannot begin.
    pub fn begin(&self, slot: usize, server: u64) -> Result<Session, Fault> {
        self.turn_to(slot);
        let name = &self.names[(server % self.names.len() as u64) as usize];
        Session::begin(&self.config, name.clone())
    }

    /// Declares that the next bytes are for the client in `slot`, which gets the tickets in them.
    pub fn turn_to(&self, slot: usize) {
        self.tickets.turn_to(slot);
    }
}

/// Maximum bytes of a certificate file; a system's own has a few hundred thousand.
const MOST_BYTES: u64 = 16 << 20;

/// The trusted certificates.
fn trusted(file: Option<&Path>) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    if let Some(file) = file {
        return certificates(file);
    }
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})"));
        bail!(
            "this system has no trusted certificates{}; use --cacert FILE, or -k",
            why.unwrap_or_default()
        );
    }
    Ok(found.certs)
}

/// All certificates in a file.
fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let name = file.display();
    let cannot_read = || format!("cannot read certificates from {name}");
    let text = named_file::read(file, MOST_BYTES).with_context(cannot_read)?;
    let found = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .with_context(cannot_read)?;
    ensure!(!found.is_empty(), "{name} has no certificate in PEM format");
    Ok(found)
}

/// The cryptography provider.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn provider() -> anyhow::Result<CryptoProvider> {
    use rustls_graviola::kx::{P256, P384, X25519};

    if let Some(missing) = missing_of_cpu() {
        bail!("TLS needs a CPU with {missing}, which this CPU lacks or the hypervisor hides");
    }
    Ok(CryptoProvider {
        // The hybrid with ML-KEM would cost both sides several times as much.
        kx_groups: vec![&X25519, &P256, &P384],
        ..rustls_graviola::default_provider()
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn provider() -> anyhow::Result<CryptoProvider> {
    bail!("TLS needs an x86-64 or AArch64 CPU")
}

/// The first feature that this CPU lacks, of those without which the cryptography panics.
#[cfg(target_arch = "x86_64")]
fn missing_of_cpu() -> Option<&'static str> {
    use std::arch::is_x86_feature_detected as has;
    let features = [
        ("AES", has!("aes")),
        ("PCLMULQDQ", has!("pclmulqdq")),
        ("BMI1", has!("bmi1")),
        ("BMI2", has!("bmi2")),
        ("ADX", has!("adx")),
        ("AVX", has!("avx")),
        ("AVX2", has!("avx2")),
    ];
    features
        .into_iter()
        .find_map(|(name, has)| (!has).then_some(name))
}

#[cfg(target_arch = "aarch64")]
fn missing_of_cpu() -> Option<&'static str> {
    use std::arch::is_aarch64_feature_detected as has;
    let features = [
        ("NEON", has!("neon")),
        ("AES", has!("aes")),
        ("PMULL", has!("pmull")),
        ("SHA2", has!("sha2")),
    ];
    features
        .into_iter()
        .find_map(|(name, has)| (!has).then_some(name))
}

impl From<rustls::Error> for Fault {
    fn from(error: rustls::Error) -> Self {
        Self::new(Kind::Unable, format!("cannot start TLS: {error}"))
    }
}
