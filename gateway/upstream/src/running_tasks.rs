//! Tasks that run on a connection behind the answers of the calls that began them, as far as the server tells. They are lost with
//! its process.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::connection::CallError;

/// Time for which a task is taken to run after it was seen to, where its server names none (`ttl`), and the longest that it may name.
const RUNS: Duration = Duration::from_secs(60 * 60);
const RUNS_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Time to fetch the result of a task that has ended, which servers of 2025-11-25 keep until they are asked for it.
const RESULT_AWAITED: Duration = Duration::from_secs(60);

/// Most tasks that are kept; of more, those leave whose time is over first.
const TASKS_MAX: usize = 64;

/// Longest ID of a task that is kept, in bytes.
const ID_MAX: usize = 1 << 10;

/// Most bytes of an answer that may begin a task. What is larger is a result.
const BEGUN_BYTES_MAX: usize = 64 << 10;

/// Code of an error that says that there is no such task.
const INVALID_PARAMS: i64 = -32602;

/// Field of a task's ID in parameters and results.
const ID: &str = "taskId";

/// Tasks that run, by their server's IDs.
#[derive(Debug, Default)]
pub(crate) struct RunningTasks(Mutex<HashMap<String, Running>>);

#[derive(Debug)]
struct Running {
    begun: Instant,
    until: Instant,
}

/// Request by whose answer tasks are known.
#[derive(Debug)]
pub(crate) struct AboutTasks {
    method: Method,
    /// ID of the task that the request names; empty if it names none.
    id: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Its answer may begin a task.
    Begins,
    /// Its answer is the state of a task.
    Get,
    /// Its answer ends a task, whatever it says.
    Cancel,
    /// Its answer is the result of a task that has ended.
    Result,
}

/// State of a task, or an answer that has one. Revisions name its time differently.
#[derive(Debug, Default, Deserialize)]
struct State {
    #[serde(default)]
    content: Option<IgnoredAny>,
    #[serde(default)]
    task: Option<Box<RawValue>>,
    #[serde(default, rename = "resultType")]
    kind: Value,
    #[serde(default, rename = "taskId")]
    id: Value,
    #[serde(default)]
    status: Value,
    #[serde(default)]
    ttl: Value,
    #[serde(default, rename = "ttlMs")]
    ttl_ms: Value,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Returns the ID of the task that a request looks after; `None` if it looks after none.
pub(crate) fn task_of<'p>(method: &str, params: &'p Map<String, Value>) -> Option<&'p str> {
    let task = params.get(ID).filter(|_| method.starts_with("tasks/"));
    task.and_then(Value::as_str)
}

impl AboutTasks {
    /// Returns a request as one that may be about tasks; `None` if it can't be.
    pub(crate) fn of(method: &str, params: &Map<String, Value>) -> Option<Self> {
        let method = match method {
            "tasks/get" => Method::Get,
            "tasks/cancel" => Method::Cancel,
            "tasks/result" => Method::Result,
            "prompts/get" | "resources/read" | "tools/call" => Method::Begins,
            _ => return None,
        };
        let id = params.get(ID).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self { method, id })
    }
}

impl RunningTasks {
    /// Takes note of the answer to a request.
    pub(crate) fn answered(&self, about: &AboutTasks, answer: &Result<Box<RawValue>, CallError>) {
        let AboutTasks { method, id } = about;
        match (method, answer) {
            (Method::Begins, Ok(result)) => {
                if let Some(state) = State::begun_in(result) {
                    let id = state.id.as_str().unwrap_or_default();
                    // The server may have given the ID before.
                    self.ended(id);
                    self.saw(id, &state);
                }
            }
            (Method::Get, Ok(result)) => {
                if let Ok(state) = serde_json::from_str::<State>(result.get()) {
                    self.saw(id, &state);
                }
            }
            (Method::Get, Err(CallError::Server(error))) if error.code == INVALID_PARAMS => {
                self.ended(id);
            }
            // Its host wants nothing of a task any more that it cancels, however long the server takes. A task that failed may have
            // an error in the place of its result.
            (Method::Cancel, Ok(_)) | (Method::Result, Ok(_) | Err(CallError::Server(_))) => {
                self.ended(id);
            }
            (_, Err(_)) => {}
        }
    }

    /// Returns the number of tasks that run.
    pub(crate) fn count(&self) -> usize {
        let now = Instant::now();
        self.0.lock().values().filter(|task| task.until > now).count()
    }

    /// Returns whether a task runs.
    pub(crate) fn any(&self) -> bool {
        self.until().is_some()
    }

    /// Returns the time until which tasks are taken to run; `None` if none does.
    pub(crate) fn until(&self) -> Option<Instant> {
        let now = Instant::now();
        self.0.lock().values().map(|task| task.until).filter(|until| *until > now).max()
    }

    /// Returns whether a task of this ID runs.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.lock().get(id).is_some_and(|task| task.until > Instant::now())
    }

    fn ended(&self, id: &str) {
        self.0.lock().remove(id);
    }

    /// Takes note of a task that has ended. What it made is lost with the process too, if nobody has fetched it yet.
    fn has_ended(&self, id: &str, state: &State) {
        if !state.owes_result() {
            self.ended(id);
        } else if let Some(task) = self.0.lock().get_mut(id) {
            task.until = task.until.min(Instant::now() + RESULT_AWAITED);
        }
    }

    fn saw(&self, id: &str, state: &State) {
        if !state.runs() {
            self.has_ended(id, state);
            return;
        }
        if id.is_empty() || id.len() > ID_MAX {
            return;
        }
        let now = Instant::now();
        let mut running = self.0.lock();
        let begun = running.get(id).map_or(now, |task| task.begun);
        let until = state.ttl().map_or(now + RUNS, |ttl| begun + ttl.min(RUNS_MAX));
        running.retain(|_, task| task.until > now);
        running.insert(id.to_owned(), Running { begun, until });
        if running.len() > TASKS_MAX {
            let first = running.iter().min_by_key(|(_, task)| task.until);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                running.remove(&first);
            }
        }
    }
}

impl State {
    /// Returns the task that an answer stands for; `None` if it is a result.
    fn begun_in(result: &RawValue) -> Option<Self> {
        if result.get().len() > BEGUN_BYTES_MAX {
            return None;
        }
        let answer: Self = serde_json::from_str(result.get()).ok()?;
        if answer.kind == "task" {
            return Some(answer);
        }
        let task = answer.task.filter(|_| answer.content.is_none())?;
        serde_json::from_str(task.get()).ok()
    }

    fn runs(&self) -> bool {
        !["completed", "failed", "cancelled"].iter().any(|end| self.status == *end)
    }

    /// Returns whether a task that has ended has a result which its state does not tell.
    fn owes_result(&self) -> bool {
        self.status != "cancelled" && self.result.is_none() && self.error.is_none()
    }

    /// Returns the time from its beginning for which the server keeps the task.
    fn ttl(&self) -> Option<Duration> {
        let ttl = self.ttl.as_u64().or_else(|| self.ttl_ms.as_u64());
        ttl.map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tap::ServerError;

    fn answer(tasks: &RunningTasks, method: &str, id: &str, result: &Value) {
        let params = Map::from_iter([(ID.to_owned(), Value::from(id))]);
        let about = AboutTasks::of(method, &params).expect("a request about tasks");
        let result = RawValue::from_string(result.to_string()).expect("JSON");
        tasks.answered(&about, &Ok(result));
    }

    fn begin(tasks: &RunningTasks, result: &Value) {
        answer(tasks, "tools/call", "", result);
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_of_either_revision_runs_until_it_is_seen_to_have_ended() {
        let older = json!({"task": {"taskId": "1", "status": "working", "ttl": null}});
        let modern = json!({"resultType": "task", "taskId": "1", "status": "input_required"});
        for begun in [older, modern] {
            for (method, end) in [
                ("tasks/get", json!({"taskId": "1", "status": "completed", "result": {}})),
                ("tasks/get", json!({"taskId": "1", "status": "failed", "error": {"code": 1}})),
                ("tasks/get", json!({"taskId": "1", "status": "cancelled"})),
                ("tasks/cancel", json!({"taskId": "1", "status": "cancelled"})),
                ("tasks/cancel", json!({"resultType": "complete"})),
                ("tasks/result", json!({"content": []})),
            ] {
                let tasks = RunningTasks::default();
                begin(&tasks, &begun);
                answer(&tasks, "tasks/get", "1", &json!({"taskId": "1", "status": "working"}));
                answer(&tasks, method, "2", &end);
                assert!(tasks.any(), "another task has ended");
                answer(&tasks, method, "1", &end);
                assert!(!tasks.any(), "{method}: {end}");
            }
        }
        let tasks = RunningTasks::default();
        begin(&tasks, &json!({"content": [], "task": {"taskId": "1", "status": "working"}}));
        begin(&tasks, &json!({"task": {"taskId": "1", "status": "completed"}}));
        begin(&tasks, &json!({"taskId": "1", "status": "working"}));
        assert!(!tasks.any(), "these are results, or have ended");
        assert!(AboutTasks::of("tools/list", &Map::new()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn the_result_of_a_task_that_has_ended_can_be_fetched_for_a_while() {
        let ended = json!({"taskId": "1", "status": "completed", "ttl": 90_000});
        let begun = || {
            let tasks = RunningTasks::default();
            begin(&tasks, &json!({"task": {"taskId": "1", "status": "working", "ttl": 90_000}}));
            answer(&tasks, "tasks/get", "1", &ended);
            assert!(tasks.any());
            tasks
        };
        let tasks = begun();
        answer(&tasks, "tasks/result", "1", &json!({"content": []}));
        answer(&tasks, "tasks/get", "1", &ended);
        assert!(!tasks.any(), "it was fetched");
        let tasks = begun();
        tokio::time::advance(RESULT_AWAITED / 2).await;
        answer(&tasks, "tasks/get", "1", &ended);
        tokio::time::advance(RESULT_AWAITED / 2).await;
        assert!(!tasks.any(), "each look gives no more time");
        let tasks = begun();
        let params = Map::from_iter([(ID.to_owned(), Value::from("1"))]);
        let about = AboutTasks::of("tasks/result", &params).expect("a request about tasks");
        let none = ServerError { code: -32000, message: String::new(), data: None };
        tasks.answered(&about, &Err(CallError::Server(none)));
        assert!(!tasks.any(), "it has none");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_its_server_does_not_know_runs_no_more() {
        let tasks = RunningTasks::default();
        begin(&tasks, &json!({"task": {"taskId": "1", "status": "working"}}));
        let params = Map::from_iter([(ID.to_owned(), Value::from("1"))]);
        let about = AboutTasks::of("tasks/get", &params).expect("a request about tasks");
        let refused =
            |code| CallError::Server(ServerError { code, message: String::new(), data: None });
        tasks.answered(&about, &Err(refused(-32603)));
        assert!(tasks.any(), "another error may pass");
        tasks.answered(&about, &Err(refused(INVALID_PARAMS)));
        assert!(!tasks.any());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_runs_for_as_long_as_its_server_says_within_bounds() {
        let day = 24 * 60 * 60 * 1_000;
        for (ttl, runs) in [
            (json!({"ttl": 60_000}), Duration::from_secs(60)),
            (json!({"ttlMs": 60_000}), Duration::from_secs(60)),
            (json!({"ttlMs": 9 * day}), RUNS_MAX),
            (json!({"ttlMs": null}), RUNS),
            (json!({"ttl": "long"}), RUNS),
        ] {
            let tasks = RunningTasks::default();
            let mut state = json!({"resultType": "task", "taskId": "1", "status": "working"});
            state
                .as_object_mut()
                .expect("an object")
                .extend(ttl.as_object().cloned().expect("one"));
            begin(&tasks, &state);
            tokio::time::advance(runs - Duration::from_millis(1)).await;
            assert!(tasks.any(), "{ttl}");
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(!tasks.any(), "{ttl}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_server_names_counts_from_the_beginning_and_the_usual_one_from_the_last_look()
     {
        let tasks = RunningTasks::default();
        let named =
            json!({"resultType": "task", "taskId": "1", "status": "working", "ttlMs": 90_000});
        begin(&tasks, &named);
        tokio::time::advance(Duration::from_secs(60)).await;
        answer(&tasks, "tasks/get", "1", &named);
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(!tasks.any());
        let unnamed = json!({"resultType": "task", "taskId": "1", "status": "working"});
        begin(&tasks, &unnamed);
        tokio::time::advance(RUNS / 2).await;
        answer(&tasks, "tasks/get", "1", &unnamed);
        tokio::time::advance(RUNS - Duration::from_secs(1)).await;
        assert!(tasks.any());
    }

    #[test]
    fn tasks_are_bounded() {
        let tasks = RunningTasks::default();
        begin(&tasks, &json!({"task": {"taskId": "x".repeat(ID_MAX + 1), "status": "working"}}));
        assert!(!tasks.any());
        for number in 0..2 * TASKS_MAX {
            begin(&tasks, &json!({"task": {"taskId": number.to_string(), "status": "working"}}));
        }
        assert_eq!(tasks.0.lock().len(), TASKS_MAX);
    }
}
