//! Servers behind a URL that speak HTTP+SSE, the transport of MCP 2024-11-05: one stream brings all messages of the server,
//! and its first event names the URL that takes the client's.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use reqwest::RequestBuilder;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::io::AsyncBufRead;
use tokio_util::io::StreamReader;
use url::Url;

use crate::credentials::{Authorizer, Secret};
use crate::events::{Event, Events, Kind};
use crate::http::{
    EVENT_STREAM, Failure, JSON, challenge_of, credential_failure, failure_of, media_type,
};
use crate::lines::Line;
use crate::tap::{Call, Ending, Tap};
use crate::target::Endpoint;

/// Time for the stream to begin and to name the URL for messages.
const OPEN: Duration = Duration::from_secs(10);

/// Time for a message to be taken. Its answer comes on the stream.
const POST: Duration = Duration::from_secs(30);

/// Events before the one that names the URL for messages.
const OTHERS_MAX: usize = 100;

/// Bytes of the answer to a message. It says nothing, but a connection whose answer was read is used again.
const ACCEPTED_MAX: usize = 4 << 10;

type Reader = Box<dyn AsyncBufRead + Send + Unpin>;

/// Transport to a server. It ends with its stream.
pub(crate) struct SseTransport {
    events: Events<Reader>,
    poster: Arc<Poster>,
    result_bytes_max: usize,
    _ending: Ending,
}

/// Sender of messages.
struct Poster {
    client: reqwest::Client,
    endpoint: Endpoint,
    authorizer: Option<Arc<Authorizer>>,
    tap: Tap,
}

impl SseTransport {
    /// Opens the stream at a URL, and waits for the URL that takes messages. Tokens come from `authorizer`.
    pub(crate) async fn open(
        client: reqwest::Client,
        endpoint: &Endpoint,
        authorizer: Option<Arc<Authorizer>>,
        tap: Tap,
        result_bytes_max: usize,
    ) -> Result<Self, Failure> {
        let mut poster = Poster { client, endpoint: endpoint.clone(), authorizer, tap };
        let opening = async {
            let response = poster.open_stream().await?;
            if let Some(failure) = failure_of(&response, false) {
                return Err(failure);
            }
            let media_type = media_type(&response);
            if !media_type.eq_ignore_ascii_case(EVENT_STREAM) {
                return Err(StreamableHttpError::UnexpectedContentType(Some(
                    media_type.to_owned(),
                )));
            }
            let chunks = response.bytes_stream().map(|chunk| chunk.map_err(std::io::Error::other));
            let reader: Reader = Box::new(StreamReader::new(chunks.boxed()));
            let mut events = Events::new(reader, result_bytes_max);
            let url = endpoint_of(&mut events, &endpoint.url).await?;
            Ok((events, url))
        };
        let (events, url) =
            tokio::time::timeout(OPEN, opening).await.map_err(|_elapsed| late(OPEN))??;
        poster.endpoint.url = url;
        Ok(Self {
            events,
            _ending: Ending(poster.tap.clone()),
            poster: Arc::new(poster),
            result_bytes_max,
        })
    }

    fn read(&self, event: &Event) -> Option<ServerJsonRpcMessage> {
        let is_message = event.kind == Kind::Message;
        is_message.then(|| self.poster.tap.read(&event.data, self.result_bytes_max)).flatten()
    }
}

/// Returns the URL for messages, which the stream names first. It must have the origin of the stream's own: a server must not
/// have the headers of its requests sent to another.
async fn endpoint_of<R: AsyncBufRead + Unpin>(
    events: &mut Events<R>,
    stream: &Url,
) -> Result<Url, Failure> {
    for _ in 0..OTHERS_MAX {
        let Some(event) = events.next().await? else {
            return Err(StreamableHttpError::UnexpectedEndOfStream);
        };
        if event.kind != Kind::Endpoint {
            continue;
        }
        let Line::Whole(data) = event.data else {
            return Err(refused("the URL for messages is too long"));
        };
        let text = String::from_utf8_lossy(&data);
        let url = stream.join(text.trim()).map_err(|_| refused("it names no URL for messages"))?;
        let has_user = !url.username().is_empty() || url.password().is_some();
        if url.origin() != stream.origin() || has_user {
            return Err(refused("the URL for messages is of another origin"));
        }
        return Ok(url);
    }
    Err(refused("it names no URL for messages"))
}

fn refused(problem: &'static str) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(problem.into())
}

fn late(after: Duration) -> Failure {
    let problem = format!("no answer within {} s", after.as_secs());
    StreamableHttpError::UnexpectedServerResponse(problem.into())
}

impl Poster {
    /// Asks for the stream. A refused token is renewed once.
    async fn open_stream(&self) -> Result<reqwest::Response, Failure> {
        let token = self.token().await?;
        let response = self.get(token.as_ref()).await?;
        let Some(authorizer) = &self.authorizer else { return Ok(response) };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let renewed = authorizer.renewed(token, &challenge_of(&response)).await;
        self.get(Some(&renewed.map_err(credential_failure)?)).await
    }

    async fn get(&self, token: Option<&Secret>) -> Result<reqwest::Response, Failure> {
        let request = self.client.get(self.endpoint.url.clone()).header(ACCEPT, EVENT_STREAM);
        self.complete(request, token).send().await.map_err(StreamableHttpError::Client)
    }

    async fn token(&self) -> Result<Option<Secret>, Failure> {
        let Some(authorizer) = &self.authorizer else { return Ok(None) };
        authorizer.token().await.map_err(credential_failure)
    }

    fn complete(&self, request: RequestBuilder, token: Option<&Secret>) -> RequestBuilder {
        let mut request = request;
        for (name, value) in &self.endpoint.headers {
            request = request.header(name, value.clone());
        }
        match token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }

    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        call: Option<&Arc<Call>>,
    ) -> Result<(), Failure> {
        let token = self.token().await?;
        let request = self
            .client
            .post(self.endpoint.url.clone())
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(message)?);
        let request = self.complete(request, token.as_ref());
        Tap::sent(call);
        let response = request.send().await.map_err(|error| {
            if error.is_connect() {
                Tap::unsent(call);
            }
            StreamableHttpError::Client(error)
        })?;
        if let Some(failure) = failure_of(&response, false) {
            if response.status() == StatusCode::NOT_FOUND {
                // The server has forgotten the session: a new stream begins another.
                self.tap.end();
            }
            return Err(failure);
        }
        let answer = crate::http::bounded(response, ACCEPTED_MAX);
        let _unused = crate::http::collect(answer).await;
        Ok(())
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = Failure;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        let call = self.poster.tap.sending(&message);
        let poster = Arc::clone(&self.poster);
        async move {
            let posted = tokio::time::timeout(POST, poster.post(&message, call.as_ref())).await;
            posted.unwrap_or_else(|_elapsed| Err(late(POST)))
        }
    }

    /// Returns the next message; `None` once the stream has ended. Events that are no messages are skipped, and those beyond
    /// the limit end their call.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Ok(Some(event)) = self.events.next().await else {
                self.poster.tap.end();
                return None;
            };
            if let Some(message) = self.read(&event) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Failure> {
        self.poster.tap.end();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncRead, AsyncWriteExt as _, BufReader, ReadBuf};

    use super::*;
    use crate::credentials::Authorization;

    const LIMIT: usize = 1 << 10;

    /// Stream of one byte, again and again.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let room = buffer.initialize_unfilled();
            room.fill(b'x');
            let count = room.len();
            buffer.advance(count);
            Poll::Ready(Ok(()))
        }
    }

    async fn endpoint(stream: &str) -> Result<String, String> {
        let base = Url::parse("https://tools.example/a/sse?key=1").expect("a URL");
        let mut events = Events::new(stream.as_bytes(), LIMIT);
        let url = endpoint_of(&mut events, &base).await.map_err(|error| error.to_string())?;
        Ok(url.to_string())
    }

    #[tokio::test]
    async fn the_url_for_messages_is_of_the_streams_origin() {
        for (named, url) in [
            ("/messages/?session_id=1", "https://tools.example/messages/?session_id=1"),
            ("messages", "https://tools.example/a/messages"),
            ("?session_id=1", "https://tools.example/a/sse?session_id=1"),
            ("https://tools.example:443/m", "https://tools.example/m"),
        ] {
            let stream =
                format!(": hello\n\nevent: x\ndata: 1\n\nevent: endpoint\ndata: {named}\n\n");
            assert_eq!(endpoint(&stream).await.as_deref(), Ok(url));
        }
        for named in [
            "https://other.example/m",
            "//other.example/m",
            "http://tools.example/m",
            "https://tools.example:444/m",
            "https://me:word@tools.example/m",
            "file:///etc/passwd",
            "data:,x",
        ] {
            let refusal = endpoint(&format!("event: endpoint\ndata: {named}\n\n")).await;
            assert!(refusal.expect_err(named).contains("another origin"), "{named}");
        }
    }

    #[tokio::test]
    async fn a_stream_without_a_url_for_messages_is_refused() {
        for (stream, problem) in [
            ("", "end of stream"),
            ("event: endpoint\ndata: /m", "end of stream"),
            ("event: endpoint\ndata: https://[\n\n", "no URL"),
        ] {
            let refusal = endpoint(stream).await.expect_err(stream);
            assert!(refusal.contains(problem), "{stream}: {refusal}");
        }
        let others = "data: 1\n\n".repeat(OTHERS_MAX);
        assert!(endpoint(&others).await.expect_err("no URL").contains("no URL"));
        let long = format!("event: endpoint\ndata: /{}\n\n", "x".repeat(LIMIT * 2));
        assert!(endpoint(&long).await.expect_err("no URL").contains("too long"));
    }

    #[tokio::test]
    async fn an_endless_event_ends_the_stream() {
        let base = Url::parse("https://tools.example").expect("a URL");
        let mut events = Events::new(BufReader::new(Endless), LIMIT);
        assert!(endpoint_of(&mut events, &base).await.is_err());
    }

    #[tokio::test]
    async fn a_message_that_was_begun_is_none() {
        let (mut server, stream) = tokio::io::duplex(LIMIT);
        let tap = Tap::default();
        let reader: Reader = Box::new(BufReader::new(stream));
        let endpoint = Endpoint {
            url: Url::parse("http://[::1]").expect("a URL"),
            headers: Vec::new(),
            authorization: Authorization::Headers,
        };
        let client = crate::http::client().expect("a client");
        let mut transport = SseTransport {
            events: Events::new(reader, LIMIT),
            poster: Arc::new(Poster { client, endpoint, authorizer: None, tap: tap.clone() }),
            result_bytes_max: LIMIT,
            _ending: Ending(tap.clone()),
        };
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        for part in [
            &b"data: "[..],
            notification,
            b"\n\n: ping\n\ndata: no JSON\n\ndata: ",
            &notification[..20],
        ] {
            server.write_all(part).await.expect("a stream");
        }
        drop(server);
        let message = transport.receive().await;
        assert!(matches!(message, Some(ServerJsonRpcMessage::Notification(_))), "{message:?}");
        assert!(!tap.has_ended());
        assert!(transport.receive().await.is_none());
        assert!(tap.has_ended());
    }
}
