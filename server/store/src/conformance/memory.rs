//! Tests of exemplars: by tool, separate for each tenant, within bounds, deleted with their tool.

use std::slice;

use super::*;
use crate::{Exemplar, MemoryBounds, MemoryChanges};
use toolgate_core::identity::ToolId;
use toolgate_core::quantized_embedding::QuantizedEmbedding;

const BOUNDS: MemoryBounds = MemoryBounds { now_ms: 0, most: 100 };

fn id(server: &str, name: &str) -> ToolId {
    ToolId { server: server_name(server), name: tool_name(name) }
}

fn exemplar(place: u8, fades_ms: i64) -> Exemplar {
    let values: Vec<f32> = (0..384_u16).map(|i| f32::from(i) - f32::from(place)).collect();
    Exemplar {
        place,
        intent_embedding: QuantizedEmbedding::of([7; 8], &values).expect("a direction"),
        strength: 1.5,
        seen_ms: fades_ms - 10,
        fades_ms,
        owner: [place; 8],
        made: 20_000,
        voters: vec![[place; 8], [255; 8]],
    }
}

/// Registers the tools `a` and `b` of the server `s`.
async fn register(store: &dyn CatalogStore, t: &TenantId) {
    commit(store, t, change("s", None, vec![tool("s", "a", "A"), tool("s", "b", "B")])).await;
}

/// Stores these exemplars for the tools, in place of exemplars with the same place.
async fn put(
    store: &dyn MemoryStore,
    t: &TenantId,
    tools: &[ToolId],
    exemplars: &[Exemplar],
    bounds: MemoryBounds,
) {
    let revise = |_: &ToolId, known: &mut Vec<Exemplar>| {
        known.retain(|one| exemplars.iter().all(|new| new.place != one.place));
        known.extend(exemplars.iter().cloned());
    };
    store.revise_memory(t, tools, &revise, bounds).await.expect("a revision");
}

/// Stores an exemplar of one call of a tool.
pub(crate) async fn remember(store: &dyn MemoryStore, t: &TenantId, server: &str, name: &str) {
    put(store, t, &[id(server, name)], &[exemplar(1, 100)], BOUNDS).await;
}

async fn read(store: &dyn MemoryStore, t: &TenantId, since: u64) -> MemoryChanges {
    store.read_memory(t, since).await.expect("a read")
}

/// Returns the stored exemplars as `tool place`.
async fn places(store: &dyn MemoryStore, t: &TenantId) -> Vec<String> {
    let changes = read(store, t, 0).await;
    changes.exemplars.iter().map(|(tool, one)| format!("{tool} {}", one.place)).collect()
}

pub(crate) async fn exemplars_are_read_back_whole(store: &dyn Store) {
    let t = tenant("acme");
    assert_eq!(read(store, &t, 0).await, MemoryChanges::default());
    register(store, &t).await;
    let a = id("s", "a");
    let made = [exemplar(0, 10), exemplar(31, 20)];
    put(store, &t, &[a.clone(), id("s", "unknown")], &made, BOUNDS).await;
    let all = read(store, &t, 0).await;
    let wanted: Vec<_> = made.iter().map(|one| (a.clone(), one.clone())).collect();
    assert_eq!(all.exemplars, wanted, "an unregistered tool is passed over");
    assert_eq!(store.revision(&t).await.expect("a read"), Some(1), "the catalog stays as it was");
}

pub(crate) async fn memory_tells_what_changed(store: &dyn Store) {
    let t = tenant("acme");
    register(store, &t).await;
    let a = id("s", "a");
    let b = id("s", "b");
    put(store, &t, slice::from_ref(&a), &[exemplar(0, 10), exemplar(1, 10)], BOUNDS).await;
    let first = read(store, &t, 0).await;
    let later = Exemplar { strength: 2.5, ..exemplar(1, 30) };
    put(store, &t, &[a.clone(), b.clone()], slice::from_ref(&later), BOUNDS).await;
    let changes = read(store, &t, first.version).await;
    assert!(!changes.whole && changes.version > first.version);
    assert_eq!(changes.exemplars, [(a, later.clone()), (b, later)]);
    let none = read(store, &t, changes.version).await;
    assert!(none.exemplars.is_empty() && !none.whole);
    assert_eq!(none.version, changes.version);
    // Removed exemplars show only by a full list of those that are left.
    store.clear_memory(&t, None, Some(&tool_name("b"))).await.expect("a clearance");
    let rest = read(store, &t, changes.version).await;
    assert!(rest.whole && rest.exemplars.len() == 2, "{rest:?}");
    assert!(!read(store, &t, rest.version).await.whole);
}

pub(crate) async fn memory_is_cleared_by_tool_server_and_tenant(store: &dyn Store) {
    let t = tenant("acme");
    let other = tenant("acme-2");
    for t in [&t, &other] {
        register(store, t).await;
        commit(store, t, change("o", None, vec![tool("o", "a", "A")])).await;
        let tools = [id("s", "a"), id("s", "b"), id("o", "a")];
        put(store, t, &tools, &[exemplar(0, 10)], BOUNDS).await;
    }
    let clear = async |server: Option<&str>, name: Option<&str>| {
        let server = server.map(server_name);
        let name = name.map(tool_name);
        store.clear_memory(&t, server.as_ref(), name.as_ref()).await.expect("a clearance")
    };
    assert_eq!(clear(Some("s"), Some("a")).await, 1);
    assert_eq!(places(store, &t).await, ["o/a 0", "s/b 0"]);
    assert_eq!((clear(Some("o"), None).await, clear(Some("o"), None).await), (1, 0));
    assert_eq!(clear(None, None).await, 1);
    assert!(places(store, &t).await.is_empty());
    assert_eq!(places(store, &other).await.len(), 3, "another tenant's");
}

pub(crate) async fn memory_goes_with_its_tool(store: &dyn Store) {
    let t = tenant("acme");
    register(store, &t).await;
    put(store, &t, &[id("s", "a"), id("s", "b")], &[exemplar(0, 10)], BOUNDS).await;
    let mut changed = removal("s", 1, &["a"]);
    changed.upserts = vec![tool("s", "b", "another summary")];
    commit(store, &t, changed).await;
    assert_eq!(places(store, &t).await, ["s/b 0"], "what changed is still called for the same");
    let before = read(store, &t, 0).await.version;
    store.remove_server(&t, &server_name("s"), 2).await.expect("a removal");
    assert!(places(store, &t).await.is_empty());
    assert!(read(store, &t, before).await.whole, "readers are told");
    register(store, &t).await;
    assert!(places(store, &t).await.is_empty(), "and nothing comes back");
}

pub(crate) async fn memory_is_bounded_and_fades(store: &dyn Store) {
    let t = tenant("acme");
    register(store, &t).await;
    let many: Vec<_> = (0..10).map(|place| exemplar(place, 100 + i64::from(place))).collect();
    let bounds = MemoryBounds { now_ms: 0, most: 4 };
    put(store, &t, &[id("s", "a")], &many, bounds).await;
    assert_eq!(places(store, &t).await, ["s/a 6", "s/a 7", "s/a 8", "s/a 9"]);
    let bounds = MemoryBounds { now_ms: 107, ..bounds };
    store.revise_memory(&t, &[], &|_, _| {}, bounds).await.expect("a revision");
    assert_eq!(places(store, &t).await, ["s/a 8", "s/a 9"]);
}
