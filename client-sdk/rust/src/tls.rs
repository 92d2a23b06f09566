//! Options of encrypted connections.

use std::fmt;

/// TLS options for `https://` targets. All are optional. The default trusts the system's certificate authorities.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// PEM of the authorities that may sign the server's certificate. Default: the system's authorities.
    pub ca_pem: Option<Vec<u8>>,
    /// The client's own certificate and key, for servers that require one (mTLS).
    pub identity: Option<ClientIdentity>,
    /// Name that the server's certificate must have. Default: the target's host.
    pub server_name: Option<String>,
}

/// Certificate and private key of a client.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    /// PEM of the certificate, followed by its intermediate certificates, if any.
    pub certificate_pem: Vec<u8>,
    /// PEM of the private key.
    pub key_pem: Vec<u8>,
}

#[cfg(feature = "tls")]
impl TlsOptions {
    pub(crate) fn for_transport(
        self,
        timeout: std::time::Duration,
    ) -> Result<tonic::transport::ClientTlsConfig, crate::Error> {
        use tonic::transport::{Certificate, ClientTlsConfig, Identity};

        let mut config = ClientTlsConfig::new().timeout(timeout);
        config = match self.ca_pem {
            None => config.with_native_roots(),
            // The transport would trust no authority, and would report that as an error of each server.
            Some(pem) if !holds(&pem, b"-----BEGIN CERTIFICATE-----") => {
                let problem = "tls.ca_pem holds no certificate in PEM".into();
                return Err(crate::Error::Options { problem });
            }
            Some(pem) => config.ca_certificate(Certificate::from_pem(pem)),
        };
        if let Some(identity) = self.identity {
            if !holds(&identity.certificate_pem, b"-----BEGIN CERTIFICATE-----") {
                let problem = "tls.identity.certificate_pem holds no certificate in PEM".into();
                return Err(crate::Error::Options { problem });
            }
            config =
                config.identity(Identity::from_pem(identity.certificate_pem, identity.key_pem));
        }
        Ok(match self.server_name {
            Some(name) => config.domain_name(name),
            None => config,
        })
    }
}

#[cfg(feature = "tls")]
fn holds(pem: &[u8], mark: &[u8]) -> bool {
    pem.windows(mark.len()).any(|window| window == mark)
}

impl fmt::Debug for TlsOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsOptions")
            .field("ca_pem", &self.ca_pem.as_ref().map(|_| "given"))
            .field("identity", &self.identity)
            .field("server_name", &self.server_name)
            .finish()
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("given")
    }
}
