//! Key that signs active-set handles. The configuration decides on its source.

use std::fmt;

/// Minimum bytes of a key: the output size of SHA-256 (RFC 2104, section 3).
pub const KEY_BYTES_MIN: usize = 32;

/// Signing key, with the key used before it. Never printed.
#[derive(Clone)]
pub struct HandleKey {
    key: Box<[u8]>,
    previous: Option<Box<[u8]>>,
}

impl HandleKey {
    /// Creates a key from at least 32 bytes. Returns `None` if there are fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= KEY_BYTES_MIN).then(|| Self { key: bytes.into(), previous: None })
    }

    /// Returns the key, which also accepts signatures of `previous`.
    #[must_use]
    pub fn after(self, previous: Self) -> Self {
        Self { previous: Some(previous.key), ..self }
    }

    /// Returns the key that signs.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.key
    }

    /// Returns the keys that verify, the signing key first.
    pub(super) fn verifying(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.key).chain(self.previous.as_deref())
    }
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleKey(..)")
    }
}
