//! Scanner that applies the rules to all texts of a tool.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::decode::decoded;
use super::finding::{self, Finding, Severity, excerpt};
use super::pieces::{Part, walk};
use super::reading::{Disguise, Reading};
use super::rules::{Detector, Rules};

/// Maximum number of bytes of a tool's texts that are scanned. Real tools stay far below.
const LOOKED_THROUGH: usize = 128 << 10;
/// Maximum number of findings that are kept of one tool.
const FINDINGS_MAX: usize = 16;

/// Scanner of tools and MCP servers, with its rules.
#[derive(Debug)]
pub struct Scanner {
    rules: Rules,
}

/// Texts that stand beside a definition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beside<'a> {
    /// Summary of the tool.
    pub summary: &'a str,
    /// Search hint: words that users say.
    pub hint: &'a str,
}

impl Scanner {
    /// Creates a scanner with these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules }
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Scans a tool and returns its findings, most severe first, at most one per rule. `of` is the prefix of field
    /// names, such as `tools[3]`.
    #[must_use]
    pub fn tool(&self, of: &str, definition: &Value, beside: Beside<'_>) -> Vec<Finding> {
        let mut pass = Pass::new(&self.rules);
        walk(definition, &mut |path, part, text| pass.text(part, text, &|| path.after(of)));
        // A summary mostly repeats the beginning of the description. Each rule is reported only once.
        pass.text(Part::Summary, beside.summary, &|| format!("{of}.summary"));
        pass.text(Part::Hint, beside.hint, &|| format!("{of}.search_hint"));
        pass.finish()
    }

    /// Returns a finding if the tool asks to be always loaded, which is granted only to trusted MCP servers.
    #[must_use]
    pub fn claim(&self, of: &str, definition: &Value) -> Option<Finding> {
        let flag = definition.get("_meta")?.get("anthropic/alwaysLoad")?;
        let field = format!("{of}._meta.anthropic/alwaysLoad");
        let asks = flag.as_bool() == Some(true);
        asks.then(|| self.rules.detected(Detector::AlwaysLoaded, field, "true".to_owned()))?
    }

    /// Scans the description that an MCP server gives of itself.
    #[must_use]
    pub fn server(&self, description: &str) -> Vec<Finding> {
        let mut pass = Pass::new(&self.rules);
        pass.text(Part::Server, description, &|| "description".to_owned());
        pass.finish()
    }
}

/// Scan of one tool.
struct Pass<'a> {
    rules: &'a Rules,
    found: Vec<Finding>,
    known: HashSet<Arc<str>>,
    left: usize,
}

impl<'a> Pass<'a> {
    fn new(rules: &'a Rules) -> Self {
        Self { rules, found: Vec::new(), known: HashSet::new(), left: LOOKED_THROUGH }
    }

    fn text(&mut self, part: Part, text: &str, place: &dyn Fn() -> String) {
        if text.is_empty() {
            return;
        }
        if text.len() > self.left {
            self.keep(self.rules.detected(Detector::TooLong, place(), String::new()));
        }
        let text = &text[..text.floor_char_boundary(self.left)];
        self.left -= text.len();
        let reading = Reading::of(text);
        for (disguise, at) in &reading.disguises {
            let shown = excerpt(text, *at, *at + 1);
            self.keep(self.rules.detected(detector(*disguise), place(), shown));
        }
        self.held_against(&reading, part, place);
        for (start, end, plain) in decoded(&reading.flat) {
            let shown = excerpt(&reading.flat, start, end.min(start + 40));
            self.keep(self.rules.detected(Detector::Encoded, place(), shown));
            self.within_encoding(&plain, part, place);
        }
    }

    fn held_against(&mut self, reading: &Reading, part: Part, place: &dyn Fn() -> String) {
        for finding in self.rules.find(reading, part, place, &self.known) {
            self.keep(Some(finding));
        }
    }

    /// Keeps what rules find in a decoded text, always with high severity, because encoding it was meant to hide it.
    fn within_encoding(&mut self, plain: &str, part: Part, place: &dyn Fn() -> String) {
        let reading = Reading::of(plain);
        let place = || format!("{} (decoded)", place());
        for finding in self.rules.find(&reading, part, &place, &self.known) {
            self.keep(Some(Finding { severity: Severity::High, ..finding }));
        }
    }

    fn keep(&mut self, finding: Option<Finding>) {
        let Some(finding) = finding else { return };
        if self.known.insert(Arc::clone(&finding.rule)) {
            self.found.push(finding);
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        finding::sort(&mut self.found);
        self.found.truncate(FINDINGS_MAX);
        self.found
    }
}

fn detector(disguise: Disguise) -> Detector {
    match disguise {
        Disguise::SplitWords => Detector::SplitWords,
        Disguise::Invisible => Detector::Invisible,
        Disguise::Tags => Detector::Tags,
        Disguise::Turned => Detector::Turned,
        Disguise::Commands => Detector::Commands,
        Disguise::Styled => Detector::Styled,
        Disguise::MixedScript => Detector::MixedScript,
        Disguise::Flood => Detector::Flood,
    }
}

#[cfg(test)]
mod tests;
