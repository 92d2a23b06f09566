//! API keys as text: `tgk_`, a public id, `_`, and 256 random bits. A key is printed only once, when it is created.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use toolgate_store::ContentHash;

/// Prefix of every key, by which secret scanners find keys.
const MARK: &str = "tgk_";

const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// API key with its secret.
pub struct ApiKey {
    id: String,
    secret: [u8; SECRET_BYTES],
}

/// Returns true if the text has the prefix of an API key.
#[must_use]
pub fn looks_like_one(text: &str) -> bool {
    text.starts_with(MARK)
}

impl ApiKey {
    /// Generates a random key.
    ///
    /// # Errors
    /// The system's random source failed.
    pub fn generate() -> Result<Self, getrandom::Error> {
        let mut id = [0; ID_BYTES];
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        Ok(Self { id: hex::encode(id), secret })
    }

    /// Parses a key: `tgk_`, 12 hexadecimal digits, `_`, 64 hexadecimal digits, in lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        from_hex::<ID_BYTES>(id)?;
        Some(Self { id: id.to_owned(), secret: from_hex(secret)? })
    }

    /// Returns the public id of the key.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the hash of the secret for storage. A fast hash is enough, because 256 random bits can't be guessed.
    #[must_use]
    pub fn secret_hash(&self) -> ContentHash {
        Sha256::digest(self.secret).into()
    }

    /// Returns true if the key's secret has the stored hash. Compares in constant time.
    #[must_use]
    pub fn has_hash(&self, stored: &ContentHash) -> bool {
        self.secret_hash().ct_eq(stored).into()
    }

    /// Returns the whole key, including the secret, to be shown once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{MARK}{}_{}", self.id, hex::encode(self.secret))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ApiKey({}, ..)", self.id)
    }
}

/// Parses hexadecimal digits in lower case only, so that a key has one spelling.
fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text, &mut bytes).ok()?;
    (!text.bytes().any(|byte| byte.is_ascii_uppercase())).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_read_back_and_no_two_are_alike() {
        let one = ApiKey::generate().expect("random");
        let other = ApiKey::generate().expect("random");
        let text = one.reveal();
        assert!(looks_like_one(&text) && text.len() == 4 + 12 + 1 + 64, "{text}");
        let read = ApiKey::parse(&text).expect("a key");
        assert_eq!(read.id(), one.id());
        assert!(read.has_hash(&one.secret_hash()) && !read.has_hash(&other.secret_hash()));
        assert_ne!(one.id(), other.id());
        assert!(!format!("{one:?}").contains(&hex::encode(one.secret)));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let good = format!("tgk_{}_{}", "0a".repeat(6), "f9".repeat(32));
        assert!(ApiKey::parse(&good).is_some());
        for bad in [
            "",
            "tgk_",
            "tgk__",
            &good[1..],
            &good[..80],
            &format!("{good}0"),
            &good.to_uppercase(),
            &good.replace("f9", "g9"),
            &good.replace("0a", "0_"),
            &good.replace("tgk_0a", "tgk_é"),
        ] {
            assert!(ApiKey::parse(bad).is_none(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "(tgk_)?[0-9a-f_é]{0,90}") {
            if let Some(key) = ApiKey::parse(&text) {
                prop_assert_eq!(key.reveal(), text);
            }
        }
    }
}
