//! How well a catalog's tools are found: labelled queries go the product's own way from a catalog file to
//! ranked candidates, in this process, and what comes out is measured. No server, no store, and no
//! ranking of its own.

pub mod baseline;
pub mod catalog_file;
pub mod conversation;
pub mod embeddings;
pub mod forms;
pub mod input_error;
pub mod metrics;
pub mod query_file;
pub mod ranking;
pub mod report;
pub mod stock;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use crate::config::LimitsConfig;
use crate::error::Error;
use crate::router::intent::Intent;
use crate::shard::snapshot::Snapshot;
use crate::store::StoredCatalog;

pub use catalog_file::CatalogServer;
pub use embeddings::{Progress, Sides};
pub use input_error::InputError;
pub use query_file::LabelledQuery;
pub use report::Report;

use conversation::Conversation;
use embeddings::Embeddings;
use metrics::Metrics;
use ranking::{Ranked, Ranking, Way};
use report::{Counts, TokenTax};
use stock::Stock;

/// What is to be evaluated.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// The queries, in the order of the answer.
    pub queries: Vec<LabelledQuery>,
    /// What registered tools are held to.
    pub limits: LimitsConfig,
    /// Also rank by plain summaries ([`baseline::plain_summary`]), for comparison.
    pub with_baseline: bool,
    /// Also rank each query with its clauses as intents of one turn, for comparison.
    pub with_clauses: bool,
    /// Play so many queries as one conversation; 0 for none.
    pub conversation: usize,
}

/// What came out.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// One ranking per query, in their order, before any cut.
    pub ranked: Vec<Ranked>,
    /// Everything measured.
    pub report: Report,
}

impl Evaluation {
    /// Checks, embeds, indexes, ranks and measures; `progress` hears of each batch that was embedded.
    ///
    /// # Errors
    /// [`Error::EncoderUnavailable`], or a defect.
    pub async fn run(&self, encoders: Sides<'_>, progress: &Progress) -> Result<Evaluated, Error> {
        let began = Instant::now();
        let stock = Stock::check(&self.servers, &self.limits);
        let plain = self.with_baseline.then(|| baseline::plain(&stock.catalog));
        let checked = began.elapsed();
        let summaries = summaries(&stock.catalog, plain.as_ref());
        let queries = self.texts();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoders, &summaries, &queries, progress).await?;
        let embedded = began.elapsed();
        let answers = |catalog: StoredCatalog, way: Way| {
            let snapshot =
                Snapshot::build(catalog, embeddings.vectors(), encoders.passages.dimensions())?;
            // Large shards are served exactly only until their graph is there.
            snapshot.build_graph();
            let ranking = Ranking { embeddings: &embeddings, names: &stock.names, way };
            let ranked = ranking.rank(&snapshot, &self.queries)?;
            Ok::<_, Error>((Metrics::of(&ranked, &self.queries), ranked))
        };
        let (metrics, ranked) = answers(stock.catalog.clone(), Way::Router)?;
        let baseline = plain.map(|plain| answers(plain, Way::OverlapAlone)).transpose()?;
        let catalog = &stock.catalog;
        let clauses =
            self.with_clauses.then(|| answers(catalog.clone(), Way::Clauses)).transpose()?;
        let conversation = self.play(&stock.catalog, &embeddings, encoders)?;
        let report = Report {
            encoder: encoders.passages.fingerprint().to_owned(),
            counts: Counts::new(self, &stock, &embeddings),
            metrics,
            baseline: baseline.and_then(|(metrics, _)| metrics),
            clauses: clauses.and_then(|(metrics, _)| metrics),
            conversation,
            tokens: TokenTax::of(&stock.catalog),
            check_time: checked,
            embed_time: embedded.saturating_sub(checked),
            whole_time: Duration::ZERO,
            rejected: stock.rejected,
            renamed: stock.renamed,
        };
        Ok(Evaluated { ranked, report: Report { whole_time: began.elapsed(), ..report } })
    }

    /// Every text to embed as a query: as Route embeds it, and as it stands.
    fn texts(&self) -> Vec<String> {
        let read = |query: &LabelledQuery| Intent::new(query.text.clone(), 1.0);
        let read = self.queries.iter().flat_map(|query| read(query).texts().collect::<Vec<_>>());
        read.chain(self.queries.iter().map(|query| query.text.clone())).collect()
    }

    fn play(
        &self,
        catalog: &StoredCatalog,
        embeddings: &Embeddings,
        encoders: Sides<'_>,
    ) -> Result<Option<Conversation>, Error> {
        let turns = &self.queries[..self.conversation.min(self.queries.len())];
        let dimensions = encoders.passages.dimensions();
        let play = || Conversation::play(catalog, embeddings, dimensions, turns);
        (!turns.is_empty()).then(play).transpose()
    }
}

/// Every summary to embed; those that occur twice are for the embedder to notice.
fn summaries<'a>(catalog: &'a StoredCatalog, plain: Option<&'a StoredCatalog>) -> Vec<&'a str> {
    let tools = catalog.tools.iter().chain(plain.into_iter().flat_map(|catalog| &catalog.tools));
    tools.map(|tool| tool.record.summary.as_str()).collect()
}
