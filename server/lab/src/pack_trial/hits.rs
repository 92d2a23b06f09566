//! Share of texts whose right tool ranks early, without packs and with them, with confidence intervals.

use super::bed::Placed;
use crate::eval::bootstrap::{Bootstrap, Estimate};

/// Ranks within which a hit counts.
pub const CUTS: [usize; 3] = [1, 5, 10];

/// Hits within each of [`CUTS`], 0 to 1.
pub(super) type Hits = [f64; CUTS.len()];

/// Hits of one text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Pair {
    /// Hits without any pack.
    pub(super) without: Hits,
    /// Hits with packs.
    pub(super) with: Hits,
}

/// Hit shares of a group of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// Number of texts.
    pub count: usize,
    /// Hit shares without any pack.
    pub without: [Estimate; CUTS.len()],
    /// Hit shares with packs.
    pub with: [Estimate; CUTS.len()],
}

/// Returns the hits of one ranking: 1 for each cut that the rank is within, else 0.
pub(super) fn hits(placed: &Placed) -> Hits {
    CUTS.map(|cut| f64::from(u8::from(placed.rank.is_some_and(|rank| rank <= cut))))
}

/// Returns the mean of several rankings, or `None` if there are none.
pub(super) fn mean(hits: &[Hits]) -> Option<Hits> {
    let share = |cut: usize| hits.iter().map(|one| one[cut]).sum::<f64>() / hits.len() as f64;
    (!hits.is_empty()).then(|| [share(0), share(1), share(2)])
}

impl Group {
    /// Computes the hit shares of these texts.
    #[must_use]
    pub(super) fn of(name: impl Into<String>, pairs: &[Pair], bootstrap: &Bootstrap) -> Self {
        let column = |of: fn(&Pair) -> &Hits, cut: usize| -> Vec<f64> {
            pairs.iter().map(|pair| of(pair)[cut]).collect()
        };
        let ways: [fn(&Pair) -> &Hits; 2] = [|pair| &pair.without, |pair| &pair.with];
        let columns: Vec<Vec<f64>> =
            ways.iter().flat_map(|of| (0..CUTS.len()).map(|cut| column(*of, cut))).collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let means = bootstrap.means(&columns);
        Self {
            name: name.into(),
            count: pairs.len(),
            without: [means[0], means[1], means[2]],
            with: [means[3], means[4], means[5]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_ranks() {
        let at = |rank| hits(&Placed { rank, ..Placed::default() });
        assert_eq!((at(Some(1)), at(Some(5))), ([1.0; 3], [0.0, 1.0, 1.0]));
        assert_eq!((at(Some(11)), at(None)), ([0.0; 3], [0.0; 3]));
        assert_eq!(mean(&[at(Some(1)), at(Some(7))]), Some([0.5, 0.5, 1.0]));
        assert_eq!(mean(&[]), None);
        let pairs = [Pair { without: at(None), with: at(Some(1)) }, Pair::default()];
        let group = Group::of("all", &pairs, &Bootstrap::default());
        assert_eq!((group.count, group.without[0].value, group.with[2].value), (2, 0.0, 0.5));
        assert!(group.with[0].interval.is_some());
    }
}
