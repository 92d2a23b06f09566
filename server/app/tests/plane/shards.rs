//! Tests that shards are loaded and evicted by the memory budget and by restarts, without any effect on answers.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolgate_core::error::Error;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::router::query::{Options, RouteQuery};
use toolgate_routing::shard::tool::Tool;

use crate::support::{
    Setup, ToolText, World, ask, model_names, options, server, shown, tenant, tool,
};

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
    assert_eq!(world.plane.shards_reading().tenants, 1, "one is kept, and no other");
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
async fn two_large_tenants_are_built_once_each() {
    let world = World::new().await;
    for name in ["first", "second"] {
        world.register(name, server("s", refunds(0..50))).await;
    }
    let budget = world.plane.shard_memory_bytes() * 5 / 6;
    world.register("small", server("s", refunds(0..1))).await;
    let minutes = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let passed = Arc::clone(&minutes);
    let clock = move || begun + Duration::from_secs(60 * passed.load(Ordering::SeqCst));
    let shards = world.shards(budget, Arc::new(clock)).await;
    let tenants = [tenant("first"), tenant("second")];
    let mut built = Vec::new();
    for tenant in &tenants {
        built.push(shards.get(tenant, 0).await.expect("a shard"));
    }
    for _ in 0..5 {
        for (tenant, first) in tenants.iter().zip(&built) {
            let again = shards.get(tenant, 0).await.expect("a shard");
            assert!(Arc::ptr_eq(first, &again), "{tenant:?} was built anew");
        }
    }
    let bytes = shards.memory_bytes();
    assert!((budget + 1..=2 * budget).contains(&bytes), "{bytes} of {budget}");
    minutes.fetch_add(60, Ordering::SeqCst);
    shards.get(&tenant("small"), 0).await.expect("a shard");
    assert!(shards.memory_bytes() <= budget, "they were worth their building");
}

#[tokio::test]
async fn new_shards_are_not_pushed_out_and_take_no_more_than_twice_the_budget() {
    let world = World::new().await;
    let names = ["first", "second", "third"];
    for name in names {
        world.register(name, server("s", refunds(0..50))).await;
    }
    let budget = world.plane.shard_memory_bytes() / 3 * 11 / 10;
    let begun = Instant::now();
    let shards = world.shards(budget, Arc::new(move || begun)).await;
    let mut built = Vec::new();
    for name in names {
        built.push(shards.get(&tenant(name), 0).await.expect("a shard"));
        assert!(shards.memory_bytes() <= 2 * budget);
    }
    for (name, first) in names.into_iter().zip(&built) {
        let again = shards.get(&tenant(name), 0).await.expect("a shard");
        assert_eq!(Arc::ptr_eq(first, &again), name != "third", "{name}");
    }
}

#[tokio::test]
async fn of_two_shards_larger_than_the_budget_each_is_kept_for_its_time() {
    let world = World::new().await;
    for name in ["first", "second"] {
        world.register(name, server("s", refunds(0..50))).await;
    }
    world.register("small", server("s", refunds(0..1))).await;
    let budget = world.plane.shard_memory_bytes() / 3;
    let minutes = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let passed = Arc::clone(&minutes);
    let clock = move || begun + Duration::from_secs(60 * passed.load(Ordering::SeqCst));
    let shards = world.shards(budget, Arc::new(clock)).await;
    let get = async |name| shards.get(&tenant(name), 0).await.expect("a shard");
    let small = get("small").await;
    let first = get("first").await;
    get("second").await;
    assert!(Arc::ptr_eq(&first, &get("first").await), "the other one pushed it out");
    minutes.fetch_add(60, Ordering::SeqCst);
    let second = get("second").await;
    assert!(Arc::ptr_eq(&second, &get("second").await), "its turn has come");
    assert!(Arc::ptr_eq(&small, &get("small").await), "who is small is not pushed out");
}

#[tokio::test]
async fn what_is_not_loaded_is_held_to_the_budget_too() {
    let world = World::new().await;
    world.register("large", server("s", refunds(0..50))).await;
    let budget = world.plane.shard_memory_bytes() * 17 / 16;
    let world = world.restarted(Setup { memory_budget: budget, ..Setup::default() }).await;
    let more = server("t", refunds(100..110));
    assert!(more.body.len() as u64 * 34 < budget, "the body alone is small");
    let more = world.try_register("large", more).await;
    let Err(Error::StockExceeded { limit, .. }) = more else { panic!("{more:?}") };
    assert_eq!(limit, "shard.memory_budget");
}

#[tokio::test]
async fn a_large_shard_is_built_within_the_share_for_a_caller_too() {
    let world = World::new().await;
    for (name, tools) in [("a", 0..2_000), ("b", 2_000..4_000), ("c", 4_000..5_001)] {
        world.register("large", server(name, refunds(tools))).await;
    }
    world.register("small", server("s", refunds(0..1))).await;
    let world = world.restarted(Setup::default()).await;
    let share = world.plane.catalog.share();
    world.route("small", ask("refund invoice")).await;
    assert_eq!(share.begun(), 0);
    world.route("large", ask("refund invoice")).await;
    assert_eq!(share.begun(), 1);
}

#[tokio::test]
async fn what_registrations_compare_and_load_is_done_within_the_share() {
    let world = World::new().await;
    world.register("acme", server("s", refunds(0..50))).await;
    let begun = world.plane.catalog.share().begun();
    world.register("acme", server("s", refunds(0..50))).await;
    let again = world.plane.catalog.share().begun() - begun;
    assert_eq!(again, 2, "the check of the body, and the comparison with what is stored");
    let world = world.restarted(Setup::default()).await;
    world.register("acme", server("s", refunds(0..50))).await;
    let after_restart = world.plane.catalog.share().begun();
    assert_eq!(after_restart, 3, "and before these the shard, which tells how much room there is");
}

/// Returns tools that differ only in their numbers.
fn refunds(numbers: Range<usize>) -> Vec<ToolText> {
    numbers.map(|n| tool(&format!("a{n}"), "refund invoice")).collect()
}

#[tokio::test]
async fn the_budget_bounds_what_is_kept() {
    let budget = 200_000;
    let world = World::with(Setup { memory_budget: budget, ..Setup::default() }).await;
    for i in 0..30 {
        let tools = (0..20).map(|n| tool(&format!("t{n}"), "refund invoice")).collect();
        world.register(&format!("tenant-{i}"), server("s", tools)).await;
        assert!(world.plane.shard_memory_bytes() <= 2 * budget, "twice while they are new");
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

/// Returns twelve tools that all name their generation.
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
        // An acknowledged registration is routed from then on.
        let seen = world.route("acme", ask("refund")).await;
        assert!(seen.snapshot.revision >= revision);
        assert!(seen.snapshot.tools[0].summary.ends_with(&format!("generation{n}")));
    }
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Routes until the last generation is served.
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
        // No call here waits, so nothing else would get to run.
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
                registration.mode = toolgate_routing::catalog::plan::Mode::Merge;
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
