//! Logins of persons to servers that have a credential for each principal. A call without one is answered with a link to a page
//! of the gateway. The page finds out who the person is, says who asks for what, and only then leads to the authorization
//! server. Everything here is in the memory of one process: a login ends where it began.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::watch;
use toolgate_upstream::{CredentialError, Endpoint, Login, LoginClient, OAuthClient, Owner};
use url::Url;

use crate::caller::Caller;
use crate::config::AuthMethod;
use crate::gateway::Gateway;
use crate::http::GatewayError;
use crate::sealed::{Content, Purpose};

mod asking;
mod browsers;
mod pages;
mod routes;

pub(crate) use browsers::random;
use browsers::{BrowserId, Browsers};
pub(crate) use routes::{is_page, routes};

/// Path of the pages, before a server's name and the ticket.
const CONNECT: &str = "/gateway/connect";

/// Paths that authorization servers lead back to: with a server's login, and with who a person is.
const CONNECTED: &str = "/gateway/connected";
const SIGNED_IN: &str = "/gateway/signed-in";

/// Time for which a link is good.
const LINK_KEPT: Duration = Duration::from_secs(60 * 60);

/// Time for which a login may wait for the person.
const LOGIN_KEPT: Duration = Duration::from_secs(10 * 60);

/// Most logins that wait, in all and of one principal. The oldest give way.
const WAITING_MAX: usize = 1_024;
const WAITING_OF_ONE: usize = 8;

/// Time for which a client is used again that an authorization server knows.
const CLIENT_KEPT: Duration = Duration::from_secs(10 * 60);

/// Most characters of a host's name that a page shows.
const HOST_MAX: usize = 80;

/// Pages for logins of persons.
pub(crate) struct Connecting {
    /// URL of the gateway as hosts and browsers use it, without a slash at the end.
    base: String,
    /// Origin of that URL.
    origin: String,
    /// Client at the issuer of callers' tokens; `None` if they come with none.
    issuer: Option<OAuthClient>,
    takes_keys: bool,
    browsers: Browsers,
    waiting: Mutex<Vec<Waiting>>,
    /// Clients of authorization servers, by server and scopes.
    clients: Mutex<HashMap<(String, Vec<String>), KnownClient>>,
    /// Grows with each credential that is stored or removed.
    changes: watch::Sender<u64>,
}

struct KnownClient {
    endpoint: Endpoint,
    client: LoginClient,
    since: Instant,
}

/// Person and server that a link is for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Link {
    person: Person,
    server: String,
    /// Name that the host gives itself.
    host: String,
    /// Sealed text of the link.
    ticket: String,
}

/// Principal of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Person {
    tenant: String,
    principal: String,
}

/// Login that waits for its redirect, in one browser.
struct Waiting {
    browser: BrowserId,
    link: Link,
    kind: Kind,
    login: Login,
    /// Text of the page whose button begins it; empty once it has begun.
    nonce: String,
    until: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It says who the person is.
    SignIn,
    /// It gives the tokens for the server.
    Connect,
}

impl Person {
    fn of(caller: &Caller) -> Self {
        Self { tenant: caller.tenant.to_string(), principal: caller.principal.to_string() }
    }

    fn owner(&self, server: &str) -> Owner {
        Owner {
            tenant: self.tenant.clone(),
            principal: self.principal.clone(),
            server: server.to_owned(),
        }
    }
}

impl Link {
    fn owner(&self) -> Owner {
        self.person.owner(&self.server)
    }

    fn path(&self) -> String {
        format!("{CONNECT}/{}/{}", self.server, self.ticket)
    }
}

fn purpose(server: &str) -> Purpose<'_> {
    Purpose { principal: "", server, method: "connect", name: "" }
}

impl Connecting {
    /// # Errors
    /// [`GatewayError`] if the gateway has no URL, or the client at the issuer no secret.
    fn new(gateway: &Gateway, address: SocketAddr) -> Result<Self, GatewayError> {
        let config = gateway.config();
        let base = config.base_url(address);
        let url = Url::parse(&base).map_err(GatewayError::PublicUrl)?;
        let issuer = config.sign_in_client();
        Ok(Self {
            origin: url.origin().ascii_serialization(),
            base,
            issuer: issuer.map_err(|error| GatewayError::Pages(error.to_string()))?,
            takes_keys: config.gateway.auth.methods.contains(&AuthMethod::ApiKey),
            browsers: Browsers::new(url.scheme() == "https"),
            waiting: Mutex::default(),
            clients: Mutex::default(),
            changes: watch::channel(0).0,
        })
    }

    /// Returns the link by which a caller connects to a server.
    fn link(&self, gateway: &Gateway, caller: &Caller, server: &str, host: &str) -> String {
        let Person { tenant, principal } = Person::of(caller);
        let host = host.chars().filter(|c| !c.is_control()).take(HOST_MAX).collect();
        let content = Content::Person { tenant, principal, host };
        let ticket = gateway.seal().seal(content, &purpose(server), LINK_KEPT);
        format!("{}{CONNECT}/{server}/{ticket}", self.base)
    }

    /// Opens a link; `None` if it is out of date, was changed, or is for a server that the person does not see any more.
    fn opened(&self, gateway: &Gateway, server: &str, ticket: &str) -> Option<Link> {
        let content = gateway.seal().open(ticket, &purpose(server))?;
        let Content::Person { tenant, principal, host } = content else { return None };
        let config = gateway.server(server)?;
        if !config.takes_principals_logins() || !gateway.sees(&tenant, server) {
            return None;
        }
        let person = Person { tenant, principal };
        Some(Link { person, server: server.to_owned(), host, ticket: ticket.to_owned() })
    }

    /// Returns the client at the authorization server of a link's server, which is found anew after a while.
    async fn client(
        &self,
        gateway: &Gateway,
        link: &Link,
        endpoint: &Endpoint,
    ) -> Result<LoginClient, CredentialError> {
        let known = gateway.credentials().map(|store| store.scopes(&link.owner(), &endpoint.url));
        let key = (link.server.clone(), known.unwrap_or_default());
        {
            let mut clients = self.clients.lock();
            clients.retain(|_, known| known.since.elapsed() < CLIENT_KEPT);
            if let Some(known) = clients.get(&key).filter(|known| known.endpoint == *endpoint) {
                return Ok(known.client.clone());
            }
        }
        let redirect_uri = format!("{}{CONNECTED}", self.base);
        let client = LoginClient::find(endpoint, &redirect_uri, &key.1).await?;
        let known = KnownClient {
            endpoint: endpoint.clone(),
            client: client.clone(),
            since: Instant::now(),
        };
        self.clients.lock().insert(key, known);
        Ok(client)
    }

    /// Returns the login that says who a person is, at the issuer of callers' tokens.
    async fn sign_in(&self) -> Result<Login, CredentialError> {
        let Some(settings) = &self.issuer else {
            return Err(CredentialError::Unavailable("callers have no tokens here".to_owned()));
        };
        let resource = Url::parse(&format!("{}/mcp", self.base));
        let resource = resource.map_err(|error| CredentialError::Unavailable(error.to_string()))?;
        let redirect_uri = format!("{}{SIGNED_IN}", self.base);
        LoginClient::at_issuer(settings, &resource, &redirect_uri).await?.begin()
    }

    /// Lets a login wait for its redirect.
    fn wait(&self, login: Waiting) {
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        waiting.retain(|waiting| waiting.until > now);
        let person = &login.link.person;
        let of_person = |waiting: &Waiting| waiting.link.person == *person;
        if waiting.iter().filter(|waiting| of_person(waiting)).count() >= WAITING_OF_ONE
            && let Some(place) = waiting.iter().position(of_person)
        {
            waiting.remove(place);
        }
        if waiting.len() >= WAITING_MAX {
            waiting.remove(0);
        }
        waiting.push(login);
    }

    /// Begins the login of a page's button. Returns its URL; `None` if it is none of this browser and link.
    fn begin(&self, browser: &BrowserId, link: &Link, nonce: &str) -> Option<Url> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let found = waiting.iter_mut().find(|waiting| {
            waiting.kind == Kind::Connect
                && !nonce.is_empty()
                && waiting.nonce == nonce
                && waiting.browser == *browser
                && waiting.link == *link
                && waiting.until > now
        })?;
        found.nonce.clear();
        Some(found.login.url().clone())
    }

    /// Takes the login that a redirect belongs to, once and in its own browser only.
    fn take(&self, browser: &BrowserId, kind: Kind, redirected: &str) -> Option<Waiting> {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let place = waiting.iter().position(|waiting| {
            waiting.kind == kind
                && waiting.nonce.is_empty()
                && waiting.browser == *browser
                && waiting.until > now
                && waiting.login.owns(redirected)
        })?;
        Some(waiting.remove(place))
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }
}
