//! Collects what is wrong with a message's fields, so that one answer names every mistake.

use toolgate_core::error::{Error, FieldViolation};

/// Violations found so far.
#[derive(Default)]
pub(super) struct Fields(Vec<FieldViolation>);

impl Fields {
    /// Notes a violation unless `is_right`.
    pub(super) fn require(&mut self, is_right: bool, field: &str, problem: &str) {
        if !is_right {
            self.0.push(FieldViolation::new(field, problem));
        }
    }

    /// The value, or a note of what was wrong with it.
    pub(super) fn take<T>(&mut self, field: &str, value: Result<T, Error>) -> Option<T> {
        match value {
            Ok(value) => Some(value),
            Err(Error::InvalidFields(violations)) => {
                let named = violations.into_iter().map(|v| FieldViolation::new(field, v.problem));
                self.0.extend(named);
                None
            }
            Err(other) => {
                self.0.push(FieldViolation::new(field, other.to_string()));
                None
            }
        }
    }

    /// Nothing, or everything that was wrong.
    pub(super) fn finish(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::InvalidFields(self.0)) }
    }
}

/// Refuses a size or count beyond its limit; `limit` is the configuration's key.
pub(super) fn within(limit: &'static str, maximum: usize, actual: usize) -> Result<(), Error> {
    if actual <= maximum {
        return Ok(());
    }
    Err(Error::LimitExceeded { limit, maximum: maximum as u64, actual: actual as u64 })
}
