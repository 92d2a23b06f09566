//! Changes to one MCP server. The caller's transaction makes each change atomic: a step that fails undoes the steps
//! before it.

use std::collections::{HashMap, HashSet};

use super::rows::{self, integer, number, to_json};
use super::tools::{self, StoredLine};
use super::{
    Transaction, changes, embeddings, marks, memory, past, policies, removed, requests, sql, values,
};
use crate::{Committed, Revision, ServerChange, ServerRecord, StoreError, ToolRecord};

pub(super) async fn commit(
    transaction: &mut impl Transaction,
    tenant: &str,
    change: &ServerChange,
) -> Result<Committed, StoreError> {
    let server = change.server.name.as_str();
    if let Some(request) = &change.request
        && requests::find_same(transaction, tenant, request).await?.is_some()
    {
        // The request was executed meanwhile. A caller that prepares it again finds the recorded answer.
        return Err(StoreError::Conflict);
    }
    let before = stored(transaction, tenant, server).await?;
    if before.as_ref().map(|stored| stored.revision) != change.base {
        return Err(StoreError::Conflict);
    }
    if let Some(comparison) = &change.comparison
        && marks::is_stale(transaction, tenant, server, comparison).await?
    {
        return Err(StoreError::Conflict);
    }
    let lines = tools::lines(transaction, tenant, server, Some(&touched(change))).await?;
    let gone = lines.len() as u64;
    let fresh = change.upserts.len() as u64;
    refuse_too_many(transaction, tenant, gone, fresh, change).await?;

    let committed = next(transaction, tenant).await?;
    marks::ensure(transaction, tenant).await?;
    let (tools_before, before_scopes) =
        before.map_or((0, None), |stored| (stored.tool_count, Some(stored.scopes)));
    let tool_count = tools_before.saturating_sub(gone) + fresh;
    put_server(transaction, tenant, &change.server, &committed, tool_count).await?;
    changes::server_came(transaction, tenant, server).await?;
    remember_removed(transaction, tenant, change).await?;
    // Delete all changed rows before inserting any, because names may move among the tools of one change.
    tools::delete(transaction, tenant, server, &touched(change)).await?;
    tools::refuse_taken_names(transaction, tenant, &change.upserts).await?;
    let revision = committed.revision;
    tools::insert(transaction, tenant, &change.upserts, &lines, revision).await?;
    // Under a policy that hides tools, a delta must not mention a tool that existed before.
    let hides = policies::hides(transaction, tenant).await?;
    forget(transaction, tenant, revision, &lines, change, hides).await?;
    let touches_hidden = hides && !lines.is_empty();
    if touches_hidden || changes_who_sees(before_scopes.as_deref(), &lines, change)? {
        removed::restart(transaction, tenant, revision).await?;
    }
    memory::drop_unregistered(transaction, tenant, server).await?;
    embeddings::save(transaction, tenant, &change.fingerprint, &change.embeddings).await?;
    if let Some(request) = &change.request {
        requests::record(transaction, tenant, request, &committed).await?;
    }
    requests::forget_expired(transaction, tenant, committed.updated_ms).await?;
    past::forget_expired(transaction, tenant).await?;
    changes::enumerate(transaction, tenant).await?;
    Ok(committed)
}

pub(super) async fn remove_server(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    base: Revision,
) -> Result<Committed, StoreError> {
    let before = stored(transaction, tenant, server).await?;
    let Some(before) = before.filter(|stored| stored.revision == base) else {
        return Err(StoreError::Conflict);
    };
    let lines = tools::lines(transaction, tenant, server, None).await?;
    let committed = next(transaction, tenant).await?;
    past::remember(transaction, tenant, server, None).await?;
    let delete_tools = sql!("DELETE FROM tools WHERE tenant = $1 AND server = $2");
    let delete_server = sql!("DELETE FROM servers WHERE tenant = $1 AND name = $2");
    for delete in [delete_tools, delete_server] {
        transaction.run(delete, &values![tenant, server]).await?;
    }
    marks::delete(transaction, tenant, server, None).await?;
    changes::server_went(transaction, tenant, server, committed.revision).await?;
    let shown = lines.values().filter(|line| line.is_shown);
    let gone: Vec<_> = shown.map(|line| line.model_name.as_str()).collect();
    removed::update(transaction, tenant, committed.revision, &gone, &[]).await?;
    let scoped = before.scopes != NO_SCOPES || lines.values().any(|line| line.scopes != NO_SCOPES);
    if scoped || (!lines.is_empty() && policies::hides(transaction, tenant).await?) {
        removed::restart(transaction, tenant, committed.revision).await?;
    }
    let texts = lines.values().map(|line| &line.summary_hash);
    embeddings::drop_unused(transaction, tenant, texts).await?;
    memory::drop_unregistered(transaction, tenant, server).await?;
    requests::forget_expired(transaction, tenant, committed.updated_ms).await?;
    past::forget_expired(transaction, tenant).await?;
    changes::enumerate(transaction, tenant).await?;
    Ok(committed)
}

/// Empty list of scopes as stored.
const NO_SCOPES: &str = "[]";

struct Stored {
    revision: Revision,
    tool_count: u64,
    /// Required scopes as stored: a JSON list.
    scopes: String,
}

async fn stored(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
) -> Result<Option<Stored>, StoreError> {
    let stored = sql!(
        "SELECT revision, tool_count, required_scopes FROM servers WHERE tenant = $1 AND name = $2"
    );
    let found = transaction.optional(stored, &values![tenant, server]).await?;
    let Some(row) = found else { return Ok(None) };
    let revision = number(&row, "revision")?;
    let tool_count = number(&row, "tool_count")?;
    Ok(Some(Stored { revision, tool_count, scopes: rows::text(&row, "required_scopes")? }))
}

/// Returns true if tools appear or disappear for some callers because of scopes alone. A delta can't express that: a
/// caller that lacked the scope would miss the line, and a caller that never had the scope would learn a name.
fn changes_who_sees(
    server_before: Option<&str>,
    lines: &HashMap<String, StoredLine>,
    change: &ServerChange,
) -> Result<bool, StoreError> {
    let Some(server_before) = server_before else { return Ok(false) };
    if server_before != to_json(&change.server.required_scopes)? {
        return Ok(true);
    }
    let shown = lines.iter().filter(|(_, line)| line.is_shown);
    let mut gone: HashMap<&str, &StoredLine> =
        shown.map(|(name, line)| (name.as_str(), line)).collect();
    for tool in shown_after(change) {
        let line = gone.remove(tool.name.as_str());
        let scopes = to_json(&tool.required_scopes)?;
        if line.is_some_and(|line| line.scopes != scopes) {
            return Ok(true);
        }
    }
    let is_open = |line: &&StoredLine| server_before == NO_SCOPES && line.scopes == NO_SCOPES;
    Ok(!gone.values().all(is_open))
}

/// Returns the tools of the change that have a line in the summary pool. For a reader of the pool, a quarantined tool
/// is removed and an approved tool is new.
fn shown_after(change: &ServerChange) -> impl Iterator<Item = &ToolRecord> {
    change.upserts.iter().filter(|tool| tool.status.is_shown())
}

/// Returns the names of the tools whose rows the change replaces or removes.
fn touched(change: &ServerChange) -> Vec<&str> {
    let upserts = change.upserts.iter().map(|tool| tool.name.as_str());
    upserts.chain(change.removals.iter().map(|name| name.as_str())).collect()
}

/// Records the tools that the change removes, and drops the records of the tools that it adds.
async fn remember_removed(
    transaction: &mut impl Transaction,
    tenant: &str,
    change: &ServerChange,
) -> Result<(), StoreError> {
    let server = change.server.name.as_str();
    let removed: Vec<_> = change.removals.iter().map(|name| name.as_str()).collect();
    past::remember(transaction, tenant, server, Some(&removed)).await?;
    let here = change.upserts.iter().map(|tool| tool.name.as_str()).collect();
    past::forget(transaction, tenant, server, here).await
}

async fn refuse_too_many(
    transaction: &mut impl Transaction,
    tenant: &str,
    gone: u64,
    fresh: u64,
    change: &ServerChange,
) -> Result<(), StoreError> {
    let counts = sql!(
        "SELECT count(*) AS servers, CAST(coalesce(sum(tool_count), 0) AS BIGINT) AS tools
         FROM servers WHERE tenant = $1"
    );
    let row = transaction.optional(counts, &values![tenant]).await?;
    let (servers, tools) = match row {
        Some(row) => (number::<u64>(&row, "servers")?, number::<u64>(&row, "tools")?),
        None => (0, 0),
    };
    let actual = tools.saturating_sub(gone) + fresh;
    if actual > change.max_tools {
        return Err(StoreError::TooManyTools { actual });
    }
    let actual = servers + u64::from(change.base.is_none());
    if actual > change.max_servers { Err(StoreError::TooManyServers { actual }) } else { Ok(()) }
}

/// Takes the tenant's next revision.
pub(super) async fn next(
    transaction: &mut impl Transaction,
    tenant: &str,
) -> Result<Committed, StoreError> {
    let next = sql!(
        "INSERT INTO tenants (tenant, revision, pool_floor) VALUES ($1, 1, 0)
         ON CONFLICT (tenant) DO UPDATE SET revision = tenants.revision + 1 RETURNING revision"
    );
    let row = transaction.optional(next, &values![tenant]).await?;
    let missing = || StoreError::Damaged("no revision came of a change".to_owned());
    let revision = number(&row.ok_or_else(missing)?, "revision")?;
    Ok(Committed { revision, updated_ms: transaction.now_ms() })
}

pub(super) async fn put_server(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &ServerRecord,
    committed: &Committed,
    tool_count: u64,
) -> Result<(), StoreError> {
    let put = sql!(
        "INSERT INTO servers (tenant, name, description, transport_hint, trust_tier,
             precondition, required_scopes, revision, updated_ms, tool_count, pending)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (tenant, name) DO UPDATE SET description = excluded.description,
             transport_hint = excluded.transport_hint, trust_tier = excluded.trust_tier,
             precondition = excluded.precondition, required_scopes = excluded.required_scopes,
             revision = excluded.revision, updated_ms = excluded.updated_ms,
             tool_count = excluded.tool_count, pending = excluded.pending"
    );
    let values = values![
        tenant,
        server.name.as_str(),
        &server.description,
        server.transport_hint.number(),
        server.trust_tier.number(),
        server.precondition.as_ref().map(to_json).transpose()?,
        to_json(&server.required_scopes)?,
        integer(committed.revision)?,
        committed.updated_ms,
        integer(tool_count)?,
        server.pending,
    ];
    transaction.run(put, &values).await.map(drop)
}

/// Drops the data that only the replaced rows had: their model-facing names and the embeddings of their summaries.
async fn forget(
    transaction: &mut impl Transaction,
    tenant: &str,
    revision: Revision,
    lines: &HashMap<String, StoredLine>,
    change: &ServerChange,
    hides: bool,
) -> Result<(), StoreError> {
    let known: HashSet<_> = shown_after(change).map(|tool| tool.model_name.as_str()).collect();
    let shown = lines.values().filter(|line| line.is_shown);
    let before = shown.map(|line| line.model_name.as_str());
    let gone: Vec<_> = before.filter(|name| !known.contains(name)).collect();
    // A new line that not every caller sees does not tell all callers that the old one is gone.
    let is_open = |tool: &&ToolRecord| {
        !hides && change.server.required_scopes.is_empty() && tool.required_scopes.is_empty()
    };
    let open = shown_after(change).filter(is_open);
    let taken: Vec<_> = open.map(|tool| tool.model_name.as_str()).collect();
    removed::update(transaction, tenant, revision, &gone, &taken).await?;
    let summaries: HashSet<_> = change.upserts.iter().map(|tool| tool.summary.as_str()).collect();
    let unsaid = lines.values().filter(|line| !summaries.contains(line.summary.as_str()));
    embeddings::drop_unused(transaction, tenant, unsaid.map(|line| &line.summary_hash)).await
}
