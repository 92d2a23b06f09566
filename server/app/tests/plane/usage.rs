//! Tests of the usage counted by Route and Gate for each tenant, and of the decision events.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolgate_app::logging;
use toolgate_config::{LogConfig, LogFormat, LogLevel};
use toolgate_core::identity::TenantId;
use toolgate_core::state::AgentState;
use toolgate_routing::gate::calls::Call;
use toolgate_routing::router::query::{Listing, Options, RouteQuery};
use toolgate_routing::router::route::Answer;
use toolgate_routing::usage::{Amounts, Deferral};
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{Setup, ToolText, World, ask, call, look_for, options, server, tool};

async fn used(world: &World, tenant: &str) -> Amounts {
    let tenant = TenantId::parse(tenant).unwrap();
    world.plane.usage.read(&tenant, 0..u32::MAX, None).await.unwrap().total
}

fn forty() -> Vec<ToolText> {
    (0..40).map(|i| tool(&format!("t{i}"), &format!("refund invoice number {i}"))).collect()
}

#[tokio::test]
async fn turns_and_verdicts_are_added_up() {
    let world = World::new().await;
    world.register("acme", server("s", forty())).await;
    world.register("other", server("s", forty())).await;
    let first = world.route("acme", ask("refund")).await;
    let kept = RouteQuery { previous: first.handle.clone(), ..ask("refund") };
    let second = world.route("acme", kept).await;
    let shown = first.snapshot.tool(first.active[0].chosen.slot).model_name.to_string();
    let calls = vec![call(&shown), call("nothing"), call("nothing")];
    world.gate("acme", &second.handle, calls, AgentState::default()).await;
    world.gate("acme", "forged", vec![call(&shown)], AgentState::default()).await;

    let used_by_acme = used(&world, "acme").await;
    let one = first.account;
    let two = second.account;
    assert!(one.phase2 > 0 && one.phase2 == two.phase2);
    assert_eq!(used_by_acme.route_calls, 2);
    assert_eq!(used_by_acme.full_tokens, one.full_catalog + two.full_catalog);
    assert_eq!(used_by_acme.phase1_tokens, one.phase1 + two.phase1);
    assert_eq!(used_by_acme.phase2_tokens, one.phase2 + two.phase2);
    assert_eq!(used_by_acme.new_tokens, one.phase2, "the second turn showed nothing new");
    assert_eq!(used_by_acme.saved_net(), one.saved() + two.saved());
    assert_eq!(used_by_acme.allowed_calls, 1);
    let refused: Vec<_> = used_by_acme.refused.iter().map(|(c, n)| (c.as_ref(), *n)).collect();
    assert_eq!(refused, [("HANDLE_INVALID", 1), ("UNKNOWN_TOOL", 2)]);
    assert_eq!(used(&world, "other").await, Amounts::default());

    let again = world.restarted(Setup::default()).await;
    assert_eq!(used(&again, "acme").await, used_by_acme);
}

#[tokio::test]
async fn what_is_sent_on_demand_is_counted() {
    let world = World::new().await;
    world.register("acme", server("s", forty())).await;
    let found = world.search("acme", look_for("select:t1,t2")).await;
    let state = AgentState::default();
    let fetched = world.schemas("acme", &["mcp__s__t3"], &state, &found.handle).await.unwrap();
    let sent = found.tools.iter().chain(&fetched.tools).map(|tool| u64::from(tool.tokens));
    let used = used(&world, "acme").await;
    assert_eq!((used.lookup_calls, used.on_demand_tokens), (2, sent.sum()));
    assert!(used.on_demand_tokens > 0 && used.route_calls == 0);
    let spent = i64::try_from(used.on_demand_tokens).unwrap();
    assert_eq!((used.saved_gross(), used.saved_net()), (0, -spent));
}

#[tokio::test]
async fn failed_calls_count_nothing() {
    let world = World::new().await;
    world.register("acme", server("s", forty())).await;
    let stranger = RouteQuery { previous: "forged".into(), ..ask("refund") };
    world.try_route("acme", stranger).await.unwrap_err();
    world.try_route("nobody", ask("refund")).await.unwrap_err();
    assert_eq!(used(&world, "acme").await, Amounts::default());
}

#[tokio::test]
async fn a_catalog_that_is_used_whole_did_not_pay() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("t", "refund invoice")])).await;
    let whole = Options { threshold: -1.0, ..options() };
    let listing = Some(Listing::Summaries);
    world.route("acme", RouteQuery { options: whole, listing, ..ask("refund invoice") }).await;
    let used = used(&world, "acme").await;
    assert_eq!(Deferral::of(&used), Deferral::MostToolsUsed);
    assert!(used.saved_net() < 0);
}

/// Buffer of log output.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Makes a Route call and a Gate call of the tenant `watched`, with many words that must not be logged.
async fn watched_turn(world: &World) -> Answer {
    let mut registration = server("s", forty());
    registration.server.required_scopes = vec!["zanzibarscope".into()];
    world.register("watched", registration).await;
    world.register("watched", server("open", vec![tool("t", "refund invoice")])).await;
    let state = || AgentState {
        scopes: ["zanzibarother".to_owned()].into(),
        milestones: ["zanzibarmilestone".to_owned()].into(),
        ..AgentState::default()
    };
    let asked = RouteQuery { turn_id: "turn-1".into(), state: state(), ..ask("refund zanzibar") };
    let turn = world.route("watched", asked).await;
    let arguments = r#"{"secret": "zanzibarargument"}"#.to_owned();
    let calls = vec![
        Call { tool: "zanzibartool".into(), arguments, ..Call::default() },
        call("mcp__open__t"),
    ];
    world.gate("watched", &turn.handle, calls, state()).await;
    turn
}

#[tokio::test]
async fn decision_events_say_everything_but_words_of_users() {
    // The subscriber is global, because the filter of events is cached for the whole process and not for a thread.
    let log = Log::default();
    let wanted = logging::filter(LogConfig {
        level: LogLevel::Debug,
        format: LogFormat::Json,
        intents: false,
    });
    let format = tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(wanted);
    format.with_writer(log.clone()).init();
    let turn = watched_turn(&World::new().await).await;

    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(!log.contains("zanzibar") && !log.contains(&turn.handle), "{log}");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ours: Vec<_> = events.filter(|event| event["tenant"] == "watched").collect();
    let of = |name: &str| ours.iter().find(|event| event["message"] == name).unwrap();
    let route = of("route");
    assert_eq!(route["turn"], "turn-1");
    assert_eq!((&route["hidden"], &route["locked"]), (&40.into(), &0.into()));
    assert_eq!((&route["level"], &route["active"]), (&"INFO".into(), &"mcp__open__t".into()));
    assert_eq!(route["candidates"], 1);
    // At level info, only the short record is logged.
    let scores = of("route scores");
    assert_eq!((&scores["turn"], &scores["revision"]), (&route["turn"], &route["revision"]));
    assert_eq!(scores["embedding"].as_str().unwrap().len(), 16);
    // Each entry has the name, the overlap, the score and the share of words.
    for (list, parts) in [("candidates", 4), ("active", 3)] {
        let named = scores[list].as_str().unwrap();
        assert!(named.starts_with("mcp__open__t:"), "{list}: {named}");
        assert_eq!(named.split(':').count(), parts, "{named}");
    }
    assert_eq!(route["phase1_tokens"], turn.account.phase1);
    assert_eq!(route["phase2_tokens"], turn.account.phase2);
    assert_eq!(route["full_tokens"], turn.account.full_catalog);
    assert!(route["micros"].is_u64());
    let gate = of("gate");
    assert_eq!((&gate["allowed"], &gate["refused"]), (&1.into(), &"UNKNOWN_TOOL:1".into()));
    assert!(gate["micros"].is_u64());
}
