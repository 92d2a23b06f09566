//! MCP server that lists the tools of catalog files, and answers each call with its arguments as JSON.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::serve::ListenerExt;
use clap::Parser;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::net::TcpListener;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Serves the tools of catalog files, on stdin and stdout unless `--http` is given.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Files with `tools`, as servers answer `tools/list`; names must differ
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Serves http://ADDRESS/mcp; port 0 takes a free one. The URL is the first line of stdout
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Lists the first N tools
    #[arg(long, value_name = "N")]
    most: Option<usize>,
}

#[derive(Clone)]
struct Catalog {
    listed: Arc<ListToolsResult>,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments = Arguments::parse();
    let catalog = Catalog::read(&arguments.files, arguments.most.unwrap_or(usize::MAX))?;
    match arguments.http {
        Some(address) => serve_http(address, catalog).await,
        None => {
            catalog.serve(rmcp::transport::stdio()).await?.waiting().await?;
            Ok(())
        }
    }
}

#[expect(clippy::print_stdout, reason = "tells who started it where it listens")]
async fn serve_http(address: SocketAddr, catalog: Catalog) -> Outcome<()> {
    let service = StreamableHttpService::new(
        move || Ok(catalog.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    // A stream is written in pieces; none waits until the one before it was acknowledged.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, axum::Router::new().route_service("/mcp", service)).await?;
    Ok(())
}

impl Catalog {
    fn read(files: &[PathBuf], most: usize) -> Outcome<Self> {
        let mut tools: Vec<Tool> = Vec::new();
        for file in files {
            for mut tool in tools_of(file)? {
                // Answers keep to no schema, and clients would refuse them.
                tool.output_schema = None;
                if tools.iter().any(|other| other.name == tool.name) {
                    return Err(format!("{}: {} is in two files", file.display(), tool.name).into());
                }
                tools.push(tool);
            }
        }
        tools.truncate(most);
        Ok(Self { listed: Arc::new(ListToolsResult::with_all_items(tools)) })
    }
}

fn tools_of(file: &Path) -> Outcome<Vec<Tool>> {
    let named = |error: &dyn Error| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| named(&error))?;
    let mut catalog: Value = serde_json::from_str(&text).map_err(|error| named(&error))?;
    Ok(serde_json::from_value(catalog["tools"].take()).map_err(|error| named(&error))?)
}

impl ServerHandler for Catalog {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        config.server_info = Implementation::new("toolgate-mcp-catalog", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok((*self.listed).clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&request.name).is_none() {
            return Err(ErrorData::invalid_params(format!("no tool {}", request.name), None));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(CallToolResult::success(vec![ContentBlock::text(arguments.to_string())]).into())
    }

    /// The library compares mirrored headers with it.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed.tools.iter().find(|tool| tool.name == name).cloned()
    }
}
