//! The key that signs active-set handles. Where it comes from is the configuration's business.

use std::fmt;

/// Fewest bytes of a key: the output size of SHA-256 (RFC 2104, section 3).
pub const KEY_BYTES_MIN: usize = 32;

/// A signing key, and the one that was used before it. Never printed.
#[derive(Clone)]
pub struct HandleKey {
    key: Box<[u8]>,
    previous: Option<Box<[u8]>>,
}

impl HandleKey {
    /// A key of at least 32 bytes; `None` when there are fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= KEY_BYTES_MIN).then(|| Self { key: bytes.into(), previous: None })
    }

    /// The same key, beside which what `previous` signed is still taken.
    #[must_use]
    pub fn after(self, previous: Self) -> Self {
        Self { previous: Some(previous.key), ..self }
    }

    /// What signs.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.key
    }

    /// What verifies, the key that signs first.
    pub(super) fn verifying(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.key).chain(self.previous.as_deref())
    }
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleKey(..)")
    }
}
