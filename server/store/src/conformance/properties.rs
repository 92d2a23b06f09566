//! Property test: random operations of two tenants that use the same names, compared with a plain model of each
//! tenant. One tenant's operations must never affect the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::model::Model;
use super::*;
use crate::{Changes, RecordedRequest, StoredServer, StoredTool, ToolCursor};

const SERVERS: [&str; 3] = ["a", "a-b", "B"];
const ENCODERS: [&str; 2] = [ENCODER, "encoder-2"];
const CASES: u32 = 60;

#[derive(Debug, Clone)]
enum Op {
    Commit(CommitOp),
    Remove { server: usize, stale: bool },
    Save { encoder: usize, texts: Vec<u8> },
    Record { id: u8, body: u8 },
}

#[derive(Debug, Clone)]
struct CommitOp {
    server: usize,
    stale: bool,
    /// Number of the tool, of its model-facing name, of its summary, of its definition and of its status.
    upserts: Vec<(u8, u8, u8, u8, usize)>,
    removals: Vec<u8>,
    texts: Vec<u8>,
    max_tools: u64,
    request: Option<(u8, u8)>,
}

fn op() -> impl Strategy<Value = Op> {
    let server = 0..SERVERS.len();
    let stale = || prop::bool::weighted(0.1);
    let upserts = vec((0..5u8, 0..12u8, 0..4u8, any::<u8>(), 0..3usize), 0..4);
    let details = (vec(0..5u8, 0..3), vec(0..4u8, 0..3), 4..12u64);
    let request = prop::option::weighted(0.3, (0..4u8, 0..2u8));
    let commit = (server.clone(), stale(), upserts, details, request).prop_map(
        |(server, stale, upserts, (removals, texts, max_tools), request)| {
            Op::Commit(CommitOp { server, stale, upserts, removals, texts, max_tools, request })
        },
    );
    prop_oneof![
        6 => commit,
        1 => (server, stale()).prop_map(|(server, stale)| Op::Remove { server, stale }),
        1 => (0..2usize, vec(0..4u8, 0..3)).prop_map(|(encoder, texts)| Op::Save { encoder, texts }),
        1 => (0..4u8, 0..2u8).prop_map(|(id, body)| Op::Record { id, body }),
    ]
}

pub(crate) fn random_operations(store: &dyn Store, runtime: &Runtime) {
    let case = AtomicU32::new(0);
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let operations = vec((0..2usize, op()), 1..40);
    let outcome = TestRunner::new(config).run(&operations, |operations| {
        // All cases share one store, so that content of earlier tenants must not show either.
        let n = case.fetch_add(1, Ordering::Relaxed);
        let tenants = [tenant(&format!("case-{n}")), tenant(&format!("case-{n}-"))];
        runtime.block_on(run(store, &tenants, operations));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

async fn run(store: &dyn Store, tenants: &[TenantId; 2], operations: Vec<(usize, Op)>) {
    let mut models = [Model::default(), Model::default()];
    for (who, op) in operations {
        apply(store, &tenants[who], &mut models[who], op).await;
    }
    for (t, model) in tenants.iter().zip(&models) {
        catalogs_agree(store, t, model).await;
        pages_agree(store, t, model).await;
        details_agree(store, t, model).await;
        changes_agree(store, t, model).await;
    }
}

async fn apply(store: &dyn Store, t: &TenantId, model: &mut Model, op: Op) {
    match op {
        Op::Commit(op) => {
            let change = op.change(t, model);
            let done = store.commit(t, change.clone()).await;
            let now = done.as_ref().map_or(0, |committed| committed.updated_ms);
            let revision = done.map(|committed| committed.revision);
            follow(model, revision, model.commit(&change, now));
        }
        Op::Remove { server, stale } => {
            let server = SERVERS[server];
            let base = base(model, server, stale).unwrap_or(1);
            let done = store.remove_server(t, &server_name(server), base).await;
            follow(model, done.map(|committed| committed.revision), model.remove(server, base));
        }
        Op::Save { encoder, texts } => {
            let embeddings = embeddings_of(t, &texts);
            store.save_embeddings(t, ENCODERS[encoder], &embeddings).await.expect("a save");
            model.save_used(ENCODERS[encoder], &embeddings);
        }
        Op::Record { id, body } => {
            let request = request(&format!("r{id}"), &format!("{} {body}", t.as_str()));
            let done = store.record_request(t, request.clone()).await;
            let checked = model.check_request(&request);
            assert_eq!(
                format!("{:?}", checked.as_ref().err()),
                format!("{:?}", done.as_ref().err())
            );
            if let Ok(committed) = done {
                model.record(&request, committed.updated_ms);
                assert_eq!(model.requests[&request.id].committed, committed);
            }
        }
    }
}

/// Advances the model if the store and the model both accept the change. Checks that they agree on the outcome and
/// the revision.
fn follow(
    model: &mut Model,
    done: Result<Revision, StoreError>,
    expected: Result<Model, StoreError>,
) {
    match (done, expected) {
        (Ok(revision), Ok(next)) => {
            assert_eq!(Some(revision), next.revision);
            *model = next;
        }
        (done, expected) => {
            let expected = expected.map(|next| next.revision);
            assert_eq!(format!("{:?}", done.err()), format!("{:?}", expected.err()));
        }
    }
}

fn base(model: &Model, server: &str, stale: bool) -> Option<Revision> {
    let stored = model.servers.get(server).map(|stored| stored.revision);
    if stale { stored.map_or(Some(1), |revision| revision.checked_sub(1)) } else { stored }
}

fn embeddings_of(t: &TenantId, texts: &[u8]) -> Vec<StoredEmbedding> {
    let mark = t.as_str().len() as f32;
    texts.iter().map(|n| embedding(&format!("S{n}"), &[mark, f32::from(*n)])).collect()
}

impl CommitOp {
    fn change(&self, t: &TenantId, model: &Model) -> ServerChange {
        let server = SERVERS[self.server];
        let tools = self.upserts.iter();
        let tools = tools.map(|(name, model_name, summary, definition, status)| ToolRecord {
            status: ToolStatus::ALL[*status],
            // Usually a name of the tool's own; sometimes one that other tools use too.
            model_name: match model_name {
                0..=3 => format!("M{model_name}"),
                _ => format!("M-{server}-{name}"),
            },
            definition: format!("{} {definition}", t.as_str()),
            ..tool(server, &format!("t{name}"), &format!("S{summary}"))
        });
        let mut change = change(server, base(model, server, self.stale), tools.collect());
        change.server.description = format!("{} of {}", server, t.as_str());
        change.removals = self.removals.iter().map(|n| tool_name(&format!("t{n}"))).collect();
        change.embeddings = embeddings_of(t, &self.texts);
        change.max_tools = self.max_tools;
        let body = |body: u8| format!("{} {body}", t.as_str());
        change.request = self.request.map(|(id, n)| request(&format!("r{id}"), &body(n)));
        change
    }
}

async fn catalogs_agree(store: &dyn Store, t: &TenantId, model: &Model) {
    assert_eq!(store.revision(t).await.expect("a read"), model.revision);
    let loaded = store.load_catalog(t).await.expect("a read");
    assert_eq!(loaded.as_ref().map(|catalog| catalog.revision), model.revision);
    let Some(loaded) = loaded else { return };
    assert_eq!(loaded.servers, model.servers.values().cloned().collect::<Vec<_>>());
    let all = model.tools.values().cloned();
    let (mut tools, quarantined): (Vec<_>, Vec<_>) =
        all.partition(|tool| tool.record.status.is_shown());
    tools.sort_by_key(|tool| tool.summary_revision);
    assert_eq!((&loaded.tools, &loaded.quarantined), (&tools, &quarantined));
    let removed = loaded.removed.iter().map(|r| (r.model_name.clone(), r.revision));
    assert_eq!(removed.collect::<BTreeMap<_, _>>(), model.removed);
    assert!(loaded.removed.is_sorted_by_key(|r| (r.revision, r.model_name.clone())));
    assert_eq!(loaded.pool_floor, 0);
    deltas_agree(&loaded, model);
}

/// Checks that the delta from every earlier revision leads to the current pool.
fn deltas_agree(loaded: &StoredCatalog, model: &Model) {
    let now = model.pools.last().map(|(_, pool)| pool.clone()).unwrap_or_default();
    for (since, pool) in [(0, BTreeMap::new())].iter().chain(&model.pools) {
        let mut pool = pool.clone();
        for gone in loaded.removed.iter().filter(|gone| gone.revision > *since) {
            pool.remove(&gone.model_name);
        }
        for tool in loaded.tools.iter().filter(|tool| tool.summary_revision > *since) {
            pool.insert(tool.record.model_name.clone(), tool.record.summary.clone());
        }
        assert_eq!(pool, now, "from revision {since}");
    }
}

async fn pages_agree(store: &dyn Store, t: &TenantId, model: &Model) {
    let mut servers: Vec<StoredServer> = Vec::new();
    loop {
        let after = servers.last().map(|server| server.record.name.as_str());
        let page = store.list_servers(t, after, 2).await.expect("a page");
        if page.is_empty() {
            break;
        }
        servers.extend(page);
    }
    assert_eq!(servers, model.servers.values().cloned().collect::<Vec<_>>());
    let mut tools: Vec<StoredTool> = Vec::new();
    loop {
        let cursor = tools.last().map(|last| ToolCursor {
            server: last.record.server.as_str().to_owned(),
            name: last.record.name.as_str().to_owned(),
        });
        let page = store.list_tools(t, None, cursor.as_ref(), 3).await.expect("a page");
        if page.is_empty() {
            break;
        }
        tools.extend(page);
    }
    assert_eq!(tools, model.tools.values().cloned().collect::<Vec<_>>());
}

async fn changes_agree(store: &dyn Store, t: &TenantId, model: &Model) {
    let now = model.revision.unwrap_or(0);
    for since in 0..=now {
        let told = store.changes(t, since).await.expect("a read");
        let touched = model.touched.iter().filter(|(at, _)| *at > since).map(|(_, name)| name);
        // A reader that has seen nothing need not learn about removed servers.
        let known = touched.filter(|name| since > 0 || model.servers.contains_key(*name));
        let servers = known.cloned().collect::<BTreeSet<_>>().into_iter().collect();
        assert_eq!(told, Changes { revision: now, servers, policy: false, told: true });
    }
}

async fn details_agree(store: &dyn Store, t: &TenantId, model: &Model) {
    for name in SERVERS {
        let server = server_name(name);
        let of_server = model.tools.range((name.to_owned(), String::new())..);
        let of_server = of_server.take_while(|((owner, _), _)| owner == name);
        let tools: Vec<_> = of_server.map(|(_, tool)| tool.clone()).collect();
        let expected = model.servers.get(name).map(|stored| (stored.clone(), tools.clone()));
        assert_eq!(store.read_server(t, &server).await.expect("a read"), expected);
        assert_eq!(store.list_tools(t, Some(&server), None, 99).await.expect("a read"), tools);
    }
    for id in 0..4 {
        let id = format!("r{id}");
        let recorded: Option<RecordedRequest> = store.find_request(t, &id).await.expect("a read");
        assert_eq!(recorded.as_ref(), model.requests.get(&id));
    }
    for encoder in ENCODERS {
        let kept = store.load_embeddings(t, encoder).await.expect("a read");
        let kept: BTreeMap<_, _> =
            kept.into_iter().map(|(hash, v)| ((encoder.to_owned(), hash), v)).collect();
        let expected = model.embeddings.iter().filter(|((of, _), _)| of == encoder);
        assert_eq!(kept, expected.map(|(key, v)| (key.clone(), v.clone())).collect());
    }
}
