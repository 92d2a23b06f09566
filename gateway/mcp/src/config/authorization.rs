//! Credentials towards servers in the gateway's file: `auth` and `oauth` of a server.

use serde::Deserialize;
use toolgate_upstream::{Authorization, OAuthClient, Secret};
use url::Url;

use super::{AuthMethod, ConfigError, EntryFile, ServerConfig, values};

/// Credential that a server is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Auth {
    /// None.
    None,
    /// Among the headers.
    Headers,
    /// Tokens for the gateway itself.
    ClientCredentials,
    /// Tokens of a person who has logged in.
    Oauth,
    /// Tokens of each caller, who has logged in.
    OauthPerUser,
    /// Tokens that a caller's token is exchanged for.
    TokenExchange,
}

/// Client of an authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OAuthConfig {
    /// Id that the authorization server has given. Absent: `login` registers.
    pub client_id: Option<String>,
    /// Secret of the id: `env:NAME` or `file:PATH`.
    pub client_secret: Option<String>,
    /// URL of the client's metadata document.
    pub client_metadata_url: Option<String>,
    /// Scopes to ask for. Absent: those that the server names.
    pub scopes: Vec<String>,
    /// Issuer of the tokens. Absent: the one that the server names.
    pub issuer: Option<String>,
    /// Port of this machine that a login leads back to. Absent: a free one.
    pub redirect_port: Option<u16>,
    /// Audience to name where a token is exchanged, beside the server's resource.
    pub audience: Option<String>,
}

/// Returns the credential of a server behind a URL, where callers come with credentials of these kinds.
pub(super) fn authorization(
    name: &str,
    server: &ServerConfig,
    methods: &[AuthMethod],
) -> Result<Authorization, ConfigError> {
    let wrong = |problem: &str| ConfigError::server(name, problem);
    let has_headers = !server.headers.is_empty();
    let default = if has_headers { Auth::Headers } else { Auth::Oauth };
    let auth = server.auth.unwrap_or(default);
    let has_audience = server.oauth.as_ref().is_some_and(|oauth| oauth.audience.is_some());
    if has_audience && auth != Auth::TokenExchange {
        return Err(wrong("`oauth.audience` is for `auth = \"token-exchange\"`"));
    }
    if server.oauth.is_some() && matches!(auth, Auth::None | Auth::Headers) {
        return Err(wrong("`oauth` is for other `auth` than \"none\" and \"headers\""));
    }
    let names_credential =
        server.headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
    if names_credential && auth != Auth::Headers {
        return Err(wrong(
            "`headers` hold a credential, and `auth` names another: take Authorization out of them, or set `auth = \"headers\"`",
        ));
    }
    match auth {
        Auth::None => Ok(Authorization::Headers),
        Auth::Headers if has_headers => Ok(Authorization::Headers),
        Auth::Headers => Err(wrong(
            "`auth = \"headers\"` needs `headers`, such as { Authorization = \"env:NAME\" }",
        )),
        Auth::Oauth => login(name, server).map(Authorization::Login),
        Auth::OauthPerUser if methods.is_empty() => Err(wrong(
            "`auth = \"oauth-per-user\"` needs gateway.auth.methods: without them nobody is told from anybody else",
        )),
        Auth::OauthPerUser => login(name, server).map(Authorization::PerPrincipal),
        Auth::ClientCredentials => machine(name, server).map(Authorization::ClientCredentials),
        Auth::TokenExchange if !methods.contains(&AuthMethod::Jwt) => Err(wrong(
            "`auth = \"token-exchange\"` needs \"jwt\" among gateway.auth.methods: callers come with no token to exchange",
        )),
        Auth::TokenExchange => {
            let client = machine(name, server)?;
            if client.issuer.is_none() {
                return Err(wrong(
                    "`auth = \"token-exchange\"` needs `oauth.issuer`: callers' tokens are shown to nobody whom only the server names",
                ));
            }
            Ok(Authorization::Exchange(client))
        }
    }
}

/// Returns a client that gets tokens without a person.
fn machine(name: &str, server: &ServerConfig) -> Result<OAuthClient, ConfigError> {
    let client = client(name, server)?;
    if client.id.is_none() || client.secret.is_none() {
        return Err(ConfigError::server(
            name,
            "`auth` without a person's login needs `oauth = { client_id = \"...\", client_secret = \"env:NAME\" }`",
        ));
    }
    let oauth = server.oauth.clone().unwrap_or_default();
    if oauth.client_metadata_url.is_some() || oauth.redirect_port.is_some() {
        return Err(ConfigError::server(
            name,
            "`oauth.client_metadata_url` and `oauth.redirect_port` are for logins: leave them out, or set `auth = \"oauth\"`",
        ));
    }
    Ok(client)
}

fn login(name: &str, server: &ServerConfig) -> Result<OAuthClient, ConfigError> {
    let client = client(name, server)?;
    let wrong = |problem: &str| ConfigError::server(name, problem);
    if client.secret.is_some() && client.id.is_none() {
        return Err(wrong("`oauth.client_secret` needs `oauth.client_id`, whose secret it is"));
    }
    if client.id.is_some() && client.metadata_url.is_some() {
        return Err(wrong("`oauth.client_id` and `oauth.client_metadata_url` exclude each other"));
    }
    Ok(client)
}

fn client(name: &str, server: &ServerConfig) -> Result<OAuthClient, ConfigError> {
    let wrong = |problem: String| ConfigError::server(name, &problem);
    let oauth = server.oauth.clone().unwrap_or_default();
    let secret = oauth.client_secret.as_ref().map(|secret| {
        if !secret.starts_with("env:") && !secret.starts_with("file:") {
            let problem = "`oauth.client_secret` must be \"env:NAME\" or \"file:PATH\": this file is no place for it";
            return Err(wrong(problem.to_owned()));
        }
        Ok(Secret::new(values::value(secret, EntryFile::Gateway)))
    });
    let texts =
        [("client_id", &oauth.client_id), ("issuer", &oauth.issuer), ("audience", &oauth.audience)];
    for (key, text) in texts {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(wrong(format!("`oauth.{key}` is empty: leave it out, or set it")));
        }
    }
    let is_scope = |scope: &String| {
        let is_right = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
        !scope.is_empty() && scope.chars().all(is_right)
    };
    if let Some(scope) = oauth.scopes.iter().find(|scope| !is_scope(scope)) {
        return Err(wrong(format!(
            "`oauth.scopes` has {scope:?}, which is no scope: one word each"
        )));
    }
    if let Some(issuer) = &oauth.issuer {
        web_url(name, "issuer", issuer)?;
    }
    let metadata_url = oauth.client_metadata_url.as_ref().map(|text| {
        let url = web_url(name, "client_metadata_url", text)?;
        if url.scheme() != "https" || url.path() == "/" {
            return Err(wrong(
                "`oauth.client_metadata_url` must be https:// with a path".to_owned(),
            ));
        }
        Ok(url)
    });
    Ok(OAuthClient {
        id: oauth.client_id,
        secret: secret.transpose()?,
        metadata_url: metadata_url.transpose()?,
        scopes: oauth.scopes,
        issuer: oauth.issuer,
        audience: oauth.audience,
    })
}

/// Returns a URL to which secrets may be sent.
fn web_url(name: &str, key: &str, text: &str) -> Result<Url, ConfigError> {
    let wrong =
        |problem: String| ConfigError::server(name, &format!("`oauth.{key}` {problem}: {text:?}"));
    let url = Url::parse(text).map_err(|error| wrong(format!("is no URL ({error})")))?;
    if !toolgate_upstream::is_safe(&url) {
        return Err(wrong("must begin with https://, or http:// on this machine".to_owned()));
    }
    Ok(url)
}
