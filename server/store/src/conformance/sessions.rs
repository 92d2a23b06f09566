//! Tests of sessions that were ended: refused until their time is over.

use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(600);

pub(crate) async fn an_ended_session_stays_so_for_its_time(store: &dyn Store) {
    assert!(!store.is_session_ended("a").await.expect("a read"));
    store.end_session("a", LONG).await.expect("a write");
    store.end_session("a", Duration::ZERO).await.expect("a shorter time");
    assert!(store.is_session_ended("a").await.expect("a read"));
    store.end_session("b", Duration::ZERO).await.expect("a write");
    for other in ["A", "b", ""] {
        assert!(!store.is_session_ended(other).await.expect("a read"), "{other}");
    }
}
