//! The key that signs active-set handles. Where it comes from is the configuration's business.

use std::fmt;

/// Fewest bytes of a key: the output size of SHA-256 (RFC 2104, section 3).
pub const KEY_BYTES_MIN: usize = 32;

/// A signing key. Never printed.
#[derive(Clone)]
pub struct HandleKey(Box<[u8]>);

impl HandleKey {
    /// A key of at least 32 bytes; `None` when there are fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= KEY_BYTES_MIN).then(|| Self(bytes.into()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for HandleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleKey(..)")
    }
}
