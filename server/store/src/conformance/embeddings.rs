//! Tests that embeddings are kept as long as a tool of the tenant has their text.

use super::*;

async fn texts(
    store: &dyn EmbeddingStore,
    t: &TenantId,
    among: &[&'static str],
) -> Vec<&'static str> {
    let kept = store.load_embeddings(t, ENCODER).await.expect("a read");
    let found: Vec<_> =
        among.iter().copied().filter(|text| kept.contains_key(&hash_of(text))).collect();
    assert_eq!(found.len(), kept.len());
    found
}

pub(crate) async fn embeddings_go_with_their_last_tool(store: &dyn Store) {
    let t = tenant("acme");
    let all = ["A", "B", "C", "D"];
    let mut first = change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")]);
    first.embeddings = vec![embedding("A", &[0.5, -0.5]), embedding("B", &[f32::MIN, f32::MAX])];
    commit(store, &t, first).await;
    let mut second = change("o", None, vec![tool("o", "a", "A"), tool("o", "c", "C")]);
    second.embeddings = vec![embedding("C", &[0.0, -0.0])];
    commit(store, &t, second).await;
    let other = [embedding("B", &[1.0, 2.0, 3.0])];
    store.save_embeddings(&t, "encoder-2", &other).await.expect("a save");

    let mut changed = removal("s", 1, &["a"]);
    changed.upserts = vec![tool("s", "b", "D")];
    changed.embeddings = vec![embedding("D", &[4.0, 4.0])];
    commit(store, &t, changed).await;
    assert_eq!(texts(store, &t, &all).await, ["A", "C", "D"], "o/a still has A");
    assert!(store.load_embeddings(&t, "encoder-2").await.expect("a read").is_empty());
    store.remove_server(&t, &server_name("o"), 2).await.expect("a removal");
    assert_eq!(texts(store, &t, &all).await, ["D"]);
    // A summary that moves to another tool in the same change keeps its embedding.
    let mut moved = removal("s", 3, &["b"]);
    moved.upserts = vec![tool("s", "d", "D")];
    commit(store, &t, moved).await;
    let kept = store.load_embeddings(&t, ENCODER).await.expect("a read");
    assert_eq!(kept, [(hash_of("D"), vec![4.0, 4.0])].into());
}

pub(crate) async fn saved_embeddings_are_kept(store: &dyn Store) {
    let t = tenant("acme");
    let vector = [1.0, -1.5, f32::MIN_POSITIVE, f32::EPSILON, 0.1];
    let summaries = (0..200).map(|i| i.to_string()).chain(["new".to_owned()]);
    let tools = summaries.map(|summary| tool("s", &format!("t{summary}"), &summary)).collect();
    commit(store, &t, change("s", None, tools)).await;
    let many: Vec<_> = (0..200).map(|i| embedding(&i.to_string(), &vector)).collect();
    store.save_embeddings(&t, "e", &many).await.expect("a save");
    store.save_embeddings(&t, "e", &[]).await.expect("a save");
    // An existing embedding is kept.
    store.save_embeddings(&t, "e", &[embedding("7", &[9.0; 5])]).await.expect("a save");
    let twice = [embedding("new", &vector), embedding("new", &vector)];
    store.save_embeddings(&t, "e", &twice).await.expect("a save");
    let kept = store.load_embeddings(&t, "e").await.expect("a read");
    assert_eq!(kept.len(), 201);
    assert!(kept.values().all(|stored| stored == &vector));
    assert!(store.load_embeddings(&t, "E").await.expect("a read").is_empty());
    assert_eq!(store.revision(&t).await.expect("a read"), Some(1), "no change comes of it");
    let one = [hash_of("7"), hash_of("never")];
    for (of, by) in [(&tenant("other"), "e"), (&t, "E")] {
        store.drop_embeddings(of, by, &one).await.expect("a change");
        assert_eq!(store.load_embeddings(&t, "e").await.expect("a read").len(), 201);
    }
    store.drop_embeddings(&t, "e", &one).await.expect("a change");
    let kept = store.load_embeddings(&t, "e").await.expect("a read");
    assert!(kept.len() == 200 && !kept.contains_key(&one[0]), "that one");
}

pub(crate) async fn embeddings_that_come_after_their_tool_went_are_not_kept(store: &dyn Store) {
    let t = tenant("acme");
    let other = tenant("other");
    for t in [&t, &other] {
        commit(store, t, change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")])).await;
    }
    store.save_embeddings(&other, ENCODER, &[embedding("A", &[1.0])]).await.expect("a save");
    // A process reads the catalog and embeds A and B; meanwhile b changes.
    let made = [embedding("A", &[1.0]), embedding("B", &[2.0])];
    commit(store, &t, change("s", Some(1), vec![tool("s", "b", "C")])).await;
    store.save_embeddings(&t, ENCODER, &made).await.expect("a save");
    assert_eq!(texts(store, &t, &["A", "B", "C"]).await, ["A"]);
    store.save_embeddings(&t, ENCODER, &[]).await.expect("a save");
    assert_eq!(texts(store, &t, &["A"]).await, ["A"]);
    assert_eq!(texts(store, &other, &["A"]).await, ["A"], "no other tenant's go");
}
