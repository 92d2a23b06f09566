//! `toolgate gateway`: runs a gateway, and the routing plane that it asks, until it is interrupted.

mod followed;
mod plane;
mod replica;
pub(super) mod telemetry;
mod telling;
mod tls;

use std::env::current_exe;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_client::{Client, ClientOptions};
use toolgate_config::StoreConfig;
use toolgate_core::safety::Scanner;
use toolgate_mcp::{AuthMethod, Config, Gateway, Registrations, serve, serve_stdio};
use toolgate_serving::{ConnectionLimits, Connections, stop_on_signal};
use toolgate_store::KeyStore;
use toolgate_upstream::{CredentialStore, Eras, Processes, SandboxHelper, Supervisor};

use super::authentication::{HostAuthentication, plane_key};
use super::{RunArguments, data_dir, login};
use crate::cli::arguments::{
    DEFAULT_ENDPOINT, GATEWAY, SANDBOXED, SUPERVISE, usual_gateway_folder,
};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::running_gateway::RunningGateway;
use crate::cli::serve::with_causes;
use crate::serve::{ServeError, check_model, hold, open_now, scanner, serve_until_bound};
use followed::FollowedFiles;
pub(in crate::cli) use plane::store_at;
use plane::{key_store, plane_config};
use replica::ReplicaSettings;
use telemetry::GatewayTelemetry;
use telling::tell;
pub(super) use telling::{always_on_line, start_line};
use tls::HostListener;

/// Tenant of a plane within this process where none is named.
const DEFAULT_TENANT: &str = "default";

/// Most gateways on standard streams with planes of their own beside each other.
const STDIO_MAX: usize = 64;

/// File of the eras of MCP that servers speak, in the data directory.
const ERAS_FILE: &str = "eras.json";

/// File of the numbers of calls by which the always-on set is chosen, in the data directory.
const CALLS_FILE: &str = "calls.json";

/// Time for the plane within this process to start.
const PLANE_START: Duration = Duration::from_secs(120);

/// Gateway that is to run, with its address if it listens.
struct Prepared {
    config: Config,
    /// `None` for a host on standard input and output.
    listener: Option<TcpListener>,
    /// `None` if no server takes logins, or if they can't be kept.
    credentials: Option<CredentialStore>,
    stop: CancellationToken,
    files: FollowedFiles,
    /// Rules for texts of servers; `None` if nothing is to be scanned.
    scanner: Option<Scanner>,
    replica: ReplicaSettings,
    registrations: Registrations,
    eras: Eras,
    /// File in which calls of tools are counted.
    calls_file: PathBuf,
    /// Lock of the folder of the plane within this process, if it is taken already.
    lock: Option<File>,
    /// Endpoint that commands must name to reach the plane.
    endpoint: Option<String>,
}

/// Folder for the data of a plane, which no other process uses.
struct HeldFolder {
    path: PathBuf,
    lock: File,
}

pub(super) async fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    let telemetry = GatewayTelemetry::start(&arguments.server_config().load(Vec::new())?);
    let served = Box::pin(run_traced(arguments)).await;
    telemetry.stop().await;
    served
}

async fn run_traced(mut arguments: RunArguments) -> Result<Exit, Failure> {
    let files = arguments.files.clone().settled();
    let mut config = files.read()?.told();
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
    let safety = arguments.server_config().load(Vec::new())?.config.safety;
    let wrong = |problem| Failure::new(with_causes(&ServeError::Rules(problem)));
    let scanner = scanner(&safety).map_err(wrong)?;
    let files = FollowedFiles { files, listen: arguments.listen, safety };
    let data = data_dir(arguments.data_dir.as_deref(), &arguments.server_config(), Vec::new())?;
    let credentials = login::store_if_needed(&config, &data)?;
    let replica = ReplicaSettings::read(&config, &arguments.server_config())?;
    let mut lock = None;
    if arguments.stdio && arguments.server.is_none() {
        let folder = unused_folder(&data)?;
        arguments.data_dir = Some(folder.path);
        lock = Some(folder.lock);
    }
    let registrations = registrations(&arguments, &data, &files.files.paths())?;
    let eras = Eras::at(&data.join(ERAS_FILE));
    let endpoint = arguments.server.clone().filter(|server| server != DEFAULT_ENDPOINT);
    let prepared = Prepared {
        config,
        listener,
        credentials,
        stop,
        files,
        scanner,
        replica,
        registrations,
        eras,
        calls_file: data.join(CALLS_FILE),
        lock,
        endpoint,
    };
    match &arguments.server {
        Some(server) => {
            let keys = prepared.named_keys(&arguments).await?;
            let plane = Client::lazy(server, options)?;
            Box::pin(prepared.serve(&plane, keys)).await?;
        }
        None => prepared.serve_with_plane(&arguments, options).await?,
    }
    Ok(Exit::Done)
}

/// Returns the means by which processes of servers end if this one is killed, and by which they enter their sandboxes.
fn processes() -> Processes {
    // The program that runs, even if its file has been replaced since.
    let itself = Path::new("/proc/self/exe");
    let program = if itself.exists() { Some(itself.to_owned()) } else { current_exe().ok() };
    let supervisor =
        program.clone().map(|program| Supervisor::new(program, vec![SUPERVISE.into()]));
    let helper =
        program.map(|program| SandboxHelper { program, arguments: vec![SANDBOXED.into()] });
    Processes::default().with_supervisor(supervisor).with_sandbox_helper(helper)
}

/// Returns what earlier starts with these arguments registered.
fn registrations(
    arguments: &RunArguments,
    data: &Path,
    files: &[PathBuf],
) -> Result<Registrations, Failure> {
    if let Some(server) = &arguments.server {
        return Ok(Registrations::of_plane(data, server, &arguments.tenant, files));
    }
    let folder = arguments.data_dir.as_deref().unwrap_or(data);
    if let Some(shared) = arguments.server_config().load(Vec::new())?.config.store.shared {
        let url = shared.url.load().map_err(|error| Failure::new(with_causes(&error)))?;
        let tenant = own_tenant(&arguments.tenant);
        return Ok(Registrations::of_shared_store(folder, url.expose(), tenant));
    }
    // In the usual folder, an earlier version registered all that there is.
    Ok(Registrations::of_own_plane(folder, arguments.data_dir.is_none()))
}

/// Returns the tenant of a plane within this process.
fn own_tenant(named: &str) -> &str {
    if named.is_empty() { DEFAULT_TENANT } else { named }
}

/// Returns a folder within the data directory for the plane of a gateway on standard streams, and holds it. Hosts start one
/// each, beside one that listens, which has the data directory itself.
fn unused_folder(data: &Path) -> Result<HeldFolder, Failure> {
    for number in 1..=STDIO_MAX {
        let path = data.join(format!("stdio-{number}"));
        match hold(&path) {
            Ok(lock) => return Ok(HeldFolder { path, lock }),
            Err(ServeError::InUse { .. }) => {}
            Err(error) => return Err(Failure::new(with_causes(&error))),
        }
    }
    Err(Failure::new(format!("{STDIO_MAX} gateways on standard streams use {}", data.display())))
}

/// Returns the endpoint by which commands reach the plane within this process: by name if they look for the gateway there.
fn endpoint_of(address: SocketAddr, data: &Path, is_announced: bool) -> String {
    let is_found = is_announced && usual_gateway_folder().is_some_and(|usual| usual == data);
    if is_found { GATEWAY.to_owned() } else { format!("http://{address}") }
}

async fn listen(config: &Config) -> Result<TcpListener, Failure> {
    let address = config.gateway.listen;
    TcpListener::bind(address).await.map_err(|error| {
        Failure::new(format!(
            "{address} can't be listened on: {error} (gateway.listen or --listen sets another)"
        ))
    })
}

/// Returns the limits on connections of hosts. A host may stay silent for as long as it likes: it listens for changes.
fn connection_limits(config: &Config) -> ConnectionLimits {
    let of_one = config.gateway.connections_of_one_address();
    ConnectionLimits {
        max_per_address: Some(of_one),
        ..ConnectionLimits::of(config.gateway.max_connections)
    }
}

impl Prepared {
    /// Serves with a routing plane within this process.
    async fn serve_with_plane(
        mut self,
        arguments: &RunArguments,
        mut options: ClientOptions,
    ) -> Result<(), Failure> {
        if options.tenant.is_empty() {
            DEFAULT_TENANT.clone_into(&mut options.tenant);
        }
        let mut config = plane_config(arguments)?;
        let mut key_file = None;
        check_model(&config.encoder).map_err(|error| Failure::new(error.to_string()))?;
        if self.listener.is_some() && self.has_authentication() && config.auth.methods.is_empty() {
            // The plane's own port must not be a way past the gateway.
            let (credentials, path) = plane_key(&config.store.path)?;
            config.auth.methods.push(toolgate_config::AuthMethod::ApiKey);
            config.auth.admin_key_file = Some(path.clone());
            key_file = Some(path);
            options.credentials = credentials;
        }
        let store = match self.config.gateway.auth.key_store.as_deref() {
            Some(place) => key_store(&arguments.server_config(), place)?,
            None => config.store.clone(),
        };
        let shared = (config.handle.key.clone(), config.store.clone());
        let data = config.store.path.clone();
        let (sender, bound) = oneshot::channel();
        let stop = self.stop.clone();
        let lock = self.lock.take();
        let planning = async {
            let planned = Box::pin(serve_until_bound(config, lock, sender, stop.clone())).await;
            // Without a plane there is nothing to serve.
            stop.cancel();
            planned
        };
        let facing = async {
            // Without an address the plane has failed, and says why.
            let Ok(address) = bound.await else { return Ok(()) };
            let plane = format!("http://{address}");
            output::note(format_args!("routing plane on {plane}"));
            let tenant = options.tenant.clone();
            let running = RunningGateway { plane, tenant, key_file };
            // One that listens is the only one of its folder, and stays when hosts end.
            let announced = self.listener.is_some().then(|| running.announce(&data)).transpose();
            let announced = announced.unwrap_or_else(|error| {
                tracing::warn!(%error, "commands can't find the routing plane by themselves");
                None
            });
            let endpoint = Some(endpoint_of(address, &data, announced.is_some()));
            let served = async {
                let client = Client::lazy(&address.to_string(), options)?;
                let replica = self.replica.beside(&shared.0, &shared.1)?;
                let prepared = Self { replica, endpoint, ..self };
                Box::pin(prepared.serve_with_keys(&client, &store)).await
            };
            let served = served.await;
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
            return Box::pin(self.serve(plane, None)).await;
        }
        // The plane makes the store; while it starts, its port refuses nobody and answers nobody.
        plane.with_deadline(PLANE_START).health("").await?;
        let keys = open_now(store).await.map_err(|error| Failure::new(with_causes(&error)))?;
        Box::pin(self.serve(plane, Some(keys))).await
    }

    /// Opens the store of API keys that the file names, if it takes any.
    async fn named_keys(
        &self,
        arguments: &RunArguments,
    ) -> Result<Option<Arc<dyn KeyStore>>, Failure> {
        if !self.takes_keys() {
            return Ok(None);
        }
        let shared = self.config.store_url().map_err(|error| Failure::usage(error.to_string()))?;
        let named = self.config.gateway.auth.key_store.clone();
        let Some(place) = named.or(shared) else {
            return Err(Failure::usage(
                "gateway.auth.key_store or gateway.store_url must name the store of the API keys: the plane is another process's",
            ));
        };
        let store = key_store(&arguments.server_config(), &place)?;
        let keys = open_now(&store).await.map_err(|error| Failure::new(with_causes(&error)))?;
        Ok(Some(keys))
    }

    /// Serves until a signal, or until the host closes its streams.
    async fn serve(self, plane: &Client, keys: Option<Arc<dyn KeyStore>>) -> Result<(), Failure> {
        let Self { config, listener, credentials, stop, files, replica, registrations, .. } = self;
        let eras = self.eras;
        let tenant = plane.options().tenant.clone();
        let authentication = match &listener {
            Some(listener) => {
                let address = listener.local_addr()?;
                HostAuthentication::start(&config, address, &tenant, keys, &stop).await?
            }
            None => None,
        };
        let limits = connection_limits(&config);
        let tls = tls::start(&config.gateway.tls, &config.gateway.auth, &stop)?;
        let scheme = config.gateway.scheme();
        let replica = replica.replica()?;
        let processes = processes();
        let gateway =
            Gateway::start(config, plane, credentials, replica, registrations, processes, eras)
                .map_err(|error| Failure::usage(error.to_string()))?;
        gateway.set_scanner(self.scanner);
        gateway.set_calls_file(&self.calls_file);
        if let Some(endpoint) = self.endpoint {
            gateway.set_endpoint(endpoint);
        }
        let telling = tokio::spawn(tell(gateway.clone()));
        let following = tokio::spawn(files.follow(gateway.clone()));
        let served = match listener {
            Some(listener) => {
                let address = listener.local_addr()?;
                output::note(format_args!("serving on {scheme}://{address}/mcp"));
                let refused = |refusal| tracing::warn!(?refusal, "a connection was refused");
                let connections = Connections::new(listener, limits, refused).over_tls(tls);
                let listener = HostListener(connections.into_listener());
                serve(gateway.clone(), address, listener, authentication, stop).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_on_standard_streams_have_a_folder_each() {
        let data = tempfile::tempdir().expect("a folder");
        let own = hold(data.path()).expect("the lock of one that listens");
        let mut held = Vec::new();
        for name in ["stdio-1", "stdio-2"] {
            let folder = unused_folder(data.path()).expect("a folder");
            assert_eq!(folder.path, data.path().join(name));
            held.push(folder);
        }
        held.remove(0);
        drop(own);
        let folder = unused_folder(data.path()).expect("a folder");
        assert_eq!(folder.path, data.path().join("stdio-1"), "not that of one that listens");
    }
}
