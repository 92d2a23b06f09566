//! Tests of the paper's rule as an option of Route: held against the rule as it is written, over everything that is
//! shipped, and against all that chooses tools by Toolgate's own rule.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolgate_core::state::{AgentState, CallStatus, PriorCall};
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::packs::Packs;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Options, RouteQuery, SelectionRule, Unset};
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::{Answer, Degraded};
use toolgate_routing::shard::snapshot::Snapshot;

use crate::support::encoder::{cosine, embed};
use crate::support::world::Setup;
use crate::support::{Mode, ToolText, World, ask, look_for, reached, server, shown, tool};

/// Threshold of the paper, and number of tools.
const PUBLISHED: (f32, usize) = (0.28, 10);

/// Overlaps closer than this may come in either order: the two sides add in different orders, and a row that was mixed
/// with a pack's requests is taken apart again.
const ROUNDING: f32 = 1e-4;

/// Returns the product's defaults under the paper's rule, as of a request that names neither threshold nor `top_k`.
fn published() -> Options {
    let unset = Unset { top_k: true, threshold: true };
    Options { selection_rule: SelectionRule::ToolAttention, unset, ..Options::default() }
}

fn ask_by_rule(text: &str) -> RouteQuery {
    RouteQuery { options: published(), ..ask(text) }
}

fn shipped(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(file)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(shipped(folder)).expect("test data");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Returns the text of each labelled intent of the repository.
fn intents() -> Vec<String> {
    let is_labels = |file: &PathBuf| file.extension().is_some_and(|kind| kind == "jsonl");
    let mut intents = Vec::new();
    for file in files("intents").into_iter().filter(is_labels) {
        for line in std::fs::read_to_string(file).expect("intents").lines() {
            let line: Value = serde_json::from_str(line).expect("a JSON object");
            intents.push(line["query"].as_str().expect("a text").to_owned());
        }
    }
    intents
}

/// Returns the tools of a shipped catalog, without their schemas, which no summary shows.
fn tools_of(file: &Path) -> Vec<ToolText> {
    let catalog = std::fs::read(file).expect("a catalog");
    let catalog: Value = serde_json::from_slice(&catalog).expect("a JSON object");
    let text = |tool: &Value, key: &str| tool[key].as_str().unwrap_or_default().to_owned();
    let tools = catalog["tools"].as_array().expect("a list");
    tools.iter().map(|one| tool(&text(one, "name"), &text(one, "description"))).collect()
}

/// Creates a world with all shipped catalogs and packs.
async fn everything() -> World {
    let packs = Some(Arc::new(Packs::shipped()));
    let world = World::with(Setup { packs, memory_budget: 1 << 30, ..Setup::default() }).await;
    for file in files("servers") {
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
        world.register("acme", server(name, tools_of(&file))).await;
    }
    world
}

/// Returns the embeddings of the summaries, by slot.
fn summaries(snapshot: &Snapshot) -> Vec<Vec<f32>> {
    snapshot.tools.iter().map(|tool| embed(&tool.summary)).collect()
}

/// Returns the overlaps of the active set as the rule is written: those that reach the threshold, the best first.
fn as_written(overlaps: &[f32]) -> Vec<f32> {
    let reach = overlaps.iter().copied().filter(|overlap| *overlap >= PUBLISHED.0);
    let mut reach: Vec<f32> = reach.collect();
    reach.sort_by(|a, b| b.total_cmp(a));
    reach.truncate(PUBLISHED.1);
    reach
}

fn is_near(a: f32, b: f32) -> bool {
    (a - b).abs() < ROUNDING
}

/// Holds an answer against the rule as it is written, over the summaries of its tools.
fn assert_as_written(answer: &Answer, summaries: &[Vec<f32>], intent: &str) {
    let embedded = embed(intent);
    let overlaps: Vec<f32> = summaries.iter().map(|row| cosine(&embedded, row)).collect();
    let wanted = as_written(&overlaps);
    let chosen: Vec<_> = answer.active.iter().map(|active| active.chosen).collect();
    let on_the_edge = overlaps.iter().any(|overlap| is_near(*overlap, PUBLISHED.0));
    assert!(chosen.len() == wanted.len() || on_the_edge, "{intent}: {chosen:?}, not {wanted:?}");
    for (one, wanted) in chosen.iter().zip(wanted) {
        let own = overlaps[one.slot as usize];
        assert!(is_near(one.overlap, own), "{intent}: overlap {} is {own}", one.overlap);
        assert!(is_near(own, wanted), "{intent}: a tool of {own} in the place of {wanted}");
        assert_eq!(one.found_by, FoundBy::Overlap, "{intent}");
    }
    let distinct: std::collections::HashSet<_> = chosen.iter().map(|one| one.slot).collect();
    assert_eq!(distinct.len(), chosen.len(), "{intent}");
}

#[tokio::test]
async fn each_shipped_intent_gets_what_the_rule_says_as_it_is_written() {
    let world = everything().await;
    let intents = intents();
    assert!(intents.len() > 500, "{}", intents.len());
    let snapshot = world.route("acme", ask_by_rule(&intents[0])).await.snapshot;
    let summaries = summaries(&snapshot);
    let mut sizes = [0_usize; 11];
    for intent in &intents {
        let answer = world.route("acme", ask_by_rule(intent)).await;
        assert_as_written(&answer, &summaries, intent);
        sizes[answer.active.len()] += 1;
    }
    assert!(sizes[10] > 0 && sizes[..10].iter().any(|count| *count > 0), "{sizes:?}");
    let index = snapshot.vectors().expect("an index");
    let query = embed(&intents[0]);
    let is_mixed = |slot: &u32| index.overlap(&query, *slot) != index.cosine(&query, *slot);
    let mixed = (0u32..).take(snapshot.tools.len()).filter(is_mixed).count();
    assert!(
        mixed > 100,
        "no pack is in the index, so that its plain summaries are no test: {mixed}"
    );
}

#[tokio::test]
async fn neither_names_nor_words_nor_calls_nor_what_was_said_before_choose_by_the_papers_rule() {
    let world = World::new().await;
    let mut tools: Vec<_> = (0..3).map(|i| tool(&format!("near_{i}"), "refund invoice")).collect();
    tools.push(tool("photo_rotate", "weather folder"));
    world.register("acme", server("s", tools)).await;
    let text = "refund invoice, refund invoice, refund invoice, refund invoice: photo_rotate";
    let call = PriorCall {
        tool: "mcp__s__photo_rotate".to_owned(),
        status: CallStatus::Succeeded,
        turn: 1,
    };
    let state = AgentState {
        calls: vec![call],
        discovered: vec!["mcp__s__photo_rotate".to_owned()],
        ..AgentState::default()
    };
    let said = Intent::context("weather folder".to_owned(), 0.9);
    let intents = vec![Intent::new(text.to_owned(), 1.0), said];
    let options = Options { top_k: 3, unset: Unset::default(), ..published() };
    let query = RouteQuery { intents, state, options, ..ask_by_rule("x") };
    let mut own = query.clone();
    own.options.selection_rule = SelectionRule::Own;
    assert!(shown(&world.route("acme", own).await).contains(&"photo_rotate".to_owned()));
    let answer = world.route("acme", query).await;
    let mut names = shown(&answer);
    names.sort();
    assert_eq!(names, ["near_0", "near_1", "near_2"], "the three of the highest overlap");
}

#[tokio::test]
async fn no_tool_is_kept_from_the_turn_before_and_the_change_says_which_went() {
    let world = World::new().await;
    let tools = [("pay", "refund invoice"), ("both", "refund deploy"), ("ship", "deploy branch")];
    let tools = tools.map(|(name, text)| tool(name, text)).into();
    world.register("acme", server("s", tools)).await;
    let first = world.route("acme", ask_by_rule("refund")).await;
    assert_eq!(shown(&first).len(), 2, "{:?}", shown(&first));
    let query = RouteQuery { previous: first.handle, ..ask_by_rule("deploy") };
    let second = world.route("acme", query).await;
    let mut names = shown(&second);
    names.sort();
    assert_eq!(names, ["both", "ship"]);
    let new: Vec<_> = second.active.iter().filter(|tool| tool.chosen.newly_promoted).collect();
    assert_eq!(new.len(), 1, "the model has the other one already");
    assert_eq!(second.snapshot.tool(new[0].chosen.slot).id.name.as_str(), "ship");
    let went = &second.change.removed;
    assert_eq!(
        went.iter().map(|slot| second.snapshot.tool(*slot).id.name.as_str()).collect::<Vec<_>>(),
        ["pay"]
    );
    // What the model searched for has its place until the next Route, not beyond.
    let search = look_for("refund invoice");
    let previous = second.handle;
    let found = world
        .search("acme", toolgate_routing::router::search::SearchQuery { previous, ..search })
        .await;
    let query = RouteQuery { previous: found.handle, ..ask_by_rule("deploy") };
    assert!(!shown(&world.route("acme", query).await).contains(&"pay".to_owned()));
}

#[tokio::test]
async fn preconditions_the_policy_and_the_request_hold_by_the_papers_rule() {
    let world = World::new().await;
    let tools = vec![
        tool("open", "refund invoice"),
        tool("locked", "refund invoice").after("approved"),
        tool("always", "photo").always(),
        tool("pinned", "weather"),
        tool("strict", "refund invoice customer"),
        tool("lax", "calendar"),
    ];
    world.register("acme", server("s", tools)).await;
    let policy = "defaults: {threshold: 0.99, ratio: 0.9, abstain_below: 0.99}\n\
                  rules:\n\
                  - {name: strict, match: {tools: [strict]}, threshold: 0.95}\n\
                  - {name: lax, match: {tools: [lax]}, threshold: -1}";
    world.set_policy("acme", policy, "").await.expect("a policy");
    let mut query = ask_by_rule("refund invoice");
    query.options.pinned = vec!["s/pinned".to_owned()];
    query.options.explain = true;
    let answer = world.route("acme", query.clone()).await;
    assert_eq!(shown(&answer), ["always", "pinned", "open"]);
    let reason = |name: &str| {
        let of = |slot: u32| answer.snapshot.tool(slot).id.name.as_str() == name;
        answer.refusals.iter().find(|one| one.slot.is_some_and(of)).map(|one| one.code)
    };
    assert_eq!(reason("locked"), Some(RefusalCode::PreconditionUnmet));
    assert_eq!(reason("strict"), Some(RefusalCode::BelowThreshold));
    assert_eq!(reason("lax"), Some(RefusalCode::BelowThreshold), "the policy can't lower it");
    query.state = reached(&["approved"]);
    query.options.excluded = vec!["open".to_owned()];
    assert_eq!(shown(&world.route("acme", query.clone()).await), ["always", "pinned", "locked"]);
    query.options = Options { threshold: 0.9999, top_k: 1, ..published() };
    query.options.unset = Unset::default();
    assert_eq!(shown(&world.route("acme", query).await), ["always"], "the request's threshold");
}

#[tokio::test]
async fn the_highest_overlap_of_several_intents_counts_by_the_papers_rule() {
    let world = World::new().await;
    let tools = [("pay", "refund invoice"), ("ship", "deploy branch customer alert")];
    let tools = tools.map(|(name, text)| tool(name, text)).into();
    world.register("acme", server("s", tools)).await;
    let intent = |text: &str, weight| Intent::new(text.to_owned(), weight);
    let intents = vec![intent("deploy branch", 5.0), intent("refund invoice", 0.1)];
    let answer = world.route("acme", RouteQuery { intents, ..ask_by_rule("x") }).await;
    assert_eq!(shown(&answer), ["pay", "ship"], "weights move nothing");
}

#[tokio::test]
async fn without_an_encoder_words_decide_and_the_answer_says_so() {
    let world = World::new().await;
    let tools = vec![tool("pay", "refund invoice"), tool("ship", "deploy branch")];
    world.register("acme", server("s", tools)).await;
    world.route("acme", ask_by_rule("refund")).await;
    world.encoder.set(Mode::Fails);
    let answer = world.route("acme", ask_by_rule("deploy it")).await;
    assert_eq!(
        (shown(&answer), answer.degraded),
        (vec!["ship".to_owned()], vec![Degraded::LexicalOnly])
    );
}
