//! Learning curves of the memory of calls. Half of a set's queries are observed as calls of their tools, and the others
//! are ranked with what was learned. Learning and ranking follow the product's own rules; only times and callers are
//! made up.

mod lessons;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::error::Error;
use toolgate_core::quantized_embedding::{EncoderKey, QuantizedEmbedding, encoder_key};
use toolgate_routing::memory::Remembered;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::Options;
use toolgate_routing::router::ranking::blend::Blend;
use toolgate_routing::router::ranking::recall::Recall;
use toolgate_routing::shard::snapshot::Snapshot;
use toolgate_store::MemoryChanges;

use super::bootstrap::{Bootstrap, Estimate};
use super::embeddings::{Embeddings, Progress, Sides};
use super::metrics::Measure;
use super::query_file::LabelledQuery;
use super::ranking::{Answer, Ranking, Way};
use super::stock::Stock;
use super::{CatalogServer, options, summaries, texts};

use lessons::{Lessons, Split, Taught};

/// Largest numbers of observed calls per tool, one for each place of a curve.
pub const CALLS: [usize; 4] = [0, 1, 5, 20];

/// Measures of the queries that were not observed.
pub const MEASURES: [Measure; 5] = [
    Measure::Recall(1),
    Measure::Recall(5),
    Measure::Recall(10),
    Measure::SetRecall,
    Measure::SetSize,
];

/// Other calls that are observed beside those of the right tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// No other calls.
    None,
    /// One call in ten is of the best-ranked wrong tool.
    Wrong,
    /// One caller calls one wrong tool a thousand times within a month, for all kinds of intents.
    Flood,
    /// One caller calls, for each measured query, the best-ranked wrong tool a thousand times within a month, in the
    /// query's own words.
    Aimed,
}

impl Company {
    /// All variants, in the order of reports.
    pub const ALL: [Self; 4] = [Self::None, Self::Wrong, Self::Flood, Self::Aimed];

    /// Returns the name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "right calls",
            Self::Wrong => "one in ten wrong",
            Self::Flood => "one caller floods",
            Self::Aimed => "one caller aims",
        }
    }
}

/// Catalog, queries and settings of the learning curves.
#[derive(Debug, Clone)]
pub struct Curves {
    /// MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// Queries of users, with labels.
    pub queries: Vec<LabelledQuery>,
    /// Further queries, which need no tool.
    pub no_tool: Vec<LabelledQuery>,
    /// Limits that tools must meet to be registered.
    pub limits: LimitsConfig,
    /// Router settings, such as the threshold and `top_k`.
    pub router: RouterConfig,
    /// Half-life of a call's weight.
    pub half_life: Duration,
    /// Settings of the confidence intervals. The seed also divides the queries.
    pub bootstrap: Bootstrap,
    /// Number of times that the queries are divided anew.
    pub rounds: u64,
    /// Weight of memory; `None` for the product's.
    pub weight: Option<f32>,
}

/// One point of a curve.
#[derive(Debug, Clone)]
pub struct Point {
    /// Other calls that were observed beside the right ones.
    pub company: Company,
    /// Largest number of observed calls per tool.
    pub calls: usize,
    /// Mean number of observed calls per tool, over the tools with observed queries.
    pub observed: f64,
    /// Estimates of [`MEASURES`], in the same order.
    pub measured: Vec<Estimate>,
    /// Share of the queries without a tool that were sent one, 0 to 1; `None` without such queries.
    pub false_accepts: Option<f64>,
}

/// Result of the learning curves.
#[derive(Debug, Clone)]
pub struct Learned {
    /// Number of queries that were measured, in any round.
    pub queries: usize,
    /// Number of tools that were observed, in the last round.
    pub tools: usize,
    /// Weight of memory that was used.
    pub weight: f32,
    /// Points of the curves, one [`Company`] after another.
    pub points: Vec<Point>,
}

/// Catalog and its queries, embedded.
struct Class<'a> {
    curves: &'a Curves,
    stock: &'a Stock,
    embeddings: &'a Embeddings,
    options: &'a Options,
    snapshot: &'a Snapshot,
    background: Vec<Vec<f32>>,
    encoder: EncoderKey,
    weight: f32,
}

/// Sums for one point: each query's measures, and the number of times that it was measured.
#[derive(Default)]
struct Sums {
    queries: BTreeMap<usize, (Vec<f64>, f64)>,
    observed: f64,
    accepts: Vec<f64>,
}

impl Curves {
    /// Checks, embeds, indexes, teaches and measures.
    ///
    /// # Errors
    /// [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, encoders: Sides<'_>, progress: &Progress) -> Result<Learned, Error> {
        let stock = Stock::check(&self.servers, &self.limits);
        let summaries = summaries(&stock.catalog, None);
        let queries = self.queries.iter().chain(&self.no_tool);
        let texts = texts(queries.map(|query| query.text.as_str()));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoders, &summaries, &texts, progress).await?;
        let dimensions = encoders.passages.dimensions();
        let snapshot = Snapshot::build(stock.catalog.clone(), embeddings.vectors(), dimensions)?;
        snapshot.build_graph();
        let class = Class {
            curves: self,
            stock: &stock,
            options: &options(&self.router),
            snapshot: &snapshot,
            background: embeddings.background(),
            embeddings: &embeddings,
            encoder: encoder_key(encoders.queries.fingerprint()),
            weight: self.weight.unwrap_or(Blend::default().memory),
        };
        class.learn()
    }
}

impl Class<'_> {
    fn learn(&self) -> Result<Learned, Error> {
        let plan = Company::ALL.iter().flat_map(|company| CALLS.map(|calls| (*company, calls)));
        let plan: Vec<(Company, usize)> = plan.collect();
        let mut sums: Vec<Sums> = plan.iter().map(|_| Sums::default()).collect();
        let mut tools = 0;
        let plain = self.plain()?;
        for round in 0..self.curves.rounds {
            let seed = self.curves.bootstrap.seed.wrapping_add(round);
            let split = Split::new(&self.curves.queries, seed);
            tools = split.observed.len();
            let lessons = Lessons { split: &split, plain: &plain, class: self, seed };
            for ((company, calls), sums) in plan.iter().zip(&mut sums) {
                let taught = lessons.teach(*company, *calls);
                sums.observed += taught.calls as f64 / tools.max(1) as f64;
                self.measure(&lessons, &taught, *company, sums)?;
            }
        }
        let queries = sums.first().map_or(0, |sums| sums.queries.len());
        let points = plan.iter().zip(&sums);
        let points = points.map(|((company, calls), sums)| self.point(*company, *calls, sums));
        Ok(Learned { queries, tools, weight: self.weight, points: points.collect() })
    }

    /// Returns every query's answer without memory.
    fn plain(&self) -> Result<Vec<Answer>, Error> {
        let queries = self.curves.queries.iter();
        queries.map(|query| self.answer(&query.text, None)).collect()
    }

    fn measure(
        &self,
        lessons: &Lessons<'_>,
        taught: &Taught,
        company: Company,
        sums: &mut Sums,
    ) -> Result<(), Error> {
        let shared = self.recall(taught);
        for place in &lessons.split.measured {
            let query = &self.curves.queries[*place];
            let own = (company == Company::Aimed).then(|| lessons.aim(taught, *place));
            let own = own.map(|taught| self.recall(&taught));
            let answer = self.answer(&query.text, Some(own.as_ref().unwrap_or(&shared)))?;
            let (values, times) = sums.queries.entry(*place).or_default();
            values.resize(MEASURES.len(), 0.0);
            for (sum, measure) in values.iter_mut().zip(MEASURES) {
                *sum += measure.of(&answer, &query.relevant);
            }
            *times += 1.0;
        }
        if company == Company::None {
            for query in &self.curves.no_tool {
                let answer = self.answer(&query.text, Some(&shared))?;
                sums.accepts.push(f64::from(u8::from(!answer.set.tools.is_empty())));
            }
        }
        Ok(())
    }

    fn point(&self, company: Company, calls: usize, sums: &Sums) -> Point {
        let columns: Vec<Vec<f64>> = (0..MEASURES.len())
            .map(|at| sums.queries.values().map(|(values, times)| values[at] / times).collect())
            .collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let accepts = &sums.accepts;
        let share = accepts.iter().sum::<f64>() / accepts.len().max(1) as f64;
        Point {
            company,
            calls,
            observed: sums.observed / self.curves.rounds.max(1) as f64,
            measured: self.curves.bootstrap.means(&columns),
            false_accepts: (!accepts.is_empty()).then_some(share),
        }
    }

    fn recall(&self, taught: &Taught) -> Recall {
        let exemplars = taught.exemplars.iter().flat_map(|(tool, exemplars)| {
            exemplars.iter().map(|exemplar| (tool.clone(), exemplar.clone()))
        });
        let changes = MemoryChanges { version: 1, whole: true, exemplars: exemplars.collect() };
        let remembered = Remembered::default().with(changes, self.curves.half_life);
        Recall::new(Arc::new(remembered), self.encoder)
    }

    fn answer(&self, query: &str, recall: Option<&Recall>) -> Result<Answer, Error> {
        let ranking = Ranking {
            embeddings: self.embeddings,
            names: &self.stock.names,
            options: self.options,
            clauses: self.curves.router.clauses,
            way: Way::Router,
            memory: recall.map(|recall| (recall, self.weight)),
        };
        ranking.answer_one(self.snapshot, query, &self.background)
    }

    /// Returns the quantized embedding of a query that a handle would carry.
    fn intent_embedding(&self, query: &str) -> Option<QuantizedEmbedding> {
        let text = Intent::new(query.to_owned(), 1.0).texts().next()?;
        QuantizedEmbedding::of(self.encoder, self.embeddings.vector(&text)?)
    }
}
