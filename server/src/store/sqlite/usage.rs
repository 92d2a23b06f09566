//! Counters of what tenants used.

use std::collections::BTreeMap;
use std::ops::Range;

use sqlx::sqlite::{SqliteConnection, SqlitePool};
use tokio_stream::StreamExt;

use super::failure::failed;
use super::rows;
use crate::store::{AMOUNT_MAX, Hour, StoreError, UsageAddition, UsageCount};

/// Rows that one transaction forgets: others wait to write meanwhile.
const FORGOTTEN_AT_ONCE: u32 = 10_000;

pub(super) async fn add(
    connection: &mut SqliteConnection,
    additions: &[UsageAddition],
) -> Result<(), StoreError> {
    // The condition keeps SQLite from taking ON CONFLICT for the condition of a join.
    let sql = "INSERT INTO usage (tenant, hour, item, amount)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?1) WHERE TRUE
         ON CONFLICT (tenant, hour, item) DO UPDATE
         SET amount = amount + min(excluded.amount, ?2 - amount)";
    let rows: Vec<_> = additions
        .iter()
        .map(|UsageAddition { tenant, count }| {
            (tenant.as_str(), count.hour, &count.item, count.amount.min(AMOUNT_MAX))
        })
        .collect();
    let insert = sqlx::query(sql).bind(rows::to_json(&rows)?).bind(rows::integer(AMOUNT_MAX)?);
    insert.execute(connection).await.map(drop).map_err(failed)
}

/// The counters within `hours`, those of each `width` hours added up: rows are many, sums are few.
pub(super) async fn read(
    readers: &SqlitePool,
    tenant: &str,
    hours: Range<Hour>,
    width: Hour,
) -> Result<Vec<UsageCount>, StoreError> {
    let sql = "SELECT hour, item, amount FROM usage
         WHERE tenant = ?1 AND hour >= ?2 AND hour < ?3 ORDER BY hour";
    let mut found = sqlx::query(sql).bind(tenant).bind(hours.start).bind(hours.end).fetch(readers);
    let mut sums: BTreeMap<(Hour, String), u64> = BTreeMap::new();
    while let Some(row) = found.next().await {
        let row = row.map_err(failed)?;
        let hour: Hour = rows::number(&row, "hour")?;
        let amount: u64 = rows::number(&row, "amount")?;
        let sum = sums.entry((hour - hour % width.max(1), rows::get(&row, "item")?)).or_default();
        *sum = sum.saturating_add(amount).min(AMOUNT_MAX);
    }
    Ok(sums.into_iter().map(|((hour, item), amount)| UsageCount { hour, item, amount }).collect())
}

/// Forgets counters of hours before `hour`, some at a time; whether there may be more.
pub(super) async fn forget(
    connection: &mut SqliteConnection,
    hour: Hour,
) -> Result<bool, StoreError> {
    // Goes from tenant to tenant by the primary key: most of what is there is younger.
    let sql = "WITH RECURSIVE known (name) AS (
             SELECT min(tenant) FROM usage
             UNION ALL
             SELECT (SELECT min(tenant) FROM usage WHERE tenant > name) FROM known
             WHERE name IS NOT NULL
         )
         DELETE FROM usage WHERE (tenant, hour, item) IN (
             SELECT tenant, hour, item FROM known JOIN usage ON tenant = name AND hour < ?1
             LIMIT ?2
         )";
    let forget = sqlx::query(sql).bind(hour).bind(FORGOTTEN_AT_ONCE);
    let forgotten = forget.execute(connection).await.map_err(failed)?;
    Ok(forgotten.rows_affected() >= u64::from(FORGOTTEN_AT_ONCE))
}
