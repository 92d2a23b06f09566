//! Texts that a host carries for the gateway and can't make or change: each is bound to a principal, and to what it was made
//! for.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Bytes of the key, and of the code before each text.
const KEY: usize = 32;

/// Longest text that is opened, in bytes.
const SEALED_MAX: usize = 1 << 20;

/// Key of a gateway's texts. It is made anew at each start.
pub(crate) struct Seal([u8; KEY]);

/// Content of a sealed text.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    /// Name of a call that waits for answers.
    Parked(String),
    /// State that a server wants back.
    State(String),
    /// Task of a server.
    Task {
        /// Name of the server.
        server: String,
        /// ID that the server gave it.
        id: String,
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
    /// End of its validity, in seconds of the Unix time.
    until: u64,
}

impl Seal {
    /// Makes a key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn new() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key)?;
        Ok(Self(key))
    }

    /// Seals a content, to be opened within `kept`.
    pub(crate) fn seal(&self, content: Content, purpose: &Purpose<'_>, kept: Duration) -> String {
        let envelope = Envelope { content, until: now().saturating_add(kept.as_secs()) };
        let text = serde_json::to_vec(&envelope).expect("strings and numbers are JSON");
        let mut sealed = self.code(&text, purpose).finalize().into_bytes().to_vec();
        sealed.extend(text);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Opens a text; `None` if it was changed, is out of date, or was made by another gateway or for something else.
    pub(crate) fn open(&self, sealed: &str, purpose: &Purpose<'_>) -> Option<Content> {
        if sealed.len() > SEALED_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (code, text) = sealed.split_at_checked(KEY)?;
        self.code(text, purpose).verify_slice(code).ok()?;
        let envelope: Envelope = serde_json::from_slice(text).ok()?;
        (now() <= envelope.until).then_some(envelope.content)
    }

    fn code(&self, text: &[u8], purpose: &Purpose<'_>) -> Hmac<Sha256> {
        let Purpose { principal, server, method, name } = purpose;
        let mut code =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        // Lengths first, so that no part can pass for another.
        for part in [principal.as_bytes(), server.as_bytes(), method.as_bytes(), name.as_bytes()] {
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part);
        }
        code.update(text);
        code
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

    #[test]
    fn a_text_is_opened_for_its_own_principal_and_request_only() {
        let seal = Seal::new().expect("a key");
        let sealed = seal.seal(Content::State("upstream's".to_owned()), &purpose(), KEPT);
        let opened = seal.open(&sealed, &purpose());
        assert_eq!(opened, Some(Content::State("upstream's".to_owned())));
        for other in [
            Purpose { principal: "b", ..purpose() },
            Purpose { server: "other", ..purpose() },
            Purpose { method: "prompts/get", ..purpose() },
            Purpose { name: "other", ..purpose() },
            Purpose { principal: "as", server: "", ..purpose() },
        ] {
            assert_eq!(seal.open(&sealed, &other), None);
        }
        assert_eq!(Seal::new().expect("a key").open(&sealed, &purpose()), None);
    }

    #[test]
    fn changed_and_old_texts_are_not_opened() {
        let seal = Seal::new().expect("a key");
        let sealed = seal.seal(Content::Parked("x".to_owned()), &purpose(), KEPT);
        for place in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).expect("text");
            assert_eq!(seal.open(&changed, &purpose()), None, "{place}");
        }
        for text in ["", "AAAA", "no base64!"] {
            assert_eq!(seal.open(text, &purpose()), None);
        }
        let mut envelope = Envelope { content: Content::State(String::new()), until: now() - 1 };
        let sealed = |envelope: &Envelope| {
            let text = serde_json::to_vec(envelope).expect("JSON");
            let mut sealed = seal.code(&text, &purpose()).finalize().into_bytes().to_vec();
            sealed.extend(text);
            URL_SAFE_NO_PAD.encode(sealed)
        };
        assert_eq!(seal.open(&sealed(&envelope), &purpose()), None);
        envelope.until = now() + 60;
        assert!(seal.open(&sealed(&envelope), &purpose()).is_some());
    }
}
