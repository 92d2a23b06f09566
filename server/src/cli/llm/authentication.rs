//! Keys of hosts of the LLM proxy, verified by the service's own verifier.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_access::auth::{
    self, AuthMetrics, Authenticator, Authorization, Caller as Verified, Presented,
};
use toolgate_config::{AuthConfig, AuthMethod};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::role::Role;
use toolgate_gateway_llm::{Authentication, Caller, Config, PresentedKey, Refusal};
use toolgate_serving::Network;

use crate::cli::arguments::ConfigArguments;
use crate::cli::failure::Failure;
use crate::cli::gateway::store_at;
use crate::cli::serve::with_causes;
use crate::serve::open_now;

/// API keys of a store.
pub(super) struct HostKeys {
    authenticator: Authenticator,
    /// Tenant of operators whose key is of all tenants.
    own_tenant: Arc<str>,
}

impl HostKeys {
    /// Opens the store that the proxy's file names, and keeps its keys up to date until `stop`. `None` if it names none.
    pub(super) async fn start(
        config: &Config,
        arguments: &ConfigArguments,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<dyn Authentication>>, Failure> {
        if config.llm.key_store.is_empty() {
            return Ok(None);
        }
        let store = store_at(arguments, "llm.key_store", &place_of(&config.llm.key_store)?)?;
        let keys = open_now(&store).await.map_err(|error| Failure::new(with_causes(&error)))?;
        let verified = AuthConfig {
            methods: vec![AuthMethod::ApiKey],
            admin_key_file: None,
            tokens: None,
            trust_domain: None,
            certificates: Vec::new(),
        };
        // It reads the store, so it runs on a blocking thread.
        let started = tokio::task::spawn_blocking(move || {
            auth::start(&verified, Some(keys), None, AuthMetrics::default())
        });
        let started = started.await.map_err(|error| Failure::new(error.to_string()))?;
        let (authenticator, keeping) =
            started.map_err(|error| Failure::usage(format!("llm.{}", with_causes(&error))))?;
        let over = stop.clone();
        tokio::spawn(async move {
            // Nobody has keys read at once.
            let (_teller, hangups) = watch::channel(());
            keeping.run(hangups, over).await;
        });
        let own_tenant = Arc::from(config.llm.tenant.as_str());
        Ok(Some(Arc::new(Self { authenticator, own_tenant })))
    }

    async fn caller(&self, presented: PresentedKey) -> Result<Caller, Refusal> {
        let Some(key) = presented.key else { return Err(Refusal::Missing) };
        let value = [b"Bearer ".as_slice(), key.as_slice()].concat();
        let authorization = Authorization::read(std::iter::once(value.as_slice()));
        let network = Network::of(presented.peer);
        let presented = Presented { authorization, certificate: None, network };
        match self.authenticator.authenticate(presented).await {
            Ok(caller) => self.admitted(&caller),
            Err(Error::Unauthenticated(_)) => Err(Refusal::Invalid),
            Err(_) => Err(Refusal::Unavailable),
        }
    }

    /// Returns a caller with a good key as the proxy knows it, if it may call.
    fn admitted(&self, caller: &Verified) -> Result<Caller, Refusal> {
        let is_operator = caller.roles().has(Role::Admin);
        let tenant = match caller.own_tenant() {
            Some(tenant) if is_operator || caller.roles().has(Role::Agent) => {
                Arc::from(TenantId::as_str(tenant))
            }
            None if is_operator => Arc::clone(&self.own_tenant),
            Some(_) | None => return Err(Refusal::Forbidden),
        };
        // An admin of one tenant sees that tenant's accounts.
        Ok(Caller { tenant, is_operator: is_operator && caller.own_tenant().is_none() })
    }
}

/// Returns the place of the store that `key_store` names, or a file that it names: a URL holds a password.
fn place_of(key_store: &str) -> Result<String, Failure> {
    let Some(path) = key_store.strip_prefix("file:") else { return Ok(key_store.to_owned()) };
    let place = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("llm.key_store names {path}, which can't be read: {error}"))
    })?;
    match place.trim() {
        "" => Err(Failure::usage(format!("llm.key_store names {path}, which is empty"))),
        place => Ok(place.to_owned()),
    }
}

impl Authentication for HostKeys {
    fn authenticate(&self, presented: PresentedKey) -> BoxFuture<'_, Result<Caller, Refusal>> {
        Box::pin(self.caller(presented))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_keys_may_stand_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("url");
        let named = format!("file:{}", path.display());
        let refused = || place_of(&named).expect_err("no place").message().to_owned();
        assert!(refused().contains("can't be read"), "{}", refused());
        std::fs::write(&path, " \n").expect("a file");
        assert!(refused().ends_with("which is empty"), "{}", refused());
        std::fs::write(&path, "postgres://u:p@db/toolgate\n").expect("a file");
        let place = |text: &str| place_of(text).map_err(|failure| failure.message().to_owned());
        assert_eq!(place(&named).as_deref(), Ok("postgres://u:p@db/toolgate"));
        assert_eq!(place("/var/lib/toolgate").as_deref(), Ok("/var/lib/toolgate"));
    }
}
