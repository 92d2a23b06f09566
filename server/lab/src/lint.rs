//! Linter for the tools of a catalog. It applies rules to their texts, and ranks each tool for its own words with the
//! product's ranking. It needs no server and no store.

pub mod boilerplate;
pub mod description;
pub mod findable;
pub mod finding;
pub mod imperative;
pub mod intent;
pub mod parameters;
pub mod refused;
pub mod sentences;
pub mod suggest;
#[cfg(test)]
mod tests;
pub mod tool;
pub mod trial;
pub mod twins;

use std::collections::HashSet;

use crate::eval;
use crate::eval::embeddings::Embeddings;
use crate::eval::ranking::Ranked;
use crate::eval::stock::Stock;
use crate::eval::{CatalogServer, Progress, Sides};
use toolgate_config::LimitsConfig;
use toolgate_core::deferral::CatalogSize;
use toolgate_core::error::Error;

pub use finding::{Code, Finding, Severity};

use boilerplate::Boilerplate;
use findable::Findable;
use intent::{KnownNames, intent};
use tool::Tool;
use trial::{Probes, Trial, Wanted, Written, rank_in};

/// Input of the linter.
#[derive(Debug, Clone)]
pub struct Lint {
    /// MCP servers with their tools.
    pub servers: Vec<CatalogServer>,
    /// Limits on registered tools.
    pub limits: LimitsConfig,
    /// True if summaries are suggested too.
    pub suggest: bool,
}

/// Results of the linter.
#[derive(Debug, Clone)]
pub struct Linted {
    /// Findings, sorted by MCP server, tool and code.
    pub findings: Vec<Finding>,
    /// Ranks of every tool, in the order of the catalog.
    pub tools: Vec<Findable>,
    /// Summaries that find their tools better; empty unless requested.
    pub suggestions: Vec<Suggestion>,
    /// Size of the catalog.
    pub size: CatalogSize,
}

/// Summary that finds its tool better when all other suggestions are applied too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// Name of the MCP server in its file.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Suggested summary.
    pub summary: String,
    /// Rank for the tool's intent without the suggestion, from 1; `None` if the tool was not ranked.
    pub before: Option<usize>,
    /// Rank with the suggestion.
    pub after: Option<usize>,
}

/// Returns the findings that need no encoder.
#[must_use]
pub fn texts(stock: &Stock) -> Vec<Finding> {
    let tools = Tool::all(stock);
    let mut findings = of_texts(stock, &tools, &Boilerplate::of(&tools));
    finding::sort(&mut findings);
    findings
}

/// Returns the tools, as MCP server and name, that have a finding which another summary may fix.
#[must_use]
pub fn wanting(findings: &[Finding]) -> HashSet<(&str, &str)> {
    let mendable = findings.iter().filter(|f| f.code != Code::MissingParameterDescription);
    mendable.map(|finding| (finding.server.as_str(), finding.tool.as_str())).collect()
}

fn of_texts(stock: &Stock, tools: &[Tool<'_>], boilerplate: &Boilerplate<'_>) -> Vec<Finding> {
    let mut findings = refused::check(stock);
    for tool in tools {
        findings.extend(description::check(tool));
        findings.extend(boilerplate.check(tool));
        findings.extend(parameters::check(tool));
    }
    findings
}

impl Lint {
    /// Runs all checks. Calls `progress` after each embedded batch.
    ///
    /// # Errors
    /// Returns [`Error::EncoderUnavailable`], or an internal error.
    pub async fn run(&self, encoders: Sides<'_>, progress: &Progress) -> Result<Linted, Error> {
        let stock = Stock::check(&self.servers, &self.limits);
        let tools = Tool::all(&stock);
        let boilerplate = Boilerplate::of(&tools);
        let asked = CatalogQueries::new(&tools, &boilerplate);
        let mut findings = of_texts(&stock, &tools, &boilerplate);
        let suggested: Vec<String> =
            if self.suggest { suggestions(&tools, &boilerplate) } else { Vec::new() };
        let summaries = tools.iter().map(|tool| &tool.record.summary).chain(&suggested);
        let summaries: Vec<&str> = summaries.map(String::as_str).collect();
        let queries = eval::texts(asked.texts().into_iter());
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let embeddings = Embeddings::of(encoders, &summaries, &queries, progress).await?;
        let dimensions = encoders.passages.dimensions();
        let trial = Trial { stock: &stock, embeddings: &embeddings, dimensions };
        let snapshot = trial.snapshot(&Written::new())?;
        let by_summary = trial.rank(&snapshot, &asked.summaries.queries)?;
        let by_intent = trial.rank(&snapshot, &asked.intents.queries)?;
        let found = findables(&tools, &asked, &by_summary, &by_intent, &mut findings);
        findings.extend(twins::check(&tools, &snapshot, &embeddings)?);
        let suggestions = asked.try_out(&trial, &tools, suggested, &by_intent, &findings)?;
        finding::sort(&mut findings);
        let size = CatalogSize::of(tools.iter().map(|tool| tool.record.schema_tokens));
        Ok(Linted { findings, tools: found, suggestions, size })
    }
}

/// Queries to the catalog: every tool's summary, and every tool's intent.
struct CatalogQueries {
    summaries: Probes,
    intents: Probes,
}

impl CatalogQueries {
    fn new(tools: &[Tool<'_>], boilerplate: &Boilerplate<'_>) -> Self {
        let names = KnownNames::of(tools);
        let ids = || tools.iter().map(Tool::id).collect();
        let summaries = tools.iter().map(|tool| names.unnamed(&tool.record.summary)).collect();
        let intents =
            tools.iter().map(|tool| intent(tool, &boilerplate.own(tool), &names)).collect();
        Self {
            summaries: Probes::one_each(summaries, ids()),
            intents: Probes::one_each(intents, ids()),
        }
    }

    fn texts(&self) -> Vec<&str> {
        let queries = self.summaries.queries.iter().chain(&self.intents.queries);
        queries.map(|query| query.text.as_str()).collect()
    }

    /// Returns the helpful suggestions for tools that have a finding on their text or rank.
    fn try_out(
        &self,
        trial: &Trial<'_>,
        tools: &[Tool<'_>],
        suggested: Vec<String>,
        before: &[Ranked],
        findings: &[Finding],
    ) -> Result<Vec<Suggestion>, Error> {
        let wanting = wanting(findings);
        let is_wanting = |tool: &Tool<'_>| wanting.contains(&(tool.server, tool.name));
        let proposed = suggested.into_iter().enumerate();
        let proposed: Written = proposed.filter(|(place, _)| is_wanting(&tools[*place])).collect();
        if proposed.is_empty() {
            return Ok(Vec::new());
        }
        let settled = trial.settle(proposed, &self.intents, before, Wanted::Gain)?;
        let suggestion = |(place, summary): (usize, String)| Suggestion {
            server: tools[place].server.to_owned(),
            tool: tools[place].name.to_owned(),
            summary,
            before: rank_in(&before[place], &self.intents.ids[place]),
            after: rank_in(&settled.ranked[place], &self.intents.ids[place]),
        };
        Ok(settled.kept.into_iter().map(suggestion).collect())
    }
}

/// Returns one suggestion for each tool.
fn suggestions(tools: &[Tool<'_>], boilerplate: &Boilerplate<'_>) -> Vec<String> {
    tools.iter().map(|tool| suggest::suggestion(tool, &boilerplate.own(tool))).collect()
}

/// Returns the ranks of every tool, and adds problems with them to `findings`.
fn findables(
    tools: &[Tool<'_>],
    asked: &CatalogQueries,
    by_summary: &[Ranked],
    by_intent: &[Ranked],
    findings: &mut Vec<Finding>,
) -> Vec<Findable> {
    let one = |(place, tool): (usize, &Tool<'_>)| {
        let by_summary = &by_summary[place];
        let by_intent = &by_intent[place];
        let intent = asked.intents.queries[place].text.as_str();
        let findable = Findable::new(tool, by_summary, (intent, by_intent));
        findings.extend(findable.check(tool, by_summary, by_intent));
        findable
    };
    tools.iter().enumerate().map(one).collect()
}
