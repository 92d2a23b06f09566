//! Servers that have a process for each principal.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Returns a fleet of one server with so many processes at most, all of them any principal's.
fn for_each(processes: usize, idle: Duration, tuning: Tuning) -> Fleet {
    for_each_of(entry("a"), processes, idle, tuning)
}

fn for_each_of(mut server: Entry, processes: usize, idle: Duration, tuning: Tuning) -> Fleet {
    server.limits.start =
        Start::PerUser(PerUser { processes, of_principal: processes, idle, homes: None });
    Fleet::start_tuned(vec![server], tuning, None)
}

async fn ask_as(
    fleet: &Fleet,
    principal: &str,
    name: &str,
    deadline: Instant,
) -> Result<Value, RequestError> {
    let request = tool_with(name, &json!({}), principal);
    let result = fleet.request("a", request, deadline).await?;
    Ok(serde_json::from_str(result.get()).unwrap_or_default())
}

/// Returns the identifier of a principal's process.
async fn process_of(fleet: &Fleet, principal: &str) -> Value {
    ask_as(fleet, principal, "state", later()).await.expect("an answer")["pid"].clone()
}

#[tokio::test]
async fn each_principal_has_a_process_that_nobody_else_uses() {
    let fleet = for_each(8, LONG * 10, tuning());
    until(&fleet, "a", |status| status.state == ServerState::Idle).await;
    assert_eq!(fleet.listing("a").expect("a listing").tools.len(), 2);
    let anns = process_of(&fleet, "acme/ann").await;
    let bobs = process_of(&fleet, "acme/bob").await;
    assert_ne!(anns, bobs);
    assert_eq!(process_of(&fleet, "acme/ann").await, anns);
    let status = &fleet.status()[0];
    assert_eq!((status.state, status.restarts), (ServerState::Idle, 0), "nobody's has ended");
    assert!(fleet.restart("a"));
    until_gone(&anns).await;
    until_gone(&bobs).await;
    until(&fleet, "a", |status| status.state == ServerState::Idle && status.restarts == 1).await;
    let again = process_of(&fleet, "acme/ann").await;
    fleet.close().await;
    assert!(!runs(&again));
}

#[tokio::test]
async fn processes_are_bounded_and_an_idle_one_makes_place() {
    let fleet = for_each(1, LONG * 10, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    let bobs = process_of(&fleet, "acme/bob").await;
    assert!(!runs(&anns), "it has ended before another is started");
    let request = tool_with("hold", &json!({}), "acme/bob");
    let held = tokio::spawn({
        let fleet = fleet.clone();
        async move { fleet.request("a", request, later()).await }
    });
    let is_held = async {
        while ask_as(&fleet, "acme/bob", "state", later()).await.expect("an answer")["held"]
            == json!([])
        {}
    };
    tokio::time::timeout(LONG, is_held).await.expect("a call that runs");
    let refused = ask_as(&fleet, "acme/ann", "state", later()).await;
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    ask_as(&fleet, "acme/bob", "release", later()).await.expect("an answer");
    held.await.expect("an end").expect("an answer");
    assert_eq!(process_of(&fleet, "acme/bob").await, bobs);
    assert_ne!(process_of(&fleet, "acme/ann").await, anns);
    fleet.close().await;
}

#[tokio::test]
async fn a_process_that_nobody_uses_ends() {
    let fleet = for_each(8, Duration::from_millis(1), tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    until_gone(&anns).await;
    assert_ne!(process_of(&fleet, "acme/ann").await, anns);
    fleet.close().await;
}

/// Begins a task in a principal's process, and returns its ID.
async fn begin(fleet: &Fleet, principal: &str, is_older: bool, state: Value) -> Value {
    let arguments = json!({"is_older": is_older, "state": state});
    let request = tool_with("begin", &arguments, principal);
    let result = fleet.request("a", request, later()).await.expect("a task");
    let begun: Value = serde_json::from_str(result.get()).expect("JSON");
    let task = if is_older { &begun["task"] } else { &begun };
    task["taskId"].clone()
}

/// Returns the answer to a request about a task of a principal's process.
async fn about(fleet: &Fleet, principal: &str, method: &str, task: &Value) -> Value {
    let Value::Object(params) = json!({"taskId": task}) else { panic!("an object") };
    let request = tool_with("", &json!({}), principal);
    let request = Request { method: method.to_owned(), params, ..request };
    let answer = fleet.request("a", request, later()).await.expect("an answer");
    serde_json::from_str(answer.get()).expect("JSON")
}

/// Has a task of a principal's process end, and asks for its state.
async fn end(fleet: &Fleet, principal: &str, task: &Value) {
    let request = tool_with("end", &json!({"task": task}), principal);
    fleet.request("a", request, later()).await.expect("an answer");
    assert_eq!(about(fleet, principal, "tasks/get", task).await["status"], "completed");
}

#[tokio::test]
async fn a_process_makes_no_place_while_its_task_runs() {
    for is_older in [true, false] {
        let fleet = for_each(1, LONG * 10, tuning());
        let anns = process_of(&fleet, "acme/ann").await;
        let task = begin(&fleet, "acme/ann", is_older, json!({})).await;
        let refused = ask_as(&fleet, "acme/bob", "state", later()).await;
        assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
        end(&fleet, "acme/ann", &task).await;
        let refused = ask_as(&fleet, "acme/bob", "state", later()).await;
        assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
        about(&fleet, "acme/ann", "tasks/result", &task).await;
        process_of(&fleet, "acme/bob").await;
        assert!(!runs(&anns));
        fleet.close().await;
    }
}

#[tokio::test]
async fn a_process_is_not_silent_while_its_task_runs() {
    let idle = LONG * 10;
    let fleet = for_each(8, idle, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    let task = begin(&fleet, "acme/ann", true, json!({"ttl": null})).await;
    for _ in 0..3 {
        leap(idle);
        settle().await;
    }
    assert_eq!(process_of(&fleet, "acme/ann").await, anns);
    end(&fleet, "acme/ann", &task).await;
    leap(idle);
    until_gone(&anns).await;
    let anns = process_of(&fleet, "acme/ann").await;
    begin(&fleet, "acme/ann", false, json!({"ttlMs": 1_000})).await;
    leap(idle);
    until_gone(&anns).await;
    fleet.close().await;
}

#[tokio::test]
async fn a_process_that_hangs_is_ended_and_another_takes_its_place() {
    let fleet = for_each(8, LONG * 10, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    hang(ask_as(&fleet, "acme/ann", "hang", later() + LONG), &fleet).await;
    assert_ne!(process_of(&fleet, "acme/ann").await, anns);
    assert!(!runs(&anns));
    fleet.close().await;
}

/// Has a principal's process run a call until the returned task is aborted.
async fn hold(fleet: &Fleet, principal: &str) -> tokio::task::JoinHandle<()> {
    let sent = Arc::new(Sent::default());
    let request = tool_with("hold", &json!({}), principal);
    let request = Request { sent: Some(Arc::clone(&sent)), ..request };
    let fleet = fleet.clone();
    let held = tokio::spawn(async move {
        let _ended = fleet.request("a", request, later()).await;
    });
    let is_sent = async {
        while !sent.is_sent() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, is_sent).await.expect("a call that runs");
    held
}

#[tokio::test]
async fn who_has_most_in_the_tenant_that_has_most_gives_way() {
    let fleet = for_each(3, LONG * 10, tuning());
    let others = process_of(&fleet, "other/eve").await;
    let anns = process_of(&fleet, "acme/ann").await;
    let bobs = process_of(&fleet, "acme/bob").await;
    process_of(&fleet, "third/zoe").await;
    assert!(runs(&others) && runs(&bobs), "each tenant has one");
    assert!(!runs(&anns));
    fleet.close().await;
}

#[tokio::test]
async fn a_tenant_whose_calls_hold_every_place_leaves_one_to_another() {
    let fleet = for_each(3, LONG * 10, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    let first = hold(&fleet, "acme/ann").await;
    let others = [hold(&fleet, "acme/bob").await, hold(&fleet, "acme/carl").await];
    let refused = ask_as(&fleet, "acme/dora", "state", later()).await;
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    let mut eves = Box::pin(process_of(&fleet, "other/eve"));
    tokio::select! {
        biased;
        pid = &mut eves => panic!("{pid} has no place"),
        () = settle() => {}
    }
    assert!(runs(&anns), "its call goes on");
    first.abort();
    let eves = eves.await;
    assert!(!runs(&anns));
    let eve = hold(&fleet, "other/eve").await;
    let refused = ask_as(&fleet, "acme/ann", "state", later()).await;
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    assert_eq!(process_of(&fleet, "other/eve").await, eves);
    for held in others.into_iter().chain([eve]) {
        held.abort();
    }
    fleet.close().await;
}

#[tokio::test]
async fn a_tenant_whose_tasks_hold_every_place_leaves_one_to_another() {
    let fleet = for_each(2, LONG * 10, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    let bobs = process_of(&fleet, "acme/bob").await;
    for principal in ["acme/ann", "acme/bob"] {
        begin(&fleet, principal, true, json!({"ttl": null})).await;
    }
    let refused = ask_as(&fleet, "acme/carl", "state", later()).await;
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    let eves = process_of(&fleet, "other/eve").await;
    assert!(!runs(&anns) && runs(&bobs), "the one that was used least lately");
    begin(&fleet, "other/eve", true, json!({"ttl": null})).await;
    let refused = ask_as(&fleet, "acme/ann", "state", later()).await;
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    assert!(runs(&eves), "each tenant has one");
    fleet.close().await;
}

#[tokio::test]
async fn who_waits_for_a_place_in_vain_is_told_that_the_server_is_busy() {
    let fleet = for_each(2, LONG * 10, tuning());
    let held = [hold(&fleet, "acme/ann").await, hold(&fleet, "acme/bob").await];
    let waiting = tokio::spawn({
        let fleet = fleet.clone();
        async move { ask_as(&fleet, "other/eve", "state", later() + LONG).await }
    });
    settle().await;
    leap(LONG);
    let refused = waiting.await.expect("an end");
    assert!(matches!(refused, Err(RequestError::Busy { .. })), "{refused:?}");
    for held in held {
        held.abort();
    }
    fleet.close().await;
}

/// Returns a fleet as `for_each` does, and the most processes of principals that ran at the start of one.
fn watched_for_each(processes: usize) -> (Fleet, Arc<AtomicUsize>) {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let started = Mutex::new(Vec::new());
    let watching = Processes::default().with_start(move |process| {
        if process.principal.is_some() {
            let mut started = started.lock();
            started.push(json!(process.id));
            seen.fetch_max(started.iter().filter(|pid| runs(pid)).count(), Ordering::Relaxed);
        }
    });
    let mut server = entry("a");
    let far = LONG * 100_000;
    let of = PerUser { processes, of_principal: processes, idle: far, homes: None };
    let times = Limits { call_timeout: far, call_timeout_max: far, ..server.limits };
    server.limits = Limits { start: Start::PerUser(of), ..times };
    // A process ends by itself once its input does.
    (Fleet::start_watched(vec![server], tuning(), None, watching, Eras::default()), most)
}

fn asking(name: &str, principal: &str) -> Request {
    let capabilities = json!({"elicitation": {}});
    let asker = Asker { host: "h".to_owned(), capabilities, questions: mpsc::channel(1).0 };
    Request { asker: Some(asker), ..tool_with(name, &json!({}), principal) }
}

#[tokio::test]
async fn a_list_comes_from_the_process_that_the_principal_used_last() {
    let fleet = for_each(8, LONG * 10, tuning());
    let ask = async |name: &str, principal: &str| {
        let answer = fleet.request("a", asking(name, principal), later()).await;
        serde_json::from_str::<Value>(answer.expect("an answer").get()).expect("JSON")
    };
    let list = async |principal: &str| {
        let request = tool_with("", &json!({}), principal);
        let request = Request { method: "tools/list".to_owned(), ..request };
        fleet.request("a", request, later()).await.expect("a list");
    };
    let lists = async |principal: &str| ask("state", principal).await["lists"].clone();
    assert_eq!(lists("acme/ann").await, 0);
    list("acme/ann").await;
    assert_eq!(lists("acme/ann").await, 1);
    assert_eq!(lists("acme/bob").await, 0);
    list("acme/bob").await;
    assert_eq!((lists("acme/ann").await, lists("acme/bob").await), (json!(1), json!(1)));
    fleet.close().await;
}

#[tokio::test]
async fn a_changed_entry_keeps_a_principals_process_for_the_task_that_it_runs() {
    let fleet = for_each(8, LONG * 10, tuning());
    let anns = process_of(&fleet, "acme/ann").await;
    let bobs = process_of(&fleet, "acme/bob").await;
    let task = begin(&fleet, "acme/ann", false, json!({})).await;
    let mut changed = fleet.entry("a").expect("an entry");
    changed.limits.queue += 1;
    fleet.apply(vec![changed]);
    until_gone(&bobs).await;
    assert_ne!(process_of(&fleet, "acme/ann").await, anns, "it takes no new calls");
    assert_eq!(about(&fleet, "acme/ann", "tasks/get", &task).await["status"], "working");
    assert!(runs(&anns));
    about(&fleet, "acme/ann", "tasks/cancel", &task).await;
    until_gone(&anns).await;
    fleet.close().await;
}

#[tokio::test]
async fn a_process_whose_call_was_given_up_has_ended_before_another_starts() {
    let (fleet, most) = watched_for_each(1);
    let sent = Arc::new(Sent::default());
    let request = Request { sent: Some(Arc::clone(&sent)), ..asking("hold", "acme/ann") };
    let mut held = Box::pin(fleet.request("a", request, later()));
    let is_sent = async {
        while !sent.is_sent() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        outcome = &mut held => panic!("{outcome:?}"),
        () = is_sent => {}
    }
    drop(held);
    fleet.request("a", asking("state", "acme/ann"), later()).await.expect("an answer");
    assert_eq!(most.load(Ordering::Relaxed), 1);
    fleet.close().await;
}

#[tokio::test]
async fn a_process_that_closed_its_output_has_ended_before_another_starts() {
    let (fleet, most) = watched_for_each(1);
    until(&fleet, "a", |status| status.state == ServerState::Idle).await;
    let anns = process_of(&fleet, "acme/ann").await;
    let far = Instant::now() + LONG * 100_000;
    let mut muting = Box::pin(ask_as(&fleet, "acme/ann", "mute", far));
    let lost = loop {
        // It has some time to end by itself, which is over.
        leap(Duration::from_secs(1));
        tokio::select! {
            biased;
            lost = &mut muting => break lost,
            () = settle() => {}
        }
    };
    assert!(matches!(lost, Err(RequestError::Unavailable { .. })), "{lost:?}");
    assert_ne!(process_of(&fleet, "acme/ann").await, anns);
    assert_eq!(most.load(Ordering::Relaxed), 1);
    fleet.close().await;
}

#[tokio::test]
async fn failures_of_one_principals_process_cost_nobody_else_anything() {
    let fleet = for_each(8, LONG * 10, Tuning { circuit: LONG, ..tuning() });
    for _ in 0..5 {
        let lost = ask_as(&fleet, "acme/ann", "die", later()).await;
        assert!(matches!(lost, Err(RequestError::Unavailable { .. })), "{lost:?}");
    }
    let refused = ask_as(&fleet, "acme/ann", "state", later()).await.expect_err("an open circuit");
    assert!(refused.to_string().contains("one after another"), "{refused}");
    process_of(&fleet, "acme/bob").await;
    fleet.close().await;
}

#[tokio::test]
async fn a_caller_is_told_no_path_of_a_home_folder() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut server = entry("a");
    let homes = Some(file.path().to_owned());
    let of = PerUser { processes: 1, of_principal: 1, idle: LONG * 10, homes };
    server.limits.start = Start::PerUser(of);
    let fleet = Fleet::start_tuned(vec![server], tuning(), None);
    until(&fleet, "a", |status| status.state == ServerState::Waiting).await;
    let path = file.path().to_str().expect("a path");
    let ServerStatus { problem, told_problem, .. } = fleet.status().remove(0);
    let problem = problem.expect("a problem");
    assert!(problem.contains(path) && problem.contains("Not a directory"), "{problem}");
    let refused = ask_as(&fleet, "acme/ann", "state", later()).await.expect_err("no process");
    for told in [told_problem.expect("a problem"), refused.to_string()] {
        assert!(told.contains("home folder") && told.contains("Not a directory"), "{told}");
        assert!(!told.contains(path), "{told}");
    }
    fleet.close().await;
}
