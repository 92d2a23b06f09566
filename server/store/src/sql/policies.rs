//! Policies: one document for each tenant, changed under the catalog's revisions.

use super::rows::{self, integer, number};
use super::{Row as _, Transaction, changes, commit, removed, sql, values};
use crate::{Committed, PolicyChange, StoreError, StoredPolicy};

pub(super) async fn read<T: Transaction>(
    transaction: &mut T,
    tenant: &str,
) -> Result<Option<StoredPolicy>, StoreError> {
    let policy = sql!("SELECT document, revision, updated_ms FROM policies WHERE tenant = $1");
    let found = transaction.optional(policy, &values![tenant]).await?;
    let policy = |row: &T::Row| {
        Ok(StoredPolicy {
            document: rows::text(row, "document")?,
            revision: number(row, "revision")?,
            updated_ms: row.integer("updated_ms")?,
        })
    };
    found.as_ref().map(policy).transpose()
}

/// Returns true if the tenant's policy hides tools from some callers.
pub(super) async fn hides(
    transaction: &mut impl Transaction,
    tenant: &str,
) -> Result<bool, StoreError> {
    let hides = sql!("SELECT hides FROM policies WHERE tenant = $1");
    let found = transaction.optional(hides, &values![tenant]).await?;
    found.map_or(Ok(false), |row| row.flag("hides"))
}

pub(super) async fn set(
    transaction: &mut impl Transaction,
    tenant: &str,
    change: &PolicyChange,
) -> Result<Committed, StoreError> {
    let before = read(transaction, tenant).await?;
    if before.map(|stored| stored.revision) != change.base {
        return Err(StoreError::Conflict);
    }
    let committed = commit::next(transaction, tenant).await?;
    put(transaction, tenant, &change.document, change.hides, &committed).await?;
    // Callers may see different tools now, which no delta can express.
    removed::restart(transaction, tenant, committed.revision).await?;
    changes::enumerate(transaction, tenant).await?;
    Ok(committed)
}

pub(super) async fn put(
    transaction: &mut impl Transaction,
    tenant: &str,
    document: &str,
    hides: bool,
    committed: &Committed,
) -> Result<(), StoreError> {
    let put = sql!(
        "INSERT INTO policies (tenant, document, hides, revision, updated_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (tenant) DO UPDATE SET document = excluded.document, hides = excluded.hides,
             revision = excluded.revision, updated_ms = excluded.updated_ms"
    );
    let revision = integer(committed.revision)?;
    let updated_ms = committed.updated_ms;
    transaction.run(put, &values![tenant, document, hides, revision, updated_ms]).await.map(drop)
}
