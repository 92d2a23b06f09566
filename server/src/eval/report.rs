//! What an evaluation found, as values and as JSON. How people are shown it is the command line's
//! business.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Evaluation;
use super::conversation::{Conversation, Layout};
use super::embeddings::Embeddings;
use super::metrics::Metrics;
use super::stock::{Rejected, Renamed, Stock};
use crate::store::{StoredCatalog, StoredTool};
use crate::tokens::TOKENIZER;

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// The encoder's fingerprint.
    pub encoder: String,
    /// What there was.
    pub counts: Counts,
    /// How well it was found; `None` when no query has labels.
    pub metrics: Option<Metrics>,
    /// How well it was found by plain summaries, when that was asked for.
    pub baseline: Option<Metrics>,
    /// How well it was found with each query's clauses as intents, when that was asked for.
    pub clauses: Option<Metrics>,
    /// The queries as one conversation, when that was asked for.
    pub conversation: Option<Conversation>,
    /// What the catalog costs.
    pub tokens: TokenTax,
    /// Time to check the tools and derive their summaries.
    pub check_time: Duration,
    /// Time to embed summaries and queries.
    pub embed_time: Duration,
    /// Time for everything.
    pub whole_time: Duration,
    /// Tools that were not ranked, because the product would not store them.
    pub rejected: Vec<Rejected>,
    /// MCP servers that were ranked under another name.
    pub renamed: Vec<Renamed>,
}

/// What there was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// MCP servers.
    pub servers: usize,
    /// Tools that were ranked.
    pub tools: usize,
    /// Queries.
    pub queries: usize,
    /// Queries that have labels.
    pub labelled: usize,
    /// Queries that the encoder did not read to their end.
    pub truncated_queries: usize,
    /// Relevant tools that no ranking can hold, because they were rejected or the catalog has no such
    /// tool; they count as missed.
    pub missing: BTreeSet<String>,
}

/// What the catalog costs a prompt, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenTax {
    /// All definitions.
    pub schemas: u64,
    /// The largest of them.
    pub largest_schema: u32,
    /// The summary pool.
    pub pool: u64,
}

impl Counts {
    pub(super) fn new(evaluation: &Evaluation, stock: &Stock, embeddings: &Embeddings) -> Self {
        let queries = &evaluation.queries;
        let id = |tool: &StoredTool| {
            let server = stock.names.in_file(&tool.record.server);
            format!("{server}/{}", tool.record.name.as_str())
        };
        let known: BTreeSet<String> = stock.catalog.tools.iter().map(id).collect();
        let relevant = queries.iter().flat_map(|query| &query.relevant);
        Self {
            servers: stock.catalog.servers.len(),
            tools: stock.catalog.tools.len(),
            queries: queries.len(),
            labelled: queries.iter().filter(|query| !query.relevant.is_empty()).count(),
            truncated_queries: queries.iter().filter(|q| embeddings.is_truncated(&q.text)).count(),
            missing: relevant.filter(|id| !known.contains(*id)).cloned().collect(),
        }
    }
}

impl TokenTax {
    /// Adds up a catalog.
    #[must_use]
    pub fn of(catalog: &StoredCatalog) -> Self {
        let records = || catalog.tools.iter().map(|tool| &tool.record);
        Self {
            schemas: records().map(|tool| u64::from(tool.schema_tokens)).sum(),
            largest_schema: records().map(|tool| tool.schema_tokens).max().unwrap_or(0),
            pool: records().map(|tool| u64::from(tool.summary_tokens)).sum(),
        }
    }
}

impl Report {
    /// The report for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let counts = &self.counts;
        json!({
            "metrics": self.metrics.as_ref().map(metrics),
            "baseline": self.baseline.as_ref().map(metrics),
            "clauses": self.clauses.as_ref().map(metrics),
            "conversation": self.conversation.as_ref().map(conversation),
            "counts": {
                "servers": counts.servers,
                "tools": counts.tools,
                "rejected_tools": self.rejected.len(),
                "queries": counts.queries,
                "labelled_queries": counts.labelled,
                "truncated_queries": counts.truncated_queries,
                "missing_relevant": counts.missing.len(),
            },
            "token_tax": {
                "tokenizer": TOKENIZER,
                "full_catalog_tokens": self.tokens.schemas,
                "largest_schema_tokens": self.tokens.largest_schema,
                "summary_pool_tokens": self.tokens.pool,
            },
            "encoder_fingerprint": self.encoder,
            "seconds": {
                "check": self.check_time.as_secs_f64(),
                "embed": self.embed_time.as_secs_f64(),
                "whole": self.whole_time.as_secs_f64(),
            },
            "rejected": self.rejected.iter().map(rejected).collect::<Vec<_>>(),
            "renamed_servers": self.renamed.iter()
                .map(|renamed| json!({"from": renamed.from, "to": renamed.to.as_str()}))
                .collect::<Vec<_>>(),
            "missing_relevant": counts.missing,
        })
    }
}

fn metrics(metrics: &Metrics) -> Value {
    metrics.named().map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>().into()
}

fn conversation(played: &Conversation) -> Value {
    let layout = |layout: &Layout| {
        json!({
            "layout": layout.name,
            "tokens": layout.tokens,
            "cached_tokens": layout.cached,
            "hit_rate": layout.hit_rate(),
            "priced_tokens": layout.priced(),
        })
    };
    let layouts: Vec<_> = played.layouts.iter().map(layout).collect();
    json!({"turns": played.turns, "layouts": layouts})
}

fn rejected(tool: &Rejected) -> Value {
    let rejection = &tool.rejection;
    json!({
        "server": tool.server,
        "name": rejection.name,
        "field": rejection.field,
        "problem": rejection.problem,
    })
}
