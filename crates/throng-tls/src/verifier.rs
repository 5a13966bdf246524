//! Whether a server's certificate is accepted.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::EndEntityCert;

/// Accepts certificates of trusted issuers, and trusted certificates themselves.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) inner: Arc<WebPkiServerVerifier>,
    pub(crate) trusted: Vec<CertificateDer<'static>>,
}

/// Accepts anything, with any signature.
#[derive(Debug)]
pub(crate) struct Anything(pub(crate) Vec<SignatureScheme>);

/// A self-signed certificate that is not trusted.
#[derive(Debug)]
pub(crate) struct SelfSigned;

impl fmt::Display for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is self-signed")
    }
}

impl std::error::Error for SelfSigned {}

impl Verifier {
    /// Checks a self-signed certificate. The usual tools mark theirs as CA certificates, which the rules forbid for
    /// servers. If a user trusts just this one, it is accepted.
    fn self_signed(
        &self,
        end_entity: &CertificateDer<'_>,
        server: &ServerName<'_>,
        error: Error,
    ) -> Result<ServerCertVerified, Error> {
        let Ok(parsed) = EndEntityCert::try_from(end_entity) else {
            return Err(error);
        };
        if parsed.issuer() != parsed.subject() {
            return Err(error);
        }
        // Its validity was checked before.
        let is_ca = is_used_as_server(&error);
        if is_ca && self.trusted.contains(end_entity) {
            let named = rustls::server::ParsedCertificate::try_from(end_entity)
                .and_then(|certificate| rustls::client::verify_server_name(&certificate, server));
            return named.map(|()| ServerCertVerified::assertion());
        }
        if is_ca || error == CertificateError::UnknownIssuer.into() {
            let why = OtherError(Arc::new(SelfSigned));
            return Err(CertificateError::Other(why).into());
        }
        Err(error)
    }
}

/// Whether the error is that a server has a CA certificate.
fn is_used_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(error))) = error else {
        return false;
    };
    matches!(
        error.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        verified.or_else(|error| self.self_signed(end_entity, server_name, error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}
