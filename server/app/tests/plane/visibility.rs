//! Tests of claims that a third party makes about its own tools. None of them ranks these tools before others.

use std::collections::BTreeSet;

use toolgate_app::plane::watching::{CatalogWatch, Watched};
use toolgate_core::mcp_server::TrustTier;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::answers::explain::Refusal;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::route::Answer;

use crate::support::{
    ToolText, World, ask, found, look_for, model_names, options, server, shown, tenant, tool,
};

const UNTRUSTED: TrustTier = TrustTier::Untrusted;
const STANDARD: TrustTier = TrustTier::Standard;
const TRUSTED: TrustTier = TrustTier::Trusted;

fn of_tier(tier: TrustTier, name: &str, tools: Vec<ToolText>) -> Registration {
    let mut registration = server(name, tools);
    registration.server.trust_tier = tier;
    registration
}

/// Returns a tool about nothing that anyone asks for, with this `_meta`.
fn claiming(name: &str, meta: serde_json::Value) -> ToolText {
    let mut tool = tool(name, "zzz");
    tool.definition["_meta"] = meta;
    tool
}

fn always_loaded(name: &str) -> ToolText {
    claiming(name, serde_json::json!({"anthropic/alwaysLoad": true}))
}

fn large(name: &str, bytes: usize) -> ToolText {
    tool(name, &format!("refund invoice {}", "x".repeat(bytes)))
}

async fn refund(world: &World, options: Options) -> Answer {
    world.route("acme", RouteQuery { options, ..ask("refund invoice") }).await
}

#[tokio::test]
async fn always_load_of_a_third_party_counts_for_a_trusted_server_only() {
    for (tier, expected) in
        [(UNTRUSTED, vec!["refund"]), (STANDARD, vec!["refund"]), (TRUSTED, vec!["mine", "refund"])]
    {
        let world = World::new().await;
        world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
        world.register("acme", of_tier(tier, "theirs", vec![always_loaded("mine")])).await;
        assert_eq!(shown(&refund(&world, options()).await), expected, "tier {tier:?}");
        // Registered again with less trust, the server loses its privileges.
        world.register("acme", of_tier(STANDARD, "theirs", vec![always_loaded("mine")])).await;
        assert_eq!(shown(&refund(&world, options()).await), ["refund"], "tier {tier:?}");
    }
}

#[tokio::test]
async fn what_a_tool_is_called_says_nothing() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
    let names = ["tool_search", "search_tools", "ToolSearch"];
    for (place, tier) in [UNTRUSTED, STANDARD, TRUSTED].into_iter().enumerate() {
        let tools = names.map(|name| tool(name, "zzz"));
        let registration = of_tier(tier, &format!("theirs{place}"), tools.into());
        world.register("acme", registration).await;
    }
    let strict = Options { threshold: 0.5, ..options() };
    assert_eq!(shown(&refund(&world, strict).await), ["refund"]);
}

#[tokio::test]
async fn a_rule_that_goes_by_claims_loads_no_untrusted_tool() {
    let world = World::new().await;
    let rules = "rules:
      - {name: core, match: {tags: [core]}, always_load: true}
      - {name: named, match: {tools: [mine]}, pinned: true}
      - {name: said, match: {annotations: {readOnlyHint: true}}, critical: true}";
    world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
    world.set_policy("acme", rules, "").await.expect("a policy");
    let theirs = || {
        let mut tool = claiming("mine", serde_json::json!({"tags": ["core"]}));
        tool.definition["annotations"] = serde_json::json!({"readOnlyHint": true});
        vec![tool]
    };
    world.register("acme", of_tier(UNTRUSTED, "theirs", theirs())).await;
    assert_eq!(shown(&refund(&world, options()).await), ["refund"]);
    world.register("acme", of_tier(STANDARD, "theirs", theirs())).await;
    assert_eq!(shown(&refund(&world, options()).await), ["mine", "refund"]);
    world.register("acme", of_tier(UNTRUSTED, "theirs", theirs())).await;
    let by_server = "rules: [{name: theirs, match: {servers: [theirs]}, always_load: true}]";
    world.set_policy("acme", by_server, "").await.expect("a policy");
    assert_eq!(shown(&refund(&world, options()).await), ["mine", "refund"], "said by name");
}

#[tokio::test]
async fn always_loaded_tools_stay_under_their_ceiling_and_caps() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("refund", "refund invoice")])).await;
    let always = |name: &str| -> Vec<ToolText> {
        (0..8).map(|i| tool(&format!("{name}{i}"), "zzz").always()).collect()
    };
    world.register("acme", of_tier(UNTRUSTED, "theirs", always("t"))).await;
    let answer = refund(&world, options()).await;
    assert_eq!(answer.active.len(), 5 + 1, "safety.untrusted_max_per_server");
    let told =
        |refusal: &Refusal| (refusal.code, refusal.message.contains("untrusted_max_per_server"));
    let told: Vec<_> = answer.refusals.iter().map(told).collect();
    assert_eq!(told, [(RefusalCode::BeyondCap, true); 3], "told without being asked");
    world.register("acme", server("ours", always("o"))).await;
    let of_each = answer.snapshot.tool(answer.active[0].chosen.slot).schema_tokens;
    let four = Options { always_load_tokens: 4 * of_each + 1, ..options() };
    let answer = refund(&world, four).await;
    assert_eq!(shown(&answer), ["o0", "o1", "o2", "o3", "refund"], "trusted more, so first");
    let message = &answer.refusals[0].message;
    assert!(message.contains("router.always_load_tokens"), "{message}");
}

#[tokio::test]
async fn no_answer_is_larger_than_a_message() {
    let world = World::new().await;
    let mut tools: Vec<_> = (0..8).map(|i| large(&format!("big{i}"), 20_000)).collect();
    tools.extend((8..12).map(|i| large(&format!("big{i}"), 20_000).always()));
    world.register("acme", server("s", tools)).await;
    let whole = refund(&world, Options { top_k: 12, ..options() }).await;
    assert_eq!(whole.active.len(), 12);
    let message_max = 100_000;
    let of_bytes = |answer: &Answer| -> usize {
        let slots = answer.active.iter().map(|active| active.chosen.slot);
        slots.map(|slot| answer.snapshot.tool(slot).definition.text().len()).sum()
    };
    let small = Options { message_max, top_k: 12, ..options() };
    let kept = RouteQuery { previous: whole.handle, options: small.clone(), ..ask("refund") };
    for answer in [refund(&world, small).await, world.route("acme", kept).await] {
        assert!(of_bytes(&answer) < message_max, "{:?}", model_names(&answer));
        assert_eq!(answer.active.len(), 4);
        let told = |one: &&Refusal| one.message.contains("limits.max_message_size");
        assert_eq!(answer.refusals.iter().filter(told).count(), 8, "{:?}", answer.refusals);
    }
    let query = toolgate_routing::router::search::SearchQuery {
        message_max,
        max_results: 12,
        ..look_for("+refund")
    };
    let answer = world.search("acme", query).await;
    assert_eq!((found(&answer).len(), answer.refusals.len()), (4, 8));
    assert!(answer.message.contains("8 more do not fit in one answer"), "{}", answer.message);
}

/// Returns the next answer of a watch: the revision, the MCP servers, and whether the changes are listed.
async fn news(watch: &mut CatalogWatch) -> (u64, Vec<String>, bool) {
    let changes = watch.next().await.expect("news");
    (changes.revision, changes.servers, changes.told)
}

fn as_agent(scopes: Option<&[&str]>) -> Watched {
    let owned = |scopes: &[&str]| BTreeSet::from_iter(scopes.iter().map(|s| (*s).to_owned()));
    Watched::AsAgent { scopes: scopes.map(owned) }
}

#[tokio::test]
async fn a_watch_names_no_server_that_its_agent_may_not_know() {
    let world = World::new().await;
    let vault = || server("vault", vec![tool("key", "open vault").scope("admin")]);
    world.register("acme", server("open", vec![tool("x", "x")])).await;
    let watch =
        |since, watched| world.plane.watch(&tenant("acme"), since, watched).expect("a place");
    let mut plain = watch(None, as_agent(Some(&["user"])));
    let mut admin = watch(None, as_agent(Some(&["admin"])));
    let mut any = watch(None, as_agent(None));
    let mut keeper = watch(None, Watched::All);
    let seen = vec!["vault".to_owned()];
    let hidden = Vec::<String>::new();
    for watch in [&mut plain, &mut admin, &mut any, &mut keeper] {
        assert_eq!(news(watch).await, (1, Vec::new(), true));
    }
    for (revision, step) in [(2, "comes"), (3, "goes")] {
        match step {
            "comes" => drop(world.register("acme", vault()).await),
            _ => drop(world.unregister("acme", "vault").await.expect("a removal")),
        }
        for watch in [&mut admin, &mut any, &mut keeper] {
            assert_eq!(news(watch).await, (revision, seen.clone(), true), "{step}");
        }
        assert_eq!(news(&mut plain).await, (revision, hidden.clone(), true), "{step}");
    }
    // A watcher that resumes gets the changes that it may see, or is told to read everything again.
    drop((plain, admin, keeper));
    let mut nothing_seen = watch(Some(0), as_agent(Some(&["user"])));
    assert_eq!(news(&mut nothing_seen).await, (3, vec!["open".to_owned()], true));
    let mut resumed = watch(Some(1), as_agent(Some(&["admin"])));
    assert_eq!(news(&mut resumed).await, (3, hidden.clone(), false));
    // A denied server exists for no agent. A watcher that saw it before is told of its removal.
    let denied = "rules: [{name: no, match: {servers: [open]}, denied: true}]";
    world.set_policy("acme", denied, "").await.expect("a policy");
    assert_eq!(news(&mut any).await, (4, hidden.clone(), true));
    world.register("acme", server("open", vec![tool("y", "y")])).await;
    assert_eq!(news(&mut any).await, (5, hidden, true));
}
