//! Requests of browsers for the pages.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, extract::DefaultBodyLimit};
use toolgate_upstream::{CredentialError, CredentialStore, Endpoint};

use super::browsers::{Browser, random};
use super::pages::{self, Asked, message};
use super::{CONNECT, CONNECTED, Connecting, Kind, LOGIN_KEPT, Link, Person, SIGNED_IN, Waiting};
use crate::authentication::{Authentication, HostPeer, PresentedCredentials};
use crate::caller::Caller;
use crate::gateway::Gateway;
use crate::http::GatewayError;

/// Largest form, in bytes.
const FORM_MAX: usize = 16 << 10;

/// Pages with all that they need.
#[derive(Clone)]
struct Site {
    gateway: Gateway,
    pages: Arc<Connecting>,
    authentication: Option<Arc<dyn Authentication>>,
}

/// Button that was pressed, with its fields.
#[derive(Default)]
struct Pressed {
    action: String,
    nonce: String,
    key: String,
}

/// Returns whether a path is a page's.
pub(crate) fn is_page(path: &str) -> bool {
    path == CONNECTED || path == SIGNED_IN || path.starts_with(&format!("{CONNECT}/"))
}

/// Returns the routes of the pages of a gateway at an address.
///
/// # Errors
/// [`GatewayError`] if the gateway has no URL, or the client at the issuer no secret.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>(
    gateway: &Gateway,
    address: SocketAddr,
    authentication: Option<Arc<dyn Authentication>>,
) -> Result<Router<S>, GatewayError> {
    let pages = gateway.serves_pages(Connecting::new(gateway, address)?);
    let site = Site { gateway: gateway.clone(), pages, authentication };
    Ok(Router::new()
        .route(&format!("{CONNECT}/{{server}}/{{ticket}}"), get(shown).post(pressed))
        .route(CONNECTED, get(connected))
        .route(SIGNED_IN, get(signed_in))
        .layer(DefaultBodyLimit::max(FORM_MAX))
        .with_state(site))
}

/// Answers with the page of a link.
async fn shown(
    State(site): State<Site>,
    Path((server, ticket)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let Some(link) = site.pages.opened(&site.gateway, &server, &ticket) else {
        return out_of_date();
    };
    let Some(browser) = site.pages.browsers.of(&headers) else { return no_random_numbers() };
    let response = match site.pages.browsers.person(&browser.id) {
        None => pages::sign_in(&site.pages, &link, None),
        Some(known) if known != link.person => pages::sign_in(&site.pages, &link, Some(&known)),
        Some(_) => site.consent(&browser, &link).await,
    };
    pages::with_cookie(response, browser.cookie)
}

/// Answers to a button.
async fn pressed(
    State(site): State<Site>,
    Path((server, ticket)): Path<(String, String)>,
    ConnectInfo(peer): ConnectInfo<HostPeer>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let form = Pressed::read(&body);
    let Some(link) = site.pages.opened(&site.gateway, &server, &ticket) else {
        return out_of_date();
    };
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    if origin != Some(site.pages.origin.as_str()) {
        let problem = "This form was not sent from the gateway's own page.";
        return message(StatusCode::FORBIDDEN, "Not taken", problem);
    }
    let Some(browser) = site.pages.browsers.of(&headers) else { return no_random_numbers() };
    if browser.cookie.is_some() {
        return foreign();
    }
    match &*form.action {
        "key" => site.takes_key(&browser, &link, &form.key, peer.address).await,
        "sign-in" => site.leads_to_issuer(browser, link).await,
        "leave" => {
            site.pages.browsers.sign_out(&browser.id);
            site.back(&link)
        }
        action if site.is_persons(&browser, &link) => match action {
            "connect" => match site.pages.begin(&browser.id, &link, &form.nonce) {
                Some(url) => pages::onward(&url),
                None => foreign(),
            },
            "disconnect" => site.disconnect(&link).await,
            _ => message(StatusCode::BAD_REQUEST, "Not taken", "There is no such button."),
        },
        _ => site.back(&link),
    }
}

/// Takes the redirect that ends a login to a server.
async fn connected(
    State(site): State<Site>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some((waiting, redirected)) = site.taken(&headers, Kind::Connect, query) else {
        return foreign();
    };
    let Waiting { browser, link, login, .. } = waiting;
    if site.pages.browsers.person(&browser).as_ref() != Some(&link.person) {
        return foreign();
    }
    let Some(store) = site.gateway.credentials() else { return no_store() };
    let outcome = login.finish(&redirected, store, &link.owner()).await;
    site.gateway.audit().connection(&link.person.caller(), &link.server, outcome.is_ok());
    match outcome {
        Ok(()) => {
            site.renewed(&link);
            let text = format!(
                "{} is connected to {}. This window can be closed; the call can be made again.",
                link.person.principal, link.server
            );
            message(StatusCode::OK, "Connected", &text)
        }
        Err(error) => failed(&error),
    }
}

/// Takes the redirect that says who a person is, and goes on with the page of the link.
async fn signed_in(
    State(site): State<Site>,
    ConnectInfo(peer): ConnectInfo<HostPeer>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Some((waiting, redirected)) = site.taken(&headers, Kind::SignIn, query) else {
        return foreign();
    };
    let browser = Browser { id: waiting.browser, cookie: None };
    match waiting.login.access_token(&redirected).await {
        Ok(token) => {
            site.takes_credential(&browser, &waiting.link, token.reveal(), peer.address).await
        }
        Err(error) => failed(&error),
    }
}

impl Pressed {
    fn read(body: &[u8]) -> Self {
        let mut pressed = Self::default();
        for (name, value) in url::form_urlencoded::parse(body) {
            match &*name {
                "action" => pressed.action = value.into_owned(),
                "nonce" => pressed.nonce = value.into_owned(),
                "key" => pressed.key = value.into_owned(),
                _ => {}
            }
        }
        pressed
    }
}

impl Site {
    /// Returns the login that a redirect to this browser belongs to, with the redirect.
    fn taken(
        &self,
        headers: &HeaderMap,
        kind: Kind,
        query: Option<String>,
    ) -> Option<(Waiting, String)> {
        let browser = self.pages.browsers.of(headers)?;
        let redirected = format!("?{}", query?);
        let waiting = self.pages.take(&browser.id, kind, &redirected)?;
        Some((waiting, redirected))
    }

    /// Returns whether the browser is known as the person that a link is for.
    fn is_persons(&self, browser: &Browser, link: &Link) -> bool {
        self.pages.browsers.person(&browser.id).as_ref() == Some(&link.person)
    }

    /// Returns the page that asks whether the server is to be connected.
    async fn consent(&self, browser: &Browser, link: &Link) -> Response {
        let Some((endpoint, store)) = self.place(link) else { return no_store() };
        let client = match self.pages.client(&self.gateway, link, &endpoint).await {
            Ok(client) => client,
            Err(error) => return failed(&error),
        };
        let login = match client.begin() {
            Ok(login) => login,
            Err(error) => return failed(&error),
        };
        let Some(nonce) = random() else { return no_random_numbers() };
        let page = pages::consent(
            &self.pages,
            link,
            &endpoint.url,
            &Asked {
                issuer: client.issuer(),
                client_id: client.client_id(),
                scopes: &client.scopes(),
                nonce: &nonce,
                is_connected: store.has(&link.owner(), &endpoint.url).unwrap_or(true),
            },
        );
        self.pages.wait(Waiting {
            browser: browser.id,
            link: link.clone(),
            kind: Kind::Connect,
            login,
            nonce,
            until: Instant::now() + LOGIN_KEPT,
        });
        page
    }

    /// Leads to the issuer of callers' tokens, which says who the person is.
    async fn leads_to_issuer(&self, browser: Browser, link: Link) -> Response {
        let login = match self.pages.sign_in().await {
            Ok(login) => login,
            Err(error) => return failed(&error),
        };
        let page = pages::onward(login.url());
        self.pages.wait(Waiting {
            browser: browser.id,
            link,
            kind: Kind::SignIn,
            login,
            nonce: String::new(),
            until: Instant::now() + LOGIN_KEPT,
        });
        page
    }

    async fn takes_key(
        &self,
        browser: &Browser,
        link: &Link,
        key: &str,
        peer: SocketAddr,
    ) -> Response {
        if !self.pages.takes_keys {
            return message(StatusCode::BAD_REQUEST, "Not taken", "There are no API keys here.");
        }
        self.takes_credential(browser, link, key.trim(), peer).await
    }

    /// Knows a browser as the person that its credential is of.
    async fn takes_credential(
        &self,
        browser: &Browser,
        link: &Link,
        credential: &str,
        peer: SocketAddr,
    ) -> Response {
        let Some(authentication) = &self.authentication else { return foreign() };
        let value = format!("Bearer {credential}");
        let presented = PresentedCredentials {
            authorization: vec![value.as_bytes()],
            peer: peer.ip(),
            connection: None,
        };
        let Ok(caller) = authentication.authenticate(presented).await else {
            let problem = "This credential is not good here, or can't be verified now.";
            return message(StatusCode::FORBIDDEN, "Not taken", problem);
        };
        match self.pages.browsers.sign_in(&browser.id, Person::of(&caller)) {
            Some(known) => pages::with_cookie(self.back(link), known.cookie),
            None => no_random_numbers(),
        }
    }

    /// Removes a person's credential.
    async fn disconnect(&self, link: &Link) -> Response {
        let Some((endpoint, store)) = self.place(link) else { return no_store() };
        let outcome = toolgate_upstream::log_out(&endpoint, store, &link.owner()).await;
        self.renewed(link);
        match outcome {
            Ok(_) => message(StatusCode::OK, "Disconnected", "Your login there was removed."),
            Err(CredentialError::Unavailable(problem)) => {
                let text = format!(
                    "Your login was removed here. Its authorization server was not told: {problem}."
                );
                message(StatusCode::OK, "Disconnected", &text)
            }
            Err(error) => failed(&error),
        }
    }

    /// Has the next request take what is stored now.
    fn renewed(&self, link: &Link) {
        if let Some(requester) = link.person.caller().requester() {
            self.gateway.fleet().renew(&link.server, &requester);
        }
        self.pages.changed();
    }

    fn place(&self, link: &Link) -> Option<(Endpoint, &CredentialStore)> {
        Some((self.gateway.fleet().endpoint(&link.server)?, self.gateway.credentials()?))
    }

    /// Leads back to the page of a link.
    fn back(&self, link: &Link) -> Response {
        let to = format!("{}{}", self.pages.base, link.path());
        let headers = [(header::LOCATION, to), (header::CACHE_CONTROL, "no-store".to_owned())];
        (StatusCode::SEE_OTHER, headers).into_response()
    }
}

impl Person {
    /// Returns the person as a caller without rights.
    fn caller(&self) -> Caller {
        Caller {
            tenant: self.tenant.as_str().into(),
            principal: self.principal.as_str().into(),
            ..Caller::default()
        }
    }
}

fn out_of_date() -> Response {
    let text =
        "This link is out of date, or was never good. Have the call made again for a new one.";
    message(StatusCode::BAD_REQUEST, "No link", text)
}

fn foreign() -> Response {
    let text = "This belongs to no login that this browser began, or to one that is over. Open the link again.";
    message(StatusCode::BAD_REQUEST, "No login", text)
}

fn no_store() -> Response {
    let text = "This gateway has no place for credentials, or no such server any more.";
    message(StatusCode::SERVICE_UNAVAILABLE, "Not now", text)
}

fn no_random_numbers() -> Response {
    let text = "The system gives no random numbers.";
    message(StatusCode::SERVICE_UNAVAILABLE, "Not now", text)
}

/// Returns the page of a failure, whose text holds no token.
fn failed(error: &CredentialError) -> Response {
    message(StatusCode::BAD_GATEWAY, "It did not work", &error.to_string())
}
