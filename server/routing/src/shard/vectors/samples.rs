//! Sample vectors for tests and benches. They are seeded and clustered like the summaries of tools, which differ in
//! only a few dozen directions.

use fastrand::Rng;

/// Number of directions in which clustered rows differ.
const LATENT: usize = 24;

/// Seeded source of unit vectors of one width.
pub(crate) struct Samples {
    random: Rng,
    width: usize,
}

impl Samples {
    /// Creates a source. The same seed gives the same vectors.
    pub(crate) fn new(seed: u64, width: usize) -> Self {
        Self { random: Rng::with_seed(seed), width }
    }

    /// Returns `count` rows without structure.
    #[allow(dead_code, reason = "the bench has no use for it")]
    pub(crate) fn unit_rows(&mut self, count: usize) -> Vec<f32> {
        let mut rows = self.gaussians(count * self.width);
        rows.chunks_exact_mut(self.width).for_each(normalise);
        rows
    }

    /// Returns `count` rows around `clusters` centers. The last rows serve as queries.
    pub(crate) fn clustered_rows(&mut self, count: usize, clusters: usize) -> Vec<f32> {
        let basis = self.gaussians(LATENT * self.width);
        let centres = self.gaussians(clusters * LATENT);
        let mut rows = Vec::with_capacity(count * self.width);
        for _ in 0..count {
            let centre = self.below(clusters) * LATENT;
            let mut row: Vec<f32> = self.gaussians(self.width).iter().map(|x| 0.5 * x).collect();
            for (direction, at) in basis.chunks_exact(self.width).zip(&centres[centre..]) {
                let along = at + 0.7 * self.gaussian();
                row.iter_mut().zip(direction).for_each(|(cell, step)| *cell += along * step);
            }
            normalise(&mut row);
            rows.extend(row);
        }
        rows
    }

    /// Returns a random byte code, -127 to 127.
    #[allow(dead_code, reason = "the bench has no use for it")]
    pub(crate) fn code(&mut self) -> i8 {
        self.random.i8(-127..)
    }

    /// Returns a random number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.random.usize(..bound)
    }

    fn gaussians(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.gaussian()).collect()
    }

    /// Returns an approximately Gaussian number: the sum of twelve uniform numbers, less its mean.
    fn gaussian(&mut self) -> f32 {
        (0..12).map(|_| self.random.f32()).sum::<f32>() - 6.0
    }
}

fn normalise(row: &mut [f32]) {
    let length = row.iter().map(|cell| cell * cell).sum::<f32>().sqrt();
    row.iter_mut().for_each(|cell| *cell /= length);
}
