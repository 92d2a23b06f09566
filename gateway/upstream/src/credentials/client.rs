//! Requests to authorization servers. Their URLs come from servers' answers, so that each is checked: https beyond this
//! machine, no address of a private network, no redirect, little to read, little time. Proxies of the environment are followed, as
//! for the servers themselves.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{StatusCode, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;
use url::{Host, Url};

use super::addresses::{is_loopback, is_public, literal};
use super::{CredentialError, Secret};
use crate::http::client_builder;

/// Time for a request, with its answer.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Largest answer, in bytes.
const ANSWER_MAX: usize = 256 << 10;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

pub(super) type Lookup = fn(String) -> BoxFuture<'static, std::io::Result<Vec<SocketAddr>>>;

/// Client for requests to authorization servers.
#[derive(Debug, Clone)]
pub(crate) struct AuthClient {
    /// For origins of the operator's file, and for what goes by a proxy.
    open: reqwest::Client,
    /// For all others. It connects to the address that was checked.
    guarded: reqwest::Client,
    trust: Arc<Trust>,
    /// Proxies that `open` follows.
    proxies: Arc<Matcher>,
    lookup: Lookup,
}

/// Trust in URLs.
#[derive(Debug)]
struct Trust {
    /// Origins of the operator's file.
    origins: Vec<url::Origin>,
    /// True if the server is on this machine, so that its authorization server may be as well.
    takes_loopback: bool,
}

/// Resolver that gives no address of a private network.
struct GuardedResolver {
    trust: Arc<Trust>,
    lookup: Lookup,
}

/// Answer of an authorization server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl AuthClient {
    /// Returns a client for what a server at `server` names. `operator` are other URLs of the operator's file.
    pub(crate) fn new(server: &Url, operator: &[Url]) -> Result<Self, CredentialError> {
        Self::with_lookup(server, operator, |name| Box::pin(lookup(name)))
    }

    pub(super) fn with_lookup(
        server: &Url,
        operator: &[Url],
        lookup: Lookup,
    ) -> Result<Self, CredentialError> {
        let origins = operator.iter().chain([server]).map(Url::origin).collect();
        let trust = Arc::new(Trust { origins, takes_loopback: is_loopback(server) });
        let resolver = GuardedResolver { trust: Arc::clone(&trust), lookup };
        let built = |builder: reqwest::ClientBuilder| {
            builder.build().map_err(|error| unavailable(&error.to_string()))
        };
        Ok(Self {
            open: built(builder()?)?,
            // A proxy would resolve names where nothing can be checked.
            guarded: built(builder()?.no_proxy().dns_resolver(Arc::new(resolver)))?,
            trust,
            proxies: Arc::new(Matcher::from_system()),
            lookup,
        })
    }

    /// Gets a JSON document; `None` where there is none.
    pub(crate) async fn document<T: DeserializeOwned>(
        &self,
        url: &Url,
    ) -> Result<Option<T>, CredentialError> {
        let request = self.client_for(url).await?.get(url.clone()).header(ACCEPT, JSON);
        let Answer { status, body } = answer(url, request).await?;
        if status.is_client_error() {
            return Ok(None);
        }
        if !status.is_success() {
            return Err(refused_status(url, status));
        }
        let document = serde_json::from_slice(&body);
        document.map(Some).map_err(|error| {
            // The error names fields and places, and repeats no more than a word.
            unavailable(&format!("{} is no metadata: {error}", shown(url)))
        })
    }

    /// Posts a form.
    pub(crate) async fn form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        basic: Option<(&str, &Secret)>,
    ) -> Result<Answer, CredentialError> {
        let body = Serializer::new(String::new()).extend_pairs(fields).finish();
        let client = self.client_for(url).await?;
        let mut request = client.post(url.clone()).header(CONTENT_TYPE, FORM);
        if let Some((id, secret)) = basic {
            request = request.basic_auth(encoded(id), Some(encoded(secret.reveal())));
        }
        answer(url, request.header(ACCEPT, JSON).body(body)).await
    }

    /// Posts JSON.
    pub(crate) async fn json(&self, url: &Url, body: &Value) -> Result<Answer, CredentialError> {
        let client = self.client_for(url).await?;
        let request = client.post(url.clone()).header(CONTENT_TYPE, JSON);
        answer(url, request.header(ACCEPT, JSON).body(body.to_string())).await
    }

    /// Returns the challenge that a request without a token is answered with; empty if there is none.
    pub(crate) async fn challenge(&self, server: &Url) -> Result<String, CredentialError> {
        let initialize = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "toolgate", "version": env!("CARGO_PKG_VERSION")}
        });
        // Some servers let everybody shake hands.
        for (method, params) in [("initialize", initialize), ("tools/list", json!({}))] {
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            let challenge = self.challenge_to(server, &message).await?;
            if !challenge.is_empty() {
                return Ok(challenge);
            }
        }
        Ok(String::new())
    }

    async fn challenge_to(&self, server: &Url, message: &Value) -> Result<String, CredentialError> {
        let request = self
            .client_for(server)
            .await?
            .post(server.clone())
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, "application/json, text/event-stream")
            .body(message.to_string());
        let response = request.send().await.map_err(|error| failed(server, error))?;
        let header = response.headers().get(WWW_AUTHENTICATE);
        Ok(header.and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned())
    }

    /// Returns the client for a URL, if it may be asked at all.
    async fn client_for(&self, url: &Url) -> Result<&reqwest::Client, CredentialError> {
        check_scheme(url)?;
        if self.trust.origins.contains(&url.origin()) {
            return Ok(&self.open);
        }
        let refused = match literal(url) {
            Some(address) => !self.trust.admits(address),
            None => is_loopback(url) && !self.trust.takes_loopback,
        };
        if refused {
            return Err(private(&shown(url)));
        }
        if !self.is_proxied(url) {
            return Ok(&self.guarded);
        }
        if let Some(Host::Domain(name)) = url.host() {
            self.check_name(name).await?;
        }
        Ok(&self.open)
    }

    /// Returns true if a proxy of the environment is asked for a URL.
    fn is_proxied(&self, url: &Url) -> bool {
        let url: Option<Uri> = url.as_str().parse().ok();
        url.is_some_and(|url| self.proxies.intercept(&url).is_some())
    }

    /// Refuses a name of a private network before a proxy, which may reach one, looks it up. By TLS a server of another name, whose
    /// address the proxy might be given instead, gets nothing.
    async fn check_name(&self, name: &str) -> Result<(), CredentialError> {
        let looked_up = tokio::time::timeout(TIMEOUT, (self.lookup)(name.to_owned())).await;
        let Ok(Ok(addresses)) = looked_up else {
            return Err(unavailable(&format!(
                "{name} can't be looked up here, and a server's answer named it, so that no proxy is asked for it: set `oauth.issuer` if it is right"
            )));
        };
        if addresses.is_empty() || !addresses.iter().all(|address| self.trust.admits(address.ip()))
        {
            return Err(private(name));
        }
        Ok(())
    }
}

impl Trust {
    fn admits(&self, address: IpAddr) -> bool {
        is_public(address) || (self.takes_loopback && address.is_loopback())
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let looked_up = (self.lookup)(name.as_str().to_owned());
        let trust = Arc::clone(&self.trust);
        Box::pin(async move {
            let addresses = looked_up.await?;
            // One private address among public ones is enough for an attack.
            if !addresses.iter().all(|address| trust.admits(address.ip())) {
                return Err(private(name.as_str()).into());
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn builder() -> Result<reqwest::ClientBuilder, CredentialError> {
    let builder = client_builder().map_err(|error| unavailable(&error.to_string()))?;
    Ok(builder.timeout(TIMEOUT))
}

/// Returns whether secrets may be sent to a URL: by https, or on this machine.
#[must_use]
pub fn is_safe(url: &Url) -> bool {
    let is_private = url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url));
    is_private && url.username().is_empty() && url.password().is_none()
}

/// Refuses URLs that would carry secrets over the network in the clear, and schemes that are not of the web.
pub(crate) fn check_scheme(url: &Url) -> Result<(), CredentialError> {
    if is_safe(url) {
        return Ok(());
    }
    Err(unavailable(&format!("{} is refused: only https beyond this machine", shown(url))))
}

async fn lookup(name: String) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((name, 0)).await?.collect())
}

async fn answer(url: &Url, request: reqwest::RequestBuilder) -> Result<Answer, CredentialError> {
    let response = request.send().await.map_err(|error| failed(url, error))?;
    let status = response.status();
    if status.is_redirection() {
        let problem = format!("{} answers with a redirect, which is not followed", shown(url));
        return Err(unavailable(&problem));
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        body.extend_from_slice(&chunk.map_err(|error| failed(url, error))?);
        if body.len() > ANSWER_MAX {
            let problem = format!("{} answers with more than {ANSWER_MAX} bytes", shown(url));
            return Err(unavailable(&problem));
        }
    }
    Ok(Answer { status, body })
}

/// Returns a URL for people: its query could hold anything.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _unset = url.set_password(None);
    url.to_string()
}

pub(crate) fn unavailable(problem: &str) -> CredentialError {
    CredentialError::Unavailable(problem.to_owned())
}

pub(crate) fn refused_status(url: &Url, status: StatusCode) -> CredentialError {
    unavailable(&format!("{} answers HTTP {status}", shown(url)))
}

fn private(place: &str) -> CredentialError {
    unavailable(&format!(
        "{place} is in a private network, and a server's answer named it: set `oauth.issuer` if it is right"
    ))
}

/// Returns the last cause of a failure, which says more than the library's own text.
fn failed(url: &Url, error: reqwest::Error) -> CredentialError {
    let error = error.without_url();
    if error.is_timeout() {
        return unavailable(&format!("{} does not answer", shown(url)));
    }
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match cause.downcast_ref::<CredentialError>() {
        Some(refused) => refused.clone(),
        None => unavailable(&format!("{} can't be reached: {cause}", shown(url))),
    }
}

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn origins_of_the_operators_file_may_be_private() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let client = AuthClient::new(&url("https://10.0.0.1/mcp"), &[url("https://10.0.0.2:8443")]);
        let client = client.expect("a client");
        for place in ["https://10.0.0.1/x", "https://10.0.0.2:8443/x", "https://a.example"] {
            assert!(client.client_for(&url(place)).await.is_ok(), "{place}");
        }
        for place in ["https://10.0.0.1:8443/x", "https://10.0.0.2/x", "http://10.0.0.1/x"] {
            assert!(client.client_for(&url(place)).await.is_err(), "{place}");
        }
    }

    #[tokio::test]
    async fn names_that_a_proxy_would_look_up_are_looked_up_here_first() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let lookup: Lookup = |name| {
            Box::pin(async move {
                let address = match &*name {
                    "inside.example" => "10.1.2.3:0",
                    "outside.example" => "1.1.1.1:0",
                    _ => return Err(std::io::Error::other("no such name")),
                };
                Ok(vec![address.parse().expect("an address")])
            })
        };
        let operator = [url("https://unknown.example")];
        let client = AuthClient::with_lookup(&url("https://tools.example/mcp"), &operator, lookup);
        let mut client = client.expect("a client");
        let proxies = Matcher::builder().all("http://10.9.9.9:3128").no("direct.example").build();
        client.proxies = Arc::new(proxies);
        let asked = async |client: &AuthClient, place: &str| {
            let asked = client.client_for(&url(place)).await;
            asked.map(|chosen| std::ptr::eq(chosen, &client.open))
        };
        for place in ["https://tools.example/x", "https://unknown.example/x"] {
            assert!(asked(&client, place).await.expect("a client"), "the operator named {place}");
        }
        for place in ["https://outside.example/x", "https://1.1.1.1/x"] {
            assert!(asked(&client, place).await.expect("a client"), "{place}");
        }
        let direct = asked(&client, "https://direct.example/x").await;
        assert!(!direct.expect("a client"), "the guarded one looks it up");
        for (place, told) in [
            ("https://inside.example/x", "inside.example is in a private network"),
            ("https://10.1.2.3/x", "is in a private network"),
            ("https://nowhere.example/x", "nowhere.example can't be looked up here"),
        ] {
            let error = asked(&client, place).await.expect_err("an error").to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
