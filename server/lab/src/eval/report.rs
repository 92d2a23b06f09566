//! What an evaluation found, as values. How machines are told is in `json`; how people are shown it is the command
//! line's business.

mod json;

use std::collections::BTreeSet;
use std::time::Duration;

use super::abstention::Abstention;
use super::bootstrap::Bootstrap;
use super::comparison::Comparison;
use super::conversation::Conversation;
use super::fits::FitRow;
use super::latency::Latency;
use super::measured::{Group, Measured};
use super::stock::{Rejected, Renamed};
use super::visible::VisibleRow;
use super::{Embedded, Evaluation};
use toolgate_config::RouterConfig;
use toolgate_store::{StoredCatalog, StoredTool};

/// Everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// The encoder's fingerprint.
    pub encoder: String,
    /// Where rankings were cut.
    pub router: RouterConfig,
    /// What there was.
    pub counts: Counts,
    /// What the intervals are made of.
    pub bootstrap: Bootstrap,
    /// How well it was found; `None` when no query has labels.
    pub metrics: Option<Measured>,
    /// How queries fared that need no tool, when there are any.
    pub no_tool: Option<Measured>,
    /// How well it was found by plain summaries, when that was asked for.
    pub baseline: Option<Measured>,
    /// How well it was found with each query's clauses as intents, when that was asked for.
    pub clauses: Option<Measured>,
    /// How well it was found with a part of the ranking left out, when that was asked for.
    pub ablations: Vec<(&'static str, Measured)>,
    /// The same queries answered otherwise, side by side.
    pub comparisons: Vec<Comparison>,
    /// How well both kinds of query are told apart, when there are both.
    pub abstention: Option<Abstention>,
    /// What was said of how well the best tool fits, and whether it is true.
    pub fits: Vec<FitRow>,
    /// Measures by kind of query.
    pub kinds: Vec<Group>,
    /// Measures by language.
    pub languages: Vec<Group>,
    /// What so many tokens show, when that was asked for.
    pub visible: Vec<VisibleRow>,
    /// The queries as one conversation, when that was asked for.
    pub conversation: Option<Conversation>,
    /// What the catalog costs.
    pub tokens: TokenTax,
    /// How long answers take.
    pub latency: Latency,
    /// How long the evaluation took.
    pub times: Times,
    /// Tools that were not ranked, because the product would not store them.
    pub rejected: Vec<Rejected>,
    /// MCP servers that were ranked under another name.
    pub renamed: Vec<Renamed>,
}

/// How long an evaluation took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// To check the tools and derive their summaries.
    pub check: Duration,
    /// To embed summaries and queries.
    pub embed: Duration,
    /// Everything.
    pub whole: Duration,
}

/// What there was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// MCP servers.
    pub servers: usize,
    /// Tools that were ranked.
    pub tools: usize,
    /// Those of them that are also found by the requests of a pack.
    pub packed: usize,
    /// Queries, but for those that were given as needing no tool.
    pub queries: usize,
    /// Queries that have labels.
    pub labelled: usize,
    /// Queries that need no tool.
    pub no_tool: usize,
    /// Queries that the encoder did not read to their end.
    pub truncated_queries: usize,
    /// Relevant tools that no ranking can hold, because they were rejected or the catalog has no such
    /// tool; they count as missed.
    pub missing: BTreeSet<String>,
}

/// What the catalog costs a prompt, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenTax {
    /// All definitions.
    pub schemas: u64,
    /// The largest of them.
    pub largest_schema: u32,
    /// The summary pool.
    pub pool: u64,
}

impl Counts {
    pub(super) fn new(evaluation: &Evaluation, embedded: &Embedded<'_>) -> Self {
        let Embedded { stock, embeddings, packs, .. } = *embedded;
        let queries = evaluation.all_queries();
        let id = |tool: &StoredTool| {
            let server = stock.names.in_file(&tool.record.server);
            format!("{server}/{}", tool.record.name.as_str())
        };
        let known: BTreeSet<String> = stock.catalog.tools.iter().map(id).collect();
        let relevant = queries.iter().flat_map(|query| &query.relevant);
        Self {
            servers: stock.catalog.servers.len(),
            tools: stock.catalog.tools.len(),
            packed: packs.count(),
            queries: evaluation.queries.len(),
            labelled: queries.iter().filter(|query| query.is_labelled()).count(),
            no_tool: queries.iter().filter(|query| query.needs_no_tool).count(),
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
