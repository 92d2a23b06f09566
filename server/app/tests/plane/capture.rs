//! Tests of tools of an untrusted MCP server that are written to match users' requests: the number of places they get,
//! and their order. A server that is alone in its field must still be found.

use std::sync::Arc;

use serde_json::json;
use toolgate_config::LimitsConfig;
use toolgate_core::live::Live;
use toolgate_core::mcp_server::TrustTier;
use toolgate_core::safety::{Rules, Scanner};
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::catalog::Catalog;
use toolgate_routing::catalog::Hubs;
use toolgate_routing::catalog::SafetyMetrics;
use toolgate_routing::catalog::outcome::OutcomeKind;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::catalog::vetting::Vetting;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::Answer;
use toolgate_routing::router::search::{Form, SearchQuery};
use toolgate_store::sqlite::SqliteStore;

use crate::support::encoder::{DIMENSIONS, FakeEncoder, embed};
use crate::support::{
    Mode, ToolText, World, ask, found, look_for, model_names, options, server, shown, tenant, tool,
};

const UNTRUSTED: TrustTier = TrustTier::Untrusted;
const STANDARD: TrustTier = TrustTier::Standard;
const TRUSTED: TrustTier = TrustTier::Trusted;
const THEIRS: &str = "mcp__theirs__";
const SENTENCE: &str = "please refund me the invoice";

fn of_tier(tier: TrustTier, name: &str, tools: Vec<ToolText>) -> Registration {
    let mut registration = server(name, tools);
    registration.server.trust_tier = tier;
    registration
}

/// Creates a world with two honest tools that fit, two that fit less, and eight of an untrusted server that are written
/// to match.
async fn captured() -> World {
    let world = World::new().await;
    let honest = vec![
        tool("pay_back", "Refund an invoice."),
        tool("give_back", "Refund an invoice."),
        tool("list_orders", "Orders with an invoice."),
        tool("list_payers", "Payers with an invoice."),
    ];
    world.register("acme", of_tier(STANDARD, "billing", honest)).await;
    let theirs = (0..8).map(|i| tool(&format!("refund_invoice_{i}"), "refund invoice"));
    world.register("acme", of_tier(UNTRUSTED, "theirs", theirs.collect())).await;
    world
}

fn theirs(names: &[String]) -> usize {
    names.iter().filter(|name| name.starts_with(THEIRS)).count()
}

async fn routed(world: &World, text: &str, options: Options) -> Answer {
    world.route("acme", RouteQuery { options, ..ask(text) }).await
}

#[tokio::test]
async fn untrusted_tools_take_half_of_the_places_at_most_while_others_want_them() {
    let world = captured().await;
    for (top_k, most) in [(1, 0), (3, 1), (5, 2)] {
        let options = Options { top_k, threshold: -1.0, ..options() };
        let answer = routed(&world, "refund invoice", options).await;
        let names = model_names(&answer);
        assert_eq!((names.len(), theirs(&names)), (top_k, most), "{names:?}");
    }
    // No other tool wants the remaining places.
    let strict = Options { top_k: 6, threshold: 0.45, ..options() };
    let answer = routed(&world, "refund invoice", strict).await;
    let names = model_names(&answer);
    assert!(names.len() == 6 && theirs(&names) > 3, "{names:?}");
}

#[tokio::test]
async fn an_untrusted_tool_ranks_behind_an_honest_one_that_fits() {
    let world = captured().await;
    let answer = routed(&world, "refund invoice", Options { top_k: 5, ..Options::default() }).await;
    let chosen: Vec<_> = answer.active.iter().map(|active| active.chosen).collect();
    assert!(shown(&answer)[0].ends_with("_back"), "{:?}", shown(&answer));
    let is_untrusted = |slot: u32| answer.snapshot.tool(slot).untrusted;
    let of_untrusted: Vec<_> = chosen.iter().filter(|one| is_untrusted(one.slot)).collect();
    assert!(!of_untrusted.is_empty());
    for one in of_untrusted {
        assert!(one.overlap > chosen[0].overlap, "the true cosine");
        assert!(one.score <= chosen[0].score, "{one:?}");
    }
}

#[tokio::test]
async fn a_call_to_an_untrusted_server_does_not_put_its_tools_before_honest_ones_that_fit() {
    let world = captured().await;
    let intent = "refund an invoice of payers and orders";
    world.register("acme", of_tier(UNTRUSTED, "written", vec![tool("best", intent)])).await;
    let tool = "mcp__written__best".to_owned();
    let call = PriorCall { tool, status: CallStatus::Succeeded, turn: 0 };
    for calls in [vec![], vec![call]] {
        let state = AgentState { calls, ..AgentState::default() };
        let query = RouteQuery { options: Options::default(), state, ..ask(intent) };
        let answer = world.route("acme", query).await;
        let is_untrusted = |slot: u32| answer.snapshot.tool(slot).untrusted;
        let chosen: Vec<_> = answer.active.iter().map(|active| active.chosen).collect();
        let honest = chosen.iter().filter(|one| !is_untrusted(one.slot)).map(|one| one.score);
        let best = honest.reduce(f32::max).expect("an honest tool");
        let theirs = chosen.iter().filter(|one| is_untrusted(one.slot)).map(|one| one.score);
        assert_eq!(theirs.reduce(f32::max), Some(best), "as good at most: {chosen:?}");
    }
}

#[tokio::test]
async fn an_untrusted_server_that_is_alone_in_what_it_does_is_found() {
    let world = captured().await;
    let sea = (0..8).map(|i| tool(&format!("harbour_{i}"), &format!("Tides harbour {i}.")));
    world.register("acme", of_tier(UNTRUSTED, "sea", sea.collect())).await;
    let answer = routed(&world, "tides harbour 7", Options::default()).await;
    assert_eq!(shown(&answer)[0], "harbour_7", "{:?}", shown(&answer));
    for query in ["tides harbour 7", "please tell me the tides of harbour 7"] {
        let names = found(&world.search("acme", look_for(query)).await);
        assert!(names.contains(&"mcp__sea__harbour_7".to_owned()), "{query}: {names:?}");
    }
}

#[tokio::test]
async fn searches_have_the_caps_of_route() {
    let world = captured().await;
    for (query, form) in [("refund invoice", Form::Keywords), (SENTENCE, Form::Natural)] {
        let five = SearchQuery { least_overlap: -1.0, ..look_for(query) };
        let answer = world.search("acme", five.clone()).await;
        let names = found(&answer);
        assert_eq!((answer.form, names.len(), theirs(&names)), (form, 5, 2), "{query}: {names:?}");
        assert!(names[0].ends_with("_back"), "{query}: {names:?}");
        assert_eq!(answer.message, "", "{query}: every place is taken");
        let many = SearchQuery { max_results: 12, ..five };
        let answer = world.search("acme", many).await;
        let names = found(&answer);
        assert_eq!(theirs(&names), 5, "{query}: {names:?}");
        assert!(answer.message.contains("(mcp__NAME)"), "{query}: {:?}", answer.message);
    }
    // A query that names a server or its tools gets them.
    let eight = SearchQuery { max_results: 8, ..look_for("mcp__theirs") };
    assert_eq!(theirs(&found(&world.search("acme", eight).await)), 8);
    let names: Vec<_> = (0..8).map(|i| format!("{THEIRS}refund_invoice_{i}")).collect();
    let selected = world.search("acme", look_for(&format!("select:{}", names.join(",")))).await;
    assert_eq!(found(&selected), names);
}

#[tokio::test]
async fn searches_have_the_caps_of_route_without_an_encoder() {
    let world = captured().await;
    world.encoder.set(Mode::Fails);
    let names = found(&world.search("acme", look_for(SENTENCE)).await);
    assert!(theirs(&names) <= 2 && names[0].ends_with("_back"), "{names:?}");
}

#[tokio::test]
async fn the_name_of_an_untrusted_tool_counts_as_words() {
    let world = World::new().await;
    let named =
        |tier: TrustTier, name: &str| of_tier(tier, name, vec![tool("refund_invoice", "x")]);
    let honest = vec![tool("zz_pay_back", "Refund an invoice."), tool("zz_invoice", "x")];
    world.register("acme", of_tier(STANDARD, "honest", honest)).await;
    world.register("acme", named(UNTRUSTED, "a")).await;
    let answer = world.search("acme", look_for("refund invoice")).await;
    let scores: Vec<_> = answer.tools.iter().map(|active| active.chosen.score).collect();
    let names = ["mcp__honest__zz_invoice", "mcp__honest__zz_pay_back", "mcp__a__refund_invoice"];
    assert_eq!(found(&answer), names);
    assert_eq!(scores, [12.0, 4.0, 4.0]);
    // A standard server gets the published weights.
    world.register("acme", named(STANDARD, "a")).await;
    let answer = world.search("acme", look_for("refund invoice")).await;
    assert_eq!((&*found(&answer)[0], answer.tools[0].chosen.score), (names[2], 24.0));
}

#[tokio::test]
async fn an_intent_does_not_find_an_untrusted_tool_by_its_name() {
    for (tier, is_named) in [(UNTRUSTED, false), (STANDARD, true)] {
        let world = World::new().await;
        world.register("acme", server("billing", vec![tool("pay_back", "Refund invoice")])).await;
        let theirs = vec![tool("refund_invoice", "Refund invoice")];
        world.register("acme", of_tier(tier, "theirs", theirs)).await;
        for text in ["run refund_invoice", "run mcp__theirs__refund_invoice"] {
            let answer = routed(&world, text, Options { threshold: -1.0, ..options() }).await;
            let by_name = answer.active.iter().any(|one| one.chosen.found_by == FoundBy::Name);
            assert_eq!(by_name, is_named, "tier {tier:?}: {text}");
        }
    }
}

/// Returns a tool whose schema is too long to fit.
fn large(name: &str, description: &str) -> ToolText {
    let values: Vec<_> = (0..500).map(|i| format!("value {i}")).collect();
    tool(name, description).schema(json!({"type": "object", "properties": {"p": {"enum": values}}}))
}

#[tokio::test]
async fn the_place_of_a_tool_without_room_goes_to_the_next_within_the_caps() {
    let world = World::new().await;
    let honest = vec![
        large("aa", "refund invoice"),
        tool("bb", "refund invoice twice"),
        tool("cc", "refund invoice twice more or less"),
    ];
    world.register("acme", of_tier(STANDARD, "billing", honest)).await;
    let theirs = vec![
        tool("dd", "refund invoice"),
        tool("ee", "refund invoice"),
        tool("ff", "refund invoice twice more"),
        tool("gg", "refund invoice twice more"),
    ];
    world.register("acme", of_tier(UNTRUSTED, "theirs", theirs)).await;
    let budget = Some(1_000);
    let tight = Options { top_k: 4, schema_token_budget: budget, threshold: -1.0, ..options() };
    let names = shown(&routed(&world, "refund invoice", tight).await);
    assert_eq!(names.len(), 4, "{names:?}");
    assert!(
        ["bb", "cc", "dd", "ee"].iter().all(|name| names.contains(&(*name).to_owned())),
        "{names:?}"
    );
}

fn vetting() -> Vetting {
    Vetting {
        scanner: Arc::new(Live::new(Scanner::new(Rules::shipped()))),
        untrusted_by_default: false,
        metrics: SafetyMetrics::default(),
    }
}

#[tokio::test]
async fn a_tool_that_is_near_to_everything_is_told_and_not_held_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = SqliteStore::open(&folder.path().join("catalog.db")).await.expect("a store");
    let encoder = Arc::new(FakeEncoder::new("fake-1"));
    let mut everyday = vec![0.0; DIMENSIONS];
    for asked in ["files", "mail", "issues", "calendar"] {
        everyday.iter_mut().zip(embed(asked)).for_each(|(sum, value)| *sum += value / 4.0);
    }
    let limits = Arc::new(Live::new(LimitsConfig::default()));
    let catalog = Catalog::new(Arc::new(store), Arc::clone(&encoder) as _, limits)
        .with_vetting(Some(vetting()))
        .with_hubs(Some(Hubs::new(everyday.into(), 0.3)));
    let both = |more: &str| {
        vec![
            tool("tides", &format!("Heights of water {more}.")),
            tool("helper", &format!("Files mail issues calendar {more}.")),
        ]
    };
    let is_told = |one: &String| one.starts_with("near-everything");
    let register = async |registration: Registration| {
        let registered = catalog.register(&tenant("acme"), registration, None).await;
        registered.expect("a registration").outcomes
    };
    for (tier, name) in [(UNTRUSTED, "a"), (STANDARD, "b"), (TRUSTED, "c")] {
        let once = Some((name.to_owned(), [1; 32]));
        let registration = Registration { request: once, ..of_tier(tier, name, both(name)) };
        for outcomes in [register(registration.clone()).await, register(registration).await] {
            assert!(outcomes.iter().all(|one| one.kind == OutcomeKind::Accepted), "{outcomes:?}");
            assert!(!outcomes[0].findings.iter().any(is_told), "{outcomes:?}");
            let told = outcomes[1].findings.last().expect("a finding");
            assert!(told.starts_with("near-everything (low) at tools[1].summary"), "{told}");
        }
    }
    encoder.set(Mode::Fails);
    let outcomes = register(of_tier(STANDARD, "d", both("d"))).await;
    assert!(!outcomes.iter().flat_map(|one| &one.findings).any(is_told), "{outcomes:?}");
}
