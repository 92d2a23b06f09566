//! Indexed catalogs for unit tests.

use std::collections::HashMap;

use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::mcp_server::TrustTier;
use toolgate_store::{
    ServerRecord, StoredCatalog, StoredServer, StoredTool, ToolRecord, ToolStatus,
};

/// Tool of a test's catalog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestTool {
    pub(crate) server: &'static str,
    pub(crate) name: &'static str,
    pub(crate) schema_tokens: u32,
}

/// Creates a tool of 10 tokens.
pub(crate) fn tool(server: &'static str, name: &'static str) -> TestTool {
    TestTool { server, name, schema_tokens: 10 }
}

/// Indexes tools without embeddings, in slots of their order. These MCP servers are untrusted.
pub(crate) fn snapshot(tools: &[TestTool], untrusted: &[&str]) -> Snapshot {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.server).collect();
    names.sort_unstable();
    names.dedup();
    let server = |name: &str| {
        let mut record = ServerRecord::new(ServerName::parse(name).expect("a server's name"));
        if untrusted.contains(&name) {
            record.trust_tier = TrustTier::Untrusted;
        }
        StoredServer { record, revision: 1, updated_ms: 0, tool_count: 1 }
    };
    let catalog = StoredCatalog {
        revision: 1,
        servers: names.into_iter().map(server).collect(),
        tools: tools.iter().map(stored).collect(),
        ..StoredCatalog::default()
    };
    Snapshot::build(catalog, &HashMap::new(), 2).expect("a snapshot")
}

fn stored(tool: &TestTool) -> StoredTool {
    let server = ServerName::parse(tool.server).expect("a server's name");
    let name = ToolName::parse(tool.name).expect("a tool's name");
    let id = ToolId { server, name };
    let record = ToolRecord {
        model_name: id.model_name(),
        server: id.server,
        name: id.name,
        summary: format!("Does {}.", tool.name),
        search_hint: String::new(),
        definition: r#"{"name":"x","inputSchema":{"type":"object"}}"#.to_owned(),
        hash: [1; 32],
        precondition: None,
        required_scopes: Vec::new(),
        always_load: false,
        critical: false,
        schema_tokens: tool.schema_tokens,
        summary_tokens: 3,
        status: ToolStatus::Active,
    };
    StoredTool { record, summary_revision: 1 }
}
