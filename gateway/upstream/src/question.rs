//! Questions of servers of revisions before 2026-07-28: requests of a server while it runs a request of a host.

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

/// Host that a server may ask while it runs a request.
#[derive(Debug, Clone)]
pub struct Asker {
    /// Name of the host within its principal. Requests with the same name share a connection.
    pub host: String,
    /// Capabilities that the host declares; an object with some of `elicitation`, `sampling` and `roots`.
    pub capabilities: Value,
    /// Receiver of the questions. A question that does not fit in is refused.
    pub questions: mpsc::Sender<Question>,
}

/// Question of a server. Dropped without an answer, it is answered with an error.
#[derive(Debug)]
pub struct Question {
    /// Method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters, as the server wrote them.
    pub params: Value,
    /// Place of the answer: a result, or why there is none.
    pub answer: oneshot::Sender<Result<Value, NoAnswer>>,
}

/// Host of a call that is under way, as its connection knows it.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Receiver of the questions.
    pub(crate) questions: mpsc::Sender<Question>,
    /// Number of calls of the connection that wait for answers.
    pub(crate) waiting: watch::Sender<usize>,
}

/// JSON-RPC error in the place of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NoAnswer {
    /// Code of the error.
    pub code: i32,
    /// Its message.
    pub message: String,
}

/// Code of requests that make no sense now.
const INVALID_REQUEST: i32 = -32600;

impl NoAnswer {
    /// Makes an error that says why a question is not put to a host.
    pub fn refused(problem: impl Into<String>) -> Self {
        Self { code: INVALID_REQUEST, message: problem.into() }
    }
}
