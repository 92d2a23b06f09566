//! Tools in batches: many rows per statement, because a registration may contain thousands.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::Column::{Bytes, Flag, Integer, Text};
use super::rows::{self, integer, number, to_json};
use super::{Insert, Row, Transaction, Value, marks, sql, values};
use crate::{ContentHash, Revision, StoreError, StoredTool, ToolRecord};

const INSERT: Insert = Insert {
    into: "tools (tenant, server, name, model_name, summary, summary_hash, summary_revision,
             search_hint, definition, hash, precondition, required_scopes, always_load, critical,
             schema_tokens, summary_tokens, status)",
    columns: &[
        Text, Text, Text, Text, Text, Bytes, Integer, Text, Text, Bytes, Text, Text, Flag, Flag,
        Integer, Integer, Text,
    ],
    then: "",
};

/// Summary-pool line of one tool as stored.
pub(super) struct StoredLine {
    pub(super) model_name: String,
    pub(super) summary: String,
    pub(super) summary_hash: ContentHash,
    pub(super) revision: Revision,
    /// Scopes that the tool itself requires, as stored: a JSON list.
    pub(super) scopes: String,
    /// True if the summary pool contains the line.
    pub(super) is_shown: bool,
}

/// Returns the SHA-256 of a summary, the key of its embeddings.
pub(super) fn summary_hash(summary: &str) -> ContentHash {
    Sha256::digest(summary.as_bytes()).into()
}

/// Returns the stored lines of the tools with these names, or of all tools of the server, by name.
pub(super) async fn lines(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: Option<&[&str]>,
) -> Result<HashMap<String, StoredLine>, StoreError> {
    let of_all = sql!(
        "SELECT name, model_name, summary, summary_hash, summary_revision, required_scopes, status
         FROM tools WHERE tenant = $1 AND server = $2"
    );
    let of_some = sql!("SELECT name, model_name, summary, summary_hash, summary_revision, required_scopes, status
         FROM tools WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]);
    let found = match names {
        None => transaction.all(of_all, &values![tenant, server]).await?,
        Some(names) => {
            let names = Value::Texts(names.to_vec());
            transaction.all(of_some, &[tenant.into(), server.into(), names]).await?
        }
    };
    let line = |row| {
        let stored = StoredLine {
            model_name: rows::text(row, "model_name")?,
            summary: rows::text(row, "summary")?,
            summary_hash: rows::hash(row, "summary_hash")?,
            revision: number(row, "summary_revision")?,
            scopes: rows::text(row, "required_scopes")?,
            is_shown: rows::status(row)?.is_shown(),
        };
        Ok((rows::text(row, "name")?, stored))
    };
    found.iter().map(line).collect()
}

/// Deletes the tools with these names, and their marks, and no others.
pub(super) async fn delete(
    transaction: &mut impl Transaction,
    tenant: &str,
    server: &str,
    names: &[&str],
) -> Result<(), StoreError> {
    let delete = sql!("DELETE FROM tools WHERE tenant = $1 AND server = $2 AND name IN " [texts 3]);
    let listed = Value::Texts(names.to_vec());
    transaction.run(delete, &[tenant.into(), server.into(), listed]).await?;
    marks::delete(transaction, tenant, server, Some(names)).await
}

/// Refuses model-facing names that repeat among `tools` or that a stored tool has.
pub(super) async fn refuse_taken_names(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: &[ToolRecord],
) -> Result<(), StoreError> {
    let mut names = HashSet::new();
    let mut model_names = HashSet::new();
    for tool in tools {
        if !names.insert(tool.name.as_str()) || !model_names.insert(tool.model_name.as_str()) {
            return Err(StoreError::NameTaken(tool.model_name.clone()));
        }
    }
    let taken = sql!(
        "SELECT min(model_name) AS taken FROM tools WHERE tenant = $1 AND model_name IN " [texts 2]
    );
    let model_names = Value::Texts(tools.iter().map(|tool| tool.model_name.as_str()).collect());
    let row = transaction.optional(taken, &[tenant.into(), model_names]).await?;
    match row.as_ref().map(|row| row.optional_text("taken")).transpose()?.flatten() {
        Some(taken) => Err(StoreError::NameTaken(taken.into_owned())),
        None => Ok(()),
    }
}

/// Inserts tools. Each keeps the revision of its line in `lines`, unless the line changed or came back.
pub(super) async fn insert(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: &[ToolRecord],
    lines: &HashMap<String, StoredLine>,
    revision: Revision,
) -> Result<(), StoreError> {
    let line = |tool: &ToolRecord| {
        let same = |line: &&StoredLine| {
            line.model_name == tool.model_name
                && line.summary == tool.summary
                && line.is_shown == tool.status.is_shown()
        };
        let kept = lines.get(tool.name.as_str()).filter(same);
        kept.map_or(revision, |line| line.revision)
    };
    insert_lines(transaction, tenant, tools.iter().map(|tool| (tool, line(tool)))).await
}

/// Inserts tools with their marks, each with the revision of its line.
pub(super) async fn insert_lines<'a>(
    transaction: &mut impl Transaction,
    tenant: &str,
    tools: impl Iterator<Item = (&'a ToolRecord, Revision)>,
) -> Result<(), StoreError> {
    let tools: Vec<_> = tools.collect();
    let rows = tools.iter().map(|(tool, line)| row(tenant, tool, *line));
    transaction.insert(&INSERT, &rows.collect::<Result<Vec<_>, _>>()?).await?;
    marks::insert(transaction, tenant, &tools).await
}

/// Reads a tool and checks that the stored hash, the key of its embeddings, matches its summary.
pub(super) fn checked(row: &impl Row) -> Result<StoredTool, StoreError> {
    let tool = rows::tool(row)?;
    if rows::hash(row, "summary_hash")? != summary_hash(&tool.record.summary) {
        return Err(rows::damaged("summary_hash", "not the hash of the summary"));
    }
    Ok(tool)
}

fn row<'a>(
    tenant: &'a str,
    tool: &'a ToolRecord,
    line: Revision,
) -> Result<Vec<Value<'a>>, StoreError> {
    let precondition = tool.precondition.as_ref().map(to_json).transpose()?;
    Ok(vec![
        tenant.into(),
        tool.server.as_str().into(),
        tool.name.as_str().into(),
        Value::from(&tool.model_name),
        Value::from(&tool.summary),
        summary_hash(&tool.summary).to_vec().into(),
        integer(line)?.into(),
        Value::from(&tool.search_hint),
        Value::from(&tool.definition),
        Value::from(&tool.hash),
        precondition.into(),
        to_json(&tool.required_scopes)?.into(),
        tool.always_load.into(),
        tool.critical.into(),
        tool.schema_tokens.into(),
        tool.summary_tokens.into(),
        tool.status.as_str().into(),
    ])
}
