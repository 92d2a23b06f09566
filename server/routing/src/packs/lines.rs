//! Requests of one tool in the form that the indexes use.

use crate::catalog::plan::text_hash;
use toolgate_store::ContentHash;

/// Example requests of one tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Lines {
    all: Box<[Box<str>]>,
    /// All requests as one text, one per line.
    text: Box<str>,
    hash: ContentHash,
}

impl Lines {
    /// Creates the lines of these requests.
    #[must_use]
    pub fn new(requests: impl Iterator<Item = String>) -> Self {
        let all: Box<[Box<str>]> = requests.map(Into::into).collect();
        let text = all.join("\n");
        let hash = text_hash(&text);
        Self { all, text: text.into(), hash }
    }

    /// Returns the requests.
    #[must_use]
    pub fn all(&self) -> &[Box<str>] {
        &self.all
    }

    /// Returns all requests as one text, one per line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns SHA-256 of the text.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        self.hash
    }
}
