//! Verdict on deferral: if it paid, and if not, why.

use super::amounts::Amounts;

/// Verdict on deferral over a span. The API's `DeferralVerdict` has the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// No Route call to judge by.
    NoCalls,
    /// Both phases and tools sent on demand cost less than every schema on every turn.
    Paid,
    /// Deferral did not pay, because the promoted schemas alone were at least half of the catalog.
    MostToolsUsed,
    /// Deferral did not pay because of the summaries: the catalog is small.
    CatalogTooSmall,
}

impl Deferral {
    /// Judges the amounts of a span.
    #[must_use]
    pub fn of(amounts: &Amounts) -> Self {
        if amounts.route_calls == 0 {
            Self::NoCalls
        } else if amounts.saved_net() > 0 {
            Self::Paid
        } else if amounts.phase2_tokens >= amounts.full_tokens.div_ceil(2) {
            Self::MostToolsUsed
        } else {
            Self::CatalogTooSmall
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_the_figures() {
        let judged = |full_tokens, phase1_tokens, phase2_tokens| {
            let route_calls = 1;
            let counted = Amounts {
                full_tokens,
                phase1_tokens,
                phase2_tokens,
                route_calls,
                ..Default::default()
            };
            Deferral::of(&counted)
        };
        assert_eq!(judged(100, 30, 69), Deferral::Paid);
        assert_eq!(judged(100, 30, 70), Deferral::MostToolsUsed);
        assert_eq!(judged(100, 51, 49), Deferral::CatalogTooSmall);
        assert_eq!(judged(100, 0, 150), Deferral::MostToolsUsed);
        assert_eq!(Deferral::of(&Amounts::default()), Deferral::NoCalls);
    }
}
