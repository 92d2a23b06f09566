//! Authentication: turns the credentials that the transport received into a [`Caller`], or into a refusal with its
//! reason. `toolgate_grpc` handles the wire. One table, [`access`], holds the permissions of a caller.

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

/// Credentials of a caller, as the transport received them.
#[derive(Debug, Clone, Copy)]
pub struct Presented<'a> {
    /// Content of the header `authorization`.
    pub authorization: Authorization<'a>,
    /// Certificate of a TLS client, already verified by the transport.
    pub certificate: Option<&'a PeerCertificate>,
    /// Network of the caller; `None` for this host.
    pub network: Option<Network>,
}

/// Authentication of callers by API key, token or client certificate.
pub struct Authenticator {
    keys: Option<Arc<KeyRing>>,
    tokens: Option<Tokens>,
    certificates: Option<Certificates>,
    failures: Failures,
}

impl Authenticator {
    /// Creates an authenticator that accepts every call without a credential: authentication is off.
    #[must_use]
    pub fn off() -> Self {
        let failures = Failures::new(AuthMetrics::default());
        Self { keys: None, tokens: None, certificates: None, failures }
    }

    /// Returns true if calls need a credential.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.keys.is_some() || self.tokens.is_some() || self.certificates.is_some()
    }

    /// Returns the caller with these credentials. An invalid credential is refused, even if another one is present
    /// too.
    ///
    /// # Errors
    /// The reason that the credentials are invalid. It is counted and logged here.
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

    /// Checks that the caller has a role for the RPC. A refusal is counted and logged.
    ///
    /// # Errors
    /// The caller has none of the allowed roles.
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

    /// Returns true if a credential that was valid when a stream began is still valid. In doubt, for instance while
    /// the store can't be asked, the last known state counts.
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
            // A client that reconnects learns if its token's own key is among the new keys.
            CredentialId::Jwt { generation, .. } => {
                self.tokens.as_ref().is_none_or(|tokens| tokens.generation() == *generation)
            }
            CredentialId::Mtls(_) | CredentialId::None => true,
        }
    }
}

/// Reading of the clock that all decisions about a call share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// Milliseconds since 1970 (UTC).
    pub(crate) ms: i64,
    /// Same time on the monotonic clock.
    pub(crate) moment: Instant,
}

impl Now {
    pub(crate) fn read() -> Self {
        let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
        Self { ms, moment: Instant::now() }
    }

    /// Creates a reading with this calendar time and the current monotonic time.
    #[cfg(test)]
    pub(crate) fn at_ms(ms: i64) -> Self {
        Self { ms, moment: Instant::now() }
    }
}
