//! Servers behind a URL, over Streamable HTTP.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use sse_stream::{Sse, SseStream};

use crate::credentials::{Authorizer, Challenge, CredentialError, Secret};
use crate::error::UpstreamError;
use crate::opened::OpenedStream;
use crate::tap::{Call, Ending, Tap};
use crate::target::Endpoint;

/// Requests at a time on one connection. Who calls has bounds of their own.
const REQUESTS_MAX: usize = 256;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(crate) const JSON: &str = "application/json";
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Failure of a request over HTTP.
pub(crate) type Failure = StreamableHttpError<reqwest::Error>;

/// HTTP client that shows messages to the tap.
#[derive(Clone)]
pub(crate) struct TappedClient {
    client: reqwest::Client,
    tap: Tap,
    authorizer: Option<Arc<Authorizer>>,
    result_bytes_max: usize,
    opened: OpenedStream,
    _ending: Arc<Ending>,
}

/// Parts of a POST besides its message.
struct Post {
    uri: Arc<str>,
    session_id: Option<Arc<str>>,
    headers: HashMap<HeaderName, HeaderValue>,
}

/// Returns the transport to a server.
pub(crate) fn transport(
    endpoint: &Endpoint,
    tap: Tap,
    authorizer: Option<Arc<Authorizer>>,
    result_bytes_max: usize,
) -> Result<StreamableHttpClientTransport<TappedClient>, UpstreamError> {
    let client = TappedClient {
        client: client()?,
        authorizer,
        _ending: Arc::new(Ending(tap.clone())),
        tap,
        result_bytes_max,
        opened: OpenedStream::default(),
    };
    let config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str())
        .max_concurrent_requests(REQUESTS_MAX)
        .custom_headers(endpoint.headers.iter().cloned().collect());
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

pub(crate) fn client() -> Result<reqwest::Client, UpstreamError> {
    client_builder()?.build().map_err(|error| UpstreamError::Client(error.to_string()))
}

/// Returns a client for requests to this operator's own machines: no proxy, no redirects, as many connections as it takes.
///
/// # Errors
/// [`UpstreamError::Client`] if TLS can't be set up.
pub fn plain_client(connect: Duration) -> Result<reqwest::Client, UpstreamError> {
    let client = client_builder()?.no_proxy().connect_timeout(connect).build();
    client.map_err(|error| UpstreamError::Client(error.to_string()))
}

/// Returns the parts of a client that follows no redirects: a header of one host is not for another.
pub(crate) fn client_builder() -> Result<reqwest::ClientBuilder, UpstreamError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let failed = |error: &dyn std::error::Error| UpstreamError::Client(error.to_string());
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT))
}

impl TappedClient {
    /// Sends the request of a call, and hands the answer's bytes to it.
    async fn call(
        &self,
        message: &ClientJsonRpcMessage,
        call: &Arc<Call>,
        post: &Post,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = post.session_id.is_some();
        self.opened.wait(post.session_id.as_ref()).await;
        let response = self.authorized(message, call, post).await?;
        let status = response.status();
        let failure = failure_of(&response, has_session);
        let is_json = media_type(&response).eq_ignore_ascii_case(JSON);
        if let Some(failure) = failure
            && !(is_json && status.is_client_error() && !is_refusal(status))
        {
            return Err(failure);
        }
        let is_stream = media_type(&response).eq_ignore_ascii_case(EVENT_STREAM);
        let chunks = bounded(response, self.result_bytes_max);
        if is_stream {
            let chunks = self.told_when_too_large(message, chunks);
            let events = self.events(chunks, Some(Arc::clone(call)));
            return Ok(StreamableHttpPostResponse::Sse(events, None));
        }
        self.json(message, chunks, status).await
    }

    /// Sends the request of a call. A refused token is renewed once: what was refused has not run.
    async fn authorized(
        &self,
        message: &ClientJsonRpcMessage,
        call: &Arc<Call>,
        post: &Post,
    ) -> Result<reqwest::Response, Failure> {
        let token = self.token().await?;
        let response = self.send(message, call, post, token.as_ref()).await?;
        if response.status() != StatusCode::UNAUTHORIZED || self.authorizer.is_none() {
            self.check_scopes(call, &response).await?;
            return Ok(response);
        }
        Tap::unsent(Some(call));
        let token = self.renewed(token, &challenge_of(&response)).await?;
        let response = self.send(message, call, post, Some(&token)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            Tap::unsent(Some(call));
            return Err(self.refused_again(&challenge_of(&response)));
        }
        self.check_scopes(call, &response).await?;
        Ok(response)
    }

    /// Fails where the server refuses a call for scopes that the token lacks.
    async fn check_scopes(
        &self,
        call: &Arc<Call>,
        response: &reqwest::Response,
    ) -> Result<(), Failure> {
        let Some(authorizer) = &self.authorizer else { return Ok(()) };
        if response.status() != StatusCode::FORBIDDEN {
            return Ok(());
        }
        let challenge = Challenge::parse(&challenge_of(response));
        if !challenge.lacks_scopes {
            return Ok(());
        }
        Tap::unsent(Some(call));
        let told = authorizer.lacks(&challenge).await.map_err(credential_failure)?;
        // The text in the place of the challenge: nothing else reaches who waits for the call.
        Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(told, None)))
    }

    async fn send(
        &self,
        message: &ClientJsonRpcMessage,
        call: &Arc<Call>,
        post: &Post,
        token: Option<&Secret>,
    ) -> Result<reqwest::Response, Failure> {
        let mut request = self
            .client
            .post(post.uri.as_ref())
            .header(ACCEPT, format!("{EVENT_STREAM}, {JSON}"))
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(message)?);
        for (name, value) in &post.headers {
            request = request.header(name, value);
        }
        if let Some(session_id) = &post.session_id {
            request = request.header(SESSION_ID, session_id.as_ref());
        }
        if let Some(token) = token {
            request = request.bearer_auth(token.reveal());
        }
        Tap::sent(Some(call));
        request.send().await.map_err(|error| {
            if error.is_connect() {
                Tap::unsent(Some(call));
            }
            StreamableHttpError::Client(error)
        })
    }

    async fn token(&self) -> Result<Option<Secret>, Failure> {
        let Some(authorizer) = &self.authorizer else { return Ok(None) };
        authorizer.token().await.map_err(credential_failure)
    }

    async fn renewed(&self, refused: Option<Secret>, challenge: &str) -> Result<Secret, Failure> {
        let Some(authorizer) = &self.authorizer else { return Err(login_failure(challenge)) };
        authorizer.renewed(refused, challenge).await.map_err(credential_failure)
    }

    /// Returns the failure where a token that was just got is refused. A login may help; else only time does.
    fn refused_again(&self, challenge: &str) -> Failure {
        if self.authorizer.as_ref().is_some_and(|authorizer| authorizer.is_of_person()) {
            return login_failure(challenge);
        }
        let problem = "it refuses a token that is new (HTTP 401): see its `oauth.scopes`";
        StreamableHttpError::UnexpectedServerResponse(problem.into())
    }

    /// Posts a message that is no call of the gateway's own, by the library's client.
    async fn post(
        &self,
        message: &ClientJsonRpcMessage,
        post: &Post,
        token: Option<Secret>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let posted = self
            .client
            .post_message_with_response_limits(
                Arc::clone(&post.uri),
                message.clone(),
                post.session_id.clone(),
                token.map(|token| token.reveal().to_owned()),
                post.headers.clone(),
                limits,
            )
            .await;
        match posted {
            // The library takes only a refusal with a challenge for one.
            Err(StreamableHttpError::UnexpectedServerResponse(text))
                if text.starts_with("HTTP 401") =>
            {
                Err(login_failure(""))
            }
            posted => posted,
        }
    }

    /// Opens the stream for messages that belong to no call, or one that was cut.
    async fn open_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let token = self.token().await?;
        let opened = |token: Option<Secret>| {
            let token = token.map(|token| token.reveal().to_owned());
            let session_id = session_id.clone();
            let last_event_id = last_event_id.clone();
            self.client.get_stream(
                Arc::clone(&uri),
                session_id,
                last_event_id,
                token,
                headers.clone(),
            )
        };
        match opened(token.clone()).await {
            Err(StreamableHttpError::AuthRequired(refusal)) if self.authorizer.is_some() => {
                let token = self.renewed(token, &refusal.www_authenticate_header).await?;
                opened(Some(token)).await
            }
            opened => opened,
        }
    }

    async fn json(
        &self,
        message: &ClientJsonRpcMessage,
        chunks: BoxStream<'static, io::Result<Vec<u8>>>,
        status: StatusCode,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let body = match collect(chunks).await {
            Ok(body) => body,
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let stand_in = self.tap.too_large(id_of(message), self.result_bytes_max);
                let seen = stand_in.ok_or(error)?;
                return Ok(StreamableHttpPostResponse::Json(serde_json::from_str(&seen)?, None));
            }
            Err(error) => return Err(error.into()),
        };
        let text = String::from_utf8_lossy(&body);
        let seen = serde_json::from_str(&self.tap.received(&text, None));
        match seen {
            Ok(seen) => Ok(StreamableHttpPostResponse::Json(seen, None)),
            Err(_) if !status.is_success() => Err(status_failure(status)),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the chunks of a stream, which end their call when they are too many.
    fn told_when_too_large(
        &self,
        message: &ClientJsonRpcMessage,
        chunks: BoxStream<'static, io::Result<Vec<u8>>>,
    ) -> BoxStream<'static, io::Result<Vec<u8>>> {
        let tap = self.tap.clone();
        let id = id_of(message);
        let limit = self.result_bytes_max;
        let tell = move |chunk: &io::Result<Vec<u8>>| {
            if chunk.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::FileTooLarge) {
                let _unseen = tap.too_large(id, limit);
            }
        };
        chunks.inspect(tell).boxed()
    }

    /// Returns the events of a stream, whose messages are shown to the tap.
    fn events(
        &self,
        chunks: BoxStream<'static, io::Result<Vec<u8>>>,
        call: Option<Arc<Call>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let chunks = chunks.map(|chunk| chunk.map(std::collections::VecDeque::from));
        self.tapped(SseStream::from_bytes_stream(chunks).boxed(), call)
    }

    fn tapped(
        &self,
        events: BoxStream<'static, Result<Sse, SseError>>,
        call: Option<Arc<Call>>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let tap = self.tap.clone();
        let show = move |mut event: Result<Sse, SseError>| {
            if let Ok(Sse { data: Some(data), .. }) = &mut event
                && let Cow::Owned(seen) = tap.received(data, call.as_ref())
            {
                *data = seen;
            }
            event
        };
        events.map(show).boxed()
    }
}

/// Returns the failure that a response is, if it is one.
pub(crate) fn failure_of(response: &reqwest::Response, has_session: bool) -> Option<Failure> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    if status == StatusCode::NOT_FOUND && has_session {
        return Some(StreamableHttpError::SessionExpired);
    }
    if status == StatusCode::UNAUTHORIZED {
        return Some(login_failure(&challenge_of(response)));
    }
    Some(status_failure(status))
}

/// Returns the failure of a request that the server takes only with a login.
fn login_failure(challenge: &str) -> Failure {
    StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned()))
}

pub(crate) fn credential_failure(error: CredentialError) -> Failure {
    match error {
        CredentialError::Login(_) => login_failure(""),
        error => StreamableHttpError::UnexpectedServerResponse(error.to_string().into()),
    }
}

pub(crate) fn challenge_of(response: &reqwest::Response) -> String {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    values.join(", ")
}

fn status_failure(status: StatusCode) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into())
}

/// Returns whether a status refuses whatever the body says.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
    )
}

fn id_of(message: &ClientJsonRpcMessage) -> Option<i64> {
    let JsonRpcMessage::Request(request) = message else { return None };
    crate::tap::numeric(&request.id.to_string())
}

/// Returns the media type of a response without its parameters.
pub(crate) fn media_type(response: &reqwest::Response) -> &str {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

/// Returns the body, which fails beyond a number of bytes.
pub(crate) fn bounded(
    response: reqwest::Response,
    limit: usize,
) -> BoxStream<'static, io::Result<Vec<u8>>> {
    let mut left = limit;
    let chunks = response.bytes_stream();
    let checked = chunks.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        left = left.checked_sub(chunk.len()).ok_or_else(too_large)?;
        Ok(chunk.to_vec())
    });
    checked.boxed()
}

pub(crate) async fn collect(
    mut chunks: BoxStream<'static, io::Result<Vec<u8>>>,
) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = chunks.next().await {
        body.extend(chunk?);
    }
    Ok(body)
}

impl StreamableHttpClient for TappedClient {
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
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let post = Post { uri, session_id, headers: custom_headers };
        if let Some(call) = self.tap.sending(&message) {
            return self.call(&message, &call, &post).await;
        }
        let token = self.token().await?;
        match self.post(&message, &post, token.clone(), limits).await {
            Err(StreamableHttpError::AuthRequired(refusal)) if self.authorizer.is_some() => {
                let token = self.renewed(token, &refusal.www_authenticate_header).await?;
                match self.post(&message, &post, Some(token), limits).await {
                    Err(StreamableHttpError::AuthRequired(refusal)) => {
                        Err(self.refused_again(&refusal.www_authenticate_header))
                    }
                    posted => posted,
                }
            }
            posted => posted,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let token = self.token().await?.map(|token| token.reveal().to_owned());
        self.client.delete_session(uri, session_id, token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let opened = self.open_stream(uri, session_id.clone(), last_event_id, custom_headers).await;
        self.opened.answered(session_id.as_ref());
        Ok(self.tapped(opened?, None))
    }
}
