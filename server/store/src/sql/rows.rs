//! Conversion between rows and records. A value that no commit could have written gives [`StoreError::Damaged`].

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Row;
use crate::{ServerRecord, StoreError, StoredServer, StoredTool, ToolRecord, ToolStatus};
use toolgate_core::error::Error;
use toolgate_core::identity::{ServerName, ToolName};

pub(super) fn server(row: &impl Row) -> Result<StoredServer, StoreError> {
    let record = ServerRecord {
        name: name(row, "name", ServerName::parse)?,
        description: text(row, "description")?,
        transport_hint: number::<i32>(row, "transport_hint")?.into(),
        trust_tier: number::<i32>(row, "trust_tier")?.into(),
        precondition: optional_json(row, "precondition")?,
        required_scopes: json(row, "required_scopes")?,
        pending: row.flag("pending")?,
    };
    Ok(StoredServer {
        record,
        revision: number(row, "revision")?,
        updated_ms: row.integer("updated_ms")?,
        tool_count: number(row, "tool_count")?,
    })
}

pub(super) fn tool(row: &impl Row) -> Result<StoredTool, StoreError> {
    let record = ToolRecord {
        server: name(row, "server", ServerName::parse)?,
        name: name(row, "name", ToolName::parse)?,
        model_name: text(row, "model_name")?,
        summary: text(row, "summary")?,
        search_hint: text(row, "search_hint")?,
        definition: text(row, "definition")?,
        hash: hash(row, "hash")?,
        precondition: optional_json(row, "precondition")?,
        required_scopes: json(row, "required_scopes")?,
        always_load: row.flag("always_load")?,
        critical: row.flag("critical")?,
        schema_tokens: number(row, "schema_tokens")?,
        summary_tokens: number(row, "summary_tokens")?,
        status: status(row)?,
    };
    Ok(StoredTool { record, summary_revision: number(row, "summary_revision")? })
}

/// Reads a tool's status.
pub(super) fn status(row: &impl Row) -> Result<ToolStatus, StoreError> {
    let text = row.text("status")?;
    ToolStatus::parse(&text).ok_or_else(|| damaged("status", &format!("{text:?} is none")))
}

/// Reads a text column into an owned string.
pub(super) fn text(row: &impl Row, column: &str) -> Result<String, StoreError> {
    Ok(row.text(column)?.into_owned())
}

/// Reads an integer that databases store as `i64`.
pub(super) fn number<T: TryFrom<i64>>(row: &impl Row, column: &str) -> Result<T, StoreError> {
    let stored = row.integer(column)?;
    T::try_from(stored).map_err(|_| damaged(column, &format!("{stored} is out of range")))
}

/// Reads a SHA-256 hash.
pub(super) fn hash(row: &impl Row, column: &str) -> Result<[u8; 32], StoreError> {
    bytes(row, column)
}

/// Reads a column of exactly `N` bytes.
pub(super) fn bytes<const N: usize>(row: &impl Row, column: &str) -> Result<[u8; N], StoreError> {
    let bytes = row.bytes(column)?;
    bytes.try_into().map_err(|_| damaged(column, &format!("{} bytes, not {N}", bytes.len())))
}

/// Converts an integer to the form that databases store.
///
/// # Errors
/// [`StoreError::Damaged`] from 2^63 on, which no counter reaches by counting.
pub(super) fn integer(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Damaged(format!("{value} is no revision")))
}

/// Serializes a value as JSON text.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|cause| StoreError::Unavailable(cause.into()))
}

pub(super) fn name<T>(
    row: &impl Row,
    column: &str,
    parse: impl Fn(&str) -> Result<T, Error>,
) -> Result<T, StoreError> {
    parse(&row.text(column)?).map_err(|error| damaged(column, &error.to_string()))
}

pub(super) fn damaged(column: &str, problem: &str) -> StoreError {
    StoreError::Damaged(format!("column {column}: {problem}"))
}

pub(super) fn json<T: DeserializeOwned>(row: &impl Row, column: &str) -> Result<T, StoreError> {
    parse(&row.text(column)?, column)
}

fn optional_json<T: DeserializeOwned>(
    row: &impl Row,
    column: &str,
) -> Result<Option<T>, StoreError> {
    row.optional_text(column)?.map(|text| parse(&text, column)).transpose()
}

fn parse<T: DeserializeOwned>(text: &str, column: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(column, &error.to_string()))
}

/// Implements `Row` for a row type of sqlx. `$text` decodes texts.
macro_rules! sqlx_row {
    ($row:ty, failed: $failed:path, text: $text:path) => {
        impl $crate::sql::Row for $row {
            fn text(&self, column: &str) -> Result<std::borrow::Cow<'_, str>, $crate::StoreError> {
                sqlx::Row::try_get(self, column).map($text).map_err($failed)
            }

            fn optional_text(
                &self,
                column: &str,
            ) -> Result<Option<std::borrow::Cow<'_, str>>, $crate::StoreError> {
                let found: Option<&str> = sqlx::Row::try_get(self, column).map_err($failed)?;
                Ok(found.map($text))
            }

            fn integer(&self, column: &str) -> Result<i64, $crate::StoreError> {
                sqlx::Row::try_get(self, column).map_err($failed)
            }

            fn flag(&self, column: &str) -> Result<bool, $crate::StoreError> {
                sqlx::Row::try_get(self, column).map_err($failed)
            }

            fn real(&self, column: &str) -> Result<f32, $crate::StoreError> {
                sqlx::Row::try_get(self, column).map_err($failed)
            }

            fn bytes(&self, column: &str) -> Result<&[u8], $crate::StoreError> {
                sqlx::Row::try_get(self, column).map_err($failed)
            }
        }
    };
}
pub(crate) use sqlx_row;
