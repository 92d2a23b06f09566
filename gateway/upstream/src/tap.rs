//! Raw answers of servers. The protocol library parses answers into types of its own, which forget the fields that they
//! don't know and the order of keys; the transports show each message here first, and what a call waits for is handed to
//! it as the server wrote it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage,
};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::Told;
use crate::lines::{Line, id_of};
use crate::question::{Asking, NoAnswer, Question};

/// Method under which the library sees questions of a server, with the call that they belong to.
pub(crate) const QUESTION: &str = "toolgate/question";

/// Methods of questions.
const QUESTIONS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];

/// Time after which a server is taken to have done with a call that was given up, and most principals of such calls.
const GIVEN_UP_KEPT: Duration = Duration::from_secs(10 * 60);
const GIVEN_UP_MAX: usize = 64;

/// Most questions of one call.
const QUESTIONS_MAX: usize = 64;

/// Most bytes of a message or of progress that is passed on. Longer ones are dropped.
const NOTE_BYTES_MAX: usize = 64 << 10;

/// Code of an error whose own code can't be read.
const INTERNAL_ERROR: i64 = -32603;

/// Answer to a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result's bytes.
    Result(Box<RawValue>),
    /// The server's own error.
    Error(ServerError),
    /// The answer is larger than this limit, in bytes.
    TooLarge(usize),
}

/// JSON-RPC error of a server.
#[derive(Debug, Deserialize)]
pub(crate) struct ServerError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// Call that is under way. It travels with its request, so that the transport knows it before any answer can come.
#[derive(Debug)]
pub(crate) struct Call {
    answer: Mutex<Option<oneshot::Sender<Answer>>>,
    progress: Option<mpsc::Sender<Value>>,
    /// Wakes whoever waits for the answer: the server has told of progress.
    pub(crate) progressed: Notify,
    was_sent: AtomicBool,
    /// Receiver of the server's questions, if the host can be asked.
    asking: Option<Asking>,
    /// Numbers of questions: all, and those without an answer.
    asked: AtomicUsize,
    open: AtomicUsize,
    /// True if the library needs the answer as well: it mirrors parameters of listed tools into headers.
    lists_tools: bool,
    /// Principal that it is for; `None` for the gateway itself.
    principal: Option<String>,
}

/// Question that has no answer yet. The time without an answer of its call stands still.
struct OpenQuestion<'a>(&'a Call);

/// Question as the library sees it.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    /// ID of the call that it belongs to; `None` if that can't be told.
    call: Option<i64>,
    method: String,
    params: Value,
}

/// Calls under way on one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tap(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    calls: Mutex<HashMap<i64, Pending>>,
    /// True once a call was given up: a question that comes on no call's stream may be its.
    has_given_up: AtomicBool,
    /// Principals of such calls, and of tasks: what the server says may be about theirs.
    given_up: Mutex<GivenUp>,
    ended: CancellationToken,
    /// The transport is dropped, and with it the process.
    gone: CancellationToken,
    probe: Mutex<Probe>,
    /// Tasks of a server of 2025-11-25, as its answer to `initialize` has them. The library has no type for them.
    tasks: OnceLock<Value>,
    /// Receivers of messages that belong to no call.
    told: OnceLock<Told>,
    /// Exit status of the process that ended by itself.
    exit: Mutex<Option<ExitStatus>>,
    heard: Heard,
}

/// Time of the last message of the server, or of the beginning.
#[derive(Debug)]
struct Heard(Mutex<Instant>);

/// Question `server/discover` of the handshake. The library gives it up after a while, and takes a late answer for a wrong one.
#[derive(Debug, Default)]
struct Probe {
    asked: Option<i64>,
    /// ID of the question after which `initialize` was sent.
    given_up: Option<i64>,
    /// ID of `initialize` while it has no answer.
    initialize: Option<i64>,
    /// True if the server has answered the question before `initialize`, and knows it.
    is_known_late: bool,
}

/// Principals of what may go on without a call under way, calls that were given up and tasks, with the time of the last. `None` stands for more of them.
#[derive(Debug, Default)]
struct GivenUp(HashMap<Option<String>, Instant>);

#[derive(Debug)]
struct Pending {
    call: Arc<Call>,
    token: Option<NumberOrString>,
}

/// Ends the calls of a tap when the transport is gone.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Tap);

/// Parts of a JSON-RPC message that are looked at.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Answer to `initialize`, as far as the library does not read it.
#[derive(Deserialize)]
struct Greeting {
    #[serde(default)]
    capabilities: Value,
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: NumberOrString,
}

impl Default for Heard {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Call {
    /// Returns a call and the place where its answer arrives.
    pub(crate) fn new(
        method: &str,
        progress: Option<mpsc::Sender<Value>>,
        principal: Option<String>,
        asking: Option<Asking>,
    ) -> (Arc<Self>, oneshot::Receiver<Answer>) {
        let (sender, receiver) = oneshot::channel();
        let call = Self {
            answer: Mutex::new(Some(sender)),
            progress,
            progressed: Notify::new(),
            was_sent: AtomicBool::new(false),
            asking,
            asked: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            lists_tools: method == "tools/list",
            principal,
        };
        (Arc::new(call), receiver)
    }

    /// Returns whether the server may have seen the request.
    pub(crate) fn was_sent(&self) -> bool {
        self.was_sent.load(Ordering::Acquire)
    }

    /// Returns whether the server waits for the answer to a question.
    pub(crate) fn has_open_questions(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Puts a question to the host.
    async fn ask(&self, method: String, params: Value) -> Result<Value, NoAnswer> {
        let Some(asking) = &self.asking else {
            return Err(NoAnswer::refused("the host of this call can't be asked"));
        };
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            let problem = format!("a call may ask {QUESTIONS_MAX} questions");
            return Err(NoAnswer::refused(problem));
        }
        let _open = OpenQuestion::of(self);
        let (answer, answered) = oneshot::channel();
        let question = Question { method, params, answer };
        asking.questions.try_send(question).map_err(|_full_or_gone| {
            NoAnswer::refused("the host has too many questions, or has left")
        })?;
        answered.await.unwrap_or_else(|_dropped| Err(NoAnswer::refused("the host has left")))
    }

    fn finish(&self, answer: Answer) {
        if let Some(sender) = self.answer.lock().take() {
            // Whoever waited may have left.
            let _left = sender.send(answer);
        }
    }

    /// Passes on what a server says while the call runs. What a slow reader leaves lying is dropped.
    fn tell(&self, params: &RawValue) {
        let Some(progress) = &self.progress else { return };
        if params.get().len() > NOTE_BYTES_MAX {
            return;
        }
        if let Ok(params) = serde_json::from_str(params.get()) {
            let _full = progress.try_send(params);
        }
    }
}

impl Tap {
    /// Hands messages that belong to no call to `told` from now on.
    pub(crate) fn tells(&self, told: Told) {
        // A connection has one.
        let _first = self.0.told.set(told);
    }

    /// Returns what the server says of its tasks, if it is of 2025-11-25 and has some.
    pub(crate) fn tasks(&self) -> Option<&Value> {
        self.0.tasks.get()
    }

    /// Notes a message that is about to be sent, and returns its call.
    pub(crate) fn sending(&self, message: &ClientJsonRpcMessage) -> Option<Arc<Call>> {
        match message {
            JsonRpcMessage::Request(request) => {
                self.0.probe.lock().sending(&request.request, &request.id);
                let call = request.request.extensions().get::<Arc<Call>>()?;
                let token = request.request.get_meta().get_progress_token().map(|token| token.0);
                let pending = Pending { call: Arc::clone(call), token };
                self.0.calls.lock().insert(number(&request.id)?, pending);
                if self.0.ended.is_cancelled() {
                    self.end();
                }
                Some(Arc::clone(call))
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = cancelled.params.request_id.as_ref().and_then(number)
                {
                    let given_up = self.0.calls.lock().remove(&id);
                    if let Some(principal) = given_up.and_then(|call| call.call.principal.clone()) {
                        self.0.given_up.lock().note(principal);
                    }
                    self.0.has_given_up.store(true, Ordering::Release);
                }
                None
            }
            _ => None,
        }
    }

    /// Says that the bytes of a call's request are on their way.
    pub(crate) fn sent(call: Option<&Arc<Call>>) {
        if let Some(call) = call {
            call.was_sent.store(true, Ordering::Release);
        }
    }

    /// Takes back [`Self::sent`]: the server was not reached.
    pub(crate) fn unsent(call: Option<&Arc<Call>>) {
        if let Some(call) = call {
            call.was_sent.store(false, Ordering::Release);
        }
    }

    /// Hands a received message to the call that it belongs to, and returns what the library is to see of it. `stream` is
    /// the call on whose stream it came, where the transport has streams.
    pub(crate) fn received<'a>(&self, text: &'a str, stream: Option<&Arc<Call>>) -> Cow<'a, str> {
        let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
            return Cow::Borrowed(text);
        };
        self.hear();
        if let Some(method) = message.method {
            if let Some(id) = message.id
                && (QUESTIONS.contains(&method.as_ref()) || method == QUESTION)
            {
                return Cow::Owned(self.question(id, &method, message.params, stream));
            }
            if let Some(params) = message.params {
                self.notified(&method, params, stream);
            }
            return Cow::Borrowed(text);
        }
        let Some(id) = message.id.and_then(|id| numeric(id.get())) else {
            return Cow::Borrowed(text);
        };
        self.greeted(id, message.result);
        let answer = match (message.result, message.error) {
            (Some(result), None) => Answer::Result(result.to_owned()),
            (_, Some(error)) => Answer::Error(server_error(error)),
            (None, None) => return Cow::Borrowed(text),
        };
        let Some(pending) = self.0.calls.lock().remove(&id) else {
            return Cow::Borrowed(text);
        };
        if let Answer::Result(result) = &answer
            && is_of_task(result)
            && let Some(principal) = pending.call.principal.clone()
        {
            self.0.given_up.lock().note(principal);
        }
        let is_listing = pending.call.lists_tools && matches!(answer, Answer::Result(_));
        pending.call.finish(answer);
        if is_listing && serde_json::from_str::<ServerJsonRpcMessage>(text).is_ok() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(stand_in(id))
    }

    /// Reads a line of standard output, or the data of an event. Returns what the library is to see of it; `None` for what is
    /// no message. `limit` is the most bytes that a message may have.
    pub(crate) fn read(&self, line: &Line, limit: usize) -> Option<ServerJsonRpcMessage> {
        match line {
            Line::Whole(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let message = serde_json::from_str(&self.received(&text, None)).ok()?;
                let is_late = self.0.probe.lock().is_late(&message);
                (!is_late).then_some(message)
            }
            Line::Skipped { head, tail } => {
                let stand_in = self.too_large(id_of(head, tail), limit)?;
                serde_json::from_str(&stand_in).ok()
            }
        }
    }

    /// Ends a call whose answer is too large to be read: the one with this ID, or else the only one. Returns what the
    /// library is to see, if the call is known.
    pub(crate) fn too_large(&self, id: Option<i64>, limit: usize) -> Option<String> {
        self.hear();
        let mut calls = self.0.calls.lock();
        let only = || calls.keys().next().copied().filter(|_| calls.len() == 1);
        let id = id.or_else(only)?;
        let pending = calls.remove(&id)?;
        pending.call.finish(Answer::TooLarge(limit));
        Some(stand_in(id))
    }

    /// Returns the time of the server's last message.
    pub(crate) fn heard(&self) -> Instant {
        *self.0.heard.0.lock()
    }

    fn hear(&self) {
        *self.0.heard.0.lock() = Instant::now();
    }

    /// Returns whether the server answered `server/discover` with what it can do, but when `initialize` had been sent.
    pub(crate) fn is_known_late(&self) -> bool {
        self.0.probe.lock().is_known_late
    }

    /// Notes how the process ended.
    pub(crate) fn exited(&self, status: ExitStatus) {
        *self.0.exit.lock() = Some(status);
    }

    /// Returns how the process ended; `None` if it runs, or was made to end.
    pub(crate) fn exit(&self) -> Option<ExitStatus> {
        *self.0.exit.lock()
    }

    /// Ends all calls without an answer.
    pub(crate) fn end(&self) {
        self.0.ended.cancel();
        let calls = std::mem::take(&mut *self.0.calls.lock());
        for pending in calls.into_values() {
            pending.call.answer.lock().take();
        }
    }

    /// Waits until the transport has ended.
    pub(crate) async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    /// Waits until the transport is dropped.
    pub(crate) async fn gone(&self) {
        self.0.gone.cancelled().await;
    }

    /// Returns whether the transport has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Puts a question to the host of its call, and returns the answer.
    pub(crate) async fn ask(&self, asked: Asked) -> Result<Value, NoAnswer> {
        let Some(id) = asked.call else {
            return Err(NoAnswer::refused(
                "it can't be told which call asks: none that may is under way, several are, or one was given up",
            ));
        };
        let call = self.0.calls.lock().get(&id).map(|pending| Arc::clone(&pending.call));
        let call = call.ok_or_else(|| NoAnswer::refused("the call that asks has ended"))?;
        call.ask(asked.method, asked.params).await
    }

    /// Returns a question as the library is to see it. It belongs to the call on whose stream it came, or else to the only
    /// call under way whose host can be asked.
    fn question(
        &self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        stream: Option<&Arc<Call>>,
    ) -> String {
        let calls = self.0.calls.lock();
        let call = match stream {
            Some(stream) => calls.iter().find(|(_, pending)| Arc::ptr_eq(&pending.call, stream)),
            None if self.0.has_given_up.load(Ordering::Acquire) => None,
            None => {
                let mut may_ask = calls.iter().filter(|(_, call)| call.call.asking.is_some());
                may_ask.next().filter(|_| may_ask.next().is_none())
            }
        };
        let call = call.map(|(id, _)| *id);
        drop(calls);
        let params = params.map_or("{}", RawValue::get);
        let call = call.map_or_else(|| "null".to_owned(), |call| call.to_string());
        // A server that uses the gateway's own name asks for nothing that is known.
        let method = if method == QUESTION { "" } else { method };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{QUESTION}","params":{{"call":{call},"method":"{method}","params":{params}}}}}"#
        )
    }

    fn notified(&self, method: &str, params: &RawValue, stream: Option<&Arc<Call>>) {
        match method {
            "notifications/progress" => {
                let Ok(progress) = serde_json::from_str::<Progress>(params.get()) else { return };
                let calls = self.0.calls.lock();
                let pending =
                    calls.values().find(|call| call.token.as_ref() == Some(&progress.token));
                if let Some(pending) = pending {
                    pending.call.progressed.notify_one();
                    pending.call.tell(params);
                }
            }
            "notifications/message" => match stream {
                Some(call) => call.tell(params),
                None => self.logged(params),
            },
            _ => {}
        }
    }

    /// Passes on a message on the stream of no call. Standard streams don't say whose it is: with one call of a host under way there
    /// is no doubt, unless another principal has given one up that may go on; with none it is nobody's; and else it is dropped.
    fn logged(&self, params: &RawValue) {
        let calls = self.0.calls.lock();
        let mut of_hosts = calls.values().filter(|call| call.call.principal.is_some());
        match (of_hosts.next(), of_hosts.next()) {
            (Some(only), None) => {
                let others = self.0.given_up.lock().has_others(only.call.principal.as_deref());
                if !others {
                    only.call.tell(params);
                }
            }
            (None, _) => {
                if let Some(told) = self.0.told.get()
                    && params.get().len() <= NOTE_BYTES_MAX
                    && let Ok(params) = serde_json::from_str(params.get())
                {
                    told.said(params);
                }
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// Notes what a result says of tasks, if it answers `initialize`.
    fn greeted(&self, id: i64, result: Option<&RawValue>) {
        let Some(result) = result.filter(|_| self.0.probe.lock().initialize == Some(id)) else {
            return;
        };
        let greeting = serde_json::from_str::<Greeting>(result.get());
        if let Ok(mut greeting) = greeting
            && let Some(tasks) = greeting.capabilities.get_mut("tasks")
        {
            // A server answers once.
            let _first = self.0.tasks.set(tasks.take());
        }
    }
}

impl GivenUp {
    fn note(&mut self, principal: String) {
        let known = Some(principal);
        let has_room = self.0.len() < GIVEN_UP_MAX || self.0.contains_key(&known);
        self.0.insert(known.filter(|_| has_room), Instant::now());
    }

    /// Returns whether a call of another principal may go on.
    fn has_others(&mut self, principal: Option<&str>) -> bool {
        self.0.retain(|_, since| since.elapsed() < GIVEN_UP_KEPT);
        self.0.keys().any(|given_up| given_up.as_deref() != principal)
    }
}

impl Probe {
    fn sending(&mut self, request: &ClientRequest, id: &RequestId) {
        match request {
            ClientRequest::DiscoverRequest(_) => self.asked = number(id),
            ClientRequest::InitializeRequest(_) => {
                self.given_up = self.asked;
                self.initialize = number(id);
            }
            _ => {}
        }
    }

    /// Returns whether a message answers the question after it was given up.
    fn is_late(&mut self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => number(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref().and_then(number),
            _ => None,
        };
        if id.is_some() && id == self.initialize {
            self.initialize = None;
        }
        let is_late = id.is_some() && id == self.given_up;
        let is_known = is_late && matches!(message, JsonRpcMessage::Response(_));
        self.is_known_late |= is_known && self.initialize.is_some();
        is_late
    }
}

impl<'a> OpenQuestion<'a> {
    fn of(call: &'a Call) -> Self {
        if call.open.fetch_add(1, Ordering::AcqRel) == 0
            && let Some(asking) = &call.asking
        {
            asking.waiting.send_modify(|waiting| *waiting += 1);
        }
        Self(call)
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(asking) = &self.0.asking
        {
            asking.waiting.send_modify(|waiting| *waiting -= 1);
        }
        self.0.progressed.notify_one();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
        self.0.0.gone.cancel();
    }
}

/// Returns an answer that says nothing, for the library's own books.
fn stand_in(id: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn server_error(error: &RawValue) -> ServerError {
    serde_json::from_str(error.get()).unwrap_or_else(|_| ServerError {
        code: INTERNAL_ERROR,
        message: "the server answered with an error that can't be read".to_owned(),
        data: None,
    })
}

fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}

/// Returns true if a result is of a task, which goes on behind it: the answer to the call that began it, or its state.
fn is_of_task(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Told {
        content: Option<IgnoredAny>,
        task: Option<IgnoredAny>,
        #[serde(rename = "taskId")]
        id: Option<IgnoredAny>,
    }
    // What is larger is no task.
    result.get().len() <= NOTE_BYTES_MAX
        && serde_json::from_str::<Told>(result.get())
            .is_ok_and(|told| told.content.is_none() && (told.task.is_some() || told.id.is_some()))
}

/// Returns an ID from its JSON. Some servers write numbers back as strings.
pub(crate) fn numeric(id: &str) -> Option<i64> {
    id.trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_that_were_given_up_are_remembered_for_a_while_and_within_a_bound() {
        let mut given_up = GivenUp::default();
        assert!(!given_up.has_others(Some("ann")));
        given_up.note("ann".to_owned());
        assert!(!given_up.has_others(Some("ann")) && given_up.has_others(Some("bob")));
        tokio::time::advance(GIVEN_UP_KEPT).await;
        assert!(!given_up.has_others(Some("bob")));
        for number in 0..2 * GIVEN_UP_MAX {
            given_up.note(number.to_string());
        }
        assert_eq!(given_up.0.len(), GIVEN_UP_MAX + 1);
        assert!(given_up.0.contains_key(&None));
    }

    #[test]
    fn a_task_is_told_by_its_beginning_and_its_state() {
        let is_of_task = |text: &str| {
            let result = RawValue::from_string(text.to_owned()).expect("JSON");
            super::is_of_task(&result)
        };
        assert!(is_of_task(r#"{"task":{"taskId":"1","status":"working"}}"#));
        assert!(is_of_task(r#"{"taskId":"1","status":"working"}"#));
        assert!(!is_of_task(r#"{"content":[],"task":{"taskId":"1"}}"#));
        assert!(!is_of_task(r#"{"tools":[]}"#));
        assert!(!is_of_task("[1]"));
    }
}
