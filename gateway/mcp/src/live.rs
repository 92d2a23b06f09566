//! A call that runs while its server asks the host. It is independent of the host's request: it can wait for the next one.

use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolgate_telemetry::in_trace;
use toolgate_upstream::{Asker, Question, Request, RequestError, ServerState};

use crate::gateway::Gateway;
use crate::passing::Hearer;

/// Most open questions of a call. More are refused.
const QUESTIONS_OPEN: usize = 16;

/// Notes of a call that wait to be sent. More are dropped.
pub(crate) const NOTES_MAX: usize = 16;

/// Time in which questions that come together are told together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Call under way. Dropped, it is cancelled at the server.
pub(crate) struct Live {
    call: JoinHandle<Result<Box<RawValue>, RequestError>>,
    questions: mpsc::Receiver<Question>,
    notes: mpsc::Receiver<Value>,
}

/// Next event of a call that somebody must act on.
pub(crate) enum Step {
    /// The server answered, or the call failed.
    Ended(Result<Box<RawValue>, RequestError>),
    /// The server asks; at least one question.
    Asked(Vec<Question>),
}

/// Host that a call may ask: its name within its principal, and the capabilities that it declares.
pub(crate) struct AskedHost {
    pub(crate) name: String,
    pub(crate) capabilities: Value,
}

impl Live {
    /// Sends a request of a host that can be asked.
    pub(crate) fn start(
        gateway: &Gateway,
        server: &str,
        mut request: Request,
        host: AskedHost,
    ) -> Self {
        let (asking, questions) = mpsc::channel(QUESTIONS_OPEN);
        let (telling, notes) = mpsc::channel(NOTES_MAX);
        let AskedHost { name, capabilities } = host;
        request.asker = Some(Asker { host: name, capabilities, questions: asking });
        request.progress = Some(telling);
        let fleet = gateway.fleet().clone();
        let server = server.to_owned();
        let deadline = Instant::now() + gateway.call_time_max();
        // It may outlive the host's request.
        let call =
            tokio::spawn(in_trace(async move { fleet.request(&server, request, deadline).await }));
        Self { call, questions, notes }
    }

    /// Waits for the next event; what the server tells until then goes to `hearer`.
    pub(crate) async fn step(&mut self, hearer: Option<&Hearer>) -> Step {
        loop {
            tokio::select! {
                biased;
                Some(note) = self.notes.recv() => {
                    if let Some(hearer) = hearer {
                        hearer.tell(note).await;
                    }
                }
                Some(question) = self.questions.recv() => {
                    return Step::Asked(self.with_others(question).await);
                }
                ended = &mut self.call => return Step::Ended(ended.unwrap_or_else(|_ended| {
                    Err(RequestError::Unavailable {
                        state: ServerState::Stopped,
                        problem: "the call was ended".to_owned(),
                        may_have_run: true,
                    })
                })),
            }
        }
    }

    async fn with_others(&mut self, question: Question) -> Vec<Question> {
        let mut questions = vec![question];
        while questions.len() < QUESTIONS_OPEN
            && let Ok(Some(next)) = tokio::time::timeout(TOGETHER, self.questions.recv()).await
        {
            questions.push(next);
        }
        questions
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.call.abort();
    }
}

#[cfg(test)]
impl Live {
    /// Returns a call without an end.
    pub(crate) fn pending() -> Self {
        let call = tokio::spawn(std::future::pending());
        Self { call, questions: mpsc::channel(1).1, notes: mpsc::channel(1).1 }
    }
}
