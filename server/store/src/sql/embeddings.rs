//! Embeddings, stored as rows of little-endian `f32` values.

use std::collections::{HashMap, HashSet};

use tracing::warn;

use super::Column::{Bytes, Text};
use super::{Insert, Row, Transaction, Value, rows, sql, values};
use crate::content::{from_bytes, to_bytes};
use crate::{ContentHash, StoreError, StoredEmbedding};

const INSERT: Insert = Insert {
    into: "embeddings (tenant, text_hash, fingerprint, vector)",
    columns: &[Text, Bytes, Text, Bytes],
    // Repairs an embedding that was cut short, and keeps any other.
    then: "ON CONFLICT (tenant, text_hash, fingerprint) DO UPDATE SET vector = excluded.vector
           WHERE length(embeddings.vector) <> length(excluded.vector)",
};

/// Loads the embeddings of one encoder. Skips rows that can't be read; the caller makes those embeddings again.
pub(super) async fn load(
    snapshot: &mut impl Transaction,
    tenant: &str,
    fingerprint: &str,
) -> Result<HashMap<ContentHash, Vec<f32>>, StoreError> {
    let of_encoder =
        sql!("SELECT text_hash, vector FROM embeddings WHERE tenant = $1 AND fingerprint = $2");
    let mut embeddings = HashMap::new();
    let mut damaged = 0_u64;
    let values = values![tenant, fingerprint];
    let found = snapshot.each(of_encoder, &values, |row| {
        match embedding(row) {
            Ok((text_hash, vector)) => drop(embeddings.insert(text_hash, vector)),
            Err(StoreError::Damaged(_)) => damaged += 1,
            Err(other) => return Err(other),
        }
        Ok(())
    });
    found.await?;
    if damaged > 0 {
        warn!(tenant, damaged, "stored embeddings can't be read: they are made anew");
    }
    Ok(embeddings)
}

fn embedding(row: &impl Row) -> Result<(ContentHash, Vec<f32>), StoreError> {
    Ok((rows::hash(row, "text_hash")?, vector(row.bytes("vector")?)?))
}

pub(super) async fn save(
    transaction: &mut impl Transaction,
    tenant: &str,
    fingerprint: &str,
    embeddings: &[StoredEmbedding],
) -> Result<(), StoreError> {
    // One statement can't change a row twice.
    let mut seen = HashSet::new();
    let fresh = embeddings.iter().filter(|embedding| seen.insert(embedding.text_hash));
    let row = |StoredEmbedding { text_hash, vector }: &_| {
        vec![
            tenant.into(),
            Value::from(text_hash.to_vec()),
            fingerprint.into(),
            to_bytes(vector).into(),
        ]
    };
    let rows: Vec<_> = fresh.map(row).collect();
    transaction.insert(&INSERT, &rows).await
}

/// Saves embeddings, then deletes all embeddings of the tenant whose text is not the summary of any tool now. The new
/// ones may be among them, because the catalog may have changed since they were made.
pub(super) async fn save_used(
    transaction: &mut impl Transaction,
    tenant: &str,
    fingerprint: &str,
    embeddings: &[StoredEmbedding],
) -> Result<(), StoreError> {
    save(transaction, tenant, fingerprint, embeddings).await?;
    let unused = sql!(
        "DELETE FROM embeddings WHERE tenant = $1
         AND NOT EXISTS (SELECT 1 FROM tools
                         WHERE tools.tenant = $1 AND summary_hash = embeddings.text_hash)"
    );
    transaction.run(unused, &values![tenant]).await.map(drop)
}

/// Deletes the embeddings of `texts` by one encoder.
pub(super) async fn drop_some(
    transaction: &mut impl Transaction,
    tenant: &str,
    fingerprint: &str,
    texts: &[ContentHash],
) -> Result<(), StoreError> {
    let drop_some = sql!(
        "DELETE FROM embeddings WHERE tenant = $1 AND fingerprint = $2 AND text_hash IN " [hashes 3]
    );
    let texts = Value::Hashes(texts.iter().collect());
    transaction.run(drop_some, &[tenant.into(), fingerprint.into(), texts]).await.map(drop)
}

/// Deletes the embeddings of those `texts` that are no longer the summary of any tool of the tenant.
pub(super) async fn drop_unused<'a>(
    transaction: &mut impl Transaction,
    tenant: &str,
    texts: impl Iterator<Item = &'a ContentHash>,
) -> Result<(), StoreError> {
    let unused = sql!(
        "DELETE FROM embeddings WHERE tenant = $1 AND text_hash IN " [hashes 2]
        " AND NOT EXISTS (SELECT 1 FROM tools
                          WHERE tools.tenant = $1 AND summary_hash = embeddings.text_hash)"
    );
    let texts = Value::Hashes(texts.collect());
    transaction.run(unused, &[tenant.into(), texts]).await.map(drop)
}

pub(super) fn vector(bytes: &[u8]) -> Result<Vec<f32>, StoreError> {
    let cut = || StoreError::Damaged(format!("an embedding of {} bytes", bytes.len()));
    from_bytes(bytes).ok_or_else(cut)
}
