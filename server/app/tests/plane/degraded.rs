//! Tests of an encoder that fails, hangs or is late. The ranking then uses words, and the answer says so and arrives in
//! time.

use std::time::{Duration, Instant};

use toolgate_core::error::Error;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::router::ranking::fit::Fit;
use toolgate_routing::router::ranking::rank::FoundBy;
use toolgate_routing::router::route::Degraded;

use crate::support::{Mode, World, ask, call, model_names, options, server, shown, tool};

async fn world() -> World {
    let world = World::new().await;
    let tools = vec![
        tool("refund", "refund an invoice"),
        tool("photo", "weather photo"),
        tool("locked", "refund an invoice").after("approved"),
        tool("secret", "refund an invoice").scope("admin"),
    ];
    world.register("acme", server("s", tools)).await;
    world
}

/// Returns a deadline that is soon enough for a caller, and long before any default deadline. A quarter of the time is
/// left when the encoder is not waited for any more, which is enough on a busy machine.
fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(6))
}

#[tokio::test]
async fn words_decide_when_the_encoder_fails_hangs_or_is_late() {
    let world = world().await;
    for mode in [Mode::Fails, Mode::Hangs, Mode::Late] {
        world.encoder.set(mode);
        let deadline = soon();
        let answer = world.route_within("acme", ask("invoice"), deadline).await;
        let answer = answer.unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        assert!(deadline.is_some_and(|deadline| Instant::now() < deadline), "{mode:?}");
        assert_eq!(answer.degraded, [Degraded::LexicalOnly], "{mode:?}");
        assert_eq!(shown(&answer), ["refund"], "{mode:?}: locked and hidden ones stay out");
        assert_eq!(answer.active[0].chosen.found_by, FoundBy::Words);
        let verdict =
            world.gate_one("acme", &answer.handle, call("mcp__s__refund"), Default::default());
        assert!(verdict.await.is_ok(), "Gate needs no encoder");
    }
    world.encoder.set(Mode::Works);
    assert!(world.route("acme", ask("invoice")).await.degraded.is_empty());
}

#[tokio::test]
async fn without_an_encoder_and_a_shared_word_nothing_is_found() {
    let world = world().await;
    world.encoder.set(Mode::Fails);
    let answer = world.route("acme", ask("zebra")).await;
    assert_eq!(answer.degraded, [Degraded::LexicalOnly]);
    assert!(answer.active.is_empty(), "{:?}", shown(&answer));
    assert_eq!(answer.fit, Fit::Unknown, "not that none fits: who knows");
    assert_eq!(answer.deferral.deferred_tools, 2, "a search is offered");
    let pinned = Options { pinned: vec!["s/photo".to_owned()], ..options() };
    let answer = world.route("acme", RouteQuery { options: pinned, ..ask("zebra") }).await;
    assert_eq!(shown(&answer), ["photo"], "what was asked for by name is there");
}

#[tokio::test]
async fn the_conversation_goes_on_through_a_fault() {
    let world = world().await;
    let first = world.route("acme", ask("refund an invoice")).await;
    world.encoder.set(Mode::Fails);
    let query = RouteQuery { previous: first.handle.clone(), ..ask("weather photo") };
    let second = world.route("acme", query).await;
    assert_eq!(model_names(&second)[..first.active.len()], model_names(&first));
    assert!(shown(&second).contains(&"photo".to_owned()));
}

#[tokio::test]
async fn a_catalog_that_could_not_be_embedded_again_is_ranked_by_words() {
    let world = world().await;
    let other = crate::support::Setup { fingerprint: "fake-2", ..Default::default() };
    let restarted = world.restarted(other).await;
    restarted.encoder.set(Mode::Fails);
    let answer = restarted.route("acme", ask("invoice")).await;
    assert_eq!(
        (shown(&answer), &answer.degraded[..]),
        (vec!["refund".to_owned()], &[Degraded::LexicalOnly][..])
    );
}

#[tokio::test]
async fn a_registration_without_an_encoder_is_taken_and_embedded_later() {
    let world = world().await;
    world.encoder.set(Mode::Fails);
    let changed = vec![tool("refund", "another text"), tool("photo", "weather photo")];
    world.register("acme", server("s", changed)).await;
    let answer = world.route("acme", ask("another")).await;
    assert_eq!(
        (shown(&answer), &answer.degraded[..]),
        (vec!["refund".to_owned()], &[Degraded::LexicalOnly][..])
    );
    world.encoder.set(Mode::Works);
    // As after a restart, missing embeddings are made when the shard is loaded.
    let restarted = world.restarted(crate::support::Setup::default()).await;
    let answer = restarted.route("acme", ask("another")).await;
    assert_eq!((shown(&answer), answer.degraded.len()), (vec!["refund".to_owned()], 0));
    assert_eq!(answer.active[0].chosen.found_by, FoundBy::Overlap);
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_an_error() {
    let world = world().await;
    let passed = Instant::now() - Duration::from_millis(1);
    let answer = world.route_within("acme", ask("invoice"), Some(passed)).await;
    assert!(matches!(answer, Err(Error::DeadlineExceeded)), "{answer:?}");
    assert_eq!(world.encoder.take_count(), 4, "nothing is embedded for a caller who has gone");
}
