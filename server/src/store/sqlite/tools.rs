//! Tools in batches: many rows a statement, since a registration may bring thousands.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite, SqliteConnection};

use super::failure::failed;
use super::rows;
use crate::store::{ContentHash, Revision, StoreError, ToolRecord};

const ROWS_A_STATEMENT: usize = 64;

/// One tool's line of the summary pool as stored.
pub(super) struct StoredLine {
    pub(super) model_name: String,
    pub(super) summary: String,
    pub(super) summary_hash: ContentHash,
    pub(super) revision: Revision,
    /// The scopes that the tool itself requires, as stored: a JSON list.
    pub(super) scopes: String,
}

/// SHA-256 of a summary: the key of its embeddings.
pub(super) fn summary_hash(summary: &str) -> ContentHash {
    Sha256::digest(summary.as_bytes()).into()
}

/// The stored lines of the tools of these names, or of all tools of the server, by name.
pub(super) async fn lines(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: &str,
    names: Option<&[&str]>,
) -> Result<HashMap<String, StoredLine>, StoreError> {
    let of_all = "SELECT name, model_name, summary, summary_hash, summary_revision, required_scopes
         FROM tools
         WHERE tenant = ?1 AND server = ?2";
    let of_some =
        "SELECT name, model_name, summary, summary_hash, summary_revision, required_scopes
         FROM tools
         WHERE tenant = ?1 AND server = ?2 AND name IN (SELECT value FROM json_each(?3))";
    let query = match names {
        None => sqlx::query(of_all).bind(tenant).bind(server),
        Some(names) => sqlx::query(of_some).bind(tenant).bind(server).bind(rows::to_json(names)?),
    };
    let found = query.fetch_all(connection).await.map_err(failed)?;
    let line = |row| {
        let stored = StoredLine {
            model_name: rows::get(row, "model_name")?,
            summary: rows::get(row, "summary")?,
            summary_hash: rows::hash(row, "summary_hash")?,
            revision: rows::number(row, "summary_revision")?,
            scopes: rows::get(row, "required_scopes")?,
        };
        Ok((rows::get(row, "name")?, stored))
    };
    found.iter().map(line).collect()
}

/// Deletes the tools of these names; others are left alone.
pub(super) async fn delete<T: Serialize>(
    connection: &mut SqliteConnection,
    tenant: &str,
    server: &str,
    names: &[T],
) -> Result<(), StoreError> {
    let sql = "DELETE FROM tools
         WHERE tenant = ?1 AND server = ?2 AND name IN (SELECT value FROM json_each(?3))";
    let delete = sqlx::query(sql).bind(tenant).bind(server).bind(rows::to_json(names)?);
    delete.execute(connection).await.map(drop).map_err(failed)
}

/// Refuses model-facing names that repeat among `tools` or that a stored tool has.
pub(super) async fn refuse_taken_names(
    connection: &mut SqliteConnection,
    tenant: &str,
    tools: &[ToolRecord],
) -> Result<(), StoreError> {
    let (mut names, mut model_names) = (HashSet::new(), HashSet::new());
    for tool in tools {
        if !names.insert(tool.name.as_str()) || !model_names.insert(tool.model_name.as_str()) {
            return Err(StoreError::NameTaken(tool.model_name.clone()));
        }
    }
    let sql = "SELECT min(model_name) AS taken FROM tools
         WHERE tenant = ?1 AND model_name IN (SELECT value FROM json_each(?2))";
    let model_names: Vec<_> = tools.iter().map(|tool| tool.model_name.as_str()).collect();
    let taken = sqlx::query(sql).bind(tenant).bind(rows::to_json(&model_names)?);
    let row = taken.fetch_one(connection).await.map_err(failed)?;
    match rows::get(&row, "taken")? {
        Some(taken) => Err(StoreError::NameTaken(taken)),
        None => Ok(()),
    }
}

/// Inserts tools; each keeps its line's revision from `lines` unless its line changed.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    (tenant, server): (&str, &str),
    tools: &[ToolRecord],
    lines: &HashMap<String, StoredLine>,
    revision: Revision,
) -> Result<(), StoreError> {
    for chunk in tools.chunks(ROWS_A_STATEMENT) {
        let rows = chunk.iter().map(|tool| ToolRow::new(tool, lines, revision));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let head = "INSERT INTO tools (tenant, server, name, model_name, summary, summary_hash,
             summary_revision, search_hint, definition, hash, precondition, required_scopes,
             always_load, critical, schema_tokens, summary_tokens) ";
        let mut insert = QueryBuilder::<Sqlite>::new(head);
        insert.push_values(rows, |mut row, ToolRow { tool, line, precondition, scopes }| {
            row.push_bind(tenant).push_bind(server).push_bind(tool.name.as_str());
            row.push_bind(&tool.model_name).push_bind(&tool.summary);
            row.push_bind(summary_hash(&tool.summary).to_vec()).push_bind(line);
            row.push_bind(&tool.search_hint).push_bind(&tool.definition);
            row.push_bind(tool.hash.to_vec()).push_bind(precondition).push_bind(scopes);
            row.push_bind(tool.always_load).push_bind(tool.critical);
            row.push_bind(tool.schema_tokens).push_bind(tool.summary_tokens);
        });
        let insert = insert.build().persistent(chunk.len() == ROWS_A_STATEMENT);
        insert.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

struct ToolRow<'a> {
    tool: &'a ToolRecord,
    line: i64,
    precondition: Option<String>,
    scopes: String,
}

impl<'a> ToolRow<'a> {
    fn new(
        tool: &'a ToolRecord,
        lines: &HashMap<String, StoredLine>,
        revision: Revision,
    ) -> Result<Self, StoreError> {
        let same =
            |line: &&StoredLine| line.model_name == tool.model_name && line.summary == tool.summary;
        let kept = lines.get(tool.name.as_str()).filter(same);
        Ok(Self {
            tool,
            line: rows::integer(kept.map_or(revision, |line| line.revision))?,
            precondition: tool.precondition.as_ref().map(rows::to_json).transpose()?,
            scopes: rows::to_json(&tool.required_scopes)?,
        })
    }
}
