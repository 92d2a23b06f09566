//! Fleets of real processes that misbehave.

use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::connection::{CallError, Connection, Outgoing};
use crate::target::Upstream;

mod per_user;

const SERVER: &str = include_str!("test_server.py");

/// Time in which everything here must happen. Nothing waits for it unless it fails.
const LONG: Duration = Duration::from_secs(60);

fn entry(name: &str) -> Entry {
    let Ok(Upstream::Process(mut launch)) = Upstream::parse("python3 -c") else {
        panic!("a command");
    };
    launch.arguments.push(SERVER.to_owned());
    let pauses = Pauses {
        first: Duration::from_millis(1),
        last: Duration::from_millis(5),
        ..Pauses::default()
    };
    let limits = Limits { start_timeout: LONG, call_timeout: LONG, pauses, ..Limits::default() };
    Entry { name: name.to_owned(), upstream: Upstream::Process(launch), limits, waits_for: None }
}

fn with_variable(mut entry: Entry, name: &str, value: &str) -> Entry {
    let Upstream::Process(launch) = &mut entry.upstream else { panic!("a process") };
    launch.environment.insert(name.to_owned(), value.to_owned());
    entry
}

/// Times so short that tests need not wait.
fn tuning() -> Tuning {
    Tuning {
        list_gap: Duration::from_millis(20),
        circuit: Duration::from_millis(5),
        leave: LONG,
        ..Tuning::default()
    }
}

fn fleet(entries: Vec<Entry>) -> Fleet {
    Fleet::start_tuned(entries, tuning(), None)
}

fn tool(name: &str) -> Request {
    tool_with(name, &json!({}), "someone")
}

fn tool_with(name: &str, arguments: &Value, principal: &str) -> Request {
    let Value::Object(params) = json!({"name": name, "arguments": arguments}) else {
        panic!("an object");
    };
    Request {
        method: "tools/call".to_owned(),
        params,
        principal: principal.to_owned(),
        progress: None,
        asker: None,
        requester: None,
        sent: None,
        process: None,
    }
}

fn later() -> Instant {
    Instant::now() + LONG
}

/// Calls a tool. `null` stands for a result that this library can't read.
async fn ask(fleet: &Fleet, server: &str, name: &str) -> Result<Value, RequestError> {
    let result = fleet.request(server, tool(name), later()).await?;
    Ok(serde_json::from_str(result.get()).unwrap_or_default())
}

/// Waits until a server's status is as it should be.
async fn until(fleet: &Fleet, server: &str, is_right: impl Fn(&ServerStatus) -> bool) {
    let mut changes = fleet.changes();
    let waiting = async {
        loop {
            let status = fleet.status();
            if status.iter().any(|status| status.name == server && is_right(status)) {
                return;
            }
            changes.changed().await.expect("a change");
        }
    };
    let waited = tokio::time::timeout(LONG, waiting).await;
    assert!(waited.is_ok(), "{:?}", fleet.status());
}

/// Asks a server for its state until it is as it should be.
async fn until_state(fleet: &Fleet, server: &str, is_right: impl Fn(&Value) -> bool) -> Value {
    let waiting = async {
        loop {
            let state = ask(fleet, server, "state").await.expect("an answer");
            if is_right(&state) {
                return state;
            }
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the state")
}

fn is_ready(status: &ServerStatus) -> bool {
    status.state == ServerState::Ready
}

/// Moves the clock on, so that all waits of this time are over at once. It stands still while nothing can happen, and goes on as
/// before: what processes do takes its time, and nothing waits for it.
fn leap(time: Duration) {
    tokio::time::pause();
    let leaped = tokio::time::advance(time).now_or_never();
    assert!(leaped.is_none(), "it gives way to others, once it has moved the clock");
    tokio::time::resume();
}

/// Ends a fleet with a process that leaves by SIGTERM alone: the time that it has to leave by itself is over at once.
async fn close_by_signal(fleet: &Fleet) {
    let mut closing = Box::pin(fleet.close());
    meanwhile(&mut closing, settle()).await;
    leap(LONG);
    closing.await;
}

/// Waits until a process that is stopped has been sent SIGTERM, which waits until it goes on.
async fn until_asked_to_leave(pid: &Value) {
    let terminate = 1_u64 << (rustix::process::Signal::TERM.as_raw() - 1);
    let is_asked = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let pending = pending.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        pending.is_some_and(|bits| bits & terminate != 0)
    };
    let waiting = async {
        while !is_asked() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("a signal");
}

/// Has the times pass that a stopped process has to leave: by itself, and after SIGTERM.
async fn outlast_stopped(pid: &Value) {
    settle().await;
    leap(LONG);
    until_asked_to_leave(pid).await;
    settle().await;
    leap(LONG);
}

/// Has all tasks do what they can.
async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Has a call go on until something has happened.
async fn meanwhile<T: std::fmt::Debug>(
    call: &mut (impl Future<Output = T> + Unpin),
    happening: impl Future<Output = ()>,
) {
    tokio::select! {
        outcome = call => panic!("{outcome:?}"),
        () = happening => {}
    }
}

/// Waits until processes of the server `a` have written a text to standard error so many times.
async fn until_said(fleet: &Fleet, text: &str, times: usize) {
    let waiting = async {
        while fleet.logs("a", None).expect("logs").matches(text).count() < times {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("a line");
}

/// Has a server hang in a call, whose time is over then.
async fn hang(call: impl Future<Output = Result<Value, RequestError>>, fleet: &Fleet) {
    let mut call = Box::pin(call);
    meanwhile(&mut call, until_said(fleet, "it hangs", 1)).await;
    meanwhile(&mut call, settle()).await;
    leap(LONG);
    let error = call.await.expect_err("an error");
    assert!(matches!(error, RequestError::Timeout { .. }), "{error:?}");
}

async fn until_gone(pid: &Value) {
    let waiting = async {
        while runs(pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the process ends");
}

/// Waits until a process is stopped by a signal.
async fn until_stopped(pid: &Value) {
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    let waiting = async {
        while !is_stopped() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("a stopped process");
}

/// Returns whether a process runs. One that nobody has reaped yet has ended.
fn runs(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
    state.is_some_and(|state| state != b'Z' && state != b'X')
}

fn kill(pid: &Value) {
    let pid = i32::try_from(pid.as_i64().expect("a process id")).expect("a process id");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process id");
    let _gone = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[tokio::test]
async fn results_and_definitions_keep_their_bytes() {
    let fleet = fleet(vec![entry("a")]);
    let result = fleet.request("a", tool("echo"), later()).await.expect("a result");
    let echo = SERVER
        .split("ECHO = (")
        .nth(1)
        .expect("the text of ECHO")
        .split(")\n")
        .next()
        .expect("its end");
    let lines = echo.lines().filter_map(|line| line.trim().strip_prefix('\'')?.strip_suffix('\''));
    let expected = lines.collect::<String>().replace("\\\\", "\\");
    assert_eq!(result.get(), expected);
    let listing = fleet.listing("a").expect("a listing");
    assert_eq!(listing.tools[1].get(), r#"{"name":"t1", "inputSchema":{"type":"object"},"x":1.0}"#);
    assert_eq!(listing.identity.name, "misbehaving");
    assert_eq!(listing.instructions.as_deref(), Some("Mind the gap."));
    assert_eq!(listing.capabilities["tools"]["listChanged"], true);
    let status = &fleet.status()[0];
    assert_eq!((status.tools, status.transport, status.restarts), (2, "stdio", 0));
    assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
    fleet.close().await;
}

#[tokio::test]
async fn servers_that_hang_at_their_start_keep_no_other_from_it() {
    let hanging = |number: usize| {
        let upstream = Upstream::parse("sleep 600").expect("a command");
        Entry { name: format!("hanging-{number}"), upstream, ..entry("") }
    };
    let mut entries: Vec<Entry> = (0..SPAWNS_MAX).map(hanging).collect();
    entries.push(entry("a"));
    let quick = Tuning { spawn: Duration::from_millis(1), ..tuning() };
    let fleet = Fleet::start_tuned(entries, quick, None);
    until(&fleet, "a", is_ready).await;
    let starting = |status: &ServerStatus| status.state == ServerState::Starting;
    assert_eq!(fleet.status().iter().filter(|status| starting(status)).count(), SPAWNS_MAX);
    fleet.close().await;
}

#[tokio::test]
async fn errors_of_a_server_are_its_own() {
    let fleet = fleet(vec![entry("a")]);
    let error = ask(&fleet, "a", "refuse").await.expect_err("an error");
    let data = Some(json!({"why": [1]}));
    assert_eq!(error, RequestError::Server { code: -32123, message: "no".to_owned(), data });
    let mut unknown = tool("echo");
    unknown.method = "no/such".to_owned();
    let error = fleet.request("a", unknown, later()).await.expect_err("an error");
    assert!(matches!(error, RequestError::Server { code: -32601, .. }), "{error:?}");
    assert_eq!(ask(&fleet, "b", "echo").await.expect_err("an error"), RequestError::Unknown);
    fleet.close().await;
}

#[tokio::test]
async fn a_killed_server_fails_its_calls_and_comes_back() {
    let fleet = fleet(vec![entry("a")]);
    let before = ask(&fleet, "a", "state").await.expect("an answer");
    let error = ask(&fleet, "a", "die").await.expect_err("an error");
    let has_run = matches!(error, RequestError::Unavailable { may_have_run: true, .. });
    assert!(has_run, "{error:?}");
    assert_eq!(fleet.listing("a").expect("a listing").tools.len(), 2);
    let after = ask(&fleet, "a", "state").await.expect("an answer");
    assert_ne!(before["pid"], after["pid"]);
    assert_eq!(fleet.status()[0].restarts, 1);
    let error = ask(&fleet, "a", "half").await.expect_err("an error");
    assert!(matches!(error, RequestError::Unavailable { .. }), "{error:?}");
    ask(&fleet, "a", "state").await.expect("an answer");
    fleet.close().await;
}

#[tokio::test]
async fn a_thousand_calls_through_kills_all_end() {
    let fleet =
        fleet(vec![Entry { limits: Limits { queue: 1_000, ..entry("a").limits }, ..entry("a") }]);
    until(&fleet, "a", is_ready).await;
    let mut calls = tokio::task::JoinSet::new();
    let mut failed = 0;
    for number in 0..1_000 {
        let fleet = fleet.clone();
        let name = if fastrand::u32(..200) == 0 { "die" } else { "echo" };
        let request = tool_with(name, &json!({}), &(number % 7).to_string());
        calls.spawn(async move { fleet.request("a", request, later()).await });
        while calls.len() > 50 {
            failed += usize::from(
                calls.join_next().await.expect("a call").expect("a task that ends").is_err(),
            );
        }
    }
    while let Some(outcome) = calls.join_next().await {
        match outcome.expect("a task that ends") {
            Ok(_) => {}
            Err(RequestError::Unavailable { .. }) => failed += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(failed < 1_000);
    until(&fleet, "a", is_ready).await;
    ask(&fleet, "a", "echo").await.expect("an answer");
    fleet.close().await;
}

#[tokio::test]
async fn a_stopped_process_times_out_and_costs_others_nothing() {
    let fleet = fleet(vec![entry("a"), entry("b")]);
    until(&fleet, "a", is_ready).await;
    let pid = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
    ask(&fleet, "b", "echo").await.expect("an answer");
    let mut stopped = Box::pin(ask(&fleet, "a", "stop"));
    meanwhile(&mut stopped, until_stopped(&pid)).await;
    meanwhile(&mut stopped, settle()).await;
    leap(LONG);
    let error = stopped.await.expect_err("an error");
    assert!(matches!(error, RequestError::Timeout { .. }), "{error:?}");
    let second = Duration::from_secs(1);
    let mut late = Box::pin(fleet.request("a", tool("echo"), Instant::now() + second));
    meanwhile(&mut late, settle()).await;
    leap(second);
    let error = late.await.expect_err("an error");
    assert!(matches!(error, RequestError::Timeout { after } if after < LONG), "{error:?}");
    ask(&fleet, "b", "echo").await.expect("an answer");
    assert!(fleet.restart("a"));
    outlast_stopped(&pid).await;
    until_gone(&pid).await;
    until(&fleet, "a", |status| status.restarts == 1 && is_ready(status)).await;
    fleet.close().await;
}

#[tokio::test]
async fn a_silent_server_is_probed_and_replaced() {
    let fleet = fleet(vec![entry("a")]);
    until(&fleet, "a", is_ready).await;
    // It is silent for as long as well.
    hang(ask(&fleet, "a", "hang"), &fleet).await;
    until_said(&fleet, "it ignores ping", 1).await;
    settle().await;
    leap(LONG);
    until(&fleet, "a", |status| status.restarts == 1 && is_ready(status)).await;
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_answers_nothing_is_replaced_though_calls_wait() {
    let fleet = fleet(vec![entry("a")]);
    until(&fleet, "a", is_ready).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..8 {
        let fleet = fleet.clone();
        calls.spawn(async move {
            loop {
                let request = tool_with("hold", &json!({}), &number.to_string());
                let _timeout = fleet.request("a", request, later()).await.expect_err("an error");
            }
        });
    }
    hang(ask(&fleet, "a", "hang"), &fleet).await;
    // Others that waited for their turn are there.
    until_said(&fleet, "it ignores tools/call", 1).await;
    until_said(&fleet, "it ignores ping", 1).await;
    settle().await;
    leap(LONG);
    until(&fleet, "a", |status| status.restarts == 1 && is_ready(status)).await;
    calls.shutdown().await;
    ask(&fleet, "a", "echo").await.expect("an answer");
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_is_busy_with_a_call_is_not_replaced() {
    let mut busy = entry("a");
    busy.limits.call_timeout = LONG * 100;
    busy.limits.call_timeout_max = LONG * 100;
    let far = later() + LONG * 100;
    let times = tuning();
    let fleet = Fleet::start_tuned(vec![busy], times, None);
    until(&fleet, "a", is_ready).await;
    // It answers while the call waits.
    let mut hold = Box::pin(fleet.request("a", tool("hold"), far));
    for pings in 1..=3 {
        // What it answers before was heard by then.
        let answered = async {
            ask(&fleet, "a", "state").await.expect("an answer");
            settle().await;
        };
        meanwhile(&mut hold, answered).await;
        leap(times.silence);
        meanwhile(&mut hold, until_said(&fleet, "it is pinged", pings)).await;
    }
    ask(&fleet, "a", "release").await.expect("an answer");
    hold.await.expect("an answer");
    // It does one thing at a time, so that no probe is answered before the call.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("go");
    let waiting = tool_with("wait", &json!({"file": file}), "someone");
    let mut waiting = Box::pin(fleet.request("a", waiting, far));
    meanwhile(&mut waiting, until_said(&fleet, "it waits", 1)).await;
    for time in [times.silence, times.probe, times.probe] {
        meanwhile(&mut waiting, settle()).await;
        leap(time);
    }
    meanwhile(&mut waiting, settle()).await;
    std::fs::write(file, "").expect("a file");
    waiting.await.expect("an answer");
    assert_eq!(fleet.status()[0].restarts, 0);
    fleet.close().await;
}

#[tokio::test]
async fn a_result_beyond_the_limit_ends_its_call_and_not_the_server() {
    let mut small = entry("a");
    small.limits.result_bytes_max = 1 << 20;
    let fleet = fleet(vec![small]);
    let huge = tool_with("huge", &json!({"mebibytes": 100}), "someone");
    let error = fleet.request("a", huge, later()).await.expect_err("an error");
    assert_eq!(error, RequestError::TooLarge { limit: 1 << 20 });
    ask(&fleet, "a", "echo").await.expect("an answer");
    assert_eq!(fleet.status()[0].restarts, 0);
    fleet.close().await;
}

#[tokio::test]
async fn a_flood_on_standard_error_keeps_its_end() {
    let fleet = fleet(vec![entry("a")]);
    ask(&fleet, "a", "flood").await.expect("an answer");
    let waiting = async {
        while !fleet.logs("a", None).expect("logs").ends_with("the end\n") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("the end");
    assert_eq!(fleet.logs("a", None).expect("logs").len(), 64 << 10);
    fleet.close().await;
}

#[tokio::test]
async fn a_full_queue_is_busy() {
    let mut narrow = entry("a");
    narrow.limits.concurrency = 2;
    narrow.limits.queue = 1;
    let fleet = fleet(vec![narrow]);
    until(&fleet, "a", is_ready).await;
    let mut hold = Box::pin(fleet.request("a", tool("hold"), later()));
    assert!(futures_util::poll!(hold.as_mut()).is_pending());
    until_state(&fleet, "a", |state| state["held"] != json!([])).await;
    let mut second = Box::pin(fleet.request("a", tool("hold"), later()));
    let mut queued = Box::pin(fleet.request("a", tool("echo"), later()));
    assert!(futures_util::poll!(second.as_mut()).is_pending());
    assert!(futures_util::poll!(queued.as_mut()).is_pending());
    let error = ask(&fleet, "a", "echo").await.expect_err("an error");
    assert!(matches!(error, RequestError::Busy { .. }), "{error:?}");
    drop(hold);
    assert!(queued.await.is_ok());
    drop(second);
    fleet.close().await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let fleet = fleet(vec![entry("a")]);
    until(&fleet, "a", is_ready).await;
    let mut hold = Box::pin(fleet.request("a", tool("hold"), later()));
    assert!(futures_util::poll!(hold.as_mut()).is_pending());
    let state = until_state(&fleet, "a", |state| state["held"] != json!([])).await;
    drop(hold);
    let held = state["held"][0].as_str().expect("text").parse::<i64>().expect("a number");
    until_state(&fleet, "a", |state| state["cancelled"] == json!([held])).await;
    fleet.close().await;
}

#[tokio::test]
async fn progress_and_messages_reach_the_caller() {
    let fleet = fleet(vec![entry("a")]);
    let (sender, mut progress) = mpsc::channel(8);
    let request = Request { progress: Some(sender), ..tool("progress") };
    let mut calling = Box::pin(fleet.request("a", request, later()));
    tokio::select! {
        outcome = &mut calling => panic!("{outcome:?}"),
        told = progress.recv() => {
            let told = told.expect("a note");
            assert_eq!((&told["progress"], &told["unknown"]), (&json!(1), &json!(2)));
        }
    }
    tokio::select! {
        outcome = &mut calling => panic!("{outcome:?}"),
        told = progress.recv() => assert_eq!(told.expect("a note")["data"], "a line"),
    }
    ask(&fleet, "a", "release").await.expect("an answer");
    assert_eq!(calling.await.expect("a result").get(), r#"{"released":true}"#);
    fleet.close().await;
}

/// Calls the tool that tells of progress and then says something. Returns whether the caller hears that.
async fn hears_a_line(fleet: &Fleet, principal: &str, notes: usize) -> bool {
    let (sender, mut told) = mpsc::channel(8);
    let request =
        Request { progress: Some(sender), ..tool_with("progress", &json!({}), principal) };
    let releasing = async {
        let mut lines = Vec::new();
        for _ in 0..notes {
            lines.push(told.recv().await.expect("a note"));
        }
        ask(fleet, "a", "release").await.expect("an answer");
        while let Ok(note) = told.try_recv() {
            lines.push(note);
        }
        lines.iter().any(|note| note["data"] == "a line")
    };
    let (_result, is_heard) = tokio::join!(fleet.request("a", request, later()), releasing);
    is_heard
}

#[tokio::test]
async fn nobody_hears_what_may_be_about_a_call_that_another_gave_up() {
    let fleet = fleet(vec![entry("a")]);
    let mut holding = Box::pin(fleet.request("a", tool_with("hold", &json!({}), "ann"), later()));
    tokio::select! {
        outcome = &mut holding => panic!("{outcome:?}"),
        _held = until_state(&fleet, "a", |state| state["held"] != json!([])) => {}
    }
    drop(holding);
    until_state(&fleet, "a", |state| state["cancelled"] != json!([])).await;
    assert!(!hears_a_line(&fleet, "bob", 1).await);
    assert!(hears_a_line(&fleet, "ann", 2).await);
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_starts_is_waited_for_until_the_deadline() {
    let mut slow = entry("a");
    let Upstream::Process(launch) = &mut slow.upstream else { panic!("a process") };
    launch.arguments[1] = "import sys; sys.stdin.read()".to_owned();
    let fleet = fleet(vec![slow, entry("b")]);
    let second = Duration::from_secs(1);
    let mut waiting = Box::pin(fleet.request("a", tool("echo"), Instant::now() + second));
    meanwhile(&mut waiting, settle()).await;
    leap(second);
    let error = waiting.await.expect_err("an error");
    let is_starting = matches!(
        error,
        RequestError::Unavailable { state: ServerState::Starting, may_have_run: false, .. }
    );
    assert!(is_starting, "{error:?}");
    ask(&fleet, "b", "echo").await.expect("an answer");
    fleet.close().await;
    assert!(fleet.status().iter().all(|status| status.state == ServerState::Stopped));
}

#[tokio::test]
async fn a_connection_alone_tells_changes_and_its_end() {
    let mut connection = Connection::open(&entry("a").upstream).await.expect("a connection");
    assert_eq!(connection.tools().await.expect("a list of tools").len(), 2);
    let call = |request: Request| Outgoing {
        method: request.method,
        params: request.params,
        progress: None,
        principal: None,
        asking: None,
        idle: LONG,
        deadline: later(),
        span: toolgate_telemetry::McpSpan::untraced(),
    };
    let more = tool_with("tools", &json!({"number": 5}), "someone");
    connection.call(call(more)).await.expect("a result");
    tokio::time::timeout(LONG, connection.changed())
        .await
        .expect("a change in time")
        .expect("a change");
    assert_eq!(connection.tools().await.expect("a list of tools").len(), 5);
    connection.mark_changed();
    connection.changed().await.expect("a change");
    let lost = connection.call(call(tool("die"))).await.expect_err("an error");
    assert!(matches!(lost, CallError::Lost { may_have_run: true, .. }), "{lost:?}");
    let ended = tokio::time::timeout(LONG, connection.changed()).await.expect("a change in time");
    assert!(ended.is_err());
    connection.close().await;
}

#[tokio::test]
async fn progress_gives_a_call_more_time_up_to_its_maximum() {
    let mut patient = entry("a");
    patient.limits.call_timeout_max = LONG * 3;
    let fleet = fleet(vec![patient]);
    until(&fleet, "a", is_ready).await;
    // What it tells while the clock is moved is dropped.
    let (sender, mut told) = mpsc::channel(1);
    let ticking = tool_with("tick", &json!({"pause": 0.001}), "someone");
    let ticking = Request { progress: Some(sender), ..ticking };
    let mut ticking = Box::pin(fleet.request("a", ticking, later() + LONG * 10));
    let mut leaps = 0;
    let error = loop {
        tokio::select! {
            biased;
            outcome = &mut ticking => break outcome.expect_err("an error"),
            note = told.recv() => {
                note.expect("a note");
                leaps += 1;
                leap(LONG * 3 / 4);
            }
        }
    };
    assert!(matches!(error, RequestError::Timeout { .. }), "{error:?}");
    assert!((4..8).contains(&leaps), "it had its longest time, and no more: {leaps}");
    close_by_signal(&fleet).await;
}

#[tokio::test]
async fn a_storm_of_changes_makes_few_lists() {
    let fleet = fleet(vec![entry("a")]);
    ask(&fleet, "a", "storm").await.expect("an answer");
    ask(&fleet, "a", "storm").await.expect("an answer");
    let state = until_state(&fleet, "a", |state| state["lists"].as_i64() >= Some(2)).await;
    // Of 2,000 changes.
    assert!(state["lists"].as_i64() < Some(500), "{state}");
    fleet.close().await;
}

#[tokio::test]
async fn changed_tools_are_listed_and_an_empty_list_counts_when_it_comes_again() {
    let fleet = fleet(vec![entry("a")]);
    until(&fleet, "a", is_ready).await;
    let number = |number: i32| tool_with("tools", &json!({"number": number}), "someone");
    fleet.request("a", number(5), later()).await.expect("a result");
    until(&fleet, "a", |status| status.tools == 5).await;
    let lists = ask(&fleet, "a", "state").await.expect("an answer")["lists"].as_i64();
    fleet.request("a", number(0), later()).await.expect("a result");
    until_state(&fleet, "a", |state| state["lists"].as_i64() > lists).await;
    assert_eq!(fleet.status()[0].tools, 5);
    fleet.request("a", number(0), later()).await.expect("a result");
    until(&fleet, "a", |status| status.tools == 0).await;
    fleet.close().await;
}

#[tokio::test]
async fn nothing_is_left_after_close() {
    let fleet = fleet(vec![entry("a"), entry("b")]);
    let mut pids = Vec::new();
    for server in ["a", "b"] {
        pids.push(ask(&fleet, server, "state").await.expect("an answer")["pid"].clone());
        pids.push(ask(&fleet, server, "child").await.expect("an answer")["pid"].clone());
    }
    assert!(pids.iter().all(runs));
    let mut stopped = Box::pin(ask(&fleet, "b", "stop"));
    meanwhile(&mut stopped, until_stopped(&pids[2])).await;
    drop(stopped);
    let mut closing = Box::pin(fleet.close());
    meanwhile(&mut closing, outlast_stopped(&pids[2])).await;
    closing.await;
    let gone = async {
        while pids.iter().any(runs) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("no process");
    assert!(fleet.status().iter().all(|status| status.state == ServerState::Stopped));
}

#[tokio::test]
async fn entries_come_and_go_one_by_one() {
    let fleet = fleet(vec![entry("a"), entry("b")]);
    let same = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
    let left = ask(&fleet, "b", "state").await.expect("an answer")["pid"].clone();
    let mut hold = Box::pin(fleet.request("b", tool("hold"), later()));
    assert!(futures_util::poll!(hold.as_mut()).is_pending());
    fleet.apply(vec![with_variable(entry("c"), "TOOLS", "3"), entry("a")]);
    let names: Vec<_> = fleet.status().into_iter().map(|status| status.name).collect();
    assert_eq!(names, ["c", "a"]);
    until(&fleet, "c", |status| status.tools == 3).await;
    assert_eq!(ask(&fleet, "a", "state").await.expect("an answer")["pid"], same);
    assert_eq!(ask(&fleet, "b", "state").await.expect_err("an error"), RequestError::Unknown);
    assert!(runs(&left));
    drop(hold);
    let gone = async {
        while runs(&left) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("no process");
    fleet.close().await;
}

#[tokio::test]
async fn a_changed_entry_keeps_its_process_for_the_tasks_that_it_runs() {
    for is_older in [true, false] {
        let fleet = fleet(vec![entry("a")]);
        let old = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
        let task = begin(&fleet, is_older).await;
        fleet.apply(vec![with_variable(entry("a"), "TOOLS", "3")]);
        until(&fleet, "a", |status| is_ready(status) && status.tools == 3).await;
        let new = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
        assert_ne!(new, old, "it takes no new calls");
        // The new process knows no such task.
        about(&fleet, "tasks/get", &task).await;
        assert!(runs(&old));
        about(&fleet, "tasks/cancel", &task).await;
        until_gone(&old).await;
        assert!(runs(&new));
        fleet.close().await;
    }
}

#[tokio::test]
async fn the_process_of_a_changed_entry_ends_in_the_time_of_a_call_with_its_fleet_or_its_entry() {
    for end in ["time", "fleet", "entry"] {
        let fleet = fleet(vec![entry("a")]);
        let old = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
        begin(&fleet, false).await;
        if end == "entry" {
            fleet.apply(Vec::new());
            until_gone(&old).await;
            continue;
        }
        let changed = with_variable(entry("a"), "TOOLS", "3");
        let longest = changed.limits.call_timeout_max;
        fleet.apply(vec![changed]);
        until(&fleet, "a", |status| is_ready(status) && status.tools == 3).await;
        assert!(runs(&old));
        if end == "time" {
            leap(longest);
            until_gone(&old).await;
        }
        fleet.close().await;
        assert!(!runs(&old), "{end}");
    }
}

#[tokio::test]
async fn a_task_is_asked_for_at_its_own_process_though_another_has_its_id() {
    let fleet = fleet(vec![entry("a")]);
    let state = |name: &str| json!({"is_older": false, "state": {"statusMessage": name}});
    let begin = async |name: &str| {
        let sent = Arc::new(Sent::default());
        let call = tool_with("begin", &state(name), "someone");
        let call = Request { sent: Some(Arc::clone(&sent)), ..call };
        let begun = fleet.request("a", call, later()).await.expect("a task");
        let begun: Value = serde_json::from_str(begun.get()).expect("JSON");
        (begun["taskId"].clone(), sent.process().expect("a process"))
    };
    let ask_for = async |task: &Value, process| {
        let Value::Object(params) = json!({"taskId": task}) else { panic!("an object") };
        let method = "tasks/get".to_owned();
        let request = Request { method, params, process: Some(process), ..tool("") };
        let state = fleet.request("a", request, later()).await?;
        let state: Value = serde_json::from_str(state.get()).expect("JSON");
        Ok::<Value, RequestError>(state["statusMessage"].clone())
    };
    let (first, old) = begin("first").await;
    fleet.apply(vec![with_variable(entry("a"), "TOOLS", "3")]);
    until(&fleet, "a", |status| is_ready(status) && status.tools == 3).await;
    let (second, new) = begin("second").await;
    assert_eq!(first, second, "processes count alike");
    assert_eq!(ask_for(&first, old).await, Ok(json!("first")));
    assert_eq!(ask_for(&second, new).await, Ok(json!("second")));
    let [status] = &fleet.status()[..] else { panic!("one server") };
    let [leaving] = status.leaving[..] else { panic!("{:?}", status.leaving) };
    assert_eq!((leaving.calls, leaving.tasks), (0, 1));
    assert!(leaving.ends_within <= entry("a").limits.call_timeout_max);
    // What was begun in a process that has ended is nobody else's task.
    let pid = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
    assert!(fleet.restart("a"));
    until_gone(&pid).await;
    until(&fleet, "a", |status| is_ready(status) && status.leaving.is_empty()).await;
    let (third, _) = begin("third").await;
    assert_eq!(third, first);
    for process in [old, new] {
        let refused = ask_for(&third, process).await.expect_err("an error");
        assert!(matches!(refused, RequestError::Server { code: -32602, .. }), "{refused:?}");
    }
    fleet.close().await;
}

#[tokio::test]
async fn a_restart_ends_what_a_changed_entry_left_behind() {
    let fleet = fleet(vec![entry("a")]);
    let old = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
    begin(&fleet, false).await;
    fleet.apply(vec![with_variable(entry("a"), "TOOLS", "3")]);
    until(&fleet, "a", |status| is_ready(status) && status.tools == 3).await;
    assert!(runs(&old));
    assert!(fleet.restart("a"));
    until_gone(&old).await;
    fleet.close().await;
}

/// Begins a task, and returns its ID.
async fn begin(fleet: &Fleet, is_older: bool) -> Value {
    let begin = tool_with("begin", &json!({"is_older": is_older, "state": {}}), "someone");
    let begun = fleet.request("a", begin, later()).await.expect("a task");
    let begun: Value = serde_json::from_str(begun.get()).expect("JSON");
    let task = if is_older { &begun["task"] } else { &begun };
    task["taskId"].clone()
}

/// Sends a request about a task.
async fn about(fleet: &Fleet, method: &str, task: &Value) {
    let Value::Object(params) = json!({"taskId": task}) else { panic!("an object") };
    let request = Request { method: method.to_owned(), params, ..tool("") };
    fleet.request("a", request, later()).await.expect("an answer");
}

#[tokio::test]
async fn a_server_that_cannot_start_says_why_and_is_tried_again() {
    let fleet = fleet(vec![with_variable(entry("a"), "FAIL", "1")]);
    let says_why = |status: &ServerStatus| {
        let problem = status.problem.as_deref().unwrap_or_default();
        status.restarts >= 3
            && problem
                == "the handshake failed: it ended (exit status: 1); its standard error ends with: it fails on purpose"
    };
    until(&fleet, "a", says_why).await;
    let error = ask(&fleet, "a", "echo").await.expect_err("an error");
    let is_refused = matches!(error, RequestError::Unavailable { may_have_run: false, .. });
    assert!(is_refused, "{error:?}");
    fleet.close().await;
}

#[tokio::test]
async fn a_server_that_tells_no_newer_revision_is_asked_for_an_older_one() {
    for answer in ["nonsense", "older"] {
        let fleet = fleet(vec![with_variable(entry("a"), "DISCOVER", answer)]);
        ask(&fleet, "a", "echo").await.expect("an answer");
        assert_eq!(
            fleet.listing("a").expect("a listing").identity.protocol,
            "2025-11-25",
            "{answer}"
        );
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_server_is_asked_for_its_era_once_and_again_when_it_speaks_another() {
    let fleet = fleet(vec![entry("a")]);
    let first = ask(&fleet, "a", "state").await.expect("an answer");
    assert_eq!(first["discoveries"], 1);
    kill(&first["pid"]);
    let again = until_state_of_another(&fleet, &first).await;
    assert_eq!(again["discoveries"], 0, "it is known");
    fleet.apply(vec![with_variable(entry("a"), "DISCOVER", "alone")]);
    let modern = |status: &ServerStatus| status.protocol.as_deref() == Some("2026-07-28");
    until(&fleet, "a", |status| is_ready(status) && modern(status)).await;
    assert_eq!(fleet.status()[0].restarts, 0, "what was known is tried, and then each");
    fleet.apply(vec![entry("a")]);
    until(&fleet, "a", |status| is_ready(status) && !modern(status)).await;
    fleet.close().await;
}

/// Asks a server for its state until another process answers.
async fn until_state_of_another(fleet: &Fleet, before: &Value) -> Value {
    let waiting = async {
        loop {
            match ask(fleet, "a", "state").await {
                Ok(state) if state["pid"] != before["pid"] => return state,
                // The end of the first one is not noticed yet, or has just been.
                _ => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("another process")
}

#[tokio::test]
async fn a_call_ends_a_pause_once() {
    let mut slow = entry("a");
    let pauses = slow.limits.pauses;
    slow.limits.pauses = Pauses { first: LONG * 60, last: LONG * 60, ..pauses };
    let fleet = Fleet::start_tuned(vec![slow.clone()], tuning(), None);
    let pid = ask(&fleet, "a", "state").await.expect("an answer")["pid"].clone();
    kill(&pid);
    until(&fleet, "a", |status| status.state == ServerState::Waiting).await;
    assert_ne!(ask(&fleet, "a", "state").await.expect("an answer")["pid"], pid);
    fleet.apply(vec![with_variable(slow, "FAIL", "1")]);
    until(&fleet, "a", |status| status.state == ServerState::Waiting).await;
    assert_eq!(fleet.listing("a").expect("a listing").tools.len(), 2);
    for _ in 0..3 {
        let error = ask(&fleet, "a", "echo").await.expect_err("an error");
        assert!(matches!(error, RequestError::Unavailable { .. }), "{error:?}");
    }
    assert_eq!(fleet.status()[0].restarts, 1);
    fleet.close().await;
}

#[tokio::test]
async fn a_lazy_server_lists_its_tools_and_is_started_by_the_first_call() {
    let mut lazy = entry("a");
    lazy.limits.start = Start::Lazy;
    let fleet = fleet(vec![lazy]);
    until(&fleet, "a", |status| status.state == ServerState::Idle).await;
    assert_eq!((fleet.status()[0].tools, fleet.status()[0].restarts), (2, 0));
    ask(&fleet, "a", "echo").await.expect("an answer");
    let status = &fleet.status()[0];
    assert_eq!((status.state, status.restarts), (ServerState::Ready, 1));
    fleet.close().await;
}

#[tokio::test]
async fn changes_of_roots_that_come_together_are_told_once() {
    let mut asking = entry("a");
    asking.limits.own_connections = 1;
    let fleet = fleet(vec![asking]);
    let capabilities = json!({"roots": {"listChanged": true}});
    let asker = Asker { host: "h".to_owned(), capabilities, questions: mpsc::channel(1).0 };
    let request = Request { asker: Some(asker), ..tool("state") };
    fleet.request("a", request, later()).await.expect("an answer");
    let tasks = &fleet.0.surroundings.tasks;
    let before = tasks.len();
    for _ in 0..1_000 {
        fleet.roots_changed("someone", "h");
    }
    assert_eq!(tasks.len(), before + 1);
    fleet.close().await;
}
