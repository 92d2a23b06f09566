//! Tenants of hosts, and the keys that tell them.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// Header in which hosts give their key of Toolgate's. The provider's own key stays in its header.
const KEY: HeaderName = HeaderName::from_static("x-toolgate-key");

/// Verifies keys of Toolgate's.
pub trait Authentication: Send + Sync {
    /// Returns who calls with this key.
    fn authenticate(&self, presented: PresentedKey) -> BoxFuture<'_, Result<Caller, Refusal>>;
}

/// Key of a request. It is a secret, so that it has no `Debug`.
pub struct PresentedKey {
    /// The key, as it came; `None` if there is none.
    pub key: Option<Vec<u8>>,
    /// Address that the request came from.
    pub peer: IpAddr,
}

/// Host that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Its tenant.
    pub tenant: Arc<str>,
    /// True if it may see the accounts of all tenants, and the metrics.
    pub is_operator: bool,
}

/// Reason that a request is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no key.
    Missing,
    /// The key is not good.
    Invalid,
    /// The key is good, and this is not for it.
    Forbidden,
    /// Too many unknown keys are being looked up, or keys can't be verified now.
    Unavailable,
}

impl Refusal {
    /// Returns the status of the answer.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Missing | Self::Invalid => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Returns the problem, for the host.
    pub(crate) fn problem(self) -> &'static str {
        match self {
            Self::Missing => "a key of Toolgate's is needed in the header x-toolgate-key",
            Self::Invalid => "the key in the header x-toolgate-key is not good",
            Self::Forbidden => "the key in the header x-toolgate-key is not for this",
            Self::Unavailable => "keys can't be verified now: try again later",
        }
    }

    /// Returns the name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Missing => "key-missing",
            Self::Invalid => "key-invalid",
            Self::Forbidden => "key-forbidden",
            Self::Unavailable => "key-unverified",
        }
    }
}

/// Returns the key of a request to a provider. More than one is none that could be good.
pub(crate) fn key_of(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut keys = headers.get_all(KEY).iter().map(HeaderValue::as_bytes);
    let key = keys.next()?;
    Some(if keys.next().is_some() { Vec::new() } else { key.to_vec() })
}

/// Returns the key of a request to the proxy's own pages, which scrapers give as a bearer's.
pub(crate) fn own_key_of(headers: &HeaderMap) -> Option<Vec<u8>> {
    let bearer = || {
        let mut values = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        let value = values.next().filter(|_| values.next().is_none())?;
        Some(value.strip_prefix(b"Bearer ")?.to_vec())
    };
    key_of(headers).or_else(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_once() {
        let mut headers = HeaderMap::new();
        assert_eq!(key_of(&headers), None);
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer provider's"));
        assert_eq!(key_of(&headers), None, "the provider's key is none of Toolgate's");
        assert_eq!(own_key_of(&headers).as_deref(), Some(&b"provider's"[..]));
        headers.insert(KEY, HeaderValue::from_static("one"));
        assert_eq!(key_of(&headers).as_deref(), Some(&b"one"[..]));
        headers.append(KEY, HeaderValue::from_static("two"));
        assert_eq!(key_of(&headers).as_deref(), Some(&b""[..]));
    }
}
