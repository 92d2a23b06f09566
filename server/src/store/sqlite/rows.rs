//! Rows to records and back. Whatever a row holds that no commit wrote is [`StoreError::Damaged`].

use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{Decode, Row, Type};

use super::failure::failed;
use crate::error::Error;
use crate::identity::{ServerName, ToolName};
use crate::store::{ServerRecord, StoreError, StoredServer, StoredTool, ToolRecord};

pub(super) fn server(row: &SqliteRow) -> Result<StoredServer, StoreError> {
    let record = ServerRecord {
        name: name(row, "name", ServerName::parse)?,
        description: get(row, "description")?,
        transport_hint: number(row, "transport_hint")?,
        trust_tier: number(row, "trust_tier")?,
        precondition: optional_json(row, "precondition")?,
        required_scopes: json(row, "required_scopes")?,
        pending: get(row, "pending")?,
    };
    Ok(StoredServer {
        record,
        revision: number(row, "revision")?,
        updated_ms: get(row, "updated_ms")?,
        tool_count: number(row, "tool_count")?,
    })
}

pub(super) fn tool(row: &SqliteRow) -> Result<StoredTool, StoreError> {
    let record = ToolRecord {
        server: name(row, "server", ServerName::parse)?,
        name: name(row, "name", ToolName::parse)?,
        model_name: get(row, "model_name")?,
        summary: get(row, "summary")?,
        search_hint: get(row, "search_hint")?,
        definition: get(row, "definition")?,
        hash: hash(row, "hash")?,
        precondition: optional_json(row, "precondition")?,
        required_scopes: json(row, "required_scopes")?,
        always_load: get(row, "always_load")?,
        critical: get(row, "critical")?,
        schema_tokens: number(row, "schema_tokens")?,
        summary_tokens: number(row, "summary_tokens")?,
    };
    Ok(StoredTool { record, summary_revision: number(row, "summary_revision")? })
}

/// The value of a column.
pub(super) fn get<'r, T>(row: &'r SqliteRow, column: &str) -> Result<T, StoreError>
where
    T: Decode<'r, Sqlite> + Type<Sqlite>,
{
    row.try_get(column).map_err(failed)
}

/// An integer that SQLite keeps as `i64`.
pub(super) fn number<T: TryFrom<i64>>(row: &SqliteRow, column: &str) -> Result<T, StoreError> {
    let stored: i64 = get(row, column)?;
    T::try_from(stored).map_err(|_| damaged(column, &format!("{stored} is out of range")))
}

/// A SHA-256.
pub(super) fn hash(row: &SqliteRow, column: &str) -> Result<[u8; 32], StoreError> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| damaged(column, &format!("{} bytes, not 32", bytes.len())))
}

/// An integer as SQLite keeps it.
///
/// # Errors
/// [`StoreError::Damaged`] beyond 2^63, which no counter gets to by counting.
pub(super) fn integer(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Damaged(format!("{value} is no revision")))
}

/// A value as JSON text.
pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Unavailable(cause.into()))
}

/// The hashes as a JSON array of hexadecimal text, for `unhex(value)` over `json_each`.
pub(super) fn hex_list<'a>(hashes: impl Iterator<Item = &'a [u8; 32]>) -> String {
    let hex = |hash: &[u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let quoted: Vec<_> = hashes.map(|hash| format!("\"{}\"", hex(hash))).collect();
    format!("[{}]", quoted.join(","))
}

/// A value from JSON text.
pub(super) fn json<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, StoreError> {
    parse(get(row, column)?, column)
}

fn optional_json<T: DeserializeOwned>(
    row: &SqliteRow,
    column: &str,
) -> Result<Option<T>, StoreError> {
    let text: Option<&str> = get(row, column)?;
    text.map(|text| parse(text, column)).transpose()
}

fn parse<T: DeserializeOwned>(text: &str, column: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(column, &error.to_string()))
}

fn name<T>(
    row: &SqliteRow,
    column: &str,
    parse: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, StoreError> {
    parse(get(row, column)?).map_err(|error| damaged(column, &error.to_string()))
}

fn damaged(column: &str, problem: &str) -> StoreError {
    StoreError::Damaged(format!("column {column}: {problem}"))
}
