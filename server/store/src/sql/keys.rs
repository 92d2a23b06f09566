//! API keys. Times that never come are stored as the largest integer, and a use that never happened as the smallest.

use super::access::{ATTEMPTS, READ_LIMIT, WRITE_LIMIT, limited, reading, withdrawing, writing};
use super::{Backend, Row, Scope, Transaction, Value, rows, sql, values};
use crate::{KeyReading, KeyStore, StoreError, StoreFuture, StoredKey};
use toolgate_core::identity::TenantId;

/// Stored time of an event that never happens.
const NEVER: i64 = i64::MAX;
const NOT_YET: i64 = i64::MIN;

impl<B: Backend> KeyStore for B {
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()> {
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Keys, |tx| create(tx, key)))
    }

    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<KeyReading>> {
        reading!(self, READ_LIMIT, Scope::Keys, |tx| find(tx, id))
    }

    fn read_clock_ms(&self) -> StoreFuture<'_, i64> {
        reading!(self, READ_LIMIT, Scope::Keys, |tx| std::future::ready(Ok(tx.now_ms())))
    }

    fn list_keys<'a>(&'a self, after: &'a str, page_size: u32) -> StoreFuture<'a, Vec<StoredKey>> {
        reading!(self, READ_LIMIT, Scope::Keys, |tx| page(tx, after, page_size))
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool> {
        Box::pin(withdrawing!(self, WRITE_LIMIT, Scope::Keys, |tx| revoke(tx, id, at_ms)))
    }

    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()> {
        Box::pin(writing!(self, WRITE_LIMIT, Scope::Keys, |tx| mark_used(tx, ids, at_ms)))
    }
}

async fn create(transaction: &mut impl Transaction, key: &StoredKey) -> Result<(), StoreError> {
    let create = sql!(
        "INSERT INTO api_keys (id, secret_hash, tenant, principal, roles, label, created_ms,
             expires_ms, revoked_ms, used_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
    );
    let values = values![
        &key.id,
        &key.secret_hash,
        key.tenant.as_ref().map(TenantId::as_str),
        &key.principal,
        rows::to_json(&key.roles)?,
        &key.label,
        key.created_ms,
        key.expires_ms.unwrap_or(NEVER),
        key.revoked_ms.unwrap_or(NEVER),
        key.used_ms.unwrap_or(NOT_YET),
    ];
    match transaction.run(create, &values).await? {
        0 => Err(StoreError::Conflict),
        _ => Ok(()),
    }
}

async fn find(
    transaction: &mut impl Transaction,
    id: &str,
) -> Result<Option<KeyReading>, StoreError> {
    let find = sql!("SELECT * FROM api_keys WHERE id = $1");
    let Some(row) = transaction.optional(find, &values![id]).await? else { return Ok(None) };
    Ok(Some(KeyReading { key: key(&row)?, now_ms: transaction.now_ms() }))
}

async fn page(
    transaction: &mut impl Transaction,
    after: &str,
    page_size: u32,
) -> Result<Vec<StoredKey>, StoreError> {
    let page = sql!("SELECT * FROM api_keys WHERE id > $1 ORDER BY id LIMIT $2");
    transaction.all(page, &values![after, page_size]).await?.iter().map(key).collect()
}

async fn revoke(
    transaction: &mut impl Transaction,
    id: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let revoke = sql!(
        "UPDATE api_keys SET revoked_ms = "
        [either "min(revoked_ms, $2)", "least(revoked_ms, $2)"]
        " WHERE id = $1"
    );
    Ok(transaction.run(revoke, &values![id, at_ms]).await? > 0)
}

async fn mark_used(
    transaction: &mut impl Transaction,
    ids: &[String],
    at_ms: i64,
) -> Result<(), StoreError> {
    let mark = sql!(
        "UPDATE api_keys SET used_ms = "
        [either "max(used_ms, $2)", "greatest(used_ms, $2)"]
        " WHERE id IN " [texts 1]
    );
    let ids = Value::Texts(ids.iter().map(String::as_str).collect());
    transaction.run(mark, &[ids, Value::from(at_ms)]).await.map(drop)
}

fn key<R: Row>(row: &R) -> Result<StoredKey, StoreError> {
    let tenant = row.optional_text("tenant")?;
    let parse = |text: &str| {
        TenantId::parse(text)
            .map_err(|error| StoreError::Damaged(format!("column tenant: {error}")))
    };
    let moment = |column, never| Ok(Some(row.integer(column)?).filter(|at| *at != never));
    Ok(StoredKey {
        id: rows::text(row, "id")?,
        secret_hash: rows::hash(row, "secret_hash")?,
        tenant: tenant.as_deref().map(parse).transpose()?,
        principal: rows::text(row, "principal")?,
        roles: rows::json(row, "roles")?,
        label: rows::text(row, "label")?,
        created_ms: row.integer("created_ms")?,
        expires_ms: moment("expires_ms", NEVER)?,
        revoked_ms: moment("revoked_ms", NEVER)?,
        used_ms: moment("used_ms", NOT_YET)?,
    })
}
