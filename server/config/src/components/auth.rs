//! Authentication, TLS and the audit file.

use std::path::PathBuf;
use std::time::Duration;

use crate::{CertificateRule, Settings, keys};

/// Authentication.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// Accepted kinds of credentials; empty when authentication is off.
    pub methods: Vec<AuthMethod>,
    /// File that holds one API key of an admin.
    pub admin_key_file: Option<PathBuf>,
    /// Validation of signed tokens; `None` when they are not accepted.
    pub tokens: Option<TokenConfig>,
    /// Trust domain whose SPIFFE IDs name the tenant.
    pub trust_domain: Option<String>,
    /// Tenants and roles of other client certificates.
    pub certificates: Vec<CertificateRule>,
}

/// Kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// API keys that this service issued.
    ApiKey,
    /// Tokens that an identity provider signed.
    Jwt,
    /// Client certificates.
    Mtls,
}

/// Validation of signed tokens.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// Source of the issuer's keys.
    pub keys: JwksPlace,
    /// Interval at which a URL is asked for the keys.
    pub refresh: Duration,
    /// Time that the last known keys stay valid while no keys can be loaded.
    pub max_age: Duration,
    /// Required issuer of a token.
    pub issuer: String,
    /// Audiences of which a token must have one.
    pub audiences: Vec<String>,
    /// Tolerated difference between the issuer's clock and this machine's.
    pub clock_skew: Duration,
    /// Claim that holds the tenant.
    pub tenant_claim: String,
    /// Claim that holds the principal.
    pub principal_claim: String,
    /// Claim that holds the roles.
    pub roles_claim: String,
    /// Claim that holds the scopes which an agent may have at most; `None` if tokens say nothing of scopes.
    pub scopes_claim: Option<String>,
}

/// Source of an issuer's keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksPlace {
    /// File that holds the keys.
    File(PathBuf),
    /// Address of the keys, served over https.
    Url {
        /// URL of the keys.
        url: String,
        /// File with the certificate authorities of the URL's certificate; `None` for the public ones.
        ca_file: Option<PathBuf>,
    },
}

/// TLS on the gRPC port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// File with the server's certificate and the certificates that it was signed with.
    pub cert_file: PathBuf,
    /// File with the certificate's private key.
    pub key_file: PathBuf,
    /// File with the authorities of client certificates; `None` when clients are asked for no certificate.
    pub client_ca_file: Option<PathBuf>,
    /// True if a client without a certificate is accepted, because other credentials do as well.
    pub client_certificate_optional: bool,
}

/// Audit events of changes.
#[derive(Debug, Clone)]
pub struct AuditConfig {
    /// File for audit events, which the log holds too; `None` for the log alone.
    pub file: Option<PathBuf>,
}

impl AuthMethod {
    /// Names of the methods in the configuration, in the order of the variants.
    pub const NAMES: [&'static str; 3] = ["api-key", "jwt", "mtls"];

    /// Returns the name of the method in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl From<&Settings> for AuthConfig {
    fn from(settings: &Settings) -> Self {
        Self {
            methods: settings.read(&keys::AUTH_METHODS),
            admin_key_file: settings.read_optional(&keys::AUTH_ADMIN_KEY_FILE),
            tokens: tokens(settings),
            trust_domain: settings.read_optional(&keys::AUTH_TRUST_DOMAIN),
            certificates: settings.read(&keys::AUTH_CERTIFICATES),
        }
    }
}

/// Returns the settings of signed tokens; `None` if no source of keys is set. `config::check` ensures that all settings
/// are there if tokens are accepted.
fn tokens(settings: &Settings) -> Option<TokenConfig> {
    let ca_file = settings.read_optional(&keys::AUTH_JWKS_CA_FILE);
    let place = match (
        settings.read_optional(&keys::AUTH_JWKS_FILE),
        settings.read_optional(&keys::AUTH_JWKS_URL),
    ) {
        (Some(path), _) => JwksPlace::File(path),
        (None, Some(url)) => JwksPlace::Url { url, ca_file },
        (None, None) => return None,
    };
    Some(TokenConfig {
        keys: place,
        refresh: settings.read(&keys::AUTH_JWKS_REFRESH),
        max_age: settings.read(&keys::AUTH_JWKS_MAX_AGE),
        issuer: settings.read_optional(&keys::AUTH_ISSUER)?,
        audiences: vec![settings.read_optional(&keys::AUTH_AUDIENCE)?],
        clock_skew: settings.read(&keys::AUTH_CLOCK_SKEW),
        tenant_claim: settings.read(&keys::AUTH_TENANT_CLAIM),
        principal_claim: settings.read(&keys::AUTH_PRINCIPAL_CLAIM),
        roles_claim: settings.read(&keys::AUTH_ROLES_CLAIM),
        scopes_claim: settings.read_optional(&keys::AUTH_SCOPES_CLAIM),
    })
}

impl From<&Settings> for Option<TlsConfig> {
    fn from(settings: &Settings) -> Self {
        Some(TlsConfig {
            cert_file: settings.read_optional(&keys::TLS_CERT_FILE)?,
            key_file: settings.read_optional(&keys::TLS_KEY_FILE)?,
            client_ca_file: settings.read_optional(&keys::TLS_CLIENT_CA_FILE),
            client_certificate_optional: settings
                .read(&keys::AUTH_METHODS)
                .contains(&AuthMethod::Mtls),
        })
    }
}

impl From<&Settings> for AuditConfig {
    fn from(settings: &Settings) -> Self {
        Self { file: settings.read_optional(&keys::AUDIT_FILE) }
    }
}
