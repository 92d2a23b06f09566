//! Prompts and resources that a person let in: `approved` of a server.

use serde::Deserialize;

/// Fewest hexadecimal digits of a hash: no server can write two texts of one hash.
const DIGITS_MIN: usize = 32;

/// Prompt, resource or template that a person has read and lets in: `NAME@HASH`. The hash is that of the item as its server wrote it,
/// with its name; the name before it is for readers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ApprovedItem {
    hash: String,
}

impl ApprovedItem {
    /// Returns the hash as it is written here, of an item whose whole one is `hash`.
    pub(crate) fn written(hash: &str) -> &str {
        hash.get(..DIGITS_MIN).unwrap_or(hash)
    }

    /// Returns true if the item has this SHA-256, in hexadecimal.
    pub(crate) fn is(&self, hash: &str) -> bool {
        hash.starts_with(&self.hash)
    }
}

impl TryFrom<String> for ApprovedItem {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let hash = text.rsplit_once('@').map(|(_name, hash)| hash.to_owned());
        let is_hash = |hash: &String| {
            hash.len() >= DIGITS_MIN
                && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        hash.filter(is_hash).map(|hash| Self { hash }).ok_or_else(|| {
            format!(
                "{text:?} approves nothing: write NAME@HASH as `toolgate gateway status` says it"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_approved_by_a_hash_that_is_long_enough() {
        let hash = "0123456789abcdef".repeat(4);
        let read = |text: String| ApprovedItem::try_from(text);
        let approved = read(format!("a@b@{}", ApprovedItem::written(&hash))).expect("an item");
        assert!(approved.is(&hash) && !approved.is(&"f".repeat(64)));
        for wrong in [
            "tides".to_owned(),
            format!("tides@{}", &hash[..31]),
            "tides@".to_owned() + &"g".repeat(32),
        ] {
            let problem = read(wrong.clone()).expect_err("no item");
            assert!(problem.contains("NAME@HASH"), "{problem}");
        }
    }
}
