//! Benchmark of the paper "Tool Attention Is All You Need". It measures the tokens that tools take up in prompts, by
//! method, on a synthetic testbed and on the user's own catalog. It uses parts of `eval`: `eval` measures whether the
//! right tool is found, and this module measures the token cost.

mod ablations;
mod bed;
mod cli_lazy;
mod comparison;
mod export;
mod methods;
pub mod paper;
pub mod poison;
mod projections;
pub mod report;
mod scaling;
mod script;
pub mod seeds;
mod tally;
mod tasks;
mod testbed;
#[cfg(test)]
mod tests;
mod tfidf;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::conversations::Defaults;
use crate::eval;
use crate::eval::embeddings::Embeddings;
use crate::eval::stock::Stock;
use crate::eval::{CatalogServer, LabelledQuery, Progress, Sides};
use toolgate_config::LimitsConfig;
use toolgate_core::error::Error;
use toolgate_routing::catalog::definition::Definition;
use toolgate_routing::encoder::Encoder as _;
use toolgate_routing::packs::{Attached, Packs};
use toolgate_store::StoredCatalog;

pub use report::Report;

use ablations::Variants;
use bed::{Bed, Rule};
use comparison::{Beds, Comparison};
use methods::Routed;
use report::{Table, grouped};
use scaling::Sized;
use script::Script;
use seeds::{SEEDS_MAX, Seeded};
use tasks::Task;
use testbed::Testbed;
use tfidf::TfIdf;

/// Minimum number of tasks. Every tenth task is a long conversation, and the first of them reaches turn 30.
pub const TASKS_MIN: usize = 10;

/// Configuration of the benchmark.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Seed of the testbed and its tasks.
    pub seed: u64,
    /// Number of tasks on the testbed, at least [`TASKS_MIN`].
    pub tasks: usize,
    /// Number of seeds from `seed` on to measure with 95% intervals, at most [`seeds::SEEDS_MAX`]. With 1 there are none.
    pub seeds: usize,
    /// Real catalog with queries, which is measured too.
    pub catalog: Option<Labelled>,
    /// Intent packs, which the real catalog has where it is sent by default; `None` routes without packs.
    pub packs: Option<Arc<Packs>>,
}

/// Catalog with labelled queries.
#[derive(Debug, Clone)]
pub struct Labelled {
    /// MCP servers of the catalog.
    pub servers: Vec<CatalogServer>,
    /// Queries, each with the tools that it needs.
    pub queries: Vec<LabelledQuery>,
}

/// Testbed and its tasks.
struct Played {
    bed: Testbed,
    tasks: Vec<Task>,
}

/// All catalogs and tasks to measure, before they are embedded.
struct Prepared {
    /// The paper's testbed.
    main: Played,
    /// Catalogs of other sizes, including the paper's own.
    sizes: Vec<Played>,
    /// Testbeds and tasks of several seeds; empty if only one is measured.
    seeds: Vec<Seeded>,
    /// Real catalog and its tasks.
    real: Option<(StoredCatalog, Vec<Task>)>,
    warnings: Vec<String>,
}

/// Embeddings of all texts that the tables need.
struct Encoded {
    embeddings: Embeddings,
    dimensions: usize,
}

impl Bench {
    /// Generates, embeds, plays and measures all tasks. Calls `progress` after each embedded batch.
    ///
    /// # Errors
    /// Returns [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, encoder: Sides<'_>, progress: &Progress) -> Result<Report, Error> {
        let prepared = self.prepare()?;
        let encoded = prepared.embed(encoder, progress).await?;
        let Played { bed, tasks } = &prepared.main;
        let lexical = Encoded::by_words(&bed.catalog, tasks).await?;
        let mut tables = prepared.main.tables(&encoded, &lexical, self.seed)?;
        tables.push(scaling(&prepared.sizes, &encoded)?);
        tables.extend(prepared.poison(&encoded)?);
        tables.extend(prepared.real(&encoded, self.packs.as_deref(), encoder).await?);
        if !prepared.seeds.is_empty() {
            tables.push(seeds::table(&prepared.seeds, &encoded)?);
        }
        tables.push(projections::table());
        Ok(Report {
            seed: self.seed,
            tasks: self.tasks,
            encoder: encoder.passages.fingerprint().to_owned(),
            tables,
            warnings: prepared.warnings,
        })
    }

    /// Returns the testbed and its tasks as JSON, for agents that play them live.
    ///
    /// # Errors
    /// Returns an internal error if the testbed is defective.
    pub fn export(&self) -> Result<Value, Error> {
        let bed = Testbed::new(self.seed, paper::TOOLS)?;
        let tasks = tasks::generate(&bed, self.tasks, self.seed);
        let several = tasks::of_several(&bed, self.tasks, self.seed);
        export::document(self.seed, &bed, &tasks, &several)
    }

    fn prepare(&self) -> Result<Prepared, Error> {
        let played = |tools: usize, tasks: usize| {
            let bed = Testbed::new(self.seed, tools)?;
            let tasks = tasks::generate(&bed, tasks, self.seed);
            Ok::<_, Error>(Played { bed, tasks })
        };
        let fewer = (self.tasks / 5).max(TASKS_MIN);
        let sizes = scaling::SIZES.iter().map(|size| played(*size, fewer));
        let several = if self.seeds > 1 { self.seeds.min(SEEDS_MAX) } else { 0 };
        let seeds = (0..several as u64).map(|n| Seeded::new(self.seed.wrapping_add(n), self.tasks));
        let mut warnings = Vec::new();
        let real = self.catalog.as_ref().map(|labelled| labelled.check(&mut warnings));
        Ok(Prepared {
            main: played(paper::TOOLS, self.tasks)?,
            sizes: sizes.collect::<Result<_, _>>()?,
            seeds: seeds.collect::<Result<_, _>>()?,
            real,
            warnings,
        })
    }
}

impl Labelled {
    /// Returns the catalog as a store would hold it, and each query as a task of one turn.
    fn check(&self, warnings: &mut Vec<String>) -> (StoredCatalog, Vec<Task>) {
        let stock = Stock::check(&self.servers, &LimitsConfig::default());
        for refused in &stock.rejected {
            let what = &refused.rejection;
            warnings.push(format!("rejected: {}: {}: {}", refused.server, what.name, what.problem));
        }
        let names: HashMap<String, String> = stock
            .catalog
            .tools
            .iter()
            .map(|tool| {
                let record = &tool.record;
                let server = stock.names.in_file(&record.server);
                (format!("{server}/{}", record.name.as_str()), record.model_name.clone())
            })
            .collect();
        let labels = self.queries.iter().flat_map(|query| &query.relevant);
        let missing = labels.filter(|label| !names.contains_key(*label));
        warnings.extend(missing.map(|label| format!("{label}: no such tool; it counts as missed")));
        let tasks = tasks::of_queries(&self.queries, |label| names.get(label).cloned());
        (stock.catalog, tasks)
    }
}

impl Prepared {
    async fn embed(&self, encoder: Sides<'_>, progress: &Progress) -> Result<Encoded, Error> {
        let (poisoned, poison_intents) = poison::texts();
        let real = self.real.as_ref().map(|(catalog, _)| catalog);
        let seeded = self.seeds.iter().map(|seeded| &seeded.bed.catalog);
        let definitions = [&self.main.bed.catalog].into_iter().chain(real).chain(seeded);
        let definitions: Vec<StoredCatalog> = definitions.map(by_definition).collect();
        let mut texts = summaries(&self.main.bed.catalog);
        texts.extend(self.sizes.iter().flat_map(|played| summaries(&played.bed.catalog)));
        texts.extend(self.seeds.iter().flat_map(|seeded| summaries(&seeded.bed.catalog)));
        texts.extend(self.real.iter().flat_map(|(catalog, _)| summaries(catalog)));
        texts.extend(definitions.iter().flat_map(summaries));
        texts.extend(poisoned.iter().map(String::as_str));
        let tasks = self.sizes.iter().chain([&self.main]).flat_map(|played| &played.tasks);
        let tasks = tasks.chain(self.real.iter().flat_map(|(_, tasks)| tasks));
        let tasks: Vec<&Task> = tasks.chain(self.seeds.iter().flat_map(Seeded::tasks)).collect();
        let turns = tasks.iter().copied().flatten();
        let mut intents: Vec<&str> = turns.map(|turn| turn.text.as_str()).collect();
        intents.extend(poison_intents);
        let mut intents = eval::texts(intents.into_iter());
        intents.extend(script::texts(tasks));
        let intents: Vec<&str> = intents.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoder, &texts, &intents, progress).await?;
        Ok(Encoded { embeddings, dimensions: encoder.passages.dimensions() })
    }

    fn poison(&self, encoded: &Encoded) -> Result<[Table; 2], Error> {
        let Played { bed, tasks } = &self.main;
        let outcomes = poison::trials(&bed.catalog, encoded)?;
        let exposure = poison::exposure(&bed.catalog, encoded, tasks)?;
        Ok([poison::table(&outcomes), exposure])
    }

    async fn real(
        &self,
        encoded: &Encoded,
        packs: Option<&Packs>,
        encoder: Sides<'_>,
    ) -> Result<Option<Table>, Error> {
        let Some((catalog, tasks)) = &self.real else { return Ok(None) };
        let script = Script::of(tasks);
        let lexical = Encoded::by_words(catalog, tasks).await?;
        let by_words = lexical.bed(catalog.clone())?;
        let tfidf = script.play(&mut Routed::new(&by_words, Rule::paper(0.28, 10)))?;
        let packs = eval::attached(packs, catalog, encoder).await;
        let comparison = Comparison::play(&encoded.beds(catalog, &packs)?, &script)?;
        let tools = catalog.tools.len();
        let servers = catalog.servers.len();
        let title = format!("A real catalog: {tools} tools of {servers} MCP servers");
        let says = format!(
            "The same methods over {} intents, each a conversation of one turn; nobody signs in. *found* is the \
             share of the tools that were labelled by hand. rho is for {} tokens of task, as above. The paper has no \
             real catalog. What is sent by default has the packs of these servers, the other rows have none.",
            tasks.len(),
            grouped(paper::TASK_TOKENS)
        );
        Ok(Some(comparison.catalog_table(title, &says, tfidf)))
    }
}

impl Played {
    /// Returns the tables of the main results, of the ablations and of the call check.
    fn tables(&self, encoded: &Encoded, lexical: &Encoded, seed: u64) -> Result<Vec<Table>, Error> {
        let Self { bed: Testbed { catalog, .. }, tasks } = self;
        let beds = encoded.beds(catalog, &Attached::default())?;
        let bed = &beds.bed;
        let script = Script::of(tasks);
        let open = encoded.bed(testbed::without_preconditions(catalog))?;
        let tfidf = lexical.bed(catalog.clone())?;
        let turns: usize = tasks.iter().map(Vec::len).sum();
        let title = format!("Tokens a turn: {} tasks, {turns} turns", tasks.len());
        let comparison = Comparison::play(&beds, &script)?;
        Ok(vec![
            comparison.testbed_table(title),
            Variants { bed, open: &open, tfidf: &tfidf }.table(&script)?,
            ablations::call_check(bed, tasks, seed)?,
        ])
    }
}

impl Encoded {
    /// Embeds summaries and intents with TF-IDF.
    async fn by_words(catalog: &StoredCatalog, tasks: &[Task]) -> Result<Self, Error> {
        let texts = summaries(catalog);
        let encoder = TfIdf::of(texts.iter().copied());
        let intents = eval::texts(tasks.iter().flatten().map(|turn| turn.text.as_str()));
        let intents: Vec<&str> = intents.iter().map(String::as_str).collect();
        let sides = Sides { passages: &encoder, queries: &encoder };
        let embeddings = Embeddings::of(sides, &texts, &intents, &|_, _| {}).await?;
        Ok(Self { embeddings, dimensions: encoder.dimensions() })
    }

    fn bed(&self, catalog: StoredCatalog) -> Result<Bed<'_>, Error> {
        Bed::new(catalog, &self.embeddings, self.dimensions)
    }

    fn defaults(&self, catalog: &StoredCatalog, packs: &Attached) -> Result<Defaults<'_>, Error> {
        Defaults::new(catalog.clone(), &self.embeddings, packs, self.dimensions)
    }

    /// Indexes a catalog for all methods. Only what is sent by default uses the packs.
    fn beds(&self, catalog: &StoredCatalog, packs: &Attached) -> Result<Beds<'_>, Error> {
        Ok(Beds {
            bed: self.bed(catalog.clone())?,
            definitions: self.bed(by_definition(catalog))?,
            defaults: self.defaults(catalog, packs)?,
        })
    }
}

fn scaling(sizes: &[Played], encoded: &Encoded) -> Result<Table, Error> {
    let mut catalogs = Vec::new();
    for Played { bed, tasks } in sizes {
        catalogs.push(Sized {
            bed: encoded.bed(bed.catalog.clone())?,
            defaults: encoded.defaults(&bed.catalog, &Attached::default())?,
            tasks,
        });
    }
    scaling::table(&catalogs)
}

/// Returns the catalog without preconditions, with the whole definition of each tool as its summary. Simple retrieval
/// embeds these. The encoder reads only the beginning of each, up to its limit.
fn by_definition(catalog: &StoredCatalog) -> StoredCatalog {
    let mut catalog = testbed::without_preconditions(catalog);
    for tool in &mut catalog.tools {
        let record = &mut tool.record;
        if let Ok(definition) = Definition::parse(&record.definition) {
            record.summary = definition.prompt_form(&record.model_name);
        }
    }
    catalog
}

fn summaries(catalog: &StoredCatalog) -> Vec<&str> {
    catalog.tools.iter().map(|tool| tool.record.summary.as_str()).collect()
}
