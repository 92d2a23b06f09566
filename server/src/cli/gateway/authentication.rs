//! Authentication of the gateway's hosts by the service's own verifier, and of the gateway at the plane within this
//! process.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolgate_access::auth::api_key::ApiKey;
use toolgate_access::auth::{
    self, AuthMetrics, Authenticator, Authorization, Caller, CredentialId, Presented,
};
use toolgate_client::Credentials;
use toolgate_config::{AuthConfig, AuthMethod, CertificateRule, JwksPlace, TokenConfig};
use toolgate_core::error::Error;
use toolgate_core::identity::TenantId;
use toolgate_core::role::Role;
use toolgate_mcp::{self as mcp, Authentication, PresentedCredentials, Refusal};
use toolgate_serving::{Network, Peer};
use toolgate_store::KeyStore;
use toolgate_upstream::Secret;

use crate::cli::failure::Failure;
use crate::cli::serve::with_causes;

/// File in the data directory with the key by which the gateway calls the plane within its process.
const PLANE_KEY: &str = "gateway.key";

/// Intervals of the issuer's keys, and tolerance of clocks: those of a service that says nothing else.
const JWKS_REFRESH: Duration = Duration::from_secs(5 * 60);
const JWKS_MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
const CLOCK_SKEW: Duration = Duration::from_secs(30);

/// Name of a claim that no token has.
const NO_CLAIM: &str = "";

/// Authentication of hosts.
pub(super) struct HostAuthentication {
    authenticator: Authenticator,
    settings: mcp::AuthConfig,
    /// The gateway's own tenant.
    own_tenant: Arc<str>,
}

impl HostAuthentication {
    /// Starts it for a gateway at `address`, and keeps keys up to date until `stop`. `None` if anybody is let in.
    pub(super) async fn start(
        config: &mcp::Config,
        address: SocketAddr,
        own_tenant: &str,
        keys: Option<Arc<dyn KeyStore>>,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<dyn Authentication>>, Failure> {
        let settings = config.gateway.auth.clone();
        if settings.methods.is_empty() {
            return Ok(None);
        }
        let verified = verification(&settings, config.audiences(address))?;
        // It reads files and may ask an issuer, so it runs on a blocking thread.
        let started = tokio::task::spawn_blocking(move || {
            auth::start(&verified, keys, None, AuthMetrics::default())
        });
        let started = started.await.map_err(|error| Failure::new(error.to_string()))?;
        let (authenticator, keeping) =
            started.map_err(|error| Failure::usage(format!("gateway.{}", with_causes(&error))))?;
        let over = stop.clone();
        tokio::spawn(async move {
            // Files are read again by themselves; nobody has them read at once.
            let (_teller, hangups) = watch::channel(());
            keeping.run(hangups, over).await;
        });
        let own_tenant = Arc::from(own_tenant);
        Ok(Some(Arc::new(Self { authenticator, settings, own_tenant })))
    }

    async fn caller(&self, presented: PresentedCredentials<'_>) -> Result<mcp::Caller, Refusal> {
        let authorization = Authorization::read(presented.authorization.into_iter());
        let network = Network::of(presented.peer);
        let peer = presented.connection.as_ref().and_then(|peer| peer.downcast_ref::<Peer>());
        let certificate = peer.and_then(Peer::certificate);
        let credentials = Presented { authorization, certificate, network };
        match self.authenticator.authenticate(credentials).await {
            Ok(caller) => {
                let admitted = self.admitted(&caller)?;
                let is_token = matches!(caller.credential(), CredentialId::Jwt { .. });
                let token = match authorization {
                    Authorization::Bearer(token) if is_token => Some(Secret::new(token.to_owned())),
                    _ => None,
                };
                Ok(mcp::Caller { token, ..admitted })
            }
            Err(_) if matches!(authorization, Authorization::Absent) => Err(Refusal::Missing),
            Err(Error::Unauthenticated(problem)) => Err(Refusal::Invalid(problem.to_owned())),
            Err(Error::Overloaded) => Err(Refusal::Busy),
            Err(_) => Err(Refusal::Unavailable),
        }
    }

    /// Returns a caller with a good credential as the gateway knows it, if it may call tools.
    fn admitted(&self, caller: &Caller) -> Result<mcp::Caller, Refusal> {
        let is_token = matches!(caller.credential(), CredentialId::Jwt { .. });
        let scopes = caller.scopes();
        let has = |scope: &String| scopes.is_some_and(|scopes| scopes.contains(scope));
        if is_token && !self.settings.scopes.iter().all(has) {
            return Err(Refusal::Scope);
        }
        let is_operator = caller.roles().has(Role::Admin);
        let tells_no_roles = is_token && self.settings.roles_claim.is_none();
        if !is_operator && !tells_no_roles && !caller.roles().has(Role::Agent) {
            let problem = "the credential needs the role agent";
            return Err(Refusal::Forbidden(problem.to_owned()));
        }
        let tells_no_tenant = is_token && self.settings.tenant_claim.is_none();
        let tenant = match caller.own_tenant() {
            Some(tenant) => Arc::from(TenantId::as_str(tenant)),
            None if is_operator || tells_no_tenant => Arc::clone(&self.own_tenant),
            None => {
                let problem = "the credential is of no tenant";
                return Err(Refusal::Forbidden(problem.to_owned()));
            }
        };
        Ok(mcp::Caller {
            tenant,
            principal: Arc::from(caller.principal()),
            scopes: scopes.into_iter().flatten().cloned().collect(),
            credential: Arc::from(caller.credential().to_string()),
            is_operator,
            is_of_all_tenants: is_operator && caller.own_tenant().is_none(),
            token: None,
        })
    }
}

impl Authentication for HostAuthentication {
    fn authenticate<'a>(
        &'a self,
        presented: PresentedCredentials<'a>,
    ) -> BoxFuture<'a, Result<mcp::Caller, Refusal>> {
        Box::pin(self.caller(presented))
    }
}

/// Returns the settings of the service's verifier for those of the gateway's file.
///
/// # Errors
/// A certificate's rule that makes no sense.
fn verification(settings: &mcp::AuthConfig, audiences: Vec<String>) -> Result<AuthConfig, Failure> {
    let methods = settings.methods.iter().map(|method| match method {
        mcp::AuthMethod::ApiKey => AuthMethod::ApiKey,
        mcp::AuthMethod::Jwt => AuthMethod::Jwt,
        mcp::AuthMethod::Mtls => AuthMethod::Mtls,
    });
    let rule = |rule: &String| {
        let read = rule.parse::<CertificateRule>();
        read.map_err(|problem| {
            Failure::usage(format!("gateway.auth.certificates: {rule:?}: {problem}"))
        })
    };
    let certificates = settings.certificates.iter().map(rule).collect::<Result<_, _>>()?;
    Ok(AuthConfig {
        methods: methods.collect(),
        admin_key_file: None,
        tokens: tokens(settings, audiences),
        trust_domain: settings.trust_domain.clone(),
        certificates,
    })
}

fn tokens(settings: &mcp::AuthConfig, audiences: Vec<String>) -> Option<TokenConfig> {
    let keys = match (&settings.jwks_file, &settings.jwks_url) {
        (Some(path), _) => JwksPlace::File(path.clone()),
        (None, Some(url)) => {
            JwksPlace::Url { url: url.clone(), ca_file: settings.jwks_ca_file.clone() }
        }
        (None, None) => return None,
    };
    let claim =
        |name: &Option<String>, default: &str| name.clone().unwrap_or_else(|| default.to_owned());
    Some(TokenConfig {
        keys,
        refresh: JWKS_REFRESH,
        max_age: JWKS_MAX_AGE,
        issuer: settings.issuer.clone()?,
        audiences,
        clock_skew: CLOCK_SKEW,
        tenant_claim: claim(&settings.tenant_claim, NO_CLAIM),
        principal_claim: claim(&settings.principal_claim, "sub"),
        roles_claim: claim(&settings.roles_claim, NO_CLAIM),
        scopes_claim: Some(claim(&settings.scopes_claim, "scope")),
    })
}

/// Writes a new key for the plane within this process, so that nobody else on this machine calls it past the gateway.
/// Returns the key and its file.
pub(super) fn plane_key(data: &Path) -> Result<(Credentials, PathBuf), Failure> {
    let key = ApiKey::generate().map_err(|error| Failure::new(error.to_string()))?;
    let path = data.join(PLANE_KEY);
    let written = write_private(data, &path, &key.reveal());
    written.map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok((Credentials::api_key(key.reveal()), path))
}

fn write_private(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut private = DirBuilder::new();
    private.recursive(true);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    private.create(folder)?;
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> mcp::AuthConfig {
        mcp::AuthConfig {
            methods: vec![mcp::AuthMethod::Jwt],
            issuer: Some("https://id.example".to_owned()),
            jwks_file: Some("jwks.json".into()),
            ..mcp::AuthConfig::default()
        }
    }

    #[test]
    fn tokens_are_held_to_the_gateways_urls_and_their_scopes_count() {
        let audiences = vec!["https://gw.example/mcp".to_owned()];
        let config = verification(&settings(), audiences.clone()).expect("settings");
        let tokens = config.tokens.expect("tokens");
        assert_eq!(tokens.audiences, audiences);
        assert_eq!(tokens.scopes_claim.as_deref(), Some("scope"));
        assert_eq!(tokens.principal_claim, "sub");
        assert_eq!(config.methods, [AuthMethod::Jwt]);
    }

    #[test]
    #[cfg(unix)]
    fn the_planes_key_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a folder");
        let (_credentials, path) = plane_key(folder.path()).expect("a key");
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = std::fs::read_to_string(&path).expect("a key");
        assert!(ApiKey::parse(&first).is_some());
        plane_key(folder.path()).expect("another key");
        assert_ne!(std::fs::read_to_string(&path).expect("a key"), first);
    }
}
