//! Features of a candidate for the learned gate of a policy. `toolgate calibrate --learn` trains a gate on a tenant's
//! labelled queries. Without a learned gate, the fixed rule cuts.

use crate::router::ranking::rank::Candidate;
use toolgate_core::policy::Features;

/// Best values among a turn's candidates. Each candidate is compared with them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Best {
    /// Highest score.
    pub score: f32,
    /// Highest overlap with an intent or one of its clauses.
    pub nearest: f32,
}

impl Best {
    /// Returns the best values of these candidates. Candidates that an intent names do not count, because they rank
    /// above every score.
    pub fn of<'a>(candidates: impl Iterator<Item = &'a Candidate>) -> Self {
        let start = Self { score: 0.0, nearest: f32::NEG_INFINITY };
        let ranked = candidates.filter(|one| one.found_by.is_by_meaning());
        ranked.fold(start, |best, one| Self {
            score: best.score.max(one.score),
            nearest: best.nearest.max(one.parts.nearest),
        })
    }

    /// Returns the features of a candidate, in the order of `policy::FEATURES`.
    #[must_use]
    pub fn features(&self, one: &Candidate) -> Features {
        let flag = |is_so: bool| if is_so { 1.0 } else { 0.0 };
        let parts = &one.parts;
        [
            one.overlap,
            parts.nearest,
            parts.nearest - self.nearest,
            one.score,
            one.score / self.score.max(f32::MIN_POSITIVE),
            self.score,
            parts.words,
            parts.whole,
            parts.clause,
            flag(one.leads),
            flag(one.recent.called),
            flag(one.recent.server_called),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::ranking::rank::{FoundBy, Parts, Recent};

    #[test]
    fn a_candidate_is_held_against_the_best() {
        let candidate = Candidate {
            slot: 0,
            overlap: 0.4,
            score: 0.6,
            found_by: FoundBy::Overlap,
            parts: Parts {
                words: 0.5,
                word_share: 0.0,
                whole: 0.6,
                clause: 0.7,
                nearest: 0.45,
                memory: 0.0,
                last_called: 0.0,
                lowered: 0.0,
            },
            leads: true,
            recent: Recent { called: false, server_called: true },
            from_context: false,
            is_reserved: false,
        };
        let better = Candidate { score: 0.8, ..candidate };
        let best = Best::of([candidate, better].iter());
        let features = best.features(&candidate);
        let wanted = [0.4, 0.45, 0.0, 0.6, 0.75, 0.8, 0.5, 0.6, 0.7, 1.0, 0.0, 1.0];
        assert!(features.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{features:?}");
    }
}
