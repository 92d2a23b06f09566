//! `toolgate gateway`: runs a gateway, and the routing plane that it asks, until it is interrupted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_client::{Client, ClientOptions};
use toolgate_config::{Config as ServerConfig, FlagValue, StoreConfig, keys};
use toolgate_mcp::{
    AuthMethod, Config, ConfigError, Gateway, ServerOverview, WatchedFile, serve, serve_stdio,
};
use toolgate_serving::stop_on_signal;
use toolgate_store::KeyStore;
use toolgate_upstream::CredentialStore;

use super::authentication::{HostAuthentication, plane_key};
use super::{DEFAULT_FILE, RunArguments, data_dir, login, read};
use crate::cli::arguments::{ConfigArguments, model_flag};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::serve::with_causes;
use crate::cli::text::counted;
use crate::serve::{Hangups, open_now, serve_until_bound};

/// Tenant of a plane within this process where none is named.
const DEFAULT_TENANT: &str = "default";

/// Time for the plane within this process to start.
const PLANE_START: Duration = Duration::from_secs(120);

/// Time after which a server that is not there yet is named.
const SLOW: Duration = Duration::from_secs(2);

/// Gateway that is to run, with its address if it listens.
struct Prepared {
    config: Config,
    /// `None` for a host on standard input and output.
    listener: Option<TcpListener>,
    /// `None` if no server takes logins, or if they can't be kept.
    credentials: Option<CredentialStore>,
    stop: CancellationToken,
    file: GatewayFile,
}

/// File of the gateway, which is read again while it runs.
struct GatewayFile {
    path: PathBuf,
    /// Address of the command line, in place of the file's.
    listen: Option<SocketAddr>,
}

pub(super) async fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    let mut config = read(arguments.config.as_deref())?;
    if let Some(listen) = arguments.listen {
        config.gateway.listen = listen;
    }
    if !arguments.stdio {
        config.check_exposure().map_err(Failure::usage)?;
    }
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    // The address first, so that a second gateway fails before it starts anything.
    let listener = if arguments.stdio { None } else { Some(listen(&config).await?) };
    let options = ClientOptions { tenant: arguments.tenant.clone(), ..Default::default() };
    let options = arguments.credentials.add_to(options)?;
    let path = arguments.config.clone().unwrap_or_else(|| DEFAULT_FILE.into());
    let file = GatewayFile { path, listen: arguments.listen };
    let data = data_dir(arguments.data_dir.as_deref(), &arguments.server_config(), Vec::new())?;
    let credentials = login::store_if_needed(&config, &data)?;
    let prepared = Prepared { config, listener, credentials, stop, file };
    match &arguments.server {
        Some(server) => {
            let keys = prepared.named_keys(&arguments).await?;
            prepared.serve(&Client::lazy(server, options)?, keys).await?;
        }
        None => prepared.serve_with_plane(&arguments, options).await?,
    }
    Ok(Exit::Done)
}

async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let address = config.gateway.listen;
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!(
            "{address} can't be listened on: {error} (gateway.listen or --listen sets another)"
        ))
    })
}

impl Prepared {
    /// Serves with a routing plane within this process.
    async fn serve_with_plane(
        self,
        arguments: &RunArguments,
        mut options: ClientOptions,
    ) -> Result<(), Failure> {
        if options.tenant.is_empty() {
            DEFAULT_TENANT.clone_into(&mut options.tenant);
        }
        let mut config = plane_config(arguments)?;
        if self.listener.is_some() && self.has_authentication() && config.auth.methods.is_empty() {
            // The plane's own port must not be a way past the gateway.
            let (credentials, path) = plane_key(&config.store.path)?;
            config.auth.methods.push(toolgate_config::AuthMethod::ApiKey);
            config.auth.admin_key_file = Some(path);
            options.credentials = credentials;
        }
        let store = match self.config.gateway.auth.key_store.as_deref() {
            Some(place) => key_store(&arguments.server_config(), place)?,
            None => config.store.clone(),
        };
        let (sender, bound) = oneshot::channel();
        let stop = self.stop.clone();
        let planning = async {
            let planned = Box::pin(serve_until_bound(config, sender, stop.clone())).await;
            // Without a plane there is nothing to serve.
            stop.cancel();
            planned
        };
        let facing = async {
            // Without an address the plane has failed, and says why.
            let Ok(address) = bound.await else { return Ok(()) };
            let served = match Client::lazy(&address.to_string(), options) {
                Ok(client) => Box::pin(self.serve_with_keys(&client, &store)).await,
                Err(error) => Err(Failure::from(error)),
            };
            stop.cancel();
            served
        };
        let (planned, served) = tokio::join!(Box::pin(planning), Box::pin(facing));
        planned.map_err(|error| Failure::new(with_causes(&error)))?;
        served
    }

    fn has_authentication(&self) -> bool {
        !self.config.gateway.auth.methods.is_empty()
    }

    fn takes_keys(&self) -> bool {
        self.listener.is_some() && self.config.gateway.auth.methods.contains(&AuthMethod::ApiKey)
    }

    /// Serves before a plane within this process, with the API keys of a store.
    async fn serve_with_keys(self, plane: &Client, store: &StoreConfig) -> Result<(), Failure> {
        if !self.takes_keys() {
            return self.serve(plane, None).await;
        }
        // The plane makes the store; while it starts, its port refuses nobody and answers nobody.
        plane.with_deadline(PLANE_START).health("").await?;
        let keys = open_now(store).await.map_err(|error| Failure::new(with_causes(&error)))?;
        self.serve(plane, Some(keys)).await
    }

    /// Opens the store of API keys that the file names, if it takes any.
    async fn named_keys(
        &self,
        arguments: &RunArguments,
    ) -> Result<Option<Arc<dyn KeyStore>>, Failure> {
        if !self.takes_keys() {
            return Ok(None);
        }
        let Some(place) = self.config.gateway.auth.key_store.as_deref() else {
            return Err(Failure::usage(
                "gateway.auth.key_store must name the store of the API keys: the plane is another process's",
            ));
        };
        let store = key_store(&arguments.server_config(), place)?;
        let keys = open_now(&store).await.map_err(|error| Failure::new(with_causes(&error)))?;
        Ok(Some(keys))
    }

    /// Serves until a signal, or until the host closes its streams.
    async fn serve(self, plane: &Client, keys: Option<Arc<dyn KeyStore>>) -> Result<(), Failure> {
        let Self { config, listener, credentials, stop, file } = self;
        let tenant = plane.options().tenant.clone();
        let authentication = match &listener {
            Some(listener) => {
                let address = listener.local_addr()?;
                HostAuthentication::start(&config, address, &tenant, keys, &stop).await?
            }
            None => None,
        };
        let gateway = Gateway::start(config, plane, credentials)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let telling = tokio::spawn(tell(gateway.clone()));
        let following = tokio::spawn(file.follow(gateway.clone()));
        let served = match listener {
            Some(listener) => {
                if let Ok(address) = listener.local_addr() {
                    output::note(format_args!("serving on http://{address}/mcp"));
                }
                serve(gateway.clone(), listener, authentication, stop).await
            }
            None => {
                let input = tokio::io::stdin();
                serve_stdio(gateway.clone(), input, tokio::io::stdout(), stop).await
            }
        };
        telling.abort();
        following.abort();
        gateway.close().await;
        served.map_err(|error| Failure::new(error.to_string()))
    }
}

impl GatewayFile {
    /// Takes the servers of the file anew on SIGHUP, and when it changes. A file that makes no sense is told, and changes
    /// nothing. Runs until it is aborted.
    async fn follow(self, gateway: Gateway) {
        let mut file = WatchedFile::new(&self.path);
        let mut hangups = match Hangups::listen() {
            Ok(hangups) => hangups,
            Err(error) => {
                output::warn(format_args!("SIGHUP can't be waited for: {error}"));
                return;
            }
        };
        loop {
            tokio::select! {
                () = hangups.next() => file.take(),
                () = file.changed() => {}
            }
            let path = self.path.display();
            match self.apply(&gateway) {
                Ok(false) => output::note(format_args!("{path} was read again")),
                Ok(true) => output::note(format_args!(
                    "{path} was read again; its [gateway] section is taken at the next start"
                )),
                Err(error) => {
                    output::warn(format_args!("{error}; the servers stay as they were"));
                }
            }
        }
    }

    /// Returns whether the `[gateway]` section is another than at the start.
    fn apply(&self, gateway: &Gateway) -> Result<bool, ConfigError> {
        let mut config = Config::read(&self.path)?;
        if let Some(listen) = self.listen {
            config.gateway.listen = listen;
        }
        gateway.apply(&config)
    }
}

/// Returns the configuration of a store of API keys: a data directory, or the URL of a database.
fn key_store(arguments: &ConfigArguments, place: &str) -> Result<StoreConfig, Failure> {
    let key = if place.contains("://") { &keys::STORE_URL.spec } else { &keys::STORE_PATH.spec };
    let flag = FlagValue {
        flag: "gateway.auth.key_store".into(),
        key: key.name.to_owned(),
        value: place.to_owned(),
    };
    Ok(arguments.load(vec![flag])?.config.store)
}

/// Returns the configuration of the plane within this process, which listens where nobody else expects it.
fn plane_config(arguments: &RunArguments) -> Result<ServerConfig, Failure> {
    let flag = |key: &str, value: String| FlagValue {
        flag: "toolgate gateway".into(),
        key: key.to_owned(),
        value,
    };
    let own: SocketAddr = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut flags = vec![
        flag(keys::SERVER_LISTEN.spec.name, own.to_string()),
        flag(keys::SERVER_ADMIN_LISTEN.spec.name, own.to_string()),
    ];
    flags.extend(model_flag(arguments.model_dir.as_deref()));
    let data = data_dir(arguments.data_dir.as_deref(), &arguments.server_config(), flags.clone())?;
    flags.push(flag(keys::STORE_PATH.spec.name, data.to_string_lossy().into_owned()));
    Ok(arguments.server_config().load(flags)?.config)
}

/// Says of each server when it is ready, and of slow ones that they are.
async fn tell(gateway: Gateway) {
    let mut seen = gateway.seen();
    let mut told: HashMap<String, String> = HashMap::new();
    let mut is_complete = false;
    loop {
        let overview = gateway.overview(&gateway.anybody());
        for server in &overview.servers {
            let line = line(server);
            let is_start = server.state == "starting" && !told.contains_key(&server.name);
            if !is_start && told.get(&server.name) != Some(&line) {
                output::note(&line);
                told.insert(server.name.clone(), line);
            }
        }
        let is_ready = |server: &ServerOverview| {
            matches!(&*server.state, "ready" | "idle") && server.is_searchable
        };
        if !is_complete && overview.servers.iter().all(is_ready) {
            is_complete = true;
            let servers = counted(overview.servers.len(), "server");
            let tools = counted(overview.tools, "tool");
            output::note(format_args!("{servers} ready: {tools} behind discover_tools"));
        }
        if tokio::time::timeout(SLOW, gateway.changed(&mut seen)).await.is_err() {
            tell_slow(&gateway, &mut told);
        }
    }
}

/// Says once which servers are still starting.
fn tell_slow(gateway: &Gateway, told: &mut HashMap<String, String>) {
    for server in gateway.overview(&gateway.anybody()).servers {
        if server.state == "starting" && !told.contains_key(&server.name) {
            let line = format!("{}: slow to start; serving without it", server.name);
            output::note(&line);
            told.insert(server.name, line);
        }
    }
}

fn line(server: &ServerOverview) -> String {
    let ServerOverview { name, state, transport, protocol, .. } = server;
    let problem = server.problem.lines().next().unwrap_or_default();
    match server.started_in {
        Some(seconds) if state == "ready" || state == "idle" => {
            let tools = counted(server.tools, "tool");
            format!("{name}: {state} in {seconds:.1} s, {tools}, {transport}, MCP {protocol}")
        }
        _ if problem.is_empty() => format!("{name}: {state}"),
        _ => format!("{name}: {state}: {problem}"),
    }
}
