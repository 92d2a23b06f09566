//! Who may call, how TLS is spoken, and where changes are written down.

use std::path::PathBuf;
use std::time::Duration;

use crate::{CertificateRule, Settings};

/// Who may call.
#[derive(Debug, Clone)]
pub struct AuthConfig {
    /// The kinds of credentials that are taken; none when authentication is off.
    pub methods: Vec<AuthMethod>,
    /// The file with one API key of an admin.
    pub admin_key_file: Option<PathBuf>,
    /// How signed tokens are judged; `None` where they are not taken.
    pub tokens: Option<TokenConfig>,
    /// The trust domain whose SPIFFE IDs say the tenant.
    pub trust_domain: Option<String>,
    /// Which other client certificate is whose.
    pub certificates: Vec<CertificateRule>,
}

/// A kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// API keys that this service has made.
    ApiKey,
    /// Tokens that an identity provider has signed.
    Jwt,
    /// Client certificates.
    Mtls,
}

/// How signed tokens are judged.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// Where the issuer's keys are.
    pub keys: JwksPlace,
    /// How often a URL is asked for them.
    pub refresh: Duration,
    /// How long the keys count while none can be had.
    pub max_age: Duration,
    /// Who must have issued a token.
    pub issuer: String,
    /// Whom a token must be for.
    pub audience: String,
    /// How far the issuer's clock may be from ours.
    pub clock_skew: Duration,
    /// The claim with the tenant.
    pub tenant_claim: String,
    /// The claim with the principal.
    pub principal_claim: String,
    /// The claim with the roles.
    pub roles_claim: String,
    /// The claim with the most scopes that an agent may have.
    pub scopes_claim: Option<String>,
}

/// Where an issuer's keys are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksPlace {
    /// In a file.
    File(PathBuf),
    /// At an https URL.
    Url {
        /// The URL.
        url: String,
        /// The authorities that its certificate may be of; `None` for the public ones.
        ca_file: Option<PathBuf>,
    },
}

/// How TLS is spoken on the gRPC port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsConfig {
    /// The server's certificate, and those that it was signed with.
    pub cert_file: PathBuf,
    /// Its private key.
    pub key_file: PathBuf,
    /// The authorities of client certificates; `None` when none is asked for.
    pub client_ca_file: Option<PathBuf>,
    /// Whether a client without a certificate is let in, since there are other credentials.
    pub client_certificate_optional: bool,
}

/// Where changes are written down.
#[derive(Debug, Clone)]
pub struct AuditConfig {
    /// The file of audit events, beside the log.
    pub file: Option<PathBuf>,
}

impl AuthMethod {
    /// The names, as in the configuration.
    pub const NAMES: [&'static str; 3] = ["api-key", "jwt", "mtls"];

    /// The name, as in the configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl From<&Settings> for AuthConfig {
    fn from(settings: &Settings) -> Self {
        let methods = [AuthMethod::ApiKey, AuthMethod::Jwt, AuthMethod::Mtls];
        let named = settings.words("auth.methods");
        Self {
            methods: methods.into_iter().filter(|method| named.contains(&method.name())).collect(),
            admin_key_file: settings.maybe_path("auth.admin_key_file"),
            tokens: tokens(settings),
            trust_domain: settings.text("auth.trust_domain"),
            certificates: settings.certificates("auth.certificates"),
        }
    }
}

/// All that tokens need, as `config::check` has made sure of where they are taken.
fn tokens(settings: &Settings) -> Option<TokenConfig> {
    let claim = |name: &str| settings.text(name).unwrap_or_default();
    let ca_file = settings.maybe_path("auth.jwks_ca_file");
    let keys = match (settings.maybe_path("auth.jwks_file"), settings.text("auth.jwks_url")) {
        (Some(path), _) => JwksPlace::File(path),
        (None, Some(url)) => JwksPlace::Url { url, ca_file },
        (None, None) => return None,
    };
    Some(TokenConfig {
        keys,
        refresh: settings.duration("auth.jwks_refresh"),
        max_age: settings.duration("auth.jwks_max_age"),
        issuer: settings.text("auth.issuer")?,
        audience: settings.text("auth.audience")?,
        clock_skew: settings.duration("auth.clock_skew"),
        tenant_claim: claim("auth.tenant_claim"),
        principal_claim: claim("auth.principal_claim"),
        roles_claim: claim("auth.roles_claim"),
        scopes_claim: settings.text("auth.scopes_claim"),
    })
}

impl From<&Settings> for Option<TlsConfig> {
    fn from(settings: &Settings) -> Self {
        Some(TlsConfig {
            cert_file: settings.maybe_path("tls.cert_file")?,
            key_file: settings.maybe_path("tls.key_file")?,
            client_ca_file: settings.maybe_path("tls.client_ca_file"),
            client_certificate_optional: settings
                .words("auth.methods")
                .contains(&AuthMethod::Mtls.name()),
        })
    }
}

impl From<&Settings> for AuditConfig {
    fn from(settings: &Settings) -> Self {
        Self { file: settings.maybe_path("audit.file") }
    }
}
