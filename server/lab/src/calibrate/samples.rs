//! Answered queries for tests.

use super::cases::{Case, Judged};
use toolgate_routing::router::learned::Best;
use toolgate_routing::router::rank::{Candidate, FoundBy, Parts, Recent};

/// A candidate of a query of one clause; the best of none.
pub(super) fn judged(overlap: f32, score: f32, is_relevant: bool) -> Judged {
    let parts = Parts { nearest: overlap, whole: score, clause: score, ..Parts::default() };
    let found_by = FoundBy::Overlap;
    let recent = Recent::default();
    let candidate = Candidate {
        slot: 0,
        overlap,
        score,
        found_by,
        parts,
        leads: false,
        recent,
        from_context: false,
    };
    Judged { candidate, is_relevant }
}

/// A query with these candidates, of which a level is asked.
pub(super) fn case(candidates: Vec<Judged>, relevant: usize) -> Case {
    let best = Best::of(candidates.iter().map(|one| &one.candidate));
    Case { candidates, best, has_level: true, relevant }
}
