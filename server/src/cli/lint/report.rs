//! Findings of `toolgate lint`, as text and as JSON.

use anstyle::Style;
use serde_json::{Value, json};

use crate::cli::output::{BAD, GOOD, ODD, STRONG};
use crate::cli::small_catalog;
use crate::cli::table::{Column, render};
use crate::cli::text::{counted, grouped, one_line};
use toolgate_lab::eval::ranking::RANKED;
use toolgate_lab::lint::findable::Findable;
use toolgate_lab::lint::{Code, Finding, Linted, Severity, Suggestion};

/// Maximum length of a line of a finding, in characters.
const WIDTH: usize = 400;

pub(super) fn report(linted: &Linted, least: Severity) -> String {
    let shown: Vec<&Finding> =
        linted.findings.iter().filter(|finding| finding.severity >= least).collect();
    let mut text: String = shown.iter().map(|finding| line(finding)).collect();
    if !shown.is_empty() {
        text.push('\n');
    }
    text.push_str(&suggestions(&linted.suggestions));
    text.push_str(&summary(linted, shown.len()));
    text
}

fn line(finding: &Finding) -> String {
    let style = colour(finding.severity);
    let severity = finding.severity.as_str();
    let code = finding.code.as_str();
    let tool = one_line(&format!("{}/{}", finding.server, finding.tool), WIDTH);
    let problem = one_line(&finding.problem, WIDTH);
    let remedy = one_line(&finding.remedy, WIDTH);
    format!("{style}{severity}{style:#} {code} {STRONG}{tool}{STRONG:#}: {problem}\n  {remedy}\n")
}

fn colour(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => ODD,
        Severity::Note => Style::new(),
    }
}

fn suggestions(suggestions: &[Suggestion]) -> String {
    let one = |suggestion: &Suggestion| {
        let tool = one_line(&format!("{}/{}", suggestion.server, suggestion.tool), WIDTH);
        let ranks = format!("{} -> {}", rank(suggestion.before), rank(suggestion.after));
        let summary = one_line(&suggestion.summary, WIDTH);
        format!("{GOOD}suggested{GOOD:#} {STRONG}{tool}{STRONG:#} (rank {ranks}): {summary}\n")
    };
    let mut text: String = suggestions.iter().map(one).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn rank(rank: Option<usize>) -> String {
    rank.map_or_else(|| format!("beyond {RANKED}"), |rank| rank.to_string())
}

fn summary(linted: &Linted, shown: usize) -> String {
    let findings = &linted.findings;
    let count = |wanted: Severity| findings.iter().filter(|f| f.severity == wanted).count();
    let codes: Vec<_> = Code::ALL.into_iter().filter(|code| of(findings, *code) > 0).collect();
    let mut text = String::new();
    if !codes.is_empty() {
        let columns = [Column::Left("CODE"), Column::Right("FINDINGS")];
        let row = |code: &Code| vec![code.as_str().to_owned(), grouped(of(findings, *code) as u64)];
        text = format!("{}\n", render(&columns, codes.iter().map(row)));
    }
    let hidden = match findings.len() - shown {
        0 => String::new(),
        count => format!(" ({} not listed; --show note lists all)", grouped(count as u64)),
    };
    text.push_str(&format!(
        "{}: {}, {}, {}{hidden}\n{}",
        counted(linted.tools.len(), "tool"),
        counted(count(Severity::Error), "error"),
        counted(count(Severity::Warning), "warning"),
        counted(count(Severity::Note), "note"),
        found(&linted.tools),
    ));
    text.push_str(&small_catalog::advice(linted.size));
    text
}

fn of(findings: &[Finding], code: Code) -> usize {
    findings.iter().filter(|finding| finding.code == code).count()
}

/// Formats the shares of tools that rank first, within 5 and within 10 for their own intents.
fn found(tools: &[Findable]) -> String {
    let within = |last| {
        let early = tools.iter().filter(|tool| tool.intent_rank.is_some_and(|rank| rank <= last));
        format!("{:.1}%", 100.0 * early.count() as f64 / tools.len().max(1) as f64)
    };
    format!(
        "For their own intents {} come first, {} within 5, {} within 10.\n",
        within(1),
        within(5),
        within(10)
    )
}

pub(super) fn as_json(linted: &Linted) -> Value {
    let counts = Code::ALL.into_iter().map(|code| (code.as_str(), of(&linted.findings, code)));
    let counts: serde_json::Map<_, _> =
        counts.map(|(code, count)| (code.to_owned(), json!(count))).collect();
    json!({
        "findings": linted.findings,
        "counts": counts,
        "catalog": {
            "tools": linted.size.tools,
            "schema_tokens": linted.size.tokens,
            "largest_schema_tokens": linted.size.largest,
            "is_small": linted.size.is_small(),
        },
        "tools": linted.tools.iter().map(tool).collect::<Vec<_>>(),
        "suggestions": linted.suggestions.iter().map(suggestion).collect::<Vec<_>>(),
    })
}

fn tool(tool: &Findable) -> Value {
    json!({
        "server": tool.server,
        "tool": tool.tool,
        "summary": tool.summary,
        "summary_rank": tool.summary_rank,
        "intent": tool.intent,
        "intent_rank": tool.intent_rank,
    })
}

fn suggestion(suggestion: &Suggestion) -> Value {
    json!({
        "server": suggestion.server,
        "tool": suggestion.tool,
        "summary": suggestion.summary,
        "rank_before": suggestion.before,
        "rank_after": suggestion.after,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::deferral::CatalogSize;

    fn finding(code: Code, severity: Severity) -> Finding {
        Finding {
            code,
            severity,
            server: "s".into(),
            tool: "t\u{1b}[31m".into(),
            problem: "wrong\nhere".into(),
            remedy: "mend it".into(),
            evidence: Value::Null,
        }
    }

    fn linted() -> Linted {
        let findings = vec![
            finding(Code::Unfindable, Severity::Error),
            finding(Code::TooShort, Severity::Warning),
            finding(Code::SummaryCut, Severity::Note),
        ];
        let ranked = |rank| Findable {
            server: "s".into(),
            tool: "t".into(),
            summary: "t: does it".into(),
            summary_rank: Some(1),
            intent: "do it".into(),
            intent_rank: rank,
        };
        let suggestions = vec![Suggestion {
            server: "s".into(),
            tool: "t".into(),
            summary: "t: Do it.".into(),
            before: None,
            after: Some(2),
        }];
        let tools = [Some(1), Some(7), None].map(ranked).into();
        let size = CatalogSize { tools: 51, tokens: 30_000, largest: 900 };
        Linted { findings, tools, suggestions, size }
    }

    #[test]
    fn findings_are_lines_and_everything_is_counted() {
        let text = anstream::adapter::strip_str(&report(&linted(), Severity::Warning)).to_string();
        let wanted = "\
error UNFINDABLE s/t[31m: wrong here
  mend it
warning TOO_SHORT s/t[31m: wrong here
  mend it

suggested s/t (rank beyond 50 -> 2): t: Do it.

CODE         FINDINGS
UNFINDABLE          1
TOO_SHORT           1
SUMMARY_CUT         1

3 tools: 1 error, 1 warning, 1 note (1 not listed; --show note lists all)
For their own intents 33.3% come first, 33.3% within 5, 66.7% within 10.
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_small_catalog_need_not_be_deferred() {
        let size = CatalogSize { tools: 3, tokens: 900, largest: 400 };
        let text = report(&Linted { size, ..linted() }, Severity::Warning);
        let advice = small_catalog::advice(size);
        assert!(!advice.is_empty() && text.ends_with(&advice), "{text}");
    }

    #[test]
    fn machines_get_everything() {
        let json = as_json(&linted());
        assert_eq!(json["findings"][2]["code"], "SUMMARY_CUT");
        assert_eq!(json["findings"][2]["severity"], "note");
        assert_eq!(
            (&json["counts"]["TOO_SHORT"], &json["counts"]["NEAR_TWIN"]),
            (&json!(1), &json!(0))
        );
        assert_eq!(json["tools"][2]["intent_rank"], Value::Null);
        assert_eq!(json["catalog"]["is_small"], false);
        assert_eq!(json["suggestions"][0]["rank_after"], 2);
    }
}
