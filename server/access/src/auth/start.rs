//! Builds authentication from its configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Authenticator;
use super::certificates::Certificates;
use super::failures::Failures;
use super::jwks_source::{Follower, JwksOrigin, Source, read_bounded};
use super::jwt::Rules;
use super::key_ring::{AdminKeyError, KeyRing};
use super::tokens::Tokens;
use crate::auth::AuthMetrics;
use toolgate_config::{AuthConfig, AuthMethod, JwksPlace, TokenConfig};
use toolgate_store::KeyStore;

/// Maximum size of the file of certificate authorities in bytes.
const AUTHORITIES_MAX: usize = 4 << 20;

/// Failure to start authentication.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// API keys are accepted, and no store holds any.
    #[error("auth.methods: api-key needs a store of keys")]
    NoKeyStore,
    /// The admin key can't be loaded.
    #[error("auth.admin_key_file")]
    AdminKey(#[from] AdminKeyError),
    /// The file of the issuer's keys can't be used.
    #[error("auth.jwks_file: {}: {problem}", path.display())]
    KeySet {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// The file of certificate authorities can't be used.
    #[error("auth.jwks_ca_file: {}: {problem}", path.display())]
    Authorities {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
}

/// Background work of authentication: reading keys again and recording key use.
#[derive(Default)]
pub struct Keeping {
    keys: Option<Arc<KeyRing>>,
    follower: Option<Follower>,
}

/// Starts authentication as configured. API keys need a store. A replica keeps what it knows of the API keys of a shared store in the file
/// `copy`. Blocks for a moment: it reads files and fetches the issuer's keys.
///
/// # Errors
/// A configured file can't be read or is invalid.
pub fn start(
    config: &AuthConfig,
    store: Option<Arc<dyn KeyStore>>,
    copy: Option<PathBuf>,
    metrics: AuthMetrics,
) -> Result<(Authenticator, Keeping), AuthError> {
    let has = |method| config.methods.contains(&method);
    let store = store.filter(|_| has(AuthMethod::ApiKey));
    if has(AuthMethod::ApiKey) && store.is_none() {
        return Err(AuthError::NoKeyStore);
    }
    let keys = store.map(|store| KeyRing::new(store, config.admin_key_file.clone()));
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

/// Reads everything that authentication needs at its start, without starting it. Blocks as [`start`] does.
///
/// # Errors
/// Same as for [`start`].
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
        JwksPlace::File(path) => JwksOrigin::File(path.clone()),
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
        audiences: config.audiences.clone(),
        skew: i64::try_from(config.clock_skew.as_secs()).unwrap_or(i64::MAX),
        tenant: config.tenant_claim.clone(),
        principal: config.principal_claim.clone(),
        roles: config.roles_claim.clone(),
        scopes: config.scopes_claim.clone(),
    };
    Ok((Tokens::new(rules, source), follower))
}

fn with_authorities(url: &str, ca_file: Option<&Path>) -> Result<JwksOrigin, AuthError> {
    let Some(path) = ca_file else {
        return Ok(JwksOrigin::url(url, None).expect("there is no file to be wrong"));
    };
    let place =
        read_bounded(path, AUTHORITIES_MAX).and_then(|pem| JwksOrigin::url(url, Some(&pem)));
    place.map_err(|problem| AuthError::Authorities { path: path.to_owned(), problem })
}

impl Keeping {
    /// Runs until `over` is cancelled. Each value of `hangups` triggers another read of the files.
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
