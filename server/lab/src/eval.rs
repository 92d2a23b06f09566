//! Evaluation of how well a catalog's tools are found. Labelled queries are ranked by the product's own code, from a
//! catalog file to candidates, and the results are measured. Everything runs in this process, without a server or a
//! store. The evaluation has no ranking of its own.

pub mod abstention;
pub mod baseline;
pub mod bootstrap;
pub mod catalog_file;
pub mod comparison;
pub mod contexts;
pub mod conversation;
pub mod embeddings;
pub mod failures;
pub mod fits;
pub mod formats;
pub mod forms;
pub mod input_error;
pub mod latency;
pub mod learning;
pub mod measured;
pub mod metrics;
pub mod per_query;
pub mod query_file;
pub mod randomisation;
pub mod ranking;
pub mod report;
pub mod sample;
pub mod stock;
#[cfg(test)]
mod tests;
pub mod visible;

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::error::Error;
use toolgate_routing::encoder::Encoder;
use toolgate_routing::packs::{Attached, Packs};
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::Options;
use toolgate_routing::router::ranking::background::Background;
use toolgate_routing::shard::snapshot::{Known, Snapshot};
use toolgate_store::StoredCatalog;

pub use catalog_file::CatalogServer;
pub use embeddings::{Progress, Sides};
pub use input_error::InputError;
pub use query_file::LabelledQuery;
pub use report::Report;

use abstention::Abstention;
use bootstrap::Bootstrap;
use comparison::Comparison;
use contexts::ContextRow;
use conversation::{Conversation, Scene};
use embeddings::Embeddings;
use failures::Failures;
use latency::Latency;
use measured::{Field, Measured, groups};
use ranking::{Answer, Ranked, Ranking, Way};
use report::{Counts, Times, TokenTax};
use sample::Samples;
use stock::Stock;
use visible::VisibleRow;

/// Parts of the ranking that can be left out, each with the way to rank without it.
pub const ABLATIONS: [(&str, Way); 4] = [
    ("without clauses", Way::Undivided),
    ("without overlap", Way::WordsAlone),
    ("without overlap and synonyms", Way::SharedWordsAlone),
    ("without words", Way::OverlapAlone),
];

/// Time limit for embedding the requests of all packs, long enough for a slow machine.
const PACKS_WITHIN: Duration = Duration::from_mins(10);

/// Catalog, queries and settings of an evaluation.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// Queries, in the order of the rankings in [`Evaluated`].
    pub queries: Vec<LabelledQuery>,
    /// Further queries, which need no tool.
    pub no_tool: Vec<LabelledQuery>,
    /// Limits that tools must meet to be registered.
    pub limits: LimitsConfig,
    /// Router settings, such as the threshold and `top_k`.
    pub router: RouterConfig,
    /// Intent packs, which help to find well-known tools; `None` ranks without packs.
    pub packs: Option<Arc<Packs>>,
    /// Settings of the confidence intervals.
    pub bootstrap: Bootstrap,
    /// True if queries are also ranked with plain summaries ([`baseline::plain_summary`]), for comparison.
    pub with_baseline: bool,
    /// True if each query is also ranked with its clauses as intents of one turn, for comparison.
    pub with_clauses: bool,
    /// True if queries are also ranked with one part of the ranking left out at a time ([`ABLATIONS`]), for comparison.
    pub with_ablations: bool,
    /// True if the tools visible for fixed token budgets are also measured, with several splits of the budget.
    pub with_visible: bool,
    /// Number of queries to play as one conversation; 0 for none.
    pub conversation: usize,
}

/// Result of an evaluation.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// Rankings before any cut, one per query and in the same order. They cover [`Evaluation::queries`] only, not
    /// [`Evaluation::no_tool`].
    pub ranked: Vec<Ranked>,
    /// Measures of each query.
    pub samples: Samples,
    /// Report of everything measured.
    pub report: Report,
}

/// Catalog and its queries, embedded.
#[derive(Clone, Copy)]
struct Embedded<'a> {
    stock: &'a Stock,
    embeddings: &'a Embeddings,
    packs: &'a Attached,
    encoder: &'a dyn Encoder,
    queries: &'a [&'a LabelledQuery],
    options: &'a Options,
    /// True if the clauses of a query are ranked as well as the whole.
    clauses: bool,
}

impl Embedded<'_> {
    /// Returns every query's answer from a catalog.
    fn answers(&self, catalog: StoredCatalog, way: Way) -> Result<Vec<Answer>, Error> {
        let dimensions = self.encoder.dimensions();
        let known = Known { embeddings: self.embeddings.vectors(), packs: self.packs };
        let snapshot = Snapshot::build_with(catalog, known, dimensions)?;
        // Large shards are searched exactly only until their graph exists.
        snapshot.build_graph();
        let names = &self.stock.names;
        let embeddings = self.embeddings;
        let options = self.options;
        let clauses = self.clauses;
        let ranking = Ranking { embeddings, names, options, clauses, way, memory: None };
        ranking.answer(&snapshot, self.queries)
    }

    /// Answers every query from a catalog and measures the answers.
    fn samples(&self, catalog: StoredCatalog, way: Way) -> Result<Samples, Error> {
        Ok(Samples::of(&self.answers(catalog, way)?, self.queries))
    }
}

/// Answers to all queries, and the measures of each other way to answer them.
struct QueryResults {
    answers: Vec<Answer>,
    samples: Samples,
    baseline: Option<Samples>,
    clauses: Option<Samples>,
    ablations: Vec<(&'static str, Samples)>,
    visible: Vec<VisibleRow>,
    contexts: Vec<ContextRow>,
    conversation: Option<Conversation>,
}

impl QueryResults {
    fn others(&self) -> impl Iterator<Item = (&'static str, &Samples)> {
        let baseline = self.baseline.iter().map(|samples| ("plain", samples));
        let clauses = self.clauses.iter().map(|samples| ("by clauses", samples));
        let ablations = self.ablations.iter().map(|(name, samples)| (*name, samples));
        baseline.chain(clauses).chain(ablations)
    }
}

/// Returns what the packs hold for a catalog's tools; empty without packs.
pub async fn attached(
    packs: Option<&Packs>,
    catalog: &StoredCatalog,
    encoders: Sides<'_>,
) -> Attached {
    match packs {
        Some(packs) => packs.attach(catalog, encoders.queries, PACKS_WITHIN).await,
        None => Attached::default(),
    }
}

impl Evaluation {
    /// Checks, embeds, indexes, ranks and measures. `progress` is called for each embedded batch.
    ///
    /// # Errors
    /// [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, encoders: Sides<'_>, progress: &Progress) -> Result<Evaluated, Error> {
        let began = Instant::now();
        let stock = Stock::check(&self.servers, &self.limits);
        let plain = self.with_baseline.then(|| baseline::plain(&stock.catalog));
        let check = began.elapsed();
        let queries = self.all_queries();
        let summaries = summaries(&stock.catalog, plain.as_ref());
        let mut texts = texts(queries.iter().map(|query| query.text.as_str()));
        texts.extend(contexts::texts(&queries, self.router.clauses));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoders, &summaries, &texts, progress).await?;
        let packs = attached(self.packs.as_deref(), &stock.catalog, encoders).await;
        let embed = began.elapsed().saturating_sub(check);

        let options = options(&self.router);
        let embedded = Embedded {
            stock: &stock,
            embeddings: &embeddings,
            packs: &packs,
            encoder: encoders.passages,
            queries: &queries,
            options: &options,
            clauses: self.router.clauses,
        };
        let published = Embedded { packs: &Attached::default(), ..embedded };
        let answers = embedded.answers(stock.catalog.clone(), Way::Router)?;
        let found = QueryResults {
            samples: Samples::of(&answers, &queries),
            answers,
            baseline: plain.map(|plain| published.samples(plain, Way::OverlapAlone)).transpose()?,
            clauses: self.by_clauses(&embedded)?,
            ablations: self.ablations(&embedded)?,
            visible: self.visible(&embedded)?,
            contexts: contexts::rows(&embedded, &self.bootstrap)?,
            conversation: self.play(&embedded)?,
        };
        let mut report = self.report(&embedded, &found);
        report.times = Times { check, embed, whole: began.elapsed() };
        let QueryResults { answers, samples, .. } = found;
        let ranked = answers.into_iter().take(self.queries.len()).map(|answer| answer.ranked);
        Ok(Evaluated { ranked: ranked.collect(), samples, report })
    }

    /// Returns all queries, with [`Evaluation::no_tool`] at the end.
    fn all_queries(&self) -> Vec<&LabelledQuery> {
        self.queries.iter().chain(&self.no_tool).collect()
    }

    /// Builds the report. Its times are not known yet and stay at their defaults.
    fn report(&self, embedded: &Embedded<'_>, found: &QueryResults) -> Report {
        let Embedded { stock, embeddings, queries, .. } = *embedded;
        let answers = &found.answers;
        let bootstrap = &self.bootstrap;
        let measured = |samples: &Samples| Measured::of(&samples.labelled, bootstrap);
        let ablated = |(name, samples): &(&'static str, Samples)| Some((*name, measured(samples)?));
        let compared = |(name, other): (&str, &Samples)| {
            Comparison::of(name, &found.samples, other, bootstrap)
        };
        let counts = Counts::new(self, embedded);
        Report {
            encoder: embedded.encoder.fingerprint().to_owned(),
            router: self.router,
            failures: Failures::of(answers, queries, &counts.missing, self.router.top_k),
            counts,
            bootstrap: *bootstrap,
            metrics: measured(&found.samples),
            no_tool: Measured::of(&found.samples.no_tool, bootstrap),
            baseline: found.baseline.as_ref().and_then(measured),
            clauses: found.clauses.as_ref().and_then(measured),
            ablations: found.ablations.iter().filter_map(ablated).collect(),
            comparisons: found.others().map(compared).collect(),
            abstention: Abstention::of(answers, queries, bootstrap),
            fits: fits::fits(answers, queries, bootstrap),
            kinds: groups(answers, queries, Field::Kind, bootstrap),
            languages: groups(answers, queries, Field::Language, bootstrap),
            visible: found.visible.clone(),
            contexts: found.contexts.clone(),
            conversation: found.conversation.clone(),
            tokens: TokenTax::of(&stock.catalog),
            latency: Latency::of(answers, embeddings.of_summaries, embeddings.of_queries),
            times: Times::default(),
            rejected: stock.rejected.clone(),
            renamed: stock.renamed.clone(),
        }
    }

    fn by_clauses(&self, embedded: &Embedded<'_>) -> Result<Option<Samples>, Error> {
        let catalog = || embedded.stock.catalog.clone();
        self.with_clauses.then(|| embedded.samples(catalog(), Way::Clauses)).transpose()
    }

    fn ablations(&self, embedded: &Embedded<'_>) -> Result<Vec<(&'static str, Samples)>, Error> {
        let ways = ABLATIONS.iter().filter(|_| self.with_ablations);
        let sampled = |(name, way): &(&'static str, Way)| {
            Ok((*name, embedded.samples(embedded.stock.catalog.clone(), *way)?))
        };
        ways.map(sampled).collect()
    }

    fn visible(&self, embedded: &Embedded<'_>) -> Result<Vec<VisibleRow>, Error> {
        let rows = self.with_visible.then(|| visible::visible(embedded, &self.bootstrap));
        rows.transpose().map(Option::unwrap_or_default)
    }

    fn play(&self, embedded: &Embedded<'_>) -> Result<Option<Conversation>, Error> {
        let turns = &self.queries[..self.conversation.min(self.queries.len())];
        let Embedded { stock, embeddings, packs, encoder, options, .. } = *embedded;
        let catalog = &stock.catalog;
        let dimensions = encoder.dimensions();
        let scene = Scene { catalog, packs, embeddings, dimensions, options };
        let play = || Conversation::play(scene, turns);
        (!turns.is_empty()).then(play).transpose()
    }
}

/// Returns the options that Route uses if a request sets none.
pub(crate) fn options(router: &RouterConfig) -> Options {
    Options {
        top_k: router.top_k,
        threshold: router.threshold,
        ratio: Some(router.relative_cutoff).filter(|ratio| *ratio > 0.0),
        ..Options::default()
    }
}

/// Returns every summary to embed. Duplicates stay, and the embedder embeds each text once.
pub(crate) fn summaries<'a>(
    catalog: &'a StoredCatalog,
    plain: Option<&'a StoredCatalog>,
) -> Vec<&'a str> {
    let tools = catalog.tools.iter().chain(plain.into_iter().flat_map(|catalog| &catalog.tools));
    tools.map(|tool| tool.record.summary.as_str()).collect()
}

/// Returns every text to embed for these queries: the texts that Route derives from a query, the query itself, and the
/// background requests that show when no tool fits.
pub fn texts<'a>(queries: impl Iterator<Item = &'a str>) -> Vec<String> {
    let read = |query: &str| {
        let whole = Intent::new(query.to_owned(), 1.0);
        whole.texts().chain([query.to_owned()]).collect::<Vec<_>>()
    };
    let background = Background::texts().iter().map(|text| (*text).to_owned());
    queries.flat_map(read).chain(background).collect()
}
