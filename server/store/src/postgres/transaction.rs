//! Statements within a transaction on PostgreSQL. Lists are array parameters, and statements are unnamed, so that
//! poolers may give each transaction another connection.

use std::borrow::Cow;

use sqlx::AssertSqlSafe;
use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::query::Query;

use super::failure::failed;
use crate::StoreError;
use crate::sql::rows::sqlx_row;
use crate::sql::transaction::sqlx_transaction;
use crate::sql::{Column, Insert, Transaction as _, Value, sql, values};

/// Maximum number of rows in one INSERT statement.
const ROWS_A_STATEMENT: usize = 5_000;

/// First of the two characters that encode NUL, which PostgreSQL can't store, or this character itself. It is a
/// noncharacter, which texts should not contain.
const ESCAPE: char = '\u{10ffff}';

sqlx_transaction! {
    /// Transaction on a PostgreSQL database.
    PgTransaction over Postgres, PgRow;
    text: postgres, persistent: false, bind: bind, insert: insert, failed: failed
}

sqlx_row!(PgRow, failed: failed, text: unescaped);

impl PgTransaction {
    /// Makes other writers of the tenant wait. Inserts a row to lock for a tenant that is not known yet.
    pub(super) async fn lock(&mut self, tenant: &str) -> Result<(), StoreError> {
        let lock = sql!("SELECT revision FROM tenants WHERE tenant = $1 FOR UPDATE");
        if self.optional(lock, &values![tenant]).await?.is_none() {
            let make = sql!("INSERT INTO tenants (tenant) VALUES ($1) ON CONFLICT DO NOTHING");
            self.run(make, &values![tenant]).await?;
            self.optional(lock, &values![tenant]).await?;
        }
        Ok(())
    }
}

fn bind<'q>(
    query: Query<'q, Postgres, PgArguments>,
    value: &Value<'_>,
) -> Query<'q, Postgres, PgArguments> {
    match value {
        Value::Text(text) => query.bind(text.as_deref().map(escaped)),
        Value::Integer(integer) => query.bind(*integer),
        Value::Flag(flag) => query.bind(*flag),
        Value::Real(real) => query.bind(*real),
        Value::Bytes(bytes) => query.bind(bytes.to_vec()),
        Value::Texts(texts) => {
            query.bind(texts.iter().map(|text| escaped(text)).collect::<Vec<_>>())
        }
        Value::Hashes(hashes) => {
            query.bind(hashes.iter().map(|hash| hash.to_vec()).collect::<Vec<_>>())
        }
        Value::Integers(integers) => query.bind(integers.clone()),
    }
}

async fn insert(
    connection: &mut PgConnection,
    insert: &Insert,
    rows: &[Vec<Value<'_>>],
) -> Result<(), StoreError> {
    let array = |(n, column): (usize, &Column)| format!("${}::{}[]", n + 1, type_of(*column));
    let arrays: Vec<_> = insert.columns.iter().enumerate().map(array).collect();
    let into = insert.into;
    let arrays = arrays.join(", ");
    let then = insert.then;
    let sql = format!("INSERT INTO {into} SELECT * FROM unnest({arrays}) {then}");
    for chunk in rows.chunks(ROWS_A_STATEMENT) {
        let mut query = sqlx::query(AssertSqlSafe(sql.as_str())).persistent(false);
        for (n, column) in insert.columns.iter().enumerate() {
            query = bind_column(query, *column, chunk.iter().filter_map(|row| row.get(n)));
        }
        query.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

/// Binds a column as an array. If a value did not match the column's type, the array would be shorter than the
/// others. The missing values would then be NULL, which only text columns accept.
fn bind_column<'q, 'v>(
    query: Query<'q, Postgres, PgArguments>,
    column: Column,
    values: impl Iterator<Item = &'v Value<'v>>,
) -> Query<'q, Postgres, PgArguments> {
    macro_rules! array {
        ($kind:ident, $value:ident => $bound:expr) => {
            query.bind(
                values
                    .filter_map(|value| match value {
                        Value::$kind($value) => Some($bound),
                        _ => None,
                    })
                    .collect::<Vec<_>>(),
            )
        };
    }
    match column {
        Column::Text => array!(Text, text => text.as_deref().map(escaped)),
        Column::Integer => array!(Integer, integer => *integer),
        Column::Flag => array!(Flag, flag => *flag),
        Column::Real => array!(Real, real => *real),
        Column::Bytes => array!(Bytes, bytes => bytes.to_vec()),
    }
}

fn type_of(column: Column) -> &'static str {
    match column {
        Column::Text => "text",
        Column::Integer => "bigint",
        Column::Flag => "boolean",
        Column::Real => "real",
        Column::Bytes => "bytea",
    }
}

/// Encodes a text for PostgreSQL, which stores any text without NUL. The sort order of names is unchanged, because
/// they contain no NUL.
fn escaped(text: &str) -> String {
    if !text.contains(['\0', ESCAPE]) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len() + 8), |mut escaped, character| {
        match character {
            '\0' => escaped.extend([ESCAPE, '0']),
            ESCAPE => escaped.extend([ESCAPE, '1']),
            other => escaped.push(other),
        }
        escaped
    })
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains(ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => plain.push(if characters.next() == Some('0') { '\0' } else { ESCAPE }),
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_kept() {
        for text in ["", "plain", "\0", "a\0b\0", "\u{10ffff}", "\u{10ffff}0\0\u{10ffff}1"] {
            let kept = escaped(text);
            assert!(!kept.contains('\0'));
            assert_eq!(unescaped(&kept), text);
        }
    }
}
