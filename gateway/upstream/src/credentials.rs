//! Credentials towards servers behind URLs: tokens of authorization servers, kept encrypted, renewed, and sent to the
//! server that they are for and to no other.

use url::Url;

mod addresses;
mod authorizer;
mod challenge;
mod client;
mod discovery;
mod files;
mod key_file;
mod keys;
mod login;
mod requester;
mod sealing;
mod secret;
mod store;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use addresses::is_loopback;
pub(crate) use authorizer::Authorizer;
pub(crate) use challenge::Challenge;
pub use client::is_safe;
pub use keys::KeyId;
pub use login::{Login, LoginClient, log_out};
pub use requester::Requester;
pub use sealing::{KeyUse, Sealing};
pub use secret::Secret;
pub use store::{CredentialStore, Owner};

/// Credential that a server behind a URL is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authorization {
    /// None, or one among the headers of the endpoint.
    #[default]
    Headers,
    /// Tokens for the gateway itself (RFC 6749, section 4.4).
    ClientCredentials(OAuthClient),
    /// Tokens of a person who has logged in (authorization code with PKCE).
    Login(OAuthClient),
    /// Tokens of the principal whose request it is, who has logged in. What the server lists is asked for with the tokens of
    /// the operator's login.
    PerPrincipal(OAuthClient),
    /// Tokens that the principal's own are exchanged for (RFC 8693), at the operator's issuer. What the server lists is asked for
    /// with tokens for the gateway itself.
    Exchange(OAuthClient),
}

/// Client of an authorization server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthClient {
    /// Id that the authorization server has given; `None` to register at the login.
    pub id: Option<String>,
    /// Secret of the id.
    pub secret: Option<Secret>,
    /// https URL of the client's metadata document, which is an id where the authorization server takes it.
    pub metadata_url: Option<Url>,
    /// Scopes to ask for; empty for those that the server names.
    pub scopes: Vec<String>,
    /// Issuer of the tokens; `None` for the one that the server names.
    pub issuer: Option<String>,
    /// Audience to name beside the resource where a token is exchanged.
    pub audience: Option<String>,
}

/// Error of a credential. Its text holds no token and no secret.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// Nobody has logged in, or the login has ended.
    #[error("it asks for a login: {0}")]
    Login(String),
    /// An authorization server can't be reached, or refuses.
    #[error("no token: {0}")]
    Unavailable(String),
    /// The store can't be read or written.
    #[error("stored credentials: {0}")]
    Store(String),
}

impl Authorization {
    /// Returns the client, if tokens are asked for.
    pub(crate) fn client(&self) -> Option<&OAuthClient> {
        match self {
            Self::Headers => None,
            Self::ClientCredentials(client)
            | Self::Login(client)
            | Self::PerPrincipal(client)
            | Self::Exchange(client) => Some(client),
        }
    }

    /// Returns whether each principal has a credential of its own.
    pub(crate) fn is_per_principal(&self) -> bool {
        matches!(self, Self::PerPrincipal(_) | Self::Exchange(_))
    }
}
