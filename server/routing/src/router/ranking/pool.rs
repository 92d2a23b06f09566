//! The candidates of a turn: tools by rank, what was called before, and reserved places.

use toolgate_core::error::Error;

use crate::router::allow::Allowed;
use crate::router::query::{RouteQuery, SelectionRule};
use crate::router::ranking::rank::{Candidate, Embedded};
use crate::router::ranking::{recent, reserved};
use crate::shard::snapshot::Snapshot;

/// Returns the `most` best tools for a query, best first, and those with a reserved place.
///
/// # Errors
/// [`Error::Internal`] when an embedding does not fit the index.
pub fn candidates(
    snapshot: &Snapshot,
    embedded: &Embedded<'_>,
    query: &RouteQuery,
    allowed: &Allowed,
    most: usize,
) -> Result<Vec<Candidate>, Error> {
    let mut candidates = embedded.rank(snapshot, most, allowed.slots.as_ref())?;
    if query.options.selection_rule == SelectionRule::Own {
        recent::lean(snapshot, &query.state, &mut candidates);
        reserved::reserve(snapshot, embedded, query, allowed, &mut candidates)?;
    }
    recent::note(snapshot, &query.state, &mut candidates);
    Ok(candidates)
}
