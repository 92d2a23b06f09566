//! Statements within a transaction on SQLite. Lists are JSON parameters.

use sqlx::AssertSqlSafe;
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection, SqliteRow};

use super::failure::failed;
use crate::StoreError;
use crate::sql::rows::sqlx_row;
use crate::sql::transaction::sqlx_transaction;
use crate::sql::{Insert, Value};

/// Maximum number of rows in one INSERT statement.
const ROWS_A_STATEMENT: usize = 64;

sqlx_transaction! {
    /// Transaction on an SQLite database.
    SqliteTransaction over Sqlite, SqliteRow;
    text: sqlite, persistent: true, bind: bind, insert: insert, failed: failed
}

sqlx_row!(SqliteRow, failed: failed, text: std::borrow::Cow::Borrowed);

fn bind<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    value: &Value<'_>,
) -> Query<'q, Sqlite, SqliteArguments> {
    match value {
        Value::Text(text) => query.bind(text.as_deref().map(str::to_owned)),
        Value::Integer(integer) => query.bind(*integer),
        Value::Flag(flag) => query.bind(*flag),
        Value::Real(real) => query.bind(*real),
        Value::Bytes(bytes) => query.bind(bytes.to_vec()),
        Value::Texts(texts) => query.bind(json_list(texts.iter().copied())),
        Value::Hashes(hashes) => query.bind(hex_list(hashes)),
        Value::Integers(integers) => {
            query.bind(serde_json::Value::from(integers.as_slice()).to_string())
        }
    }
}

async fn insert(
    connection: &mut SqliteConnection,
    insert: &Insert,
    rows: &[Vec<Value<'_>>],
) -> Result<(), StoreError> {
    let row = format!("({})", vec!["?"; insert.columns.len()].join(", "));
    for chunk in rows.chunks(ROWS_A_STATEMENT) {
        let places = vec![row.as_str(); chunk.len()].join(", ");
        let sql = format!("INSERT INTO {} VALUES {places} {}", insert.into, insert.then);
        let query = sqlx::query(AssertSqlSafe(sql)).persistent(chunk.len() == ROWS_A_STATEMENT);
        let query = chunk.iter().flatten().fold(query, bind);
        query.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

/// Returns a JSON array of texts, for `value` over `json_each`.
fn json_list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    serde_json::Value::from_iter(texts).to_string()
}

/// Returns the hashes as a JSON array of hexadecimal text, for `unhex(value)` over `json_each`.
fn hex_list(hashes: &[&[u8; 32]]) -> String {
    let hex: Vec<_> = hashes.iter().map(|hash| hex::encode(hash.as_slice())).collect();
    json_list(hex.iter().map(String::as_str))
}
