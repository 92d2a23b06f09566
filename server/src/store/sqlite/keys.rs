//! API keys.

use sqlx::sqlite::{SqliteConnection, SqlitePool, SqliteRow};

use super::failure::{failed, limited};
use super::{READ_LIMIT, SqliteStore, WRITE_LIMIT, rows};
use crate::identity::TenantId;
use crate::store::{KeyStore, StoreError, StoreFuture, StoredKey};

impl KeyStore for SqliteStore {
    fn create_key<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, ()> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            create(&mut transaction, key).await?;
            self.end_write(transaction).await
        }))
    }

    fn find_key<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<StoredKey>> {
        Box::pin(limited(READ_LIMIT, find(&self.readers, id)))
    }

    fn list_keys<'a>(&'a self, after: &'a str, page_size: u32) -> StoreFuture<'a, Vec<StoredKey>> {
        Box::pin(limited(READ_LIMIT, page(&self.readers, after, page_size)))
    }

    fn revoke_key<'a>(&'a self, id: &'a str, at_ms: i64) -> StoreFuture<'a, bool> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            let is_there = revoke(&mut transaction, id, at_ms).await?;
            self.end_write(transaction).await?;
            Ok(is_there)
        }))
    }

    fn mark_keys_used<'a>(&'a self, ids: &'a [String], at_ms: i64) -> StoreFuture<'a, ()> {
        Box::pin(limited(WRITE_LIMIT, async move {
            let mut transaction = self.begin_write().await?;
            mark_used(&mut transaction, ids, at_ms).await?;
            self.end_write(transaction).await
        }))
    }
}

async fn create(connection: &mut SqliteConnection, key: &StoredKey) -> Result<(), StoreError> {
    let sql = "INSERT INTO api_keys (id, secret_hash, tenant, principal, roles, label, created_ms,
             expires_ms, revoked_ms, used_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING";
    let insert = sqlx::query(sql)
        .bind(&key.id)
        .bind(key.secret_hash.as_slice())
        .bind(key.tenant.as_ref().map(TenantId::as_str))
        .bind(&key.principal)
        .bind(rows::to_json(&key.roles)?)
        .bind(&key.label)
        .bind(key.created_ms)
        .bind(key.expires_ms)
        .bind(key.revoked_ms)
        .bind(key.used_ms);
    let inserted = insert.execute(connection).await.map_err(failed)?;
    if inserted.rows_affected() == 0 { Err(StoreError::Conflict) } else { Ok(()) }
}

async fn find(readers: &SqlitePool, id: &str) -> Result<Option<StoredKey>, StoreError> {
    let sql = "SELECT * FROM api_keys WHERE id = ?1";
    let found = sqlx::query(sql).bind(id).fetch_optional(readers).await.map_err(failed)?;
    found.as_ref().map(key).transpose()
}

async fn page(
    readers: &SqlitePool,
    after: &str,
    page_size: u32,
) -> Result<Vec<StoredKey>, StoreError> {
    let sql = "SELECT * FROM api_keys WHERE id > ?1 ORDER BY id LIMIT ?2";
    let page = sqlx::query(sql).bind(after).bind(page_size);
    page.fetch_all(readers).await.map_err(failed)?.iter().map(key).collect()
}

async fn revoke(
    connection: &mut SqliteConnection,
    id: &str,
    at_ms: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE api_keys SET revoked_ms = min(coalesce(revoked_ms, ?2), ?2) WHERE id = ?1";
    let revoked = sqlx::query(sql).bind(id).bind(at_ms).execute(connection).await;
    Ok(revoked.map_err(failed)?.rows_affected() > 0)
}

async fn mark_used(
    connection: &mut SqliteConnection,
    ids: &[String],
    at_ms: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE api_keys SET used_ms = max(coalesce(used_ms, ?2), ?2)
         WHERE id IN (SELECT value FROM json_each(?1))";
    let mark = sqlx::query(sql).bind(rows::to_json(ids)?).bind(at_ms);
    mark.execute(connection).await.map(drop).map_err(failed)
}

fn key(row: &SqliteRow) -> Result<StoredKey, StoreError> {
    let tenant: Option<String> = rows::get(row, "tenant")?;
    let parse = |text: String| {
        TenantId::parse(&text)
            .map_err(|error| StoreError::Damaged(format!("column tenant: {error}")))
    };
    Ok(StoredKey {
        id: rows::get(row, "id")?,
        secret_hash: rows::hash(row, "secret_hash")?,
        tenant: tenant.map(parse).transpose()?,
        principal: rows::get(row, "principal")?,
        roles: rows::json(row, "roles")?,
        label: rows::get(row, "label")?,
        created_ms: rows::get(row, "created_ms")?,
        expires_ms: rows::get(row, "expires_ms")?,
        revoked_ms: rows::get(row, "revoked_ms")?,
        used_ms: rows::get(row, "used_ms")?,
    })
}
