//! The login of a person: authorization code with PKCE (RFC 7636), at a client that is registered on the way if need be.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::challenge::Challenge;
use super::client::{AuthClient, check_scheme, refused_status, shown, unavailable};
use super::discovery::{Discovered, ServerMetadata, discover, server_metadata};
use super::store::Stored;
use super::tokens::{self, Registered, Token};
use super::{Authorization, CredentialError, CredentialStore, OAuthClient, Owner, Secret};
use crate::target::Endpoint;

/// Scope that asks for a refresh token, where an authorization server knows it.
const OFFLINE: &str = "offline_access";

/// Client of an authorization server, which is ready for logins.
#[derive(Debug, Clone)]
pub struct LoginClient {
    redirect_uri: String,
    /// URL that its tokens are sent to.
    server: Url,
    client: AuthClient,
    discovered: Discovered,
    registered: Registered,
    /// True if a login is to outlast its first token.
    is_kept: bool,
}

/// Login that waits for the person. Its state is good for one redirect.
#[derive(Debug)]
pub struct Login {
    url: Url,
    state: Secret,
    verifier: Secret,
    at: LoginClient,
}

/// Answer to a registration (RFC 7591).
#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<Secret>,
    token_endpoint_auth_method: Option<String>,
}

/// Parameters of a redirect.
#[derive(Default)]
struct Redirected {
    state: String,
    code: Option<Secret>,
    error: Option<String>,
    issuer: Option<String>,
}

impl LoginClient {
    /// Finds the authorization server of an MCP server, and registers a client there unless there is one. `redirect_uri` is
    /// where logins lead in the end; `known` are scopes to ask for beside the server's own ([`CredentialStore::scopes`]).
    ///
    /// # Errors
    /// [`CredentialError::Unavailable`] if there is no authorization server that can be used.
    pub async fn find(
        endpoint: &Endpoint,
        redirect_uri: &str,
        known: &[String],
    ) -> Result<Self, CredentialError> {
        let (Authorization::Login(settings) | Authorization::PerPrincipal(settings)) =
            &endpoint.authorization
        else {
            return Err(unavailable("this server takes no logins: `auth` says otherwise"));
        };
        let client = client_of(endpoint, settings)?;
        let challenge = Challenge::parse(&client.challenge(&endpoint.url).await?);
        let mut discovered = discover(&client, &endpoint.url, settings, &challenge).await?;
        if settings.scopes.is_empty() {
            add(&mut discovered.scopes, known);
        }
        let server = endpoint.url.clone();
        Self::ready(client, discovered, settings, redirect_uri, server, true).await
    }

    /// Returns a client for tokens that only say who a person is, to the resource that asks: they are not kept. The issuer is
    /// the operator's.
    ///
    /// # Errors
    /// [`CredentialError::Unavailable`] if the issuer can't be used.
    pub async fn at_issuer(
        settings: &OAuthClient,
        resource: &Url,
        redirect_uri: &str,
    ) -> Result<Self, CredentialError> {
        let issuer = settings.issuer.as_deref().unwrap_or_default();
        let url = Url::parse(issuer)
            .map_err(|error| unavailable(&format!("the issuer {issuer:?} is no URL: {error}")))?;
        let client = AuthClient::new(&url, &[])?;
        let discovered = Discovered {
            server: server_metadata(&client, issuer).await?,
            resource: resource.to_string(),
            scopes: settings.scopes.clone(),
        };
        Self::ready(client, discovered, settings, redirect_uri, resource.clone(), false).await
    }

    async fn ready(
        client: AuthClient,
        discovered: Discovered,
        settings: &OAuthClient,
        redirect_uri: &str,
        server: Url,
        is_kept: bool,
    ) -> Result<Self, CredentialError> {
        check_pkce(&discovered.server)?;
        let scopes = scopes(&discovered, is_kept);
        let registered =
            register(&client, &discovered.server, settings, redirect_uri, &scopes).await?;
        let redirect_uri = redirect_uri.to_owned();
        Ok(Self { redirect_uri, server, client, discovered, registered, is_kept })
    }

    /// Prepares the page of a login.
    ///
    /// # Errors
    /// [`CredentialError::Unavailable`] if the authorization server has no page, or the system no random numbers.
    pub fn begin(&self) -> Result<Login, CredentialError> {
        let state = random()?;
        let verifier = random()?;
        Ok(Login { url: self.page(&state, &verifier)?, state, verifier, at: self.clone() })
    }

    /// Returns the issuer of the tokens to come.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.discovered.server.issuer
    }

    /// Returns the scopes that are asked for.
    #[must_use]
    pub fn scopes(&self) -> Vec<String> {
        scopes(&self.discovered, self.is_kept)
    }

    /// Returns the id by which the authorization server knows the client.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.registered.id
    }

    fn page(&self, state: &Secret, verifier: &Secret) -> Result<Url, CredentialError> {
        let server = &self.discovered.server;
        let Some(endpoint) = &server.authorization_endpoint else {
            return Err(unavailable(&format!("{} has no page for logins", server.issuer)));
        };
        check_scheme(endpoint)?;
        let mut url = endpoint.clone();
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, verifier.reveal().as_bytes()));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.registered.id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", state.reveal())
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.discovered.resource);
        let scopes = self.scopes();
        if !scopes.is_empty() {
            url.query_pairs_mut().append_pair("scope", &scopes.join(" "));
        }
        if scopes.iter().any(|scope| scope == OFFLINE) {
            // OpenID Connect gives a refresh token only with consent.
            url.query_pairs_mut().append_pair("prompt", "consent");
        }
        Ok(url)
    }
}

impl Login {
    /// Finds the authorization server of an MCP server as [`LoginClient::find`] does, and prepares the page to open.
    ///
    /// # Errors
    /// [`CredentialError::Unavailable`] if there is no authorization server that can be used.
    pub async fn begin(
        endpoint: &Endpoint,
        redirect_uri: &str,
        known: &[String],
    ) -> Result<Self, CredentialError> {
        LoginClient::find(endpoint, redirect_uri, known).await?.begin()
    }

    /// Returns the page to open.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the issuer of the tokens to come.
    #[must_use]
    pub fn issuer(&self) -> &str {
        self.at.issuer()
    }

    /// Returns whether a redirect belongs to this login. Others are to be ignored.
    #[must_use]
    pub fn owns(&self, redirected: &str) -> bool {
        Redirected::parse(redirected).state == self.state.reveal()
    }

    /// Takes the redirect that ends the login, and stores the tokens.
    ///
    /// # Errors
    /// [`CredentialError`] if the redirect is another's, or if the authorization server refuses.
    pub async fn finish(
        self,
        redirected: &str,
        store: &CredentialStore,
        owner: &Owner,
    ) -> Result<(), CredentialError> {
        let token = self.token(redirected).await?;
        let LoginClient { server, discovered, registered, .. } = self.at;
        let stored = Stored {
            server: server.to_string(),
            issuer: discovered.server.issuer,
            resource: discovered.resource,
            scopes: discovered.scopes,
            client: registered,
            token,
        };
        let _lock = store.lock(owner).await?;
        store.save(owner, &stored)
    }

    /// Takes the redirect that ends the login, and returns the token, which is kept nowhere.
    ///
    /// # Errors
    /// [`CredentialError`] if the redirect is another's, or if the authorization server refuses.
    pub async fn access_token(self, redirected: &str) -> Result<Secret, CredentialError> {
        Ok(self.token(redirected).await?.access)
    }

    async fn token(&self, redirected: &str) -> Result<Token, CredentialError> {
        let redirected = Redirected::parse(redirected);
        if redirected.state != self.state.reveal() {
            return Err(unavailable("the redirect is of another login"));
        }
        self.check_issuer(&redirected)?;
        let Some(code) = &redirected.code else {
            let error = redirected.error.unwrap_or_else(|| "no code".to_owned());
            return Err(unavailable(&format!("the login was refused: {error:?}")));
        };
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.reveal()),
            ("redirect_uri", self.at.redirect_uri.as_str()),
            ("code_verifier", self.verifier.reveal()),
        ];
        let LoginClient { client, discovered, registered, .. } = &self.at;
        let Discovered { server, resource, .. } = discovered;
        Ok(tokens::request(client, server, registered, resource, &grant).await?)
    }

    /// Refuses a redirect of another issuer (RFC 9207): issuers are compared byte for byte.
    fn check_issuer(&self, redirected: &Redirected) -> Result<(), CredentialError> {
        let server = &self.at.discovered.server;
        let is_right = match &redirected.issuer {
            Some(issuer) => *issuer == server.issuer,
            None => !server.authorization_response_iss_parameter_supported,
        };
        if is_right {
            return Ok(());
        }
        Err(unavailable(&format!("the redirect does not come from {}", server.issuer)))
    }
}

/// Ends a login: removes its tokens, and revokes them where the authorization server can. Returns whether there was one.
///
/// # Errors
/// [`CredentialError::Store`] if the tokens can't be removed, [`CredentialError::Unavailable`] if they were removed but may
/// not have been revoked.
pub async fn log_out(
    endpoint: &Endpoint,
    store: &CredentialStore,
    owner: &Owner,
) -> Result<bool, CredentialError> {
    let lock = store.lock(owner).await?;
    // One that can't be read is removed as well.
    let stored = store.load(owner).ok().flatten();
    let was_there = store.remove(owner)?;
    drop(lock);
    let Some(stored) = stored else { return Ok(was_there) };
    let settings = endpoint.authorization.client().cloned().unwrap_or_default();
    let client = client_of(endpoint, &settings)?;
    let server = server_metadata(&client, &stored.issuer).await?;
    let token = stored.token.refresh.as_ref().unwrap_or(&stored.token.access);
    tokens::revoke(&client, &server, &stored.client, token).await?;
    Ok(was_there)
}

/// Adds scopes that are not there yet.
pub(crate) fn add(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
}

/// Returns the client for what an endpoint's server names.
pub(crate) fn client_of(
    endpoint: &Endpoint,
    settings: &OAuthClient,
) -> Result<AuthClient, CredentialError> {
    let issuer = settings.issuer.as_deref().and_then(|issuer| Url::parse(issuer).ok());
    AuthClient::new(&endpoint.url, issuer.as_slice())
}

impl Redirected {
    /// Reads a URL, or only its path and query.
    fn parse(text: &str) -> Self {
        let mut redirected = Self::default();
        let query = text.trim().split_once('?').map_or("", |(_, query)| query);
        let query = query.split('#').next().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "state" => redirected.state = value.into_owned(),
                "code" => redirected.code = Some(Secret::new(value.into_owned())),
                "error" => redirected.error = Some(value.chars().take(100).collect()),
                "iss" => redirected.issuer = Some(value.into_owned()),
                _ => {}
            }
        }
        redirected
    }
}

/// Refuses an authorization server that does not say that it knows PKCE: a stolen code would be as good as a login.
fn check_pkce(server: &ServerMetadata) -> Result<(), CredentialError> {
    if server.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Ok(());
    }
    Err(unavailable(&format!("{} does not offer PKCE with S256", server.issuer)))
}

/// Returns the client: the operator's, its metadata document, or one that is registered now.
async fn register(
    client: &AuthClient,
    server: &ServerMetadata,
    settings: &OAuthClient,
    redirect_uri: &str,
    scopes: &[String],
) -> Result<Registered, CredentialError> {
    if let Some(id) = &settings.id {
        let secret = settings.secret.clone();
        return Ok(Registered { id: id.clone(), secret, method: None });
    }
    if let Some(url) = &settings.metadata_url
        && server.client_id_metadata_document_supported
    {
        return Ok(Registered { id: url.to_string(), secret: None, method: None });
    }
    let Some(url) = &server.registration_endpoint else {
        return Err(unavailable(&format!(
            "{} registers no clients by itself: register one there for {redirect_uri} and set `oauth.client_id`",
            server.issuer
        )));
    };
    let mut wanted = json!({
        "client_name": "Toolgate",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": registered_method(server),
        "application_type": if redirect_uri.starts_with("https:") { "web" } else { "native" },
    });
    if !scopes.is_empty() {
        wanted["scope"] = scopes.join(" ").into();
    }
    let answer = client.json(url, &wanted).await?;
    if !answer.status.is_success() {
        return Err(refused_status(url, answer.status));
    }
    let registration: Registration = serde_json::from_slice(&answer.body)
        .map_err(|_| unavailable(&format!("{} answers with no client", shown(url))))?;
    Ok(Registered {
        id: registration.client_id,
        secret: registration.client_secret,
        method: registration.token_endpoint_auth_method,
    })
}

/// Returns the method to register with: without a secret if that is known.
fn registered_method(server: &ServerMetadata) -> &'static str {
    let Some(known) = &server.token_endpoint_auth_methods_supported else { return "none" };
    let methods = ["none", "client_secret_basic", "client_secret_post"];
    methods.into_iter().find(|method| known.iter().any(|known| known == method)).unwrap_or("none")
}

/// Returns the scopes to ask for: with a refresh token, where that is a scope of its own and the login is kept.
fn scopes(discovered: &Discovered, is_kept: bool) -> Vec<String> {
    let mut scopes = discovered.scopes.clone();
    let knows_offline = discovered.server.scopes_supported.iter().any(|scope| scope == OFFLINE);
    if is_kept && knows_offline && !scopes.iter().any(|scope| scope == OFFLINE) {
        scopes.push(OFFLINE.to_owned());
    }
    scopes
}

/// Returns 256 bits that nobody can guess.
fn random() -> Result<Secret, CredentialError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| unavailable(&format!("no random numbers: {error}")))?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}
