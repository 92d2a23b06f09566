//! A tenant's policy: which tools may be seen when, and how they are chosen. Here is what a document says
//! once it was read; what follows from it for a tool is decided in `shard` and `gate`.

use std::sync::Arc;

use crate::condition::{Condition, ToolFacts};

mod document;
mod glob;
mod learned;
mod mistake;
#[cfg(test)]
mod tests;
mod yaml;

pub use learned::{FEATURE_COUNT, FEATURES, Features, Learned};
pub use mistake::PolicyMistake;

use glob::Glob;

/// Bytes of a document, at most.
pub const DOCUMENT_MAX: usize = 64 << 10;

/// The JSON schema of documents.
pub const SCHEMA: &str = include_str!("policy/policy.schema.json");

/// A policy that was checked. The default one says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    /// For requests that leave them out.
    pub defaults: Choosing,
    /// The rules, in the document's order.
    pub rules: Vec<Rule>,
}

/// How tools are chosen by rank; what is absent is not said.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Choosing {
    /// The least overlap.
    pub threshold: Option<f32>,
    /// The most tools.
    pub top_k: Option<usize>,
    /// The most tools of one MCP server.
    pub max_per_server: Option<usize>,
    /// What the best overlap must reach, or no tool fits. Of a whole policy only.
    pub abstain_below: Option<f32>,
    /// The least score as a share of the best one's. Of a whole policy only.
    pub ratio: Option<f32>,
    /// The learned gate in its place. Of a whole policy only.
    pub learned: Option<Learned>,
}

/// What holds for the tools that a rule matches. Demands of several rules add up; of thresholds the last one
/// counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name, unique within the document.
    pub name: Arc<str>,
    /// Which tools.
    matches: Match,
    /// To nobody do they exist.
    pub denied: bool,
    /// Without these they don't exist for the caller.
    pub scopes: Vec<String>,
    /// They may not run unless each of these holds.
    pub conditions: Vec<Condition>,
    /// Always part of the active set.
    pub always_load: bool,
    /// Never deferred.
    pub critical: bool,
    /// In the active set whatever their overlap.
    pub pinned: bool,
    /// How they are chosen by rank.
    pub choosing: Choosing,
}

/// Which tools a rule is about: each part that is there must fit.
#[derive(Debug, Clone, Default, PartialEq)]
struct Match {
    servers: Vec<Glob>,
    tools: Vec<Glob>,
    tags: Vec<String>,
    hints: Hints,
}

/// Annotations that a tool must have; `None` leaves one open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

impl Policy {
    /// Reads a document, YAML or JSON.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str) -> Result<Self, Vec<PolicyMistake>> {
        document::parse(text)
    }

    /// Whether some tools don't exist for some callers, so that a change of what a rule matches changes who
    /// sees what.
    #[must_use]
    pub fn hides(&self) -> bool {
        self.rules.iter().any(|rule| rule.denied || !rule.scopes.is_empty())
    }
}

impl Rule {
    /// What may be wrong with it when it matches so many tools of a catalog; empty when nothing seems to be.
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

    /// Whether it is about every tool of this MCP server, whatever the tool.
    #[must_use]
    pub fn covers(&self, server: &str) -> bool {
        let of = &self.matches;
        let every_name = of.tools.is_empty() || of.tools.iter().any(Glob::matches_all);
        let every_tool = every_name && of.tags.is_empty() && of.hints == Hints::default();
        every_tool && any(&of.servers, server, &mut 0)
    }

    /// Returns true if a tool comes under it by what it says of itself alone: its name, tags and annotations.
    #[must_use]
    pub fn goes_by_claims(&self) -> bool {
        let of = &self.matches;
        let has_claims =
            !of.tools.is_empty() || !of.tags.is_empty() || of.hints != Hints::default();
        of.servers.is_empty() && has_claims
    }

    /// Whether it is about this tool. What that took is added to `steps`.
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
