//! Embeddings as rows of little-endian `f32`.

use std::collections::HashMap;

use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite, SqliteConnection, SqlitePool};
use tokio_stream::StreamExt;

use super::failure::failed;
use super::rows;
use crate::store::{ContentHash, StoreError, StoredEmbedding};

const ROWS_A_STATEMENT: usize = 64;

pub(super) async fn load(
    readers: &SqlitePool,
    tenant: &str,
    fingerprint: &str,
) -> Result<HashMap<ContentHash, Vec<f32>>, StoreError> {
    let sql = "SELECT text_hash, vector FROM embeddings WHERE tenant = ?1 AND fingerprint = ?2";
    let mut stream = sqlx::query(sql).bind(tenant).bind(fingerprint).fetch(readers);
    let mut embeddings = HashMap::new();
    let mut length = None;
    while let Some(row) = stream.next().await {
        let row = row.map_err(failed)?;
        let vector = from_bytes(rows::get(&row, "vector")?)?;
        if *length.get_or_insert(vector.len()) != vector.len() {
            return Err(StoreError::Damaged("embeddings of one encoder differ in length".into()));
        }
        embeddings.insert(rows::hash(&row, "text_hash")?, vector);
    }
    Ok(embeddings)
}

pub(super) async fn save(
    connection: &mut SqliteConnection,
    tenant: &str,
    fingerprint: &str,
    embeddings: &[StoredEmbedding],
) -> Result<(), StoreError> {
    for chunk in embeddings.chunks(ROWS_A_STATEMENT) {
        let head = "INSERT INTO embeddings (tenant, text_hash, fingerprint, vector) ";
        let mut insert = QueryBuilder::<Sqlite>::new(head);
        insert.push_values(chunk, |mut row, embedding| {
            row.push_bind(tenant);
            row.push_bind(embedding.text_hash.to_vec());
            row.push_bind(fingerprint);
            row.push_bind(to_bytes(&embedding.vector));
        });
        // An embedding that was cut short is mended, any other is kept.
        insert.push(" ON CONFLICT DO UPDATE SET vector = excluded.vector");
        insert.push(" WHERE length(vector) <> length(excluded.vector)");
        let insert = insert.build().persistent(chunk.len() == ROWS_A_STATEMENT);
        insert.execute(&mut *connection).await.map_err(failed)?;
    }
    Ok(())
}

/// Drops the embeddings of `texts` that no tool of the tenant has as its summary any longer.
pub(super) async fn drop_unused(
    connection: &mut SqliteConnection,
    tenant: &str,
    texts: impl Iterator<Item = &ContentHash>,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM embeddings
         WHERE tenant = ?1 AND text_hash IN (SELECT unhex(value) FROM json_each(?2))
           AND NOT EXISTS (SELECT 1 FROM tools
                           WHERE tools.tenant = ?1 AND summary_hash = embeddings.text_hash)";
    let unused = sqlx::query(sql).bind(tenant).bind(rows::hex_list(texts));
    unused.execute(connection).await.map(drop).map_err(failed)
}

fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Result<Vec<f32>, StoreError> {
    let (values, rest) = bytes.as_chunks::<4>();
    if values.is_empty() || !rest.is_empty() {
        return Err(StoreError::Damaged(format!("an embedding of {} bytes", bytes.len())));
    }
    Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}
