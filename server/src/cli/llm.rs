//! `toolgate llm`: a base URL in the place of a provider's.

mod authentication;
mod serving;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio_util::sync::CancellationToken;
use toolgate_gateway_llm::{Config, ExtProcTlsConfig, Savings};
use toolgate_serving::{TlsFiles, stop_on_signal};

use super::failure::{Exit, Failure};
use super::gateway::GatewayTelemetry;
use super::{core_files, output, tls};
use authentication::HostKeys;
use serving::ExtProcListener;
pub(super) use serving::{PlaneArguments, Prepared, listen};

const EXAMPLES: &str = "\
Examples:
  toolgate llm                                            serve on http://127.0.0.1:7090
  toolgate llm --server http://127.0.0.1:7070             use a routing plane that runs already
  ANTHROPIC_BASE_URL=http://127.0.0.1:7090/anthropic claude
  OPENAI_BASE_URL=http://127.0.0.1:7090/openai/v1 python agent.py
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:7090/gemini gemini

With llm.key_store, hosts show a key of `toolgate key create` in the header x-toolgate-key.

For one program, `toolgate run` does all of it. llm.toml has the settings; none is needed. docs/llm-proxy.md says more.";

/// File of the proxy where none is named.
const DEFAULT_FILE: &str = "llm.toml";

/// Serve an LLM proxy: hosts call it in the place of their provider, and their requests carry few tools.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Llm {
    /// The proxy's file. Default: llm.toml, if there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port to listen on, in place of llm.listen.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    plane: PlaneArguments,
}

pub(super) fn run(llm: Llm) -> Result<Exit, Failure> {
    core_files::write_none();
    let runtime = output::runtime()?;
    let outcome = runtime.block_on(Box::pin(serve_until_stopped(llm)));
    runtime.shutdown_background();
    outcome
}

async fn serve_until_stopped(llm: Llm) -> Result<Exit, Failure> {
    let telemetry = GatewayTelemetry::start(&llm.plane.server_config().load(Vec::new())?);
    let mut config = read(llm.config.as_deref())?;
    if let Some(listen) = llm.listen {
        config.llm.listen = listen;
    }
    if let Some(problem) = config.problem() {
        return Err(Failure::usage(problem));
    }
    llm.plane.tell_unused_addresses();
    let stop = CancellationToken::new();
    tokio::spawn(stop_on_signal(stop.clone()));
    let listener = listen(config.llm.listen, "llm.listen or --listen").await?;
    let address = listener.local_addr()?;
    let ext_proc = listen_for_envoy(&config, &stop).await?;
    let authentication = HostKeys::start(&config, &llm.plane.server_config(), &stop).await?;
    let savings = Savings::default();
    let prepared = Prepared { config, listener, ext_proc, savings, authentication, stop };
    let told = || output::note(format_args!("serving on http://{address}"));
    let served = prepared.serve(&llm.plane, told).await;
    telemetry.stop().await;
    served.map(|()| Exit::Done)
}

/// Listens for Envoy, if the proxy's file says where.
async fn listen_for_envoy(
    config: &Config,
    stop: &CancellationToken,
) -> Result<Option<ExtProcListener>, Failure> {
    let Some(address) = config.llm.ext_proc_listen else { return Ok(None) };
    let ExtProcTlsConfig { cert_file, key_file, client_ca_file } = &config.llm.ext_proc_tls;
    let tls = match (cert_file, key_file) {
        (Some(certificate), Some(key)) => {
            let files = TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_authorities: client_ca_file.clone(),
                client_certificate_optional: false,
            };
            Some(tls::start(files, "llm.ext_proc_tls", stop)?)
        }
        _ => None,
    };
    let listener = listen(address, "llm.ext_proc_listen").await?;
    Ok(Some(ExtProcListener { listener, tls }))
}

/// Reads the proxy's file: the one that is named, else `llm.toml` if it is there.
pub(super) fn read(named: Option<&Path>) -> Result<Config, Failure> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE));
    if named.is_none() && !path.exists() {
        return Ok(Config::default());
    }
    Config::read(path).map_err(|error| Failure::usage(error.to_string()))
}
