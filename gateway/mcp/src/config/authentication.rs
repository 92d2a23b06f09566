//! Credentials of hosts: `[gateway.auth]`.

use std::path::PathBuf;

use serde::Deserialize;
use toolgate_upstream::{OAuthClient, Secret};

use super::values::resolved;
use super::{Config, ConfigError};

/// Credentials of hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuthConfig {
    /// Kinds of credentials that are taken; none: anybody is let in.
    pub methods: Vec<AuthMethod>,
    /// True if anybody may be let in on an address that other machines reach.
    pub allow_anybody: bool,
    /// Issuer of tokens.
    pub issuer: Option<String>,
    /// https URL of the issuer's keys.
    pub jwks_url: Option<String>,
    /// File of the issuer's keys.
    pub jwks_file: Option<PathBuf>,
    /// Certificate authorities of `jwks_url`. Absent: the public ones.
    pub jwks_ca_file: Option<PathBuf>,
    /// Audiences of tokens beside the URLs of the gateway.
    pub audiences: Vec<String>,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
    /// Client at the issuer by which a person's browser says who it is. Absent: one that is registered.
    pub client_id: Option<String>,
    /// Secret of that client: `env:NAME` or `file:PATH`.
    pub client_secret: Option<String>,
    /// Claim that names the tenant. Absent: every token is of the gateway's own tenant.
    pub tenant_claim: Option<String>,
    /// Claim that names the principal. Absent: `sub`.
    pub principal_claim: Option<String>,
    /// Claim that names the roles. Absent: every token is an agent's, and no operator's.
    pub roles_claim: Option<String>,
    /// Claim that names the scopes. Absent: `scope`.
    pub scopes_claim: Option<String>,
    /// Store of the API keys: a data directory, or the URL of a PostgreSQL database. Absent: that of the routing plane within
    /// this process.
    pub key_store: Option<String>,
    /// SPIFFE trust domain: certificates of `spiffe://TRUST-DOMAIN/tenant/TENANT/PRINCIPAL` are agents of that tenant.
    pub trust_domain: Option<String>,
    /// Other certificates of hosts with the tenant and roles of each, such as `cn:ops=acme:agent`.
    pub certificates: Vec<String>,
}

/// Kind of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMethod {
    /// API keys, made by `toolgate key create`.
    ApiKey,
    /// Tokens of an authorization server.
    Jwt,
    /// Certificates that hosts show over TLS.
    Mtls,
}

impl AuthConfig {
    /// Returns the issuers of tokens; none if no tokens are taken.
    pub(crate) fn issuers(&self) -> Vec<String> {
        let issuer = self.issuer.iter().filter(|_| self.methods.contains(&AuthMethod::Jwt));
        issuer.cloned().collect()
    }

    /// Returns the problem of the settings, if they have one.
    pub(super) fn problem(&self) -> Option<&'static str> {
        let has_jwt = self.methods.contains(&AuthMethod::Jwt);
        let is_of_tokens = self.issuer.is_some()
            || self.jwks_url.is_some()
            || self.jwks_file.is_some()
            || !self.scopes.is_empty()
            || !self.audiences.is_empty();
        let is_https = |url: &String| url.starts_with("https://");
        if has_jwt && self.issuer.as_deref().is_none_or(str::is_empty) {
            Some("`jwt` needs `issuer`: tokens of others would do")
        } else if has_jwt && self.jwks_url.is_some() == self.jwks_file.is_some() {
            Some("`jwt` needs either `jwks_url` or `jwks_file`")
        } else if !self.jwks_url.iter().all(is_https) {
            Some("`jwks_url` must begin with https://")
        } else if is_of_tokens && !has_jwt {
            Some("`methods` must have \"jwt\" for `issuer`, `jwks_*`, `scopes` and `audiences`")
        } else if (self.client_id.is_some() && !has_jwt)
            || (self.client_secret.is_some() && self.client_id.is_none())
        {
            Some("`client_secret` needs `client_id`, and that needs \"jwt\" among `methods`")
        } else if self.key_store.is_some() && !self.methods.contains(&AuthMethod::ApiKey) {
            Some("`methods` must have \"api-key\" for `key_store`")
        } else if self.methods.contains(&AuthMethod::Mtls)
            != (self.trust_domain.is_some() || !self.certificates.is_empty())
        {
            Some("\"mtls\" among `methods` and `trust_domain` or `certificates` need each other")
        } else if self.allow_anybody && !self.methods.is_empty() {
            Some("`allow_anybody` has no effect beside `methods`: leave one out")
        } else {
            None
        }
    }
}

impl Config {
    /// Returns the client by which a person's browser says who it is, at the issuer of callers' tokens; `None` if they come with
    /// none.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if its secret is not there.
    pub(crate) fn sign_in_client(&self) -> Result<Option<OAuthClient>, ConfigError> {
        let auth = &self.gateway.auth;
        if auth.issuers().is_empty() {
            return Ok(None);
        }
        let wrong = |problem: &str| ConfigError::Invalid {
            path: PathBuf::from("gateway.auth.client_secret"),
            problem: problem.to_owned(),
        };
        let secret = auth.client_secret.as_ref().map(|place| {
            if !place.starts_with("env:") && !place.starts_with("file:") {
                return Err(wrong("must be \"env:NAME\" or \"file:PATH\""));
            }
            resolved("", place).map(Secret::new).map_err(|error| match error {
                ConfigError::Server { problem, .. } => wrong(&problem),
                error => error,
            })
        });
        Ok(Some(OAuthClient {
            id: auth.client_id.clone(),
            secret: secret.transpose()?,
            scopes: auth.scopes.clone(),
            issuer: auth.issuer.clone(),
            ..OAuthClient::default()
        }))
    }
}
