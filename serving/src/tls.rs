//! TLS on a listener, by rustls. Certificates come from files that may be replaced while the server runs. If the new
//! files are invalid, the previous certificate stays in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::certificate::PeerCertificate;

/// Protocols by ALPN: HTTP/2 first, and HTTP/1.1 for web clients.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Paths of the certificate files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// Server certificate, followed by its chain of issuers (PEM).
    pub certificate: PathBuf,
    /// Private key of the server certificate (PEM).
    pub key: PathBuf,
    /// Authorities that client certificates must come from (PEM); `None` when no client certificate is requested.
    pub client_authorities: Option<PathBuf>,
    /// True if a client without a certificate is let in too.
    pub client_certificate_optional: bool,
}

/// Reason that certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{}: can't be read: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file has the wrong content.
    #[error("{}: {problem}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The certificate and the key don't belong together or are not supported.
    #[error("{} with {}: {problem}", certificate.display(), key.display())]
    Pair {
        /// Path of the certificate.
        certificate: PathBuf,
        /// Path of the key.
        key: PathBuf,
        /// Description of the problem.
        problem: String,
    },
}

/// Certificates in force. A connection takes them when it begins.
pub struct Tls {
    files: TlsFiles,
    present: RwLock<Present>,
    /// Content that was read last, valid or not, so that the same mistake is reported once.
    last: Mutex<Content>,
}

struct Present {
    config: Arc<ServerConfig>,
    not_after_ms: i64,
}

#[derive(PartialEq, Eq)]
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authorities: Option<Vec<u8>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file can't be read or is invalid.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let content = Content::read(&files)?;
        let present = RwLock::new(content.parse(&files)?);
        Ok(Self { files, present, last: Mutex::new(content) })
    }

    /// Reads the files again. Returns true if they changed and are now in force.
    ///
    /// # Errors
    /// The files changed and are invalid; the previous ones stay in force. The same content is reported once.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let mut last = self.last.lock();
        let content = Content::read(&self.files)?;
        if content == *last {
            return Ok(false);
        }
        let parsed = content.parse(&self.files);
        *last = content;
        *self.present.write() = parsed?;
        Ok(true)
    }

    /// Returns the expiry of the certificate in force, in milliseconds since 1970 (UTC).
    #[must_use]
    pub fn not_after_ms(&self) -> i64 {
        self.present.read().not_after_ms
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.present.read().config)
    }
}

impl Content {
    fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
        };
        Ok(Self {
            certificate: read(&files.certificate)?,
            key: read(&files.key)?,
            client_authorities: files.client_authorities.as_deref().map(read).transpose()?,
        })
    }

    fn parse(&self, files: &TlsFiles) -> Result<Present, TlsError> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let not_after_ms = PeerCertificate::read(&chain[0])
            .ok_or_else(|| wrong(&files.certificate, "the certificate can't be read"))?
            .not_after_ms;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| wrong(&files.key, &format!("no private key in PEM: {error}")))?;
        let pair = |error: rustls::Error| TlsError::Pair {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            problem: error.to_string(),
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(pair)?;
        let builder = match (&self.client_authorities, &files.client_authorities) {
            (Some(pem), Some(path)) => {
                let verifier = verifier(pem, path, files.client_certificate_optional)?;
                builder.with_client_cert_verifier(verifier)
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        Ok(Present { config: Arc::new(config), not_after_ms })
    }
}

fn verifier(
    pem: &[u8],
    path: &Path,
    optional: bool,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(pem, path)? {
        roots.add(authority).map_err(|error| wrong(path, &error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| wrong(path, &error.to_string()))
}

/// Parses a PEM file that must hold at least one certificate.
fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| wrong(path, &format!("no PEM: {error}")))?;
    if read.is_empty() { Err(wrong(path, "no certificate in PEM")) } else { Ok(read) }
}

fn wrong(path: &Path, problem: &str) -> TlsError {
    TlsError::Content { path: path.to_owned(), problem: problem.to_owned() }
}

#[cfg(test)]
mod tests;
