//! Tests of the shared store on a real PostgreSQL that the tests start, and the whole conformance suite on it, once
//! directly and once through a real pooler.

use std::time::Duration;

use super::{PostgresConfig, PostgresStore};
use cluster::{Cluster, Database};

mod cluster;
mod faults;
mod moves;
mod pooled;
mod rows;
mod schemas;
mod sequence;

pub(super) struct Fixture {
    pub(super) store: PostgresStore,
    pub(super) database: Database,
}

/// Opens a store in a database of its own.
pub(super) async fn open() -> Fixture {
    let database = Cluster::get().database().await;
    let store = PostgresStore::open(&config(&database.url)).await.expect("a store");
    Fixture { store, database }
}

pub(super) fn config(url: &str) -> PostgresConfig {
    PostgresConfig {
        url: url.to_owned(),
        max_connections: 8,
        statement_timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        listen: false,
    }
}

mod direct {
    use crate::conformance::conformance_tests;

    conformance_tests!(super::open);
}
