//! Methods over testbeds and tasks of several seeds, with 95% intervals: tasks that take one tool a turn, and prompts that
//! need several tools at once.

use super::Encoded;
use super::comparison::Comparison;
use super::paper::{self, MAIN};
use super::report::{Cell, Figure, Table};
use super::script::Script;
use super::tally::Measured;
use super::tasks::{self, Task};
use super::testbed::Testbed;
use toolgate_core::error::Error;
use toolgate_routing::packs::Attached;

/// Maximum number of seeds.
pub const SEEDS_MAX: usize = 5;

/// Quantiles of Student's t distribution for two-sided 95% intervals, for 2 seeds and more.
const T: [f64; SEEDS_MAX - 1] = [12.706, 4.303, 3.182, 2.776];

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

    /// Returns the figures of all methods over the tasks of each kind, by the names of the rows.
    fn measure(&self, encoded: &Encoded) -> Result<Vec<(String, Measured)>, Error> {
        let beds = encoded.beds(&self.bed.catalog, &Attached::default())?;
        let mut rows = Vec::new();
        for (kind, tasks) in [(SINGLE, &self.single), (SEVERAL, &self.several)] {
            let comparison = Comparison::play(&beds, &Script::of(tasks))?;
            let named = comparison.rows.into_iter();
            rows.extend(named.map(|(method, measured)| (format!("{kind}: {method}"), measured)));
        }
        Ok(rows)
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
        "price",
        "95%, +/-",
        "rho",
        "95% of rho, +/-",
        "found",
        "95%, +/-",
    ];
    let title = format!("{} seeds, with 95% intervals", seeds.len());
    let mut table = Table::new("seeds", title, &columns).saying(SAYS);
    let measured = seeds.iter().map(|seeded| seeded.measure(encoded));
    let measured: Vec<Vec<(String, Measured)>> = measured.collect::<Result<_, _>>()?;
    let names = measured.first().into_iter().flatten().map(|(name, _)| name);
    for (place, name) in names.enumerate() {
        let of_seeds: Vec<&Measured> = measured.iter().map(|rows| &rows[place].1).collect();
        table.push(name, cells(name, &of_seeds));
    }
    Ok(table)
}

/// Returns the cells of one row, whose figures are those of each seed.
fn cells(name: &str, measured: &[&Measured]) -> [Cell; 8] {
    let over = |figure: fn(&Measured) -> f64| {
        Estimate::of(&measured.iter().map(|one| figure(one)).collect::<Vec<_>>())
    };
    let tokens = over(|one| one.tokens);
    let price = over(|one| one.price);
    let rho = over(|one| one.rho);
    let found = over(|one| one.found);
    // The tool that the model looks up is an assumption, so this method has no found share.
    let found = if name.ends_with(MAIN[3].name) {
        [Cell::NONE; 2]
    } else {
        [found.mean, found.reach].map(|share| Figure::Percent(share).measured())
    };
    let [mean, reach] = found;
    [
        Figure::Count(tokens.mean).measured(),
        Figure::Count(tokens.reach).measured(),
        Figure::Count(price.mean).priced(),
        Figure::Count(price.reach).priced(),
        Figure::Share(rho.mean).fitted(),
        Figure::Share(rho.reach).fitted(),
        mean,
        reach,
    ]
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
