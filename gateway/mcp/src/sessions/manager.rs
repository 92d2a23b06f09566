//! Sessions that are alive at this replica, as the protocol library keeps them. Questions to hosts get names that lead their
//! answers back to the replica that asks.

use std::future::ready;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, NumberOrString,
    RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError,
};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};
use tokio::time::Duration;

use super::{Sessions, carried};
use crate::gateway::Gateway;
use crate::placed::marked;
use crate::sealed::{Content, Purpose};

/// Time for which the name of a question is good: longer than any call may take.
const QUESTION_KEPT: Duration = Duration::from_secs(60 * 60);

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.alive.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.alive.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.alive.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.alive.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.alive.create_stream(id, message).await?;
        Ok(naming(&self.gateway, id, stream))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        match &mut message {
            JsonRpcMessage::Response(answer) => {
                if let Some(number) = number(&self.gateway, id, &answer.id) {
                    answer.id = number;
                }
            }
            JsonRpcMessage::Error(answer) => {
                if let Some(number) =
                    answer.id.as_ref().and_then(|name| number(&self.gateway, id, name))
                {
                    answer.id = Some(number);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        self.alive.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = self.alive.create_standalone_stream(id).await?;
        Ok(naming(&self.gateway, id, stream))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let gateway = self.gateway.clone();
        let stream = self.alive.resume(id, last_event_id).await?.map(move |mut event| {
            event.message = event.message.map(|message| resumed(&gateway, message));
            event
        });
        Ok(naming(&self.gateway, id, stream))
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.alive.restore_session(id).await
    }
}

/// Returns the messages of a stream, with names of questions, and with events that have none only for a host that takes them.
fn naming(
    gateway: &Gateway,
    id: &SessionId,
    stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
) -> impl Stream<Item = ServerSseMessage> + Send + Sync + 'static {
    let gateway = gateway.clone();
    let id = id.clone();
    let takes_empty = carried::takes_empty_events();
    let taken = stream.filter(move |event| ready(takes_empty || event.message.is_some()));
    taken.map(move |message| named(&gateway, &id, message))
}

/// Returns a message as a stream that was taken up again carries it: the text of a result stood in the response that broke off.
fn resumed(gateway: &Gateway, message: Arc<ServerJsonRpcMessage>) -> Arc<ServerJsonRpcMessage> {
    let JsonRpcMessage::Response(response) = &*message else { return message };
    let ServerResult::CustomResult(CustomResult(result)) = &response.result else {
        return message;
    };
    let Some(mark) = marked(result) else { return message };
    let id = response.id.clone();
    let whole = gateway.resumable().result(mark);
    Arc::new(match whole.map(CustomResult).map(ServerResult::CustomResult) {
        Some(whole) => ServerJsonRpcMessage::response(whole, id),
        None => {
            let problem = "the result broke off and is not kept any more";
            let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, problem, None);
            ServerJsonRpcMessage::error(error, Some(id))
        }
    })
}

/// Returns a message to the host with a name of the question that leads its answer back to this replica.
fn named(gateway: &Gateway, session: &SessionId, message: ServerSseMessage) -> ServerSseMessage {
    let Some(JsonRpcMessage::Request(request)) = message.message.as_deref() else {
        return message;
    };
    let NumberOrString::Number(id) = request.id else { return message };
    let question = Content::Question { id, at: gateway.seal().here().clone() };
    let name = gateway.seal().seal(question, &purpose(session), QUESTION_KEPT);
    let mut request = request.clone();
    request.id = NumberOrString::String(Arc::from(name));
    let mut named = message;
    named.message = Some(Arc::new(ServerJsonRpcMessage::Request(request)));
    named
}

/// Returns the number of the question that an answer names.
fn number(gateway: &Gateway, session: &SessionId, id: &RequestId) -> Option<RequestId> {
    let NumberOrString::String(name) = id else { return None };
    match gateway.seal().open(name, &purpose(session)) {
        Some(Content::Question { id, at }) if at == *gateway.seal().here() => {
            Some(NumberOrString::Number(id))
        }
        _ => None,
    }
}

fn purpose(session: &SessionId) -> Purpose<'_> {
    Purpose { principal: "", server: session, method: "question", name: "" }
}
