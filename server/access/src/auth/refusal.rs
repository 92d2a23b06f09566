//! Why credentials are not good: a closed set, for the counter, the log and the caller, who is told no more than helps
//! one who is in the right.

use toolgate_config::AuthMethod;
use toolgate_core::error::{Cause, Error};
use toolgate_store::StoreError;

/// Why credentials are not good.
#[derive(Debug)]
pub enum Refusal {
    /// There are none.
    Missing,
    /// They have no credential's form.
    Malformed,
    /// This server does not take credentials of this method.
    MethodOff(AuthMethod),
    /// No such key, the wrong secret, or revoked: the caller does not learn which.
    Key(KeyFault, String),
    /// An API key whose time is over.
    KeyExpired(String),
    /// The token does not hold.
    Token(TokenFault),
    /// The certificate names nobody known here.
    Certificate(&'static str),
    /// Too many credentials that nobody here has seen come at once.
    Busy,
    /// Keys can't be looked up now.
    Unavailable(Cause),
    /// The stored key can't be read.
    Damaged(Cause),
}

/// What is wrong with an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// There is no such key.
    Unknown,
    /// Its secret is another one.
    Secret,
    /// It is revoked.
    Revoked,
}

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// Not three parts of base64url, or not JSON of the right shape.
    Malformed,
    /// Signed in a way that is not taken, or not in the key's own.
    Algorithm,
    /// Signed with a key that the issuer's key set does not have.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// Its time is over.
    Expired,
    /// Its time has not begun.
    NotYetValid,
    /// From another issuer.
    Issuer,
    /// For another audience.
    Audience,
    /// A claim is missing or out of shape.
    Claims,
}

impl Refusal {
    /// The reason, as metrics and log have it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::MethodOff(_) => "method_off",
            Self::Key(KeyFault::Unknown, _) => "unknown_key",
            Self::Key(KeyFault::Secret, _) => "wrong_secret",
            Self::Key(KeyFault::Revoked, _) => "revoked",
            Self::KeyExpired(_) => "expired",
            Self::Token(fault) => fault.reason(),
            Self::Certificate(_) => "certificate",
            Self::Busy => "busy",
            Self::Unavailable(_) => "unavailable",
            Self::Damaged(_) => "damaged",
        }
    }

    /// Says why a key could not be looked up.
    #[must_use]
    pub(super) fn unasked(cause: Cause) -> Self {
        match cause.downcast_ref::<StoreError>() {
            Some(StoreError::Damaged(_)) => Self::Damaged(cause),
            _ => Self::Unavailable(cause),
        }
    }

    /// The method of the credentials.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::Missing | Self::Malformed => "",
            Self::MethodOff(method) => method.name(),
            Self::Key(..)
            | Self::KeyExpired(_)
            | Self::Busy
            | Self::Unavailable(_)
            | Self::Damaged(_) => AuthMethod::ApiKey.name(),
            Self::Token(_) => AuthMethod::Jwt.name(),
            Self::Certificate(_) => AuthMethod::Mtls.name(),
        }
    }

    /// The credential's id, where it has one that is no secret.
    #[must_use]
    pub fn credential(&self) -> &str {
        match self {
            Self::Key(_, id) | Self::KeyExpired(id) => id,
            _ => "",
        }
    }
}

impl TokenFault {
    fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "token_malformed",
            Self::Algorithm => "token_algorithm",
            Self::UnknownKey => "token_unknown_key",
            Self::Signature => "token_signature",
            Self::Expired => "token_expired",
            Self::NotYetValid => "token_not_yet_valid",
            Self::Issuer => "token_issuer",
            Self::Audience => "token_audience",
            Self::Claims => "token_claims",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Malformed => "the bearer credential is neither an API key nor a signed token",
            Self::Algorithm => "the token's algorithm is not taken: RS256, ES256 and EdDSA are",
            Self::UnknownKey => "the token is signed with a key that this server does not know",
            Self::Signature => "the token's signature is wrong",
            Self::Expired => "the token has expired",
            Self::NotYetValid => "the token is not valid yet",
            Self::Issuer => "the token is of another issuer",
            Self::Audience => "the token is for another audience",
            Self::Claims => "the token lacks a claim, or has one out of shape",
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::Unauthenticated(
                "a credential is needed: send `authorization: Bearer` with an API key or a token",
            ),
            Refusal::Malformed => Self::Unauthenticated(
                "the header authorization is not one `Bearer` with an API key or a token",
            ),
            Refusal::MethodOff(AuthMethod::ApiKey) => {
                Self::Unauthenticated("this server takes no API keys")
            }
            Refusal::MethodOff(_) => Self::Unauthenticated("this server takes no such credential"),
            Refusal::Key(..) => Self::Unauthenticated("the API key is not good"),
            Refusal::KeyExpired(_) => Self::Unauthenticated("the API key has expired"),
            Refusal::Token(fault) => Self::Unauthenticated(fault.told()),
            Refusal::Certificate(told) => Self::Unauthenticated(told),
            Refusal::Busy => Self::Overloaded,
            Refusal::Unavailable(cause) => Self::StoreUnavailable(cause),
            Refusal::Damaged(cause) => Self::StoreDamaged(cause),
        }
    }
}
