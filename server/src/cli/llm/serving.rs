//! A proxy, and the routing plane that it asks.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_client::{Client, ClientOptions};
use toolgate_config::{FlagValue, Parsed, keys};
use toolgate_gateway_ext_proc::serve as serve_ext_proc;
use toolgate_gateway_llm::{Authentication, Config, Plane, Proxy, ProxyError, Savings};
use toolgate_serving::{ConnectionLimits, Connections, Tls};

use crate::cli::arguments::{ConfigArguments, model_flag, parse_setting};
use crate::cli::credentials::CredentialArguments;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::serve::with_causes;
use crate::serve::{check_model, serve_until_bound_rereading};

/// Time for the plane within this process to start.
const PLANE_START: Duration = Duration::from_secs(120);

/// Keys of the addresses of a plane, which one within this process chooses itself.
const ADDRESSES: [&str; 2] = [keys::SERVER_LISTEN.spec.name, keys::SERVER_ADMIN_LISTEN.spec.name];

/// The routing plane of a proxy.
#[derive(Debug, Args)]
pub(in crate::cli) struct PlaneArguments {
    /// A routing plane that runs already. Default: one within this process, which keeps nothing behind its end.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    #[command(flatten)]
    credentials: CredentialArguments,
    /// The encoder's model directory of the plane within this process (encoder.model_dir).
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    model_dir: Option<PathBuf>,
    /// The configuration file (TOML) of the plane within this process.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    server_config: Option<PathBuf>,
    /// Set one key of that plane, such as --set log.level=debug. May be given more than once.
    #[arg(long = "set", value_parser = parse_setting, value_name = "KEY=VALUE", conflicts_with = "server")]
    settings: Vec<(String, String)>,
}

/// Proxy that is to serve.
pub(in crate::cli) struct Prepared {
    pub(in crate::cli) config: Config,
    pub(in crate::cli) listener: TcpListener,
    /// Place for Envoy; `None` if it is not served.
    pub(in crate::cli) ext_proc: Option<ExtProcListener>,
    pub(in crate::cli) savings: Savings,
    /// Check of hosts' keys; `None` if none is needed.
    pub(in crate::cli) authentication: Option<Arc<dyn Authentication>>,
    pub(in crate::cli) stop: CancellationToken,
}

/// Place for Envoy.
pub(in crate::cli) struct ExtProcListener {
    pub(in crate::cli) listener: TcpListener,
    /// Certificates of TLS; `None` for a listener without it.
    pub(in crate::cli) tls: Option<Arc<Tls>>,
}

/// Listens at an address, which `settings` set.
pub(in crate::cli) async fn listen(
    address: SocketAddr,
    settings: &str,
) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!("{address} can't be listened on: {error} ({settings} sets another)"))
    })
}

impl PlaneArguments {
    pub(in crate::cli) fn server_config(&self) -> ConfigArguments {
        ConfigArguments { config: self.server_config.clone(), settings: self.settings.clone() }
    }

    /// Tells where an address is named that counts for nothing, because a plane within this process listens on a port of its own.
    pub(in crate::cli) fn tell_unused_addresses(&self) {
        if self.server.is_some() {
            return;
        }
        for setting in self.server_config().named(&ADDRESSES) {
            output::note(format_args!(
                "{}: {} is for `toolgate serve` and counts for nothing here: the plane within the proxy listens on a free port of this machine, and the proxy where llm.listen or --listen says",
                setting.source, setting.key.name
            ));
        }
    }

    /// Returns the configuration of a plane within this process, whose data lie in `folder`.
    fn plane_config(&self, folder: &Path) -> Result<Parsed, Failure> {
        let flag = |key: &str, value: String| FlagValue {
            flag: "toolgate llm".into(),
            key: key.to_owned(),
            value,
        };
        let own = SocketAddr::from(([127, 0, 0, 1], 0)).to_string();
        let mut flags: Vec<_> = ADDRESSES.iter().map(|key| flag(key, own.clone())).collect();
        flags.push(flag(keys::STORE_PATH.spec.name, folder.to_string_lossy().into_owned()));
        flags.extend(model_flag(self.model_dir.as_deref()));
        let mut parsed = self.server_config().load(flags)?;
        // A store that others share is no place for what a host defines.
        parsed.config.store.shared = None;
        Ok(parsed)
    }
}

impl Prepared {
    /// Serves until `stop`. Calls `ready` once requests are taken, and the plane within this process answers.
    pub(in crate::cli) async fn serve(
        self,
        arguments: &PlaneArguments,
        ready: impl FnOnce(),
    ) -> Result<(), Failure> {
        let options = arguments.credentials.add_to(ClientOptions::default())?;
        match &arguments.server {
            Some(server) => {
                let plane = Client::lazy(server, options)?;
                ready();
                self.serve_hosts(plane, true).await
            }
            None => self.serve_with_plane(arguments, options, ready).await,
        }
    }

    async fn serve_with_plane(
        self,
        arguments: &PlaneArguments,
        options: ClientOptions,
        ready: impl FnOnce(),
    ) -> Result<(), Failure> {
        // What requests define is theirs: nothing of it is kept behind this process.
        let folder = tempfile::Builder::new().prefix("toolgate-llm-").tempdir()?;
        let parsed = arguments.plane_config(folder.path())?;
        let reread = || {
            let parsed = arguments.plane_config(folder.path());
            parsed.map_err(|failure| failure.message().to_owned())
        };
        check_model(&parsed.config.encoder).map_err(|error| Failure::new(error.to_string()))?;
        let (sender, bound) = oneshot::channel();
        let plane_stop = CancellationToken::new();
        let ended = CancellationToken::new();
        let planning = async {
            let serving = serve_until_bound_rereading(parsed, &reread, sender, plane_stop.clone());
            let planned = Box::pin(serving).await;
            if !plane_stop.is_cancelled() {
                tracing::error!("the routing plane has ended; requests are sent as they come");
            }
            ended.cancel();
            planned
        };
        let facing = async {
            // Without an address the plane has failed, and says why.
            let Ok(address) = bound.await else { return Ok(()) };
            let served = async {
                let plane = Client::lazy(&address.to_string(), options)?;
                let starting = plane.with_deadline(PLANE_START);
                tokio::select! {
                    healthy = starting.health("") => healthy?,
                    // The plane says why.
                    () = ended.cancelled() => return Ok(()),
                };
                ready();
                self.serve_hosts(plane, false).await
            };
            let served = served.await;
            plane_stop.cancel();
            served
        };
        let (planned, served) = tokio::join!(Box::pin(planning), Box::pin(facing));
        planned.map_err(|error| Failure::new(with_causes(&error)))?;
        served
    }

    /// Serves hosts. `is_shared` says that other processes may ask the same plane.
    async fn serve_hosts(self, client: Client, is_shared: bool) -> Result<(), Failure> {
        let Self { config, listener, ext_proc, savings, authentication, stop } = self;
        let bounded = |listener, tls| {
            let limits = ConnectionLimits::of(config.llm.max_connections);
            let refused = |refusal| tracing::warn!(?refusal, "a connection was refused");
            Connections::new(listener, limits, refused).over_tls(tls).into_listener()
        };
        let plane = Plane { client, is_shared, authentication, savings };
        let failed = |error: ProxyError| Failure::new(error.to_string());
        let proxy = Proxy::new(&config, plane).map_err(failed)?;
        let envoys = async {
            if let Some(ExtProcListener { listener, tls }) = ext_proc {
                serve_ext_proc(proxy.clone(), bounded(listener, tls), stop.clone()).await;
            }
            Ok(())
        };
        let hosts = proxy.serve(bounded(listener, None), stop.clone());
        // One that fails ends the other, so that its error is told.
        let served = tokio::try_join!(hosts, envoys);
        // A plane of this process ends with it, and its data.
        if is_shared {
            proxy.close().await;
        }
        served.map(drop).map_err(failed)
    }
}
