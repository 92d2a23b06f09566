//! Ablations of the paper: Tool Attention with one part removed or changed, and the effect of the call check on a model
//! that calls tools which it was not sent.

use super::bed::{Bed, Rule};
use super::methods::{Routed, play};
use super::report::{Cell, Table, grouped};
use super::tally::Measured;
use super::tasks::Task;
use crate::random::Random;
use toolgate_core::error::Error;
use toolgate_routing::gate::verdict::Verdict;

/// Catalogs for the variants.
pub(super) struct Variants<'a, 'e> {
    /// Testbed of the paper.
    pub(super) bed: &'a Bed<'e>,
    /// Testbed without preconditions.
    pub(super) open: &'a Bed<'e>,
    /// Testbed embedded with TF-IDF.
    pub(super) tfidf: &'a Bed<'e>,
}

/// Name of a variant, the paper's token count, and our measurement.
type Variant = (&'static str, Option<u64>, Measured);

impl Variants<'_, '_> {
    /// Returns the table of ablations.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub(super) fn table(&self, tasks: &[Task]) -> Result<Table, Error> {
        let columns = ["variant", "phase 1", "phase 2", "paper", "tools", "found"];
        let mut table = Table::new("ablations", "Ablations", &columns).saying(SAYS);
        let mut variants = self.variants(tasks)?;
        let full = variants[0].2;
        variants.insert(1, ("no check of calls", Some(2_368), full));
        for (name, paper, measured) in variants {
            // The paper's row for phase 1 gives the tokens of phase 1, and its other rows give those of phase 2.
            let cells = [
                Cell::Count(measured.standing),
                Cell::Count(measured.on_demand),
                paper.map_or(Cell::None, Cell::count),
                Cell::Mean(measured.tools),
                Cell::Share(measured.found),
            ];
            table.push(name, cells);
        }
        reasons(&mut table, &full);
        Ok(table)
    }

    fn variants(&self, tasks: &[Task]) -> Result<Vec<Variant>, Error> {
        let on = |bed: &Bed<'_>, threshold: f32, top_k: usize| {
            play(&mut Routed::new(bed, Rule::paper(threshold, top_k)), tasks)
        };
        let eager = Measured {
            on_demand: self.bed.schema_tokens(&self.bed.all()) as f64,
            tools: self.bed.all().len() as f64,
            found: 1.0,
            ..on(self.bed, 0.28, 0)?
        };
        Ok(vec![
            ("Tool Attention", Some(2_368), on(self.bed, 0.28, 10)?),
            ("no preconditions", Some(2_462), on(self.open, 0.28, 10)?),
            (
                "no lazy loading, as the paper has it: no definitions",
                Some(0),
                on(self.bed, 0.28, 0)?,
            ),
            ("no lazy loading: summaries and all definitions", None, eager),
            ("phase 1 only, k = 0 (the paper's is phase 1)", Some(4_820), on(self.bed, 0.28, 0)?),
            ("TF-IDF instead of the encoder", Some(2_410), on(self.tfidf, 0.28, 10)?),
            ("k = 5", Some(1_320), on(self.bed, 0.28, 5)?),
            ("k = 20", Some(4_190), on(self.bed, 0.28, 20)?),
            ("threshold .15", Some(3_270), on(self.bed, 0.15, 10)?),
            ("threshold .20", None, on(self.bed, 0.20, 10)?),
            ("threshold .40", Some(1_480), on(self.bed, 0.40, 10)?),
        ])
    }
}

const SAYS: &str = "\
Tool Attention by the paper's rule with one part changed, over the same tasks. The paper's success rates are projections and \
stand in the last table. Its row for MPNet is left out: another encoder is another model directory (`--model-dir`).";

fn reasons(table: &mut Table, full: &Measured) {
    let mean = full.on_demand / full.tools.max(1.0);
    table.because(
        "phase 2",
        format!(
            "the definitions that pass have {} tokens each in the mean, so that phase 2 goes with their number. The \
             paper's 1,320 / 2,368 / 4,190 tokens for k of 5 / 10 / 20 would be {:.1} / {:.1} / {:.1} of them.",
            grouped(mean),
            1_320.0 / mean,
            2_368.0 / mean,
            4_190.0 / mean
        ),
    );
    table.because(
        "no preconditions",
        "tools that are locked make room for the next best ones, so that the size says little. What \
         changes is which tools are there, and that some of them may not be called.",
    );
    table.because(
        "no check of calls",
        "the check costs no tokens in either. What it stops is in the next table.",
    );
    table.because(
        "TF-IDF",
        "the testbed's intents are put together from its tools' own words, so that words alone find them. On a catalog whose \
         intents people wrote, the same exchange has a row of its own.",
    );
    table.because(
        "threshold",
        "how many tools a threshold lets through depends on summaries and on how people ask; the paper's tasks are not \
         published.",
    );
}

/// Returns the table of verdicts on calls to tools that were sent, and to tools that were not.
///
/// # Errors
/// Returns an internal error if the index is defective.
pub(super) fn call_check(bed: &Bed<'_>, tasks: &[Task], seed: u64) -> Result<Table, Error> {
    let columns = ["call", "calls", "run without it", "refused", "refusals with a search"];
    let mut table = Table::new("call_check", "The check of calls", &columns).saying(CALLS_SAY);
    let mut random = Random::new(seed);
    let mut stray = Calls::default();
    let mut missed = Calls::default();
    let mut sent = Calls::default();
    let rule = Rule::paper(0.28, 10);
    let all = bed.all();
    for turn in tasks.iter().flatten() {
        let active = bed.active(turn, &rule, None)?;
        let name = |slot: &u32| &*bed.snapshot.tool(*slot).model_name;
        let judge = |names: &[&str]| bed.verdicts(&active, &turn.state, names);
        let absent: Vec<u32> = all.iter().copied().filter(|slot| !active.contains(slot)).collect();
        if !absent.is_empty() {
            stray.add(&judge(&[name(random.pick(&absent))]));
        }
        if let Some(best) = active.first() {
            sent.add(&judge(&[name(best)]));
        }
        let is_missed = |tool: &&String| bed.slot(tool).is_some_and(|slot| !active.contains(&slot));
        let needed: Vec<&str> = turn.needs.iter().filter(is_missed).map(String::as_str).collect();
        missed.add(&judge(&needed));
    }
    table.push("to any tool that was not sent", stray.cells());
    table.push("to the right tool, where it was not sent", missed.cells());
    table.push("to the best tool that was sent", sent.cells());
    Ok(table)
}

const CALLS_SAY: &str = "\
On every turn the model is made to call a tool at random among those that were not sent, the right tool where it was not sent, \
and the best tool that was sent, each with arguments that satisfy its schema. Without the check all of them run. A refusal with \
a search says how to load the tool; the others say what would unlock it. The paper reports that its gate \
is needed on 2.3% of turns, of a simulated model.";

/// Number of calls, of refusals, and of refusals that suggest a search.
#[derive(Default)]
struct Calls {
    made: u64,
    refused: u64,
    with_search: u64,
}

impl Calls {
    fn add(&mut self, verdicts: &[Verdict]) {
        for verdict in verdicts {
            self.made += 1;
            if let Err(refused) = verdict {
                self.refused += 1;
                self.with_search += u64::from(!refused.search.is_empty());
            }
        }
    }

    fn cells(&self) -> [Cell; 4] {
        let made = Cell::count(self.made);
        [made.clone(), made, Cell::count(self.refused), Cell::count(self.with_search)]
    }
}
