//! Problems of a message's fields, collected so that one answer names all of them.

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

    /// Returns the value, or records the problem.
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

    /// Returns an error with all recorded problems, if there are any.
    pub(super) fn finish(self) -> Result<(), Error> {
        if self.0.is_empty() { Ok(()) } else { Err(Error::InvalidFields(self.0)) }
    }
}

/// Returns an error for a size or count above its limit. `limit` is the configuration key.
pub(super) fn within(limit: &'static str, maximum: usize, actual: usize) -> Result<(), Error> {
    if actual <= maximum {
        return Ok(());
    }
    Err(Error::LimitExceeded { limit, maximum: maximum as u64, actual: actual as u64 })
}
