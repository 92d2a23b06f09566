//! Methods over testbeds and tasks of several seeds, with 95% intervals: tasks that take one tool a turn, and prompts that
//! need several tools at once.

use super::bed::Rule;
use super::methods::{Fixed, Method, Routed, play};
use super::report::{Cell, Table};
use super::tally::Measured;
use super::tasks::{self, Task};
use super::testbed::{Testbed, without_preconditions};
use super::{Encoded, paper};
use toolgate_core::error::Error;

/// Maximum number of seeds.
pub const SEEDS_MAX: usize = 5;

/// Quantiles of Student's t distribution for two-sided 95% intervals, for 2 seeds and more.
const T: [f64; SEEDS_MAX - 1] = [12.706, 4.303, 3.182, 2.776];

/// Methods of the table.
const METHODS: [&str; 4] = [
    "full schemas",
    "simple retrieval of summaries, top 10",
    "Tool Attention",
    "Toolgate's defaults",
];

/// Kinds of prompts.
const SINGLE: &str = "one tool a turn";
const SEVERAL: &str = "several tools in a prompt";

/// Testbed of one seed, and its tasks.
pub(super) struct Seeded {
    pub(super) bed: Testbed,
    /// Tasks that take one tool a turn.
    pub(super) single: Vec<Task>,
    /// Prompts that need several tools.
    pub(super) several: Vec<Task>,
}

/// Mean over seeds, and half of its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Estimate {
    mean: f64,
    reach: f64,
}

impl Estimate {
    /// Estimates the mean of 2 to [`SEEDS_MAX`] values by Student's t.
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let quantile = T[values.len().saturating_sub(2).min(T.len() - 1)];
        Self { mean, reach: quantile * error }
    }
}

impl Seeded {
    /// Generates the testbed and `count` tasks of each kind.
    ///
    /// # Errors
    /// Same as [`Testbed::new`].
    pub(super) fn new(seed: u64, count: usize) -> Result<Self, Error> {
        let bed = Testbed::new(seed, paper::TOOLS)?;
        let single = tasks::generate(&bed, count, seed);
        let several = tasks::of_several(&bed, count, seed);
        Ok(Self { bed, single, several })
    }

    /// Returns all tasks.
    pub(super) fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.single.iter().chain(&self.several)
    }

    /// Returns the figures of [`METHODS`] over these tasks.
    fn measure(&self, encoded: &Encoded, tasks: &[Task]) -> Result<[Measured; 4], Error> {
        let bed = encoded.bed(self.bed.catalog.clone())?;
        let open = encoded.bed(without_preconditions(&self.bed.catalog))?;
        let of = |method: &mut dyn Method| play(method, tasks);
        Ok([
            of(&mut Fixed::full(&bed))?,
            of(&mut Routed::new(&open, Rule::paper(-1.0, 10)).without_pool())?,
            of(&mut Routed::new(&bed, Rule::paper(0.28, 10)))?,
            of(&mut Routed::new(&bed, Rule::product()))?,
        ])
    }
}

/// Returns the table over at least two seeds.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub(super) fn table(seeds: &[Seeded], encoded: &Encoded) -> Result<Table, Error> {
    let columns = [
        "prompts, method",
        "tokens a turn",
        "95%, +/-",
        "rho",
        "95% of rho, +/-",
        "found",
        "95%, +/-",
    ];
    let title = format!("{} seeds, with 95% intervals", seeds.len());
    let mut table = Table::new("seeds", title, &columns).saying(SAYS);
    for kind in [SINGLE, SEVERAL] {
        let measured = seeds.iter().map(|seeded| {
            let tasks = if kind == SINGLE { &seeded.single } else { &seeded.several };
            seeded.measure(encoded, tasks)
        });
        let measured: Vec<[Measured; 4]> = measured.collect::<Result<_, _>>()?;
        for (place, method) in METHODS.iter().enumerate() {
            let over = |figure: fn(&Measured) -> f64| {
                let values = measured.iter().map(|of_seed| figure(&of_seed[place]));
                Estimate::of(&values.collect::<Vec<_>>())
            };
            let tokens = over(|one| one.tokens);
            let rho = over(|one| one.rho);
            let found = over(|one| one.found);
            let cells = [
                Cell::Count(tokens.mean),
                Cell::Count(tokens.reach),
                Cell::Share(rho.mean),
                Cell::Share(rho.reach),
                Cell::Percent(found.mean),
                Cell::Percent(found.reach),
            ];
            table.push(format!("{kind}: {method}"), cells);
        }
    }
    Ok(table)
}

const SAYS: &str = "\
Each seed draws a testbed and tasks of its own. Means over the seeds, and half of their 95% intervals by Student's t. A prompt of \
*several tools* asks for two or three things in one text; *found* is the share of all tools that it needs.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_three_seeds_is_students() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        assert!((estimate.mean - 2.0).abs() < 1e-12);
        assert!((estimate.reach - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9, "{estimate:?}");
        assert_eq!(Estimate::of(&[0.5, 0.5]).reach, 0.0);
    }
}
