//! Tests that token accounting adds up and agrees with the tokenizer.

use toolgate_core::deferral::{DeferralRequest, Mode};
use toolgate_core::tokens;
use toolgate_routing::router::query::{Listing, Options, RouteQuery};

use crate::support::{World, ask, options, server, tool};

#[tokio::test]
async fn the_figures_are_sums_of_what_is_sent() {
    let world = World::new().await;
    let described = |i: usize| tool(&format!("t{i}"), &format!("refund invoice number {i}"));
    world.register("acme", server("s", (0..40).map(described).collect())).await;
    let windowed = Options { context_window: Some(10_000), system_tokens: 500, ..options() };
    let listing = Some(Listing::Summaries);
    let query = RouteQuery { options: windowed, listing, ..ask("refund") };
    let answer = world.route("acme", query).await;
    let account = answer.account;
    let tools = &answer.snapshot.tools;
    let of = |count: fn(&toolgate_routing::shard::tool::Tool) -> u32| {
        tools.iter().map(|tool| u64::from(count(tool))).sum::<u64>()
    };
    let sent = |tool: &toolgate_routing::shard::tool::Tool| {
        tokens::count(&tool.definition.prompt_form(&tool.model_name))
    };
    assert_eq!(account.full_catalog, of(sent));
    let line = |tool: &toolgate_routing::shard::tool::Tool| {
        tokens::count(&format!("{}: {}\n", tool.model_name, tool.summary))
    };
    assert_eq!(account.phase1, of(line));
    let promoted = answer.active.iter().map(|active| u64::from(active.tokens)).sum::<u64>();
    assert_eq!(account.phase2, promoted);
    let signed = |tokens: u64| i64::try_from(tokens).unwrap();
    let spent = signed(account.phase1) + signed(account.phase2);
    assert_eq!(account.saved(), signed(account.full_catalog) - spent);
    let rho = |tools: u64| 1.0 - (tools as f64 + 500.0) / 10_000.0;
    assert_eq!(account.rho, Some(rho(account.phase1 + account.phase2)));
    assert_eq!(account.rho_full, Some(rho(account.full_catalog)));
}

#[tokio::test]
async fn rho_is_absent_without_a_window_and_never_negative() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("t", "refund invoice")])).await;
    let listing = Some(Listing::Summaries);
    let listed = RouteQuery { listing, ..ask("refund invoice") };
    let account = world.route("acme", listed).await.account;
    assert_eq!((account.rho, account.rho_full), (None, None));
    assert!(account.saved() < 0, "deferring the only tool does not pay, and that is said");
    let tiny = Options { context_window: Some(1), ..options() };
    let tiny = RouteQuery { options: tiny, listing, ..ask("x") };
    let account = world.route("acme", tiny).await.account;
    assert_eq!((account.rho, account.rho_full), (Some(0.0), Some(0.0)));
}

#[tokio::test]
async fn only_what_the_prompt_lists_is_charged() {
    let world = World::new().await;
    let tools = (0..40).map(|i| tool(&format!("t{i}"), "refund invoice number")).collect();
    world.register("acme", server("s", tools)).await;
    let of = async |listing| {
        let listing = Some(listing);
        let answer = world.route("acme", RouteQuery { listing, ..ask("refund") }).await;
        answer.account
    };
    let [none, names, summaries] =
        [of(Listing::None).await, of(Listing::Names).await, of(Listing::Summaries).await];
    assert_eq!(none.phase1, 0);
    assert!(0 < names.phase1 && names.phase1 < summaries.phase1);
    assert!(summaries.saved() < names.saved() && names.saved() < none.saved());
}

#[tokio::test]
async fn a_listing_that_is_said_is_charged_where_everything_is_sent() {
    let world = World::new().await;
    let tools = (0..5).map(|i| tool(&format!("t{i}"), "refund invoice number")).collect();
    world.register("acme", server("s", tools)).await;
    let deferral = DeferralRequest { mode: Some(Mode::Off), ..DeferralRequest::default() };
    let everything = Options { deferral, ..options() };
    let phase1 = async |listing| {
        let options = everything.clone();
        let held = RouteQuery { known_pool_revision: Some(0), ..ask("refund") };
        let query = RouteQuery { options, listing, ..held };
        let answer = world.route("acme", query).await;
        assert!(answer.deferral.sends_everything());
        answer.account.phase1
    };
    assert_eq!(phase1(None).await, 0, "nothing is said: there is nothing to list");
    assert_eq!(phase1(Some(Listing::None)).await, 0);
    let names = phase1(Some(Listing::Names)).await;
    let summaries = phase1(Some(Listing::Summaries)).await;
    assert!(0 < names && names < summaries, "{names} {summaries}");
}

#[tokio::test]
async fn a_conversation_costs_what_its_texts_cost() {
    let world = World::new().await;
    let tenant = toolgate_core::identity::TenantId::parse("acme").unwrap();
    let texts = ["refund the invoice", "", &"a long answer ".repeat(3_000)].map(str::to_owned);
    let counted = async || {
        world.plane.router.conversation_tokens(&tenant, texts.to_vec()).await.expect("a count")
    };
    let expected = texts.iter().map(|text| u64::from(tokens::count(text))).sum::<u64>();
    assert!(expected > 9_000, "{expected}");
    assert_eq!((counted().await, counted().await), (expected, expected));
}
