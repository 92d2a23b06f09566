//! Who calls: from what the transport saw of a credential to a [`Caller`], or a refusal with its reason. The wire is
//! for `toolgate_grpc`; what a caller may do is in one table, [`access`].

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use toolgate_serving::{Network, PeerCertificate};

use toolgate_config::AuthMethod;
use toolgate_core::error::Error;
use toolgate_core::role::{Role, Roles};

pub mod access;
pub mod api_key;
pub mod authorization;
mod caller;
mod certificates;
mod failures;
mod jwks_source;
pub mod jwt;
pub mod key_ring;
pub mod key_set;
mod metrics;
mod refusal;
mod start;
mod tokens;

pub use authorization::Authorization;
pub use caller::{Caller, CredentialId};
pub use metrics::AuthMetrics;
pub use refusal::{KeyFault, Refusal, TokenFault};
pub use start::{AuthError, Keeping, look, start};

use self::certificates::Certificates;
use self::failures::Failures;
use self::key_ring::KeyRing;
use self::tokens::Tokens;

/// What the transport saw of a caller's credentials.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// The header `authorization`.
    pub authorization: Authorization<'a>,
    /// The certificate of a TLS client, which the transport has verified.
    pub certificate: Option<&'a PeerCertificate>,
    /// Where the caller is; `None` for this host.
    pub network: Option<Network>,
}

/// Tells who calls.
pub struct Authenticator {
    keys: Option<Arc<KeyRing>>,
    tokens: Option<Tokens>,
    certificates: Option<Certificates>,
    failures: Failures,
}

impl Authenticator {
    /// One that takes everybody for anybody: authentication is off.
    #[must_use]
    pub fn off() -> Self {
        let failures = Failures::new(AuthMetrics::default());
        Self { keys: None, tokens: None, certificates: None, failures }
    }

    /// Whether calls need a credential.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.keys.is_some() || self.tokens.is_some() || self.certificates.is_some()
    }

    /// The caller with these credentials. A credential that is given and is not good is refused, whatever else is given.
    ///
    /// # Errors
    /// Why the credentials are not good, counted and logged here.
    pub async fn authenticate(&self, presented: Presented<'_>) -> Result<Caller, Error> {
        if !self.is_on() {
            return Ok(Caller::anybody());
        }
        let now = Now::read();
        let told = match presented.authorization {
            Authorization::Bearer(text) if api_key::looks_like_one(text) => match &self.keys {
                Some(keys) => keys.caller(text, presented.network, now).await,
                None => Err(Refusal::MethodOff(AuthMethod::ApiKey)),
            },
            Authorization::Bearer(text) => match &self.tokens {
                Some(tokens) => tokens.caller(text, now).await,
                None => Err(Refusal::MethodOff(AuthMethod::Jwt)),
            },
            Authorization::Unusable => Err(Refusal::Malformed),
            Authorization::Absent => match (&self.certificates, presented.certificate) {
                (Some(certificates), Some(certificate)) => certificates.caller(certificate, now),
                _ => Err(Refusal::Missing),
            },
        };
        told.map_err(|refusal| self.failures.note(refusal))
    }

    /// Refuses a caller who may not do this, which is counted and logged too.
    ///
    /// # Errors
    /// The caller has none of these roles.
    pub fn require(&self, caller: &Caller, allowed: Roles, rpc: &str) -> Result<(), Error> {
        if !self.is_on() || caller.roles().has(Role::Admin) || caller.roles().meets(allowed) {
            return Ok(());
        }
        self.failures.denied(caller, rpc);
        Err(Error::PermissionDenied(format!(
            "{rpc} needs one of the roles {}, and the credential has {}",
            allowed.and(Role::Admin),
            if caller.roles().is_empty() { "none".to_owned() } else { caller.roles().to_string() },
        )))
    }

    /// Whether a credential that was good when a stream began is good still. In doubt, as when the store can't be
    /// asked, what was known last counts.
    pub async fn is_still_good(&self, caller: &Caller) -> bool {
        let now = Now::read();
        if caller.good_until_ms().is_some_and(|until| until <= now.ms) {
            return false;
        }
        match caller.credential() {
            CredentialId::ApiKey(id) => match &self.keys {
                Some(keys) => keys.is_still_good(id, now).await,
                None => true,
            },
            // Whether the token's own key is among the new ones is told when the client comes again.
            CredentialId::Jwt { generation, .. } => {
                self.tokens.as_ref().is_none_or(|tokens| tokens.generation() == *generation)
            }
            CredentialId::Mtls(_) | CredentialId::None => true,
        }
    }
}

/// One reading of the clock for all of a call's decisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Milliseconds since 1970 (UTC).
    pub(crate) ms: i64,
    /// The same on the clock that never jumps.
    pub(crate) moment: Instant,
}

impl Now {
    pub(crate) fn read() -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        Self { ms, moment: Instant::now() }
    }

    /// That moment on the calendar.
    #[cfg(test)]
    pub(crate) fn at_ms(ms: i64) -> Self {
        Self { ms, moment: Instant::now() }
    }
}
