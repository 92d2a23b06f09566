//! Answered queries for tests.

use super::cases::{Case, Judged};
use toolgate_routing::router::ranking::learned::Best;
use toolgate_routing::router::ranking::rank::{Candidate, FoundBy, Parts, Recent};

/// Returns a candidate for a query of one clause. It does not lead any clause.
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
        is_reserved: false,
    };
    Judged { candidate, is_relevant }
}

/// Returns a query with these candidates, whose best overlap must reach a level.
pub(super) fn case(candidates: Vec<Judged>, relevant: usize) -> Case {
    let best = Best::of(candidates.iter().map(|one| &one.candidate));
    Case { candidates, best, has_level: true, relevant }
}
