//! Keys of stored credentials. Each has an ID, which is no secret, so that one that is missing can be named.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes of a key.
pub(super) const KEY_LEN: usize = 32;

/// Bytes of an ID.
pub(super) const ID_LEN: usize = 8;

/// Text that is hashed before a key for its ID, so that the ID is of no use elsewhere.
const ID_DOMAIN: &[u8] = b"toolgate credential key 1";

/// ID of a key of stored credentials: 16 hexadecimal digits, by which nobody finds the key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId([u8; ID_LEN]);

/// Keys of a store: the first seals, all open.
pub(super) struct KeyRing(Vec<Key>);

struct Key {
    id: KeyId,
    key: LessSafeKey,
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl KeyId {
    pub(super) fn of_bytes(bytes: [u8; ID_LEN]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(self) -> [u8; ID_LEN] {
        self.0
    }

    /// Returns the ID of a key as it is written; `None` if it is none.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        Key::parse(line).map(|key| key.id)
    }

    fn of_key(key: &[u8; KEY_LEN]) -> Self {
        let text = [ID_DOMAIN, key].concat();
        let digest = ring::digest::digest(&ring::digest::SHA256, &text);
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&digest.as_ref()[..ID_LEN]);
        Self(id)
    }
}

impl KeyRing {
    /// Reads keys of 64 hexadecimal digits each, one a line; `None` if a line is no key, or there is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let keys: Option<Vec<Key>> = text.trim().lines().map(Key::parse).collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// Returns the ID of the key that seals.
    pub(super) fn first(&self) -> KeyId {
        self.0[0].id
    }

    /// Returns the IDs of all keys, that of the one that seals first.
    pub(super) fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(|key| key.id)
    }

    /// Seals a text with the first key. Returns the nonce and what was sealed.
    pub(super) fn sealed(&self, bound_to: &[u8], mut text: Vec<u8>) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).ok()?;
        let sealing = Nonce::assume_unique_for_key(nonce);
        self.0[0].key.seal_in_place_append_tag(sealing, Aad::from(bound_to), &mut text).ok()?;
        Some([&nonce[..], &text].concat())
    }

    /// Opens what [`Self::sealed`] returned with one key, or with any of them where none is named.
    pub(super) fn opened(
        &self,
        named: Option<KeyId>,
        bound_to: &[u8],
        sealed: &[u8],
    ) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let keys = self.0.iter().filter(|key| named.is_none_or(|named| named == key.id));
        let opened = |key: &Key| {
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let mut text = sealed.to_vec();
            let opened = key.key.open_in_place(nonce, Aad::from(bound_to), &mut text).ok()?;
            Some(opened.to_vec())
        };
        keys.into_iter().find_map(opened)
    }
}

impl Key {
    fn parse(line: &str) -> Option<Self> {
        let bytes: [u8; KEY_LEN] = hex::decode(line.trim()).ok()?.try_into().ok()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).ok().map(LessSafeKey::new)?;
        Some(Self { id: KeyId::of_key(&bytes), key })
    }
}
