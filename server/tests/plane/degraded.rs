//! An encoder that fails, hangs or is late: words decide, the answer says so, and it comes in time.

use std::time::{Duration, Instant};

use toolgate_server::error::Error;
use toolgate_server::router::query::{Options, RouteQuery};
use toolgate_server::router::rank::FoundBy;
use toolgate_server::router::route::Degraded;

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

/// In good time for a caller, and long before any default deadline.
fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(2))
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
async fn an_intent_that_shares_no_word_still_gets_tools() {
    let world = world().await;
    world.encoder.set(Mode::Fails);
    let answer = world.route("acme", ask("zebra")).await;
    let mut names = shown(&answer);
    names.sort();
    assert_eq!(names, ["photo", "refund"], "never none because of a fault; never a locked one");
    let fewer = Options { top_k: 1, ..options() };
    assert_eq!(
        world.route("acme", RouteQuery { options: fewer, ..ask("zebra") }).await.active.len(),
        1
    );
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
async fn a_registration_that_needs_the_encoder_fails_whole() {
    let world = world().await;
    world.encoder.set(Mode::Fails);
    let changed = vec![tool("refund", "another text"), tool("photo", "weather photo")];
    let error = world.try_register("acme", server("s", changed)).await.unwrap_err();
    assert!(matches!(error, Error::EncoderUnavailable(_)), "{error}");
    assert_eq!(
        world.route("acme", ask("invoice")).await.snapshot.tools.len(),
        4,
        "nothing was stored"
    );
    // What needs no new embedding is taken.
    let fewer = vec![tool("photo", "weather photo")];
    world.register("acme", server("s", fewer)).await;
}

#[tokio::test]
async fn a_deadline_that_has_passed_is_an_error() {
    let world = world().await;
    let passed = Instant::now() - Duration::from_millis(1);
    let answer = world.route_within("acme", ask("invoice"), Some(passed)).await;
    assert!(matches!(answer, Err(Error::DeadlineExceeded)), "{answer:?}");
    assert_eq!(world.encoder.take_count(), 4, "nothing is embedded for a caller who has gone");
}
