//! Errors of vectors passed to the index, and the checks that find them.

use super::UNIT_TOLERANCE;
use super::codes::MOST_DIMENSIONS;
use super::kernel::Kernel;

/// Reason why vectors were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// Number of dimensions that the index does not support.
    #[error("an index of {0} dimensions; 1 to {MOST_DIMENSIONS} are possible")]
    Dimensions(usize),
    /// Values that do not divide into whole rows.
    #[error("{values} values are no whole number of rows of {dimensions}")]
    PartialRow {
        /// Number of values given.
        values: usize,
        /// Length of a row.
        dimensions: usize,
    },
    /// More rows than 32-bit slots can number.
    #[error("{0} rows; slots are 32 bits wide")]
    TooManyRows(usize),
    /// Row that holds NaN or infinity, or whose length is not 1.
    #[error("the row at slot {slot} is not a finite unit vector")]
    RowNotUnit {
        /// Slot of the first such row.
        slot: u32,
    },
    /// Query whose length differs from that of the rows.
    #[error("a query of {given} dimensions on an index of {expected}")]
    QueryLength {
        /// Length of the query.
        given: usize,
        /// Length of the rows.
        expected: usize,
    },
    /// Query that holds NaN or infinity, or whose length is not 1.
    #[error("the query is not a finite unit vector")]
    QueryNotUnit,
}

pub(super) fn check_rows(dimensions: usize, rows: &[f32]) -> Result<(), IndexError> {
    if dimensions == 0 || dimensions > MOST_DIMENSIONS {
        return Err(IndexError::Dimensions(dimensions));
    }
    if !rows.len().is_multiple_of(dimensions) {
        return Err(IndexError::PartialRow { values: rows.len(), dimensions });
    }
    let slots = rows.len() / dimensions;
    if u32::try_from(slots).is_err() {
        return Err(IndexError::TooManyRows(slots));
    }
    match rows.chunks_exact(dimensions).position(|row| !is_unit(row)) {
        Some(slot) => Err(IndexError::RowNotUnit { slot: slot as u32 }),
        None => Ok(()),
    }
}

pub(super) fn check_query(dimensions: usize, query: &[f32]) -> Result<(), IndexError> {
    if query.len() != dimensions {
        return Err(IndexError::QueryLength { given: query.len(), expected: dimensions });
    }
    if is_unit(query) { Ok(()) } else { Err(IndexError::QueryNotUnit) }
}

/// Returns true if the index accepts the vector as a row of `dimensions` values.
#[must_use]
pub fn is_row(dimensions: usize, vector: &[f32]) -> bool {
    vector.len() == dimensions && is_unit(vector)
}

/// Returns true if the length is 1 within the tolerance. NaN and infinity give false, because they make the length NaN
/// or infinite.
fn is_unit(vector: &[f32]) -> bool {
    let squared = Kernel::detect().dot(vector, vector);
    (squared - 1.0).abs() <= UNIT_TOLERANCE
}
