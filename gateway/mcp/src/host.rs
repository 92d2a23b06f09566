//! A host's request on its way to a server, with the questions that come back: across the revisions of both.
#![expect(deprecated, reason = "both eras: logging is deprecated in the newer")]

use std::borrow::Cow;

use futures_util::future::join_all;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ErrorCode, ErrorData, Extensions, Implementation, LoggingLevel,
    ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use toolgate_upstream::{Question, Request, RequestError};

use crate::asking;
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::live::{AskedHost, Live, NOTES_MAX, Step};
use crate::parked::Waiting;
use crate::passing;
use crate::raw::RawObject;
use crate::sealed::{Content, Purpose};
use crate::sessions::SESSION_HEADER;
use crate::tasks::{self, older};

/// Time for which a host may keep a server's own state.
const STATE_KEPT: std::time::Duration = std::time::Duration::from_secs(60 * 60);

/// Code of an error by which a server of 2025-11-25 sends a person to pages, and the most pages of one.
const URL_REQUIRED: i64 = -32_042;
const URLS_MAX: usize = 16;

/// Host whose request is being answered.
#[derive(Clone)]
pub(crate) struct Host<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) context: &'a RequestContext<RoleServer>,
    pub(crate) caller: &'a Caller,
    /// Name of the caller, as [`Caller::turn_name`] has it.
    pub(crate) principal: String,
    /// Least level of messages that it set for its session.
    pub(crate) level: Option<LoggingLevel>,
    /// True if its face has several servers, so that messages say whose they are.
    pub(crate) sees_servers: bool,
    /// Process that runs the task that the request is about, if it is one's.
    pub(crate) process: Option<u64>,
}

/// Reason for which a request has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The server, or the way to it, failed.
    Server(RequestError),
    /// The gateway refuses the request, or the host can't be asked what the server asks.
    Refused(ErrorData),
    /// The call that the answers were for is gone.
    Lost,
    /// The principal is to connect to the server first. Says how.
    NotConnected(String),
}

/// Text for a host whose answers came too late.
pub(crate) const LOST: &str = "The call that waited for these answers is gone: it was answered before, waited too long for them, or was lost with its server or the gateway. It may have had effects: look before you repeat it.";

/// Returns whether a host speaks 2026-07-28 or later.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

impl Host<'_> {
    /// Sends a request to a server, and returns its result. Questions of the server are put to the host on the stream of its
    /// request, or are the result where the host takes them so. A principal that is to connect to the server first is told where.
    pub(crate) async fn request(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<RawObject, Failure> {
        let config = self.gateway.server(server);
        let takes_logins = config.is_some_and(|server| server.takes_principals_logins());
        let called = params.get("name").and_then(Value::as_str).map(str::to_owned);
        let answer = if takes_logins {
            Box::pin(self.request_with_login(server, method, params)).await
        } else {
            self.request_at_once(server, method, params).await
        };
        if let (Ok(result), Some(tool), "tools/call") = (&answer, called, method) {
            self.gateway.look_at(self.caller, server, &tool, result).await;
        }
        answer
    }

    /// Sends a request whatever the principal's credential is.
    pub(crate) async fn request_at_once(
        &self,
        server: &str,
        method: &str,
        mut params: Map<String, Value>,
    ) -> Result<RawObject, Failure> {
        passing::set_meta(&mut params, self.context, self.level);
        let outcome = match older::way(self, server, method, &mut params) {
            Some(way) => Box::pin(older::call(self, server, params, way)).await,
            None => {
                let asked = self.asked(server);
                self.request_of_era(server, method, params, asked).await
            }
        };
        if let Err(Failure::Server(RequestError::Server { code: URL_REQUIRED, data, .. })) =
            &outcome
        {
            let asked = data.as_ref().and_then(|data| data["elicitations"].as_array());
            for question in asked.into_iter().flatten().take(URLS_MAX) {
                self.gateway.elicited().note(server, question, self.peer());
            }
        }
        outcome
    }

    /// Sends a request in the way of the host's revision, and of what it may be asked.
    async fn request_of_era(
        &self,
        server: &str,
        method: &str,
        mut params: Map<String, Value>,
        asked: Option<AskedHost>,
    ) -> Result<RawObject, Failure> {
        if is_modern(self.context) {
            return Box::pin(self.request_modern(server, method, params, asked)).await;
        }
        if let Some(asked) = asked {
            return Box::pin(self.request_asking(server, method, params, asked)).await;
        }
        for _ in 0..asking::ROUNDS_MAX {
            let result = self.send(server, method, params.clone()).await?;
            if !asking::asks(&result) {
                return Ok(result);
            }
            let asked = asking::ask(self, &result, &mut params).await;
            asked.map_err(Failure::Refused)?;
        }
        let problem = format!("{server} asked {} times", asking::ROUNDS_MAX);
        Err(Failure::Refused(asking::refused(problem)))
    }

    /// Sends a request of a host of 2026-07-28, or answers to the questions of one that waits.
    async fn request_modern(
        &self,
        server: &str,
        method: &str,
        mut params: Map<String, Value>,
        asked: Option<AskedHost>,
    ) -> Result<RawObject, Failure> {
        let named = ["name", "uri"].iter().find_map(|field| params.get(*field)?.as_str());
        let name = named.unwrap_or_default().to_owned();
        let purpose = Purpose { principal: &self.principal, server, method, name: &name };
        let sealed = params.remove("requestState").filter(|state| !state.is_null());
        let opened = match &sealed {
            None => None,
            Some(state) => Some(self.open(state, &purpose)?),
        };
        if let Some(Content::Parked { call, .. }) = opened {
            let mut waiting = self.gateway.parked().take(&call).ok_or(Failure::Lost)?;
            if let Some(Value::Object(answers)) = params.remove("inputResponses") {
                waiting.answer(answers);
            }
            return self.wait(waiting, &purpose).await;
        }
        if let Some(Content::State(state)) = opened {
            params.insert("requestState".to_owned(), Value::from(state));
        }
        if let Some(asked) = asked {
            for field in ["inputResponses", "requestState"] {
                params.remove(field);
            }
            let call = Live::start(self.gateway, server, self.plain(method, params), asked);
            let waiting = Waiting { call, open: Vec::new(), asked: 0 };
            return self.wait(waiting, &purpose).await;
        }
        let (mut result, process) = if tasks::may_begin(self, server, method) {
            Box::pin(tasks::begin(self, server, params)).await?
        } else {
            (self.send(server, method, params).await?, self.process)
        };
        tasks::seal(self, server, method, &name, &mut result, process);
        if asking::asks(&result)
            && let Some(state) = result.text("requestState").map(Cow::into_owned)
        {
            let sealed = self.gateway.seal().seal(Content::State(state), &purpose, STATE_KEPT);
            result.set("requestState", &Value::from(sealed));
        }
        Ok(result)
    }

    fn open(&self, state: &Value, purpose: &Purpose<'_>) -> Result<Content, Failure> {
        let opened = state.as_str().and_then(|state| self.gateway.seal().open(state, purpose));
        opened.ok_or_else(|| {
            let problem = "requestState was changed, is out of date, or was made for another caller or request, or with another gateway's key. If a call waited for it, the call is lost and may have had effects.";
            Failure::Refused(ErrorData::new(ErrorCode::INVALID_PARAMS, problem, None))
        })
    }

    /// Waits until a call ends or asks. A call that asks is parked, and its questions are the result.
    async fn wait(
        &self,
        mut waiting: Waiting,
        purpose: &Purpose<'_>,
    ) -> Result<RawObject, Failure> {
        let hearer = self.hearer(purpose.server);
        let capabilities = self.capabilities();
        loop {
            if waiting.open.is_empty() {
                let step = waiting.call.step(hearer.as_ref()).await;
                let questions = match step {
                    Step::Ended(outcome) => return parsed(outcome),
                    Step::Asked(questions) => questions,
                };
                waiting.ask(declared(questions, &capabilities));
                continue;
            }
            let requests = waiting.requests();
            let patience = self.gateway.config().gateway.question_timeout;
            match self.gateway.parked().park(&self.principal, waiting, patience) {
                Ok(call) => {
                    let seal = self.gateway.seal();
                    let content = Content::Parked { call, at: seal.here().clone() };
                    let state = seal.seal(content, purpose, STATE_KEPT.max(patience));
                    let mut asks = RawObject::default();
                    asks.set("resultType", &Value::from("input_required"));
                    asks.set("inputRequests", &Value::Object(requests));
                    asks.set("requestState", &Value::from(state));
                    return Ok(asks);
                }
                Err((back, problem)) => {
                    waiting = back;
                    for (_, question) in waiting.open.drain(..) {
                        asking::refuse(question, &problem);
                    }
                }
            }
        }
    }

    /// Sends a request of a host of an older revision, and puts the server's questions to it while the request runs.
    async fn request_asking(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
        asked: AskedHost,
    ) -> Result<RawObject, Failure> {
        let mut call = Live::start(self.gateway, server, self.plain(method, params), asked);
        let hearer = self.hearer(server);
        let capabilities = self.capabilities();
        loop {
            match call.step(hearer.as_ref()).await {
                Step::Ended(outcome) => return parsed(outcome),
                Step::Asked(questions) => {
                    let questions = declared(questions, &capabilities);
                    for question in &questions {
                        self.gateway.elicited().note(server, &question.params, self.peer());
                    }
                    join_all(questions.into_iter().map(|question| asking::put(self, question)))
                        .await;
                }
            }
        }
    }

    /// Returns the host as one that hears what a server tells during its request; `None` if it wants to hear nothing.
    pub(crate) fn hearer(&self, server: &str) -> Option<passing::Hearer> {
        let named = self.sees_servers.then_some(server);
        passing::Hearer::of(self.context, self.level, named)
    }

    /// Sends a request once.
    pub(crate) async fn send(
        &self,
        server: &str,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<RawObject, Failure> {
        let mut request = self.plain(method, params);
        let deadline = Instant::now() + self.gateway.call_time_max();
        let fleet = self.gateway.fleet();
        let Some(hearer) = self.hearer(server) else {
            return parsed(fleet.request(server, request, deadline).await);
        };
        let (telling, notes) = mpsc::channel(NOTES_MAX);
        request.progress = Some(telling);
        let answer = fleet.request(server, request, deadline);
        parsed(passing::tell_until(&hearer, notes, answer).await)
    }

    pub(crate) fn plain(&self, method: &str, params: Map<String, Value>) -> Request {
        Request {
            method: method.to_owned(),
            params,
            principal: self.principal.clone(),
            progress: None,
            asker: None,
            requester: self.caller.requester(),
            sent: None,
            process: self.process,
        }
    }

    /// Returns the session that hears of pages that a person is through with; `None` for a host of 2026-07-28, which hears of none.
    fn peer(&self) -> Option<Peer<RoleServer>> {
        (!is_modern(self.context)).then(|| self.context.peer.clone())
    }

    /// Returns what the host declares.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        self.context.client_capabilities().unwrap_or_default()
    }

    /// Returns the host as a server of an older revision may ask it; `None` if it may not, or needs not.
    fn asked(&self, server: &str) -> Option<AskedHost> {
        let may_ask = self.gateway.server(server).is_some_and(|server| server.may_ask());
        if !may_ask || self.gateway.fleet().listing(server)?.is_modern() {
            return None;
        }
        let mut capabilities = serde_json::to_value(self.capabilities()).ok()?;
        let capabilities = capabilities.as_object_mut()?;
        capabilities.retain(|name, _| asking::CAPABILITIES.contains(&name.as_str()));
        if let Some(roots) = capabilities.get_mut("roots") {
            // A host of 2026-07-28 tells of no changes.
            let tells = !is_modern(self.context) && roots["listChanged"] == true;
            *roots = if tells { json!({"listChanged": true}) } else { json!({}) };
        }
        if capabilities.is_empty() {
            return None;
        }
        let capabilities = Value::Object(std::mem::take(capabilities));
        Some(AskedHost { name: self.name(), capabilities })
    }

    /// Returns the name of the host within its principal: its session, or what it tells of itself where there is none.
    fn name(&self) -> String {
        name_of(&self.context.extensions, self.context.client_info())
    }
}

/// Returns the name of the host that sent a message, within its principal.
pub(crate) fn name_of(extensions: &Extensions, client: Option<Implementation>) -> String {
    let parts = extensions.get::<axum::http::request::Parts>();
    let session = parts.and_then(|parts| parts.headers.get(SESSION_HEADER));
    if let Some(session) = session.and_then(|session| session.to_str().ok()) {
        return format!("session {session}");
    }
    client.map(|client| format!("{} {}", client.name, client.version)).unwrap_or_default()
}

/// Returns the questions that the host says it answers; the others are refused.
fn declared(questions: Vec<Question>, capabilities: &ClientCapabilities) -> Vec<Question> {
    let mut declared = Vec::with_capacity(questions.len());
    for question in questions {
        if asking::is_declared(&question.method, &question.params, capabilities) {
            declared.push(question);
        } else {
            let problem = format!("this host does not declare {:?}", question.method);
            asking::refuse(question, &problem);
        }
    }
    declared
}

pub(crate) fn parsed(outcome: Result<Box<RawValue>, RequestError>) -> Result<RawObject, Failure> {
    let answer = outcome.map_err(Failure::Server)?;
    RawObject::of(answer).map_err(|error| {
        let problem = format!("the server's answer is no JSON object: {error}");
        Failure::Refused(ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None))
    })
}
