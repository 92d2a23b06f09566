//! Tests of the tools chosen for an intent, compared with a ranking that is as simple as possible.

use proptest::prelude::*;
use serde_json::json;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::{Options, RouteQuery, Unset};
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::Answer;

use crate::support::encoder::{cosine, embed};
use crate::support::{World, ask, model_names, options, server, shown, tool};

const WORDS: [&str; 16] = [
    "invoice", "refund", "customer", "ticket", "branch", "commit", "deploy", "alert", "metric",
    "calendar", "meeting", "email", "folder", "photo", "invoice2", "weather",
];

/// Overlaps closer than this may come in either order, because the two sides add in different orders.
const ROUNDING: f32 = 1e-5;

#[tokio::test]
async fn best_first_above_the_threshold_and_no_more_than_top_k() {
    let world = World::new().await;
    let near = |i: usize| tool(&format!("near_{i}"), &format!("refund invoice {}", WORDS[i]));
    let far = |i: usize| tool(&format!("far_{i}"), &format!("{} photo weather", WORDS[i + 6]));
    let tools = (2..6).map(near).chain((0..4).map(far)).collect();
    world.register("acme", server("billing", tools)).await;
    let answer = world.route("acme", ask("refund invoice")).await;
    assert_eq!(shown(&answer).len(), 4, "{:?}", shown(&answer));
    assert!(shown(&answer).iter().all(|name| name.starts_with("near_")));
    assert!(answer.active.iter().all(|tool| tool.chosen.found_by == FoundBy::Overlap));
    let top_2 = Options { top_k: 2, ..options() };
    let fewer = world.route("acme", RouteQuery { options: top_2, ..ask("refund invoice") }).await;
    assert_eq!(model_names(&fewer), model_names(&answer)[..2]);
    let strict = Options { threshold: 0.999, ..options() };
    let none = world.route("acme", RouteQuery { options: strict, ..ask("refund invoice") }).await;
    assert!(none.active.is_empty(), "nothing is that near, and nothing is made up");
    assert!(none.degraded.is_empty());
}

#[tokio::test]
async fn a_tool_that_the_intent_names_comes_first() {
    let world = World::new().await;
    let near = |i: usize| tool(&format!("near_{i}"), "refund invoice");
    let mut tools: Vec<_> = (0..20).map(near).collect();
    tools.push(tool("photo_rotate", "weather folder"));
    world.register("acme", server("s", tools)).await;
    for text in ["refund invoice with photo_rotate", "refund invoice, mcp__s__photo_rotate."] {
        let answer = world.route("acme", ask(text)).await;
        assert_eq!(shown(&answer)[0], "photo_rotate", "{text}");
        assert_eq!(answer.active[0].chosen.found_by, FoundBy::Name);
    }
}

#[tokio::test]
async fn what_stands_beside_the_request_names_no_tool() {
    let world = World::new().await;
    let mut tools: Vec<_> = (0..3).map(|i| tool(&format!("near_{i}"), "refund invoice")).collect();
    tools.push(tool("photo_rotate", "weather folder"));
    world.register("acme", server("s", tools)).await;
    let first = async |weight| {
        let result = Intent::new("next call photo_rotate, refund invoice".to_owned(), weight);
        let intents = vec![Intent::new("refund invoice".to_owned(), 1.0), result];
        shown(&world.route("acme", RouteQuery { intents, ..ask("x") }).await)[0].clone()
    };
    assert_eq!(first(1.0).await, "photo_rotate");
    assert_eq!(first(0.5).await, "near_0");
}

#[tokio::test]
async fn the_beginning_of_a_name_names_too_unless_too_many_begin_so() {
    let world = World::new().await;
    let near = |i: usize| tool(&format!("near_{i}"), "refund invoice");
    let mut tools: Vec<_> = (0..20).map(near).collect();
    tools.push(tool("photo_rotate", "weather folder"));
    tools.push(tool("photo_rotate_left", "weather folder"));
    tools.push(tool("photo_scale_up", "weather folder"));
    tools.push(tool("photo_scale_down", "weather folder"));
    world.register("acme", server("s", tools)).await;
    for (text, wanted) in [
        ("refund invoice with photo_scale", vec!["photo_scale_down", "photo_scale_up"]),
        ("refund invoice with photo_rotate", vec!["photo_rotate"]),
        ("refund invoice with s/photo_rotate_left", vec!["photo_rotate_left"]),
    ] {
        let answer = world.route("acme", ask(text)).await;
        let mut named: Vec<_> = shown(&answer)[..wanted.len()].to_vec();
        named.sort();
        assert_eq!(named, wanted, "{text}");
        let by_name = answer.active.iter().filter(|tool| tool.chosen.found_by == FoundBy::Name);
        assert_eq!(by_name.count(), wanted.len(), "{text}");
    }
    let many = world.route("acme", ask("photo weather folder of photo-rotate or near_")).await;
    assert!(many.active.iter().all(|tool| tool.chosen.found_by != FoundBy::Name));
}

#[tokio::test]
async fn each_clause_of_an_intent_is_covered() {
    let world = World::new().await;
    let crowd = |i: usize| tool(&format!("crowd_{i}"), "refund invoice customer email");
    let mut tools: Vec<_> = (0..30).map(crowd).collect();
    tools.push(tool("deploy", "ticket branch"));
    world.register("acme", server("s", tools)).await;
    let text = "refund invoice customer email, and deploy branch tonight";
    let options = Options { top_k: 3, explain: true, ..Options::default() };
    let asked = |intent| RouteQuery { options: options.clone(), ..RouteQuery::of(vec![intent]) };
    let deploy = |answer: &Answer| {
        let ranking = answer.ranking.clone().expect("it was asked for");
        let is_it = |slot: u32| answer.snapshot.tool(slot).id.name.as_str() == "deploy";
        ranking.candidates.into_iter().find(|one| is_it(one.slot)).expect("a candidate")
    };
    let whole = deploy(&world.route("acme", asked(Intent::undivided(text.to_owned(), 1.0))).await);
    assert_eq!(whole.parts.clause, whole.parts.whole, "one clause is the whole");
    let answer = world.route("acme", asked(Intent::new(text.to_owned(), 1.0))).await;
    assert!(shown(&answer).contains(&"deploy".to_owned()), "{:?}", shown(&answer));
    assert!(shown(&answer).iter().any(|name| name.starts_with("crowd_")), "{:?}", shown(&answer));
    let deploy = deploy(&answer);
    assert!(deploy.leads && deploy.parts.clause > 0.9 && deploy.parts.whole < 0.9, "{deploy:?}");
    let blended = 0.5 * deploy.parts.whole + 0.5 * deploy.parts.clause;
    assert!((deploy.score - blended).abs() < 1e-6 && deploy.score > whole.score, "{deploy:?}");
}

#[tokio::test]
async fn no_tool_fits_below_the_level_unless_the_language_may_be_unknown() {
    let world = World::new().await;
    let about = |(i, word): (usize, &&str)| tool(&format!("t{i}"), word);
    world.register("acme", server("s", WORDS.iter().enumerate().map(about).collect())).await;
    let route = |text: &str| {
        let options = Options { explain: true, ..Options::default() };
        let query = RouteQuery { options, ..ask(text) };
        world.route("acme", query)
    };
    let fits = route("refund").await;
    assert!(!fits.active.is_empty());
    let level = fits.ranking.expect("explained").level.0;
    assert!(level > 0.0 && level < 0.9, "the catalog's own level: {level}");
    let none = route("xyzzy plugh fnord").await;
    assert!(none.active.is_empty(), "{:?}", shown(&none));
    let foreign = route("xyzzy plugh fnörd").await;
    assert!(!foreign.active.is_empty());
    assert_eq!(foreign.ranking.expect("explained").level.0, -1.0);
}

#[tokio::test]
async fn each_of_several_intents_is_covered() {
    let world = World::new().await;
    let crowd = |i: usize| tool(&format!("crowd_{i}"), "refund invoice customer");
    let mut tools: Vec<_> = (0..30).map(crowd).collect();
    tools.push(tool("deploy", "deploy a branch"));
    tools.push(tool("meeting", "calendar meeting"));
    world.register("acme", server("s", tools)).await;
    let intent = |text: &str, weight| Intent::new(text.to_owned(), weight);
    let intents = vec![
        intent("refund invoice customer", 5.0),
        intent("deploy a branch please", 1.0),
        intent("calendar meeting tomorrow", 0.1),
    ];
    let options = Options { top_k: 3, ..options() };
    let query = RouteQuery { intents, options, ..ask("") };
    let answer = world.route("acme", query).await;
    let mut names = shown(&answer);
    assert!(names[0].starts_with("crowd_"), "the heaviest intent goes first: {names:?}");
    names.sort();
    assert_eq!(names[1..], ["deploy", "meeting"]);
}

#[tokio::test]
async fn the_same_question_has_the_same_answer() {
    let world = World::new().await;
    let same = |i: usize| tool(&format!("t{i:02}"), "refund invoice");
    world.register("acme", server("s", (0..40).map(same).collect())).await;
    let first = model_names(&world.route("acme", ask("refund invoice")).await);
    let restarted = world.restarted(crate::support::Setup::default()).await;
    for _ in 0..3 {
        assert_eq!(model_names(&world.route("acme", ask("refund invoice")).await), first);
        assert_eq!(model_names(&restarted.route("acme", ask("refund invoice")).await), first);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn ranking_is_what_a_plain_scan_gives(
        descriptions in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 1..5), 1..60),
        intents in prop::collection::vec(prop::collection::vec(0..WORDS.len(), 1..4), 3),
        top_k in 1_usize..20,
        threshold in -0.2_f32..0.9,
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            let text = |words: &Vec<usize>| words.iter().map(|w| WORDS[*w]).collect::<Vec<_>>().join(" ");
            let tools = descriptions.iter().enumerate();
            let tools = tools.map(|(i, words)| tool(&format!("t{i}"), &text(words))).collect();
            world.register("acme", server("s", tools)).await;
            for words in &intents {
                let options = Options { top_k, threshold, ..options() };
                let intent = text(words);
                let answer = world.route("acme", RouteQuery { options, ..ask(&intent) }).await;
                check_against_scan(&answer, &intent, top_k, threshold);
            }
        });
    }
}

/// Checks that all tools above the threshold are chosen (at most `top_k`), and that the best scores come first.
fn check_against_scan(answer: &Answer, intent: &str, top_k: usize, threshold: f32) {
    let query = embed(intent);
    let overlap = |summary: &str| cosine(&query, &embed(summary));
    let all: Vec<f32> = answer.snapshot.tools.iter().map(|tool| overlap(&tool.summary)).collect();
    let near_threshold = |overlap: &f32| (overlap - threshold).abs() < ROUNDING;
    if all.iter().any(near_threshold) {
        return;
    }
    let expected = all.into_iter().filter(|o| *o >= threshold).count().min(top_k);
    let found: Vec<f32> = answer.active.iter().map(|active| active.chosen.overlap).collect();
    assert_eq!(found.len(), expected, "{found:?}");
    assert!(answer.active.is_sorted_by(|a, b| a.chosen.score >= b.chosen.score), "{answer:?}");
    for active in &answer.active {
        assert!(active.chosen.overlap >= threshold, "{found:?}");
        let summary = &answer.snapshot.tool(active.chosen.slot).summary;
        assert!((active.chosen.overlap - overlap(summary)).abs() < ROUNDING, "{summary}");
    }
}

#[tokio::test]
async fn words_count_beside_overlap() {
    let world = World::new().await;
    let parameter =
        json!({"type": "object", "properties": {"iban": {"description": "of the payee"}}});
    let tools = vec![
        tool("first", "refund invoice"),
        tool("second", "refund invoice").schema(parameter),
        tool("other", "photo weather"),
    ];
    world.register("acme", server("s", tools)).await;
    let order = async |text: &str| shown(&world.route("acme", ask(text)).await);
    assert_eq!(
        order("refund invoice").await[0],
        "first",
        "a shorter text, and of equals the first slot"
    );
    assert_eq!(order("refund invoice payee").await[0], "second", "a parameter says so");
    let answer = world.route("acme", ask("refund invoices")).await;
    assert_eq!(shown(&answer)[0], "first", "words are held against each other by their stems");
}

#[tokio::test]
async fn without_a_threshold_tools_are_held_against_the_best() {
    let world = World::new().await;
    let tools = vec![
        tool("refund", "refund invoice"),
        tool("folder", "invoice folder photo metric"),
        tool("weather", "weather calendar"),
    ];
    world.register("acme", server("s", tools)).await;
    let chosen = async |text: &str, options: Options| {
        shown(&world.route("acme", RouteQuery { options, ..ask(text) }).await)
    };
    let product = Options { ratio: Some(0.5), ..options() };
    assert_eq!(
        chosen("refund invoice", product.clone()).await,
        ["refund"],
        "the other is far behind"
    );
    let wide = Options { ratio: Some(0.1), ..options() };
    assert_eq!(chosen("refund invoice", wide).await, ["refund", "folder"]);
    assert!(
        chosen("deploy branch", product.clone()).await.is_empty(),
        "none reaches the threshold"
    );
    world.set_policy("acme", "defaults: {threshold: 0.25}", "").await.unwrap();
    let unset = Unset { top_k: true, threshold: true };
    let both = chosen("refund invoice", Options { unset, ..product }).await;
    assert_eq!(both, ["refund", "folder"], "a threshold that the policy names is for each tool");
}
