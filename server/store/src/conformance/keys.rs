//! Tests of API keys: stored unchanged, found by id, revoked for good.

use super::*;
use crate::StoredKey;

fn key(id: &str, of: Option<&str>) -> StoredKey {
    StoredKey {
        id: id.to_owned(),
        secret_hash: hash_of(id),
        tenant: of.map(tenant),
        principal: format!("principal of {id}"),
        roles: vec!["agent".to_owned(), "catalog-writer".to_owned()],
        label: "it's a \"label\" \u{1f511}".to_owned(),
        created_ms: 1_000,
        expires_ms: None,
        revoked_ms: None,
        used_ms: None,
    }
}

async fn created(store: &dyn KeyStore, key: &StoredKey) {
    store.create_key(key).await.expect("a new key");
}

async fn found(store: &dyn KeyStore, id: &str) -> Option<StoredKey> {
    store.find_key(id).await.expect("a read").map(|read| read.key)
}

pub(crate) async fn a_key_is_read_back_whole(store: &dyn Store) {
    assert_eq!(found(store, "a").await, None);
    let plain = key("a", Some("acme"));
    let whole = StoredKey {
        expires_ms: Some(9_000),
        revoked_ms: Some(8_000),
        used_ms: Some(7_000),
        roles: Vec::new(),
        ..key("b", None)
    };
    for key in [&plain, &whole] {
        created(store, key).await;
        assert_eq!(found(store, &key.id).await.as_ref(), Some(key));
    }
    assert_eq!(found(store, "A").await, None, "ids are told apart by case");
    let of = tenant("acme");
    assert_eq!(store.revision(&of).await.expect("a read"), None, "no catalog comes of it");
}

pub(crate) async fn keys_are_read_with_the_store_s_time(store: &dyn Store) {
    created(store, &key("a", Some("acme"))).await;
    let before = store.read_clock_ms().await.expect("a clock");
    let read = store.find_key("a").await.expect("a read").expect("the key");
    let after = store.read_clock_ms().await.expect("a clock");
    assert!((before..=after).contains(&read.now_ms), "{before} {} {after}", read.now_ms);
    // Both clocks are on one host here. The process's estimate is wrong by at most a round trip to the store.
    assert!((store.clock_ms() - after).abs() < 60_000, "{} {after}", store.clock_ms());
}

pub(crate) async fn a_key_is_made_once(store: &dyn Store) {
    let first = key("a", Some("acme"));
    created(store, &first).await;
    let second = StoredKey { secret_hash: hash_of("other"), ..key("a", None) };
    let refused = store.create_key(&second).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    assert_eq!(found(store, "a").await, Some(first));
}

pub(crate) async fn keys_are_listed_by_id(store: &dyn Store) {
    for (id, of) in [("c", None), ("a", Some("x")), ("d", Some("y")), ("b", Some("x"))] {
        created(store, &key(id, of)).await;
    }
    let page = async |after: &str, size| {
        let page = store.list_keys(after, size).await.expect("a page");
        page.into_iter().map(|key| key.id).collect::<String>()
    };
    assert_eq!(page("", 10).await, "abcd");
    assert_eq!(page("", 3).await, "abc");
    assert_eq!(page("c", 3).await, "d");
    assert_eq!(page("d", 3).await, "");
}

pub(crate) async fn a_revoked_key_ends_no_later(store: &dyn Store) {
    created(store, &key("a", Some("acme"))).await;
    created(store, &key("b", Some("acme"))).await;
    let end = async |id: &str| found(store, id).await.expect("the key").revoked_ms;
    for (at, ends) in [(5_000, 5_000), (6_000, 5_000), (4_000, 4_000)] {
        assert!(store.revoke_key("a", at).await.expect("a change"));
        assert_eq!(end("a").await, Some(ends));
    }
    assert_eq!(end("b").await, None);
    assert!(!store.revoke_key("c", 1).await.expect("nothing to change"));
}

pub(crate) async fn use_of_keys_is_marked(store: &dyn Store) {
    for id in ["a", "b", "c"] {
        created(store, &key(id, None)).await;
    }
    let names = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
    for (ids, at) in [(&["a", "b", "gone"][..], 5), (&["b"], 9), (&["b"], 7), (&[], 99)] {
        store.mark_keys_used(&names(ids), at).await.expect("a change");
    }
    for (id, used) in [("a", Some(5)), ("b", Some(9)), ("c", None)] {
        assert_eq!(found(store, id).await.expect("the key").used_ms, used, "{id}");
    }
}
