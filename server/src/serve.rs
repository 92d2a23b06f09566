//! Assembles the service from its configuration, runs it, and shuts it down in order: stop taking calls, drain, close
//! the store.

mod beside;
mod data_directory;
mod encoders;
mod reload;
mod security;
mod stores;
mod vetting;

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_encoder::LoadError;
use toolgate_model_hub::KnownModel;
use toolgate_serving::{
    TlsError, open_as_many_files_as_allowed, outlive_file_size_limit, stop_on_signal,
};
use tracing::{info, warn};

use crate::admin;
use crate::admin::Admin;
use beside::Beside;
use encoders::Embedding;
use reload::{Changes, Held};
use security::Security;
use toolgate_access::auth::AuthError;
use toolgate_app::logging;
use toolgate_app::plane::{Plane, PlaneConfig};
use toolgate_app::telemetry::Metrics;
use toolgate_config::{Config, KeyError, PacksConfig, Parsed, StoreUrlError, keys};
use toolgate_core::error::{Cause, Error};
use toolgate_routing::gate::key::HandleKey;
use toolgate_routing::packs::Packs;
use toolgate_store::StoreError;

pub use data_directory::Holder;
pub(crate) use data_directory::{hold, holder};
pub(crate) use encoders::{check_model, load_sides};
pub(crate) use reload::Hangups;
pub use reload::Reread;
pub(crate) use security::load_tls;
pub(crate) use stores::{open_now, reached_by, reached_later, require_own};
pub(crate) use vetting::{read_rules, scanner};

/// File name of the database in the data directory.
pub const DATABASE: &str = "toolgate.db";

/// Time that the collector may take to accept the last spans, once all calls are over.
const LAST_SPANS_MAX: Duration = Duration::from_secs(1);

/// Error that kept the service from starting, or that ended it.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The model can't be loaded.
    #[error("the encoder's model in {folder} can't be loaded; `{}` gets it", model.fetch_command())]
    Model {
        /// The model directory.
        folder: String,
        /// The model that belongs in this directory.
        model: KnownModel,
        /// The cause.
        #[source]
        source: LoadError,
    },
    /// The model is not there.
    #[error("the encoder's model is not in {folder}: `{}` gets it", model.fetch_command())]
    NoModel {
        /// The model directory.
        folder: String,
        /// The model that belongs in this directory.
        model: KnownModel,
    },
    /// A GPU is required, and none can be used. Holds the reasons.
    #[error("no GPU can be used, and one is required (encoder.gpus): {0}")]
    NoGpu(String),
    /// Another server uses the data directory.
    #[error(
        "the data directory {folder} is in use by another server ({holder}): stop that one, or name another directory with \
         --data-dir (store.path)"
    )]
    InUse {
        /// The data directory.
        folder: String,
        /// The server that uses it.
        holder: Holder,
    },
    /// The data directory can't be created or written.
    #[error("the data directory {folder} can't be made or written; `toolgate doctor` looks closer")]
    Folder {
        /// The data directory.
        folder: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The URL of the store can't be read.
    #[error("the URL of the store can't be read")]
    StoreUrl(#[source] StoreUrlError),
    /// The store can't be opened.
    #[error("the store at {path} can't be opened")]
    Store {
        /// Path or name of the database.
        path: String,
        /// The cause.
        #[source]
        source: StoreError,
    },
    /// The database is damaged.
    #[error(
        "the database {path} is damaged: put a backup back, or save what can be read with `toolgate store export` and import it \
         into another data directory (`toolgate store verify` says what is lost)"
    )]
    Damaged {
        /// Path of the database.
        path: String,
        /// The damage that was found.
        #[source]
        source: StoreError,
    },
    /// The database is gone, though the data directory once held one.
    #[error(
        "the database {path} is gone, and there was one: put it back from a backup, or delete {marker} to begin with an empty one"
    )]
    Gone {
        /// Path of the database.
        path: String,
        /// Path of the file that marks the data directory as having had a database.
        marker: String,
    },
    /// A pack of the operator can't be read. Holds the problem.
    #[error("packs.directory: {0}")]
    Packs(String),
    /// The safety rules of the operator can't be read. Holds the problem.
    #[error("safety.rules_file: {0}")]
    Rules(String),
    /// The key that signs handles can't be read.
    #[error("the key that signs active-set handles can't be read")]
    Key(#[source] KeyError),
    /// Authentication can't be set up.
    #[error("authentication can't begin")]
    Auth(#[source] AuthError),
    /// The certificates can't be used.
    #[error("TLS can't be served")]
    Tls(#[source] TlsError),
    /// The audit file can't be written.
    #[error("the audit file {path} can't be opened (audit.file)")]
    Audit {
        /// Path of the audit file.
        path: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An address can't be listened on.
    #[error(
        "{address} can't be listened on; another process may have it (`toolgate doctor` says whether it is a server of Toolgate; \
         {key} sets another address)"
    )]
    Listen {
        /// Address that can't be listened on.
        address: SocketAddr,
        /// The configuration key that sets the address.
        key: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The gRPC transport failed.
    #[error("the gRPC transport failed")]
    Transport(#[source] Cause),
    /// An internal error, which is a defect of the program.
    #[error("internal error")]
    Internal(#[source] Error),
}

/// Serves until SIGINT or SIGTERM, then drains. On SIGHUP, `reread` reads the configuration again.
///
/// # Errors
/// An error that keeps the service from starting, or that ends it.
pub async fn run(parsed: Parsed, reread: Reread<'_>) -> Result<(), ServeError> {
    let Parsed { config, settings, .. } = parsed;
    let telemetry = logging::start(config.log, &config.telemetry);
    let filter = telemetry.filter();
    let exporting = telemetry.export();
    outlive_file_size_limit();
    open_as_many_files_as_allowed();
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let (teller, changes) = reload::channel(&config);
    let serving = Box::pin(serve_with(config, changes, stop));
    let served = tokio::select! {
        served = serving => served,
        () = reload::on_hangup(&settings, reread, Some(&filter), &teller) => Ok(()),
    };
    exporting.stop(LAST_SPANS_MAX).await;
    served
}

/// Serves until `stop`, then drains.
///
/// # Errors
/// The same errors as [`run`].
pub async fn serve_until(config: Config, stop: CancellationToken) -> Result<(), ServeError> {
    let (_teller, changes) = reload::channel(&config);
    Box::pin(serve_with(config, changes, stop)).await
}

/// Serves until `stop`, then drains. The address at which it serves is sent once it is known. `held` is the lock of the data
/// directory, if the caller has it already.
///
/// # Errors
/// The same errors as [`run`].
pub(crate) async fn serve_until_bound(
    config: Config,
    held: Option<File>,
    bound: oneshot::Sender<SocketAddr>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (_teller, changes) = reload::channel(&config);
    Box::pin(serve_bound(config, changes, held, Some(bound), stop)).await
}

/// Serves until `stop`, then drains. The address at which it serves is sent once it is known. `held` is the lock of the data
/// directory, if the caller has it already. On SIGHUP, `reread` reads the configuration again; what is logged stays as it is.
///
/// # Errors
/// The same errors as [`run`].
pub async fn serve_until_bound_rereading(
    parsed: Parsed,
    reread: Reread<'_>,
    bound: oneshot::Sender<SocketAddr>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let Parsed { config, settings, .. } = parsed;
    let (teller, changes) = reload::channel(&config);
    let serving = Box::pin(serve_bound(config, changes, None, Some(bound), stop));
    tokio::select! {
        served = serving => served,
        () = reload::on_hangup(&settings, reread, None, &teller) => Ok(()),
    }
}

async fn serve_with(
    config: Config,
    changes: Changes,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    Box::pin(serve_bound(config, changes, None, None, stop)).await
}

async fn serve_bound(
    config: Config,
    changes: Changes,
    held: Option<File>,
    bound: Option<oneshot::Sender<SocketAddr>>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    // Addresses first, so that a second instance fails before it loads a model.
    let listener = listen(config.server.listen, keys::SERVER_LISTEN.spec.name).await?;
    let admin_listener =
        listen(config.server.admin_listen, keys::SERVER_ADMIN_LISTEN.spec.name).await?;
    let _lock = match held {
        Some(lock) => lock,
        None => hold(&config.store.path)?,
    };
    if let Some(bound) = bound
        && let Ok(address) = listener.local_addr()
    {
        // Nobody waits for it any more if this fails.
        let _unheard = bound.send(address);
    }
    let store = stores::open(&config.store).await?;
    let metrics = Arc::new(Metrics::default());
    let security = Security::start(&config, Arc::clone(&store) as _, metrics.auth()).await?;
    let embedding = Embedding::start(&config, &metrics.encoder()).await?;
    let encoders = embedding.encoders.clone();
    let held = Held::new(&config, &metrics)?;
    let plane_config = plane_config(&config, &held, &metrics)?;
    let plane = Arc::new(Plane::new(Arc::clone(&store), encoders, plane_config));
    plane.router.warm();
    let shown = Arc::clone(&plane);
    metrics.store().show(move || (shown.store_failures(), shown.lag()));
    announce(&listener, &admin_listener, &config);
    let mut beside = Beside::start(&config, &plane, &metrics);
    let admin =
        Admin { plane: Arc::clone(&plane), metrics: Arc::clone(&metrics), draining: stop.clone() };
    let over = beside.over();
    beside.spawn("admin port", admin::serve(admin_listener, admin, over));
    let admission = beside.admission(&config, &metrics.admission());
    let limits = Arc::clone(&held.limits);
    let api = security.api_config(&config, limits, admission.clone());
    let following = changes.clone();
    let over = beside.over();
    beside.spawn("following of the configuration", held.follow(admission, following, over));
    let keeping = security.keep(changes.hangups, beside.over());
    beside.spawn("keeping of credentials and certificates", keeping);
    let served = toolgate_grpc::serve(listener, plane, metrics, api, stop.clone()).await;
    embedding.stop().await;
    beside.end().await;
    if let Err(error) = store.close().await {
        warn!(%error, "the store did not close cleanly; it recovers when it is next opened");
    }
    info!("stopped");
    served.map_err(|error| ServeError::Transport(error.into()))
}

/// Loads the packs, or returns `None` if they are turned off.
pub(crate) fn load_packs(config: &PacksConfig) -> Result<Option<Packs>, ServeError> {
    if !config.enabled {
        return Ok(None);
    }
    let packs = Packs::shipped();
    let packs = match &config.directory {
        Some(directory) => packs.with_directory(directory).map_err(ServeError::Packs)?,
        None => packs,
    };
    Ok(Some(packs))
}

fn plane_config(
    config: &Config,
    held: &Held,
    metrics: &Metrics,
) -> Result<PlaneConfig, ServeError> {
    let key = config.handle.key.load().map_err(ServeError::Key)?;
    let handle_key = HandleKey::from_bytes(key.as_bytes()).expect("the configuration checks keys");
    let handle_key = match &config.handle.previous_key {
        None => handle_key,
        Some(previous) => {
            let previous = previous.load().map_err(ServeError::Key)?;
            let previous = HandleKey::from_bytes(previous.as_bytes());
            handle_key.after(previous.expect("the configuration checks keys"))
        }
    };
    Ok(PlaneConfig {
        max_watches: config.server.max_watches,
        max_staleness: stores::max_staleness(&config.store),
        copies: stores::copies(&config.store),
        limits: Arc::clone(&held.limits),
        memory_budget: config.shard.memory_budget,
        graph_above: config.shard.graph_above,
        handle_key,
        handle_ttl: config.handle.ttl,
        deferral: Arc::clone(&held.deferral),
        packs: load_packs(&config.packs)?.map(Arc::new),
        memory: (config.memory.clone(), metrics.memory()),
        vetting: held.vetting.clone(),
    })
}

async fn listen(address: SocketAddr, key: &'static str) -> Result<TcpListener, ServeError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| ServeError::Listen { address, key, source })
}

fn announce(listener: &TcpListener, admin: &TcpListener, config: &Config) {
    let text = |bound: io::Result<SocketAddr>| bound.map_or_else(|_| "?".into(), |a| a.to_string());
    let grpc = listener.local_addr();
    let http = admin.local_addr();
    if grpc.as_ref().is_ok_and(|address| !address.ip().is_loopback()) {
        security::warn_if_open(&config.auth, config.tls.is_some());
    }
    info!(grpc = text(grpc), admin = text(http), "serving");
}
