//! Tests of whether tools are deferred: the modes, who chooses them, and tools that are never deferred. In case of
//! doubt, more is sent.

use toolgate_core::deferral::{DeferralRequest, Mode, Pattern, Policy, Reason, Source};
use toolgate_core::mcp_server::{TransportHint, TrustTier};
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::gate::handle::TOOLS_MAX;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::Answer;

use crate::support::{
    Setup, ToolText, World, ask, call, model_names, options, server, shown, tool,
};

const TOOLS: [&str; 4] = ["near", "far", "farther", "farthest"];

async fn world(policy: Policy) -> World {
    let world = World::with(Setup { deferral: policy, ..Setup::default() }).await;
    let tools = TOOLS.map(|name| tool(name, &format!("{name} thing")));
    world.register("acme", server("s", tools.into())).await;
    world
}

fn turn(options: Options) -> RouteQuery {
    RouteQuery { options, ..ask("near") }
}

fn mode(mode: Mode) -> Options {
    let deferral = DeferralRequest { mode: Some(mode), ..DeferralRequest::default() };
    Options { deferral, top_k: 1, ..options() }
}

fn decided(answer: &Answer) -> (bool, Reason, Source, usize) {
    let deferral = answer.deferral;
    let decision = deferral.decision;
    (decision.deferred, decision.reason, decision.source, deferral.deferred_tools)
}

#[tokio::test]
async fn always_defers_and_off_sends_everything() {
    let world = world(Policy::default()).await;
    let answer = world.route("acme", turn(Options { top_k: 1, ..options() })).await;
    assert_eq!(decided(&answer), (true, Reason::Mode, Source::Default, 3));
    assert_eq!(shown(&answer), ["near"]);
    let answer = world.route("acme", turn(mode(Mode::Off))).await;
    assert_eq!(decided(&answer), (false, Reason::Mode, Source::Request, 0));
    assert_eq!(shown(&answer), ["far", "farther", "farthest", "near"], "the catalog's order");
    assert_eq!(
        (answer.account.phase1, answer.account.saved()),
        (0, 0),
        "nothing is saved, nor lost"
    );
    assert!(answer.active.iter().all(|a| a.chosen.found_by == FoundBy::NotDeferred));
    // The order does not depend on the intent, so that prompt caches stay valid.
    let other = RouteQuery { options: mode(Mode::Off), ..ask("farthest") };
    assert_eq!(shown(&world.route("acme", other).await), shown(&answer));
    for name in TOOLS {
        let verdict = world.gate_one("acme", &answer.handle, call(name), Default::default()).await;
        assert!(verdict.is_ok(), "{name}");
    }
}

#[tokio::test]
async fn what_is_sent_is_not_refused_as_well() {
    let world = world(Policy::default()).await;
    let budget = Some(100_000);
    let options = Options { explain: true, schema_token_budget: budget, ..mode(Mode::Off) };
    let answer = world.route("acme", turn(options)).await;
    assert_eq!(answer.active.len(), TOOLS.len());
    assert!(answer.refusals.is_empty(), "{:?}", answer.refusals);
}

#[tokio::test]
async fn auto_begins_where_the_definitions_reach_the_share() {
    let world = world(Policy::default()).await;
    let all = world.route("acme", turn(mode(Mode::Off))).await;
    let cost = all.account.full_catalog;
    assert_eq!(all.deferral.decision.cost, cost);
    let with = |window: u64, percent| {
        let window = u32::try_from(window).ok();
        turn(Options { context_window: window, ..mode(Mode::Auto(percent)) })
    };
    let reached = world.route("acme", with(cost * 10, 10)).await;
    assert_eq!(decided(&reached), (true, Reason::OverThreshold, Source::Request, 3));
    let below = world.route("acme", with(cost * 10 + 10, 10)).await;
    assert_eq!(decided(&below), (false, Reason::UnderThreshold, Source::Request, 0));
    assert_eq!(below.deferral.decision.threshold, Some(cost + 1));
    assert!(below.deferral.decision.message().contains(&format!("{cost} tokens")));
    let unknown = world.route("acme", turn(mode(Mode::AUTO))).await;
    assert_eq!(decided(&unknown), (false, Reason::NoWindow, Source::Request, 0));
}

#[tokio::test]
async fn the_cost_is_of_what_may_be_shown() {
    let world = world(Policy::default()).await;
    let secret = vec![tool("secret", &"long ".repeat(100)).scope("admin")];
    world.register("acme", server("vault", secret)).await;
    world.register("acme", server("other", vec![tool("x", "x").always()])).await;
    let cost = |answer: &Answer| answer.deferral.decision.cost;
    let all = world.route("acme", turn(options())).await;
    let of_s = ["s"].map(|name| toolgate_core::identity::ServerName::parse(name).unwrap());
    let filtered = turn(Options { servers: of_s.to_vec(), ..options() });
    assert_eq!(cost(&world.route("acme", filtered).await), cost(&all), "x is never deferred");
    let excluded = Options { excluded: vec!["s/far".to_owned()], ..options() };
    assert!(cost(&world.route("acme", turn(excluded)).await) < cost(&all));
}

#[tokio::test]
async fn the_operators_word() {
    let tenant = toolgate_core::identity::TenantId::parse("acme").unwrap();
    let policy = Policy {
        mode: Some(Mode::Off),
        tenants: [(tenant, Mode::Always)].into(),
        denied_models: vec![Pattern::new("tiny")],
        trusted_hosts: vec![Pattern::new("api.known.example")],
        ..Policy::default()
    };
    let world = world(policy.clone()).await;
    let answer = world.route("acme", turn(options())).await;
    assert_eq!(
        (answer.deferral.decision.source, answer.deferral.decision.deferred),
        (Source::Tenant, true)
    );
    let denied = Options { model: "Tiny-2".to_owned(), ..options() };
    let answer = world.route("acme", turn(denied)).await;
    assert_eq!(decided(&answer), (false, Reason::ModelUnsupported, Source::Tenant, 0));
    assert_eq!(answer.active.len(), 4);
    // The policy may change at runtime.
    world.deferral.replace(Policy { kill_switch: true, ..policy });
    let answer = world.route("acme", turn(mode(Mode::Always))).await;
    assert_eq!(decided(&answer), (false, Reason::KillSwitch, Source::Request, 0));
    world.deferral.replace(Policy { trusted_hosts: vec![Pattern::new("a")], ..Policy::default() });
    let behind = DeferralRequest {
        model_host: Some("proxy.example".to_owned()),
        ..DeferralRequest::default()
    };
    let answer = world.route("acme", turn(Options { deferral: behind, ..options() })).await;
    assert_eq!(decided(&answer), (false, Reason::UnknownProxy, Source::Default, 0));
}

#[tokio::test]
async fn what_is_never_deferred() {
    let world = World::new().await;
    let critical = |name: &str| {
        let mut tool = tool(name, "zzz");
        tool.settings.critical = true;
        tool
    };
    let asks = |name: &str, key: &str| {
        let mut tool = tool(name, "zzz");
        tool.definition["_meta"] = serde_json::json!({ key: true });
        tool
    };
    let tools = vec![
        tool("plain", "zzz"),
        tool("chosen", "zzz").always(),
        asks("meta", "anthropic/alwaysLoad"),
        critical("critical"),
        tool("tool_search", "zzz"),
        asks("marked", "toolgate/defer"),
    ];
    let mut trusted = server("s", tools);
    trusted.server.trust_tier = TrustTier::Trusted;
    world.register("acme", trusted).await;
    let own = |tools: Vec<ToolText>| -> Registration {
        let mut registration = server("own", tools);
        registration.server.transport_hint = TransportHint::BuiltIn;
        registration
    };
    let tools = vec![tool("read", "zzz"), asks("rare", "toolgate/defer")];
    world.register("acme", own(tools)).await;
    let strict = Options { threshold: 1.0, ..options() };
    let answer = world.route("acme", turn(strict)).await;
    let expected = ["read", "chosen", "critical", "meta"];
    assert_eq!(shown(&answer), expected);
    assert!(answer.active.iter().all(|a| a.chosen.found_by == FoundBy::AlwaysLoad));
}

#[tokio::test]
async fn kept_tools_keep_their_places_when_deferral_ends() {
    let world = world(Policy::default()).await;
    let first = world.route("acme", turn(Options { top_k: 1, ..options() })).await;
    let next = RouteQuery { previous: first.handle, ..turn(mode(Mode::Off)) };
    let next = world.route("acme", next).await;
    assert_eq!(shown(&next), ["near", "far", "farther", "farthest"]);
}

#[tokio::test]
async fn more_tools_than_one_answer_holds_are_cut_best_first() {
    let world = World::new().await;
    let many: Vec<_> = (0..TOOLS_MAX + 20).map(|i| tool(&format!("t{i}"), "x")).collect();
    world.register("acme", server("a", many)).await;
    world.register("acme", server("z", vec![tool("wanted", "near thing")])).await;
    let answer = world.route("acme", turn(mode(Mode::Off))).await;
    assert_eq!((answer.active.len(), answer.deferral.deferred_tools), (TOOLS_MAX, 21));
    assert_eq!(model_names(&answer)[0], "mcp__z__wanted");
    // An explicit budget of the caller is respected.
    let cost = answer.active[0].tokens;
    let tight = Options { schema_token_budget: Some(cost), ..mode(Mode::Off) };
    assert_eq!(shown(&world.route("acme", turn(tight)).await), ["wanted"]);
}
