//! Tokens of one server: kept, renewed once for all who need one, and got anew when the server refuses them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::challenge::Challenge;
use super::client::{AuthClient, unavailable};
use super::discovery::{Discovered, discover, is_same_issuer, server_metadata};
use super::files::Stamp;
use super::login::{add, client_of};
use super::store::Stored;
use super::tokens::{self, Registered, Token, TokenError};
use super::{
    Authorization, CredentialError, CredentialStore, OAuthClient, Owner, Requester, Secret,
};
use crate::target::Endpoint;

/// Grant of RFC 8693, and the type of its tokens.
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// Time between two looks for a login.
const LOOK: Duration = Duration::from_secs(1);

/// Source of the tokens of one server.
#[derive(Debug)]
pub(crate) struct Authorizer {
    endpoint: Endpoint,
    kind: Kind,
    client: AuthClient,
    kept: Mutex<Kept>,
    /// Held while a token is got, so that one request is enough for all.
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
enum Kind {
    ClientCredentials(OAuthClient),
    Login {
        settings: OAuthClient,
        store: CredentialStore,
        owner: Owner,
    },
    /// The subject is the token to exchange.
    Exchange {
        settings: OAuthClient,
        subject: Secret,
    },
}

/// Token in memory.
#[derive(Debug, Default)]
struct Kept {
    token: Option<Token>,
    /// Mark of the stored credential when it was read.
    stamp: Option<Stamp>,
    /// Authorization server, once it was found.
    discovered: Option<Discovered>,
}

impl Authorizer {
    /// Returns the source of an endpoint's tokens for all who have none of their own; `None` if it takes none.
    ///
    /// # Errors
    /// [`CredentialError`] if there is no HTTP client, or no store for a login.
    pub(crate) fn new(
        endpoint: &Endpoint,
        server: &str,
        store: Option<&CredentialStore>,
    ) -> Result<Option<Arc<Self>>, CredentialError> {
        use Authorization::{ClientCredentials, Exchange, Headers, Login, PerPrincipal};
        let kind = match (&endpoint.authorization, store) {
            (Headers, _) | (Login(_) | PerPrincipal(_), None) => return Ok(None),
            (ClientCredentials(settings) | Exchange(settings), _) => {
                Kind::ClientCredentials(settings.clone())
            }
            (Login(settings) | PerPrincipal(settings), Some(store)) => Kind::Login {
                settings: settings.clone(),
                store: store.clone(),
                owner: Owner::operator(server),
            },
        };
        Self::with(endpoint, kind).map(Some)
    }

    /// Returns the source of a principal's own tokens. There is no other for it.
    ///
    /// # Errors
    /// [`CredentialError`] if there is no HTTP client, no store, or no token to exchange.
    pub(crate) fn of_principal(
        endpoint: &Endpoint,
        server: &str,
        store: Option<&CredentialStore>,
        requester: &Requester,
    ) -> Result<Arc<Self>, CredentialError> {
        let kind = match (&endpoint.authorization, store, &requester.token) {
            (Authorization::PerPrincipal(settings), Some(store), _) => Kind::Login {
                settings: settings.clone(),
                store: store.clone(),
                owner: requester.owner(server),
            },
            (Authorization::Exchange(settings), _, Some(token)) => {
                Kind::Exchange { settings: settings.clone(), subject: token.clone() }
            }
            (Authorization::Exchange(_), _, None) => {
                return Err(unavailable("the caller came with no token that can be exchanged"));
            }
            _ => return Err(unavailable("there is no place for credentials of principals")),
        };
        Self::with(endpoint, kind)
    }

    fn with(endpoint: &Endpoint, kind: Kind) -> Result<Arc<Self>, CredentialError> {
        let settings = endpoint.authorization.client().cloned().unwrap_or_default();
        Ok(Arc::new(Self {
            endpoint: endpoint.clone(),
            kind,
            client: client_of(endpoint, &settings)?,
            kept: Mutex::default(),
            renewing: tokio::sync::Mutex::new(()),
        }))
    }

    /// Returns whether the tokens stand for a person, so that a refusal says nothing of others.
    pub(crate) fn is_of_person(&self) -> bool {
        matches!(self.kind, Kind::Login { .. } | Kind::Exchange { .. })
    }

    /// Returns whether a person's login gives the tokens.
    pub(crate) fn takes_login(&self) -> bool {
        matches!(self.kind, Kind::Login { .. })
    }

    /// Returns why the stored login can't be read; `None` if it can, or there is none.
    pub(crate) fn unreadable(&self) -> Option<String> {
        let Kind::Login { store, owner, .. } = &self.kind else { return None };
        match store.load(owner) {
            Err(CredentialError::Login(problem)) => Some(problem),
            _ => None,
        }
    }

    /// Returns the token to send; `None` if there is none yet, so that the server's refusal says where to get one.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, CredentialError> {
        let Some(token) = self.current()? else {
            // The issuer is the operator's: nothing has to be learnt of the server.
            return match self.kind {
                Kind::Exchange { .. } => self.renewed(None, "").await.map(Some),
                Kind::ClientCredentials(_) | Kind::Login { .. } => Ok(None),
            };
        };
        if token.is_fresh() {
            return Ok(Some(token.access));
        }
        let has_way = token.refresh.is_some() || !self.takes_login();
        if !has_way {
            return Ok(Some(token.access));
        }
        self.renewed(Some(token.access), "").await.map(Some)
    }

    /// Returns a token in the place of one that the server refused with a challenge.
    pub(crate) async fn renewed(
        self: &Arc<Self>,
        refused: Option<Secret>,
        challenge: &str,
    ) -> Result<Secret, CredentialError> {
        let renewing = Arc::clone(self);
        let challenge = Challenge::parse(challenge);
        // In a task of its own: a caller that leaves must not lose a refresh token that was just exchanged.
        let task = tokio::spawn(async move { renewing.renew(refused, challenge).await });
        task.await.map_err(|_| unavailable("the renewal was ended"))?
    }

    /// Keeps the scopes of a challenge for the next login, if there was a login. Returns what is to be done.
    pub(crate) async fn lacks(&self, challenge: &Challenge) -> Result<String, CredentialError> {
        let scopes = challenge.scopes.join(" ");
        let Kind::Login { settings, store, owner } = &self.kind else {
            return Ok(format!("its token lacks a scope ({scopes}): set `oauth.scopes`"));
        };
        if !settings.scopes.is_empty() {
            return Ok(format!(
                "its token lacks a scope ({scopes}): add it to `oauth.scopes`, and log in again"
            ));
        }
        let _lock = store.lock(owner).await?;
        if let Some(mut stored) = store.load(owner)?.filter(|stored| self.is_for(stored)) {
            add(&mut stored.scopes, &challenge.scopes);
            store.save(owner, &stored)?;
            let mut kept = self.kept.lock();
            kept.stamp = store.stamp(owner);
            kept.token = Some(stored.token);
        }
        if !owner.principal.is_empty() {
            return Ok(format!("your token lacks a scope ({scopes})"));
        }
        let server = &owner.server;
        Ok(format!("its token lacks a scope ({scopes}): toolgate gateway login {server}"))
    }

    /// Waits until the stored credential is another than the one that was read last.
    pub(crate) async fn until_changed(&self) {
        let Kind::Login { store, owner, .. } = &self.kind else {
            return std::future::pending().await;
        };
        let seen = self.kept.lock().stamp.clone();
        while store.stamp(owner) == seen {
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn renew(
        &self,
        refused: Option<Secret>,
        challenge: Challenge,
    ) -> Result<Secret, CredentialError> {
        let _renewing = self.renewing.lock().await;
        let is_new = |token: &Token| Some(&token.access) != refused.as_ref() && token.is_fresh();
        if let Some(token) = self.current()?.filter(is_new) {
            return Ok(token.access);
        }
        match &self.kind {
            Kind::ClientCredentials(settings) => {
                let grant = [("grant_type", "client_credentials")];
                self.ask_for_token(settings, &challenge, &grant).await
            }
            Kind::Exchange { settings, subject } => {
                self.exchange(settings, subject, &challenge).await
            }
            Kind::Login { store, owner, .. } => {
                // Another process may have renewed it in the meantime.
                let _lock = store.lock(owner).await?;
                if let Some(token) = self.current()?.filter(is_new) {
                    return Ok(token.access);
                }
                self.refresh(store, owner).await
            }
        }
    }

    /// Returns the token in memory, which is read again when the stored one has changed.
    fn current(&self) -> Result<Option<Token>, CredentialError> {
        let Kind::Login { store, owner, .. } = &self.kind else {
            return Ok(self.kept.lock().token.clone());
        };
        let stamp = store.stamp(owner);
        {
            let kept = self.kept.lock();
            if kept.stamp == stamp {
                return Ok(kept.token.clone());
            }
        }
        let token = store.load(owner);
        let token = token.map(|stored| stored.filter(|stored| self.is_for(stored)));
        let token = token.map(|stored| stored.map(|stored| stored.token));
        let mut kept = self.kept.lock();
        kept.stamp = stamp;
        kept.token = token.clone().unwrap_or_default();
        token
    }

    /// Returns whether a credential is for this server and of the issuer that the operator wants.
    fn is_for(&self, stored: &Stored) -> bool {
        let Kind::Login { settings, .. } = &self.kind else { return false };
        let wanted = settings.issuer.as_ref();
        stored.server == self.endpoint.url.as_str()
            && wanted.is_none_or(|wanted| is_same_issuer(wanted, &stored.issuer))
            && settings.id.as_ref().is_none_or(|id| *id == stored.client.id)
    }

    fn is_operators_client(&self) -> bool {
        let settings = self.endpoint.authorization.client();
        settings.is_some_and(|settings| settings.id.is_some())
    }

    /// Exchanges a caller's token for one that is for the server alone (RFC 8693).
    async fn exchange(
        &self,
        settings: &OAuthClient,
        subject: &Secret,
        challenge: &Challenge,
    ) -> Result<Secret, CredentialError> {
        let mut grant = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token", subject.reveal()),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ];
        grant.extend(settings.audience.as_deref().map(|audience| ("audience", audience)));
        self.ask_for_token(settings, challenge, &grant).await
    }

    /// Asks for a token at the operator's client. `grant` are the fields of the grant.
    async fn ask_for_token(
        &self,
        settings: &OAuthClient,
        challenge: &Challenge,
        grant: &[(&str, &str)],
    ) -> Result<Secret, CredentialError> {
        let known = self.kept.lock().discovered.clone();
        let discovered = match known {
            Some(known) if *challenge == Challenge::default() => known,
            _ => discover(&self.client, &self.endpoint.url, settings, challenge).await?,
        };
        let registered = Registered {
            id: settings.id.clone().unwrap_or_default(),
            secret: settings.secret.clone(),
            method: None,
        };
        let scope = discovered.scopes.join(" ");
        let mut grant = grant.to_vec();
        if !scope.is_empty() {
            grant.push(("scope", &scope));
        }
        let Discovered { server, resource, .. } = &discovered;
        let token = tokens::request(&self.client, server, &registered, resource, &grant).await?;
        if matches!(&self.kind, Kind::Exchange { subject, .. } if token.access == *subject) {
            return Err(unavailable("the issuer answers with the caller's own token"));
        }
        let access = token.access.clone();
        let mut kept = self.kept.lock();
        kept.token = Some(token);
        kept.discovered = Some(discovered);
        Ok(access)
    }

    /// Exchanges the refresh token at the issuer that it came from, whatever the server names by now.
    async fn refresh(
        &self,
        store: &CredentialStore,
        owner: &Owner,
    ) -> Result<Secret, CredentialError> {
        let login = |problem: &str| CredentialError::Login(problem.to_owned());
        let stored = store.load(owner)?.filter(|stored| self.is_for(stored));
        let mut stored = stored.ok_or_else(|| login("nobody has logged in"))?;
        let Some(refresh) = stored.token.refresh.clone() else {
            return Err(login("the login has ended, and came without a refresh token"));
        };
        let server = server_metadata(&self.client, &stored.issuer).await?;
        let grant = [("grant_type", "refresh_token"), ("refresh_token", refresh.reveal())];
        let Stored { client, resource, .. } = &stored;
        match tokens::request(&self.client, &server, client, resource, &grant).await {
            Ok(mut token) => {
                token.refresh = token.refresh.or(Some(refresh));
                let access = token.access.clone();
                stored.token = token.clone();
                store.save(owner, &stored)?;
                let mut kept = self.kept.lock();
                kept.stamp = store.stamp(owner);
                kept.token = Some(token);
                Ok(access)
            }
            // A client that had registered by itself has to do so again; the operator's may be mended.
            Err(TokenError::Client(problem)) if self.is_operators_client() => {
                Err(CredentialError::Unavailable(problem))
            }
            Err(TokenError::Grant(problem) | TokenError::Client(problem)) => {
                // It will never be good again.
                let _was_there = store.remove(owner)?;
                let mut kept = self.kept.lock();
                kept.stamp = None;
                kept.token = None;
                Err(CredentialError::Login(format!("the login has ended ({problem})")))
            }
            Err(TokenError::Other(error)) => Err(error),
        }
    }
}
