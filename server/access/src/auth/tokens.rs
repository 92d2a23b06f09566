//! Callers by signed token. A token is verified once. Its caller is cached by the token's hash until the token
//! expires or the issuer's keys change.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::caller::CallerIdentity;
use super::jwks_source::{Published, Source};
use super::jwt::{self, Rules};
use super::refusal::TokenFault;
use super::{Caller, CredentialId, Now, Refusal};

/// Maximum number of cached tokens.
const REMEMBERED_MAX: usize = 20_000;

/// Maximum time that a call with an unknown key waits for a fetch of the issuer's keys.
const NEW_KEYS_WAIT: Duration = Duration::from_secs(3);

/// Maximum number of calls that wait for such a fetch at the same time.
const WAITING_MAX: usize = 64;

/// Number of bytes of a token's hash that form its id.
const ID_BYTES: usize = 8;

pub(super) struct Tokens {
    rules: Rules,
    source: Source,
    remembered: Cache<[u8; 32], Remembered>,
    waiting: Semaphore,
}

#[derive(Clone)]
struct Remembered {
    caller: Caller,
    /// Generation of the keys that verified the token.
    generation: u64,
}

impl Tokens {
    pub(super) fn new(rules: Rules, source: Source) -> Self {
        let remembered = Cache::new(REMEMBERED_MAX);
        let waiting = Semaphore::new(WAITING_MAX);
        Self { rules, source, remembered, waiting }
    }

    pub(super) async fn caller(&self, token: &str, now: Now) -> Result<Caller, Refusal> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let keys = self.source.keys();
        if let Some(known) = self.remembered.get(&hash)
            && known.generation == keys.generation
        {
            let good = known.caller.good_until_ms().is_none_or(|until| until > now.ms);
            return if good { Ok(known.caller) } else { Err(Refusal::Token(TokenFault::Expired)) };
        }
        let told = match self.verify(token, &hash, &keys, now) {
            Err(TokenFault::UnknownKey) => {
                let Some(keys) = self.newer_keys().await else {
                    return Err(Refusal::Token(TokenFault::UnknownKey));
                };
                self.verify(token, &hash, &keys, now)
            }
            told => told,
        };
        told.map_err(Refusal::Token)
    }

    /// Returns the generation of the issuer's current keys.
    pub(super) fn generation(&self) -> u64 {
        self.source.keys().generation
    }

    fn verify(
        &self,
        token: &str,
        hash: &[u8; 32],
        keys: &Published,
        now: Now,
    ) -> Result<Caller, TokenFault> {
        let claims = jwt::verify(token, &keys.set, &self.rules, now.ms.div_euclid(1_000))?;
        let generation = keys.generation;
        let caller = Caller::new(CallerIdentity {
            tenant: claims.tenant,
            principal: claims.principal,
            roles: claims.roles,
            scopes: claims.scopes,
            credential: CredentialId::Jwt { id: hex::encode(&hash[..ID_BYTES]), generation },
            good_until_ms: Some(claims.good_until.saturating_mul(1_000)),
        });
        self.remembered.insert(*hash, Remembered { caller: caller.clone(), generation });
        Ok(caller)
    }

    /// Fetches the issuer's keys again; `None` if that is not allowed now.
    async fn newer_keys(&self) -> Option<Arc<Published>> {
        let _place = self.waiting.try_acquire().ok()?;
        self.source.ask_again(NEW_KEYS_WAIT).await
    }
}

#[cfg(test)]
mod tests;
