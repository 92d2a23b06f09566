//! An MCP server for tests of the gateway, over Streamable HTTP on loopback or over stdin and stdout.

mod changes;
mod contents;
mod fixture;
mod prompts;
mod questions;
mod resources;
mod sealed;
mod subscribed;
mod tasks;
mod tools;

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use clap::Parser;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::fixture::Fixture;

/// A server for tests of MCP clients, gateways and hosts.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Serves http://127.0.0.1:PORT/mcp; 0 takes a free port. The address is the first line of stdout
    #[arg(long, value_name = "PORT", required_unless_present = "stdio", conflicts_with = "stdio")]
    http: Option<u16>,
    /// Serves one client on stdin and stdout
    #[arg(long)]
    stdio: bool,
    /// Leaves out the empty first event of a stream, at which clients of SDKs before 2025-11-25 disconnect
    #[arg(long)]
    no_priming: bool,
    /// Does not know `server/discover`, as servers of revisions before 2026-07-28
    #[arg(long)]
    legacy: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    match arguments.http {
        Some(port) => serve_http(port, &arguments).await,
        None => serve_stdio(&arguments).await,
    }
}

#[expect(clippy::print_stdout, reason = "tells who started it where it listens")]
async fn serve_http(port: u16, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::new(arguments.legacy);
    let mut config = StreamableHttpServerConfig::default();
    let mut sessions = LocalSessionManager::default();
    if arguments.no_priming {
        config = config.with_sse_retry(None);
        sessions.session_config.sse_retry = None;
    }
    let service = StreamableHttpService::new(
        move || Ok(fixture.for_connection()),
        Arc::new(sessions),
        config,
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}

async fn serve_stdio(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let server = Fixture::new(arguments.legacy).serve(rmcp::transport::stdio()).await?;
    server.waiting().await?;
    Ok(())
}
