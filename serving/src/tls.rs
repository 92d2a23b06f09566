//! TLS on a listener, by rustls: certificates from files, which may be replaced while the server runs. A pair that is no
//! good leaves the one before it in force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::certificate::PeerCertificate;

/// HTTP/2 first; the web's callers may have HTTP/1.1.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Where the certificates are.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The server's certificate, and those that it was signed with (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
    /// The authorities of client certificates (PEM); `None` when none is asked for.
    pub client_authorities: Option<PathBuf>,
    /// Whether a client without a certificate is let in all the same.
    pub client_certificate_optional: bool,
}

/// Why certificates can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read.
    #[error("{}: can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file does not hold what it should.
    #[error("{}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The certificate and the key can't be used together.
    #[error("{} with {}: {problem}", certificate.display(), key.display())]
    Pair {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// What is wrong with them.
        problem: String,
    },
}

/// The certificates in force. Connections take them when they begin.
pub struct Tls {
    files: TlsFiles,
    present: RwLock<Present>,
    /// What was read last, good or not, so that the same mistake is told once.
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
    /// A file can't be read, or is not what it should be.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let content = Content::read(&files)?;
        let present = RwLock::new(content.parse(&files)?);
        Ok(Self { files, present, last: Mutex::new(content) })
    }

    /// Reads the files again; whether they changed and are in force now.
    ///
    /// # Errors
    /// They changed and are not what they should be: what was in force stays. The same content is told of once.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let content = Content::read(&self.files)?;
        if content == *last {
            return Ok(false);
        }
        let parsed = content.parse(&self.files);
        *last = content;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = parsed?;
        Ok(true)
    }

    /// When the certificate in force expires, in milliseconds since 1970 (UTC).
    #[must_use]
    pub fn not_after_ms(&self) -> i64 {
        self.present.read().unwrap_or_else(PoisonError::into_inner).not_after_ms
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner).config)
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

/// At least one certificate.
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
