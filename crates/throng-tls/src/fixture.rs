//! Test certificates, and a server that uses them.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use graviola::hashing::Sha256;
use graviola::signing::ecdsa::{P256, SigningKey};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber, SignatureAlgorithm,
    date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, StreamOwned, SupportedProtocolVersion};
pub use rustls::{ServerConfig, ServerConnection, version};

use crate::client::provider;

/// The validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    /// Now.
    Now,
    /// Until some years ago.
    Before,
}

/// A key for certificates.
struct Key {
    signing: SigningKey<P256>,
    /// In X9.62 form.
    public: Vec<u8>,
}

impl Key {
    fn generate() -> Self {
        let signing = SigningKey::<P256>::generate().expect("there are random numbers");
        let mut room = [0; 256];
        let spki = signing.to_spki_der(&mut room).expect("there is room");
        // The structure ends with the point: a byte for its form, and two coordinates.
        let public = spki[spki.len() - 65..].to_vec();
        Self { signing, public }
    }

    fn pkcs8(&self) -> Vec<u8> {
        let mut room = [0; 256];
        let der = self.signing.to_pkcs8_der(&mut room);
        der.expect("there is room").to_vec()
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let mut room = [0; 128];
        let signed = self.signing.sign_asn1::<Sha256>(&[message], &mut room);
        signed
            .map(<[u8]>::to_vec)
            .map_err(|_| rcgen::Error::RemoteKeyError)
    }
}

/// A certificate and its key, as files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certified {
    /// The certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// An authority that issues certificates, in a temporary directory.
pub struct Authority {
    directory: tempfile::TempDir,
    params: CertificateParams,
    key: Key,
    issued: AtomicUsize,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new authority that is not trusted yet.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let key = Key::generate();
        let mut params = params("authority", &[], Valid::Now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let own = params.self_signed(&key).expect("it can be signed");
        let name = directory.path().join("ca.pem");
        std::fs::write(name, own.pem()).expect("it can be written");
        Self {
            directory,
            params,
            key,
            issued: AtomicUsize::new(0),
        }
    }

    /// The file of its own certificate.
    pub fn cacert(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A certificate for these names.
    pub fn issue(&self, names: &[&str], valid: Valid) -> Certified {
        let key = Key::generate();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let params = params("issued", names, valid);
        let signed = params.signed_by(&key, &issuer).expect("it can be signed");
        self.write(&signed.pem(), &key)
    }

    /// A self-signed certificate for these names. The usual tools make theirs CA certificates (`is_ca`).
    pub fn self_signed(&self, names: &[&str], is_ca: bool) -> Certified {
        let key = Key::generate();
        let mut params = params("self-signed", names, Valid::Now);
        if is_ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let signed = params.self_signed(&key).expect("it can be signed");
        self.write(&signed.pem(), &key)
    }

    fn write(&self, certificate: &str, key: &Key) -> Certified {
        let number = self.issued.fetch_add(1, Relaxed);
        let file = |ending: &str| self.directory.path().join(format!("{number}.{ending}"));
        let certified = Certified {
            cert: file("pem"),
            key: file("key"),
        };
        std::fs::write(&certified.cert, certificate).expect("it can be written");
        let key = pem("PRIVATE KEY", &key.pkcs8());
        std::fs::write(&certified.key, key).expect("it can be written");
        certified
    }
}

fn params(name: &str, names: &[&str], valid: Valid) -> CertificateParams {
    let owned: Vec<String> = names.iter().map(|one| (*one).to_owned()).collect();
    let mut params = CertificateParams::new(owned).expect("they are names");
    params.distinguished_name.push(DnType::CommonName, name);
    params.serial_number = Some(SerialNumber::from(1));
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    if valid == Valid::Before {
        params.not_after = date_time_ymd(2021, 1, 1);
    }
    params
}

/// Bytes as PEM.
fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

/// The TLS settings of a server.
#[derive(Debug, Clone, Default)]
pub struct TlsServerSettings {
    /// The only accepted version; `None` for any.
    pub version: Option<&'static SupportedProtocolVersion>,
    /// The trusted issuers of client certificates; `None` if clients need no certificate.
    pub clients_of: Option<PathBuf>,
    /// Protocols that it offers.
    pub alpn: Vec<Vec<u8>>,
}

/// Shared state of a server's connections.
pub fn server_config(certified: &Certified, speaks: &TlsServerSettings) -> Arc<ServerConfig> {
    let provider = Arc::new(provider().expect("this CPU can do it"));
    let versions = speaks
        .version
        .map_or(rustls::ALL_VERSIONS.to_vec(), |one| vec![one]);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions)
        .expect("there are versions");
    let builder = match &speaks.clients_of {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(read(file));
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("there is an authority"))
        }
    };
    let key = PrivateKeyDer::from_pem_file(&certified.key).expect("there is a key");
    let chain = read(&certified.cert);
    let mut config = builder.with_single_cert(chain, key).expect("they fit");
    config.alpn_protocols.clone_from(&speaks.alpn);
    config.ticketer = rustls_graviola::Ticketer::new().expect("there are random numbers");
    Arc::new(config)
}

fn read(file: &Path) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_file_iter(file).expect("it can be read");
    found.map(|one| one.expect("it is PEM")).collect()
}

/// A connection on the server's side.
pub type Served = StreamOwned<ServerConnection, TcpStream>;

/// A server with a thread per connection, which runs as long as the process.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    /// Connections accepted.
    pub accepted: Arc<AtomicUsize>,
    /// Handshakes completed: calls of `serve`.
    pub opened: Arc<AtomicUsize>,
    /// Connections that clients ended with close_notify.
    pub closed_in_order: Arc<AtomicUsize>,
}

impl Server {
    /// Serves each connection, once its handshake is complete, with `serve`, which returns whether the client closed
    /// it.
    pub fn start(
        config: Arc<ServerConfig>,
        serve: impl Fn(&mut Served) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let server = Self {
            address: listener.local_addr().expect("it is bound"),
            accepted: Arc::default(),
            opened: Arc::default(),
            closed_in_order: Arc::default(),
        };
        let counts = server.clone();
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            while let Ok((mut socket, _)) = listener.accept() {
                counts.accepted.fetch_add(1, Relaxed);
                let (counts, serve) = (counts.clone(), Arc::clone(&serve));
                let config = Arc::clone(&config);
                std::thread::spawn(move || {
                    // Replies should not wait until tickets are acknowledged.
                    socket.set_nodelay(true).expect("it is a socket");
                    let mut connection = ServerConnection::new(config).expect("it fits");
                    while connection.is_handshaking() {
                        if connection.complete_io(&mut socket).is_err() {
                            // The alert with the reason; further input must not turn it into a reset.
                            let _ = connection.write_tls(&mut socket);
                            let _ = socket.shutdown(Shutdown::Write);
                            while matches!(socket.read(&mut [0; 4096]), Ok(1..)) {}
                            return;
                        }
                    }
                    counts.opened.fetch_add(1, Relaxed);
                    let mut stream = StreamOwned::new(connection, socket);
                    let in_order = serve(&mut stream);
                    if in_order {
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                    }
                    counts.closed_in_order.fetch_add(in_order.into(), Relaxed);
                });
            }
        });
        server
    }

    /// An echo server.
    pub fn echo(config: Arc<ServerConfig>) -> Self {
        Self::start(config, |stream| {
            let mut bytes = vec![0; 100_000];
            loop {
                match stream.read(&mut bytes) {
                    Ok(0) => return true,
                    Ok(count) => {
                        if stream.write_all(&bytes[..count]).is_err() || stream.flush().is_err() {
                            return false;
                        }
                    }
                    Err(_) => return false,
                }
            }
        })
    }

    /// A server that replies to every HTTP GET with `body` bytes.
    pub fn http(config: Arc<ServerConfig>, body: usize) -> Self {
        let mut reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {body}\r\n\r\n").into_bytes();
        reply.resize(reply.len() + body, b'x');
        Self::start(config, move |stream| {
            const END: &[u8] = b"\r\n\r\n";
            let mut received = Vec::new();
            let mut bytes = [0; 4096];
            loop {
                match stream.read(&mut bytes) {
                    Ok(0) => return true,
                    Ok(count) => received.extend_from_slice(&bytes[..count]),
                    Err(_) => return false,
                }
                while let Some(end) = received.windows(END.len()).position(|four| four == END) {
                    received.drain(..end + END.len());
                    if stream.write_all(&reply).is_err() || stream.flush().is_err() {
                        return false;
                    }
                }
            }
        })
    }
}
