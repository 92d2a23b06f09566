//! Policy of a tenant: which tools may be seen when, and how they are chosen. This module holds a parsed document;
//! `shard` and `gate` decide what follows from it for a tool.

use std::sync::Arc;

use crate::condition::{Condition, ToolFacts};
use crate::glob::Glob;

mod document;
mod learned;
mod mistake;
#[cfg(test)]
mod tests;
mod yaml;

pub use learned::{FEATURE_COUNT, FEATURES, Features, Learned};
pub use mistake::PolicyMistake;

/// Maximum size of a document in bytes.
pub const DOCUMENT_MAX: usize = 64 << 10;

/// JSON schema of documents.
pub const SCHEMA: &str = include_str!("policy/policy.schema.json");

/// Checked policy. The default policy sets nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// Values for requests that leave them out.
    pub defaults: Choosing,
    /// Rules, in the document's order.
    pub rules: Vec<Rule>,
}

/// Settings for choosing tools by rank; `None` for those that the policy does not set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Choosing {
    /// Minimum overlap, a cosine from -1 to 1.
    pub threshold: Option<f32>,
    /// Maximum number of tools.
    pub top_k: Option<usize>,
    /// Maximum number of tools of one MCP server.
    pub max_per_server: Option<usize>,
    /// Minimum overlap of the best tool, a cosine from -1 to 1; below it no tool fits. For a whole policy only.
    pub abstain_below: Option<f32>,
    /// Minimum score as a share of the best score, above 0 and at most 1. For a whole policy only.
    pub ratio: Option<f32>,
    /// Learned gate that replaces the minimum score. For a whole policy only.
    pub learned: Option<Learned>,
}

/// Rule for the tools that it matches. Demands of several rules add up; of several thresholds the last one counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Name of the rule, unique within the document.
    pub name: Arc<str>,
    /// Tools that the rule matches.
    matches: Match,
    /// True if the tools do not exist for any caller.
    pub denied: bool,
    /// Scopes without which the tools don't exist for the caller.
    pub scopes: Vec<String>,
    /// Conditions that must all hold before the tools may run.
    pub conditions: Vec<Condition>,
    /// True if the tools are always part of the active set.
    pub always_load: bool,
    /// True if the tools are never deferred.
    pub critical: bool,
    /// True if the tools are in the active set whatever their overlap.
    pub pinned: bool,
    /// Settings for choosing the tools by rank.
    pub choosing: Choosing,
}

/// Tools that a rule is about. Each part that is present must match.
#[derive(Debug, Clone, Default, PartialEq)]
struct Match {
    servers: Vec<Glob>,
    tools: Vec<Glob>,
    tags: Vec<String>,
    hints: Hints,
}

/// Annotations that a tool must have; `None` accepts any value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

impl Policy {
    /// Parses a document in YAML or JSON.
    ///
    /// # Errors
    /// Returns the mistakes in the document, with their places.
    pub fn parse(text: &str) -> Result<Self, Vec<PolicyMistake>> {
        document::parse(text)
    }

    /// Returns true if some tools don't exist for some callers. A change of what a rule matches can then change which
    /// callers see which tools.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.rules.iter().any(|rule| rule.denied || !rule.scopes.is_empty())
    }
}

impl Rule {
    /// Returns a hint at what may be wrong with the rule if it matches this many tools of a catalog; empty if nothing
    /// seems wrong.
    #[must_use]
    pub fn hint(&self, tools: u32) -> String {
        let patterns = self.matches.tools.iter().map(Glob::to_string);
        let mut odd =
            patterns.filter(|pattern| pattern.starts_with("mcp__") || pattern.contains('/'));
        match (tools, odd.next()) {
            (0, Some(pattern)) => format!(
                "matches no tool: {pattern:?} is held against MCP names, as in `servers: [git], tools: [git_log]`"
            ),
            (0, None) => "matches no tool".to_owned(),
            _ if self.says_nothing() => "says nothing of the tools that it matches".to_owned(),
            _ => String::new(),
        }
    }

    fn says_nothing(&self) -> bool {
        let flags = [self.denied, self.always_load, self.critical, self.pinned];
        let demands = self.scopes.len() + self.conditions.len();
        !flags.contains(&true) && demands == 0 && self.choosing == Choosing::default()
    }

    /// Returns true if the rule covers every tool of this MCP server.
    #[must_use]
    pub fn covers(&self, server: &str) -> bool {
        let of = &self.matches;
        let every_name = of.tools.is_empty() || of.tools.iter().any(Glob::matches_all);
        let every_tool = every_name && of.tags.is_empty() && of.hints == Hints::default();
        every_tool && any(&of.servers, server, &mut 0)
    }

    /// Returns true if the rule selects tools only by what they say of themselves: name, tags and annotations.
    #[must_use]
    pub fn goes_by_claims(&self) -> bool {
        let of = &self.matches;
        let has_claims =
            !of.tools.is_empty() || !of.tags.is_empty() || of.hints != Hints::default();
        of.servers.is_empty() && has_claims
    }

    /// Returns true if the rule matches this tool. Adds the steps taken to `steps`.
    #[must_use]
    pub fn matches(&self, tool: &ToolFacts, steps: &mut usize) -> bool {
        *steps += 1 + self.matches.tags.len();
        let of = &self.matches;
        let tagged = || of.tags.iter().any(|tag| tool.tags.iter().any(|of_tool| **of_tool == *tag));
        any(&of.servers, &tool.server, steps)
            && any(&of.tools, &tool.name, steps)
            && (of.tags.is_empty() || tagged())
            && of.hints.fit(tool)
    }
}

fn any(globs: &[Glob], text: &str, steps: &mut usize) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(text, steps))
}

impl Hints {
    fn fit(self, tool: &ToolFacts) -> bool {
        let fits = |wanted: Option<bool>, actual| wanted.is_none_or(|wanted| wanted == actual);
        fits(self.read_only, tool.read_only)
            && fits(self.destructive, tool.destructive)
            && fits(self.idempotent, tool.idempotent)
            && fits(self.open_world, tool.open_world)
    }
}
