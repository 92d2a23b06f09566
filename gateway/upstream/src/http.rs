//! Servers behind a URL, over Streamable HTTP.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use sse_stream::{Sse, SseStream};

use crate::error::UpstreamError;
use crate::lists::Lists;
use crate::target::Endpoint;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Largest answer to `tools/list`, in bytes.
const LIST_MAX: usize = 32 << 20;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";

type Failure = StreamableHttpError<reqwest::Error>;

/// HTTP client that keeps lists of tools as they come by.
#[derive(Clone)]
pub(crate) struct ListingClient {
    client: reqwest::Client,
    lists: Lists,
}

/// Parts of a POST besides its message.
struct Post {
    uri: Arc<str>,
    session_id: Option<Arc<str>>,
    token: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
}

/// Returns the transport to a server.
pub(crate) fn transport(
    endpoint: &Endpoint,
    lists: Lists,
) -> Result<StreamableHttpClientTransport<ListingClient>, UpstreamError> {
    let client = ListingClient { client: client()?, lists };
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .custom_headers(endpoint.headers.iter().cloned().collect());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Returns a client that follows no redirects: a header of one host is not for another.
fn client() -> Result<reqwest::Client, UpstreamError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let failed = |error: &dyn std::error::Error| UpstreamError::Client(error.to_string());
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
        .map_err(|error| failed(&error))
}

impl ListingClient {
    /// Sends `tools/list`, and keeps the bytes of the answer.
    async fn list(
        &self,
        message: &ClientJsonRpcMessage,
        post: Post,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = post.session_id.is_some();
        let mut request = self
            .client
            .post(post.uri.as_ref())
            .header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"))
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(message)?);
        for (name, value) in post.headers {
            request = request.header(name, value);
        }
        if let Some(session_id) = post.session_id {
            request = request.header(SESSION_ID, session_id.as_ref());
        }
        if let Some(token) = post.token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        refuse_failure(&response, has_session)?;
        let is_stream = media_type(&response).eq_ignore_ascii_case(EVENT_STREAM);
        let chunks = bounded(response);
        if is_stream {
            return Ok(StreamableHttpPostResponse::Sse(self.events(chunks), None));
        }
        let body = collect(chunks).await?;
        let text = String::from_utf8_lossy(&body);
        self.lists.observe(&text);
        Ok(StreamableHttpPostResponse::Json(serde_json::from_str(&text)?, None))
    }

    fn events(
        &self,
        chunks: BoxStream<'static, io::Result<Vec<u8>>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let lists = self.lists.clone();
        let chunks = chunks.map(|chunk| chunk.map(std::collections::VecDeque::from));
        let events = SseStream::from_bytes_stream(chunks);
        let keep = move |event: &Result<Sse, SseError>| {
            if let Ok(Sse { data: Some(data), .. }) = event {
                lists.observe(data);
            }
        };
        events.inspect(keep).boxed()
    }
}

fn refuse_failure(response: &reqwest::Response, has_session: bool) -> Result<(), Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if status == StatusCode::NOT_FOUND && has_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    if status == StatusCode::UNAUTHORIZED
        && let Some(challenge) = challenge
    {
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            challenge.to_owned(),
        )));
    }
    Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()))
}

/// Returns the media type of a response without its parameters.
fn media_type(response: &reqwest::Response) -> &str {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

/// Returns the body, which fails beyond [`LIST_MAX`] bytes.
fn bounded(response: reqwest::Response) -> BoxStream<'static, io::Result<Vec<u8>>> {
    let mut left = LIST_MAX;
    let chunks = response.bytes_stream();
    let checked = chunks.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        let too_large = || io::Error::other(format!("the answer has more than {LIST_MAX} bytes"));
        left = left.checked_sub(chunk.len()).ok_or_else(too_large)?;
        Ok(chunk.to_vec())
    });
    checked.boxed()
}

async fn collect(mut chunks: BoxStream<'static, io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        body.extend(chunk?);
    }
    Ok(body)
}

fn lists_tools(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::ListToolsRequest(_)))
}

impl StreamableHttpClient for ListingClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        )
        .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        if lists_tools(&message) {
            let post = Post { uri, session_id, token: auth_header, headers: custom_headers };
            return self.list(&message, post).await;
        }
        self.client
            .post_message_with_response_limits(
                uri,
                message,
                session_id,
                auth_header,
                custom_headers,
                limits,
            )
            .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.client.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }
}
