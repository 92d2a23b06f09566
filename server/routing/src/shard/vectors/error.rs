//! What may be wrong with the vectors handed to the index, and the checks that find it.

use super::UNIT_TOLERANCE;
use super::codes::MOST_DIMENSIONS;
use super::kernel::Kernel;

/// Why vectors were refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The index cannot be this wide.
    #[error("an index of {0} dimensions; 1 to {MOST_DIMENSIONS} are possible")]
    Dimensions(usize),
    /// The rows do not divide into vectors.
    #[error("{values} values are no whole number of rows of {dimensions}")]
    PartialRow {
        /// Values given.
        values: usize,
        /// Length of a row.
        dimensions: usize,
    },
    /// More rows than slots can number.
    #[error("{0} rows; slots are 32 bits wide")]
    TooManyRows(usize),
    /// A row holds NaN or infinity, or its length is not 1.
    #[error("the row at slot {slot} is not a finite unit vector")]
    RowNotUnit {
        /// The first such row.
        slot: u32,
    },
    /// The query has another length than the rows.
    #[error("a query of {given} dimensions on an index of {expected}")]
    QueryLength {
        /// Length of the query.
        given: usize,
        /// Length of the rows.
        expected: usize,
    },
    /// The query holds NaN or infinity, or its length is not 1.
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

/// Returns true if the index takes the vector as a row of so many dimensions.
#[must_use]
pub fn is_row(dimensions: usize, vector: &[f32]) -> bool {
    vector.len() == dimensions && is_unit(vector)
}

/// False for NaN and infinity too: they make the length NaN or infinite.
fn is_unit(vector: &[f32]) -> bool {
    let squared = Kernel::detect().dot(vector, vector);
    (squared - 1.0).abs() <= UNIT_TOLERANCE
}
