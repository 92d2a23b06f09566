//! Conformance suite through a pooler that gives each transaction another connection.

use super::{Cluster, Fixture, PostgresStore, config};
use crate::conformance::conformance_tests;

async fn open() -> Fixture {
    let database = Cluster::get().database().await;
    let store = PostgresStore::open(&config(&database.pooled_url)).await.expect("a store");
    Fixture { store, database }
}

conformance_tests!(open);
