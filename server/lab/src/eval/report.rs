//! Results of an evaluation, as values. The `json` module writes them for machines, and the command line shows them to
//! people.

mod json;

use std::collections::BTreeSet;
use std::time::Duration;

use super::abstention::Abstention;
use super::bootstrap::Bootstrap;
use super::comparison::Comparison;
use super::contexts::ContextRow;
use super::conversation::Conversation;
use super::failures::Failures;
use super::fits::FitRow;
use super::latency::Latency;
use super::measured::{Group, Measured};
use super::stock::{Rejected, Renamed};
use super::visible::VisibleRow;
use super::{Embedded, Evaluation};
use toolgate_config::RouterConfig;
use toolgate_store::{StoredCatalog, StoredTool};

/// Report of everything that was measured.
#[derive(Debug, Clone)]
pub struct Report {
    /// Fingerprint of the encoder.
    pub encoder: String,
    /// Router settings, such as the threshold and `top_k`.
    pub router: RouterConfig,
    /// Numbers of servers, tools and queries.
    pub counts: Counts,
    /// Settings of the confidence intervals.
    pub bootstrap: Bootstrap,
    /// Measures of the queries with labels; `None` if there are none.
    pub metrics: Option<Measured>,
    /// Measures of the queries that need no tool; `None` if there are none.
    pub no_tool: Option<Measured>,
    /// Measures with plain summaries; `None` unless requested.
    pub baseline: Option<Measured>,
    /// Measures with each query's clauses as intents; `None` unless requested.
    pub clauses: Option<Measured>,
    /// Measures with one part of the ranking left out, by its name; empty unless requested.
    pub ablations: Vec<(&'static str, Measured)>,
    /// Comparisons with other answers to the same queries.
    pub comparisons: Vec<Comparison>,
    /// Separation of the queries that need no tool from the others; `None` unless there are both.
    pub abstention: Option<Abstention>,
    /// Accuracy of the reported fit of the best tool.
    pub fits: Vec<FitRow>,
    /// Reasons why active sets lack relevant tools.
    pub failures: Failures,
    /// Measures by kind of query.
    pub kinds: Vec<Group>,
    /// Measures by language of the query.
    pub languages: Vec<Group>,
    /// Tools that are visible for fixed token budgets; empty unless requested.
    pub visible: Vec<VisibleRow>,
    /// Turns of conversations by what they are routed by; empty without conversations.
    pub contexts: Vec<ContextRow>,
    /// Queries played as one conversation; `None` unless requested.
    pub conversation: Option<Conversation>,
    /// Token cost of the catalog.
    pub tokens: TokenTax,
    /// Latency of answers.
    pub latency: Latency,
    /// Duration of the evaluation, by step.
    pub times: Times,
    /// Tools that were not ranked, because the product would not store them.
    pub rejected: Vec<Rejected>,
    /// MCP servers that were ranked under another name.
    pub renamed: Vec<Renamed>,
}

/// Duration of an evaluation, by step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Time to check the tools and derive their summaries.
    pub check: Duration,
    /// Time to embed summaries and queries.
    pub embed: Duration,
    /// Time for the whole evaluation.
    pub whole: Duration,
}

/// Numbers of servers, tools and queries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of MCP servers.
    pub servers: usize,
    /// Number of tools that were ranked.
    pub tools: usize,
    /// Number of ranked tools that the requests of a pack also help to find.
    pub packed: usize,
    /// Number of queries, without those that were given as needing no tool.
    pub queries: usize,
    /// Number of queries that have labels.
    pub labelled: usize,
    /// Number of queries that need no tool.
    pub no_tool: usize,
    /// Number of queries that the encoder did not read to their end.
    pub truncated_queries: usize,
    /// Relevant tools that no ranking can hold, because they were rejected or the catalog has no such tool. They count
    /// as missed.
    pub missing: BTreeSet<String>,
}

/// Token cost of the catalog in a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenTax {
    /// Tokens of all definitions.
    pub schemas: u64,
    /// Tokens of the largest definition.
    pub largest_schema: u32,
    /// Tokens of the summary pool.
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
    /// Adds up the tokens of a catalog's tools.
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
