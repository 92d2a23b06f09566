//! Credentials of the client. `Debug` never prints their secrets.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use tonic::metadata::AsciiMetadataValue;

use crate::error::Error;

/// Result of a token source: a token, or the reason why there is none.
pub type TokenResult = Result<String, Box<dyn StdError + Send + Sync>>;

type Tokens = dyn Fn() -> Pin<Box<dyn Future<Output = TokenResult> + Send>> + Send + Sync;

/// An API key or a source of tokens, sent with each call as `authorization: Bearer ...`.
#[derive(Clone, Default)]
pub struct Credentials(Kind);

#[derive(Clone, Default)]
enum Kind {
    #[default]
    Absent,
    ApiKey(String),
    Source(Arc<Tokens>),
}

impl Credentials {
    /// Creates credentials from an API key.
    #[must_use]
    pub fn api_key(key: impl Into<String>) -> Self {
        Self(Kind::ApiKey(key.into()))
    }

    /// Creates credentials from a function that returns a token; for tokens that rotate. It runs before each call and
    /// each retry, within the call's deadline, so it should answer from memory if possible.
    ///
    /// ```
    /// use toolgate_client::Credentials;
    ///
    /// let credentials = Credentials::token_source(|| async {
    ///     Ok(std::env::var("TOKEN")?)
    /// });
    /// ```
    #[must_use]
    pub fn token_source<F, T>(source: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = TokenResult> + Send + 'static,
    {
        Self(Kind::Source(Arc::new(move || Box::pin(source()))))
    }

    pub(crate) fn are_given(&self) -> bool {
        !matches!(self.0, Kind::Absent)
    }

    /// Checks that an API key can be sent in a header. Tokens are checked when they are used.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.0 {
            Kind::ApiKey(key) => bearer(key)
                .map(drop)
                .map_err(|problem| Error::Options { problem: format!("the API key {problem}") }),
            _ => Ok(()),
        }
    }

    /// Returns the value of `authorization`, or `None` without credentials.
    pub(crate) async fn authorization(&self) -> Result<Option<AsciiMetadataValue>, Error> {
        let sent = match &self.0 {
            Kind::Absent => return Ok(None),
            Kind::ApiKey(key) => bearer(key),
            Kind::Source(source) => match source().await {
                Ok(token) => bearer(&token),
                Err(error) => return Err(Error::Token { problem: error.to_string() }),
            },
        };
        sent.map(Some).map_err(|problem| Error::Token { problem: format!("the token {problem}") })
    }
}

fn bearer(secret: &str) -> Result<AsciiMetadataValue, &'static str> {
    if secret.is_empty() {
        return Err("is empty");
    }
    // White space at an end, such as a file's newline, would be lost or refused in transit.
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("holds white space or other characters that no header can");
    }
    let mut value = AsciiMetadataValue::try_from(format!("Bearer {secret}"))
        .map_err(|_| "is no value of a header")?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Kind::Absent => "none",
            Kind::ApiKey(_) => "an API key",
            Kind::Source(_) => "a token source",
        })
    }
}
