//! How the schema of a database stands to the one that this program writes.

/// Versions of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// The version that the database has; 0 when it has none.
    pub found: i64,
    /// The version that this program writes.
    pub wanted: i64,
}

impl SchemaState {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.found == self.wanted
    }
}
