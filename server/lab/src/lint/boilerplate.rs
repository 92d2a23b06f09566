//! Sentences that many tools of one MCP server share word for word. They fill summaries and do not tell tools apart.

use std::collections::{HashMap, HashSet};

use super::finding::{Code, Finding, Severity};
use super::tool::{Tool, terms};

/// Minimum number of tools of one server that share a sentence.
const TOOLS_MIN: usize = 5;

/// Minimum number of terms in a shared sentence; shorter ones may well be shared.
const TERMS_MIN: usize = 4;

/// Shared sentences by MCP server, as terms.
#[derive(Debug, Default)]
pub struct Boilerplate<'a>(HashSet<(&'a str, Vec<String>)>);

impl<'a> Boilerplate<'a> {
    /// Collects the sentences that tools of a catalog share.
    #[must_use]
    pub fn of(tools: &'a [Tool<'a>]) -> Self {
        let mut counts: HashMap<(&str, Vec<String>), usize> = HashMap::new();
        for tool in tools {
            let keys: HashSet<_> =
                tool.sentences.iter().map(|text| (tool.server, terms(text))).collect();
            for key in keys.into_iter().filter(|(_, terms)| terms.len() >= TERMS_MIN) {
                *counts.entry(key).or_default() += 1;
            }
        }
        let shared = counts.into_iter().filter(|(_, count)| *count >= TOOLS_MIN);
        Self(shared.map(|(key, _)| key).collect())
    }

    /// Returns the sentences that are the tool's own.
    #[must_use]
    pub fn own<'t>(&self, tool: &'t Tool<'a>) -> Vec<&'t str> {
        let own = tool.sentences.iter().filter(|sentence| !self.holds(tool, sentence));
        own.map(String::as_str).collect()
    }

    /// Returns a warning if the summary begins with a shared sentence, and a note if shared sentences fill half of it.
    #[must_use]
    pub fn check(&self, tool: &Tool<'a>) -> Option<Finding> {
        let summary = terms(&tool.record.summary);
        let shared = tool.sentences.iter().filter(|sentence| self.holds(tool, sentence));
        let shared = shared.map(|sentence| (sentence, length_within(&summary, &terms(sentence))));
        let shared: Vec<_> = shared.filter(|(_, length)| *length > 0).collect();
        let (first, _) = *shared.first()?;
        let leads = tool.sentences.first() == Some(first);
        let filled: usize = shared.iter().map(|(_, length)| length).sum();
        let share = 100 * filled / summary.len().max(1);
        if !leads && share < 50 {
            return None;
        }
        let severity = if leads { Severity::Warning } else { Severity::Note };
        let problem = format!(
            "{share}% of the words of its summary stand in {TOOLS_MIN} or more tools of the MCP server: {:?}",
            shortened(first)
        );
        let finding = Finding::warning(Code::Boilerplate, tool, problem).at(severity);
        Some(
            finding.remedy("begin with what only this tool does; put what holds for all behind it"),
        )
    }

    fn holds(&self, tool: &Tool<'a>, sentence: &str) -> bool {
        self.0.contains(&(tool.server, terms(sentence)))
    }
}

/// Returns the number of a sentence's terms that a summary contains. That is the whole sentence, or its beginning if
/// the summary ends within it.
fn length_within(summary: &[String], sentence: &[String]) -> usize {
    let lengths = (0..summary.len()).map(|start| {
        let pairs = summary[start..].iter().zip(sentence);
        let same = pairs.take_while(|(summary, sentence)| summary == sentence).count();
        let is_cut = same >= TERMS_MIN && start + same == summary.len();
        if same == sentence.len() || is_cut { same } else { 0 }
    });
    lengths.max().unwrap_or(0)
}

fn shortened(text: &str) -> String {
    let kept: String = text.chars().take(80).collect();
    if kept.len() < text.len() { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    const SHARED: &str = "Guardrails: modifies data that others depend on, so ask first.";

    fn descriptions(count: usize, text: impl Fn(usize) -> String) -> Vec<(String, String)> {
        (0..count).map(|n| (format!("t{n}"), text(n))).collect()
    }

    fn severities(described: &[(String, String)]) -> Vec<Option<Severity>> {
        let tools: Vec<_> = described.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
        let stock = stock(&tools);
        let tools = Tool::all(&stock);
        let boilerplate = Boilerplate::of(&tools);
        tools.iter().map(|tool| Some(boilerplate.check(tool)?.severity)).collect()
    }

    #[test]
    fn what_five_tools_share_is_boilerplate() {
        let leading = descriptions(5, |n| format!("{SHARED} Sends letter number{n}."));
        assert_eq!(severities(&leading), [Some(Severity::Warning); 5]);
        let trailing = descriptions(5, |n| format!("Sends letter number{n}. {SHARED}"));
        assert_eq!(severities(&trailing), [Some(Severity::Note); 5]);
        assert_eq!(severities(&leading[..4]), [None; 4]);
    }

    #[test]
    fn what_the_summary_does_not_hold_does_not_count() {
        let endless = "and so on with things that nobody reads ".repeat(12);
        let behind = descriptions(5, |n| format!("Sends letter number{n}. Note: {endless}."));
        assert_eq!(severities(&behind), [None; 5]);
        let before = descriptions(5, |n| format!("Note: {endless}. Sends letter number{n}."));
        assert_eq!(severities(&before), [Some(Severity::Warning); 5]);
    }

    #[test]
    fn a_small_share_is_left_alone() {
        let own = "Sends letters of every kind to people all over the world, by air, sea and land, in envelopes of paper";
        let texts = descriptions(5, |n| format!("{own}, numbered {n}. {SHARED}"));
        assert_eq!(severities(&texts), [None; 5]);
    }

    #[test]
    fn own_sentences_are_the_others() {
        let texts = descriptions(5, |n| format!("{SHARED} Sends letter number{n}."));
        let tools: Vec<_> = texts.iter().map(|(n, d)| (n.as_str(), d.as_str())).collect();
        let stock = stock(&tools);
        let tools = Tool::all(&stock);
        assert_eq!(Boilerplate::of(&tools).own(&tools[3]), ["Sends letter number3."]);
    }
}
