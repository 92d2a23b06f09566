//! Ablations of the paper: Tool Attention with one part removed or changed, and the effect of the call check on a model
//! that calls tools which it was not sent.

use super::bed::{Bed, Rule};
use super::methods::{Fixed, Routed};
use super::report::{Cell, Figure, Table, grouped};
use super::script::Script;
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

/// Variant of Tool Attention.
struct Variant {
    name: &'static str,
    /// Tokens that the paper publishes for it.
    paper: Option<u64>,
    measured: Option<Measured>,
    /// True if the figures are those of the whole method, because the prompts are the same.
    is_copied: bool,
}

impl Variant {
    fn new(name: &'static str, paper: impl Into<Option<u64>>, measured: Measured) -> Self {
        Self { name, paper: paper.into(), measured: Some(measured), is_copied: false }
    }

    fn cells(&self) -> [Cell; 5] {
        let of = |figure: &dyn Fn(&Measured) -> Figure| match &self.measured {
            Some(measured) if self.is_copied => figure(measured).copied(),
            Some(measured) => figure(measured).measured(),
            None => Cell::NONE,
        };
        // The paper's row for phase 1 gives the tokens of phase 1, and its other rows give those of phase 2.
        [
            of(&|measured| Figure::Count(measured.standing)),
            of(&|measured| Figure::Count(measured.on_demand)),
            self.paper.map_or(Cell::NONE, |tokens| Figure::count(tokens).published()),
            of(&|measured| Figure::Mean(measured.tools)),
            of(&|measured| Figure::Share(measured.found)),
        ]
    }
}

impl Variants<'_, '_> {
    /// Returns the table of ablations.
    ///
    /// # Errors
    /// Returns an internal error if the index is defective.
    pub(super) fn table(&self, script: &Script<'_>) -> Result<Table, Error> {
        let columns = ["variant", "phase 1", "phase 2", "paper", "tools", "found"];
        let mut table = Table::new("ablations", "Ablations", &columns).saying(SAYS);
        let full = script.play(&mut Routed::new(self.bed, Rule::paper(0.28, 10)))?;
        for variant in self.variants(full, script)? {
            table.push(variant.name, variant.cells());
        }
        reasons(&mut table, &full);
        Ok(table)
    }

    fn variants(&self, full: Measured, script: &Script<'_>) -> Result<Vec<Variant>, Error> {
        let on = |bed: &Bed<'_>, threshold: f32, top_k: usize| {
            script.play(&mut Routed::new(bed, Rule::paper(threshold, top_k)))
        };
        let nothing = script.play(&mut Fixed::none(self.bed).with_pool())?;
        let eager = script.play(&mut Fixed::full(self.bed).with_pool())?;
        let unchecked = Variant::new("no check of calls", 2_368, full);
        let mpnet = Variant { measured: None, ..Variant::new(MPNET, 2_371, full) };
        let tfidf = on(self.tfidf, 0.28, 10)?;
        Ok(vec![
            Variant::new("Tool Attention", 2_368, full),
            Variant { is_copied: true, ..unchecked },
            Variant::new("no preconditions", 2_462, on(self.open, 0.28, 10)?),
            Variant::new("no lazy loading, as the paper has it: no definitions", 0, nothing),
            Variant::new("no lazy loading: summaries and all definitions", None, eager),
            Variant::new(
                "phase 1 only, k = 0 (the paper's is phase 1)",
                4_820,
                on(self.bed, 0.28, 0)?,
            ),
            mpnet,
            Variant::new("TF-IDF instead of the encoder", 2_410, tfidf),
            Variant::new("k = 5", 1_320, on(self.bed, 0.28, 5)?),
            Variant::new("k = 20", 4_190, on(self.bed, 0.28, 20)?),
            Variant::new("threshold .15", 3_270, on(self.bed, 0.15, 10)?),
            Variant::new("threshold .20", None, on(self.bed, 0.20, 10)?),
            Variant::new("threshold .40", 1_480, on(self.bed, 0.40, 10)?),
        ])
    }
}

/// Name of the row that can't be measured.
const MPNET: &str = "MPNet instead of MiniLM";

const SAYS: &str = "\
Tool Attention by the paper's rule with one part changed, over the same tasks. The paper's success rates are projections and \
stand in the last table.";

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
        "the check costs no tokens in either, so that the row is the first one's. What it stops is in the next table.",
    );
    table.because(
        MPNET,
        "not loaded, so that nothing is measured: its network has relative positions, and the encoder reads BERT, RoBERTa \
         and XLM-R. Another encoder of these is another run, with `--model-dir`.",
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
    let columns = ["call", "calls", "refused", "refusals with a search"];
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
and the best tool that was sent, each with arguments that satisfy its schema. Without the check all of them would run: that is no measurement, so that it has no column. A refusal with \
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

    fn cells(&self) -> [Cell; 3] {
        [self.made, self.refused, self.with_search].map(|count| Figure::count(count).measured())
    }
}
