//! TLS of the listener for Envoy: `[llm.ext_proc_tls]`.

use std::path::PathBuf;

use serde::Deserialize;

/// Files of TLS. Without a certificate the listener speaks without TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExtProcTlsConfig {
    /// Certificate of the listener and those that it was signed with (PEM).
    pub cert_file: Option<PathBuf>,
    /// Private key of the certificate (PEM).
    pub key_file: Option<PathBuf>,
    /// Authorities of Envoy's certificate (PEM). Without them, none is asked for.
    pub client_ca_file: Option<PathBuf>,
}

impl ExtProcTlsConfig {
    /// Returns true if each end shows a certificate.
    pub(super) fn is_mutual(&self) -> bool {
        self.cert_file.is_some() && self.client_ca_file.is_some()
    }

    /// Returns the problem of the settings, if they have one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        if self.cert_file.is_some() != self.key_file.is_some() {
            Some("llm.ext_proc_tls: `cert_file` and `key_file` need each other")
        } else if self.client_ca_file.is_some() && self.cert_file.is_none() {
            Some(
                "llm.ext_proc_tls: `client_ca_file` needs `cert_file`: certificates are shown over TLS",
            )
        } else {
            None
        }
    }
}
