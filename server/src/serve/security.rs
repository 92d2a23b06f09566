//! Authentication, TLS and the audit of changes. They are built from the configuration and kept up to date while the
//! server runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use toolgate_serving::{Tls, TlsFiles};
use tracing::{error, info, warn};

use super::{ServeError, stores};
use toolgate_access::admission::Admission;
use toolgate_access::audit::Audit;
use toolgate_access::auth::AuthMetrics;
use toolgate_access::auth::{self, Authenticator, Keeping};
use toolgate_config::{AuthConfig, AuthMethod, Config, LimitsConfig, TlsConfig};
use toolgate_core::error::Error;
use toolgate_core::live::Live;
use toolgate_grpc::ApiConfig;
use toolgate_store::KeyStore;

/// File name of a replica's local copy of the API keys.
const API_KEYS: &str = "api-keys.json";

/// Interval between checks for new certificates.
const TLS_INTERVAL: Duration = Duration::from_secs(5);

/// Security components between callers and the plane.
pub(super) struct Security {
    authenticator: Arc<Authenticator>,
    tls: Option<Arc<Tls>>,
    audit: Arc<Audit>,
    keeping: Keeping,
    metrics: AuthMetrics,
}

impl Security {
    pub(super) async fn start(
        config: &Config,
        store: Arc<dyn KeyStore>,
        metrics: AuthMetrics,
    ) -> Result<Self, ServeError> {
        let tls = config.tls.as_ref().map(load_tls).transpose()?;
        if let Some(tls) = &tls {
            metrics.certificate_expires(tls.not_after_ms());
        }
        let path = config.audit.file.as_deref();
        let audit = Audit::open(path, metrics.clone()).map_err(|source| ServeError::Audit {
            path: path.map_or_else(String::new, |path| path.display().to_string()),
            source,
        })?;
        let auth = config.auth.clone();
        let counting = metrics.clone();
        let copy = stores::keeps_copies(&config.store).then(|| config.store.path.join(API_KEYS));
        // It reads files and may ask an issuer, so it runs on a blocking thread.
        let started =
            tokio::task::spawn_blocking(move || auth::start(&auth, Some(store), copy, counting));
        let started =
            started.await.map_err(|error| ServeError::Internal(Error::internal(error)))?;
        let (authenticator, keeping) = started.map_err(ServeError::Auth)?;
        let authenticator = Arc::new(authenticator);
        Ok(Self { authenticator, tls, audit: Arc::new(audit), keeping, metrics })
    }

    /// Returns the configuration of the gRPC API.
    pub(super) fn api_config(
        &self,
        config: &Config,
        limits: Arc<Live<LimitsConfig>>,
        admission: Admission,
    ) -> ApiConfig {
        ApiConfig {
            server: config.server.clone(),
            limits,
            router: config.router,
            admission,
            authenticator: Arc::clone(&self.authenticator),
            tls: self.tls.clone(),
            audit: Arc::clone(&self.audit),
        }
    }

    /// Keeps credentials, certificates and the audit file up to date until `over`.
    pub(super) async fn keep(self, hangups: watch::Receiver<()>, over: CancellationToken) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.keeping.run(hangups.clone(), over.clone()));
        if let Some(tls) = self.tls {
            tasks.spawn(follow(tls, self.metrics, hangups.clone(), over.clone()));
        }
        let audit = self.audit;
        tasks.spawn(async move { audit.keep(hangups, over).await });
        tasks.join_all().await;
    }
}

/// Loads the configured certificates. Blocks on the file system.
pub(crate) fn load_tls(config: &TlsConfig) -> Result<Arc<Tls>, ServeError> {
    let files = TlsFiles {
        certificate: config.cert_file.clone(),
        key: config.key_file.clone(),
        client_authorities: config.client_ca_file.clone(),
        client_certificate_optional: config.client_certificate_optional,
    };
    Tls::load(files).map(Arc::new).map_err(ServeError::Tls)
}

/// Applies new certificates until `over`. Open connections keep the certificates that they began with.
async fn follow(
    tls: Arc<Tls>,
    metrics: AuthMetrics,
    mut hangups: watch::Receiver<()>,
    over: CancellationToken,
) {
    let mut turns = interval(TLS_INTERVAL);
    let mut told = String::new();
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            _ = turns.tick() => {}
            Ok(()) = hangups.changed() => {}
        }
        let reading = Arc::clone(&tls);
        match tokio::task::spawn_blocking(move || reading.reload()).await {
            Ok(Ok(true)) => {
                told.clear();
                metrics.certificate_expires(tls.not_after_ms());
                info!("the certificates are other ones now");
            }
            Ok(Ok(false)) => {}
            // A file that can't be read is tried again each time, but the problem is logged once.
            Ok(Err(problem)) if problem.to_string() != told => {
                told = problem.to_string();
                error!(%problem, "new certificates are not good: those before stay");
            }
            Ok(Err(_)) => {}
            Err(problem) => error!(%problem, "certificates can't be looked at"),
        }
    }
}

/// Warns if the port is reachable from other machines and lacks authentication or TLS.
pub(super) fn warn_if_open(config: &AuthConfig, has_tls: bool) {
    if config.methods.is_empty() {
        warn!(
            "listening beyond this machine without authentication: anyone who reaches the port can \
               read and change every tenant"
        );
    } else if !has_tls && config.methods != [AuthMethod::Mtls] {
        warn!(
            "listening beyond this machine without TLS: anyone on the way can read credentials and use \
               them, unless something before this server speaks TLS (tls.cert_file)"
        );
    }
}
