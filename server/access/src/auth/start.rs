//! Puts authentication together from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Authenticator;
use super::certificates::Certificates;
use super::failures::Failures;
use super::jwks_source::{Follower, Place, Source, read_bounded};
use super::jwt::Rules;
use super::key_ring::{AdminKeyError, KeyRing};
use super::tokens::Tokens;
use crate::auth::AuthMetrics;
use toolgate_config::{AuthConfig, AuthMethod, JwksPlace, TokenConfig};
use toolgate_store::KeyStore;

/// Bytes of a file of authorities.
const AUTHORITIES_MAX: usize = 4 << 20;

/// Why authentication can't begin.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The admin key can't be had.
    #[error("auth.admin_key_file")]
    AdminKey(#[from] AdminKeyError),
    /// The file of the issuer's keys can't be used.
    #[error("auth.jwks_file: {}: {problem}", path.display())]
    KeySet {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file of authorities can't be used.
    #[error("auth.jwks_ca_file: {}: {problem}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// What authentication does beside calls: reading keys again, noting use.
#[derive(Default)]
pub struct Keeping {
    keys: Option<Arc<KeyRing>>,
    follower: Option<Follower>,
}

/// Authentication as it is configured; `copy` is where a replica keeps what it knows of the API keys of a shared store. Blocks for a moment: files are read, and the issuer is asked for its keys.
///
/// # Errors
/// A file that is named can't be read, or is not what it should be.
pub fn start(
    config: &AuthConfig,
    (store, copy): (Arc<dyn KeyStore>, Option<PathBuf>),
    metrics: AuthMetrics,
) -> Result<(Authenticator, Keeping), AuthError> {
    let has = |method| config.methods.contains(&method);
    let keys = has(AuthMethod::ApiKey).then(|| KeyRing::new(store, config.admin_key_file.clone()));
    let keys = keys.transpose()?.map(|keys| match copy {
        Some(path) => Arc::new(keys.with_copy(path)),
        None => Arc::new(keys),
    });
    let tokens = config.tokens.as_ref().filter(|_| has(AuthMethod::Jwt));
    let (tokens, follower) = tokens.map(begin_tokens).transpose()?.unzip();
    let certificates = has(AuthMethod::Mtls)
        .then(|| Certificates::new(config.certificates.clone(), config.trust_domain.as_deref()));
    let failures = Failures::new(metrics);
    let authenticator = Authenticator { keys: keys.clone(), tokens, certificates, failures };
    Ok((authenticator, Keeping { keys, follower }))
}

/// Reads what authentication begins with, and begins nothing. Blocks as [`start`] does.
///
/// # Errors
/// As [`start`].
pub fn look(config: &AuthConfig) -> Result<(), AuthError> {
    let has = |method| config.methods.contains(&method);
    if let Some(path) = config.admin_key_file.as_deref().filter(|_| has(AuthMethod::ApiKey)) {
        KeyRing::look(path)?;
    }
    let tokens = config.tokens.as_ref().filter(|_| has(AuthMethod::Jwt));
    tokens.map(begin_tokens).transpose()?;
    Ok(())
}

fn begin_tokens(config: &TokenConfig) -> Result<(Tokens, Follower), AuthError> {
    let place = match &config.keys {
        JwksPlace::File(path) => Place::File(path.clone()),
        JwksPlace::Url { url, ca_file } => with_authorities(url, ca_file.as_deref())?,
    };
    let begun = Source::begin(place, config.refresh, config.max_age);
    let (source, follower) = begun.map_err(|problem| {
        let path = match &config.keys {
            JwksPlace::File(path) => path.clone(),
            JwksPlace::Url { url, .. } => url.into(),
        };
        AuthError::KeySet { path, problem }
    })?;
    let rules = Rules {
        issuer: config.issuer.clone(),
        audience: config.audience.clone(),
        skew: i64::try_from(config.clock_skew.as_secs()).unwrap_or(i64::MAX),
        tenant: config.tenant_claim.clone(),
        principal: config.principal_claim.clone(),
        roles: config.roles_claim.clone(),
        scopes: config.scopes_claim.clone(),
    };
    Ok((Tokens::new(rules, source), follower))
}

fn with_authorities(url: &str, ca_file: Option<&Path>) -> Result<Place, AuthError> {
    let Some(path) = ca_file else {
        return Ok(Place::url(url, None).expect("there is no file to be wrong"));
    };
    let place = read_bounded(path, AUTHORITIES_MAX).and_then(|pem| Place::url(url, Some(&pem)));
    place.map_err(|problem| AuthError::Authorities { path: path.to_owned(), problem })
}

impl Keeping {
    /// Runs until `over`; each value of `hangups` has files read again.
    pub async fn run(self, hangups: watch::Receiver<()>, over: CancellationToken) {
        let mut tasks = JoinSet::new();
        if let Some(follower) = self.follower {
            tasks.spawn(follower.run(hangups.clone(), over.clone()));
        }
        if let Some(keys) = self.keys {
            tasks.spawn(async move { keys.keep(hangups, over).await });
        }
        tasks.join_all().await;
    }
}
