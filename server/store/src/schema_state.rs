//! Comparison of a database's schema with the schema that this program writes.

/// Schema versions of a database and of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaState {
    /// Version of the database's schema; 0 if it has none.
    pub found: i64,
    /// Version of the schema that this program writes.
    pub wanted: i64,
}

impl SchemaState {
    /// Returns true if the schema needs no migration.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.found == self.wanted
    }
}
