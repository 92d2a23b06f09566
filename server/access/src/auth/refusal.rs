//! Reasons to refuse credentials: a closed set for the counter, the log and the caller. The caller learns only as
//! much as helps a legitimate one.

use toolgate_config::AuthMethod;
use toolgate_core::error::{Cause, Error};
use toolgate_store::StoreError;

/// Reason to refuse credentials.
#[derive(Debug)]
pub enum Refusal {
    /// The call has no credentials.
    Missing,
    /// The credentials are malformed.
    Malformed,
    /// This server does not accept this authentication method.
    MethodOff(AuthMethod),
    /// The API key is unknown, has the wrong secret or is revoked. The caller does not learn which.
    Key(KeyFault, String),
    /// The API key with this id has expired.
    KeyExpired(String),
    /// The token is invalid.
    Token(TokenFault),
    /// The certificate has expired or names no known caller.
    Certificate(&'static str),
    /// Too many unknown credentials are being looked up at once.
    Busy,
    /// API keys can't be looked up now.
    Unavailable(Cause),
    /// The stored key can't be read.
    Damaged(Cause),
}

/// Fault of an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// There is no key with this id.
    Unknown,
    /// The secret is wrong.
    Secret,
    /// The key is revoked.
    Revoked,
}

/// Fault of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenFault {
    /// The token is not three parts of base64url, or its JSON has the wrong shape.
    Malformed,
    /// The algorithm is not supported, or it is not the key's own.
    Algorithm,
    /// The issuer's key set does not contain the signing key.
    UnknownKey,
    /// The signature is wrong.
    Signature,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    NotYetValid,
    /// The token comes from another issuer.
    Issuer,
    /// The token is for another audience.
    Audience,
    /// A claim is missing or malformed.
    Claims,
}

impl Refusal {
    /// Returns the reason as it appears in metrics and the log.
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

    /// Creates the refusal for a key that could not be looked up.
    #[must_use]
    pub(super) fn unasked(cause: Cause) -> Self {
        match cause.downcast_ref::<StoreError>() {
            Some(StoreError::Damaged(_)) => Self::Damaged(cause),
            _ => Self::Unavailable(cause),
        }
    }

    /// Returns the name of the authentication method; empty if there is none.
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

    /// Returns the credential's public id; empty if it has none.
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

    fn message(self) -> &'static str {
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
            Refusal::Token(fault) => Self::Unauthenticated(fault.message()),
            Refusal::Certificate(told) => Self::Unauthenticated(told),
            Refusal::Busy => Self::Overloaded,
            Refusal::Unavailable(cause) => Self::StoreUnavailable(cause),
            Refusal::Damaged(cause) => Self::StoreDamaged(cause),
        }
    }
}
