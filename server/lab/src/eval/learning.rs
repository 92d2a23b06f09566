//! Learning curves of the memory of what worked: half of a set's queries are observed as calls of their tools, the
//! others are ranked with what was learned. By the product's own rules of learning and ranking; only time and callers are
//! made up.

mod lessons;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use toolgate_config::{LimitsConfig, RouterConfig};
use toolgate_core::error::Error;
use toolgate_core::imprint::{EncoderKey, Imprint, encoder_key};
use toolgate_routing::memory::Remembered;
use toolgate_routing::router::blend::Blend;
use toolgate_routing::router::intent::Intent;
use toolgate_routing::router::query::Options;
use toolgate_routing::router::recall::Recall;
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

/// Calls of each tool that are observed at most.
pub const CALLS: [usize; 4] = [0, 1, 5, 20];

/// What is measured of the queries that were not observed.
pub const MEASURES: [Measure; 5] = [
    Measure::Recall(1),
    Measure::Recall(5),
    Measure::Recall(10),
    Measure::SetRecall,
    Measure::SetSize,
];

/// Whose calls are observed beside those of the right tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Nobody's.
    None,
    /// One in ten calls is of the wrong tool that is ranked best.
    Wrong,
    /// One caller calls one wrong tool a thousand times within a month, for intents of all sorts.
    Flood,
    /// One caller calls, for each query that is measured, the wrong tool that is ranked best: a thousand times within a
    /// month, in the query's own words.
    Aimed,
}

impl Company {
    /// All, in the order of reports.
    pub const ALL: [Self; 4] = [Self::None, Self::Wrong, Self::Flood, Self::Aimed];

    /// Its name in reports.
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

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct Curves {
    /// The MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// What people ask.
    pub queries: Vec<LabelledQuery>,
    /// More queries, which need no tool.
    pub no_tool: Vec<LabelledQuery>,
    /// What registered tools are held to.
    pub limits: LimitsConfig,
    /// Where rankings are cut.
    pub router: RouterConfig,
    /// How long a call takes to count half.
    pub half_life: Duration,
    /// What the intervals are made of; its seed also divides the queries.
    pub bootstrap: Bootstrap,
    /// How often the queries are divided anew.
    pub rounds: u64,
    /// The weight of memory, instead of the product's.
    pub weight: Option<f32>,
}

/// A place of a curve.
#[derive(Debug, Clone)]
pub struct Point {
    /// Whose calls were observed beside the right ones.
    pub company: Company,
    /// Calls of each tool that were observed at most.
    pub calls: usize,
    /// The mean over the tools that had any.
    pub observed: f64,
    /// Of [`MEASURES`].
    pub measured: Vec<Estimate>,
    /// The share of queries without a tool that were sent one; `None` without such queries.
    pub false_accepts: Option<f64>,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct Learned {
    /// Queries that were measured, in any round.
    pub queries: usize,
    /// Tools that were observed, in the last round.
    pub tools: usize,
    /// The weight of memory.
    pub weight: f32,
    /// The curves, one company after another.
    pub points: Vec<Point>,
}

/// A catalog and its queries, embedded.
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

/// Of one point: the sums of each query's measures, and how often it was measured.
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
    /// [`Error::EncoderUnavailable`], or a defect.
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

    /// Every query's answer without any memory.
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

    /// What a handle would carry of a query.
    fn imprint(&self, query: &str) -> Option<Imprint> {
        let text = Intent::new(query.to_owned(), 1.0).texts().next()?;
        Imprint::of(self.encoder, self.embeddings.vector(&text)?)
    }
}
