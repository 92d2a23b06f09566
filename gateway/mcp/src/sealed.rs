//! Texts that a host carries for the gateway and can neither read, make nor change: each is bound to a principal, and to what
//! it was made for. Gateways with the same key take each other's.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::sessions::SealedSession;

/// Bytes of a key.
const KEY: usize = 32;

/// Longest text that is opened, in bytes.
const SEALED_MAX: usize = 1 << 20;

/// Format of the texts. It is authenticated with each.
const FORMAT: &[u8] = b"toolgate gateway 1";

/// Format of the texts that say no more than where a replica is.
const PLACE_FORMAT: &[u8] = b"toolgate gateway place 1";

/// Bytes of a gateway's name.
const NAME: usize = 9;

/// Keys of sealed texts. All replicas of a gateway have the same.
pub struct SealingKeys(Vec<LessSafeKey>);

/// Key that a text can't be sealed with.
#[derive(Debug, thiserror::Error)]
pub enum SealingKeyError {
    /// It is no key.
    #[error("a sealing key has 64 hexadecimal digits")]
    NoKey,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomNumbers,
}

/// Seals texts in the name of one replica.
pub(crate) struct Seal {
    keys: SealingKeys,
    here: Place,
}

/// Replica of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// Name that it gave itself at its start.
    pub(crate) name: String,
    /// URL by which the other replicas reach it; `None` if they can't.
    pub(crate) url: Option<String>,
}

/// Content of a sealed text.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    /// Call that waits for answers.
    Parked {
        /// Its name.
        call: String,
        /// Replica that it waits at.
        at: Place,
    },
    /// State that a server wants back.
    State(String),
    /// Task of a server.
    Task {
        /// Name of the server.
        server: String,
        /// ID that the server gave it.
        id: String,
        /// Process that runs it; `None` behind a URL.
        #[serde(default)]
        process: Option<u64>,
    },
    /// Person who is to connect to a server.
    Person {
        /// Tenant of the principal.
        tenant: String,
        /// Name of the principal.
        principal: String,
        /// Name that the host gives itself.
        host: String,
    },
    /// Session of a host of a revision before 2026-07-28.
    Session(SealedSession),
    /// Question that such a host is asked on the stream of its call.
    Question {
        /// Number of the question in its session.
        id: i64,
        /// Replica that asks.
        at: Place,
    },
}

/// Request that a text is made for. It is opened for the same only.
pub(crate) struct Purpose<'a> {
    /// Principal that carries it.
    pub(crate) principal: &'a str,
    /// Server of the request.
    pub(crate) server: &'a str,
    /// Method of the request.
    pub(crate) method: &'a str,
    /// Name of the tool or prompt, or URI of the resource.
    pub(crate) name: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    content: Content,
    /// Digest of the purpose.
    purpose: String,
    /// End of its validity, in seconds of the Unix time.
    until: u64,
}

impl SealingKeys {
    /// Makes a key that nobody else has.
    ///
    /// # Errors
    /// [`SealingKeyError::NoRandomNumbers`].
    pub fn random() -> Result<Self, SealingKeyError> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key).map_err(|_none| SealingKeyError::NoRandomNumbers)?;
        Ok(Self(vec![aead_key(&key)?]))
    }

    /// Reads keys: each has 64 hexadecimal digits, and stands on a line of its own. The first seals, all open.
    ///
    /// # Errors
    /// [`SealingKeyError::NoKey`] for a line that is none, or none at all.
    pub fn parse(text: &str) -> Result<Self, SealingKeyError> {
        let read = |line: &str| {
            let mut key = [0; KEY];
            hex::decode_to_slice(line, &mut key).map_err(|_| SealingKeyError::NoKey)?;
            aead_key(&key)
        };
        let keys: Vec<_> = text.split_whitespace().map(read).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(SealingKeyError::NoKey) } else { Ok(Self(keys)) }
    }

    /// Makes a key out of another secret of the same gateway.
    ///
    /// # Errors
    /// Never in practice: the key has the right length.
    pub fn derived(secret: &[u8]) -> Result<Self, SealingKeyError> {
        let mut digest = Sha256::new();
        digest.update((FORMAT.len() as u64).to_be_bytes());
        digest.update(FORMAT);
        digest.update(secret);
        Ok(Self(vec![aead_key(&digest.finalize())?]))
    }
}

fn aead_key(bytes: &[u8]) -> Result<LessSafeKey, SealingKeyError> {
    let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(|_| SealingKeyError::NoKey)?;
    Ok(LessSafeKey::new(key))
}

impl Seal {
    /// Makes the seal of a replica, which other replicas reach at `url`.
    ///
    /// # Errors
    /// [`SealingKeyError::NoRandomNumbers`].
    pub(crate) fn new(keys: SealingKeys, url: Option<String>) -> Result<Self, SealingKeyError> {
        let mut name = [0; NAME];
        getrandom::fill(&mut name).map_err(|_none| SealingKeyError::NoRandomNumbers)?;
        let here = Place { name: URL_SAFE_NO_PAD.encode(name), url };
        Ok(Self { keys, here })
    }

    /// Returns this replica.
    pub(crate) fn here(&self) -> &Place {
        &self.here
    }

    /// Seals a content, to be opened within `kept`.
    pub(crate) fn seal(&self, content: Content, purpose: &Purpose<'_>, kept: Duration) -> String {
        let until = now().saturating_add(kept.as_secs());
        self.sealed(&Envelope { content, purpose: purpose.digest(), until })
    }

    /// Returns where the other replicas reach this one, for a short text that says so; `None` if they can't.
    pub(crate) fn sealed_place(&self) -> Option<String> {
        self.here.url.as_ref().map(|url| self.encrypted(PLACE_FORMAT, url.clone().into_bytes()))
    }

    /// Returns the URL of another replica out of [`Self::sealed_place`]; `None` for this one's.
    pub(crate) fn opened_place(&self, sealed: &str) -> Option<String> {
        let url = String::from_utf8(self.decrypted(PLACE_FORMAT, sealed)?).ok()?;
        (Some(&url) != self.here.url.as_ref()).then_some(url)
    }

    fn sealed(&self, envelope: &Envelope) -> String {
        let text = serde_json::to_vec(envelope).expect("strings and numbers are JSON");
        self.encrypted(FORMAT, text)
    }

    fn encrypted(&self, format: &[u8], mut text: Vec<u8>) -> String {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the system gave random numbers at the start");
        let aad = Aad::from(format);
        let unique = Nonce::assume_unique_for_key(nonce);
        self.keys.0[0]
            .seal_in_place_append_tag(unique, aad, &mut text)
            .expect("texts are far shorter than AES-GCM allows");
        let mut sealed = nonce.to_vec();
        sealed.append(&mut text);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a text; `None` if it was changed, is out of date, or was made with another key or for something else.
    pub(crate) fn open(&self, sealed: &str, purpose: &Purpose<'_>) -> Option<Content> {
        let envelope = self.opened(sealed)?;
        (envelope.purpose == purpose.digest()).then_some(envelope.content)
    }

    /// Returns the other replica that must see a text, whoever carries it; `None` if none must, or none is known.
    pub(crate) fn elsewhere(&self, sealed: &str) -> Option<Place> {
        let place = match self.opened(sealed)?.content {
            Content::Parked { at, .. } | Content::Question { at, .. } => at,
            Content::State(_)
            | Content::Task { .. }
            | Content::Person { .. }
            | Content::Session(_) => return None,
        };
        (place.name != self.here.name).then_some(place)
    }

    fn opened(&self, sealed: &str) -> Option<Envelope> {
        let text = self.decrypted(FORMAT, sealed)?;
        let envelope: Envelope = serde_json::from_slice(&text).ok()?;
        (now() <= envelope.until).then_some(envelope)
    }

    fn decrypted(&self, format: &[u8], sealed: &str) -> Option<Vec<u8>> {
        if sealed.len() > SEALED_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        self.keys.0.iter().find_map(|key| {
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let mut text = sealed.to_vec();
            let text = key.open_in_place(nonce, Aad::from(format), &mut text).ok()?;
            Some(text.to_vec())
        })
    }
}

impl Purpose<'_> {
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        let Self { principal, server, method, name } = self;
        // Lengths first, so that no part can pass for another.
        for part in [principal, server, method, name] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        URL_SAFE_NO_PAD.encode(digest.finalize())
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Duration = Duration::from_secs(60);

    fn purpose() -> Purpose<'static> {
        Purpose { principal: "a", server: "s", method: "tools/call", name: "t" }
    }

    fn seal(keys: &str) -> Seal {
        let keys = SealingKeys::parse(keys).expect("keys");
        Seal::new(keys, None).expect("a seal")
    }

    fn key(digit: &str) -> String {
        digit.repeat(2 * KEY)
    }

    #[test]
    fn a_text_is_opened_for_its_own_principal_and_request_only() {
        let near = seal(&key("1"));
        let sealed = near.seal(Content::State("upstream's".to_owned()), &purpose(), KEPT);
        assert!(!sealed.contains("upstream"));
        let opened = near.open(&sealed, &purpose());
        assert_eq!(opened, Some(Content::State("upstream's".to_owned())));
        for other in [
            Purpose { principal: "b", ..purpose() },
            Purpose { server: "other", ..purpose() },
            Purpose { method: "prompts/get", ..purpose() },
            Purpose { name: "other", ..purpose() },
            Purpose { principal: "as", server: "", ..purpose() },
        ] {
            assert_eq!(near.open(&sealed, &other), None);
        }
        assert_eq!(seal(&key("2")).open(&sealed, &purpose()), None);
    }

    #[test]
    fn replicas_with_a_key_in_common_open_each_others_texts() {
        let near = seal(&key("1"));
        let sealed = near.seal(Content::State("x".to_owned()), &purpose(), KEPT);
        for keys in [key("1"), format!("{}\n{}", key("2"), key("1"))] {
            assert!(seal(&keys).open(&sealed, &purpose()).is_some());
        }
        let secret = |secret: &[u8]| {
            Seal::new(SealingKeys::derived(secret).expect("a key"), None).expect("a seal")
        };
        let sealed = secret(b"a").seal(Content::State("x".to_owned()), &purpose(), KEPT);
        assert!(secret(b"a").open(&sealed, &purpose()).is_some());
        assert!(secret(b"b").open(&sealed, &purpose()).is_none());
        for wrong in ["", "abc", &key("g"), &format!("{} 1", key("1"))] {
            assert!(SealingKeys::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_names_the_replica_that_must_see_it() {
        let near = seal(&key("1"));
        let keys = SealingKeys::parse(&key("1")).expect("a key");
        let far = Seal::new(keys, Some("http://far".to_owned())).expect("a seal");
        let parked = |at: &Seal| {
            let content = Content::Parked { call: "c".to_owned(), at: at.here().clone() };
            at.seal(content, &purpose(), KEPT)
        };
        assert_eq!(near.elsewhere(&parked(&near)), None);
        let place = near.elsewhere(&parked(&far)).expect("a place");
        assert_eq!(place.url.as_deref(), Some("http://far"));
        let state = far.seal(Content::State(String::new()), &purpose(), KEPT);
        assert_eq!(near.elsewhere(&state), None);
        assert_eq!(near.elsewhere("no text"), None);
    }

    #[test]
    fn a_place_is_opened_by_other_replicas_alone() {
        let at = |url: &str| {
            let keys = SealingKeys::parse(&key("1")).expect("a key");
            Seal::new(keys, Some(url.to_owned())).expect("a seal")
        };
        let far = at("http://far").sealed_place().expect("a place");
        assert_eq!(at("http://near").opened_place(&far).as_deref(), Some("http://far"));
        assert_eq!(at("http://far").opened_place(&far), None, "it is here");
        assert_eq!(seal(&key("2")).opened_place(&far), None, "another key");
        assert_eq!(seal(&key("1")).sealed_place(), None);
        assert_eq!(seal(&key("1")).open(&far, &purpose()), None, "it is no other text");
    }

    #[test]
    fn changed_and_old_texts_are_not_opened() {
        let seal = seal(&key("1"));
        let sealed = seal.seal(Content::State("x".to_owned()), &purpose(), KEPT);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("text");
            assert_eq!(seal.open(&changed, &purpose()), None, "{place}");
        }
        for text in ["", "AAAA", "no base64!"] {
            assert_eq!(seal.open(text, &purpose()), None);
        }
        let mut envelope = Envelope {
            content: Content::State(String::new()),
            purpose: purpose().digest(),
            until: now() - 1,
        };
        assert_eq!(seal.open(&seal.sealed(&envelope), &purpose()), None);
        envelope.until = now() + 60;
        assert!(seal.open(&seal.sealed(&envelope), &purpose()).is_some());
    }
}
