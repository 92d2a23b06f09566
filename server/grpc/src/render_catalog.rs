//! Rendering of servers, tools and registration outcomes.

use prost_types::Timestamp;
use toolgate_proto::v1;

use super::precondition;
use toolgate_core::identity::{TenantId, ToolId};
use toolgate_core::precondition::Precondition;
use toolgate_routing::catalog::outcome::{Outcome, OutcomeKind};
use toolgate_routing::catalog::registration::Registered;
use toolgate_routing::router::answers::listing::NamedTool;
use toolgate_store::{ContentHash, ServerRecord, StoredServer, StoredTool, ToolRecord};

/// Renders the answer of RegisterServer.
pub(super) fn registered(tenant: &TenantId, registered: &Registered) -> v1::RegisterServerResponse {
    v1::RegisterServerResponse {
        server: Some(server(tenant, &registered.server)),
        catalog_revision: registered.revision,
        outcomes: registered.outcomes.iter().map(outcome).collect(),
        replayed: registered.replayed,
    }
}

/// Renders an MCP server.
pub(super) fn server(tenant: &TenantId, stored: &StoredServer) -> v1::McpServer {
    let record = &stored.record;
    let seconds = stored.updated_ms.div_euclid(1000);
    let millis = stored.updated_ms.rem_euclid(1000);
    let nanos = i32::try_from(millis * 1_000_000).unwrap_or(0);
    v1::McpServer {
        id: format!("tenants/{}/servers/{}", tenant.as_str(), record.name.as_str()),
        name: record.name.as_str().to_owned(),
        description: record.description.clone(),
        transport_hint: record.transport_hint.number(),
        trust_tier: record.trust_tier.number(),
        tool_count: stored.tool_count,
        etag: stored.etag(),
        revision: stored.revision,
        update_time: Some(Timestamp { seconds, nanos }),
        pending: record.pending,
    }
}

/// Renders a tool. Its preconditions and scopes include those of its server.
pub(super) fn tool(tenant: &TenantId, server: &ServerRecord, stored: &StoredTool) -> v1::Tool {
    let record = &stored.record;
    let id = ToolId { server: record.server.clone(), name: record.name.clone() };
    let mut scopes = [server.required_scopes.as_slice(), &record.required_scopes].concat();
    scopes.sort();
    scopes.dedup();
    v1::Tool {
        id: id.resource_name(tenant),
        server: record.server.as_str().to_owned(),
        name: record.name.as_str().to_owned(),
        model_name: record.model_name.clone(),
        summary: record.summary.clone(),
        definition_json: record.definition.clone(),
        hash: hex::encode(record.hash),
        schema_tokens: record.schema_tokens,
        summary_tokens: record.summary_tokens,
        quarantined: !record.status.is_shown(),
        always_load: record.always_load,
        critical: record.critical,
        precondition: both(server.precondition.as_ref(), record.precondition.as_ref()),
        required_scopes: scopes,
    }
}

/// Renders a tool that waits for approval, for an agent. An agent learns only that the tool exists; its texts are for
/// those who maintain the catalog.
pub(super) fn waiting(tenant: &TenantId, record: &ToolRecord) -> v1::Tool {
    let id = ToolId { server: record.server.clone(), name: record.name.clone() };
    v1::Tool {
        id: id.resource_name(tenant),
        server: record.server.as_str().to_owned(),
        name: record.name.as_str().to_owned(),
        model_name: record.model_name.clone(),
        quarantined: true,
        ..v1::Tool::default()
    }
}

/// Renders a tool by its names, for an agent.
pub(super) fn named(tenant: &TenantId, tool: &NamedTool) -> v1::Tool {
    v1::Tool {
        id: tool.id.resource_name(tenant),
        server: tool.id.server.as_str().to_owned(),
        name: tool.id.name.as_str().to_owned(),
        model_name: tool.model_name.clone(),
        hash: tool.hash.map_or_else(String::new, hex::encode),
        quarantined: tool.hash.is_none(),
        ..v1::Tool::default()
    }
}

/// Renders a stored tool by its names, for those who maintain the catalog.
pub(super) fn names_of(tenant: &TenantId, record: &ToolRecord) -> v1::Tool {
    let quarantined = !record.status.is_shown();
    v1::Tool { hash: hex::encode(record.hash), quarantined, ..waiting(tenant, record) }
}

fn both(server: Option<&Precondition>, tool: Option<&Precondition>) -> Option<v1::Precondition> {
    match (server, tool) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(precondition::render(one)),
        (Some(server), Some(tool)) => {
            let all = Precondition::All(vec![server.clone(), tool.clone()]);
            Some(precondition::render(&all))
        }
    }
}

fn outcome(outcome: &Outcome) -> v1::ToolOutcome {
    let hash = |hash: Option<ContentHash>| hash.map_or_else(String::new, hex::encode);
    v1::ToolOutcome {
        name: outcome.name.clone(),
        kind: kind(outcome.kind) as i32,
        model_name: outcome.model_name.clone(),
        old_hash: hash(outcome.old_hash),
        new_hash: hash(outcome.new_hash),
        field: outcome.field.clone(),
        message: outcome.problem.clone(),
        findings: outcome.findings.clone(),
    }
}

fn kind(kind: OutcomeKind) -> v1::OutcomeKind {
    match kind {
        OutcomeKind::Accepted => v1::OutcomeKind::Accepted,
        OutcomeKind::Unchanged => v1::OutcomeKind::Unchanged,
        OutcomeKind::Changed => v1::OutcomeKind::Changed,
        OutcomeKind::Quarantined => v1::OutcomeKind::Quarantined,
        OutcomeKind::Rejected => v1::OutcomeKind::Rejected,
        OutcomeKind::Removed => v1::OutcomeKind::Removed,
    }
}
