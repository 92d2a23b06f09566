//! `toolgate gateway`: runs a gateway, and the routing plane that it asks, until it is interrupted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolgate_client::{Client, ClientOptions};
use toolgate_config::{Config as ServerConfig, FlagValue, keys};
use toolgate_mcp::{Config, Gateway, ServerOverview, serve, serve_stdio};
use toolgate_serving::stop_on_signal;
use toolgate_upstream::CredentialStore;

use super::{RunArguments, data_dir, login, read};
use crate::cli::arguments::model_flag;
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::cli::serve::with_causes;
use crate::cli::text::counted;
use crate::serve::serve_until_bound;

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
}

pub(super) async fn run(arguments: RunArguments) -> Result<Exit, Failure> {
    let mut config = read(arguments.config.as_deref())?;
    if let Some(listen) = arguments.listen {
        config.gateway.listen = listen;
    }
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    // The address first, so that a second gateway fails before it starts anything.
    let listener = if arguments.stdio { None } else { Some(listen(&config).await?) };
    let options = ClientOptions { tenant: arguments.tenant.clone(), ..Default::default() };
    let options = arguments.credentials.add_to(options)?;
    let data = data_dir(arguments.data_dir.as_deref(), &arguments.server_config(), Vec::new())?;
    let credentials = login::store_if_needed(&config, &data)?;
    let prepared = Prepared { config, listener, credentials, stop };
    match &arguments.server {
        Some(server) => prepared.serve(&Client::lazy(server, options)?).await?,
        None => prepared.serve_with_plane(plane_config(&arguments)?, options).await?,
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
        config: ServerConfig,
        options: ClientOptions,
    ) -> Result<(), Failure> {
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
                Ok(client) => self.serve(&client).await,
                Err(error) => Err(Failure::from(error)),
            };
            stop.cancel();
            served
        };
        let (planned, served) = tokio::join!(Box::pin(planning), Box::pin(facing));
        planned.map_err(|error| Failure::new(with_causes(&error)))?;
        served
    }

    /// Serves until a signal, or until the host closes its streams.
    async fn serve(self, plane: &Client) -> Result<(), Failure> {
        let Self { config, listener, credentials, stop } = self;
        let gateway = Gateway::start(config, plane, credentials)
            .map_err(|error| Failure::usage(error.to_string()))?;
        let telling = tokio::spawn(tell(gateway.clone()));
        let served = match listener {
            Some(listener) => {
                if let Ok(address) = listener.local_addr() {
                    output::note(format_args!("serving on http://{address}/mcp"));
                }
                serve(gateway.clone(), listener, stop).await
            }
            None => {
                let input = tokio::io::stdin();
                serve_stdio(gateway.clone(), input, tokio::io::stdout(), stop).await
            }
        };
        telling.abort();
        gateway.close().await;
        served.map_err(|error| Failure::new(error.to_string()))
    }
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
        let overview = gateway.overview();
        for server in &overview.servers {
            let line = line(server);
            let is_start = server.state == "starting" && !told.contains_key(&server.name);
            if !is_start && told.get(&server.name) != Some(&line) {
                output::note(&line);
                told.insert(server.name.clone(), line);
            }
        }
        let is_ready = |server: &ServerOverview| server.state == "ready" && server.is_searchable;
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
    for server in gateway.overview().servers {
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
        Some(seconds) if state == "ready" => {
            let tools = counted(server.tools, "tool");
            format!("{name}: ready in {seconds:.1} s, {tools}, {transport}, MCP {protocol}")
        }
        _ if problem.is_empty() => format!("{name}: {state}"),
        _ => format!("{name}: {state}: {problem}"),
    }
}
