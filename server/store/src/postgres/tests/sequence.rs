//! Tests of the number of changes: no gaps, in commit order, whichever process commits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{PostgresStore, config, open};
use crate::ChangeFeed as _;
use crate::conformance::{change, commit, tenant, tool};

const TENANTS: u64 = 6;
const COMMITS: u64 = 15;

#[tokio::test]
async fn whoever_follows_the_numbers_misses_nothing() {
    let fixture = open().await;
    let store = Arc::new(fixture.store);
    let writers: Vec<_> = (0..TENANTS)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let t = tenant(&format!("t{n}"));
                let mut base = None;
                for round in 0..COMMITS {
                    let tools = vec![tool("s", "a", &format!("round {round}"))];
                    base = Some(commit(&*store, &t, change("s", base, tools)).await);
                }
            })
        })
        .collect();
    // Read like a replica, which never looks again at a change that it has seen.
    let mut last = 0;
    let mut seen = HashMap::new();
    while last < TENANTS * COMMITS {
        for changed in store.changed_tenants(last, 4).await.expect("a read") {
            assert!(changed.sequence > last, "{changed:?} after {last}");
            last = changed.sequence;
            seen.insert(changed.tenant, changed.revision);
        }
    }
    for writer in writers {
        writer.await.expect("a writer");
    }
    assert_eq!(store.last_change().await.expect("a read"), TENANTS * COMMITS, "no gaps");
    assert_eq!(seen.len() as u64, TENANTS);
    assert!(seen.values().all(|revision| *revision == COMMITS), "{seen:?}");
}

#[tokio::test]
async fn a_commit_is_hinted_at() {
    let fixture = open().await;
    let mut listening = config(&fixture.database.url);
    listening.listen = true;
    let other = PostgresStore::open(&listening).await.expect("a store");
    // Commit until the listener is ready; it hears nothing before.
    let heard = async {
        for n in 0.. {
            let name = format!("s{n}");
            commit(&fixture.store, &tenant("acme"), change(&name, None, Vec::new())).await;
            let hint = tokio::time::timeout(Duration::from_millis(200), other.hint());
            if hint.await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), heard).await.expect("a hint");
    assert!(other.is_shared());
}
