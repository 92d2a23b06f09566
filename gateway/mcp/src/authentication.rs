//! Authentication of hosts: the gateway as a protected resource of OAuth 2.1 (RFC 6750, RFC 9728). Credentials are
//! verified by whoever runs the gateway.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use url::Url;

use crate::caller::Caller;

/// Path of the metadata of a protected resource, before the path of the resource.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Interval at which the credentials of an open stream are verified again.
const VERIFIED_AGAIN: Duration = Duration::from_secs(5);

/// Verifies the credentials of requests.
pub trait Authentication: Send + Sync {
    /// Returns the caller with these credentials.
    fn authenticate<'a>(
        &'a self,
        presented: PresentedCredentials<'a>,
    ) -> BoxFuture<'a, Result<Caller, Refusal>>;
}

/// Credentials of a request, as they came.
#[derive(Clone)]
pub struct PresentedCredentials<'a> {
    /// Values of the header `authorization`.
    pub authorization: Vec<&'a [u8]>,
    /// Address that the request came from.
    pub peer: IpAddr,
    /// Connection that it came over, as whoever accepted it knows it; `None` where a certificate counts for nothing.
    pub connection: Option<AcceptedConnection>,
}

/// Connection as whoever accepted it knows it, with the certificate that the host showed.
pub type AcceptedConnection = Arc<dyn Any + Send + Sync>;

/// Remote end of a host's connection.
#[derive(Debug, Clone)]
pub struct HostPeer {
    /// Its address and port.
    pub address: SocketAddr,
    /// The connection.
    pub connection: AcceptedConnection,
}

/// Reason that a request is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no credential.
    Missing,
    /// The credential is not good. Holds the problem, for the caller.
    Invalid(String),
    /// The token lacks a scope that every request needs.
    Scope,
    /// The credential is good, and this is not for it. Holds the problem.
    Forbidden(String),
    /// Too many unknown credentials are being looked up.
    Busy,
    /// Credentials can't be verified now.
    Unavailable,
}

/// Waits until credentials that were good are refused. While they can't be verified, they count as good.
pub(crate) async fn until_refused(
    authentication: Arc<dyn Authentication>,
    values: Vec<HeaderValue>,
    peer: HostPeer,
) {
    loop {
        tokio::time::sleep(VERIFIED_AGAIN).await;
        let authorization = values.iter().map(HeaderValue::as_bytes).collect();
        let presented = PresentedCredentials {
            authorization,
            peer: peer.address.ip(),
            connection: Some(Arc::clone(&peer.connection)),
        };
        match authentication.authenticate(presented).await {
            Ok(_) | Err(Refusal::Busy | Refusal::Unavailable) => {}
            Err(_) => return,
        }
    }
}

/// The gateway as a protected resource.
#[derive(Debug, Clone)]
pub(crate) struct ProtectedResource {
    /// Scheme, host and port of the URL by which hosts reach it.
    origin: String,
    /// Path of that URL, without a slash at the end.
    path: String,
    /// Issuers of its tokens; none if it takes no tokens.
    issuers: Vec<String>,
    /// Scopes that a token must have.
    scopes: Vec<String>,
}

impl ProtectedResource {
    pub(crate) fn new(base: &Url, issuers: Vec<String>, scopes: Vec<String>) -> Self {
        let origin = base.origin().ascii_serialization();
        let path = base.path().trim_end_matches('/').to_owned();
        Self { origin, path, issuers, scopes }
    }

    /// Answers a request for the metadata of the resource with this path; `/` is the gateway as a whole.
    pub(crate) fn metadata(&self, path: &str) -> Response {
        // The well-known path stands before the whole path of the URL that hosts use.
        let path = path.strip_prefix(self.path.as_str()).unwrap_or(path).trim_end_matches('/');
        let is_resource = path.is_empty() || path == "/mcp" || path.starts_with("/mcp/");
        if self.issuers.is_empty() || !is_resource {
            let problem = "no authorization server is named for it\n";
            return (StatusCode::NOT_FOUND, problem).into_response();
        }
        let mut metadata = Map::new();
        let resource = format!("{}{}{path}", self.origin, self.path);
        metadata.insert("resource".to_owned(), Value::from(resource));
        metadata.insert("authorization_servers".to_owned(), json!(self.issuers));
        if !self.scopes.is_empty() {
            metadata.insert("scopes_supported".to_owned(), json!(self.scopes));
        }
        metadata.insert("bearer_methods_supported".to_owned(), json!(["header"]));
        metadata.insert("resource_name".to_owned(), Value::from("Toolgate gateway"));
        Json(Value::Object(metadata)).into_response()
    }

    /// Answers a request to `path` that is not let in.
    pub(crate) fn refused(&self, refusal: &Refusal, path: &str) -> Response {
        let (status, problem, error) = match refusal {
            Refusal::Missing => {
                (StatusCode::UNAUTHORIZED, "a credential is needed: `authorization: Bearer`", "")
            }
            Refusal::Invalid(problem) => {
                (StatusCode::UNAUTHORIZED, problem.as_str(), "invalid_token")
            }
            Refusal::Scope => {
                (StatusCode::FORBIDDEN, "the token lacks a scope", "insufficient_scope")
            }
            Refusal::Forbidden(problem) => {
                return (StatusCode::FORBIDDEN, format!("{problem}\n")).into_response();
            }
            Refusal::Busy => {
                return (StatusCode::TOO_MANY_REQUESTS, "try again later\n").into_response();
            }
            Refusal::Unavailable => {
                let problem = "credentials can't be verified now\n";
                return (StatusCode::SERVICE_UNAVAILABLE, problem).into_response();
            }
        };
        let mut response = (status, format!("{problem}\n")).into_response();
        if let Ok(challenge) = HeaderValue::from_str(&self.challenge(path, error, problem)) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Returns the challenge of RFC 6750: where the metadata are, the scopes to ask for, and what was wrong.
    fn challenge(&self, path: &str, error: &str, problem: &str) -> String {
        let mut parts = Vec::new();
        if !self.issuers.is_empty() {
            let Self { origin, path: base, .. } = self;
            let path = if path.starts_with("/mcp") { path } else { "" };
            parts.push(format!(
                "resource_metadata=\"{}\"",
                quoted(&format!("{origin}{WELL_KNOWN}{base}{path}"))
            ));
        }
        if !self.scopes.is_empty() {
            parts.push(format!("scope=\"{}\"", quoted(&self.scopes.join(" "))));
        }
        if !error.is_empty() {
            parts.push(format!("error=\"{error}\""));
            parts.push(format!("error_description=\"{}\"", quoted(problem)));
        }
        if parts.is_empty() { "Bearer".to_owned() } else { format!("Bearer {}", parts.join(", ")) }
    }
}

/// Returns the text without characters that a quoted value of a challenge can't have.
fn quoted(text: &str) -> String {
    text.chars().filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Takes credentials so many times.
    struct Takes(AtomicUsize);

    impl Authentication for Takes {
        fn authenticate<'a>(
            &'a self,
            _presented: PresentedCredentials<'a>,
        ) -> BoxFuture<'a, Result<Caller, Refusal>> {
            let left = self.0.fetch_sub(1, Ordering::Relaxed);
            Box::pin(async move {
                match left {
                    0 => Err(Refusal::Invalid("revoked".to_owned())),
                    1 => Err(Refusal::Unavailable),
                    _ => Ok(Caller::default()),
                }
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn streams_end_with_their_credential() {
        let begun = tokio::time::Instant::now();
        let takes = Arc::new(Takes(AtomicUsize::new(3)));
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        until_refused(takes, Vec::new(), HostPeer { address, connection: Arc::new(()) }).await;
        assert_eq!(begun.elapsed(), 4 * VERIFIED_AGAIN);
    }

    fn resource(url: &str) -> ProtectedResource {
        let issuers = vec!["https://id.example".to_owned()];
        ProtectedResource::new(&Url::parse(url).expect("a URL"), issuers, vec!["mcp".to_owned()])
    }

    fn challenge(resource: &ProtectedResource, refusal: &Refusal, path: &str) -> (u16, String) {
        let response = resource.refused(refusal, path);
        let header = response.headers().get(header::WWW_AUTHENTICATE);
        let header = header.map(|value| value.to_str().expect("text").to_owned());
        (response.status().as_u16(), header.unwrap_or_default())
    }

    #[test]
    fn refusals_say_where_to_ask_for_a_token() {
        let gateway = resource("https://gw.example/tools/");
        let metadata = "resource_metadata=\"https://gw.example/.well-known/oauth-protected-resource/tools/mcp\"";
        let start = format!("Bearer {metadata}, scope=\"mcp\"");
        assert_eq!(challenge(&gateway, &Refusal::Missing, "/mcp"), (401, start.clone()));
        let invalid = Refusal::Invalid("it has \"expired\"\n".to_owned());
        let told =
            format!("{start}, error=\"invalid_token\", error_description=\"it has expired\"");
        assert_eq!(challenge(&gateway, &invalid, "/mcp"), (401, told));
        let (status, header) = challenge(&gateway, &Refusal::Scope, "/mcp");
        assert_eq!(status, 403);
        assert!(header.contains("error=\"insufficient_scope\""), "{header}");
        let forbidden = Refusal::Forbidden("no".to_owned());
        assert_eq!(challenge(&gateway, &forbidden, "/mcp"), (403, String::new()));
        let hostile = challenge(&gateway, &Refusal::Missing, "/mcp/s/\"\r\nx: y");
        assert!(!hostile.1.contains('\n') && hostile.1.matches('"').count() == 4, "{}", hostile.1);
    }

    #[test]
    fn without_tokens_there_is_nowhere_to_ask() {
        let url = Url::parse("https://gw.example").expect("a URL");
        let gateway = ProtectedResource::new(&url, Vec::new(), Vec::new());
        assert_eq!(challenge(&gateway, &Refusal::Missing, "/mcp"), (401, "Bearer".to_owned()));
        assert_eq!(gateway.metadata("/mcp").status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn the_metadata_name_the_resource_that_was_asked_for() {
        for (url, path, want) in [
            ("https://gw.example", "", Some("https://gw.example")),
            ("https://gw.example/", "/mcp/s/git", Some("https://gw.example/mcp/s/git")),
            ("https://gw.example/tools", "/tools/mcp", Some("https://gw.example/tools/mcp")),
            ("https://gw.example", "/gateway/status", None),
        ] {
            let response = resource(url).metadata(path);
            let status = response.status();
            let body = axum::body::to_bytes(response.into_body(), 4_096).await.expect("a body");
            let metadata: Value = serde_json::from_slice(&body).unwrap_or_default();
            assert_eq!(metadata["resource"].as_str(), want, "{status}");
        }
    }
}
