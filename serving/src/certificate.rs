//! Reader of the fields that the server needs of a client certificate: names and expiry. It does not verify trust:
//! rustls has done that and has refused malformed certificates.

use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use webpki::EndEntityCert;

mod der;

use self::der::{Element, Reader};

/// `id-at-commonName` (2.5.4.3).
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Verified client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerCertificate {
    /// URIs among its subject alternative names.
    pub uris: Vec<String>,
    /// Common name of its subject; `None` unless there is exactly one.
    pub common_name: Option<String>,
    /// Expiry, in milliseconds since 1970 (UTC).
    pub not_after_ms: i64,
    /// SHA-256 of the DER bytes.
    pub sha256: [u8; 32],
}

impl PeerCertificate {
    /// Reads a DER certificate; returns `None` when it can't be parsed.
    #[must_use]
    pub fn read(der: &CertificateDer<'_>) -> Option<Self> {
        let certificate = EndEntityCert::try_from(der).ok()?;
        Some(Self {
            uris: certificate.valid_uri_names().map(str::to_owned).collect(),
            common_name: common_name(certificate.subject()),
            not_after_ms: not_after(der)?.checked_mul(1_000)?,
            sha256: Sha256::digest(der).into(),
        })
    }
}

/// Returns the only common name of a subject, which is a sequence of sets of pairs.
fn common_name(subject: &[u8]) -> Option<String> {
    let mut found = None;
    for set in Reader::new(subject) {
        for pair in Reader::new(set.content) {
            let mut pair = Reader::new(pair.content);
            let kind = pair.next()?;
            let value = pair.next()?;
            if kind.content == COMMON_NAME && found.replace(value).is_some() {
                return None;
            }
        }
    }
    let Element { tag, content } = found?;
    let is_text = [der::UTF8_STRING, der::PRINTABLE_STRING, der::IA5_STRING].contains(&tag);
    is_text.then(|| String::from_utf8(content.to_vec()).ok())?
}

/// Returns the end of a certificate's validity, in seconds since 1970 (RFC 5280, 4.1).
fn not_after(certificate: &[u8]) -> Option<i64> {
    let whole = Reader::new(certificate).next()?;
    let signed = Reader::new(whole.content).next()?;
    let mut fields = Reader::new(signed.content);
    let first = fields.next()?;
    // The version field exists from version 2 on; then come serial number, algorithm and issuer.
    let before_validity = if first.tag == der::VERSION { 3 } else { 2 };
    let validity = fields.nth(before_validity)?;
    let end = Reader::new(validity.content).nth(1)?;
    match end.tag {
        der::UTC_TIME => {
            let (year, rest) = end.content.split_at_checked(2)?;
            let year = der::digits(year)?;
            der::moment(if year < 50 { 2_000 + year } else { 1_900 + year }, rest)
        }
        der::GENERALIZED_TIME => {
            let (year, rest) = end.content.split_at_checked(4)?;
            der::moment(der::digits(year)?, rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
