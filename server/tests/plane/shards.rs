//! Shards come and go with the memory budget and the process; what they answer does not.

use std::sync::Arc;

use toolgate_server::catalog::registration::Registration;
use toolgate_server::error::Error;
use toolgate_server::router::query::{Options, RouteQuery};
use toolgate_server::shard::tool::Tool;

use crate::support::{Setup, World, ask, model_names, options, server, shown, tenant, tool};

#[tokio::test]
async fn a_budget_too_small_for_any_shard_still_answers() {
    let world = World::new().await;
    for i in 0..8 {
        let name = format!("tenant-{i}");
        world.register(&name, server("s", vec![tool(&format!("t{i}"), "refund invoice")])).await;
    }
    let world = world.restarted(Setup { memory_budget: 1, ..Setup::default() }).await;
    for round in 0..3 {
        for i in 0..8 {
            let answer = world.route(&format!("tenant-{i}"), ask("refund invoice")).await;
            assert_eq!(shown(&answer), [format!("t{i}")], "round {round}");
            assert!(answer.degraded.is_empty());
        }
    }
    assert_eq!(world.encoder.take_count(), 24, "one intent each; rebuilding embeds nothing");
    assert_eq!(world.plane.shards_reading().tenants, 1, "the last one is kept, and no other");
}

#[tokio::test]
async fn a_shard_larger_than_the_budget_is_built_once() {
    let world = World::new().await;
    let tools =
        |name: &str| (0..50).map(|n| tool(&format!("{name}{n}"), "refund invoice")).collect();
    world.register("large", server("s", tools("a"))).await;
    let budget = world.plane.shard_memory_bytes() / 2;
    let world = world.restarted(Setup { memory_budget: budget, ..Setup::default() }).await;
    let first = world.route("large", ask("refund invoice")).await;
    let again = world.route("large", ask("refund invoice")).await;
    assert!(Arc::ptr_eq(&first.snapshot, &again.snapshot), "built anew");
    let more = world.try_register("large", server("t", tools("b"))).await;
    let Err(Error::StockExceeded { limit, actual, maximum }) = more else { panic!("{more:?}") };
    assert_eq!(limit, "shard.memory_budget");
    assert!(actual > maximum && maximum <= budget, "{actual} of {maximum}");
    let fewer = (0..5).map(|n| tool(&format!("a{n}"), "refund invoice")).collect();
    world.try_register("large", server("s", fewer)).await.expect("what makes it smaller is taken");
    assert!(world.plane.shard_memory_bytes() <= budget);
}

#[tokio::test]
async fn one_tenant_may_use_most_of_the_budget() {
    let world = World::new().await;
    let tools = (0..50).map(|n| tool(&format!("a{n}"), "refund invoice")).collect();
    world.register("large", server("s", tools)).await;
    let budget = world.plane.shard_memory_bytes() * 5 / 4;
    let world = world.restarted(Setup { memory_budget: budget, ..Setup::default() }).await;
    let first = world.route("large", ask("refund invoice")).await;
    world
        .plane
        .register(&tenant("small"), server("s", vec![tool("t", "pay")]), None)
        .await
        .expect("a tenant");
    let again = world.route("large", ask("refund invoice")).await;
    assert!(Arc::ptr_eq(&first.snapshot, &again.snapshot), "built anew");
}

#[tokio::test]
async fn the_budget_bounds_what_is_kept() {
    let budget = 200_000;
    let world = World::with(Setup { memory_budget: budget, ..Setup::default() }).await;
    for i in 0..30 {
        let tools = (0..20).map(|n| tool(&format!("t{n}"), "refund invoice")).collect();
        world.register(&format!("tenant-{i}"), server("s", tools)).await;
        assert!(world.plane.shard_memory_bytes() <= budget);
    }
    assert!(world.plane.shard_memory_bytes() > 0, "some shards are kept");
    for i in 0..30 {
        assert_eq!(
            world.route(&format!("tenant-{i}"), ask("refund invoice")).await.active.len(),
            10
        );
    }
}

#[tokio::test]
async fn a_restart_encodes_nothing_again() {
    let world = World::new().await;
    let tools = (0..50).map(|i| tool(&format!("t{i}"), &format!("refund invoice {i}"))).collect();
    world.register("acme", server("s", tools)).await;
    assert_eq!(world.encoder.take_count(), 50);
    let before = model_names(&world.route("acme", ask("refund invoice 7")).await);
    let restarted = world.restarted(Setup::default()).await;
    assert_eq!(model_names(&restarted.route("acme", ask("refund invoice 7")).await), before);
    assert_eq!(restarted.encoder.take_count(), 1, "the intent alone");
}

#[tokio::test]
async fn only_new_and_changed_summaries_are_encoded() {
    let world = World::new().await;
    let described = |texts: &[&str]| {
        let tools = texts.iter().enumerate().map(|(i, text)| tool(&format!("t{i}"), text));
        server("s", tools.collect())
    };
    world.register("acme", described(&["one", "two", "three"])).await;
    assert_eq!(world.encoder.take_count(), 3);
    world.register("acme", described(&["one", "two", "three"])).await;
    assert_eq!(world.encoder.take_count(), 0);
    world.register("acme", described(&["one", "2", "three", "four"])).await;
    assert_eq!(world.encoder.take_count(), 2);
}

#[tokio::test]
async fn another_encoder_embeds_the_catalog_once() {
    let world = World::new().await;
    let tools = (0..150).map(|i| tool(&format!("t{i}"), &format!("refund {i}"))).collect();
    world.register("acme", server("s", tools)).await;
    let second = Setup { fingerprint: "fake-2", ..Setup::default() };
    let other = world.restarted(second.clone()).await;
    let (a, b) =
        tokio::join!(other.route("acme", ask("refund")), other.route("acme", ask("refund")));
    assert_eq!(model_names(&a), model_names(&b));
    assert_eq!(other.encoder.take_count(), 152, "every summary once, and two intents");
    let again = world.restarted(second).await;
    again.route("acme", ask("refund")).await;
    assert_eq!(again.encoder.take_count(), 1, "they were kept");
}

const GENERATIONS: u64 = 30;

/// Twelve tools that all say of which generation they are.
fn generation(n: u64) -> Registration {
    let tools = (0..12).map(|i| tool(&format!("t{i}"), &format!("refund generation{n}")));
    server("s", tools.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn routes_beside_registrations_see_one_state_each() {
    let world = Arc::new(World::new().await);
    world.register("acme", generation(0)).await;
    let readers: Vec<_> =
        (0..4).map(|_| tokio::spawn(read_to_the_end(Arc::clone(&world)))).collect();
    for n in 1..GENERATIONS {
        let revision = world.register("acme", generation(n)).await;
        // What was acknowledged is routed from then on.
        let seen = world.route("acme", ask("refund")).await;
        assert!(seen.snapshot.revision >= revision);
        assert!(seen.snapshot.tools[0].summary.ends_with(&format!("generation{n}")));
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Routes until the last generation is there.
async fn read_to_the_end(world: Arc<World>) {
    let mut newest = 0;
    while newest < GENERATIONS {
        let everything = Options { top_k: 100, threshold: -1.0, ..options() };
        let query = RouteQuery { options: everything, ..ask("refund") };
        let answer = world.route("acme", query).await;
        let tools = &answer.snapshot.tools;
        assert_eq!((tools.len(), answer.active.len()), (12, 12));
        let said = |tool: &Tool| tool.summary.rsplit(' ').next().map(str::to_owned);
        assert!(tools.iter().all(|tool| said(tool) == said(&tools[0])), "half of a change");
        assert!(answer.snapshot.revision >= newest, "a reader went back in time");
        newest = answer.snapshot.revision;
        // Nothing here waits, so nothing else would have a turn.
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn registrations_of_one_server_at_once_all_count() {
    let world = Arc::new(World::new().await);
    let tasks: Vec<_> = (0..6)
        .map(|i| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let mut registration = server("s", vec![tool(&format!("t{i}"), "refund")]);
                registration.mode = toolgate_server::catalog::plan::Mode::Merge;
                world.register("acme", registration).await
            })
        })
        .collect();
    let mut revisions = Vec::new();
    for task in tasks {
        revisions.push(task.await.unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, [1, 2, 3, 4, 5, 6], "each has a revision of its own");
    assert_eq!(world.route("acme", ask("refund")).await.snapshot.tools.len(), 6);
}
