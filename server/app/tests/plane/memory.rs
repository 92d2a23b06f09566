//! Tests of the memory of successful calls. After an allowed call, similar intents find its tool. This holds only for
//! its tenant, while the tenant is opted in and the memory is not cleared.

use std::time::Duration;

use toolgate_config::MemoryConfig;
use toolgate_core::identity::{ServerName, TenantId};
use toolgate_core::state::AgentState;
use toolgate_routing::gate::handle::Holder;
use toolgate_routing::gate::{Evidence, GateQuery};
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::Answer;

use crate::support::{
    Mode, Setup, World, ask, call, found, granted, look_for, options, server, shown, tenant, tool,
};

/// Text that shares no word with any tool.
const WISH: &str = "tidy that horrible mess away please";
const LIKE_IT: &str = "tidy the horrible mess away now";
const ARCHIVE: &str = "mcp__box__archive";

fn on() -> Setup {
    let tenants = vec![tenant("acme"), tenant("other")];
    Setup { memory: MemoryConfig { tenants, ..MemoryConfig::default() }, ..Setup::default() }
}

async fn world(setup: Setup) -> World {
    let world = World::with(setup).await;
    for name in ["acme", "other"] {
        let many = (0..30).map(|i| tool(&format!("other_{i}"), &format!("does thing number {i}")));
        let tools = many.chain([tool("archive", "archive old boxes")]).collect();
        world.register(name, server("box", tools)).await;
    }
    world
}

/// Asks with the product's own cutoff, which memory can move.
fn wish(text: &str) -> RouteQuery {
    let ratio = Options::default().ratio;
    RouteQuery { options: Options { ratio, explain: true, top_k: 3, ..options() }, ..ask(text) }
}

/// Calls `archive` for a wish by eight agents, which find it by its name.
async fn calls(world: &World, name: &str, text: &str) {
    for caller in 0..8 {
        gate_as(world, &tenant(name), &format!("agent-{caller}"), "archive", 1, text).await;
    }
}

/// Runs the background keeper once.
async fn kept(world: &World) {
    for name in ["acme", "other"] {
        drop(world.plane.memory.of(&tenant(name)));
    }
    world.plane.memory.flush().await.expect("a flush");
    world.plane.memory.refresh().await.expect("a refresh");
}

async fn exemplars(world: &World, name: &str) -> u32 {
    let stats = world.plane.memory_stats(&tenant(name), None).await.expect("stats");
    stats.tools.iter().map(|one| one.exemplars).sum()
}

fn first(answer: &Answer) -> Option<String> {
    shown(answer).first().cloned()
}

#[tokio::test]
async fn a_call_makes_its_tool_be_found_for_intents_like_it() {
    let world = world(on()).await;
    let before = world.route("acme", wish(LIKE_IT)).await;
    assert_ne!(first(&before).as_deref(), Some("archive"));
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    let after = world.route("acme", wish(LIKE_IT)).await;
    assert_eq!(first(&after).as_deref(), Some("archive"));
    assert_eq!(after.active[0].chosen.found_by, FoundBy::Memory);
    let ranking = after.ranking.expect("an explanation");
    assert!(ranking.candidates[0].parts.memory > 0.3, "{:?}", ranking.candidates[0]);
    let searched = world.search("acme", look_for("tidy the horrible mess away now")).await;
    assert_eq!(found(&searched)[0], ARCHIVE);
    let others = world.route("other", wish(LIKE_IT)).await;
    assert_eq!(shown(&others), shown(&before), "another tenant's");
    let unlike = world.route("acme", wish("thing number 7")).await;
    assert_eq!(first(&unlike).as_deref(), Some("other_7"), "nothing is remembered of it");
}

#[tokio::test]
async fn nothing_is_remembered_of_tenants_that_did_not_opt_in() {
    let world = world(Setup::default()).await;
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    assert_eq!(exemplars(&world, "acme").await, 0);
    let off = world.route("acme", wish(WISH)).await;
    let with = self::world(on()).await.route("acme", wish(WISH)).await;
    assert!(off.handle.len() + 64 < with.handle.len(), "only then a handle carries the intent");
}

#[tokio::test]
async fn what_was_refused_or_repeated_does_not_count() {
    let world = world(on()).await;
    let turn = world.route("acme", wish(WISH)).await;
    let state = AgentState::default();
    world.gate_one("acme", &turn.handle, call("nonsense"), state).await.expect_err("no tool");
    kept(&world).await;
    assert_eq!(exemplars(&world, "acme").await, 0);
    for _ in 0..3 {
        calls(&world, "acme", WISH).await;
    }
    kept(&world).await;
    assert_eq!(exemplars(&world, "acme").await, 1);
}

#[tokio::test]
async fn it_outlives_a_restart_and_is_there_for_other_replicas() {
    let world = world(on()).await;
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    let other = world.restarted(on()).await;
    drop(other.route("acme", wish(LIKE_IT)).await);
    kept(&other).await;
    assert_eq!(first(&other.route("acme", wish(LIKE_IT)).await).as_deref(), Some("archive"));
    // A replica forgets what another one clears.
    world.plane.clear_memory(&tenant("acme"), None, None).await.expect("a clearance");
    kept(&other).await;
    assert_ne!(first(&other.route("acme", wish(LIKE_IT)).await).as_deref(), Some("archive"));
    // Embeddings of another encoder are ignored.
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    let foreign = world.restarted(Setup { fingerprint: "fake-2", ..on() }).await;
    kept(&foreign).await;
    assert_ne!(first(&foreign.route("acme", wish(LIKE_IT)).await).as_deref(), Some("archive"));
}

#[tokio::test]
async fn what_is_cleared_is_gone_at_once() {
    let world = world(on()).await;
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    calls(&world, "acme", "brush up the yard before winter").await;
    let server = ServerName::parse("box").expect("a name");
    let cleared = world.plane.clear_memory(&tenant("acme"), Some(&server), None).await;
    assert_eq!(cleared.expect("a clearance"), 1, "what waits is thrown away too, uncounted");
    assert_ne!(first(&world.route("acme", wish(LIKE_IT)).await).as_deref(), Some("archive"));
    kept(&world).await;
    assert_eq!(exemplars(&world, "acme").await, 0);
    assert!(world.plane.clear_memory(&tenant("nobody"), None, None).await.is_err());
}

#[tokio::test]
async fn memory_shows_nobody_what_the_policy_hides() {
    let world = World::with(on()).await;
    let tools = vec![tool("archive", "archive old boxes").scope("staff"), tool("look", "look")];
    world.register("acme", server("box", tools)).await;
    let query = RouteQuery { state: granted(&["staff"]), ..wish(WISH) };
    let options = Options { pinned: vec![ARCHIVE.to_owned()], ..query.options.clone() };
    let turn = world.route("acme", RouteQuery { options, ..query.clone() }).await;
    world
        .gate_one("acme", &turn.handle, call(ARCHIVE), granted(&["staff"]))
        .await
        .expect("allowed");
    kept(&world).await;
    let most = async |query| {
        let answer = world.route("acme", query).await;
        let candidates = answer.ranking.expect("an explanation").candidates;
        candidates.iter().map(|one| one.parts.memory).fold(0.0, f32::max)
    };
    assert!(most(query).await > 0.5);
    assert_eq!(most(wish(WISH)).await, 0.0, "nor that there is something to remember");
}

#[tokio::test]
async fn one_caller_can_not_take_an_intent_over() {
    let world = world(on()).await;
    let acme = tenant("acme");
    calls(&world, "acme", WISH).await;
    gate_as(&world, &acme, "eve", "other_3", 1_000, WISH).await;
    kept(&world).await;
    let answer = world.route("acme", wish(LIKE_IT)).await;
    assert_eq!(first(&answer).as_deref(), Some("archive"));
}

/// Calls a tool this many times as one principal, for a wish.
async fn gate_as(
    world: &World,
    tenant: &TenantId,
    principal: &str,
    name: &str,
    times: usize,
    text: &str,
) {
    let holder = Holder { tenant, principal };
    let model_name = format!("mcp__box__{name}");
    let query = wish(text);
    let options = Options { pinned: vec![model_name.clone()], ..query.options };
    let query = RouteQuery { options, ..query };
    let turn = world.plane.router.route(holder, query, None).await.expect("an answer");
    for _ in 0..times.div_ceil(100) {
        let calls = vec![call(&model_name); times.min(100)];
        let evidence = Evidence::Handle(turn.handle.clone());
        let state = AgentState::default();
        let query =
            GateQuery { evidence, intent_handle: String::new(), calls, state, min_revision: 0 };
        let gated = world.plane.gate.judge(holder, query, None).await.expect("verdicts");
        assert!(gated.verdicts.iter().all(Result::is_ok));
    }
}

#[tokio::test]
async fn calls_without_a_handle_teach_for_the_search_that_found_their_tools() {
    let world = world(on()).await;
    let acme = tenant("acme");
    let ann = Holder { tenant: &acme, principal: "ann" };
    let search = look_for("please archive the old boxes of the cellar");
    let searched = world.plane.router.search(ann, search, None).await.expect("an answer");
    assert!(found(&searched).contains(&ARCHIVE.to_owned()), "{:?}", found(&searched));
    assert!(!found(&searched).contains(&"mcp__box__other_29".to_owned()));
    let gated = async |principal: &str, tool: &str, intent_handle: &str| {
        let holder = Holder { tenant: &acme, principal };
        let query = GateQuery {
            evidence: Evidence::Catalog,
            intent_handle: intent_handle.to_owned(),
            calls: vec![call(tool)],
            state: AgentState::default(),
            min_revision: 0,
        };
        let gated = world.plane.gate.judge(holder, query, None).await.expect("verdicts");
        assert!(gated.verdicts[0].is_ok(), "a handle is evidence of nothing there");
        kept(&world).await;
        exemplars(&world, "acme").await
    };
    assert_eq!(gated("ann", ARCHIVE, "").await, 0);
    assert_eq!(gated("ann", ARCHIVE, "no handle").await, 0);
    assert_eq!(gated("eve", ARCHIVE, &searched.handle).await, 0, "it is another principal's");
    assert_eq!(gated("ann", "mcp__box__other_29", &searched.handle).await, 0, "it was not found");
    assert_eq!(gated("ann", ARCHIVE, &searched.handle).await, 1);
    assert_eq!(exemplars(&world, "other").await, 0);
}

#[tokio::test]
async fn a_turn_that_words_decided_teaches_nothing() {
    let world = world(on()).await;
    world.encoder.set(Mode::Fails);
    calls(&world, "acme", WISH).await;
    kept(&world).await;
    assert_eq!(exemplars(&world, "acme").await, 0);
}

#[tokio::test]
async fn the_keeper_writes_and_reads_by_itself_and_writes_at_its_end() {
    let world = world(on()).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let memory = std::sync::Arc::clone(&world.plane.memory);
    let every = Duration::from_millis(1);
    let keeper = tokio::spawn(toolgate_routing::memory::keep(memory, every, stop.clone()));
    calls(&world, "acme", WISH).await;
    let learned = async || {
        while first(&world.route("acme", wish(LIKE_IT)).await).as_deref() != Some("archive") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), learned()).await.expect("in time");
    calls(&world, "other", WISH).await;
    stop.cancel();
    keeper.await.expect("an end");
    assert_eq!(exemplars(&world, "other").await, 1);
}
