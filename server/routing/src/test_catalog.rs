//! Indexed catalogs and candidates for unit tests.

use std::collections::HashMap;

use crate::catalog::plan::text_hash;
use crate::router::ranking::rank::{Candidate, FoundBy, Parts, Recent};
use crate::shard::snapshot::Snapshot;
use toolgate_core::identity::{ServerName, ToolId, ToolName};
use toolgate_core::mcp_server::TrustTier;
use toolgate_store::{
    ServerRecord, StoredCatalog, StoredPolicy, StoredServer, StoredTool, ToolRecord, ToolStatus,
};

/// Embedding of the intent that [`TestCatalog::overlaps`] are the cosines with.
pub(crate) const QUERY: [f32; 2] = [1.0, 0.0];

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

/// Catalog of a test. By default it is empty, without embeddings and without a policy.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TestCatalog<'a> {
    /// Tools in the order of their slots.
    pub(crate) tools: &'a [TestTool],
    /// Untrusted MCP servers.
    pub(crate) untrusted: &'a [&'a str],
    /// Cosines of the summaries with [`QUERY`], by slot. Empty for a catalog without embeddings.
    pub(crate) overlaps: &'a [f32],
    /// Document of the policy; empty for none.
    pub(crate) policy: &'a str,
}

impl TestCatalog<'_> {
    /// Indexes the catalog.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut names: Vec<&str> = self.tools.iter().map(|tool| tool.server).collect();
        names.sort_unstable();
        names.dedup();
        let document = self.policy.to_owned();
        let policy = StoredPolicy { document, revision: 1, updated_ms: 0 };
        let catalog = StoredCatalog {
            revision: 1,
            servers: names.into_iter().map(|name| self.server(name)).collect(),
            tools: self.tools.iter().map(stored).collect(),
            policy: (!self.policy.is_empty()).then_some(policy),
            ..StoredCatalog::default()
        };
        let embedding = |overlap: &f32| vec![*overlap, (1.0 - overlap * overlap).sqrt()];
        let summaries = self.tools.iter().map(|tool| text_hash(&summary(tool.name)));
        let embeddings: HashMap<_, _> =
            summaries.zip(self.overlaps.iter().map(embedding)).collect();
        Snapshot::build(catalog, &embeddings, QUERY.len()).expect("a snapshot")
    }

    fn server(&self, name: &str) -> StoredServer {
        let mut record = ServerRecord::new(ServerName::parse(name).expect("a server's name"));
        if self.untrusted.contains(&name) {
            record.trust_tier = TrustTier::Untrusted;
        }
        StoredServer { record, revision: 1, updated_ms: 0, tool_count: 1 }
    }
}

/// Indexes tools without embeddings, in slots of their order. These MCP servers are untrusted.
pub(crate) fn snapshot(tools: &[TestTool], untrusted: &[&str]) -> Snapshot {
    TestCatalog { tools, untrusted, ..TestCatalog::default() }.snapshot()
}

/// Creates a candidate that was found by its overlap, which is its score as well, and that leads no intent.
pub(crate) fn candidate(slot: u32, overlap: f32) -> Candidate {
    Candidate {
        slot,
        overlap,
        score: overlap,
        found_by: FoundBy::Overlap,
        parts: Parts { nearest: overlap, ..Parts::default() },
        leads: false,
        recent: Recent::default(),
        from_context: false,
        is_reserved: false,
    }
}

fn summary(name: &str) -> String {
    format!("Does {name}.")
}

fn stored(tool: &TestTool) -> StoredTool {
    let server = ServerName::parse(tool.server).expect("a server's name");
    let name = ToolName::parse(tool.name).expect("a tool's name");
    let id = ToolId { server, name };
    let record = ToolRecord {
        model_name: id.model_name(),
        server: id.server,
        name: id.name,
        summary: summary(tool.name),
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
