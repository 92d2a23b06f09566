//! Check that a tool is found by its own words: by its summary, and by the likely request of a user who needs it.

use serde_json::json;

use super::finding::{Code, Finding, Severity};
use super::tool::Tool;
use super::trial::rank_in;
use crate::eval::ranking::{RANKED, Ranked};

/// Last acceptable rank for the tool's own summary.
pub const BY_SUMMARY: usize = 5;

/// Last rank for the tool's intent that a tool set of the usual size includes.
pub const BY_INTENT: usize = 10;

/// Last good rank for the tool's intent. It is strict because real intents match less well than the generated one.
pub const EARLY: usize = 3;

/// Number of preceding tools that a finding names; as many as precede a tool that ranks late.
const NAMED: usize = EARLY;

/// Ranks of a tool for its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findable {
    /// Name of the MCP server in its file.
    pub server: String,
    /// Name of the tool.
    pub tool: String,
    /// Summary of the tool.
    pub summary: String,
    /// Rank of the tool for its summary, from 1; `None` beyond [`RANKED`].
    pub summary_rank: Option<usize>,
    /// Generated request of a user who needs the tool.
    pub intent: String,
    /// Rank of the tool for that intent, from 1; `None` beyond [`RANKED`].
    pub intent_rank: Option<usize>,
}

impl Findable {
    /// Reads a tool's ranks from the rankings.
    #[must_use]
    pub fn new(tool: &Tool<'_>, by_summary: &Ranked, (intent, by_intent): (&str, &Ranked)) -> Self {
        let id = tool.id();
        Self {
            server: tool.server.to_owned(),
            tool: tool.name.to_owned(),
            summary: tool.record.summary.clone(),
            summary_rank: rank_in(by_summary, &id),
            intent: intent.to_owned(),
            intent_rank: rank_in(by_intent, &id),
        }
    }

    /// Returns an error if neither text finds the tool, a warning if one of them does not, and a note if the intent
    /// finds it late.
    #[must_use]
    pub fn check(
        &self,
        tool: &Tool<'_>,
        by_summary: &Ranked,
        by_intent: &Ranked,
    ) -> Option<Finding> {
        let beyond = |rank: Option<usize>, last| rank.is_none_or(|rank| rank > last);
        let summary = beyond(self.summary_rank, BY_SUMMARY);
        let intent = beyond(self.intent_rank, BY_INTENT);
        let summary_before = before(by_summary);
        let intent_before = before(by_intent);
        let by_summary = format!(
            "its own summary finds it at {}, behind {summary_before}",
            shown(self.summary_rank)
        );
        let by_intent = format!(
            "\"{}\" finds it at {}, behind {intent_before}",
            self.intent,
            shown(self.intent_rank)
        );
        let late = beyond(self.intent_rank, EARLY);
        let (severity, problem) = match (summary, intent) {
            (true, true) => (Severity::Error, format!("{by_summary}; {by_intent}")),
            (true, false) => (Severity::Warning, by_summary),
            (false, true) => (Severity::Warning, by_intent),
            (false, false) if late => (Severity::Note, by_intent),
            (false, false) => return None,
        };
        let remedy =
            "say first what only this tool does, in words that the tools before it don't have";
        let evidence = json!({
            "summary_rank": self.summary_rank,
            "intent": self.intent,
            "intent_rank": self.intent_rank,
            "before": if late { intent_before } else { summary_before },
        });
        let finding = Finding::warning(Code::Unfindable, tool, problem).at(severity);
        Some(finding.remedy(remedy).evidence(evidence))
    }
}

/// Returns the first tools of a ranking. Used only if the checked tool is not among them.
fn before(ranked: &Ranked) -> String {
    ranked.ranked.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn shown(rank: Option<usize>) -> String {
    rank.map_or_else(|| format!("no rank up to {RANKED}"), |rank| format!("rank {rank}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::tool::samples::stock;

    /// Ranks the tool `t` as given, and returns the finding.
    fn found(summary: Option<usize>, intent: Option<usize>) -> Option<(Severity, String)> {
        let stock = stock(&[("t", "Does it all.")]);
        let tools = Tool::all(&stock);
        let ranked = |rank: Option<usize>| {
            let others = (1..rank.unwrap_or(RANKED + 1)).map(|n| format!("s/o{n}"));
            Ranked {
                ranked: others.chain(rank.map(|_| "s/t".to_owned())).collect(),
                top: 0.5,
                ..Ranked::default()
            }
        };
        let by_summary = ranked(summary);
        let by_intent = ranked(intent);
        let findable = Findable::new(&tools[0], &by_summary, ("do it", &by_intent));
        assert_eq!((findable.summary_rank, findable.intent_rank), (summary, intent));
        let finding = findable.check(&tools[0], &by_summary, &by_intent)?;
        Some((finding.severity, finding.problem))
    }

    #[test]
    fn ranks_decide() {
        assert_eq!(found(Some(5), Some(3)), None);
        assert_eq!(found(Some(5), Some(10)).expect("a finding").0, Severity::Note);
        let (severity, problem) = found(Some(6), Some(1)).expect("a finding");
        assert_eq!(severity, Severity::Warning);
        assert_eq!(problem, "its own summary finds it at rank 6, behind s/o1, s/o2, s/o3");
        let (severity, problem) = found(Some(1), Some(11)).expect("a finding");
        assert_eq!(severity, Severity::Warning);
        assert!(problem.starts_with("\"do it\" finds it at rank 11, behind s/o1"), "{problem}");
        let (severity, problem) = found(Some(6), None).expect("a finding");
        assert_eq!(severity, Severity::Error);
        assert!(problem.contains("; ") && problem.contains("no rank up to 50"), "{problem}");
    }
}
