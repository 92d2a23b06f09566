//! TLS of the gateway's listener: `[gateway.tls]`.

use std::path::PathBuf;

use serde::Deserialize;

/// Files of TLS. Without a certificate the gateway speaks plain HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// Certificate of the gateway and those that it was signed with (PEM).
    pub cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    pub key_file: Option<PathBuf>,
    /// Authorities of hosts' certificates (PEM).
    pub client_ca_file: Option<PathBuf>,
}

impl TlsConfig {
    /// Returns true if the gateway speaks TLS.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.cert_file.is_some()
    }

    /// Returns the problem of the settings, if they have one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        if self.cert_file.is_some() != self.key_file.is_some() {
            Some("`cert_file` and `key_file` need each other")
        } else if self.client_ca_file.is_some() && !self.is_on() {
            Some("`client_ca_file` needs `cert_file`: certificates are shown over TLS")
        } else {
            None
        }
    }
}
