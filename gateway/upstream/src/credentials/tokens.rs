//! Requests for tokens (RFC 6749).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::client::{Answer, AuthClient, refused_status, shown, unavailable};
use super::discovery::ServerMetadata;
use super::{CredentialError, Secret};

/// Time before its end at which a token is renewed, at most half of its life.
const MARGIN: Duration = Duration::from_secs(30);

/// Largest number of characters of an error code of an authorization server.
const CODE_MAX: usize = 64;

/// Ways in which a client shows its secret.
const BASIC: &str = "client_secret_basic";
const POST: &str = "client_secret_post";

/// Client that an authorization server knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Registered {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    /// Method that the registration answered with.
    pub(crate) method: Option<String>,
}

/// Token for a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Token {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    /// Second of the Unix clock from which on it is renewed; `None` if only a refusal says so.
    pub(crate) renew_at: Option<u64>,
}

/// Refusal of a token.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// The grant itself is not valid any more: a refresh token was revoked, or a code has been used.
    Grant(String),
    /// The authorization server does not know the client, or refuses its secret.
    Client(String),
    Other(CredentialError),
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Secret,
    token_type: String,
    expires_in: Option<f64>,
    refresh_token: Option<Secret>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Token {
    /// Returns whether the token is to be used as it is.
    pub(crate) fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|renew_at| now() < renew_at)
    }
}

/// Asks for a token. `grant` are the fields of the grant.
pub(crate) async fn request(
    client: &AuthClient,
    server: &ServerMetadata,
    registered: &Registered,
    resource: &str,
    grant: &[(&str, &str)],
) -> Result<Token, TokenError> {
    let mut fields = grant.to_vec();
    fields.push(("resource", resource));
    let answer = send(client, server, registered, &server.token_endpoint, fields).await?;
    if !answer.status.is_success() {
        return Err(refusal(server, &answer));
    }
    let url = shown(&server.token_endpoint);
    let problem = |problem: &str| TokenError::Other(unavailable(&format!("{url} {problem}")));
    // The parser's own error could repeat a token.
    let read: TokenAnswer =
        serde_json::from_slice(&answer.body).map_err(|_| problem("answers with no token"))?;
    if !read.token_type.eq_ignore_ascii_case("bearer") {
        return Err(problem("answers with a token of a type other than Bearer"));
    }
    if http::HeaderValue::try_from(read.access_token.reveal()).is_err() {
        return Err(problem("answers with a token that no header can carry"));
    }
    let renew_at = read.expires_in.map(|seconds| {
        let life = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        now().saturating_add((life - MARGIN.min(life / 2)).as_secs())
    });
    Ok(Token { access: read.access_token, refresh: read.refresh_token, renew_at })
}

/// Revokes a token (RFC 7009), where the authorization server can.
pub(crate) async fn revoke(
    client: &AuthClient,
    server: &ServerMetadata,
    registered: &Registered,
    token: &Secret,
) -> Result<(), CredentialError> {
    let Some(url) = &server.revocation_endpoint else { return Ok(()) };
    let fields = vec![("token", token.reveal())];
    match send(client, server, registered, url, fields).await {
        Ok(answer) if answer.status.is_success() => Ok(()),
        Ok(answer) => Err(refused_status(url, answer.status)),
        Err(error) => Err(error.into()),
    }
}

/// Sends a form as a client. Where nobody says how the client shows its secret, one way is tried after the other.
async fn send(
    client: &AuthClient,
    server: &ServerMetadata,
    registered: &Registered,
    url: &url::Url,
    fields: Vec<(&str, &str)>,
) -> Result<Answer, TokenError> {
    let Some(secret) = &registered.secret else {
        let fields = [fields, vec![("client_id", registered.id.as_str())]].concat();
        return client.form(url, &fields, None).await.map_err(TokenError::Other);
    };
    let mut methods = methods(server, registered);
    loop {
        let method = methods.remove(0);
        let sent = if method == BASIC {
            client.form(url, &fields, Some((registered.id.as_str(), secret))).await
        } else {
            let own =
                vec![("client_id", registered.id.as_str()), ("client_secret", secret.reveal())];
            client.form(url, &[fields.clone(), own].concat(), None).await
        };
        let answer = sent.map_err(TokenError::Other)?;
        if methods.is_empty() || code(&answer).as_deref() != Some("invalid_client") {
            return Ok(answer);
        }
    }
}

/// Returns the ways in which the client may show its secret, at least one.
fn methods<'a>(server: &'a ServerMetadata, registered: &'a Registered) -> Vec<&'a str> {
    if let Some(method) = &registered.method {
        return vec![method];
    }
    match &server.token_endpoint_auth_methods_supported {
        Some(methods) if !methods.iter().any(|method| method == BASIC) => vec![POST],
        Some(methods) if methods.iter().any(|method| method == POST) => vec![BASIC, POST],
        _ => vec![BASIC],
    }
}

/// Returns the error code of a refusal.
fn code(answer: &Answer) -> Option<String> {
    if answer.status.is_success() {
        return None;
    }
    let Refusal { error } = serde_json::from_slice(&answer.body).ok()?;
    let is_right = |c: char| c.is_ascii_lowercase() || c == '_';
    Some(error.chars().filter(|c| is_right(*c)).take(CODE_MAX).collect())
}

/// Returns what an authorization server refuses with. Its description is left out: it could repeat a token.
fn refusal(server: &ServerMetadata, answer: &Answer) -> TokenError {
    let Some(code) = code(answer) else {
        return TokenError::Other(refused_status(&server.token_endpoint, answer.status));
    };
    let problem = format!("{} refuses: {code}", shown(&server.token_endpoint));
    match code.as_str() {
        "invalid_grant" => TokenError::Grant(problem),
        "invalid_client" | "unauthorized_client" => TokenError::Client(problem),
        _ => TokenError::Other(CredentialError::Unavailable(problem)),
    }
}

impl From<TokenError> for CredentialError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Grant(problem) | TokenError::Client(problem) => Self::Unavailable(problem),
            TokenError::Other(error) => error,
        }
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
