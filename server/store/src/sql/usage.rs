//! Usage counters of tenants.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Column::{Integer, Text};
use super::rows::{self, integer, number};
use super::{Insert, Transaction, sql, values};
use crate::{AMOUNT_MAX, Hour, StoreError, UsageAddition, UsageCount};

/// Maximum number of rows that one transaction deletes, because other writers wait meanwhile.
const FORGOTTEN_AT_ONCE: u32 = 10_000;

/// Statement that adds amounts. A sum stays at [`AMOUNT_MAX`].
const INSERT: Insert = Insert {
    into: "usage (tenant, hour, item, amount)",
    columns: &[Text, Integer, Text, Integer],
    then: "ON CONFLICT (tenant, hour, item) DO UPDATE SET amount = CASE
               WHEN usage.amount > 9223372036854775807 - excluded.amount THEN 9223372036854775807
               ELSE usage.amount + excluded.amount END",
};

pub(super) async fn add(
    transaction: &mut impl Transaction,
    additions: &[UsageAddition],
) -> Result<(), StoreError> {
    // One statement can't change a row twice. The fixed order keeps concurrent writers of the same rows from a
    // deadlock.
    let mut sums: BTreeMap<(&str, Hour, &str), u64> = BTreeMap::new();
    for UsageAddition { tenant, count } in additions {
        let sum = sums.entry((tenant.as_str(), count.hour, &count.item)).or_default();
        *sum = sum.saturating_add(count.amount).min(AMOUNT_MAX);
    }
    let row = |((tenant, hour, item), amount): ((&'_ str, Hour, &'_ str), u64)| {
        Ok(values![tenant.to_owned(), hour, item.to_owned(), integer(amount)?].to_vec())
    };
    let rows: Vec<_> = sums.into_iter().map(row).collect::<Result<_, StoreError>>()?;
    transaction.insert(&INSERT, &rows).await
}

/// Returns the counters within `hours`, summed over windows of `width` hours while reading: rows are many, sums are
/// few.
pub(super) async fn read(
    snapshot: &mut impl Transaction,
    tenant: &str,
    hours: Range<Hour>,
    width: Hour,
) -> Result<Vec<UsageCount>, StoreError> {
    let counters = sql!(
        "SELECT hour, item, amount FROM usage
         WHERE tenant = $1 AND hour >= $2 AND hour < $3 ORDER BY hour"
    );
    let mut sums: BTreeMap<(Hour, String), u64> = BTreeMap::new();
    let values = values![tenant, hours.start, hours.end];
    let found = snapshot.each(counters, &values, |row| {
        let hour: Hour = number(row, "hour")?;
        let amount: u64 = number(row, "amount")?;
        let sum = sums.entry((hour - hour % width.max(1), rows::text(row, "item")?)).or_default();
        *sum = sum.saturating_add(amount).min(AMOUNT_MAX);
        Ok(())
    });
    found.await?;
    Ok(sums.into_iter().map(|((hour, item), amount)| UsageCount { hour, item, amount }).collect())
}

/// Deletes some counters of hours before `hour`. Returns true if there may be more.
pub(super) async fn forget(
    transaction: &mut impl Transaction,
    hour: Hour,
) -> Result<bool, StoreError> {
    // SQLite goes from tenant to tenant by the primary key, because most of the stored rows are younger.
    let forget = sql!([either
        "WITH RECURSIVE known (name) AS (
             SELECT min(tenant) FROM usage
             UNION ALL
             SELECT (SELECT min(tenant) FROM usage WHERE tenant > name) FROM known
             WHERE name IS NOT NULL
         )
         DELETE FROM usage WHERE (tenant, hour, item) IN (
             SELECT tenant, hour, item FROM known JOIN usage ON tenant = name AND hour < $1
             LIMIT $2
         )",
        "DELETE FROM usage WHERE ctid = ANY (ARRAY(
             SELECT ctid FROM usage WHERE hour < $1 ORDER BY hour LIMIT $2
         ))"
    ]);
    let forgotten = transaction.run(forget, &values![hour, FORGOTTEN_AT_ONCE]).await?;
    Ok(forgotten >= u64::from(FORGOTTEN_AT_ONCE))
}
