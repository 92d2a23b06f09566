//! Sessions that were ended. Each note deletes those that are out of date.

use std::time::Duration;

use super::access::{ATTEMPTS, READ_LIMIT, WRITE_LIMIT, limited, reading, withdrawing, writing};
use super::{Backend, Scope, Transaction, sql, values};
use crate::{SessionStore, StoreError, StoreFuture};

impl<B: Backend> SessionStore for B {
    fn end_session<'a>(&'a self, id: &'a str, kept: Duration) -> StoreFuture<'a, ()> {
        Box::pin(withdrawing!(self, WRITE_LIMIT, Scope::Sessions, |tx| end(tx, id, kept)))
    }

    fn is_session_ended<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        reading!(self, READ_LIMIT, Scope::Sessions, |tx| is_ended(tx, id))
    }
}

async fn end(
    transaction: &mut impl Transaction,
    id: &str,
    kept: Duration,
) -> Result<(), StoreError> {
    let now_ms = transaction.now_ms();
    let forget = sql!("DELETE FROM ended_sessions WHERE until_ms <= $1");
    transaction.run(forget, &values![now_ms]).await?;
    let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    let note = sql!(
        "INSERT INTO ended_sessions (id, until_ms) VALUES ($1, $2)
         ON CONFLICT (id) DO UPDATE SET until_ms = "
        [either "max(ended_sessions.until_ms, excluded.until_ms)",
            "greatest(ended_sessions.until_ms, excluded.until_ms)"]
    );
    transaction.run(note, &values![id, now_ms.saturating_add(kept_ms)]).await.map(drop)
}

async fn is_ended(transaction: &mut impl Transaction, id: &str) -> Result<bool, StoreError> {
    let find = sql!("SELECT until_ms FROM ended_sessions WHERE id = $1 AND until_ms > $2");
    let now_ms = transaction.now_ms();
    Ok(transaction.optional(find, &values![id, now_ms]).await?.is_some())
}
