//! Tests of requests that must not be executed twice.

use super::*;

pub(crate) async fn a_request_is_remembered_with_its_change(store: &dyn Store) {
    let t = tenant("acme");
    let mut wanted = change("s", None, vec![tool("s", "a", "A")]);
    wanted.request = Some(request("r1", "body"));
    let committed = store.commit(&t, wanted.clone()).await.expect("a commit");
    let recorded = store.find_request(&t, "r1").await.expect("a read").expect("the request");
    assert_eq!((recorded.id.as_str(), recorded.body_hash), ("r1", hash_of("body")));
    assert_eq!(
        (recorded.answer.as_slice(), &recorded.committed),
        (&b"answer to body"[..], &committed)
    );
    assert_eq!(store.find_request(&t, "R1").await.expect("a read"), None);
    // The same request again, prepared from the present state: it was executed already.
    wanted.base = Some(1);
    let again = refusal(store, &t, wanted).await;
    assert!(matches!(again, StoreError::Conflict), "{again:?}");
    assert_eq!(store.revision(&t).await.expect("a read"), Some(1));
}

pub(crate) async fn a_request_id_stands_for_one_request(store: &dyn Store) {
    let t = tenant("acme");
    let with = |base, body: &str| {
        let request = Some(request("r1", body));
        ServerChange { request, ..change("s", base, Vec::new()) }
    };
    commit(store, &t, with(None, "one")).await;
    // The reused id is reported even if the base is stale, because it is the caller's mistake.
    for base in [Some(1), None] {
        let reused = refusal(store, &t, with(base, "two")).await;
        assert!(matches!(reused, StoreError::RequestIdReused), "{reused:?}");
    }
    let reused = store.record_request(&t, request("r1", "two")).await;
    assert!(matches!(reused, Err(StoreError::RequestIdReused)), "{reused:?}");
    assert_eq!(store.revision(&t).await.expect("a read"), Some(1));
    store.record_request(&tenant("other"), request("r1", "two")).await.expect("another tenant's");
}

pub(crate) async fn an_unchanged_request_is_recorded_once(store: &dyn Store) {
    let t = tenant("acme");
    let early = store.record_request(&t, request("r0", "body")).await.expect("a record");
    assert_eq!((early.revision, store.revision(&t).await.expect("a read")), (0, None));
    commit(store, &t, change("s", None, Vec::new())).await;
    let first = store.record_request(&t, request("r1", "body")).await.expect("a record");
    assert_eq!(first.revision, 1);
    commit(store, &t, change("s", Some(1), Vec::new())).await;
    let mut again = request("r1", "body");
    again.answer = b"another answer".to_vec();
    assert_eq!(store.record_request(&t, again).await.expect("a record"), first);
    let recorded = store.find_request(&t, "r1").await.expect("a read").expect("the request");
    assert_eq!((recorded.answer, recorded.committed), (b"answer to body".to_vec(), first));
}
