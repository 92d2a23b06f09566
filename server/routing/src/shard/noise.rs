//! Noise level of a catalog: the overlaps of its tools with background texts that ask for none of them.

use fixedbitset::FixedBitSet;

use super::dense::Dense;
use super::vectors::Hit;

/// Number of tools kept for each text, so that the nearest allowed one is known without another search.
const KEPT: usize = 8;

/// Nearest tools of each text with their overlaps, adjusted for the comparison with the level of "no tool fits".
#[derive(Debug, Clone, Default)]
pub struct Noise(Vec<Vec<(u32, f32)>>);

impl Noise {
    /// Searches the tools of `among` for each of `vectors`. A vector that does not fit the index is left out.
    #[must_use]
    pub fn measure(index: &Dense<'_>, vectors: &[Vec<f32>], among: Option<&FixedBitSet>) -> Self {
        let near = vectors.iter().filter_map(|vector| index.search(vector, KEPT, among).ok());
        let held = |hit: &Hit| (hit.slot, hit.overlap + index.given_back(hit.slot));
        Self(near.map(|hits| hits.iter().map(held).collect()).collect())
    }

    /// Returns, for each text, its overlap with the nearest allowed tool. A text is left out if none of its kept tools
    /// is allowed.
    #[must_use]
    pub fn tops(&self, allowed: Option<&FixedBitSet>) -> Vec<f32> {
        let is_allowed = |slot: u32| allowed.is_none_or(|set| set.contains(slot as usize));
        let top = |near: &Vec<(u32, f32)>| {
            let allowed = near.iter().filter(|(slot, _)| is_allowed(*slot));
            allowed.map(|(_, overlap)| *overlap).max_by(f32::total_cmp)
        };
        self.0.iter().filter_map(top).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::dense::Footing;
    use crate::shard::vectors::{IndexOptions, VectorIndex};

    #[test]
    fn the_nearest_allowed_tool_counts() {
        let rows = vec![1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
        let index = VectorIndex::build_with(2, rows, &IndexOptions::default()).expect("unit rows");
        let footing = Footing::default();
        let dense = Dense::new(&index, &footing);
        let noise = Noise::measure(&dense, &[vec![1.0, 0.0], vec![0.0, 1.0], vec![1.0]], None);
        let near =
            |tops: Vec<f32>| tops.iter().map(|t| (t * 10.0).round() as i32).collect::<Vec<_>>();
        assert_eq!(near(noise.tops(None)), [10, 10], "one of another length is left out");
        let allowed: FixedBitSet = [1].into_iter().collect();
        assert_eq!(near(noise.tops(Some(&allowed))), [6, 8]);
        assert!(noise.tops(Some(&FixedBitSet::new())).is_empty());
    }
}
