//! The requests of one tool, as indexes take them.

use crate::catalog::plan::text_hash;
use toolgate_store::ContentHash;

/// What people say who want a tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines {
    all: Box<[Box<str>]>,
    /// The same as one text, a line each.
    text: Box<str>,
    hash: ContentHash,
}

impl Lines {
    /// Of these requests.
    #[must_use]
    pub fn new(requests: impl Iterator<Item = String>) -> Self {
        let all: Box<[Box<str>]> = requests.map(Into::into).collect();
        let text = all.join("\n");
        let hash = text_hash(&text);
        Self { all, text: text.into(), hash }
    }

    /// Each of them.
    #[must_use]
    pub fn all(&self) -> &[Box<str>] {
        &self.all
    }

    /// All of them, a line each.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// SHA-256 of the text.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}
