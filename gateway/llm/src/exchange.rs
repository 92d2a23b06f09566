//! One turn with the provider: a request, and further ones where the model searches.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use toolgate_llm::strategy::Api;

use crate::answer::{self, Asked};
use crate::busy::{is_busy, pause};
use crate::chat::Unsendable;
use crate::gate;
use crate::provider::Provider;
use crate::responses::first_call;
use crate::sse::Splitter;
use crate::stream::{End, Machine};
use crate::turn::{Left, Refused, Turn, Unsettled};
use crate::upstream::{Failure, Head, flushed};
use crate::way::{Answer, Payload, Piece, Pieces, Way};
use crate::{gemini, headers, raw};

/// Most bytes of an answer that are withheld until its calls are judged; those of a larger one go to the host unjudged.
const WITHHELD_MAX: usize = 2 << 20;

/// Largest answer that is read whole. A larger one passes.
const ANSWER_MAX: usize = 32 << 20;

/// Time that a body has to end behind the end of its answer. One that ends leaves its connection to the next request.
const END_MAX: Duration = Duration::from_millis(100);

/// Turn that is under way.
pub(crate) struct Exchange {
    pub(crate) way: Way,
    /// Head of the requests that the proxy writes.
    pub(crate) head: Head,
    /// Request as the host sent it.
    pub(crate) original: Original,
    pub(crate) turn: Turn,
}

/// Request as a host sent it. Tools that are withheld are taken out when it is sent.
pub(crate) struct Original {
    pub(crate) head: Head,
    pub(crate) body: Bytes,
}

impl Exchange {
    /// Sends a request of the turn.
    pub(crate) async fn send(&mut self, body: Bytes) -> Result<Answer, Failure> {
        self.way.send(&self.head, Payload::Whole(body)).await
    }

    /// Sends the request as the host sent it, without the tools that are withheld.
    pub(crate) async fn send_original(&mut self) -> Result<Answer, Failure> {
        if let Some(text) = self.turn.original()? {
            self.original.head.headers.remove(header::CONTENT_LENGTH);
            self.original.body = text.into();
        }
        let Original { head, body } = &self.original;
        self.way.send(head, Payload::Whole(body.clone())).await
    }

    /// Sends the request behind a search, once more if the provider has no time for it and the turn has. If the provider
    /// refuses it, the original is sent once.
    async fn go_on(&mut self, body: String) -> Result<Answer, Failure> {
        let body = Bytes::from(body);
        let tokens = self.turn.tokens_in(body.len());
        let mut answer = self.send(body.clone()).await?;
        let pause = is_busy(answer.status).then(|| pause(&answer.headers, self.turn.time_left()));
        if let Some(pause) = pause.flatten() {
            drop(answer);
            sleep(pause).await;
            answer = self.send(body).await?;
        }
        if answer.status.is_success() {
            self.turn.account().hop(tokens);
        }
        if !self.is_refused(answer.status) {
            return Ok(answer);
        }
        drop(answer);
        ask_for_plain(&mut self.original.head.headers);
        let answer = self.send_original().await?;
        if answer.status.is_success() {
            let tokens = self.turn.tokens_in(self.original.body.len());
            self.turn.account().hop(tokens);
            self.turn.refused();
        }
        Ok(answer)
    }

    /// Returns true if a provider refused the request behind a search. OpenAI does not find the items of an answer that an
    /// organisation has it keep nothing of.
    fn is_refused(&self, status: StatusCode) -> bool {
        let is_lost = status == StatusCode::NOT_FOUND && self.turn.api() == Api::OpenAiResponses;
        is_lost || is_refusal(status)
    }

    /// Reads an answer whole, and returns the body for the host.
    pub(crate) async fn whole(mut self, answer: Answer) -> Response {
        let mut text = match read(answer).await {
            Ok(Read::Text(text)) => text,
            Ok(Read::Other(pieces)) => return handed_on(StatusCode::OK, pieces),
            Err(failure) => return self.failed(&failure),
        };
        let api = self.turn.api();
        let mut earlier: Option<Value> = None;
        let mut ids = Vec::new();
        loop {
            let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
                return whole(StatusCode::OK, text);
            };
            let usage = answer::usage(api, &value);
            self.turn.used(usage);
            self.turn.pay(usage);
            answer::put_tools(api, &mut value, &self.turn.chat.shown_tools());
            ids.extend(value["id"].as_str().map(str::to_owned));
            let next = self.next_body(&mut value).await;
            let Some(next) = next else {
                self.turn.answered(&ids);
                let body = match earlier {
                    Some(earlier) => answer::joined(api, &earlier, value).to_string(),
                    None => raw::graft(&value, &text),
                };
                return whole(StatusCode::OK, body);
            };
            earlier = Some(match earlier {
                Some(earlier) => answer::joined(api, &earlier, value),
                None => value,
            });
            text = match self.next_text(next).await {
                Ok(text) => text,
                Err(response) => return response,
            };
        }
    }

    /// Returns the body of the request that the model goes on with behind this answer; `None` if the answer is the turn's last.
    async fn next_body(&mut self, value: &mut Value) -> Option<String> {
        let api = self.turn.api();
        let is_cut = gate::is_cut(api, value);
        let message = answer::message(api, value)?;
        let said = answer::as_history(api, message);
        let is_answerable = gate::is_answerable(api, message);
        let Asked { searches, has_calls } = answer::opened(api, message, &self.turn.chat.names);
        let calls = gate::calls_of(api, message);
        if has_calls && !is_cut && is_answerable && self.turn.holds_calls() {
            let judged = self.turn.judge(&calls).await;
            if judged.iter().any(|judged| judged.refusal.is_some()) {
                let seen = said.len();
                let refused =
                    Refused { said, seen, calls: &calls, judged: &judged, searches: &searches };
                let next = self.turn.refuse(refused).await?;
                gate::remove_calls(api, message);
                return Some(next);
            }
        } else if has_calls {
            self.turn.observe((!is_cut).then_some(calls));
        }
        self.turn.note_searched(&said);
        if searches.is_empty() || has_calls {
            self.turn.leave(&searches);
            self.turn.look_up(&searches).await;
            return None;
        }
        let next = self.turn.go_on(said, &searches).await;
        if next.is_none() {
            answer::end_turn(api, value);
        }
        next
    }

    /// Returns the text of the answer to a further request, or what the host is told in its place.
    async fn next_text(&mut self, body: String) -> Result<String, Response> {
        let answer = self.go_on(body).await;
        let answer = answer.map_err(|failure| self.failed(&failure))?;
        if is_compressed(&answer) {
            let message =
                "the provider compressed an answer behind a search, though it was asked not to";
            let failure = Failure { status: StatusCode::BAD_GATEWAY, message: message.to_owned() };
            return Err(self.failed(&failure));
        }
        let status = answer.status;
        let mut headers = headers::of_answer(status, answer.headers.clone());
        headers.remove(header::CONTENT_LENGTH);
        let mut response = match read(answer).await.map_err(|failure| self.failed(&failure))? {
            Read::Text(text) if status == StatusCode::OK => return Ok(text),
            Read::Text(text) => whole(status, text),
            Read::Other(pieces) => handed_on(status, pieces),
        };
        // They say when to ask again, and which request it was.
        *response.headers_mut() = headers;
        Err(response)
    }

    fn failed(&self, failure: &Failure) -> Response {
        tracing::warn!(provider = self.head.provider.name(), "{}", failure.message);
        self.head.provider.error(failure.status, &failure.message)
    }

    /// Returns the stream of the turn, over all of its requests.
    pub(crate) fn stream(self, answer: Answer) -> Pieces {
        let streaming = Streaming {
            pieces: Some(answer.pieces),
            machine: Machine::new(self.turn.api())
                .with_names(self.turn.chat.names.clone())
                .with_tools(self.turn.chat.shown_tools()),
            splitter: Splitter::default(),
            withheld: Vec::new(),
            is_passing: false,
            ending: Ending::Open,
            left: None,
            is_over: false,
            failure: None,
            exchange: self,
        };
        Box::pin(stream::unfold(streaming, |mut streaming| async move {
            let piece = streaming.next().await?;
            Some((piece, streaming))
        }))
    }
}

impl From<Unsendable> for Failure {
    fn from(unsendable: Unsendable) -> Self {
        let nothing_left = "all tools of this request are quarantined, and it can't be sent without any: it has a tool called, or its \
                            messages have calls. The proxy's log names the tools; those of llm.keep are sent whatever they say";
        let failed = "this request may have tools that are quarantined, and the proxy failed to take them out: it is not sent. The \
                      proxy's log says more";
        match unsendable {
            Unsendable::NothingLeft => {
                Self { status: StatusCode::BAD_REQUEST, message: nothing_left.to_owned() }
            }
            Unsendable::Failed => {
                Self { status: StatusCode::INTERNAL_SERVER_ERROR, message: failed.to_owned() }
            }
        }
    }
}

/// Stage of an answer's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Nothing of it is remembered yet.
    Open,
    /// What the host may refer to later is remembered.
    Noted,
    /// It is decided how the turn goes on behind it.
    Settled,
}

/// Stream of one turn.
struct Streaming {
    /// Rest of the current answer; `None` at the end of the turn.
    pieces: Option<Pieces>,
    machine: Machine,
    splitter: Splitter,
    /// Bytes of the answer from its first call on. The host gets them once the calls are judged.
    withheld: Vec<u8>,
    /// True once an answer was too large to be withheld.
    is_passing: bool,
    /// Stage of the current answer's end.
    ending: Ending,
    /// Record of the last answer that has ended, for a host that leaves before the turn's next one has.
    left: Option<Left>,
    /// True once the turn has come to its end, so that what follows only passes.
    is_over: bool,
    /// Error to end with, once what came before it is written.
    failure: Option<io::Error>,
    exchange: Exchange,
}

impl Streaming {
    async fn next(&mut self) -> Option<Piece> {
        let mut out = Vec::new();
        while out.is_empty() {
            if let Some(error) = self.failure.take() {
                flushed().await;
                return Some(Err(error));
            }
            let is_waiting = self.is_waiting();
            match self.piece(is_waiting).await? {
                Some(Ok(piece)) => {
                    self.take(&piece, &mut out);
                    if is_waiting {
                        self.settle(&mut out).await;
                    }
                }
                Some(Err(error)) if is_waiting => {
                    // The answer is whole. If the rest of its body passes, so does the error.
                    self.pieces = Some(Box::pin(stream::iter([Err(error)])));
                    self.settle(&mut out).await;
                }
                Some(Err(error)) => {
                    out.append(&mut self.withheld);
                    out.extend(self.splitter.rest());
                    self.failure = Some(error);
                    // What follows the error is nothing.
                    self.pieces = Some(Box::pin(stream::empty()));
                }
                None => self.ended(&mut out).await,
            }
        }
        Some(Ok(Bytes::from(out)))
    }

    /// Returns true if an answer has ended, and the host waits for what becomes of it.
    fn is_waiting(&self) -> bool {
        let is_held = self.machine.is_holding() || !self.withheld.is_empty();
        self.machine.has_ended() && is_held && !self.is_over
    }

    /// Returns the next piece of the current answer, if there is one; an empty one if its end is not worth waiting for.
    async fn piece(&mut self, is_waiting: bool) -> Option<Option<Piece>> {
        let next = self.pieces.as_mut()?.next();
        Some(if is_waiting {
            timeout(END_MAX, next).await.unwrap_or_else(|_| Some(Ok(Bytes::new())))
        } else {
            next.await
        })
    }

    fn take(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.splitter.push(piece);
        while let Some(event) = self.splitter.next() {
            self.event(&event, out);
        }
        if self.machine.has_ended() && !self.is_waiting() {
            // The host has all of it, and may leave before the body ends.
            self.note_end();
        }
    }

    /// Remembers what the host may refer to later: the IDs of the turn's answers, and thoughts and searches of the last one.
    fn note_end(&mut self) {
        if self.ending != Ending::Open {
            return;
        }
        self.ending = Ending::Noted;
        self.left = None;
        let turn = &mut self.exchange.turn;
        turn.note_searched(self.machine.said());
        turn.leave(self.machine.searches());
        turn.answered(self.machine.ids());
    }

    /// Returns what is to be remembered of an answer that has ended if the host leaves before it is settled.
    fn unsettled(&self) -> Left {
        self.exchange.turn.left(&Unsettled {
            ids: self.machine.ids(),
            said: self.machine.said(),
            searches: self.machine.searches(),
            is_withheld: !self.withheld.is_empty(),
        })
    }

    /// Takes an event. What the host gets of it is withheld if it is of a call that must be judged.
    fn event(&mut self, event: &[u8], out: &mut Vec<u8>) {
        let mut written = Vec::new();
        self.machine.event(event, &mut written);
        let is_held = self.machine.has_calls() && self.exchange.turn.holds_calls();
        if is_held && !self.is_passing {
            self.withheld.extend(written);
            if self.withheld.len() <= WITHHELD_MAX {
                return;
            }
            self.is_passing = true;
            out.append(&mut self.withheld);
        } else {
            out.extend(written);
        }
    }

    /// Judges the calls of an answer that has ended. Returns the body of the request that tells the model what was refused;
    /// `None` if the calls go to the host.
    async fn told(&mut self, out: &mut Vec<u8>) -> Option<String> {
        let turn = &mut self.exchange.turn;
        if !self.machine.has_calls() {
            return None;
        }
        let can_be_told = !self.withheld.is_empty() && self.machine.is_answerable();
        let calls = self.machine.calls();
        let Some(calls) = calls.filter(|_| can_be_told) else {
            turn.observe(self.machine.calls());
            return None;
        };
        let judged = turn.judge(&calls).await;
        if judged.iter().all(|judged| judged.refusal.is_none()) {
            return None;
        }
        let (said, searches) = self.machine.take_back();
        // The host got nothing from the first call on, also of what is no call.
        let seen = first_call(&said);
        let refused = Refused { said, seen, calls: &calls, judged: &judged, searches: &searches };
        let body = turn.refuse(refused).await?;
        self.withheld.clear();
        self.machine.write_said(out);
        Some(body)
    }

    /// Returns the body of the request that answers searches; `None` if the answer is the turn's last.
    async fn searched(&mut self, is_noted: bool) -> Option<String> {
        let turn = &mut self.exchange.turn;
        turn.note_searched(self.machine.said());
        match self.machine.end() {
            End::Done(searches) => {
                if !is_noted {
                    turn.leave(&searches);
                }
                turn.look_up(&searches).await;
                None
            }
            End::Searching(said, searches) => turn.go_on(said, &searches).await,
        }
    }

    /// Ends an answer whose body has ended.
    async fn ended(&mut self, out: &mut Vec<u8>) {
        // The last event may lack its empty line.
        let last = self.splitter.rest();
        self.event(&last, out);
        if !out.is_empty() && self.machine.is_holding() {
            out.extend_from_slice(b"\n\n");
        }
        self.pieces = None;
        if !self.is_over {
            self.settle(out).await;
        }
    }

    /// Asks on behind an answer with a search or a refused call, or ends the turn. What follows in the body of an answer that
    /// the host gets passes.
    async fn settle(&mut self, out: &mut Vec<u8>) {
        let is_noted = self.ending == Ending::Noted;
        if !is_noted {
            self.left = Some(self.unsettled());
        }
        self.ending = Ending::Settled;
        let body = match self.told(out).await {
            Some(body) => Some(body),
            None => {
                out.append(&mut self.withheld);
                self.searched(is_noted).await
            }
        };
        let Some(body) = body else {
            self.is_over = true;
            self.is_passing = true;
            if self.machine.is_holding() {
                self.pieces = None;
            }
            self.machine.give_up(out);
            self.exchange.turn.answered(self.machine.ids());
            self.left = None;
            return;
        };
        self.pieces = None;
        self.splitter = Splitter::default();
        match self.exchange.go_on(body).await {
            Ok(answer) if is_stream(&answer) => {
                self.exchange.turn.pay(self.machine.usage_of_answer());
                self.machine.go_on();
                self.ending = Ending::Open;
                self.pieces = Some(answer.pieces);
            }
            Ok(answer) => {
                let text = match read(answer).await {
                    Ok(Read::Text(text)) => text,
                    Ok(Read::Other(_)) | Err(_) => String::new(),
                };
                let message = || {
                    error_of(self.exchange.head.provider, "the search could not be gone on from")
                };
                let error = serde_json::from_str(&text).unwrap_or_else(|_| message());
                self.machine.fail(&error, out);
            }
            Err(failure) => {
                tracing::warn!("{}", failure.message);
                self.machine.fail(&error_of(self.exchange.head.provider, &failure.message), out);
            }
        }
    }
}

impl Drop for Streaming {
    /// Notes the usage, also of a turn that broke off, and what the host may refer to of an answer behind which it left.
    fn drop(&mut self) {
        if self.machine.has_ended() && self.ending == Ending::Open {
            self.left = Some(self.unsettled());
        }
        if let Some(left) = &self.left {
            self.exchange.turn.leave_behind(left);
        }
        self.exchange.turn.used(&self.machine.usage());
        self.exchange.turn.pay(self.machine.usage_of_answer());
    }
}

/// Body of an answer.
pub(crate) enum Read {
    /// A text, which is whole.
    Text(String),
    /// A body that is too large, or no text. It passes as it is.
    Other(Pieces),
}

/// Reads the body of an answer.
pub(crate) async fn read(answer: Answer) -> Result<Read, Failure> {
    let failed = |message: String| Failure { status: StatusCode::BAD_GATEWAY, message };
    let mut bytes = Vec::new();
    let mut pieces = answer.pieces;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| failed(format!("the answer broke off: {error}")))?;
        if bytes.len() + piece.len() > ANSWER_MAX {
            tracing::warn!(
                "an answer is larger than {ANSWER_MAX} bytes; it is handed on as it came"
            );
            let begun = stream::iter([Ok(Bytes::from(bytes)), Ok(piece)]);
            return Ok(Read::Other(Box::pin(begun.chain(pieces))));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Read::Text(text),
        Err(error) => {
            let bytes = Bytes::from(error.into_bytes());
            Read::Other(Box::pin(stream::iter([Ok(bytes)])))
        }
    })
}

/// Returns true if a provider refused what a request holds, and not who sent it or when.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY)
}

/// Asks for an answer that can be read here.
pub(crate) fn ask_for_plain(headers: &mut HeaderMap) {
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Returns true if an answer is compressed.
pub(crate) fn is_compressed(answer: &Answer) -> bool {
    let encoding = answer.headers.get(header::CONTENT_ENCODING);
    encoding.is_some_and(|encoding| encoding != "identity")
}

/// Returns true if an answer is a stream of events.
pub(crate) fn is_stream(answer: &Answer) -> bool {
    let kind = answer.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    answer.status == StatusCode::OK
        && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

fn error_of(provider: Provider, message: &str) -> Value {
    let message = format!("toolgate: {message}");
    match provider {
        Provider::Anthropic => {
            json!({ "type": "error", "error": { "type": "api_error", "message": message } })
        }
        Provider::Gemini => gemini::error(&message),
        Provider::OpenAi => {
            json!({ "error": { "message": message, "type": "proxy_error", "code": "toolgate" } })
        }
    }
}

fn whole(status: StatusCode, body: String) -> Response {
    response(status, Body::from(body))
}

/// Hands on a body that can't be read here.
fn handed_on(status: StatusCode, pieces: Pieces) -> Response {
    response(status, Body::from_stream(pieces))
}

fn response(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests;
